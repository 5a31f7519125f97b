"""What the API server answers when it refuses: typed errors from and to `Status` objects.

Catch by meaning (`except NotFound`); build what a server answers with the functions below, whose
messages are the API server's own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from kubewire.gotext import quote

if TYPE_CHECKING:
    from kubewire.fielderrors import FieldError

# Whoever sends thousands of wrong values is not helped by an answer a hundred times as long as what was sent.
MAX_PROBLEMS: Final = 1000
MAX_PROBLEM_TEXT: Final = 1024 * 1024


class Cause(NamedTuple):
    """One of the reasons behind a refusal, often a field that is wrong."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(NamedTuple):
    """What a refusal is about. For most errors `kind` holds the resource's name (`pods`), as on the wire."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0

    @classmethod
    def of(cls, details: object) -> "Details | None":
        """Return the details of a decoded Status; what has the wrong type counts as missing."""
        if not isinstance(details, Mapping):
            return None
        causes = details.get("causes")
        retry_after = details.get("retryAfterSeconds")
        return cls(
            name=_text(details, "name"),
            group=_text(details, "group"),
            kind=_text(details, "kind"),
            uid=_text(details, "uid"),
            causes=tuple(
                Cause(_text(cause, "reason"), _text(cause, "message"), _text(cause, "field"))
                for cause in (causes if isinstance(causes, list) else ())
                if isinstance(cause, Mapping)
            ),
            retry_after_seconds=retry_after if isinstance(retry_after, int) else 0,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the details as they stand in a Status: without what is empty."""
        fields: dict[str, Any] = {
            "name": self.name,
            "group": self.group,
            "kind": self.kind,
            "uid": self.uid,
            "causes": [_without_empty(cause._asdict()) for cause in self.causes],
            "retryAfterSeconds": self.retry_after_seconds,
        }
        return _without_empty(fields)


