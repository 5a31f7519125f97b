"""get and list."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.answers import Wish, list_response, object_response
from kubereef.server.media import decoded_json
from kubereef.server.requests import Request, Response
from kubereef.server.selection import Selection
from kubereef.store.errors import Compacted, FutureRevision
from kubereef.store.records import Key, Record, encode
from kubereef.store.store import Store
from kubewire import errors, fielderrors
from kubewire.gotext import quote
from kubewire.gotypes import kind_of

_MATCHES = ("Exact", "NotOlderThan", "")
_PAGE_VERSION = "meta.k8s.io/v1"
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_-]")


class Page(NamedTuple):
    """Where a list goes on: the moment it shows, and the first key to show."""

    revision: int
    start: tuple[str, str]

    def token(self) -> str:
        value = {"v": _PAGE_VERSION, "rv": self.revision, "start": "/".join(self.start)}
        return base64.urlsafe_b64encode(encode(value)).decode().rstrip("=")

    @classmethod
    def of(cls, token: str) -> "Page":
        try:
            return cls._read(token)
        except ValueError as bad:
            raise errors.bad_request(f"invalid continue token: continue key is not valid: {bad}") from None

    @classmethod
    def _read(cls, token: str) -> "Page":
        """Return the page of a token; ValueError says why it is none."""
        if foreign := _NOT_BASE64.search(token):
            raise ValueError(f"illegal base64 data at input byte {foreign.start()}")
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except binascii.Error:
            raise ValueError(f"illegal base64 data at input byte {len(token) - 1}") from None
        value = decoded_json(raw).value
        if not isinstance(value, dict):
            raise ValueError(
                f"json: cannot unmarshal {kind_of(value)} into Go value of type storage.continueToken"
            )
        version, revision, start = value.get("v", ""), value.get("rv"), value.get("start")
        if version != _PAGE_VERSION:
            raise ValueError(f"server does not recognize this encoded version {version}")
        if not isinstance(revision, int) or revision <= 0:
            raise ValueError(f"incorrect encoded start resourceVersion (version {_PAGE_VERSION})")
        if not isinstance(start, str) or ".." in start.split("/"):
            raise ValueError(str(start))
        namespace, _, name = start.partition("/")
        return cls(revision, (namespace, name))


def get(store: Store, resource_type: ResourceType, key: Key, request: Request, wish: Wish) -> Response:
    """Answer with one object as it is now."""
    if wanted := request.parameter("resourceVersion"):
        revision = parse_revision(wanted, errors.ApiError)
        _check_future(revision, store.revision)
    record = store.get(key)
    if record is None:
        raise errors.not_found(resource_type.plural, key.name, group=resource_type.group)
    return object_response(resource_type, record.data, wish)


def list_objects(store: Store, selection: Selection, request: Request, wish: Wish) -> Response:
    """Answer with the objects that are selected, or with one page of them."""
    _check_list_options(request)
    # What comes from memory, as version 0 lets it, comes whole.
    limit = 0 if request.parameter("resourceVersion") == "0" else number(request, "limit") or 0
    token = request.parameter("continue")
    page = Page.of(token) if token else None
    if page and request.parameter("resourceVersion") not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    moment = page.revision if page else _moment(store, request)
    records = _records(store, selection, moment, page)
    chosen = list(records if limit <= 0 else islice(records, limit))
    metadata: Object = {"resourceVersion": str(moment)}
    following = next(records, None) if limit > 0 else None
    if following is not None:
        metadata["continue"] = Page(moment, (following.key.namespace, following.key.name)).token()
        if selection.is_everything:
            metadata["remainingItemCount"] = 1 + sum(1 for _ in records)
    return list_response(selection.resource_type, chosen, metadata, wish)


def selected_records(store: Store, selection: Selection) -> Iterator[Record]:
    """Yield the present records that are selected."""
    records = store.records(selection.resource_type.storage, selection.namespace or None)
    return records if selection.is_everything else filter(selection.has, records)


def _records(store: Store, selection: Selection, moment: int, page: Page | None) -> Iterator[Record]:
    try:
        records: Iterable[Record] = store.records_at(
            selection.resource_type.storage, selection.namespace or None, moment
        )
    except Compacted as old:
        if page is None:
            raise errors.expired(
                f"The resourceVersion for the provided list is too old: {old.wanted}"
            ) from None
        raise errors.expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new "
            "list without the continue parameter, or use the continue token in this response to retrieve the "
            "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
            "that were created, modified, or deleted between the time the first chunk was returned and now may show "
            "up in the list."
        ) from None
    except FutureRevision:
        raise errors.bad_request("continue key is not valid: it is of the future") from None
    if page:
        records = (record for record in records if (record.key.namespace, record.key.name) >= page.start)
    return iter(records) if selection.is_everything else filter(selection.has, records)


def _moment(store: Store, request: Request) -> int:
    """Return the revision that a list shows."""
    wanted = request.parameter("resourceVersion")
    if not wanted:
        return store.revision
    try:
        revision = parse_revision(wanted, errors.BadRequest)
    except errors.BadRequest as bad:
        raise errors.bad_request(f"invalid resource version: {bad.message}") from None
    _check_future(revision, store.revision)
    exact = request.parameter("resourceVersionMatch") == "Exact"
    # Before versions had a match, a limited list at a version meant exactly that version.
    legacy = (
        not request.parameter("resourceVersionMatch") and (number(request, "limit") or 0) > 0 and revision > 0
    )
    return revision if exact or legacy else store.revision


def parse_revision(text: str, refusal: type[errors.ApiError]) -> int:
    """Return a resource version as a number, or refuse it in the server's words."""
    because = "invalid syntax"
    if text.isascii() and text.isdigit():
        # Python refuses to read thousands of digits, and none of those would fit.
        if len(text.lstrip("0")) <= 20 and (revision := int(text)) < 2**64:
            return revision
        because = "value out of range"
    raise refusal(
        f"resourceVersion: Invalid value: {quote(text)}: strconv.ParseUint: parsing {quote(text)}: {because}"
    )


def number(request: Request, name: str) -> int | None:
    """Return a query parameter that is a number."""
    text = request.parameter(name)
    if not text:
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise errors.bad_request(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    return int(text)


def _check_future(revision: int, current: int) -> None:
    if revision > current:
        cause = errors.Cause("ResourceVersionTooLarge", "Too large resource version")
        raise errors.Timeout(
            f"Too large resource version: {revision}, current: {current}",
            details=errors.Details(causes=(cause,), retry_after_seconds=1),
        )


def _check_list_options(request: Request) -> None:
    problems: list[fielderrors.FieldError] = []
    match, version = request.parameter("resourceVersionMatch"), request.parameter("resourceVersion")
    at = ("resourceVersionMatch",)
    if "resourceVersionMatch" in request.query and match:
        if not version:
            problems.append(
                fielderrors.forbidden(
                    at, "resourceVersionMatch is forbidden unless resourceVersion is provided"
                )
            )
        if request.parameter("continue"):
            problems.append(
                fielderrors.forbidden(at, "resourceVersionMatch is forbidden when continue is provided")
            )
        if match not in _MATCHES:
            problems.append(fielderrors.not_supported(at, match, _MATCHES))
        if match == "Exact" and version == "0":
            problems.append(
                fielderrors.forbidden(at, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if "sendInitialEvents" in request.query:
        problems.append(
            fielderrors.forbidden(("sendInitialEvents",), "sendInitialEvents is forbidden for list")
        )
    if problems:
        raise errors.invalid("ListOptions", "", problems, group="meta.k8s.io")
