"""POST serviceaccounts/token: a signed token for an account, for some audiences, for some time."""

from functools import partial
from typing import NamedTuple

import msgspec

from kubereef.kinds.resource import Behaviour, Object, ResourceType
from kubereef.server.accounts import API_AUDIENCES
from kubereef.server.calls import Call
from kubereef.server.incoming import incoming_object
from kubereef.server.media import written
from kubereef.server.options import WriteOptions
from kubereef.server.requests import Response
from kubereef.server.tokens import Claims, Signer
from kubereef.server.webhooks.admitting import admitted
from kubereef.server.writing import missing
from kubereef.store.records import Key
from kubewire import errors, fielderrors, gotypes
from kubewire.times import format_time

DEFAULT_SECONDS = 3600
_LEAST = 600
_MOST = 1 << 32
# The life that the mounted tokens of Pods ask for. Programs that read such a token only once are let in for a year,
# as Kubernetes does; the token says from when on they are late.
MOUNTED_SECONDS = 3607
_EXTENDED_SECONDS = 365 * 24 * 3600

TOKEN_REQUEST = ResourceType(
    group="authentication.k8s.io",
    version="v1",
    kind="TokenRequest",
    plural="tokenrequests",
    singular="tokenrequest",
    namespaced=True,
    verbs=frozenset(("create",)),
    behaviour=Behaviour(read=partial(gotypes.read, "io.k8s.api.authentication.v1.TokenRequest")),
)


class _Reference(msgspec.Struct, rename="camel", omit_defaults=True):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    audiences: list[str] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: _Reference | None = None


class _Bound(NamedTuple):
    """The object that a token is bound to, by claim."""

    claim: str
    name: str
    uid: str
    node: tuple[str, str] | None = None


class TokenRequests:
    """Issues tokens."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    async def create(self, call: Call) -> Response:
        """Answer with a token for the account in the path."""
        options = WriteOptions.of(call.request, "CreateOptions")
        asked, _ = incoming_object(call.request, TOKEN_REQUEST, options.validation)
        await admitted(call, TOKEN_REQUEST, asked, dry_run=options.dry_run)
        try:
            spec = msgspec.convert(asked.get("spec") or {}, _Spec)
        except msgspec.ValidationError as bad:
            raise errors.bad_request(f"TokenRequest cannot be read: {bad}") from None
        record = call.store.latest(call.key)
        if record is None:
            raise missing(call.resource_type, call.target.name)
        account = record.object()["metadata"]
        _check_metadata(asked["metadata"], account)
        seconds = DEFAULT_SECONDS if spec.expiration_seconds is None else spec.expiration_seconds
        _check_duration(seconds)
        audiences = tuple(spec.audiences or API_AUDIENCES)
        bound = _bound(call, spec.bound_object_ref) if spec.bound_object_ref else None
        now = call.around.clock.now()
        issued = int(now.timestamp())
        extends = seconds == MOUNTED_SECONDS and set(audiences) <= set(API_AUDIENCES)
        claims = Claims(
            account["namespace"],
            account["name"],
            account["uid"],
            audiences,
            issued,
            issued + (_EXTENDED_SECONDS if extends else seconds),
            call.around.entropy.uid(),
            _bound_claims(bound),
            issued + seconds if extends else 0,
        )
        reference = spec.bound_object_ref
        answer: Object = {
            "kind": TOKEN_REQUEST.kind,
            "apiVersion": TOKEN_REQUEST.api_version,
            "metadata": {
                "name": account["name"],
                "namespace": account["namespace"],
                "uid": account["uid"],
                "creationTimestamp": format_time(now),
            },
            "spec": {
                "audiences": list(audiences),
                "expirationSeconds": seconds,
                "boundObjectRef": msgspec.to_builtins(reference) if reference else None,
            },
            "status": {
                "token": self._signer.token(claims),
                "expirationTimestamp": format_time(now.fromtimestamp(issued + seconds, now.tzinfo)),
            },
        }
        form = call.wish.form
        return Response(201, written(answer, form), form.media_type)


def _check_metadata(given: Object, account: Object) -> None:
    if given.get("name") not in (None, "", account["name"]):
        detail = "must match the service account name if specified"
        problem = fielderrors.invalid(("metadata", "name"), given["name"], detail)
        raise errors.invalid("TokenRequest", account["name"], [problem], group="authentication.k8s.io")
    if given.get("namespace") not in (None, "", account["namespace"]):
        raise errors.bad_request("must specify matching namespace")
    uid = given.get("uid")
    if uid and uid != account["uid"]:
        because = (
            f"the UID in the token request ({uid}) does not match the UID of the service account"
            f" ({account['uid']})"
        )
        group = TOKEN_REQUEST.group
        raise errors.conflict(TOKEN_REQUEST.kind, account["name"], because, group=group)


def _check_duration(seconds: int) -> None:
    at = ("spec", "expirationSeconds")
    problems = []
    if seconds < _LEAST:
        detail = "may not specify a duration less than 10 minutes"
        problems.append(fielderrors.invalid(at, seconds, detail))
    if seconds > _MOST:
        detail = "may not specify a duration larger than 2^32 seconds"
        problems.append(fielderrors.invalid(at, seconds, detail))
    if problems:
        raise errors.invalid(TOKEN_REQUEST.kind, "", problems, group=TOKEN_REQUEST.group)


def _bound(call: Call, reference: _Reference) -> _Bound:
    """Return the object that a reference names, if it is there and is the one that is meant."""
    kind = reference.kind
    if reference.api_version != "v1" or kind not in ("Pod", "Secret", "Node"):
        raise errors.bad_request(f"cannot bind token to object of type {_described(reference)}")
    plural = f"{kind.lower()}s"
    namespace = "" if kind == "Node" else call.namespace
    record = call.store.latest(Key(plural, namespace, reference.name))
    if record is None:
        raise errors.not_found(plural, reference.name)
    obj = record.object()
    uid = obj["metadata"]["uid"]
    node = None
    if kind == "Pod":
        spec = obj.get("spec") or {}
        if spec.get("serviceAccountName") != call.target.name:
            raise errors.bad_request(
                f'cannot bind token for serviceaccount "{call.target.name}" to pod running with different'
                " serviceaccount name."
            )
        node = _node_of(call, spec.get("nodeName") or "")
    if reference.uid and reference.uid != uid:
        because = (
            f"the UID in the bound object reference ({reference.uid}) does not match the UID in record."
            " The object might have been deleted and then recreated"
        )
        raise errors.conflict(kind, reference.name, because)
    return _Bound(kind.lower(), reference.name, uid, node)


def _node_of(call: Call, name: str) -> tuple[str, str] | None:
    if not name:
        return None
    record = call.store.latest(Key("nodes", "", name))
    return name, record.object()["metadata"]["uid"] if record else ""


def _bound_claims(bound: _Bound | None) -> dict[str, tuple[str, str]]:
    if bound is None:
        return {}
    claims = {bound.claim: (bound.name, bound.uid)}
    if bound.node is not None:
        claims["node"] = bound.node
    return claims


def _described(reference: _Reference) -> str:
    """Return a group, version and kind as Go prints them."""
    group, _, version = reference.api_version.rpartition("/")
    return f"{group}/{version}, Kind={reference.kind}"
