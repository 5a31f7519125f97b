"""Role-based access control: which binding, if any, lets a user do something.

Roles and bindings are indexed by subject and follow the store, so that a decision looks only at the bindings of
the one who asks.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kubereef.server.requests import User
from kubereef.server.routing import Target
from kubereef.store.records import Change, Key, Record
from kubereef.store.store import Store
from kubereef.store.watchers import CutOff, Watcher
from kubewire.gotext import quote

GROUP = "rbac.authorization.k8s.io"
ROLES = f"roles.{GROUP}"
CLUSTER_ROLES = f"clusterroles.{GROUP}"
ROLE_BINDINGS = f"rolebindings.{GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{GROUP}"
_RESOURCES = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)

_ACCOUNT_PREFIX = "system:serviceaccount:"


class Rule:
    """One rule of a role, prepared for quick checks; `raw` is the rule as it was written."""

    __slots__ = ("groups", "names", "raw", "resources", "urls", "verbs")

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.verbs = frozenset(raw.get("verbs") or ())
        self.groups = frozenset(raw.get("apiGroups") or ())
        self.resources = frozenset(raw.get("resources") or ())
        self.names = frozenset(raw.get("resourceNames") or ())
        self.urls = tuple(raw.get("nonResourceURLs") or ())

    def covers(self, target: Target, resource: str) -> bool:
        """Tell whether the rule is about what is asked, for some name at least.

        `resource` names the subresource too, as in `pods/log`.
        """
        if target.verb not in self.verbs and "*" not in self.verbs:
            return False
        if not target.is_resource:
            return any(_url_matches(url, target.path) for url in self.urls)
        if target.group not in self.groups and "*" not in self.groups:
            return False
        if resource not in self.resources and "*" not in self.resources:
            any_parent = f"*/{target.subresource}"
            if not target.subresource or any_parent not in self.resources:
                return False
        return True


class Binding(NamedTuple):
    """A binding: the role that it gives, and to whom."""

    key: Key
    role: Key
    subjects: tuple[tuple[str, str], ...]


class Decision(NamedTuple):
    """Whether something is allowed, and why: the binding that allows it, or what was wrong with others."""

    allowed: bool
    binding: Binding | None = None
    subject: tuple[str, str] = ("", "")
    missing: tuple[Key, ...] = ()

    @property
    def reason(self) -> str:
        """The reason in the API server's words; empty if there is nothing to say."""
        if self.binding is not None:
            kind = "RoleBinding" if self.binding.key.namespace else "ClusterRoleBinding"
            role = "Role" if self.binding.role.namespace else "ClusterRole"
            subject_kind, subject = self.subject
            bound, given = quote(_shown(self.binding.key)), quote(self.binding.role.name)
            return f"RBAC: allowed by {kind} {bound} of {role} {given} to {subject_kind} {quote(subject)}"
        if self.missing:
            return f"RBAC: {not_found_roles(self.missing)}"
        return ""


DENIED = Decision(False)


class _Grants(NamedTuple):
    """The rules that are about one thing for one user, and the roles that are bound to it but missing."""

    rules: tuple[tuple[Rule, Binding, tuple[str, str]], ...]
    missing: tuple[Key, ...]


# How many answers are remembered; then all are forgotten.
_MAX_GRANTS = 20_000


