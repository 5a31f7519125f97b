"""Nodes: the machines that Pods run on. Whoever registers one says its status along with it."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems
from kubereef.kinds.columns import AGE, NAME, NONE, UNKNOWN, at, joined, text
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors
from kubewire.fielderrors import as_json
from kubewire.quantity import ZERO, Quantity

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _defaults(node: Object) -> None:
    status = node.get("status") or {}
    if status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])
    _agree_on_pod_addresses(node.get("spec") or {})


def _agree_on_pod_addresses(spec: Object) -> None:
    """Keep the two ways to say which addresses Pods get in step: an older writer knows only the first block."""
    if spec.get("podCIDR"):
        if (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
            spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]


def _taints(node: Object) -> Problems:
    # The path is Kubernetes' own: taints were once kept in the metadata.
    yield from checks.taints(("metadata", "taints"), at(node, "spec", "taints") or ())


def _problems(node: Object) -> Problems:
    yield from _taints(node)
    for field in ("capacity", "allocatable"):
        yield from checks.amounts(("status", field), at(node, "status", field))
    blocks = at(node, "spec", "podCIDRs") or ()
    for index, block in enumerate(blocks):
        yield from checks.cidr(("spec", "podCIDRs", index), block)
    if len(blocks) > 1:
        known = [network for block in blocks if (network := checks.read_cidr(block)) is not None]
        if len(blocks) > 2 or len({network.version for network in known}) < len(known):
            detail = "may specify no more than one CIDR for each IP family"
            yield fielderrors.invalid(("spec", "podCIDRs"), blocks, detail)


def _update_problems(new: Object, old: Object) -> Problems:
    yield from _addresses(new)
    yield from _taints(new)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for field, shown in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if before.get(field) and spec.get(field) != before[field]:
            detail = f'node updates may not change {shown} except from "" to valid'
            yield fielderrors.forbidden(("spec", field), detail)
    if spec.get("externalID") != before.get("externalID"):
        yield fielderrors.forbidden(("spec", "externalID"), "may not be updated")


def _status_problems(new: Object, old: Object) -> Problems:
    for field in ("capacity", "allocatable"):
        for name, amount in (at(new, "status", field) or {}).items():
            quantity, here, written = (
                Quantity.parse(amount),
                ("status", field, name),
                f"status.{field}.{name}",
            )
            if quantity < ZERO:
                yield fielderrors.invalid(here, amount, "must be greater than or equal to 0", written)
            if "/" in name and "kubernetes.io/" not in name and quantity.nano % 10**9:
                yield fielderrors.invalid(here, amount, "must be an integer", written)
    yield from _update_problems(new, old)


def _addresses(node: Object) -> Problems:
    seen = set()
    for index, address in enumerate(at(node, "status", "addresses") or ()):
        text_of = as_json(address)
        if text_of in seen:
            shown = checks.go_struct(
                ("Type", address.get("type", "")), ("Address", address.get("address", ""))
            )
            yield fielderrors.duplicate(("status", "addresses", index), shown)
        seen.add(text_of)


def _status_cell(node: Object) -> str:
    ready = [one for one in at(node, "status", "conditions") or () if one.get("type") == "Ready"]
    words = ["Ready" if one.get("status") == "True" else "NotReady" for one in ready] or ["Unknown"]
    if at(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles_cell(node: Object) -> str:
    roles = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        if key.startswith(_ROLE_PREFIX) and key != _ROLE_PREFIX:
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL and value:
            roles.add(value)
    return joined(sorted(roles))


def _address_column(title: str, kind: str) -> Column:
    def cell(node: Object) -> str:
        for address in at(node, "status", "addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address"))
        return NONE

    return Column(title, lambda obj, _: cell(obj), priority=1)


def _kernel_cell(node: Object) -> str:
    info = at(node, "status", "nodeInfo") or {}
    kernel, architecture = info.get("kernelVersion") or UNKNOWN, info.get("architecture")
    return f"{kernel} ({architecture})" if architecture else kernel


NODES = Behaviour(
    defaults=_defaults,
    first_status=lambda node: node.get("status"),
    prepare_status=checks.beside_spec,
    validate=checks.listed(_problems),
    validate_update=checks.listed(_update_problems),
    validate_status=checks.listed(_status_problems),
    selectable={"spec.unschedulable": lambda node: str(bool(at(node, "spec", "unschedulable"))).lower()},
    columns=(
        NAME,
        Column("Status", lambda node, _: _status_cell(node)),
        Column("Roles", lambda node, _: _roles_cell(node)),
        AGE,
        text("Version", "status", "nodeInfo", "kubeletVersion"),
        _address_column("Internal-IP", "InternalIP"),
        _address_column("External-IP", "ExternalIP"),
        text("OS-Image", "status", "nodeInfo", "osImage", absent=UNKNOWN, priority=1),
        Column("Kernel-Version", lambda node, _: _kernel_cell(node), priority=1),
        text(
            "Container-Runtime", "status", "nodeInfo", "containerRuntimeVersion", absent=UNKNOWN, priority=1
        ),
    ),
)
