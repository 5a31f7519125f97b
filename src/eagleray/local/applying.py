"""Putting manifests into a cluster: what is new is created, what is there is changed, of any kind that is served."""

from contextlib import suppress
from typing import Final, Literal, NamedTuple

import msgspec

from eagleray.kube.client import Client
from eagleray.kube.requests import Request
from eagleray.kube.resources import CRDS, NAMESPACES, SERVICE_ACCOUNTS, Object, Ref, Resource
from eagleray.local.manifests import Manifest
from kubewire import errors
from kubewire.sources import Clock

Change = Literal["created", "configured", "unchanged"]

# How long a server may take until it serves a kind that was just defined, or has readied a new namespace.
_PATIENCE: Final = 10.0
_STEP: Final = 0.05
_MANAGER: Final = "eagleray"


class NotApplied(Exception):
    """A manifest that the cluster does not take; the message says where it stands and why."""


class Applied(NamedTuple):
    """An object as the server has it now, and what that took."""

    resource: Resource
    obj: Object
    change: Change

    @property
    def title(self) -> str:
        """The object as kubectl names it, such as rayjob.ray.io/hello."""
        group = f".{self.resource.group}" if self.resource.group else ""
        return f"{self.resource.kind.lower()}{group}/{self.obj['metadata']['name']}"


class _Served(msgspec.Struct):
    class Kind(msgspec.Struct):
        name: str
        kind: str
        namespaced: bool

    resources: list[Kind]


class Applier:
    """Applies manifests in the order in which they are given.

    Objects that name no namespace go into `namespace`, or `default`; with a `namespace` those that name another one are
    refused, as kubectl does. Namespaces that are not there are made, since nobody else could have made them.
    """

    def __init__(self, client: Client, clock: Clock, namespace: str = "") -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._known: dict[tuple[str, str], Resource] = {}
        self._ready_namespaces = {"default"}

    async def apply(self, manifest: Manifest) -> Applied:
        """Have the cluster hold an object as it is given; raises NotApplied."""
        try:
            resource = await self._resource_of(manifest)
            obj = await self._placed(manifest, resource)
            applied = await self._put(resource, obj)
        except errors.ApiError as refusal:
            raise NotApplied(f"{manifest.place}: {manifest.title}: {refusal}") from refusal
        if resource == CRDS:
            await self._until_served(applied.obj)
        return applied

    async def _put(self, resource: Resource, obj: Object) -> Applied:
        try:
            return Applied(resource, await self._client.create(resource, obj, manager=_MANAGER), "created")
        except errors.AlreadyExists:
            metadata = obj["metadata"]
            ref = Ref(metadata.get("namespace", ""), metadata["name"])
            before = await self._client.get(resource, ref.namespace, ref.name)
            after = await self._client.patch(resource, ref, obj, manager=_MANAGER)
        is_same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
        return Applied(resource, after, "unchanged" if is_same else "configured")

    async def _placed(self, manifest: Manifest, resource: Resource) -> Object:
        """Return the object with the namespace that it goes into, which is there then."""
        metadata = dict(manifest.obj["metadata"])
        if not resource.namespaced:
            metadata.pop("namespace", None)
            return {**manifest.obj, "metadata": metadata}
        named = metadata.get("namespace") or ""
        if named and self._namespace and named != self._namespace:
            raise NotApplied(
                f"{manifest.place}: {manifest.title}: it is of namespace {named}, not of {self._namespace};"
                f" leave -n out, or say -n {named}"
            )
        metadata["namespace"] = named or self._namespace or "default"
        await self._ready_namespace(metadata["namespace"])
        return {**manifest.obj, "metadata": metadata}

    async def _ready_namespace(self, name: str) -> None:
        """Have a namespace, and in it the account that Pods without one of their own run as."""
        if name in self._ready_namespaces:
            return
        with suppress(errors.AlreadyExists):
            await self._client.create(NAMESPACES, {"metadata": {"name": name}}, manager=_MANAGER)
        deadline = self._clock.monotonic() + _PATIENCE
        while not await self._is_there(SERVICE_ACCOUNTS, name, "default"):
            if self._clock.monotonic() > deadline:
                break  # a cluster without such accounts; what needs one will say so
            await self._clock.sleep(_STEP)
        self._ready_namespaces.add(name)

    async def _is_there(self, resource: Resource, namespace: str, name: str) -> bool:
        try:
            await self._client.get(resource, namespace, name)
        except errors.NotFound:
            return False
        return True

    # --- which resource a kind is

    async def _resource_of(self, manifest: Manifest) -> Resource:
        api_version, kind = manifest.obj["apiVersion"], manifest.obj["kind"]
        if (api_version, kind) not in self._known:
            await self._discover(api_version)
        found = self._known.get((api_version, kind))
        if found is None:
            raise NotApplied(
                f"{manifest.place}: {manifest.title}: this cluster has no kind {kind} in {api_version};"
                " if a CRD defines it, give that first"
            )
        return found

    async def _discover(self, api_version: str) -> None:
        """Learn all kinds of a group and version; one that is not served has none."""
        group, _, version = api_version.rpartition("/")
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            answer = await self._client.send(Request("GET", path, repeatable="read"))
        except errors.NotFound:
            return
        for found in msgspec.json.decode(answer.body, type=_Served).resources:
            if "/" not in found.name:  # parts of objects, such as pods/log
                resource = Resource(group, version, found.name, found.kind, found.namespaced)
                self._known[api_version, found.kind] = resource

    async def _until_served(self, definition: Object) -> None:
        """Return once a kind that was defined can be used, or when it should have been long ago."""
        spec = definition["spec"]
        deadline = self._clock.monotonic() + _PATIENCE
        for version in (one["name"] for one in spec["versions"] if one.get("served")):
            api_version = f"{spec['group']}/{version}"
            while (api_version, spec["names"]["kind"]) not in self._known:
                await self._discover(api_version)
                if self._clock.monotonic() > deadline:
                    return
                await self._clock.sleep(_STEP)
