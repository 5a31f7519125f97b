"""From a manifest and an image to what the sandbox is to run: command, environment, user, mounts and limits."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import msgspec

from kubereef.kinds.resource import Object
from kubereef.node.images import Image
from kubereef.node.kubelet.environment import (
    PodFacts,
    container_environment,
    expand,
    named_objects,
    service_variables,
)
from kubereef.node.kubelet.interfaces import NodeFacts, Sandbox, Tools
from kubereef.node.kubelet.objects import fetch_objects, visible_services
from kubereef.node.kubelet.records import ContainerRecord, PodRecord
from kubereef.node.kubelet.resources import GpuPool, container_limits, gpus_wanted, oom_score
from kubereef.node.kubelet.security import (
    Identity,
    check_supported,
    container_identity,
    read_accounts,
)
from kubereef.node.kubelet.trees import remove_tree
from kubereef.node.kubelet.volumes import PodVolumes
from kubereef.node.sandbox import Command, ContainerSpec, Limits, Mount, Root, TerminalSize

USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_MESSAGE_PATH = "/dev/termination-log"


class Ground:
    """What the containers of one Pod share on this node."""

    def __init__(self, record: PodRecord, tools: Tools, facts: NodeFacts, gpus: GpuPool) -> None:
        self.record = record
        self.tools = tools
        self.facts = facts
        self.gpus = gpus
        self.uid: str = record.pod["metadata"]["uid"]
        self.directory: Path = facts.directory / "pods" / self.uid
        self.volumes = PodVolumes(record, tools, facts)
        self.sandbox: Sandbox | None = None
        self.hostname = ""
        self.etc_mounts: tuple[Mount, ...] = ()

    @property
    def address(self) -> str:
        """Where the Pod is reached from the node."""
        if self.record.spec.get("hostNetwork"):
            return "127.0.0.1"
        return self.record.addresses[0] if self.record.addresses else ""


class Made(NamedTuple):
    """A container ready to be started."""

    spec: ContainerSpec
    limits: Limits
    identity: Identity
    writable: Path
    message_file: Path


async def make_container(ground: Ground, record: ContainerRecord, image: Image, number: int) -> Made:
    """Return what to start for the run of that number; `ConfigProblem` names what is missing or forbidden."""
    container, pod = record.spec, ground.record.pod
    check_supported(f"container {record.name}", container)
    env, accounts = await asyncio.gather(
        _environment(ground, container), ground.tools.offload(read_accounts, image.layers)
    )
    identity = container_identity(pod, container, image, accounts)
    base = {"PATH": USUAL_PATH, "HOSTNAME": ground.hostname, "HOME": identity.home}
    if container.get("tty"):
        base["TERM"] = "xterm"
    env = {**base, **image.env, **env}
    place = ground.directory / "containers" / record.name
    writable, message_file = place / f"root-{number}", place / f"termination-log-{number}"
    mounts = ground.volumes.mounts(container, env)
    mounts, devices = await ground.tools.offload(ground.volumes.devices, mounts)
    await ground.tools.offload(_make_places, writable, message_file)
    message_path = container.get("terminationMessagePath") or DEFAULT_MESSAGE_PATH
    gpus = ground.gpus.claim(ground.uid, record.name, gpus_wanted(container))
    spec = ContainerSpec(
        command=Command(
            argv=container_command(container, image, env),
            env=env,
            cwd=container.get("workingDir") or image.workdir,
            security=identity.security,
            terminal=TerminalSize() if container.get("tty") else None,
        ),
        root=Root(
            layers=image.layers,
            writable=writable,
            style=ground.facts.root_style,
            read_only=bool((container.get("securityContext") or {}).get("readOnlyRootFilesystem")),
        ),
        mounts=_all_mounts(image, ground, Mount(target=message_path, source=message_file), mounts),
        devices=(*devices, *gpus),
        oom_score_adj=oom_score(pod["spec"], container, ground.facts.allocatable.get("memory", "")),
    )
    return Made(spec, container_limits(container), identity, writable, message_file)


def container_command(container: Object, image: Image, env: dict[str, str]) -> tuple[str, ...]:
    """Return what a container runs: its own command and arguments take the place of the image's."""
    command, args = container.get("command"), container.get("args")
    argv = [*command, *(args or ())] if command else [*image.entrypoint, *(args or image.command)]
    return tuple(expand(word, env) for word in argv)


def enter_command(made: Made, argv: tuple[str, ...], terminal: TerminalSize | None) -> Command:
    """Return a command to run beside the container's own, as the same user with the same environment."""
    own = made.spec.command
    env = {**own.env, "TERM": "xterm"} if terminal else own.env
    return msgspec.structs.replace(own, argv=argv, env=env, terminal=terminal)


async def _environment(ground: Ground, container: Object) -> dict[str, str]:
    pod = ground.record.pod
    namespace = pod["metadata"]["namespace"]
    wants_services = pod["spec"].get("enableServiceLinks") is not False
    objects, services = await asyncio.gather(
        fetch_objects(ground.tools.client, namespace, named_objects(container)),
        visible_services(ground.tools.client, namespace, all_of_them=wants_services),
    )
    facts = PodFacts(
        ground.facts.name, ground.facts.host_ips, ground.record.addresses, ground.facts.allocatable
    )
    return container_environment(pod, container, objects, facts, service_variables(services))


def _all_mounts(
    image: Image, ground: Ground, message: Mount, volumes: tuple[Mount, ...]
) -> tuple[Mount, ...]:
    """Return all mounts; a volume takes the place of what the node would mount at the same path."""
    taken = {mount.target.rstrip("/") for mount in volumes}
    binds = (Mount(target=bind.target, source=Path(bind.source), read_only=True) for bind in image.binds)
    given = [mount for mount in (*binds, *ground.etc_mounts, message) if mount.target not in taken]
    return (*given, *volumes)


def _make_places(writable: Path, message_file: Path) -> None:
    # Of earlier runs something is left only where the node was killed under them.
    for left in (*writable.parent.glob("root-*"), *writable.parent.glob("termination-log-*")):
        remove_tree(left) if left.is_dir() else left.unlink()
    writable.mkdir(parents=True, exist_ok=True)
    message_file.touch()
    message_file.chmod(0o666)  # whoever the container runs as writes its last words
