"""The kinds of Gateway API that are served here, as custom resource definitions with the usual fields.

Fields that are standard but not supported stay in the schemas, so that they are not silently pruned: a status says
what is not supported about them.
"""

from kubereef.gateway.objects import GROUP
from kubereef.gateway.routedefinition import http_route_schema
from kubereef.gateway.schemas import (
    Schema,
    array,
    conditions,
    hostname,
    integer,
    kind_schema,
    labels,
    listed_map,
    one_of,
    record,
    selector,
    text,
)
from kubereef.kinds.resource import Object

MANAGED_BY = {"app.kubernetes.io/managed-by": "kubereef"}

_APPROVAL = {"api-approved.kubernetes.io": "unapproved, the published kinds in Kubereef's own words"}
_VERSIONS = ("v1", "v1beta1")
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def definitions() -> list[Object]:
    """Return the definitions of GatewayClass, Gateway and HTTPRoute."""
    return [
        _definition(
            "GatewayClass",
            "gatewayclasses",
            "gc",
            _gateway_class_schema(),
            [
                _column("Controller", ".spec.controllerName"),
                _column("Accepted", '.status.conditions[?(@.type=="Accepted")].status'),
                _AGE,
                {**_column("Description", ".spec.description"), "priority": 1},
            ],
            namespaced=False,
        ),
        _definition(
            "Gateway",
            "gateways",
            "gtw",
            _gateway_schema(),
            [
                _column("Class", ".spec.gatewayClassName"),
                _column("Address", ".status.addresses[*].value"),
                _column("Programmed", '.status.conditions[?(@.type=="Programmed")].status'),
                _AGE,
            ],
        ),
        _definition(
            "HTTPRoute",
            "httproutes",
            "",
            http_route_schema(),
            [_column("Hostnames", ".spec.hostnames"), _AGE],
        ),
    ]


def _column(name: str, path: str) -> Object:
    return {"name": name, "type": "string", "jsonPath": path}


def _definition(
    kind: str, plural: str, short: str, schema: Schema, columns: list[Object], *, namespaced: bool = True
) -> Object:
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == _VERSIONS[0],
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
            "additionalPrinterColumns": columns,
        }
        for version in _VERSIONS
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "labels": MANAGED_BY, "annotations": _APPROVAL},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {**names, "categories": ["gateway-api"], **({"shortNames": [short]} if short else {})},
            "versions": versions,
        },
    }


def _gateway_class_schema() -> Schema:
    reference = record(
        {"group": text(253), "kind": text(63, 1), "name": text(253, 1), "namespace": text(63, 1)},
        "group",
        "kind",
        "name",
    )
    name = text(253, 1) | {
        "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$",
        "x-kubernetes-validations": [{"message": "Value is immutable", "rule": "self == oldSelf"}],
    }
    spec = record(
        {"controllerName": name, "description": text(64), "parametersRef": reference}, "controllerName"
    )
    status = record(
        {
            "conditions": conditions(),
            "supportedFeatures": listed_map(record({"name": text(0)}, "name"), 128, "name"),
        }
    )
    return kind_schema("Which implementation serves the Gateways that name this class.", spec, status)


def _gateway_schema() -> Schema:
    spec = record(
        {
            "gatewayClassName": text(253, 1),
            "listeners": listed_map(_listener(), 64, "name", least=1)
            | {
                "x-kubernetes-validations": [
                    {
                        "message": "Listener name must be unique within the Gateway",
                        "rule": "self.all(one, self.exists_one(other, one.name == other.name))",
                    },
                    {
                        "message": "Combination of port, protocol and hostname must be unique for each listener",
                        "rule": "self.all(one, self.exists_one(other, one.port == other.port"
                        " && one.protocol == other.protocol && (has(one.hostname) && has(other.hostname)"
                        " ? one.hostname == other.hostname : !has(one.hostname) && !has(other.hostname))))",
                    },
                    {
                        "message": "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']",
                        "rule": "self.all(one, one.protocol in ['HTTP', 'TCP', 'UDP'] ? !has(one.tls) : true)",
                    },
                ]
            },
            "addresses": array(_address(), 16),
            "infrastructure": record(
                {
                    "labels": labels(8),
                    "annotations": labels(8, 4096),
                    "parametersRef": record(
                        {"group": text(253), "kind": text(63, 1), "name": text(253, 1)},
                        "group",
                        "kind",
                        "name",
                    ),
                }
            ),
        },
        "gatewayClassName",
        "listeners",
    )
    route_kind = record({"group": text(253) | {"default": GROUP}, "kind": text(63, 1)}, "kind")
    listener_status = record(
        {
            "name": text(253, 1),
            "supportedKinds": array(route_kind, 8),
            "attachedRoutes": integer(0, 2147483647),
            "conditions": conditions(),
        },
        "attachedRoutes",
        "conditions",
        "name",
    )
    status = record(
        {
            "addresses": array(_address(), 16),
            "conditions": conditions(),
            "listeners": listed_map(listener_status, 64, "name"),
        }
    )
    return kind_schema("A place at which requests come in.", spec, status)


def _address() -> Schema:
    kind = text(253, 1) | {"default": "IPAddress"}
    return record({"type": kind, "value": text(253)})


def _listener() -> Schema:
    certificate = record(
        {
            "group": text(253) | {"default": ""},
            "kind": text(63, 1) | {"default": "Secret"},
            "name": text(253, 1),
            "namespace": text(63, 1),
        },
        "name",
    )
    tls = record(
        {
            "mode": one_of("Terminate", "Passthrough") | {"default": "Terminate"},
            "certificateRefs": array(certificate, 64),
            "options": labels(16, 4096),
        }
    )
    namespaces = record(
        {"from": one_of("All", "Selector", "Same", "None") | {"default": "Same"}, "selector": selector()}
    )
    allowed = record(
        {
            "namespaces": namespaces | {"default": {"from": "Same"}},
            "kinds": array(record({"group": text(253) | {"default": GROUP}, "kind": text(63, 1)}, "kind"), 8),
        }
    )
    return record(
        {
            "name": text(253, 1),
            "hostname": hostname(),
            "port": integer(1, 65535),
            "protocol": text(255, 1),
            "tls": tls,
            "allowedRoutes": allowed | {"default": {"namespaces": {"from": "Same"}}},
        },
        "name",
        "port",
        "protocol",
    )
