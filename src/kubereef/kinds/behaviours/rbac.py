"""Roles and bindings: who may do what. A binding never changes the role it is about."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, label_selector, named
from kubereef.kinds.columns import AGE, CREATED_AT, NAME, joined
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors, names
from kubewire.fielderrors import FieldError
from kubewire.paths import FieldPath
from kubewire.selectors import LabelSelector, SelectorError

GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def _rules(role: Object, *, namespaced: bool) -> Problems:
    for index, rule in enumerate(role.get("rules") or ()):
        yield from _rule(("rules", index), rule, namespaced=namespaced)


def _rule(at: FieldPath, rule: Object, *, namespaced: bool) -> Problems:
    if not rule.get("verbs"):
        yield fielderrors.required((*at, "verbs"), "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        here = (*at, "nonResourceURLs")
        if namespaced:
            yield fielderrors.invalid(here, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield fielderrors.invalid(here, urls, detail)
        return
    if not rule.get("apiGroups"):
        yield fielderrors.required((*at, "apiGroups"), "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield fielderrors.required((*at, "resources"), "resource rules must supply at least one resource")


def _cluster_role(role: Object) -> Problems:
    yield from _rules(role, namespaced=False)
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return
    at = ("aggregationRule", "clusterRoleSelectors")
    selectors = aggregation.get("clusterRoleSelectors")
    if not selectors:
        yield fielderrors.required(
            at, "at least one clusterRoleSelector required if aggregationRule is non-nil"
        )
    for index, selector in enumerate(selectors or ()):
        yield from label_selector((*at, index), selector)
        try:
            LabelSelector.of(selector)
        except SelectorError:
            yield fielderrors.invalid((*at, index), None, "invalid label selector.")


def _binding_defaults(binding: Object) -> None:
    reference = binding.setdefault("roleRef", {})
    reference["apiGroup"] = reference.get("apiGroup") or GROUP
    for subject in binding.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP


def _binding(binding: Object, *, namespaced: bool) -> Problems:
    reference = binding.get("roleRef") or {}
    group, kind, name = (reference.get(field) or "" for field in ("apiGroup", "kind", "name"))
    if group != GROUP:
        yield fielderrors.not_supported(("roleRef", "apiGroup"), group, (GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if kind not in kinds:
        yield fielderrors.not_supported(("roleRef", "kind"), kind, kinds)
    if not name:
        yield fielderrors.required(("roleRef", "name"))
    yield from named(("roleRef", "name"), name, checks.path_segment_name)
    for index, subject in enumerate(binding.get("subjects") or ()):
        yield from _subject(("subjects", index), subject, namespaced=namespaced)


def _subject(at: FieldPath, subject: Object, *, namespaced: bool) -> Problems:
    kind, name, group = (subject.get(field) or "" for field in ("kind", "name", "apiGroup"))
    if not name:
        yield fielderrors.required((*at, "name"))
    if kind == "ServiceAccount":
        if name:
            yield from named((*at, "name"), name, names.dns1123_subdomain)
        if group:
            yield fielderrors.not_supported((*at, "apiGroup"), group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield fielderrors.required((*at, "namespace"))
    elif kind in _SUBJECTS:
        if group != GROUP:
            yield fielderrors.not_supported((*at, "apiGroup"), group, (GROUP,))
    else:
        yield fielderrors.not_supported((*at, "kind"), kind, _SUBJECTS)


def _role_kept(new: Object, old: Object) -> list[FieldError]:
    reference = new.get("roleRef") or {}
    if reference == old.get("roleRef"):
        return []
    shown = checks.go_struct(
        ("APIGroup", reference.get("apiGroup", "")),
        ("Kind", reference.get("kind", "")),
        ("Name", reference.get("name", "")),
    )
    return [fielderrors.invalid(("roleRef",), shown, "cannot change roleRef")]


def _named_subjects(title: str, kind: str) -> Column:
    def cell(binding: Object) -> str:
        chosen = [one for one in binding.get("subjects") or () if one.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one.get('name')}" for one in chosen)
        return joined((one.get("name") or "" for one in chosen), empty="")

    return Column(title, lambda obj, _: cell(obj), priority=1)


_BINDING_COLUMNS = (
    NAME,
    Column("Role", lambda obj, _: f"{obj['roleRef'].get('kind')}/{obj['roleRef'].get('name')}"),
    AGE,
    _named_subjects("Users", "User"),
    _named_subjects("Groups", "Group"),
    _named_subjects("ServiceAccounts", "ServiceAccount"),
)

ROLES = Behaviour(
    validate=lambda role: list(_rules(role, namespaced=True)),
    check_name=checks.path_segment_name,
    put_creates=True,
    columns=(NAME, CREATED_AT),
)
CLUSTER_ROLES = ROLES._replace(validate=checks.listed(_cluster_role))
ROLE_BINDINGS = Behaviour(
    defaults=_binding_defaults,
    validate=lambda binding: list(_binding(binding, namespaced=True)),
    validate_update=_role_kept,
    check_name=checks.path_segment_name,
    put_creates=True,
    columns=_BINDING_COLUMNS,
)
CLUSTER_ROLE_BINDINGS = ROLE_BINDINGS._replace(
    validate=lambda binding: list(_binding(binding, namespaced=False))
)
