"""The schema of HTTPRoute."""

from kubereef.gateway.objects import GROUP
from kubereef.gateway.schemas import (
    Schema,
    array,
    conditions,
    hostname,
    integer,
    kind_schema,
    listed_map,
    one_of,
    record,
    text,
)

_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_FILTERS = {
    "RequestHeaderModifier": "requestHeaderModifier",
    "ResponseHeaderModifier": "responseHeaderModifier",
    "RequestMirror": "requestMirror",
    "RequestRedirect": "requestRedirect",
    "URLRewrite": "urlRewrite",
    "ExtensionRef": "extensionRef",
}
_HEADER_NAME = {"pattern": r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$"}
_DURATION = {"type": "string", "pattern": r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"}
_DEFAULT_PATH = {"type": "PathPrefix", "value": "/"}
_DEFAULT_MATCHES = [{"path": _DEFAULT_PATH}]


def http_route_schema() -> Schema:
    """Return the schema of HTTPRoute: requests that look alike, and the Services that they go to."""
    spec = record(
        {
            "parentRefs": array(_parent(), 32),
            "hostnames": array(hostname(), 16),
            "rules": array(_rule(), 16, 1) | {"default": [{"matches": _DEFAULT_MATCHES}]},
        }
    )
    parent_status = record(
        {"parentRef": _parent(), "controllerName": text(253, 1), "conditions": conditions()},
        "conditions",
        "controllerName",
        "parentRef",
    )
    status = record({"parents": array(parent_status, 32)}, "parents")
    return kind_schema("Where requests go that come through Gateways.", spec, status)


def _parent() -> Schema:
    return record(
        {
            "group": text(253) | {"default": GROUP},
            "kind": text(63, 1) | {"default": "Gateway"},
            "namespace": text(63, 1),
            "name": text(253, 1),
            "sectionName": text(253, 1),
            "port": integer(1, 65535),
        },
        "name",
    )


def _rule() -> Schema:
    timeouts = record({"request": _DURATION, "backendRequest": _DURATION}) | {
        "x-kubernetes-validations": [
            {
                "message": "backendRequest timeout cannot be longer than request timeout",
                "rule": "!(has(self.request) && has(self.backendRequest) && duration(self.request) != duration('0s')"
                " && duration(self.backendRequest) > duration(self.request))",
            }
        ]
    }
    backend = _service()
    backend["properties"] |= {
        "weight": integer(0, 1000000) | {"default": 1},
        "filters": array(_filter(), 16),
    }
    return record(
        {
            "name": text(253, 1),
            "matches": array(_match(), 64) | {"default": _DEFAULT_MATCHES},
            "filters": array(_filter(), 16),
            "backendRefs": array(backend, 16),
            "timeouts": timeouts,
        }
    )


def _match() -> Schema:
    path = record(
        {
            "type": one_of("Exact", "PathPrefix", "RegularExpression") | {"default": "PathPrefix"},
            "value": text(1024) | {"default": "/"},
        }
    ) | {
        "default": _DEFAULT_PATH,
        "x-kubernetes-validations": [
            {
                "message": "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']",
                "rule": "self.type == 'RegularExpression' || self.value.startsWith('/')",
            }
        ],
    }
    kind = one_of("Exact", "RegularExpression") | {"default": "Exact"}
    name = text(256, 1) | _HEADER_NAME
    header = record({"type": kind, "name": name, "value": text(4096, 1)}, "name", "value")
    parameter = record({"type": kind, "name": name, "value": text(1024, 1)}, "name", "value")
    return record(
        {
            "path": path,
            "method": one_of(*_METHODS),
            "headers": listed_map(header, 16, "name"),
            "queryParams": listed_map(parameter, 16, "name"),
        }
    )


def _service() -> Schema:
    return record(
        {
            "group": text(253) | {"default": ""},
            "kind": text(63, 1) | {"default": "Service"},
            "namespace": text(63, 1),
            "name": text(253, 1),
            "port": integer(1, 65535),
        },
        "name",
    ) | {
        "x-kubernetes-validations": [
            {
                "message": "Must have port for Service reference",
                "rule": "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true",
            }
        ]
    }


def _filter() -> Schema:
    header = record({"name": text(256, 1) | _HEADER_NAME, "value": text(4096, 1)}, "name", "value")
    headers = record(
        {
            "set": listed_map(header, 16, "name"),
            "add": listed_map(header, 16, "name"),
            "remove": array(text(0), 16) | {"x-kubernetes-list-type": "set"},
        }
    )
    path = record(
        {
            "type": one_of("ReplaceFullPath", "ReplacePrefixMatch"),
            "replaceFullPath": text(1024),
            "replacePrefixMatch": text(1024),
        },
        "type",
    )
    redirect = record(
        {
            "scheme": one_of("http", "https"),
            "hostname": hostname(wildcard=False),
            "path": path,
            "port": integer(1, 65535),
            "statusCode": {"type": "integer", "enum": [301, 302, 303, 307, 308], "default": 302},
        }
    )
    fraction = record(
        {"numerator": integer(0, 2147483647), "denominator": integer(1, 2147483647)}, "numerator"
    )
    mirror = record(
        {"backendRef": _service(), "percent": integer(0, 100), "fraction": fraction}, "backendRef"
    )
    extension = record(
        {"group": text(253), "kind": text(63, 1), "name": text(253, 1)}, "group", "kind", "name"
    )
    return record(
        {
            "type": one_of(*_FILTERS),
            "requestHeaderModifier": headers,
            "responseHeaderModifier": headers,
            "requestMirror": mirror,
            "requestRedirect": redirect,
            "urlRewrite": record({"hostname": hostname(wildcard=False), "path": path}),
            "extensionRef": extension,
        },
        "type",
    ) | {
        "x-kubernetes-validations": [
            {
                "message": "the field of the filter's type must be specified, and no other",
                "rule": " && ".join(
                    f"has(self.{field}) == (self.type == '{kind}')" for kind, field in _FILTERS.items()
                ),
            }
        ]
    }
