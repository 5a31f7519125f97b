"""Ingresses and their classes: how requests from outside find Services."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, named, port_number, read_address
from kubereef.kinds.behaviours.service_validation import balancer_entries
from kubereef.kinds.columns import AGE, NAME, NONE, at, joined, text
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors, names
from kubewire.paths import FieldPath

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
# What may not stand in a path that is compared piece by piece, nor at its end.
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")
_OLD_CLASS = "kubernetes.io/ingress.class"
_SCOPES = ("Cluster", "Namespace")
_SHOWN_HOSTS = 3
_NO_WILDCARD = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of"
    " lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g."
    " '*.example.com', regex used for validation is"
    r" '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def _ingress(ingress: Object) -> Problems:
    spec = ingress["spec"]
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        yield fielderrors.invalid(("spec",), None, detail)
    if spec.get("defaultBackend") is not None:
        yield from _backend(("spec", "defaultBackend"), spec["defaultBackend"])
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _rule(("spec", "rules", index), rule)
    for index, secured in enumerate(spec.get("tls") or ()):
        for position, host in enumerate(secured.get("hosts") or ()):
            yield from _host(("spec", "tls", index, "hosts", position), host)
        if secured.get("secretName"):
            place = ("spec", "tls", index, "secretName")
            yield from named(place, secured["secretName"], names.dns1123_subdomain)
    if spec.get("ingressClassName") is not None:
        yield from named(("spec", "ingressClassName"), spec["ingressClassName"], names.dns1123_subdomain)


def _old_class(ingress: Object) -> Problems:
    """Yield that a new ingress names its class in two ways."""
    annotation = (ingress["metadata"].get("annotations") or {}).get(_OLD_CLASS)
    name = ingress["spec"].get("ingressClassName")
    if annotation is not None and name is not None and annotation != name:
        detail = "must match `ingressClassName` when both are specified"
        path, written = ("metadata", "annotations", _OLD_CLASS), f"annotations.{_OLD_CLASS}"
        yield fielderrors.invalid(path, annotation, detail, written)


def _rule(here: FieldPath, rule: Object) -> Problems:
    host = rule.get("host") or ""
    if host:
        if read_address(host) is not None:
            yield fielderrors.invalid((*here, "host"), host, "must be a DNS name, not an IP address")
        yield from _host((*here, "host"), host)
    http = rule.get("http")
    if http is None:
        return
    paths = http.get("paths") or []
    if not paths:
        yield fielderrors.required((*here, "http", "paths"))
    for index, path in enumerate(paths):
        yield from _path((*here, "http", "paths", index), path)


def _host(here: FieldPath, host: str) -> Problems:
    if host.startswith("*"):
        yield from named(here, host, _wildcard_domain)
    elif host:
        yield from named(here, host, names.dns1123_subdomain)


def _wildcard_domain(host: str) -> list[str]:
    """Return why a text is no domain with a wildcard for its first label."""
    rest = host.removeprefix("*.")
    if rest != host and not names.dns1123_subdomain(rest):
        return []
    return [_NO_WILDCARD]


def _path(here: FieldPath, given: Object) -> Problems:
    kind, path = given.get("pathType"), given.get("path") or ""
    place = (*here, "path")
    if kind is None:
        yield fielderrors.required((*here, "pathType"), "pathType must be specified")
    elif kind not in _PATH_TYPES:
        yield fielderrors.not_supported((*here, "pathType"), kind, _PATH_TYPES)
    elif kind == "ImplementationSpecific":
        if path and not path.startswith("/"):
            yield fielderrors.invalid(place, path, "must be an absolute path")
    else:
        if not path.startswith("/"):
            yield fielderrors.invalid(place, path, "must be an absolute path")
        for sequence in _BAD_SEQUENCES:
            if sequence in path:
                yield fielderrors.invalid(place, path, f"must not contain '{sequence}'")
        for end in _BAD_ENDS:
            if path.endswith(end):
                yield fielderrors.invalid(place, path, f"cannot end with '{end}'")
    yield from _backend((*here, "backend"), given.get("backend") or {})


def _backend(here: FieldPath, backend: Object) -> Problems:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield fielderrors.invalid(here, "", "cannot set both resource and service backends")
    elif resource is not None:
        for field in ("kind", "name"):
            if not resource.get(field):
                yield fielderrors.required((*here, "resource", field))
        if resource.get("apiGroup"):
            yield from named((*here, "resource", "apiGroup"), resource["apiGroup"], names.dns1123_subdomain)
    elif service is None:
        yield fielderrors.invalid(here, "", "resource or service backend is required")
    else:
        yield from _service_backend(here, service)


def _service_backend(here: FieldPath, service: Object) -> Problems:
    name = service.get("name") or ""
    if not name:
        yield fielderrors.required((*here, "service", "name"))
    else:
        yield from named((*here, "service", "name"), name, names.dns1123_label)
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        yield fielderrors.invalid(here, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from named((*here, "service", "port", "name"), port["name"], names.port_name)
    elif port.get("number"):
        yield from port_number((*here, "service", "port", "number"), port["number"])
    else:
        yield fielderrors.required(here, "port name or number is required")


def _status(new: Object, _old: Object) -> Problems:
    here = ("status", "loadBalancer", "ingress")
    yield from balancer_entries(here, at(new, *here) or [], has_modes=False)


def _warnings(ingress: Object) -> list[str]:
    if _OLD_CLASS not in (ingress["metadata"].get("annotations") or {}):
        return []
    return [f"annotation \"{_OLD_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


# --- classes


def _class_defaults(ingress_class: Object) -> None:
    parameters = (ingress_class.get("spec") or {}).get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def _class(ingress_class: Object) -> Problems:
    spec = ingress_class.get("spec") or {}
    controller = spec.get("controller") or ""
    here = ("spec", "controller")
    if len(controller) > 250:
        yield fielderrors.too_long(here, 250)
    domain, slash, rest = controller.partition("/")
    if not slash or not domain or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield fielderrors.required(here) if not controller else fielderrors.invalid(here, controller, detail)
    else:
        yield from named(here, domain, names.dns1123_subdomain)
    if spec.get("parameters") is not None:
        yield from _class_parameters(("spec", "parameters"), spec["parameters"])


def _class_parameters(here: FieldPath, parameters: Object) -> Problems:
    for field in ("kind", "name"):
        if not parameters.get(field):
            yield fielderrors.required((*here, field))
    if parameters.get("apiGroup"):
        yield from named((*here, "apiGroup"), parameters["apiGroup"], names.dns1123_subdomain)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope not in _SCOPES:
        yield fielderrors.not_supported((*here, "scope"), scope, _SCOPES)
    elif scope == "Namespace" and not namespace:
        yield fielderrors.required((*here, "namespace"), "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from named((*here, "namespace"), str(namespace), names.dns1123_label)
    elif scope == "Cluster" and namespace is not None:
        yield fielderrors.forbidden((*here, "namespace"), "`parameters.scope` is set to 'Cluster'")


def _class_update(new: Object, old: Object) -> Problems:
    before, after = at(old, "spec", "controller"), at(new, "spec", "controller")
    yield from checks.unchanged(("spec", "controller"), after, before)


# --- columns


def _hosts(ingress: Object) -> str:
    hosts = [rule["host"] for rule in at(ingress, "spec", "rules") or () if rule.get("host")]
    if len(hosts) > _SHOWN_HOSTS:
        return f"{','.join(hosts[:_SHOWN_HOSTS])} + {len(hosts) - _SHOWN_HOSTS} more..."
    return joined(hosts, empty="*")


def _addresses(ingress: Object) -> str:
    given = at(ingress, "status", "loadBalancer", "ingress") or ()
    return ",".join(one.get("ip") or one.get("hostname") or "" for one in given)


def _parameters(ingress_class: Object) -> str:
    parameters = at(ingress_class, "spec", "parameters")
    if not parameters:
        return NONE
    group = parameters.get("apiGroup")
    kind = f"{parameters.get('kind', '')}.{group}" if group else parameters.get("kind", "")
    return f"{kind}/{parameters.get('name', '')}"


INGRESSES = Behaviour(
    prepare_status=checks.beside_spec,
    validate=checks.listed(_ingress),
    validate_create=checks.listed(_old_class),
    validate_status=checks.listed(_status),
    warnings=_warnings,
    counts_generations=True,
    columns=(
        NAME,
        text("Class", "spec", "ingressClassName", absent=NONE),
        Column("Hosts", lambda obj, _: _hosts(obj)),
        Column("Address", lambda obj, _: _addresses(obj)),
        Column("Ports", lambda obj, _: "80, 443" if at(obj, "spec", "tls") else "80"),
        AGE,
    ),
)
INGRESS_CLASSES = Behaviour(
    defaults=_class_defaults,
    validate=checks.listed(_class),
    validate_update=checks.listed(_class_update),
    counts_generations=True,
    columns=(
        NAME,
        text("Controller", "spec", "controller"),
        Column("Parameters", lambda obj, _: _parameters(obj)),
        AGE,
    ),
)