class ApiError(Exception):
    """A request that the API server refused, or that failed there.

    Subclasses stand for a reason. The class itself is raised when neither the reason nor the HTTP
    code is known, so `reason` may be empty or a word that this module has never heard of.
    """

    default_code: ClassVar[int] = 500
    default_reason: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        details: Details | None = None,
        code: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.code = self.default_code if code is None else code
        self.reason = self.default_reason if reason is None else reason

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The single problems behind the refusal, if the server listed any."""
        return self.details.causes if self.details else ()

    @property
    def is_of_a_going_namespace(self) -> bool:
        """Whether nothing can be created there any more, because the namespace is being deleted."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)

    @property
    def retry_after_seconds(self) -> int:
        """How long the server asks to wait before the next try; 0 if it says nothing of it."""
        return self.details.retry_after_seconds if self.details else 0

    def status(self) -> dict[str, Any]:
        """Return the Status object that tells a client of this error."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details.to_dict()
        status["code"] = self.code
        return status


class BadRequest(ApiError):
    """The request itself makes no sense to the server."""

    default_code, default_reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """The server does not know who asks."""

    default_code, default_reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """The one who asks may not do this, or a policy does not let anyone."""

    default_code, default_reason = 403, "Forbidden"


class NotFound(ApiError):
    """There is no such object or resource."""

    default_code, default_reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    """The resource does not support this action."""

    default_code, default_reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    """The server cannot answer in any format that the client accepts."""

    default_code, default_reason = 406, "NotAcceptable"


class Conflict(ApiError):
    """The object has changed since it was read, or someone else owns a field."""

    default_code, default_reason = 409, "Conflict"


class AlreadyExists(ApiError):
    """There is an object of this name already."""

    default_code, default_reason = 409, "AlreadyExists"


class Gone(ApiError):
    """What was asked for is no longer there and will not come back."""

    default_code, default_reason = 410, "Gone"


class Expired(Gone):
    """The resource version or continue token is too old: list again."""

    default_reason = "Expired"


class RequestEntityTooLarge(ApiError):
    """The body of the request is larger than the server takes."""

    default_code, default_reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The server cannot read the format of the request's body."""

    default_code, default_reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks the rules of its kind; the causes name the fields."""

    default_code, default_reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """The server is busy, or a disruption budget says not now: try again later."""

    default_code, default_reason = 429, "TooManyRequests"


class InternalError(ApiError):
    """Something broke inside the server."""

    default_code, default_reason = 500, "InternalError"


class ServerTimeout(ApiError):
    """The server could not finish in time and changed nothing: try again."""

    default_code, default_reason = 500, "ServerTimeout"


class ServiceUnavailable(ApiError):
    """The server is not ready to answer."""

    default_code, default_reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    """The request took too long; what it asked for may still happen."""

    default_code, default_reason = 504, "Timeout"


_CLASSES: Final[tuple[type[ApiError], ...]] = (
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    Conflict,
    AlreadyExists,
    Gone,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
)
_BY_REASON: Final = {error.default_reason: error for error in _CLASSES}
# The first class of a code stands for it: an unexplained 409 is a Conflict, an unexplained 500 an InternalError.
_BY_CODE: Final = {error.default_code: error for error in reversed(_CLASSES)}

# What is said of an answer that explains nothing itself.
_UNEXPLAINED: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: (
        "the server was unable to return a response in the time allotted, but may still be processing"
        " the request"
    ),
}


def from_status(status: Mapping[str, Any] | None, http_code: int) -> ApiError:
    """Return the error that an answer means: typed by the Status' reason, else by the HTTP code.

    Without a Status, as from a proxy's page of HTML, the message is made of the HTTP code.
    """
    if status is None or status.get("kind") != "Status":
        return unexplained(http_code)
    reason, message = _text(status, "reason"), _text(status, "message")
    code = status.get("code")
    if not isinstance(code, int) or not code:
        code = http_code
    error = _BY_REASON.get(reason) or _class_of(code)
    message = message or unexplained(code).message
    return error(message, details=Details.of(status.get("details")), code=code, reason=reason)


def unexplained(code: int) -> ApiError:
    """Return the error of a response that says nothing but its HTTP code."""
    without_more = f"the server responded with the status code {code} but did not return more information"
    return _class_of(code)(_UNEXPLAINED.get(code, without_more), details=Details(), code=code)


def not_found(resource: str, name: str, *, group: str = "") -> NotFound:
    """`pods "x" not found`."""
    return NotFound(
        f"{_qualified(resource, group)} {quote(name)} not found",
        details=Details(name, group, resource),
    )


def already_exists(resource: str, name: str, *, group: str = "") -> AlreadyExists:
    """`pods "x" already exists`."""
    return AlreadyExists(
        f"{_qualified(resource, group)} {quote(name)} already exists",
        details=Details(name, group, resource),
    )


def generated_name_taken(
    resource: str, name: str, *, group: str = "", retry_after_seconds: int = 1
) -> AlreadyExists:
    """The answer to a `generateName` for which no free name was found."""
    because = "the server was not able to generate a unique name for the object"
    return AlreadyExists(
        f"{_qualified(resource, group)} {quote(name)} already exists, {because}",
        details=Details(name, group, resource, retry_after_seconds=retry_after_seconds),
    )


def conflict(resource: str, name: str, because: str, *, group: str = "") -> Conflict:
    """`Operation cannot be fulfilled on pods "x": …`."""
    return Conflict(
        f"Operation cannot be fulfilled on {_qualified(resource, group)} {quote(name)}: {because}",
        details=Details(name, group, resource),
    )


def modified(resource: str, name: str, *, group: str = "") -> Conflict:
    """The conflict of a write that carries an old resource version."""
    because = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, because, group=group)


def apply_conflict(message: str, causes: Iterable[Cause]) -> Conflict:
    """The conflict of a server-side apply with other owners of fields."""
    return Conflict(message, details=Details(causes=tuple(causes)))


def forbidden(resource: str, name: str, because: str, *, group: str = "") -> Forbidden:
    """`pods "x" is forbidden: …`; without a name `pods is forbidden: …`, without both `forbidden: …`."""
    subject = _qualified(resource, group)
    if subject and name:
        subject += f" {quote(name)}"
    message = f"{subject} is forbidden: {because}" if subject else f"forbidden: {because}"
    return Forbidden(message, details=Details(name, group, resource))


def unauthorized(message: str = "Unauthorized") -> Unauthorized:
    """The answer to someone unknown."""
    return Unauthorized(message)


def invalid(kind: str, name: str, problems: Sequence["FieldError"], *, group: str = "") -> Invalid:
    """`RayCluster.ray.io "x" is invalid: spec: Required value`; several problems stand in brackets.

    A problem found twice is told once in the message and stays twice among the causes, as on the server. Of a great
    many problems the first are told, and how many there are more.
    """
    told, texts = _first_problems(problems)
    message = f"{_qualified(kind, group)} {quote(name)} is invalid"
    if len(told) < len(problems):
        texts.append(f"and {len(problems) - len(told)} more problems")
    if len(texts) == 1:
        message += f": {texts[0]}"
    elif texts:
        message += f": [{', '.join(texts)}]"
    causes = tuple(Cause(problem.reason, problem.message, problem.field) for problem in told)
    return Invalid(message, details=Details(name, group, kind, causes=causes))


def _first_problems(problems: Sequence["FieldError"]) -> tuple[Sequence["FieldError"], list[str]]:
    """Return as many problems as an answer should tell, and their texts, each once."""
    texts: dict[str, None] = {}
    length = 0
    for number, problem in enumerate(problems):
        if number == MAX_PROBLEMS or length > MAX_PROBLEM_TEXT:
            return problems[:number], list(texts)
        text = str(problem)
        texts[text] = None
        length += len(text)
    return problems, list(texts)


def bad_request(message: str) -> BadRequest:
    """A request that cannot be understood."""
    return BadRequest(message)


def gone(message: str) -> Gone:
    """What was asked for is no longer available."""
    return Gone(message)


def expired(message: str) -> Expired:
    """A resource version or continue token that is too old."""
    return Expired(message)


def method_not_supported(action: str, resource: str, *, group: str = "") -> MethodNotAllowed:
    """`create is not supported on resources of kind "pods"`."""
    return MethodNotAllowed(
        f"{action} is not supported on resources of kind {quote(_qualified(resource, group))}",
        details=Details(group=group, kind=resource),
    )


def not_acceptable(accepted: Sequence[str]) -> NotAcceptable:
    """The answer when none of the media types that the client accepts can be served."""
    return NotAcceptable(f"only the following media types are accepted: {', '.join(accepted)}")


def unsupported_media_type(accepted: Sequence[str]) -> UnsupportedMediaType:
    """The answer to a body in a format that is not read here."""
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )


def request_entity_too_large(message: str) -> RequestEntityTooLarge:
    """`Request entity too large: limit is 3145728`."""
    return RequestEntityTooLarge(f"Request entity too large: {message}")


def too_many_requests(message: str, *, retry_after_seconds: int = 0) -> TooManyRequests:
    """The answer to a client that should come back later."""
    return TooManyRequests(message, details=Details(retry_after_seconds=retry_after_seconds))


def internal_error(because: str) -> InternalError:
    """`Internal error occurred: …`."""
    return InternalError(
        f"Internal error occurred: {because}", details=Details(causes=(Cause(message=because),))
    )


def service_unavailable(message: str) -> ServiceUnavailable:
    """The answer of a server that is not ready."""
    return ServiceUnavailable(message)


def server_timeout(
    operation: str, resource: str, *, group: str = "", retry_after_seconds: int
) -> ServerTimeout:
    """`The get operation against pods could not be completed at this time, please try again.`"""
    return ServerTimeout(
        f"The {operation} operation against {_qualified(resource, group)} could not be completed at this time,"
        " please try again.",
        details=Details(operation, group, resource, retry_after_seconds=retry_after_seconds),
    )


def timeout(message: str, *, retry_after_seconds: int = 0) -> Timeout:
    """`Timeout: …`: the request took too long."""
    return Timeout(f"Timeout: {message}", details=Details(retry_after_seconds=retry_after_seconds))


def _class_of(code: int) -> type[ApiError]:
    if code in _BY_CODE:
        return _BY_CODE[code]
    return InternalError if code > 500 else ApiError


def _qualified(name: str, group: str) -> str:
    return f"{name}.{group}" if group else name


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
