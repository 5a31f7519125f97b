"""The client as the runtime's parts want to see it: for events, for the Lease, and to be counted."""

from collections.abc import Callable
from typing import Any

from eagleray.kube.client import Client
from eagleray.kube.requests import Request
from eagleray.kube.resources import EVENTS, LEASES, Object, Ref
from eagleray.runtime.series import ClientMetrics


class ClusterEvents:
    """Writes events."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(self, namespace: str, event: dict[str, Any]) -> object:  # noqa: ARG002 - the event says it, too
        return await self._client.create(EVENTS, event)

    async def patch(self, namespace: str, name: str, patch: dict[str, Any]) -> object:
        return await self._client.patch(EVENTS, Ref(namespace, name), patch)


class PrintedEvents:
    """Prints events instead of writing them, for an operator that is not to change anything."""

    def __init__(self, printed: Callable[[str], None]) -> None:
        self._printed = printed

    async def create(self, namespace: str, event: dict[str, Any]) -> object:
        about = event["regarding"]
        place = f"{about['kind']} {namespace}/{about['name']}"
        self._printed(f"{place}: tell {event['type']} {event['reason']}: {event['note']}")
        return event

    async def patch(self, namespace: str, name: str, patch: dict[str, Any]) -> object:  # noqa: ARG002 - a repetition
        return patch


class ClusterLeases:
    """Reads and writes Leases."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, namespace: str, name: str) -> Object:
        return await self._client.get(LEASES, namespace, name)

    async def create(self, namespace: str, lease: Object) -> Object:  # noqa: ARG002 - the Lease says it, too
        return await self._client.create(LEASES, lease)

    async def replace(self, namespace: str, lease: Object) -> Object:  # noqa: ARG002 - the Lease says it, too
        return await self._client.replace(LEASES, lease)


class RequestCounts:
    """Counts requests in the metrics that every client of the API has."""

    def __init__(self, metrics: ClientMetrics) -> None:
        self._metrics = metrics

    def answered(self, request: Request, host: str, code: int, seconds: float, size: int) -> None:
        self._metrics.answered(request.method, host, _code(code), seconds, len(request.body), size)

    def held_back(self, request: Request, host: str, seconds: float) -> None:
        self._metrics.throttled(request.method, host, seconds)

    def repeated(self, request: Request, host: str, code: int) -> None:
        self._metrics.retried(request.method, host, _code(code))


def _code(code: int) -> str:
    return str(code) if code else "<error>"
