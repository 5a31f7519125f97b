"""ReplicaSets: always the wanted number of Pods that look like the template."""

from collections.abc import Awaitable, Callable

from kubereef.controllers import pods, replicasetplan
from kubereef.controllers.batches import for_each, slow_start
from kubereef.controllers.caches import Key
from kubereef.controllers.claiming import Claims
from kubereef.controllers.replicasetplan import Failure, Steps
from kubereef.controllers.resources import PODS, REPLICA_SETS
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.owners import controller_of


class ReplicaSetController(Controller):
    """Makes and deletes the Pods of ReplicaSets."""

    name = "replicaset-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.replica_sets = self.watch(REPLICA_SETS)
        self.claims = Claims(self.hands, self.replica_sets, world.caches.of(PODS))
        self.pods = self.watch(PODS, self.claims.owners_of)

    async def sync(self, key: Key) -> float | None:
        replica_set = self.replica_sets.get(key)
        if replica_set is None:
            return None
        candidates = [*self.claims.of(replica_set), *self.claims.orphans(key.namespace)]
        await self.claims.settle(replica_set, filter(pods.is_active, candidates))
        now = self.clock.now()
        steps = self._steps(replica_set)
        problem: errors.ApiError | None = None
        try:
            await for_each(steps.delete, lambda pod: self._delete(replica_set, pod))
            await slow_start(steps.create, self._creator(replica_set))
        except errors.ApiError as refusal:
            problem = refusal
        counted = replicasetplan.tally(replica_set, self.claims.of(replica_set), now)
        status = replicasetplan.next_status(replica_set, counted, _failure(steps, problem), now)
        if status != (replica_set.get("status") or {}):
            try:
                await self.hands.replace_status(REPLICA_SETS, replica_set, status)
            except errors.NotFound:
                return None  # it has just gone
        if problem is not None:
            raise problem
        return counted.next_available

    def _steps(self, replica_set: Object) -> Steps:
        if pods.is_deleting(replica_set):
            return Steps()
        active = [pod for pod in self.claims.of(replica_set) if pods.is_active(pod)]
        return replicasetplan.steps(replica_set, active, self._related(replica_set), self.clock.now())

    def _related(self, replica_set: Object) -> list[Object]:
        """Return the active Pods of all ReplicaSets that have the same controller."""
        controller = controller_of(replica_set)
        siblings = [replica_set] if controller is None else self.replica_sets.owned_by(controller["uid"])
        return [pod for sibling in siblings for pod in self.claims.of(sibling) if pods.is_active(pod)]

    def _creator(self, replica_set: Object) -> Callable[[], Awaitable[None]]:
        pod = new_pod(replica_set)
        return lambda: self._create(replica_set, pod)

    async def _create(self, replica_set: Object, pod: Object) -> None:
        try:
            made = await self.hands.create(PODS, pod)
        except errors.ApiError as refusal:
            if refusal.is_of_a_going_namespace:
                return
            await self.events.warning(REPLICA_SETS, replica_set, "FailedCreate", f"Error creating: {refusal}")
            raise
        message = f"Created pod: {made['metadata']['name']}"
        await self.events.normal(REPLICA_SETS, replica_set, "SuccessfulCreate", message)

    async def _delete(self, replica_set: Object, pod: Object) -> None:
        try:
            await self.hands.delete(PODS, pod)
        except errors.ApiError as refusal:
            await self.events.warning(REPLICA_SETS, replica_set, "FailedDelete", f"Error deleting: {refusal}")
            raise
        message = f"Deleted pod: {pod['metadata']['name']}"
        await self.events.normal(REPLICA_SETS, replica_set, "SuccessfulDelete", message)


def new_pod(replica_set: Object) -> Object:
    """Return the Pod that the template of a ReplicaSet asks for."""
    template = replica_set["spec"].get("template") or {}
    meta = template.get("metadata") or {}
    metadata: Object = {
        "generateName": f"{replica_set['metadata']['name']}-",
        "namespace": replica_set["metadata"]["namespace"],
        "ownerReferences": [REPLICA_SETS.reference_to(replica_set)],
    }
    metadata.update(
        {field: meta[field] for field in ("labels", "annotations", "finalizers") if meta.get(field)}
    )
    return {"metadata": metadata, "spec": template.get("spec") or {}}


def _failure(steps: Steps, problem: errors.ApiError | None) -> Failure | None:
    if problem is None:
        return None
    return Failure("FailedCreate" if steps.create else "FailedDelete", str(problem))
