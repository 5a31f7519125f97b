"""Storage on the node's own disk: the default storage class of a cluster on one machine, and who makes its volumes."""

from contextlib import suppress
from pathlib import PurePosixPath

from kubereef.controllers import volumematch
from kubereef.controllers.caches import Key
from kubereef.controllers.pods import is_deleting
from kubereef.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from kubereef.controllers.runtime import Controller, World
from kubereef.controllers.scheduling.podclaims import SELECTED_NODE, waits_for_consumer
from kubereef.controllers.volumes import PROVISIONED_BY
from kubereef.kinds.resource import Object
from kubewire import errors

PROVISIONER = "kubereef.io/local"
DEFAULT_CLASS = "local"
DIRECTORY = PurePosixPath("/var/lib/kubereef/volumes")

_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


class LocalStorage(Controller):
    """Makes a directory on the node a volume for each claim of a class whose provisioner is ours.

    It also sees that there is a default class at the start; whoever deletes it or prefers another is left alone.
    The directories themselves are the node's to make and to remove.
    """

    name = "local-storage"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.volumes = world.caches.of(PERSISTENT_VOLUMES)
        self.classes = world.caches.of(STORAGE_CLASSES)
        self.claims = self.watch(PERSISTENT_VOLUME_CLAIMS)
        self.classes.listen(lambda _old, _new: self._classes_changed())

    def _classes_changed(self) -> None:
        for claim in self.claims:
            self.queue.add(Key.of(claim))

    async def start(self) -> None:
        if not len(self.classes):
            with suppress(errors.AlreadyExists):  # made meanwhile, which is as good
                await self.hands.create(STORAGE_CLASSES, default_class())
        await super().start()

    async def sync(self, key: Key) -> None:
        claim = self.claims.get(key)
        if claim is None or claim["spec"].get("volumeName") or is_deleting(claim):
            return
        storage_class = self.classes.get(("", volumematch.class_of(claim)))
        if storage_class is None or storage_class["provisioner"] != PROVISIONER:
            return
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) or ""
        if waits_for_consumer(claim, self.classes) and not node:
            return
        if volumematch.match(claim, self.volumes) is not None:
            return
        volume = new_volume(claim, storage_class, node)
        try:
            await self.hands.create(PERSISTENT_VOLUMES, volume)
        except errors.AlreadyExists:
            return  # made by an earlier pass
        message = f"Successfully provisioned volume {volume['metadata']['name']}"
        await self.events.normal(PERSISTENT_VOLUME_CLAIMS, claim, "ProvisioningSucceeded", message)


def default_class() -> Object:
    """Return the class that claims get unless they name one; its volumes are there at once."""
    return {
        "metadata": {"name": DEFAULT_CLASS, "annotations": {_IS_DEFAULT: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def new_volume(claim: Object, storage_class: Object, node: str) -> Object:
    """Return the volume for a claim; one that was made for a node is reached from there alone."""
    name = f"pvc-{claim['metadata']['uid']}"
    meta = claim["metadata"]
    spec: Object = {
        "capacity": {"storage": str(volumematch.requested(claim))},
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
        "hostPath": {"path": str(DIRECTORY / name), "type": "DirectoryOrCreate"},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
    }
    if node:
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {"metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}}, "spec": spec}
