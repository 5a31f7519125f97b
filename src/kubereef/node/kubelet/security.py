"""Who containers run as and what they may do: honoured as the Pod says, or refused; never something weaker."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kubereef.kinds.resource import Object
from kubereef.node.images import Image
from kubereef.node.kubelet.problems import ConfigProblem
from kubereef.node.kubelet.records import Waiting
from kubereef.node.sandbox import Refused, Security, resolve_capabilities

NOT_SUPPORTED = "SecurityContextNotSupported"
_MOST_ACCOUNT_BYTES = 1 << 20


class Accounts(NamedTuple):
    """What an image's /etc/passwd and /etc/group say: primary groups and homes by uid, further groups by user name."""

    primary: Mapping[int, int] = {}
    homes: Mapping[int, str] = {}
    names: Mapping[int, str] = {}
    further: Mapping[str, tuple[int, ...]] = {}


class Identity(NamedTuple):
    """A container's user, ready for the sandbox, and the home directory that goes with it."""

    security: Security
    home: str


def pod_refusal(spec: Object) -> Waiting | None:
    """Return why this node cannot run a Pod as it asks, or None if it can."""
    found = next(_refusals(spec), None)
    if found is None:
        return None
    reason, what = found
    return Waiting(reason, f"Pod was rejected: {what}")


def unserved(spec: Object) -> Iterator[str]:
    """Yield in words what a Pod asks for and runs without, since it is reached in other ways too."""
    if spec.get("hostNetwork"):
        return  # its ports are the node's own
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            for number, port in enumerate(container.get("ports") or ()):
                if port.get("hostPort"):
                    place = f"spec.{field}[{index}].ports[{number}].hostPort"
                    yield (
                        f"{place}: this node opens no port {port['hostPort']} for a Pod; "
                        "use a Service of type NodePort, or hostNetwork"
                    )


def check_supported(place: str, container: Object) -> None:
    """Raise `ConfigProblem` for a container that this node cannot run as it asks; it may have come after its Pod."""
    context: Object = container.get("securityContext") or {}
    for _, what in (*_context_refusals(place, context), *_container_refusals(place, container)):
        raise ConfigProblem(what)


def _refusals(spec: Object) -> Iterator[tuple[str, str]]:
    if (spec.get("os") or {}).get("name") == "windows":
        yield "PodOSNotSupported", "this node runs Linux, and the Pod asks for Windows"
    for field in ("hostPID", "hostIPC"):
        if spec.get(field):
            yield NOT_SUPPORTED, f"spec.{field}: this node shares these namespaces with no Pod"
    if spec.get("hostUsers") is False:
        yield NOT_SUPPORTED, "spec.hostUsers: false: this node has no user namespaces for Pods"
    if spec.get("resourceClaims"):
        yield NOT_SUPPORTED, "spec.resourceClaims: this node has no drivers for dynamic resources"
    yield from _context_refusals("spec", spec.get("securityContext") or {})
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            place = f"spec.{field}[{index}]"
            yield from _context_refusals(place, container.get("securityContext") or {})
            yield from _container_refusals(place, container)


def _context_refusals(place: str, context: Object) -> Iterator[tuple[str, str]]:
    place = f"{place}.securityContext"
    if context.get("privileged"):
        yield (
            NOT_SUPPORTED,
            f"{place}.privileged: this node runs nothing privileged; ask for capabilities instead",
        )
    if context.get("procMount") not in (None, "", "Default"):
        yield NOT_SUPPORTED, f"{place}.procMount: only Default is supported"
    if (context.get("seccompProfile") or {}).get("type") == "Localhost":
        yield (
            NOT_SUPPORTED,
            f"{place}.seccompProfile: this node has no profiles of its own; use RuntimeDefault",
        )
    if (context.get("appArmorProfile") or {}).get("type") not in (None, "", "Unconfined"):
        yield "AppArmor", f"{place}.appArmorProfile: Cannot enforce AppArmor: it is not enabled on this node"
    for field in ("seLinuxOptions", "windowsOptions"):
        if context.get(field):
            yield NOT_SUPPORTED, f"{place}.{field}: cannot be enforced on this node"


