"""Webhook configurations: who outside the server is asked about which writes, and how."""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from kubereef.kinds.behaviours.checks import listed
from kubereef.kinds.behaviours.match_conditions import problem_of
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, label_selector, named
from kubereef.kinds.columns import AGE, NAME
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors, names
from kubewire.gotext import quote
from kubewire.paths import FieldPath

_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MOST_CONDITIONS = 64
_URL_FORM = "; desired format: https://host[/path]"
_FULLY_QUALIFIED = "should be a domain with at least three segments separated by dots"

# Fields of a webhook that have one of a few values.
_CHOICES = {"failurePolicy": ("Fail", "Ignore"), "matchPolicy": ("Equivalent", "Exact")}


def _defaults(configuration: Object) -> None:
    for webhook in configuration.get("webhooks") or ():
        _set_default(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        for field in ("namespaceSelector", "objectSelector"):
            if webhook.get(field) is None:
                webhook[field] = {}
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            _set_default(service, port=443)
        for rule in webhook.get("rules") or ():
            _set_default(rule, scope="*")


def _mutating_defaults(configuration: Object) -> None:
    _defaults(configuration)
    for webhook in configuration.get("webhooks") or ():
        _set_default(webhook, reinvocationPolicy="Never")


def _set_default(obj: Object, **values: object) -> None:
    for field, value in values.items():
        if obj.get(field) is None:
            obj[field] = value


def _configuration(configuration: Object) -> Problems:
    seen = set()
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        at = ("webhooks", index)
        yield from _webhook(at, webhook)
        yield from _review_versions((*at, "admissionReviewVersions"), webhook.get("admissionReviewVersions"))
        name = webhook.get("name")
        if name and name in seen:
            yield fielderrors.duplicate((*at, "name"), name)
        seen.add(name)


def _webhook(at: FieldPath, webhook: Object) -> Problems:
    yield from _qualified((*at, "name"), webhook.get("name") or "")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from _rule((*at, "rules", index), rule)
    for field, choices in _CHOICES.items():
        yield from _choice((*at, field), webhook.get(field), choices)
    effects = webhook.get("sideEffects")
    if effects is None:
        yield fielderrors.required((*at, "sideEffects"), f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    yield from _choice((*at, "sideEffects"), effects, _SIDE_EFFECTS)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield fielderrors.invalid((*at, "timeoutSeconds"), seconds, detail)
    for field in ("namespaceSelector", "objectSelector"):
        yield from label_selector((*at, field), webhook.get(field))
    yield from _choice((*at, "reinvocationPolicy"), webhook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    yield from _client((*at, "clientConfig"), webhook.get("clientConfig") or {})
    yield from _conditions((*at, "matchConditions"), webhook.get("matchConditions") or [])


def _choice(at: FieldPath, value: str | None, choices: Sequence[str]) -> Problems:
    if value is not None and value not in choices:
        yield fielderrors.not_supported(at, value, choices)


def _qualified(at: FieldPath, name: str) -> Problems:
    if not name:
        yield fielderrors.required(at)
    elif complaints := names.dns1123_subdomain(name):
        yield fielderrors.invalid(at, name, ",".join(complaints))
    elif name.count(".") < 2:
        yield fielderrors.invalid(at, name, _FULLY_QUALIFIED)


def _review_versions(at: FieldPath, versions: list[str] | None) -> Problems:
    accepted = ", ".join(_REVIEW_VERSIONS)
    if not versions:
        yield fielderrors.required(at, f"must specify one of {accepted}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield fielderrors.invalid((*at, index), version, "duplicate version")
        else:
            yield from named((*at, index), version, names.dns1035_label)
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield fielderrors.invalid(at, versions, f"must include at least one of {accepted}")


def _rule(at: FieldPath, rule: Object) -> Problems:
    operations = rule.get("operations") or []
    yield from _some_or_star((*at, "operations"), operations, "operations")
    for index, operation in enumerate(operations):
        yield from _choice((*at, "operations", index), operation, _OPERATIONS)
    yield from _some_or_star((*at, "apiGroups"), rule.get("apiGroups") or [], "API groups")
    versions = rule.get("apiVersions") or []
    yield from _some_or_star((*at, "apiVersions"), versions, "API versions")
    for index, version in enumerate(versions):
        if not version:
            yield fielderrors.required((*at, "apiVersions", index))
    yield from _resources((*at, "resources"), rule.get("resources") or [])
    yield from _choice((*at, "scope"), rule.get("scope"), ("*", "Cluster", "Namespaced"))


def _some_or_star(at: FieldPath, values: list[str], what: str) -> Problems:
    if not values:
        yield fielderrors.required(at)
    elif len(values) > 1 and "*" in values:
        yield fielderrors.invalid(at, values, f"if '*' is present, must not specify other {what}")


def _resources(at: FieldPath, resources: list[str]) -> Problems:
    if not resources:
        yield fielderrors.required(at)
    all_parts_of: set[str] = set()
    everywhere: set[str] = set()
    for index, text in enumerate(resources):
        here = (*at, index)
        if not text:
            yield fielderrors.required(here)
        resource, slash, part = text.partition("/")
        if not slash:
            continue
        if resource in all_parts_of:
            yield fielderrors.invalid(here, text, f"if '{resource}/*' is present, must not specify {text}")
        if part in everywhere:
            yield fielderrors.invalid(here, text, f"if '*/{part}' is present, must not specify {text}")
        if part == "*":
            all_parts_of.add(resource)
        if resource == "*":
            everywhere.add(part)
    if len(resources) > 1 and "*/*" in resources:
        detail = "if '*/*' is present, must not specify other resources"
        yield fielderrors.invalid(at, resources, detail)
    whole = [text for text in resources if text and "/" not in text]
    # Of several whole resources the last one tells, as with Kubernetes.
    if "*" in whole and whole[-1] != "*":
        detail = "if '*' is present, must not specify other resources without subresources"
        yield fielderrors.invalid(at, resources, detail)


def _client(at: FieldPath, client: Object) -> Problems:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield fielderrors.required(at, "exactly one of url or service is required")
    elif url is not None:
        yield from _url((*at, "url"), url)
    elif service is not None:
        yield from _service((*at, "service"), service)


def _url(at: FieldPath, text: str) -> Problems:
    if problem := _unreadable(text):
        shown = f"parse {quote(text)}: {problem}"
        yield fielderrors.required(at, f"url must be a valid URL: {shown}{_URL_FORM}")
        return
    for value, is_wrong, detail in _url_parts(urlsplit(text)):
        if is_wrong:
            yield fielderrors.invalid(at, value, detail)


def _unreadable(text: str) -> str:
    """Return why a text is no URL at all."""
    if not text.isprintable() or " " in text:
        return "net/url: invalid control character in URL"
    try:
        url = urlsplit(text)
    except ValueError as bad:
        return str(bad)
    try:
        _ = url.port
    except ValueError:
        return f"invalid port {quote(':' + url.netloc.rpartition(':')[2])} after host"
    return ""


def _url_parts(url: SplitResult) -> list[tuple[str, bool, str]]:
    user, _, host = url.netloc.rpartition("@")
    return [
        (url.scheme, url.scheme != "https", f"'https' is the only allowed URL scheme{_URL_FORM}"),
        (host, not host, f"host must be specified{_URL_FORM}"),
        (user, bool(user), "user information is not permitted in the URL"),
        (url.fragment, bool(url.fragment), "fragments are not permitted in the URL"),
        (url.query, bool(url.query), "query parameters are not permitted in the URL"),
    ]


def _service(at: FieldPath, service: Object) -> Problems:
    for field in ("name", "namespace"):
        if not service.get(field):
            yield fielderrors.required((*at, field))
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        yield fielderrors.invalid((*at, "port"), port, detail)
    yield from _path((*at, "path"), service.get("path") or "")


def _path(at: FieldPath, path: str) -> Problems:
    if path in ("", "/"):
        return
    if path == "//":
        yield fielderrors.invalid(at, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield fielderrors.invalid(at, path, "must start with a '/'")
    for index, segment in enumerate(path[1:].removesuffix("/").split("/")):
        if not segment:
            yield fielderrors.invalid(at, path, f"segment[{index}] may not be empty")
        else:
            for complaint in names.dns1123_subdomain(segment):
                yield fielderrors.invalid(at, path, f"segment[{index}]: {complaint}")


def _conditions(at: FieldPath, conditions: list[Object]) -> Problems:
    if len(conditions) > _MOST_CONDITIONS:
        yield fielderrors.too_many(at, len(conditions), _MOST_CONDITIONS)
        return
    seen = set()
    for index, condition in enumerate(conditions):
        here = (*at, index)
        expression, name = (condition.get("expression") or "").strip(), condition.get("name") or ""
        if not expression:
            yield fielderrors.required((*here, "expression"))
        elif problem := problem_of(expression):
            yield fielderrors.invalid((*here, "expression"), expression, problem)
        if not name:
            yield fielderrors.required((*here, "name"))
        yield from named((*here, "name"), name, names.qualified_name) if name else ()
        if name and name in seen:
            yield fielderrors.duplicate((*here, "name"), name)
        seen.add(name)


def _behaviour(defaults: Callable[[Object], None]) -> Behaviour:
    return Behaviour(
        defaults=defaults,
        validate=listed(_configuration),
        counts_generations=True,
        needs_version=True,
        columns=(NAME, Column("Webhooks", _count, type="integer"), AGE),
    )


def _count(configuration: Object, _moment: Any) -> int:
    return len(configuration.get("webhooks") or ())


MUTATING_WEBHOOKS = _behaviour(_mutating_defaults)
VALIDATING_WEBHOOKS = _behaviour(_defaults)
