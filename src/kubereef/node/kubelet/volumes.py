"""A Pod's volumes: made before its containers start, kept up to date while they run, and removed with the Pod.

    volumes = PodVolumes(record, tools, facts)
    await volumes.prepare()              # VolumeProblem names the volume that cannot be had
    volumes.mounts(container, env)       # what the sandbox is to mount
    await volumes.refresh()              # ConfigMaps, Secrets and tokens as they are now
    await volumes.remove()

Secrets and tokens lie in memory only (below the directory `secret_place`).
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kubereef.controllers.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SERVICE_ACCOUNTS,
)
from kubereef.kinds.behaviours.pod_resources import quantity
from kubereef.kinds.resource import Object
from kubereef.node.kubelet import projections
from kubereef.node.kubelet.atomic import write_files
from kubereef.node.kubelet.environment import PodFacts, expand, unknown_names
from kubereef.node.kubelet.hostpaths import HostPathRefused, host_path, is_device
from kubereef.node.kubelet.interfaces import NodeFacts, Tools
from kubereef.node.kubelet.objects import SECRETS, fetch
from kubereef.node.kubelet.problems import ConfigProblem, VolumeProblem
from kubereef.node.kubelet.projections import DEFAULT_MODE, File, Files, NotThere
from kubereef.node.kubelet.records import PodRecord
from kubereef.node.kubelet.trees import disk_usage, give_directory, give_tree, remove_tree
from kubereef.node.sandbox import Mount
from kubewire import errors
from kubewire.times import parse_time

log = logging.getLogger(__name__)

DEFAULT_TOKEN_SECONDS = 3600
# A token is renewed when this part of its life has passed, or a day.
_RENEWED_AFTER = 0.8
_LONGEST_USE = timedelta(hours=24)
_WRITTEN = ("configMap", "secret", "downwardAPI", "projected")


class Place(NamedTuple):
    """Where a volume is on the node."""

    path: Path
    read_only: bool = False


class _Token(NamedTuple):
    text: str
    renew_at: datetime


class PodVolumes:
    """The volumes of one Pod."""

    def __init__(self, record: PodRecord, tools: Tools, facts: NodeFacts) -> None:
        self._record = record
        self._tools = tools
        self._facts = facts
        uid: str = record.pod["metadata"]["uid"]
        self._directory = facts.directory / "pods" / uid / "volumes"
        self._secret_directory = secret_place(facts.directory) / uid
        self._places: dict[str, Place] = {}
        self._in_memory: list[Path] = []
        self._tokens: dict[tuple[str, str], _Token] = {}

    @property
    def needs_refresh(self) -> bool:
        """Whether something of it can change while containers run."""
        return any(set(_WRITTEN) & volume.keys() for volume in self._declared())

    @property
    def has_limits(self) -> bool:
        """Whether the size of one of them is watched."""
        return any(_watched_limit(volume) for volume in self._declared())

    async def prepare(self) -> None:
        """Make what is not there yet; `VolumeProblem` if one cannot be had."""
        for volume in self._declared():
            if volume["name"] not in self._places:
                self._places[volume["name"]] = await self._made(volume)

    async def refresh(self) -> None:
        """Write anew what has changed; a source that is gone leaves the files as they are, as everywhere."""
        for volume in self._declared():
            if volume["name"] in self._places and set(_WRITTEN) & volume.keys():
                await self._made(volume)

    def mounts(self, container: Object, env: Mapping[str, str]) -> tuple[Mount, ...]:
        """Return the mounts of a container, the outer ones first."""
        found = []
        for mount in container.get("volumeMounts") or ():
            place = self._places.get(mount["name"])
            if place is None:
                raise ConfigProblem(f"cannot find volume {mount['name']!r} to mount into container")
            found.append(
                Mount(
                    target=mount["mountPath"],
                    source=place.path,
                    read_only=bool(mount.get("readOnly")) or place.read_only,
                    sub_path=_sub_path(mount, env),
                )
            )
        return tuple(sorted(found, key=lambda mount: mount.target.rstrip("/").count("/")))

    def devices(self, mounts: tuple[Mount, ...]) -> tuple[tuple[Mount, ...], tuple[Path, ...]]:
        """Return the mounts without those of devices, and the devices. Blocks for a moment."""
        plain, devices = [], []
        for mount in mounts:
            if not mount.source.exists() or not is_device(mount.source):
                plain.append(mount)
            elif str(mount.source) != mount.target:
                raise ConfigProblem(f"the device {mount.source} can be mounted at its own place only")
            else:
                devices.append(mount.source)
        return tuple(plain), tuple(devices)

    def overflow(self) -> str:
        """Return in words which emptyDir holds more than its limit; nothing if none does. Blocks."""
        for volume in self._declared():
            limit, place = _watched_limit(volume), self._places.get(volume["name"])
            if limit and place is not None and disk_usage(place.path) > quantity(limit).value():
                return f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{limit}". '
        return ""

    async def remove(self) -> None:
        """Remove what was the Pod's own."""

        def remove() -> None:
            for directory in self._in_memory:
                self._tools.runtime.unmount(directory)
            remove_tree(self._secret_directory)
            remove_tree(self._directory)

        try:
            await self._tools.offload(remove)
        except OSError as trouble:
            log.warning("volumes of %s: %s", self._record.name, trouble)
        self._places.clear()
        self._in_memory.clear()

    def _declared(self) -> list[Object]:
        declared: list[Object] = self._record.spec.get("volumes") or []
        return declared

    @property
    def _group(self) -> int | None:
        group = (self._record.spec.get("securityContext") or {}).get("fsGroup")
        return None if group is None else int(group)

    async def _made(self, volume: Object) -> Place:
        name: str = volume["name"]
        try:
            if (source := volume.get("emptyDir")) is not None:
                return Place(await self._tools.offload(self._make_empty, name, source))
            if (source := volume.get("hostPath")) is not None:
                return Place(await self._tools.offload(host_path, source["path"], source.get("type") or ""))
            if (source := volume.get("persistentVolumeClaim")) is not None:
                return await self._claimed(source["claimName"], read_only=bool(source.get("readOnly")))
            if volume.get("ephemeral") is not None:
                return await self._claimed(f"{self._record.pod['metadata']['name']}-{name}", read_only=False)
            if set(_WRITTEN) & volume.keys():
                files = await self._files(volume)
                is_secret = "secret" in volume or "projected" in volume
                directory = (self._secret_directory if is_secret else self._directory) / name
                await self._tools.offload(write_files, directory, files, self._stamp(), self._group)
                return Place(directory, read_only=True)
        except (NotThere, HostPathRefused, ConfigProblem) as problem:
            raise VolumeProblem(name, str(problem)) from problem
        except errors.ApiError as refusal:
            raise VolumeProblem(name, str(refusal)) from refusal
        except OSError as trouble:
            raise VolumeProblem(name, str(trouble)) from trouble
        kinds = ", ".join(sorted(volume.keys() - {"name"}))
        raise VolumeProblem(name, f"this node has no volumes of the kind {kinds}")

    def _make_empty(self, name: str, source: Object) -> Path:
        place = self._directory / name
        is_new = not place.exists()
        place.mkdir(parents=True, exist_ok=True)
        if source.get("medium") == "Memory":
            limit = source.get("sizeLimit")
            self._tools.runtime.mount_memory(place, quantity(str(limit)).value() if limit else None)
            self._in_memory.append(place)
            is_new = True
        elif source.get("medium"):
            raise HostPathRefused(f"emptyDir medium {source['medium']} is not supported by this node")
        if is_new:
            give_directory(place, 0o777, self._group)
        return place

    async def _claimed(self, claim_name: str, *, read_only: bool) -> Place:
        namespace = self._record.pod["metadata"]["namespace"]
        client = self._tools.client
        claim = await fetch(client, PERSISTENT_VOLUME_CLAIMS, namespace, claim_name)
        if claim is None:
            raise NotThere(f'persistentvolumeclaim "{claim_name}" not found')
        volume_name = claim["spec"].get("volumeName")
        if (claim.get("status") or {}).get("phase") != "Bound" or not volume_name:
            raise NotThere(f"PVC {namespace}/{claim_name} is not bound")
        volume = await fetch(client, PERSISTENT_VOLUMES, "", volume_name)
        if volume is None:
            raise NotThere(f'persistentvolume "{volume_name}" not found')
        spec = volume["spec"]
        if source := spec.get("hostPath"):
            kind = source.get("type") or ""
        elif source := spec.get("local"):
            kind = "Directory"
        else:
            raise NotThere(f"persistentvolume {volume_name} is neither of hostPath nor local")
        path = await self._tools.offload(host_path, source["path"], kind)
        if spec.get("local") and self._group is not None:
            policy = (self._record.spec.get("securityContext") or {}).get("fsGroupChangePolicy")
            only_root = policy == "OnRootMismatch"
            await self._tools.offload(partial(give_tree, path, self._group, only_if_root_differs=only_root))
        return Place(path, read_only=read_only)

    async def _files(self, volume: Object) -> Files:
        if (source := volume.get("configMap")) is not None:
            return await self._config_map(source["name"], source, _mode(source))
        if (source := volume.get("secret")) is not None:
            return await self._secret(source["secretName"], source, _mode(source))
        if (source := volume.get("downwardAPI")) is not None:
            return self._downward(source, _mode(source))
        files: Files = {}
        mode = _mode(volume["projected"])
        for source in volume["projected"].get("sources") or ():
            files |= await self._projected(source, mode)
        return files

    async def _projected(self, source: Object, mode: int) -> Files:
        if (part := source.get("configMap")) is not None:
            return await self._config_map(part["name"], part, mode)
        if (part := source.get("secret")) is not None:
            return await self._secret(part["name"], part, mode)
        if (part := source.get("downwardAPI")) is not None:
            return self._downward(part, mode)
        if (part := source.get("serviceAccountToken")) is not None:
            return {part["path"]: await self._token_file(part, mode)}
        raise NotThere(f"this node does not project {', '.join(sorted(source))}")

    async def _config_map(self, name: str, source: Object, mode: int) -> Files:
        namespace = self._record.pod["metadata"]["namespace"]
        obj = await fetch(self._tools.client, CONFIG_MAPS, namespace, name)
        return projections.config_map_files(name, source, obj, mode)

    async def _secret(self, name: str, source: Object, mode: int) -> Files:
        namespace = self._record.pod["metadata"]["namespace"]
        obj = await fetch(self._tools.client, SECRETS, namespace, name)
        return projections.secret_files(name, source, obj, mode)

    def _downward(self, source: Object, mode: int) -> Files:
        facts = PodFacts(
            self._facts.name, self._facts.host_ips, self._record.addresses, self._facts.allocatable
        )
        return projections.downward_files(self._record.pod, source, facts, mode)

    async def _token_file(self, source: Object, mode: int) -> File:
        """Return the token's file; where one user alone needs it, nobody else can read it."""
        text = await self._token(source.get("audience") or "", source.get("expirationSeconds"))
        if self._group is not None:
            return File(text.encode(), 0o600)
        users = {_run_as(self._record.spec, one) for one in self._record.spec["containers"]}
        if len(users) == 1 and (user := users.pop()) is not None:
            return File(text.encode(), 0o600, user)
        return File(text.encode(), mode)

    async def _token(self, audience: str, seconds: int | None) -> str:
        seconds = seconds or DEFAULT_TOKEN_SECONDS
        key = (audience, str(seconds))
        known = self._tokens.get(key)
        now = self._tools.clock.now()
        if known is not None and now < known.renew_at:
            return known.text
        meta = self._record.pod["metadata"]
        account = self._record.spec.get("serviceAccountName") or "default"
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}
        spec: Object = {"expirationSeconds": seconds, "boundObjectRef": bound}
        if audience:
            spec["audiences"] = [audience]
        url = SERVICE_ACCOUNTS.url(meta["namespace"], account, "token")
        request = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
        try:
            answer = await self._tools.client.create(url, request)
        except errors.ApiError:
            if known is not None:
                return known.text  # it is still good for a while, and asked for again at the next refresh
            raise
        life = parse_time(answer["status"]["expirationTimestamp"]) - now
        token = _Token(answer["status"]["token"], now + min(life * _RENEWED_AFTER, _LONGEST_USE))
        self._tokens[key] = token
        return token.text

    def _stamp(self) -> str:
        moment = self._tools.clock.now().strftime("%Y_%m_%d_%H_%M_%S")
        return f"{moment}.{self._tools.entropy.suffix(10)}"


def secret_place(directory: Path) -> Path:
    """Return where a node with this directory keeps what must not reach a disk."""
    return directory / "memory"


def _watched_limit(volume: Object) -> str:
    """Return the limit of an emptyDir on disk; one in memory is limited by its file system."""
    source: Object = volume.get("emptyDir") or {}
    return "" if source.get("medium") == "Memory" else str(source.get("sizeLimit") or "")


def _mode(source: Object) -> int:
    given = source.get("defaultMode")
    return DEFAULT_MODE if given is None else int(given)


def _sub_path(mount: Object, env: Mapping[str, str]) -> str:
    if expression := mount.get("subPathExpr"):
        if unknown := unknown_names(expression, env):
            raise ConfigProblem(f"missing value for {', '.join(unknown)!r} in subPathExpr {expression!r}")
        return expand(expression, env)
    return str(mount.get("subPath") or "")


def _run_as(spec: Object, container: Object) -> int | None:
    own = (container.get("securityContext") or {}).get("runAsUser")
    user = own if own is not None else (spec.get("securityContext") or {}).get("runAsUser")
    return None if user is None else int(user)
