"""Short ways to configure webhooks and to make the requests that they are asked about."""

import json
from typing import Any

from kubereef.cluster import Cluster
from tests.kubereef.webhooks.outsider import Json, Outsider

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
CORE = "/api/v1/namespaces/default"
MAPS = f"{CORE}/configmaps"


def webhook(name: str, client: Json, **fields: Any) -> Json:
    """Return a webhook that is asked about every operation on config maps, unless told otherwise."""
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    return {
        "name": f"{name}.example.com",
        "clientConfig": client,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def rules(
    *resources: str, group: str = "", version: str = "v1", operations: str = "*", **more: str
) -> list[Json]:
    """Return one rule about some resources."""
    return [
        {
            "operations": operations.split(),
            "apiGroups": [group],
            "apiVersions": [version],
            "resources": list(resources),
            **more,
        }
    ]


def a_map(name: str = "m", labels: dict[str, str] | None = None, **data: str) -> Json:
    return {"metadata": {"name": name, "labels": labels or {}}, "data": {"a": "b", **data}}


class Refused(Exception):
    """An answer that is none, by its code and message."""

    def __init__(self, status: int, body: Json, warnings: list[str]) -> None:
        super().__init__(status, body.get("message"))
        self.status = status
        self.body = body
        self.message: str = body.get("message", "")
        self.warnings = warnings


class Api:
    """The cluster, as somebody who has webhooks in it sees it."""

    def __init__(self, cluster: Cluster, outsider: Outsider) -> None:
        self.cluster = cluster
        self.outsider = outsider
        self.warnings: list[str] = []

    async def configure(self, kind: str, *webhooks: Json, name: str = "ours") -> None:
        """Make a configuration, mutating or validating."""
        await self.send(
            "POST",
            f"{REGISTRATION}/{kind}webhookconfigurations",
            {"metadata": {"name": name}, "webhooks": webhooks},
        )

    async def ask(self, kind: str, *paths: str, **fields: Any) -> None:
        """Make a configuration of webhooks at some paths of the outsider, each named after its path."""
        found = [webhook(path.strip("/"), self.outsider.client(path), **fields) for path in paths]
        await self.configure(kind, *found)

    async def send(
        self, method: str, url: str, body: object = None, media_type: str = "application/json"
    ) -> Json:
        """Return what is answered, noting the warnings; Refused if that is a refusal."""
        raw = None if body is None else json.dumps(body).encode()
        answer = await self.cluster.client().send(method, url, raw, {"content-type": media_type})
        self.warnings = [value for name, value in answer.headers if name == "Warning"]
        is_json = answer.content_type.startswith("application/json")
        decoded: Json = (
            json.loads(answer.body) if is_json and answer.body else {"message": answer.body.decode()}
        )
        if answer.status >= 400:
            raise Refused(answer.status, decoded, self.warnings)
        return decoded

    async def create(self, body: Json, url: str = MAPS) -> Json:
        return await self.send("POST", url, body)

    async def merge(self, url: str, body: Json) -> Json:
        return await self.send("PATCH", url, body, "application/merge-patch+json")

    async def refusal(
        self, method: str, url: str, body: object = None, media_type: str = "application/json"
    ) -> Refused:
        """Return how a request is refused."""
        try:
            answer = await self.send(method, url, body, media_type)
        except Refused as refused:
            return refused
        raise AssertionError(f"{method} {url} was not refused: {answer}")
