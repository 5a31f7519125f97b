"""Deployments: ReplicaSets, one per template, and the way from one to the next."""

from kubereef.controllers import deploymentplan as plan
from kubereef.controllers import rollbacks, rollouts
from kubereef.controllers.batches import for_each
from kubereef.controllers.caches import Key
from kubereef.controllers.claiming import Claims
from kubereef.controllers.pods import is_deleting, is_over
from kubereef.controllers.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from kubereef.controllers.rollouts import Family, Sizes
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.owners import is_controlled_by


class DeploymentController(Controller):
    """Rolls Deployments out, scales them, and rolls them back where their annotation asks for it."""

    name = "deployment-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.deployments = self.watch(DEPLOYMENTS)
        self.claims = Claims(self.hands, self.deployments, world.caches.of(REPLICA_SETS))
        self.replica_sets = self.watch(REPLICA_SETS, self.claims.owners_of)
        # Pods that come, become ready or go change what their ReplicaSet counts: that brings a pass.
        self.pods = world.caches.of(PODS)

    async def sync(self, key: Key) -> float | None:
        deployment = self.deployments.get(key)
        if deployment is None:
            return None
        try:
            return await self._advance(deployment)
        except errors.NotFound:
            return None  # it, or a ReplicaSet, has just gone; the news of that brings the next pass

    async def _advance(self, deployment: Object) -> float | None:
        await self.claims.settle(deployment)
        family = self._family(deployment)
        if is_deleting(deployment):
            await self._write(deployment, plan.counts(deployment, family, self.clock.now()))
            return None
        deployment = await self._tell_pause(deployment)
        if deployment["spec"].get("paused"):
            await self._scale(deployment)
            return None
        revision = rollbacks.asked_revision(deployment)
        if revision is not None:
            await self._roll_back(deployment, revision)
            return None
        if rollouts.is_scaled(deployment, family):
            await self._scale(deployment)
            return None
        if rollouts.is_recreated(deployment):
            return await self._recreate(deployment)
        return await self._roll(deployment)

    def _family(self, deployment: Object) -> Family:
        return plan.family_of(deployment, self.claims.of(deployment))

    # --- the ways of a pass

    async def _roll_back(self, deployment: Object, revision: int) -> None:
        """Take the template of an older revision for the present one; the news of that brings the next pass."""
        deployment = await self._ensure_new(deployment)
        back = rollbacks.rolled_back(deployment, self._family(deployment), revision)
        await self.hands.replace(DEPLOYMENTS, back.deployment)
        tell = self.events.normal if back.is_done else self.events.warning
        await tell(DEPLOYMENTS, deployment, back.reason, back.message)

    async def _scale(self, deployment: Object) -> None:
        """Share the wanted number among the ReplicaSets as they are; make no new one."""
        family = self._family(deployment)
        if family.new is not None:
            deployment = await self._keep_up(deployment, family)
            family = self._family(deployment)
        await self._resize(deployment, family, rollouts.scaled(deployment, family))
        family = self._family(deployment)
        if deployment["spec"].get("paused"):
            await self._clean_up(deployment, family)
        await self._write(deployment, plan.counts(deployment, family, self.clock.now()))

    async def _roll(self, deployment: Object) -> float | None:
        """Let the new ReplicaSet grow and the old ones shrink, within what may be missing or too much."""
        deployment = await self._ensure_new(deployment)
        family = self._family(deployment)
        sizes = rollouts.grow_new(deployment, family) or rollouts.shrink_old(deployment, family)
        await self._resize(deployment, family, sizes)
        return await self._finish(deployment)

    async def _recreate(self, deployment: Object) -> float | None:
        """Let all old Pods go, then make the new ReplicaSet."""
        family = self._family(deployment)
        if family.new is not None:
            deployment = await self._keep_up(deployment, family)
            family = self._family(deployment)
        going = {one["metadata"]["name"]: 0 for one in rollouts.active(family.old)}
        if going:
            await self._resize(deployment, family, going)
        elif not self._runs_old_pods(family):
            deployment = await self._ensure_new(deployment)
            family = self._family(deployment)
            await self._resize(deployment, family, rollouts.grow_new(deployment, family))
        return await self._finish(deployment)

    def _runs_old_pods(self, family: Family) -> bool:
        owned = [pod for one in family.old for pod in self.pods.owned_by(one["metadata"]["uid"])]
        return any(not is_over(pod) for pod in owned) or any(
            rollouts.counted(one, "replicas") for one in family.old
        )

    async def _finish(self, deployment: Object) -> float | None:
        """Remove what the history does not keep, and write down how the rollout gets on."""
        family = self._family(deployment)
        if plan.is_complete(deployment, deployment.get("status") or {}):
            await self._clean_up(deployment, family)
        now = self.clock.now()
        deployment = await self._write(deployment, plan.rollout_status(deployment, family, now))
        left = plan.seconds_to_deadline(deployment, now)
        return None if left is None or left < 0 else left + 1

    # --- what a pass does

    async def _ensure_new(self, deployment: Object) -> Object:
        """Have a ReplicaSet of the present template; return the Deployment as it then is."""
        family = self._family(deployment)
        if family.new is not None:
            return await self._keep_up(deployment, family)
        wanted = plan.new_replica_set(deployment, family)
        name = wanted["metadata"]["name"]
        try:
            made = await self.hands.create(REPLICA_SETS, wanted)
        except errors.AlreadyExists:
            return await self._collided(deployment, wanted)
        except errors.ApiError as refusal:
            await self._failed_to_create(deployment, name, refusal)
            raise
        count = rollouts.size(made)
        if count:
            message = f"Scaled up replica set {name} from 0 to {count}"
            await self.events.normal(DEPLOYMENTS, deployment, "ScalingReplicaSet", message)
        revision = made["metadata"]["annotations"][rollouts.REVISION]
        deployment = await self._mark_revision(deployment, revision)
        return await self._report(
            deployment, "True", "NewReplicaSetCreated", f'Created new replica set "{name}"'
        )

    async def _collided(self, deployment: Object, wanted: Object) -> Object:
        """Take a ReplicaSet of that name if an earlier pass made it; else another template has the same hash."""
        present = await self.hands.get(REPLICA_SETS, Key.of(wanted))
        self.world.caches.saw(REPLICA_SETS, present)
        is_ours = is_controlled_by(present, deployment["metadata"]["uid"])
        if is_ours and plan.has_template_of(deployment, present):
            return deployment
        status = dict(deployment.get("status") or {})
        status["collisionCount"] = status.get("collisionCount", 0) + 1
        deployment = await self.hands.replace_status(DEPLOYMENTS, deployment, status)
        raise errors.already_exists("replicasets", wanted["metadata"]["name"], group="apps")

    async def _failed_to_create(self, deployment: Object, name: str, refusal: errors.ApiError) -> None:
        if refusal.is_of_a_going_namespace:
            return
        message = f'Failed to create new replica set "{name}": {refusal}'
        await self._report(deployment, "False", "ReplicaSetCreateError", message)
        await self.events.warning(DEPLOYMENTS, deployment, "ReplicaSetCreateError", message)

    async def _keep_up(self, deployment: Object, family: Family) -> Object:
        """Bring the new ReplicaSet's annotations up to date, and the Deployment's revision with it."""
        new = family.new
        assert new is not None
        annotations = plan.inherited_annotations(deployment, new, plan.next_revision(family))
        min_ready = deployment["spec"].get("minReadySeconds") or 0
        has_changed = annotations != (new["metadata"].get("annotations") or {})
        if has_changed or (new["spec"].get("minReadySeconds") or 0) != min_ready:
            patch = {
                "metadata": {
                    "resourceVersion": new["metadata"]["resourceVersion"],
                    "annotations": annotations,
                },
                "spec": {"minReadySeconds": min_ready or None},
            }
            new = await self.hands.patch(REPLICA_SETS, new, patch)
        deployment = await self._mark_revision(deployment, annotations[rollouts.REVISION])
        if any(one.get("type") == "Progressing" for one in plan.conditions_of(deployment)):
            return deployment
        message = f'Found new replica set "{new["metadata"]["name"]}"'
        return await self._report(deployment, "True", "FoundNewReplicaSet", message)

    async def _mark_revision(self, deployment: Object, revision: str) -> Object:
        """Note the revision with the Deployment; through its status, since that is no new wish of a user."""
        annotations = deployment["metadata"].get("annotations") or {}
        if annotations.get(rollouts.REVISION) == revision:
            return deployment
        meta = {**deployment["metadata"], "annotations": {**annotations, rollouts.REVISION: revision}}
        return await self.hands.replace(DEPLOYMENTS, {**deployment, "metadata": meta}, "status")

    async def _tell_pause(self, deployment: Object) -> Object:
        conditions = plan.pause_told(deployment, self.clock.now())
        if conditions is plan.conditions_of(deployment) or conditions == plan.conditions_of(deployment):
            return deployment
        return await self._write(deployment, {**(deployment.get("status") or {}), "conditions": conditions})

    async def _report(self, deployment: Object, status: str, reason: str, message: str) -> Object:
        """Say how the rollout gets on, if it has a deadline."""
        if plan.deadline(deployment) is None:
            return deployment
        conditions = plan.with_reported(
            plan.conditions_of(deployment), self.clock.now(), "Progressing", status, reason, message
        )
        return await self._write(deployment, {**(deployment.get("status") or {}), "conditions": conditions})

    async def _write(self, deployment: Object, status: Object) -> Object:
        if status == (deployment.get("status") or {}):
            return deployment
        return await self.hands.replace_status(DEPLOYMENTS, deployment, status)

    async def _resize(self, deployment: Object, family: Family, sizes: Sizes) -> None:
        """Give ReplicaSets their sizes, and note with each what the Deployment's size was."""
        changed = [one for one in family.all if one["metadata"]["name"] in sizes]
        await for_each(changed, lambda one: self._resize_one(deployment, one, sizes[one["metadata"]["name"]]))

    async def _resize_one(self, deployment: Object, replica_set: Object, target: int) -> None:
        before = rollouts.size(replica_set)
        noted = plan.size_annotations(deployment)
        annotations = replica_set["metadata"].get("annotations") or {}
        if target == before and noted.items() <= annotations.items():
            return
        meta = replica_set["metadata"]
        patch = {
            "metadata": {"resourceVersion": meta["resourceVersion"], "annotations": noted},
            "spec": {"replicas": target},
        }
        await self.hands.patch(REPLICA_SETS, replica_set, patch)
        if target != before:
            direction = "up" if target > before else "down"
            message = f"Scaled {direction} replica set {meta['name']} from {before} to {target}"
            await self.events.normal(DEPLOYMENTS, deployment, "ScalingReplicaSet", message)

    async def _clean_up(self, deployment: Object, family: Family) -> None:
        await for_each(plan.outlived(deployment, family), lambda one: self.hands.delete(REPLICA_SETS, one))
