"""The built-in resources: their facts from the published discovery documents, their ways from `behaviours`."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from kubereef.kinds.behaviours import BEHAVIOURS
from kubereef.kinds.behaviours.events import NEW_EVENTS_CONVERSION
from kubereef.kinds.resource import Behaviour, ResourceType, Subresource
from kubewire import builtin, gotypes

# What Kubereef serves. Anything else is absent from discovery, so that clients say so themselves.
SERVED: dict[str, tuple[str, ...]] = {
    "": (
        "bindings",
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
        "services",
    ),
    "admissionregistration.k8s.io": ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
    "apiextensions.k8s.io": ("customresourcedefinitions",),
    "apps": ("deployments", "replicasets"),
    "authentication.k8s.io": ("selfsubjectreviews", "tokenreviews"),
    "authorization.k8s.io": (
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
    ),
    "batch": ("jobs",),
    "coordination.k8s.io": ("leases",),
    "discovery.k8s.io": ("endpointslices",),
    "events.k8s.io": ("events",),
    "networking.k8s.io": ("ingressclasses", "ingresses", "networkpolicies"),
    "policy": ("poddisruptionbudgets",),
    "rbac.authorization.k8s.io": ("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
    "scheduling.k8s.io": ("priorityclasses",),
    "storage.k8s.io": ("storageclasses",),
}

# What every answer about a resource warns of.
_DEPRECATIONS = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}

# Discovery tells clients of another version than the one objects are shown in.
_KEPT_KINDS = {
    "customresourcedefinitions.apiextensions.k8s.io": "apiextensions.k8s.io/v1beta1/CustomResourceDefinition"
}

# One set of objects under two names.
_STORED_AS = {"events.events.k8s.io": "events"}
_CONVERSIONS = {"events.events.k8s.io": NEW_EVENTS_CONVERSION}


def builtin_types() -> list[ResourceType]:
    """Return the built-in resources, in the order of discovery."""
    definitions = _definitions_by_kind()
    types = []
    for group, version, facts in _discovered():
        if version != "v1" or facts["name"] not in SERVED.get(group, ()):
            continue
        resource = f"{facts['name']}.{group}" if group else facts["name"]
        kind = facts["kind"]
        definition = definitions.get((group, version, kind), "")
        types.append(
            ResourceType(
                group=group,
                version=version,
                kind=kind,
                plural=facts["name"],
                singular=facts["singular"],
                namespaced=facts["namespaced"],
                verbs=frozenset(facts["verbs"]),
                short_names=tuple(facts["shortNames"]),
                categories=tuple(facts["categories"]),
                subresources=facts["subresources"],
                definition=definition,
                behaviour=_typed(BEHAVIOURS.get(resource, Behaviour()), definition),
                stored_as=_STORED_AS.get(resource, ""),
                conversion=_CONVERSIONS.get(resource),
                deprecation=_DEPRECATIONS.get(resource, ""),
                kept_kind=_KEPT_KINDS.get(resource),
            )
        )
    return types


def _typed(behaviour: Behaviour, definition: str) -> Behaviour:
    """Return a behaviour with what the Go type of its kind says about objects, where it has no way of its own."""
    if not definition:
        return behaviour
    plain = Behaviour()
    if behaviour.read is plain.read:
        behaviour = behaviour._replace(read=lambda obj: gotypes.read(definition, obj))
    if behaviour.first_status is plain.first_status:
        behaviour = behaviour._replace(first_status=lambda _obj: gotypes.empty(definition).get("status"))
    return behaviour


def is_builtin_kind(api_version: str, kind: str) -> bool:
    """Tell whether Kubernetes itself defines a kind, served here or not."""
    group, _, version = api_version.rpartition("/")
    return (group, version, kind) in _definitions_by_kind()


@cache
def _definitions_by_kind() -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for name, definition in builtin.definitions().items():
        kinds: Any = definition.get("x-kubernetes-group-version-kind", ())
        if len(kinds) == 1:
            found[(kinds[0]["group"], kinds[0]["version"], kinds[0]["kind"])] = name
    return found


def _discovered() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield group, version and facts of every resource that the published documents know."""
    core = _document("discovery-core-1.36.json")["resources"]
    for entry in core:
        if "/" not in entry["name"]:
            parts = [part for part in core if part["name"].startswith(f"{entry['name']}/")]
            yield (
                "",
                "v1",
                {
                    "name": entry["name"],
                    "kind": entry["kind"],
                    "singular": entry["singularName"],
                    "namespaced": entry["namespaced"],
                    "verbs": entry["verbs"],
                    "shortNames": entry.get("shortNames", ()),
                    "categories": entry.get("categories", ()),
                    "subresources": {part["name"].partition("/")[2]: _core_part(part) for part in parts},
                },
            )
    for group in _document("discovery-1.36.json")["items"]:
        for version in group["versions"]:
            for entry in version["resources"]:
                yield (
                    group["metadata"]["name"],
                    version["version"],
                    {
                        "name": entry["resource"],
                        "kind": entry["responseKind"]["kind"],
                        "singular": entry["singularResource"],
                        "namespaced": entry["scope"] == "Namespaced",
                        "verbs": entry["verbs"],
                        "shortNames": entry.get("shortNames", ()),
                        "categories": entry.get("categories", ()),
                        "subresources": {
                            part["subresource"]: _part(part) for part in entry.get("subresources", ())
                        },
                    },
                )


def _core_part(entry: dict[str, Any]) -> Subresource:
    name = entry["name"].partition("/")[2]
    return Subresource(
        name, frozenset(entry["verbs"]), entry.get("group", ""), entry.get("version", ""), entry["kind"]
    )


def _part(entry: dict[str, Any]) -> Subresource:
    kind = entry["responseKind"]
    return Subresource(
        entry["subresource"], frozenset(entry["verbs"]), kind["group"], kind["version"], kind["kind"]
    )


def _document(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(files("kubereef").joinpath("data", name).read_bytes())
    return document
