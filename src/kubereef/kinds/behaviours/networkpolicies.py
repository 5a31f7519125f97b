"""Network policies: which Pods may speak with whom."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, label_selector, port
from kubereef.kinds.columns import AGE, NAME, at, shown_selector
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors
from kubewire.paths import FieldPath

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")
_PEER_FIELDS = ("podSelector", "namespaceSelector", "ipBlock")


def _defaults(policy: Object) -> None:
    spec = policy["spec"]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for one in rule.get("ports") or ():
            one["protocol"] = one.get("protocol") or "TCP"
    if not spec.get("policyTypes"):
        # Rules for what goes out bring the rule with them that nothing else comes in.
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _problems(policy: Object) -> Problems:
    spec = policy["spec"]
    yield from label_selector(("spec", "podSelector"), spec.get("podSelector"))
    for field, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(field) or ()):
            here = ("spec", field, index)
            for position, one in enumerate(rule.get("ports") or ()):
                yield from _port((*here, "ports", position), one)
            for position, peer in enumerate(rule.get(peers) or ()):
                yield from _peer((*here, peers, position), peer)
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        detail = "may not specify more than two policyTypes"
        yield fielderrors.invalid(("spec", "policyTypes"), types, detail)
        return
    for index, kind in enumerate(types):
        if kind not in _TYPES:
            yield fielderrors.not_supported(("spec", "policyTypes", index), kind, _TYPES)


def _port(here: FieldPath, given: Object) -> Problems:
    protocol = given.get("protocol")
    if protocol is not None and protocol not in _PROTOCOLS:
        yield fielderrors.not_supported((*here, "protocol"), protocol, _PROTOCOLS)
    number, end = given.get("port"), given.get("endPort")
    if number is None:
        if end is not None:
            detail = "may not be specified when `port` is not specified"
            yield fielderrors.invalid((*here, "endPort"), end, detail)
        return
    yield from port((*here, "port"), number)
    if end is not None:
        if isinstance(number, str):
            yield fielderrors.invalid(
                (*here, "endPort"), end, "may not be specified when `port` is non-numeric"
            )
        elif end < number:
            # The value that is shown is the port.
            yield fielderrors.invalid((*here, "endPort"), number, "must be greater than or equal to `port`")
        yield from port((*here, "endPort"), end)


def _peer(here: FieldPath, peer: Object) -> Problems:
    given = [field for field in _PEER_FIELDS if peer.get(field) is not None]
    for field in ("podSelector", "namespaceSelector"):
        yield from label_selector((*here, field), peer.get(field))
    if "ipBlock" in given:
        yield from _block((*here, "ipBlock"), peer["ipBlock"])
    if not given:
        yield fielderrors.required(here, "must specify a peer")
    elif "ipBlock" in given and len(given) > 1:
        yield fielderrors.forbidden(here, "may not specify both ipBlock and another peer")


def _block(here: FieldPath, block: Object) -> Problems:
    text = block.get("cidr") or ""
    if not text:
        yield fielderrors.required((*here, "cidr"))
        return
    yield from checks.cidr((*here, "cidr"), text)
    network = checks.read_cidr(text)
    for index, exception in enumerate(block.get("except") or ()):
        place = (*here, "except", index)
        inner = checks.read_cidr(exception)
        if inner is None:
            yield from checks.cidr(place, exception)
        elif network is not None and not (
            inner.version == network.version
            and inner.prefixlen > network.prefixlen
            and inner.network_address in network
        ):
            yield fielderrors.invalid(place, exception, "must be a strict subset of `cidr`")


NETWORK_POLICIES = Behaviour(
    defaults=_defaults,
    validate=checks.listed(_problems),
    counts_generations=True,
    columns=(
        NAME,
        Column("Pod-Selector", lambda obj, _: shown_selector(at(obj, "spec", "podSelector"))),
        AGE,
    ),
)
