"""Nobody gives away rights that they do not have: the check of roles and bindings that are written."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

from kubereef.kinds.resource import Object
from kubereef.server.admission import Attempt
from kubereef.server.authorization import Authorizer
from kubereef.server.rbac import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
    Rule,
    not_found_roles,
)
from kubereef.server.requests import MASTERS
from kubereef.server.routing import Target
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire import errors
from kubewire.gotext import quote

_FULL_AUTHORITY = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
# A role of a few kilobytes can name billions of combinations. One that takes more than this to check is refused.
_MOST_RIGHTS = 10_000
# What the garbage collector changes, and what says nothing about rights.
_INERT = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")


class _Right(NamedTuple):
    """The smallest thing that can be allowed: one verb on one resource, or object, or path."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    url: str | None = None


class NoEscalation:
    """The admission step: a role may hold, and a binding give, only what its writer may do, or was let give."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, store: Store, attempt: Attempt) -> list[str]:
        resource = attempt.resource_type.resource
        if not resource.endswith(GROUP) or attempt.operation == "DELETE" or attempt.subresource:
            return []
        if MASTERS in attempt.user.groups or _is_inert(attempt):
            return []
        if resource in (ROLES, CLUSTER_ROLES):
            self._check_role(attempt)
        elif resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            self._check_binding(store, attempt)
        return []

    def _check_role(self, attempt: Attempt) -> None:
        # As with all creations, the name is no part of the question.
        name = attempt.name if attempt.operation == "UPDATE" else ""
        if self._may(attempt, "escalate", attempt.resource_type.plural, name):
            return
        gathers = _gathers(attempt.obj) or (attempt.old is not None and _gathers(attempt.old))
        if gathers and self._missing(attempt, _FULL_AUTHORITY):
            raise _refused(attempt, "must have cluster-admin privileges to use the aggregationRule")
        self._require(attempt, attempt.obj.get("rules") or ())

    def _check_binding(self, store: Store, attempt: Attempt) -> None:
        reference = attempt.obj.get("roleRef") or {}
        is_cluster_role = reference.get("kind") == "ClusterRole"
        name = reference.get("name") or ""
        if self._may(attempt, "bind", "clusterroles" if is_cluster_role else "roles", name):
            return
        key = Key(CLUSTER_ROLES, "", name) if is_cluster_role else Key(ROLES, attempt.namespace, name)
        record = store.latest(key)
        if record is None:
            # Kubernetes, too, names the role by the resource of the request.
            raise errors.not_found(attempt.resource_type.plural, name, group=GROUP)
        self._require(attempt, record.object().get("rules") or ())

    def _may(self, attempt: Attempt, verb: str, plural: str, name: str) -> bool:
        target = Target(verb, "", GROUP, "v1", attempt.namespace, plural, name, is_resource=True)
        return self._authorizer.decide(attempt.user, target).allowed

    def _require(self, attempt: Attempt, rules: Iterable[Object]) -> None:
        missing = self._missing(attempt, rules)
        if not missing:
            return
        user = attempt.user
        groups = " ".join(map(quote, user.groups))
        because = (
            f"user {quote(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently"
            " held:\n" + "\n".join(sorted(_shown(missing)))
        )
        _, unknown = self._authorizer.roles.rules(user, attempt.namespace)
        if unknown:
            because += f"; resolution errors: [{not_found_roles(unknown)}]"
        raise _refused(attempt, because)

    def _missing(self, attempt: Attempt, rules: Iterable[Object]) -> list[_Right]:
        """Return the rights in some rules that the writer does not have."""
        held, _ = self._authorizer.roles.rules(attempt.user, attempt.namespace)
        missing = []
        seen = 0
        for raw in rules:
            if any(_covers_all(one, raw) for one in held):
                continue
            useful = [one for one in held if _overlaps(one, raw)]
            for right in _rights(raw):
                seen += 1
                if seen > _MOST_RIGHTS:
                    because = (
                        f"the role grants more than {_MOST_RIGHTS} single permissions that would have to be"
                        " compared with those of its writer; grant fewer, or have somebody write it who may"
                        ' "escalate" roles'
                    )
                    raise _refused(attempt, because)
                if not any(_covers(one, right) for one in useful):
                    missing.append(right)
        return missing


def _covers_all(held: Rule, raw: Object) -> bool:
    """Tell whether one rule allows all that another does: quickly found, and how it mostly is."""
    verbs, urls = raw.get("verbs") or (), raw.get("nonResourceURLs") or ()
    names = raw.get("resourceNames") or ()
    return (
        ("*" in held.verbs or held.verbs.issuperset(verbs))
        and all(_covers_url(held, url) for url in urls)
        and ("*" in held.groups or held.groups.issuperset(raw.get("apiGroups") or ()))
        and all(_covers_resource(held, one) for one in raw.get("resources") or ())
        and (not held.names or (bool(names) and held.names.issuperset(names)))
    )


def _overlaps(held: Rule, raw: Object) -> bool:
    """Tell whether a rule may allow some of what another does; most of what somebody holds is about other things."""
    if "*" not in held.verbs and held.verbs.isdisjoint(raw.get("verbs") or ()):
        return False
    if raw.get("nonResourceURLs") and held.urls:
        return True
    return "*" in held.groups or not held.groups.isdisjoint(raw.get("apiGroups") or ())


def _covers(held: Rule, right: _Right) -> bool:
    if right.verb not in held.verbs and "*" not in held.verbs:
        return False
    if right.url is not None:
        return _covers_url(held, right.url)
    return (
        (right.group in held.groups or "*" in held.groups)
        and _covers_resource(held, right.resource)
        and (not held.names or right.name in held.names)
    )


def _covers_resource(held: Rule, resource: str) -> bool:
    if resource in held.resources or "*" in held.resources:
        return True
    _, slash, part = resource.partition("/")
    return bool(slash) and f"*/{part}" in held.resources


def _covers_url(held: Rule, url: str) -> bool:
    return any(one == url or (one.endswith("*") and url.startswith(one.rstrip("*"))) for one in held.urls)


def _rights(raw: Object) -> Iterator[_Right]:
    """Yield every single right of a rule."""
    verbs, names = raw.get("verbs") or (), raw.get("resourceNames") or ("",)
    for group, resource in product(raw.get("apiGroups") or (), raw.get("resources") or ()):
        for verb, name in product(verbs, names):
            yield _Right(verb, group, resource, name)
    for url, verb in product(raw.get("nonResourceURLs") or (), verbs):
        yield _Right(verb, url=url)


def _shown(missing: list[_Right]) -> set[str]:
    """Return rights as Kubernetes writes them: the verbs on one resource or object together, paths one by one."""
    verbs: dict[tuple[str, str, str], dict[str, None]] = {}
    shown = set()
    for right in missing:
        if right.url is not None:
            shown.add(f"{{NonResourceURLs:[{quote(right.url)}], Verbs:[{quote(right.verb)}]}}")
        else:
            verbs.setdefault((right.group, right.resource, right.name), {})[right.verb] = None
    for (group, resource, name), of_resource in verbs.items():
        named = f"ResourceNames:[{quote(name)}], " if name else ""
        listed = " ".join(map(quote, of_resource))
        shown.add(f"{{APIGroups:[{quote(group)}], Resources:[{quote(resource)}], {named}Verbs:[{listed}]}}")
    return shown


def _gathers(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_inert(attempt: Attempt) -> bool:
    """Tell whether a change is of no consequence for rights, as those are that the garbage collector makes."""
    return attempt.old is not None and _telling(attempt.obj) == _telling(attempt.old)


def _telling(obj: Object) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _INERT}
    return {**obj, "metadata": metadata}


def _refused(attempt: Attempt, because: str) -> errors.Forbidden:
    return errors.forbidden(attempt.resource_type.plural, attempt.name, because, group=GROUP)
