"""Checks that the kinds besides Pods share. Each yields what is wrong with one value, in Kubernetes' words."""

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network
from typing import Any

from kubereef.kinds.behaviours.podspec_validation.checks import Problems, named, read_address
from kubereef.kinds.resource import Object
from kubewire import fielderrors, names
from kubewire.fielderrors import FieldError, Verbatim, as_json
from kubewire.paths import FieldPath
from kubewire.quantity import Quantity

IMMUTABLE = "field is immutable"


def listed(check: Callable[..., Problems]) -> Callable[..., list[FieldError]]:
    """Return a check as a function that returns a list, the form in which a Behaviour has it."""
    return lambda *objects: list(check(*objects))


def beside_spec(new: Object, old: Object) -> None:
    """Keep what is desired as it was: a write to the status of a built-in kind may change metadata, too."""
    for field in [one for one in new if one not in ("metadata", "status") and one not in old]:
        del new[field]
    for field, value in old.items():
        if field not in ("metadata", "status"):
            new[field] = value


def go_struct(*fields: tuple[str, object]) -> Verbatim:
    """Return a value as messages show Kubernetes' internal structs: by Go's field names, in Go's order."""
    shown = (value if isinstance(value, Verbatim) else as_json(value) for _, value in fields)
    return Verbatim(
        "{" + ",".join(f'"{name}":{text}' for (name, _), text in zip(fields, shown, strict=True)) + "}"
    )


def path_segment_name(name: str) -> list[str]:
    """Return why a name cannot stand in a path; roles and bindings may be called nearly anything else."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def numbers_not_negative(at: FieldPath, obj: Object, *fields: str) -> Problems:
    """Yield the numbers that are below zero; absent ones are fine."""
    for field in fields:
        value = obj.get(field)
        if value is not None and value < 0:
            yield fielderrors.invalid((*at, field), value, "must be greater than or equal to 0")


def unchanged(at: FieldPath, new: Any, old: Any, shown: object = None) -> Problems:
    """Yield that something changed which never does; `shown` is the new value where messages show another form."""
    if new != old:
        yield fielderrors.invalid(at, new if shown is None else shown, IMMUTABLE)


def read_cidr(text: str) -> IPv4Network | IPv6Network | None:
    """Return the network that a text means; bits beyond its length are fine."""
    try:
        return ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def cidr(at: FieldPath, text: str) -> Problems:
    """Yield why a text is no block of addresses."""
    found = read_cidr(text)
    if found is not None:
        if str(found.network_address) != str(read_address(text.partition("/")[0])):
            yield fielderrors.invalid(at, text, "must not have bits set beyond the prefix length")
    else:
        yield fielderrors.invalid(at, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")


def no_special_address(at: FieldPath, text: str) -> Problems:
    """Yield that an address is one by which nobody else can be reached."""
    found = read_address(text)
    if found is None:
        return
    link_local_group = found.is_multicast and (
        found in _LOCAL_GROUPS_V4 if isinstance(found, IPv4Address) else found in _LOCAL_GROUPS_V6
    )
    if found.is_unspecified:
        yield fielderrors.invalid(at, text, f"may not be unspecified ({found})")
    if found.is_loopback:
        yield fielderrors.invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        yield fielderrors.invalid(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if link_local_group:
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        yield fielderrors.invalid(at, text, detail)


_LOCAL_GROUPS_V4 = IPv4Network("224.0.0.0/24")
_LOCAL_GROUPS_V6 = IPv6Network("ff02::/16")


def amounts(at: FieldPath, given: dict[str, str] | None) -> Problems:
    """Yield the amounts that are below zero."""
    for name, amount in (given or {}).items():
        if Quantity.parse(amount).nano < 0:
            yield fielderrors.invalid((*at, name), amount, "must be greater than or equal to 0")


def taints(at: FieldPath, given: Iterable[Object]) -> Problems:
    """Yield what is wrong with taints; each pair of key and effect may stand once."""
    seen = set()
    for index, taint in enumerate(given):
        key, value, effect = (taint.get(field) or "" for field in ("key", "value", "effect"))
        here = (*at, index)
        yield from named((*here, "key"), key, names.label_key)
        yield from named((*here, "value"), value, names.label_value)
        if not effect:
            yield fielderrors.required((*here, "effect"))
        elif effect not in _EFFECTS:
            yield fielderrors.not_supported((*here, "effect"), effect, _EFFECTS)
        if (key, effect) in seen:
            shown = go_struct(
                ("Key", key), ("Value", value), ("Effect", effect), ("TimeAdded", taint.get("timeAdded"))
            )
            again = fielderrors.duplicate(here, shown)
            yield again._replace(message=f"{again.message}: taints must be unique by key and effect pair")
        seen.add((key, effect))


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
