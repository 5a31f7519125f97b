"""The conditions of a definition: which names it got, and whether its objects can be reached."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from kubereef.kinds.resource import Object

APPROVAL = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


def find_condition(definition: Object, kind: str) -> Object | None:
    """Return the condition of a type."""
    for condition in (definition.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            found: Object = condition
            return found
    return None


def is_true(definition: Object, kind: str) -> bool:
    """Tell whether a condition holds."""
    condition = find_condition(definition, kind)
    return condition is not None and condition["status"] == "True"


def set_condition(definition: Object, kind: str, status: str, reason: str, message: str, time: str) -> None:
    """Set a condition; its time is that of the last change of its status."""
    wanted = {"type": kind, "status": status, "reason": reason, "message": message}
    condition = find_condition(definition, kind)
    if condition is None:
        conditions = definition["status"].get("conditions") or []
        definition["status"]["conditions"] = [*conditions, {**wanted, "lastTransitionTime": time}]
        return
    if condition["status"] != status or not condition.get("lastTransitionTime"):
        condition["lastTransitionTime"] = time
    condition.update(wanted)


def accept_names(definition: Object, others: Iterable[Object], time: str) -> None:
    """Give a definition the names that no other of its group has, and say in its conditions whether it got all.

    `others` are the accepted names of the other definitions of the group.
    """
    status = definition["status"]
    wanted: Object = definition["spec"]["names"]
    before: Object = status.get("acceptedNames") or {}
    accepted = {**before}
    resources, kinds = _taken(others)
    conflict: tuple[str, str] | None = None
    for field, reason, taken in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        problems = _conflicts(wanted.get(field), before.get(field), taken)
        if problems:
            conflict = (reason, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        else:
            _copy(wanted, accepted, field)
    _copy(wanted, accepted, "categories")
    status["acceptedNames"] = accepted
    if conflict is None:
        set_condition(definition, "NamesAccepted", "True", "NoConflicts", "no conflicts found", time)
    else:
        set_condition(definition, "NamesAccepted", "False", *conflict, time)
    if is_true(definition, "Established"):
        return
    if conflict is None:
        because = "the initial names have been accepted"
        set_condition(definition, "Established", "True", "InitialNamesAccepted", because, time)
    elif find_condition(definition, "Established") is None:
        because = "not all names are accepted"
        set_condition(definition, "Established", "False", "NotAccepted", because, time)


def needs_approval(group: str) -> bool:
    """Tell whether a group belongs to Kubernetes' community, which approves what is in it."""
    return any(group == name or group.endswith(f".{name}") for name in ("k8s.io", "kubernetes.io"))


def approval(definition: Object) -> tuple[str, str]:
    """Return how the approval of a definition stands, as the reason of a condition, and the words for it."""
    given = (definition["metadata"].get("annotations") or {}).get(APPROVAL, "")
    opening = f'protected groups must have approval annotation "{APPROVAL}"'
    if not given:
        return "MissingAnnotation", f"{opening}, {_SEE}"
    if given.startswith("unapproved"):
        return "UnapprovedAnnotation", f'not approved: "{given}"'
    try:
        parts = urlsplit(given)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme and parts.netloc:
        return "ApprovedAnnotation", f"approved in {given}"
    return "InvalidAnnotation", f'{opening} with either a URL or a reason starting with "unapproved", {_SEE}'


def set_approval(definition: Object, time: str) -> None:
    """Say in a condition whether a definition of a protected group is approved."""
    if needs_approval(definition["spec"]["group"]):
        reason, message = approval(definition)
        status = "True" if reason == "ApprovedAnnotation" else "False"
        set_condition(definition, "KubernetesAPIApprovalPolicyConformant", status, reason, message, time)


def _taken(others: Iterable[Object]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for names in others:
        resources.update(
            (names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ()))
        )
        kinds.update((names.get("kind") or "", names.get("listKind") or ""))
    return resources - {""}, kinds - {""}


def _conflicts(wanted: Any, before: Any, taken: set[str]) -> list[str]:
    ours = set(before or ()) if isinstance(before, list) else {before}
    asked = wanted if isinstance(wanted, list) else [wanted] if wanted else []
    return [f'"{name}" is already in use' for name in asked if name not in ours and name in taken]


def _copy(wanted: Object, accepted: Object, field: str) -> None:
    if wanted.get(field):
        accepted[field] = wanted[field]
    else:
        accepted.pop(field, None)
