"""The Gateway API in the test world: its kinds, as far as they are used, and somebody who takes their objects on."""

import asyncio

from kubereef.controllers.following import follow

GATEWAY_KINDS = ("Gateway", "HTTPRoute")
_GROUP = "gateway.networking.k8s.io"
_PLURALS = {"Gateway": "gateways", "HTTPRoute": "httproutes"}


def _object(**fields):
    return {"type": "object", "properties": fields}


def _list(of):
    return {"type": "array", "items": of}


_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_CONDITIONS = _list(_object(type=_TEXT, status=_TEXT, reason=_TEXT, message=_TEXT, lastTransitionTime=_TEXT))
_PARENT = _object(
    group={**_TEXT, "default": _GROUP}, kind={**_TEXT, "default": "Gateway"}, name=_TEXT, namespace=_TEXT
)
_BACKEND = _object(
    group={**_TEXT, "default": ""},
    kind={**_TEXT, "default": "Service"},
    name=_TEXT,
    namespace=_TEXT,
    port=_NUMBER,
    weight={**_NUMBER, "default": 1},
)
_MATCH = _object(path=_object(type=_TEXT, value=_TEXT))
_ALLOWED = {
    **_object(namespaces=_object(**{"from": _TEXT})),
    "default": {"namespaces": {"from": "Same"}},
}
_SCHEMAS = {
    "Gateway": _object(
        spec=_object(
            gatewayClassName=_TEXT,
            listeners=_list(_object(name=_TEXT, protocol=_TEXT, port=_NUMBER, allowedRoutes=_ALLOWED)),
        ),
        status=_object(conditions=_CONDITIONS),
    ),
    "HTTPRoute": _object(
        spec=_object(
            hostnames=_list(_TEXT),
            parentRefs=_list(_PARENT),
            rules=_list(_object(matches=_list(_MATCH), backendRefs=_list(_BACKEND))),
        ),
        status=_object(
            parents=_list(_object(parentRef=_PARENT, controllerName=_TEXT, conditions=_CONDITIONS))
        ),
    ),
}


def gateway_crd(kind):
    """Return the definition of a kind with the fields that are used, and the defaults that a real one fills in."""
    plural = _PLURALS[kind]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{_GROUP}",
            "annotations": {"api-approved.kubernetes.io": "https://example.org/not-the-real-one"},
        },
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "plural": plural,
                "singular": kind.lower(),
                "listKind": f"{kind}List",
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": _SCHEMAS[kind]},
                }
            ],
        },
    }


class ScriptedGateways:
    """Takes every Gateway and route on, unless it is told not to (`accepts`)."""

    def __init__(self, world, *, accepts=True):
        self.world = world
        self.accepts = accepts
        self.weights = []  # of every route that was ever seen, one after the other, by backend
        self._writes = set()
        self._following = []

    async def __aenter__(self):
        self._following = [
            asyncio.create_task(
                follow(self.world.api, f"/apis/{_GROUP}/v1/{plural}", _Taking(self, kind)), name=plural
            )
            for kind, plural in _PLURALS.items()
        ]
        return self

    async def __aexit__(self, *_why):
        for task in (*self._following, *self._writes):
            task.cancel()
        await asyncio.gather(*self._following, *self._writes, return_exceptions=True)

    async def accept(self):
        """Take on whatever there is, and all that comes."""
        self.accepts = True
        for kind in GATEWAY_KINDS:
            for obj in await self.world.list(kind):
                self.seen(kind, obj)

    def seen(self, kind, obj):
        if kind == "HTTPRoute":
            shares = {one["name"]: one["weight"] for one in obj["spec"]["rules"][0]["backendRefs"]}
            if not self.weights or self.weights[-1] != shares:
                self.weights.append(shares)
        if not self.accepts or obj.get("status"):
            return
        status = _taken(kind, obj)
        change = self.world.patch(
            kind,
            obj["metadata"]["name"],
            {"status": status},
            namespace=obj["metadata"]["namespace"],
            part="/status",
        )
        writing = asyncio.ensure_future(change)
        self._writes.add(writing)
        writing.add_done_callback(self._writes.discard)


class _Taking:
    """See following.Sink."""

    def __init__(self, gateways, kind):
        self._gateways = gateways
        self._kind = kind

    def replace(self, objects, revision):
        for obj in objects:
            self._gateways.seen(self._kind, obj)

    def apply(self, kind, obj, revision):
        if kind != "DELETED":
            self._gateways.seen(self._kind, obj)


def _taken(kind, obj):
    if kind == "Gateway":
        return {"conditions": _conditions("Accepted", "Programmed")}
    parent = {"parentRef": obj["spec"]["parentRefs"][0], "controllerName": "example.org/gateways"}
    return {"parents": [{**parent, "conditions": _conditions("Accepted", "ResolvedRefs")}]}


def _conditions(*kinds):
    return [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        for kind in kinds
    ]
