"""Cluster roles that are made of others: their rules are those of the roles that their selectors choose."""

from collections.abc import Sequence

from kubereef.kinds.resource import Object
from kubewire.selectors import LabelSelector, SelectorError


def aggregated_rules(role: Object, roles: Sequence[Object]) -> list[Object] | None:
    """Return the rules that a role gathers from the others, in the order of their names; None if it gathers none."""
    rule = role.get("aggregationRule")
    if not rule:
        return None
    chosen: dict[str, Object] = {}
    for selector in rule.get("clusterRoleSelectors") or ():
        try:
            wanted = LabelSelector.of(selector)
        except SelectorError:
            continue  # it chooses nobody
        for other in roles:
            name = other["metadata"]["name"]
            if name != role["metadata"]["name"] and wanted.matches(other["metadata"].get("labels")):
                chosen[name] = other
    gathered: list[Object] = []
    for name in sorted(chosen):
        gathered += [one for one in chosen[name].get("rules") or () if one not in gathered]
    return gathered


def aggregate_all(roles: Sequence[Object]) -> None:
    """Fill in the rules of every role that gathers others, until they stand: one may gather from another."""
    for _ in roles:
        changed = False
        for role in roles:
            rules = aggregated_rules(role, roles)
            if rules is not None and rules != role.get("rules"):
                role["rules"] = rules
                changed = True
        if not changed:
            return
