"""Whether a webhook wants to be asked about something."""

from typing import NamedTuple

from kubereef.kinds.behaviours.match_conditions import condition
from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.webhooks.configurations import GROUP, Hook, Rule
from kubereef.server.webhooks.reviews import request_of
from kubereef.server.webhooks.subjects import Subject
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire import errors
from kubewire.cel import Budget, CelError
from kubewire.selectors import LabelSelector

# What all conditions of a webhook may cost together.
_CONDITIONS_LIMIT = 2_500_000


class Invocation(NamedTuple):
    """A webhook that is to be asked, and the version of the resource that it knows."""

    hook: Hook
    version: ResourceType


def is_exempt(subject: Subject) -> bool:
    """Tell whether nobody is asked: a webhook that refuses everything must not keep itself from being removed."""
    return subject.resource_type.group == GROUP


def invocation_of(hook: Hook, subject: Subject, store: Store, registry: Registry) -> Invocation | None:
    """Return how a webhook is to be asked, None if it is not; raises ApiError where that cannot be found out."""
    problem: errors.ApiError | None = None
    try:
        if not _is_in_chosen_namespace(hook.namespaces, subject, store):
            return None
    except errors.NotFound as missing:
        problem = missing  # it counts only if the webhook is about the resource at all
    if hook.objects.requirements and not _is_chosen(hook.objects, subject):
        return None
    version = _version(hook, subject, registry)
    if version is None:
        return None
    if problem is not None:
        raise problem
    invocation = Invocation(hook, version)
    return invocation if not hook.conditions or _meets_conditions(invocation, subject) else None


def _version(hook: Hook, subject: Subject, registry: Registry) -> ResourceType | None:
    """Return the version of the resource that the rules speak of: the request's own if they do, else another."""
    own = subject.resource_type
    if any(_covers(rule, subject, own) for rule in hook.rules):
        return own
    if not hook.takes_equivalents:
        return None
    others = [one for one in registry if one.storage == own.storage and one is not own]
    for rule in hook.rules:
        for other in others:
            if _covers(rule, subject, other):
                return other
    return None


def _covers(rule: Rule, subject: Subject, version: ResourceType) -> bool:
    return (
        _is_among(subject.operation, rule.operations)
        and _is_among(version.group, rule.groups)
        and _is_among(version.version, rule.versions)
        and _is_in_scope(rule.scope, subject)
        and any(
            resource in ("*", version.plural) and part in ("*", subject.subresource)
            for resource, part in rule.resources
        )
    )


def _is_among(value: str, accepted: frozenset[str]) -> bool:
    return value in accepted or "*" in accepted


def _is_in_scope(scope: str, subject: Subject) -> bool:
    return scope == "*" or (scope == "Namespaced") == subject.resource_type.namespaced


def _is_in_chosen_namespace(selector: LabelSelector, subject: Subject, store: Store) -> bool:
    is_namespace = subject.resource_type.resource == "namespaces"
    if not selector.requirements or not (subject.namespace or is_namespace):
        return True
    if is_namespace and not subject.subresource and subject.obj is not None:
        # What is stored does not have the labels yet that a namespace gets by this very request.
        return selector.matches(_labels(subject.obj))
    record = store.latest(Key("namespaces", "", subject.namespace))
    if record is None:
        raise errors.not_found("namespaces", subject.namespace)
    return selector.matches(_labels(record.object()))


def _is_chosen(selector: LabelSelector, subject: Subject) -> bool:
    objects = (one for one in (subject.obj, subject.old) if one is not None and "metadata" in one)
    return any(selector.matches(_labels(one)) for one in objects)


def _labels(obj: Object) -> dict[str, str]:
    labels: dict[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return labels


def _meets_conditions(invocation: Invocation, subject: Subject) -> bool:
    """Tell whether all conditions hold. One that does not keeps the webhook out, whatever is wrong with others."""
    hook = invocation.hook
    request = request_of("", invocation.version, subject)
    values = {
        "object": request.pop("object"),
        "oldObject": request.pop("oldObject"),
        "namespaceObject": None,
        "request": request,
    }
    budget = Budget(_CONDITIONS_LIMIT)
    failures: list[str] = []
    for expression in hook.conditions:
        try:
            if condition(expression).evaluate(values, budget) is False:
                return False
        except CelError as bad:
            failures.append(f"expression '{expression}' resulted in error: {bad.message}")
    if failures and not hook.ignores_failures:
        because = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
        resource = subject.resource_type
        raise errors.forbidden(resource.plural, subject.name, because, group=resource.group)
    return not failures
