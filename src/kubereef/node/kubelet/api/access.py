"""Who asks a kubelet, and what they may do: certificates of the cluster, and the API server's own word for the rest."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kubereef.server.peers import Peer
from kubereef.server.requests import User
from kubewire import errors
from kubewire.sources import Clock

T = TypeVar("T")

# How long the API server's answers are good for, as kubelets have it.
KNOWN_SECONDS = 120.0
ALLOWED_SECONDS = 300.0
DENIED_SECONDS = 30.0
_MOST_ENTRIES = 1024

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - an address
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# The first path of a request and the parts of the node that it is about. Any of them is enough; the rest is `proxy`.
_PARTS = {
    "pods": ("pods", "proxy"),
    "runningpods": ("pods", "proxy"),
    "healthz": ("healthz", "proxy"),
    "configz": ("configz", "proxy"),
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
}


class Denied(Exception):
    """A request is not let in: 401 when nobody knows who asks, 403 when they may not."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Reviewer(Protocol):
    """The part of a client that asking for reviews takes."""

    async def create(self, url: str, body: object) -> dict[str, Any]: ...


class Access:
    """Lets requests in, or raises Denied. Answers of the API server are remembered for a while."""

    def __init__(self, client: Reviewer, node: str, clock: Clock) -> None:
        self._client = client
        self._node = node
        self._clock = clock
        self._users: _Remembered[User | None] = _Remembered(clock)
        self._verdicts: _Remembered[bool] = _Remembered(clock)

    async def check(self, peer: Peer, headers: Mapping[str, str], method: str, path: str) -> User:
        """Return who asks, if they may do that."""
        user = await self._user(peer, headers)
        verb = _VERBS.get(method, method.lower())
        parts = _PARTS.get(path.split("/", 2)[1], ("proxy",))
        for part in parts:
            if await self._may(user, verb, part):
                return user
        subresources = " ".join(parts)
        message = (
            f"Forbidden (user={user.name}, verb={verb}, resource=nodes, subresource(s)=[{subresources}])"
        )
        raise Denied(403, message)

    async def _user(self, peer: Peer, headers: Mapping[str, str]) -> User:
        if peer.user is not None and self._clock.now().timestamp() < peer.expires:
            return peer.user
        kind, _, token = headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer" and token.strip():
            user = await self._user_of(token.strip())
            if user is not None:
                return user
        raise Denied(401, "Unauthorized")

    async def _user_of(self, token: str) -> User | None:
        key = hashlib.sha256(token.encode()).hexdigest()  # so that no token stays in memory
        if (known := self._users.get(key)) is not None:
            return known.value
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        status = await self._review(_TOKEN_REVIEWS, review)
        user = _reviewed_user(status) if status.get("authenticated") is True else None
        self._users.put(key, user, KNOWN_SECONDS if user is not None else DENIED_SECONDS)
        return user

    async def _may(self, user: User, verb: str, part: str) -> bool:
        key = repr((user.name, user.uid, user.groups, sorted(user.extra.items()), verb, part))
        if (known := self._verdicts.get(key)) is not None:
            return known.value
        attributes = {
            "verb": verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": part,
            "name": self._node,
        }
        spec: dict[str, Any] = {
            "user": user.name,
            "groups": list(user.groups),
            "extra": {name: list(values) for name, values in user.extra.items()},
            "resourceAttributes": attributes,
        }
        if user.uid:
            spec["uid"] = user.uid
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        allowed = (await self._review(_ACCESS_REVIEWS, review)).get("allowed") is True
        self._verdicts.put(key, allowed, ALLOWED_SECONDS if allowed else DENIED_SECONDS)
        return allowed

    async def _review(self, url: str, review: object) -> dict[str, Any]:
        try:
            return (await self._client.create(url, review)).get("status") or {}
        except errors.ApiError as refusal:
            # Nobody is let in whom nobody vouches for, and nothing is remembered of it.
            raise Denied(500, f"the API server cannot be asked who may do this: {refusal}") from refusal


class _Entry(NamedTuple, Generic[T]):
    value: T
    until: float


class _Remembered(Generic[T]):
    """Values that are good for some time; of too many, the oldest are forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()

    def get(self, key: str) -> "_Entry[T] | None":
        entry = self._entries.get(key)
        return entry if entry is not None and self._clock.monotonic() < entry.until else None

    def put(self, key: str, value: T, seconds: float) -> None:
        self._entries[key] = _Entry(value, self._clock.monotonic() + seconds)
        self._entries.move_to_end(key)
        if len(self._entries) > _MOST_ENTRIES:
            self._entries.popitem(last=False)


def _reviewed_user(status: Mapping[str, Any]) -> User:
    user = status.get("user") or {}
    extra = {name: tuple(values) for name, values in (user.get("extra") or {}).items()}
    return User(user.get("username") or "", tuple(user.get("groups") or ()), user.get("uid") or "", extra)
