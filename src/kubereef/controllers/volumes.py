"""Volumes and claims: each claim gets a volume, and gives it back when it goes."""

from kubereef.controllers import volumematch
from kubereef.controllers.caches import Key
from kubereef.controllers.pods import is_deleting
from kubereef.controllers.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Resource,
)
from kubereef.controllers.runtime import Controller, World
from kubereef.controllers.scheduling.podclaims import SELECTED_NODE, claim_names, waits_for_consumer
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.times import format_time

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
_LEGACY_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
# Kubernetes had provisioners of its own once; what is left of them is a name for "none".
_IN_TREE = "kubernetes.io/"
_CLAIM = "claim"
_USERS = "claim"
_UNBOUND = "unbound"


class VolumeBinder(Controller):
    """Binds claims to volumes. What no volume fits waits for one, or for the provisioner of its class to make it."""

    name = "persistentvolume-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.volumes = world.caches.of(PERSISTENT_VOLUMES)
        self.volumes.index(_CLAIM, _claim_of)
        self.classes = world.caches.of(STORAGE_CLASSES)
        self.nodes = world.caches.of(NODES)
        self.claims = self.watch(PERSISTENT_VOLUME_CLAIMS)
        self.claims.index(_UNBOUND, _unbound)
        self.volumes.listen(self._volume_changed)
        self.classes.listen(lambda _old, _new: self._supply_changed())

    def _volume_changed(self, old: Object | None, new: Object | None) -> None:
        """Look at the claims of a volume, and at all that wait for one if it is free."""
        for volume in (old, new):
            reference = ((volume or {}).get("spec") or {}).get("claimRef")
            if reference:
                self.queue.add(Key(reference.get("namespace", ""), reference.get("name", "")))
        if new is not None and volumematch.is_free(new):
            self._supply_changed()

    def _supply_changed(self) -> None:
        for claim in self.claims.by(_UNBOUND, _UNBOUND):
            self.queue.add(Key.of(claim))

    async def sync(self, key: Key) -> None:
        claim = self.claims.get(key)
        if claim is None:
            return
        if _is_annotated(claim, BIND_COMPLETED):
            await self._check(claim)
            return
        name = claim["spec"].get("volumeName")
        if name:
            await self._bind_named(claim, name)
        elif not is_deleting(claim):
            await self._find(claim)

    async def _check(self, claim: Object) -> None:
        """See that a bound claim still has its volume."""
        volume = self.volumes.get(("", claim["spec"].get("volumeName") or ""))
        if volume is not None and volumematch.is_claimed_by(volume, claim):
            await self._bind(claim, volume)
        elif (claim.get("status") or {}).get("phase") != "Lost":
            await self._write(claim, {"phase": "Lost"})
            lost = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            await self.events.warning(PERSISTENT_VOLUME_CLAIMS, claim, "ClaimLost", lost)

    async def _bind_named(self, claim: Object, name: str) -> None:
        """Bind a claim to the volume that its user has chosen, as soon as that is there and free."""
        volume = self.volumes.get(("", name))
        if volume is None:
            await self._write(claim, {"phase": "Pending"})
        elif volumematch.is_claimed_by(volume, claim):
            await self._bind(claim, volume)
        elif volumematch.is_free(volume):
            if problem := volumematch.mismatch(volume, claim):
                await self._write(claim, {"phase": "Pending"})
                message = f'Cannot bind to requested volume "{name}": {problem}'
                await self.events.warning(PERSISTENT_VOLUME_CLAIMS, claim, "VolumeMismatch", message)
            else:
                await self._bind(claim, volume)
        else:
            await self._write(claim, {"phase": "Pending"})
            message = f'volume "{name}" already bound to a different claim.'
            await self.events.warning(PERSISTENT_VOLUME_CLAIMS, claim, "FailedBinding", message)

    async def _find(self, claim: Object) -> None:
        """Find a volume for a claim, or say what it waits for."""
        chosen = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if waits_for_consumer(claim, self.classes) and not chosen:
            kept = next((one for one in self.volumes if volumematch.is_claimed_by(one, claim)), None)
            if kept is None:
                message = "waiting for first consumer to be created before binding"
                await self._wait(claim, "WaitForFirstConsumer", message)
                return
        volume = volumematch.match(claim, self.volumes, self.nodes.get(("", chosen or "")))
        if volume is not None:
            await self._bind(claim, volume)
            return
        await self._await_provisioner(claim)

    async def _await_provisioner(self, claim: Object) -> None:
        name = volumematch.class_of(claim)
        storage_class = self.classes.get(("", name))
        if not name:
            message = "no persistent volumes available for this claim and no storage class is set"
            await self._wait(claim, "FailedBinding", message)
        elif storage_class is None:
            await self._write(claim, {"phase": "Pending"})
            message = f'storageclass.storage.k8s.io "{name}" not found'
            await self.events.warning(PERSISTENT_VOLUME_CLAIMS, claim, "ProvisioningFailed", message)
        elif storage_class["provisioner"].startswith(_IN_TREE):
            await self._write(claim, {"phase": "Pending"})
            message = f"no volume plugin matched name: {storage_class['provisioner']}"
            await self.events.warning(PERSISTENT_VOLUME_CLAIMS, claim, "ProvisioningFailed", message)
        else:
            provisioner = storage_class["provisioner"]
            if not _is_annotated(claim, STORAGE_PROVISIONER):
                marks = {STORAGE_PROVISIONER: provisioner, _LEGACY_PROVISIONER: provisioner}
                claim = await self._annotate(claim, marks)
            message = (
                f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or"
                " manually by the system administrator. If volume creation is delayed, please verify that the"
                " provisioner is running and correctly registered."
            )
            await self._wait(claim, "ExternalProvisioning", message)

    async def _bind(self, claim: Object, volume: Object) -> None:
        """Bind the two, each step only if it is missing: the volume first, so that no other claim takes it."""
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid") != claim["metadata"]["uid"]:
            patch: Object = {
                "metadata": {"resourceVersion": volume["metadata"]["resourceVersion"]},
                "spec": {"claimRef": _reference_to(claim)},
            }
            if not reference:
                patch["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
            volume = await self.hands.patch(PERSISTENT_VOLUMES, volume, patch)
        if (volume.get("status") or {}).get("phase") != "Bound":
            volume = await enter(self, volume, "Bound")
        name = volume["metadata"]["name"]
        if claim["spec"].get("volumeName") != name or not _is_annotated(claim, BIND_COMPLETED):
            marks = {BIND_COMPLETED: "yes"}
            if not claim["spec"].get("volumeName"):
                marks[BOUND_BY_CONTROLLER] = "yes"
            claim = await self._annotate(claim, marks, {"volumeName": name})
        given = volume["spec"]
        bound = {"phase": "Bound", "accessModes": given["accessModes"], "capacity": given["capacity"]}
        if (claim.get("status") or {}).get("phase") != "Bound":
            await self._write(claim, bound)

    async def _annotate(self, claim: Object, marks: dict[str, str], spec: Object | None = None) -> Object:
        meta = {"resourceVersion": claim["metadata"]["resourceVersion"], "annotations": marks}
        patch = {"metadata": meta, **({"spec": spec} if spec else {})}
        return await self.hands.patch(PERSISTENT_VOLUME_CLAIMS, claim, patch)

    async def _wait(self, claim: Object, reason: str, message: str) -> None:
        await self._write(claim, {"phase": "Pending"})
        await self.events.normal(PERSISTENT_VOLUME_CLAIMS, claim, reason, message)

    async def _write(self, claim: Object, changes: Object) -> None:
        status = {**(claim.get("status") or {}), **changes}
        if status != (claim.get("status") or {}):
            await self.hands.replace_status(PERSISTENT_VOLUME_CLAIMS, claim, status)


class VolumeReclaimer(Controller):
    """Says of every volume whether it is free or given back, and deletes those that are to go when given back."""

    name = "persistentvolume-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.claims = world.caches.of(PERSISTENT_VOLUME_CLAIMS)
        self.volumes = self.watch(PERSISTENT_VOLUMES)
        self.volumes.index(_CLAIM, _claim_of)
        self.claims.listen(self._claim_changed)

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        claim = new if new is not None else old
        assert claim is not None
        for volume in self.volumes.by(_CLAIM, str(Key.of(claim))):
            self.queue.add(Key.of(volume))

    async def sync(self, key: Key) -> None:
        volume = self.volumes.get(key)
        if volume is None:
            return
        reference = volume["spec"].get("claimRef") or {}
        phase = (volume.get("status") or {}).get("phase")
        if not reference.get("uid"):
            await enter(self, volume, "Available")
            return
        claim = self.claims.get((reference.get("namespace", ""), reference.get("name", "")))
        if claim is not None and claim["metadata"]["uid"] == reference["uid"]:
            return
        if phase not in ("Released", "Failed"):
            volume = await enter(self, volume, "Released")
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete" and not is_deleting(volume):
            await self.hands.delete(PERSISTENT_VOLUMES, volume)


async def enter(controller: Controller, volume: Object, phase: str) -> Object:
    """Let a volume enter a phase, unless it is in it; return it as it then is."""
    status = volume.get("status") or {}
    if status.get("phase") == phase:
        return volume
    entered = {"phase": phase, "lastPhaseTransitionTime": format_time(controller.clock.now())}
    return await controller.hands.replace_status(PERSISTENT_VOLUMES, volume, {**status, **entered})


class ClaimProtection(Controller):
    """Lets claims go once no Pod on a node uses them. A Pod that has no node yet will not get one for such a claim."""

    name = "pvc-protection-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.claims = self.watch(PERSISTENT_VOLUME_CLAIMS)
        self.pods = self.watch(PODS, _claims_used)
        self.pods.index(_USERS, lambda pod: [str(key) for key in _claims_used(pod)])

    async def sync(self, key: Key) -> None:
        claim = self.claims.get(key)
        if claim is None or not is_deleting(claim) or any(map(_holds, self.pods.by(_USERS, str(key)))):
            return
        await _unprotect(self, PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_PROTECTION)


class VolumeProtection(Controller):
    """Lets volumes go once they are not bound."""

    name = "pv-protection-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.volumes = self.watch(PERSISTENT_VOLUMES)

    async def sync(self, key: Key) -> None:
        volume = self.volumes.get(key)
        if volume is None or not is_deleting(volume):
            return
        if (volume.get("status") or {}).get("phase") != "Bound":
            await _unprotect(self, PERSISTENT_VOLUMES, volume, VOLUME_PROTECTION)


async def _unprotect(controller: Controller, resource: Resource, obj: Object, finalizer: str) -> None:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        return
    left = [one for one in finalizers if one != finalizer]
    version = obj["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version, "finalizers": left or None}}
    try:
        await controller.hands.client.patch(resource.url_of(obj), patch)
    except errors.NotFound:
        return  # gone already


def _holds(pod: Object) -> bool:
    """Tell whether a Pod may use its claims: it has a node, and was not removed by force."""
    is_removed = is_deleting(pod) and not pod["metadata"].get("deletionGracePeriodSeconds")
    return bool(pod["spec"].get("nodeName")) and not is_removed


def _claims_used(pod: Object) -> list[Key]:
    return [Key(pod["metadata"].get("namespace", ""), name) for name in claim_names(pod)]


def _claim_of(volume: Object) -> list[str]:
    reference = (volume.get("spec") or {}).get("claimRef")
    return [f"{reference.get('namespace', '')}/{reference.get('name', '')}"] if reference else []


def _reference_to(claim: Object) -> Object:
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }


def _unbound(claim: Object) -> list[str]:
    return [] if _is_annotated(claim, BIND_COMPLETED) else [_UNBOUND]


def _is_annotated(obj: Object, annotation: str) -> bool:
    return annotation in (obj["metadata"].get("annotations") or {})
