"""Deletion of namespaces: the content goes first, Pods before everything else, and the status says what is left."""

from collections import Counter
from typing import NamedTuple

from kubereef.controllers.caches import Key
from kubereef.controllers.conditions import with_condition
from kubereef.controllers.inventory import Item
from kubereef.controllers.resources import NAMESPACES, PODS, Resource
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object
from kubewire import errors

_FINALIZER = "kubernetes"

# Content that is held up tells of its end by a watch; should the news be lost, this finds it out.
_LOOK_AGAIN = 15.0


class Remains(NamedTuple):
    """What is left in a namespace after an attempt to delete everything."""

    counts: dict[str, int]  # by resource, such as `deployments.apps`
    finalizers: Counter[str]
    failures: list[str]


class NamespaceController(Controller):
    """Empties namespaces that are being deleted, then lets them go."""

    name = "namespace-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.namespaces = self.watch(NAMESPACES)
        world.inventory.listen(self._content_changed)

    def _content_changed(self, old: Item | None, new: Item | None) -> None:
        """Look at a namespace that is being deleted when something in it goes, or still comes."""
        item = new or old
        if item is None or not item.namespace or (old is not None and new is not None):
            return
        namespace = self.namespaces.get(("", item.namespace))
        if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
            self.queue.add(Key("", item.namespace))

    async def sync(self, key: Key) -> float | None:
        namespace = self.namespaces.get(key)
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return None
        if _FINALIZER not in ((namespace.get("spec") or {}).get("finalizers") or []):
            return None
        remains = await self._empty(key.name)
        if not remains.counts and not remains.failures:
            await self._finalize(namespace)
            return None
        await self._tell(namespace, remains)
        return _LOOK_AGAIN

    async def _empty(self, namespace: str) -> Remains:
        """Delete the content of a namespace and return what is left of it."""
        remains = Remains({}, Counter(), [])
        await self._empty_resource(namespace, PODS, remains)
        if remains.counts:
            # Nothing is taken from under the feet of what still runs.
            return remains
        for resource in self._resources():
            await self._empty_resource(namespace, resource, remains)
        return remains

    def _resources(self) -> list[Resource]:
        """Return every resource that has objects in namespaces, once, whatever its versions and names."""
        by_storage: dict[str, Resource] = {}
        for resource_type in self.world.registry:
            if resource_type.namespaced and {"list", "delete"} <= resource_type.verbs:
                by_storage.setdefault(resource_type.storage, Resource.of(resource_type))
        return list(by_storage.values())

    async def _empty_resource(self, namespace: str, resource: Resource, remains: Remains) -> None:
        client = self.hands.client
        url = resource.url(namespace)
        try:
            if (await client.get(f"{url}?limit=1"))["items"]:
                options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
                await client.delete(url, options)
            left = (await client.get(url))["items"]
        except errors.NotFound:
            return  # the resource has gone meanwhile, and its objects with it
        except errors.ApiError as refusal:
            remains.failures.append(f"{resource.plural}: {refusal}")
            return
        if left:
            remains.counts[f"{resource.plural}.{resource.group}"] = len(left)
        for obj in left:
            remains.finalizers.update(obj["metadata"].get("finalizers") or ())

    async def _tell(self, namespace: Object, remains: Remains) -> None:
        status = namespace.get("status") or {}
        conditions = status.get("conditions") or []
        now = self.clock.now()
        for kind, state, reason, message in _findings(remains):
            conditions = with_condition(conditions, now, kind, state, reason, message)
        if conditions is not status.get("conditions") or status.get("phase") != "Terminating":
            await self.hands.replace_status(
                NAMESPACES, namespace, {**status, "phase": "Terminating", "conditions": conditions}
            )

    async def _finalize(self, namespace: Object) -> None:
        spec = namespace.get("spec") or {}
        left = [one for one in spec.get("finalizers") or [] if one != _FINALIZER]
        try:
            await self.hands.replace(
                NAMESPACES, {**namespace, "spec": {**spec, "finalizers": left}}, "finalize"
            )
        except errors.NotFound:
            return  # somebody else has done it


def _findings(remains: Remains) -> list[tuple[str, str, str, str]]:
    """Return the conditions that tell what is left: type, status, reason and message of each."""
    failed = bool(remains.failures)
    counts = ", ".join(
        f"{resource} has {count} resource instances" for resource, count in sorted(remains.counts.items())
    )
    finalizers = ", ".join(
        f"{finalizer} in {count} resource instances"
        for finalizer, count in sorted(remains.finalizers.items())
    )
    failures = ", ".join(sorted(remains.failures))
    return [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "True" if failed else "False",
            "ContentDeletionFailed" if failed else "ContentDeleted",
            f"Failed to delete all resource types, {len(remains.failures)} remaining: {failures}"
            if failed
            else "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True" if counts else "False",
            "SomeResourcesRemain" if counts else "ContentRemoved",
            f"Some resources are remaining: {counts}" if counts else "All content successfully removed",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True" if finalizers else "False",
            "SomeFinalizersRemain" if finalizers else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {finalizers}"
            if finalizers
            else "All content-preserving finalizers finished",
        ),
    ]
