"""Service accounts' tokens: what they say, and whether the objects that they depend on are still there."""

from typing import NamedTuple

from kubereef.server.requests import AUTHENTICATED, User
from kubereef.server.tokens import ISSUER, BadToken, Claims, Signer
from kubereef.store.records import Key, Record
from kubereef.store.store import Store
from kubewire.sources import Clock
from kubewire.times import TimeError, parse_time

# For whom a token is good that opens this API server.
API_AUDIENCES = (ISSUER,)

# How long before its time a token is good: the clock may have been set back since it was made.
_EARLY = 60
# An object that is being deleted keeps its tokens a little longer, so that a Pod can say goodbye.
_PARTING = 60
_MAX_KNOWN = 4096

_EXTRA = "authentication.kubernetes.io"
_BOUND_RESOURCES = {"pod": "pods", "secret": "secrets", "node": "nodes"}


class Verified(NamedTuple):
    """Who a good token stands for, and which of the wanted audiences it is for."""

    user: User
    audiences: tuple[str, ...]


class _Known:
    """A token whose signature has been checked, with the objects it depends on as they last were."""

    __slots__ = ("claims", "needs", "seen", "user")

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self.user = _user_of(claims)
        self.needs = _needs_of(claims)
        self.seen: list[Record | None] = [None] * len(self.needs)


class AccountTokens:
    """Reads the tokens of service accounts. A signature is checked once, the objects behind it every time."""

    def __init__(self, signer: Signer, store: Store, clock: Clock) -> None:
        self.signer = signer
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def knows(self, token: str) -> bool:
        """Tell whether the signature of a token has been checked before."""
        return token in self._known

    def verify(self, token: str, audiences: tuple[str, ...] = API_AUDIENCES) -> Verified:
        """Return whom a token stands for; BadToken if it is not, or no longer, good for any of the audiences."""
        known = self._known.get(token)
        if known is None:
            known = _Known(self.signer.claims(token))
            if len(self._known) >= _MAX_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[token] = known
        claims = known.claims
        now = self._clock.now().timestamp()
        if now >= claims.expires:
            raise BadToken("service account token has expired")
        if now < claims.issued - _EARLY:
            raise BadToken("service account token is not valid yet")
        common = tuple(audience for audience in audiences if audience in claims.audiences)
        if not common:
            raise BadToken("the token is for another audience")
        for place, (key, uid) in enumerate(known.needs):
            record = self._store.get(key)
            if record is None or record is not known.seen[place]:
                known.seen[place] = _checked(record, key, uid, now)
        return Verified(known.user, common)


def _checked(record: Record | None, key: Key, uid: str, now: float) -> Record | None:
    """Return a record that is good until it changes; None if it has to be looked at again next time."""
    what = f"{key.resource} {key.namespace}/{key.name}"
    if record is None:
        raise BadToken(f"{what} has been deleted")
    metadata = record.object()["metadata"]
    if metadata.get("uid") != uid:
        raise BadToken(f"{what} has been replaced")
    deletion = metadata.get("deletionTimestamp")
    if not deletion:
        return record
    try:
        parted = parse_time(deletion).timestamp() + _PARTING < now
    except TimeError:
        parted = True
    if parted:
        raise BadToken(f"{what} has been deleted")
    return None


def _needs_of(claims: Claims) -> list[tuple[Key, str]]:
    needs = [(Key("serviceaccounts", claims.namespace, claims.account), claims.account_uid)]
    for claim, (name, uid) in claims.bound.items():
        if claim == "node" and len(claims.bound) > 1:
            continue  # it only tells where the Pod runs
        namespace = "" if claim == "node" else claims.namespace
        needs.append((Key(_BOUND_RESOURCES[claim], namespace, name), uid))
    return needs


def _user_of(claims: Claims) -> User:
    extra = {f"{_EXTRA}/credential-id": (f"JTI={claims.token_id}",)}
    for claim in ("node", "pod"):
        if claim in claims.bound:
            name, uid = claims.bound[claim]
            extra[f"{_EXTRA}/{claim}-name"] = (name,)
            if uid:
                extra[f"{_EXTRA}/{claim}-uid"] = (uid,)
    return User(
        f"system:serviceaccount:{claims.namespace}:{claims.account}",
        ("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}", AUTHENTICATED),
        claims.account_uid,
        extra,
    )