def _container_refusals(place: str, container: Object) -> Iterator[tuple[str, str]]:
    for rule in container.get("restartPolicyRules") or ():
        if rule.get("action") != "Restart":
            yield (
                NOT_SUPPORTED,
                f"{place}.restartPolicyRules: the action {rule.get('action')} is not supported",
            )
    if container.get("volumeDevices"):
        yield NOT_SUPPORTED, f"{place}.volumeDevices: this node has no block volumes"
    if container.get("targetContainerName"):
        yield (
            NOT_SUPPORTED,
            f"{place}.targetContainerName: this node cannot join another container's processes",
        )
    for mount in container.get("volumeMounts") or ():
        if mount.get("mountPropagation") not in (None, "", "None"):
            yield NOT_SUPPORTED, f"{place}.volumeMounts: mountPropagation of {mount['name']} is not supported"
    for field in ("startupProbe", "livenessProbe", "readinessProbe"):
        if (container.get(field) or {}).get("grpc"):
            yield "ProbeNotSupported", f"{place}.{field}.grpc: use exec, httpGet or tcpSocket"


def read_accounts(layers: Iterable[Path]) -> Accounts:
    """Return the accounts of an image; of several layers the first that has a file counts. Blocks."""
    layers = tuple(layers)
    primary: dict[int, int] = {}
    homes: dict[int, str] = {}
    names: dict[int, str] = {}
    for fields in _lines(layers, "etc/passwd", 7):
        uid = int(fields[2])
        if uid not in primary:
            primary[uid], homes[uid], names[uid] = int(fields[3]), fields[5], fields[0]
    further: dict[str, tuple[int, ...]] = {}
    for fields in _lines(layers, "etc/group", 4):
        for member in filter(None, fields[3].split(",")):
            further[member] = (*further.get(member, ()), int(fields[2]))
    return Accounts(primary, homes, names, further)


def _lines(layers: tuple[Path, ...], name: str, count: int) -> Iterable[list[str]]:
    for layer in layers:
        file = layer / name
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as text:
                content = text.read(_MOST_ACCOUNT_BYTES).decode(errors="replace")
            for line in content.splitlines():
                fields = line.split(":")
                if len(fields) >= count and fields[2].isdigit() and (count < 7 or fields[3].isdigit()):
                    yield fields
            return


def container_identity(
    pod: Object, container: Object, image: Image, accounts: Accounts, held: frozenset[str] | None = None
) -> Identity:
    """Return who a container runs as; `ConfigProblem` where the Pod forbids what would come of it."""
    of_pod: Object = pod["spec"].get("securityContext") or {}
    own: Object = container.get("securityContext") or {}
    both = {**of_pod, **{field: value for field, value in own.items() if value is not None}}
    uid = both.get("runAsUser")
    is_given = uid is not None
    uid = image.user.uid if uid is None else int(uid)
    if both.get("runAsNonRoot") and uid == 0:
        name, namespace, identity = (pod["metadata"][field] for field in ("name", "namespace", "uid"))
        what = (
            "container's runAsUser breaks non-root policy"
            if is_given
            else ("container has runAsNonRoot and image will run as root")
        )
        raise ConfigProblem(f'{what} (pod: "{name}_{namespace}({identity})", container: {container["name"]})')
    gid = both.get("runAsGroup")
    if gid is None:
        gid = image.user.gid if uid == image.user.uid else accounts.primary.get(uid, 0)
    capabilities: Object = own.get("capabilities") or {}
    try:
        granted = resolve_capabilities(capabilities.get("add") or (), capabilities.get("drop") or (), held)
    except Refused as refused:
        raise ConfigProblem(str(refused)) from refused
    profile = (both.get("seccompProfile") or {}).get("type")
    security = Security(
        uid=uid,
        gid=int(gid),
        groups=_groups(of_pod, uid, accounts),
        capabilities=granted,
        no_new_privileges=own.get("allowPrivilegeEscalation") is False,
        seccomp="RuntimeDefault" if profile == "RuntimeDefault" else "Unconfined",
    )
    return Identity(security, _home(uid, image, accounts))


def _groups(of_pod: Object, uid: int, accounts: Accounts) -> tuple[int, ...]:
    groups = [int(group) for group in of_pod.get("supplementalGroups") or ()]
    if of_pod.get("fsGroup") is not None:
        groups.append(int(of_pod["fsGroup"]))
    if of_pod.get("supplementalGroupsPolicy") != "Strict":
        groups += accounts.further.get(accounts.names.get(uid, ""), ())
    return tuple(dict.fromkeys(groups))


def _home(uid: int, image: Image, accounts: Accounts) -> str:
    if uid == image.user.uid:
        return image.user.home
    return accounts.homes.get(uid) or ("/root" if uid == 0 else "/")