class RoleBook:
    """All roles and bindings of a store, as of its newest revision."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watchers: list[Watcher] = []
        self._roles: dict[Key, tuple[Rule, ...]] = {}
        self._bindings: dict[Key, Binding] = {}
        self._by_subject: dict[tuple[str, str, str], dict[Key, Binding]] = {}
        # What was found for earlier questions, good until a role or binding changes.
        self._grants: dict[tuple[object, ...], _Grants] = {}
        self._seen = 0
        self._begin()

    def decide(self, user: User, target: Target) -> Decision:
        """Return whether any binding lets the user do what the target says."""
        self._catch_up()
        resource = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
        what = (target.verb, target.group, resource, "" if target.is_resource else target.path)
        question = (user.name, user.groups, target.namespace, what)
        grants = self._grants.get(question)
        if grants is None:
            if len(self._grants) >= _MAX_GRANTS:
                self._grants.clear()
            grants = self._grants[question] = self._found(user, target, resource)
        for rule, binding, subject in grants.rules:
            if not rule.names or target.name in rule.names:
                return Decision(True, binding, subject)
        return Decision(False, missing=grants.missing) if grants.missing else DENIED

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[Key]]:
        """Return the rules that hold for a user in a namespace, and the roles that are bound but missing."""
        self._catch_up()
        found: list[Rule] = []
        missing: list[Key] = []
        for binding, _ in self._of(user, namespace):
            rules = self._roles.get(binding.role)
            if rules is None:
                missing.append(binding.role)
            else:
                found += rules
        return found, missing

    def close(self) -> None:
        """Follow the store no longer."""
        for watcher in self._watchers:
            watcher.close()

    def _found(self, user: User, target: Target, resource: str) -> _Grants:
        """Look through the bindings of a user for rules about a target."""
        rules: list[tuple[Rule, Binding, tuple[str, str]]] = []
        missing: list[Key] = []
        for binding, subject in self._of(user, target.namespace if target.is_resource else ""):
            held = self._roles.get(binding.role)
            if held is None:
                missing.append(binding.role)
            else:
                rules += [(rule, binding, subject) for rule in held if rule.covers(target, resource)]
        return _Grants(tuple(rules), tuple(missing))

    def _of(self, user: User, namespace: str) -> Iterator[tuple[Binding, tuple[str, str]]]:
        """Yield the user's bindings in the whole cluster and in a namespace, each with the subject that matched."""
        subjects = _subjects_of(user)
        for scope in ("", namespace) if namespace else ("",):
            for subject in subjects:
                for binding in self._by_subject.get((scope, *subject), {}).values():
                    yield binding, subject

    # --- following the store

    def _begin(self) -> None:
        self.close()
        self._roles.clear()
        self._bindings.clear()
        self._by_subject.clear()
        self._grants.clear()
        self._watchers = [self._store.watch(resource, self._store.revision) for resource in _RESOURCES]
        for resource in _RESOURCES:
            for record in self._store.records(resource):
                self._learn(record)

    def _catch_up(self) -> None:
        if self._seen == self._store.revision:
            return
        self._seen = self._store.revision
        try:
            for watcher in self._watchers:
                for change in watcher.drain():
                    self._follow(change)
        except CutOff:
            self._begin()

    def _follow(self, change: Change) -> None:
        self._grants.clear()
        self._forget(change.key)
        if change.type != "DELETED":
            self._learn(change.record)

    def _learn(self, record: Record) -> None:
        obj = record.object()
        key = record.key
        if key.resource in (ROLES, CLUSTER_ROLES):
            self._roles[key] = tuple(Rule(rule) for rule in obj.get("rules") or ())
            return
        reference = obj.get("roleRef") or {}
        is_cluster_role = reference.get("kind") == "ClusterRole"
        role = Key(
            CLUSTER_ROLES if is_cluster_role else ROLES,
            "" if is_cluster_role else key.namespace,
            reference.get("name", ""),
        )
        subjects = tuple(_subject(subject, key.namespace) for subject in obj.get("subjects") or ())
        binding = self._bindings[key] = Binding(key, role, subjects)
        for subject in subjects:
            self._by_subject.setdefault((key.namespace, *subject), {})[key] = binding

    def _forget(self, key: Key) -> None:
        self._roles.pop(key, None)
        binding = self._bindings.pop(key, None)
        for subject in binding.subjects if binding else ():
            place = (key.namespace, *subject)
            held = self._by_subject.get(place, {})
            held.pop(key, None)
            if not held:
                self._by_subject.pop(place, None)


def _subject(subject: dict[str, Any], namespace: str) -> tuple[str, str]:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        return kind, f"{name}/{subject.get('namespace') or namespace}"
    return kind, name


def _subjects_of(user: User) -> list[tuple[str, str]]:
    """Return the subjects that stand for a user in bindings."""
    subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
    if user.name.startswith(_ACCOUNT_PREFIX):
        namespace, _, account = user.name.removeprefix(_ACCOUNT_PREFIX).partition(":")
        subjects.append(("ServiceAccount", f"{account}/{namespace}"))
    return subjects


def _url_matches(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern.rstrip("*"))
    return pattern == path


def _shown(key: Key) -> str:
    return f"{key.name}/{key.namespace}" if key.namespace else key.name


def not_found_roles(roles: Iterable[Key]) -> str:
    """Return in the API server's words which roles are bound but do not exist."""
    texts = list(dict.fromkeys(map(_not_found, roles)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _not_found(role: Key) -> str:
    kind = "role" if role.namespace else "clusterrole"
    return f"{kind}.{GROUP} {quote(role.name)} not found"
