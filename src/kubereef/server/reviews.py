"""Questions about access: who am I, may I, may they, what may I, and whose token is this."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from kubereef.kinds.resource import Object
from kubereef.server.accounts import API_AUDIENCES
from kubereef.server.authentication import Authenticator
from kubereef.server.authorization import Authorizer
from kubereef.server.calls import Call
from kubereef.server.core import Handler, Server
from kubereef.server.incoming import incoming_object
from kubereef.server.media import written
from kubereef.server.options import WriteOptions
from kubereef.server.rbac import not_found_roles
from kubereef.server.requests import MASTERS, Response, User, user_info
from kubereef.server.routing import Target
from kubereef.server.tokens import BadToken
from kubereef.server.webhooks.admitting import admitted
from kubewire import errors, fielderrors, names
from kubewire.fielderrors import FieldError
from kubewire.paths import FieldPath, show
from kubewire.times import format_time

T = TypeVar("T")

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"


class _Requirement(msgspec.Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Selector(msgspec.Struct, rename="camel"):
    """Which objects somebody would list or delete; what cannot be understood narrows nothing down."""

    raw_selector: str = ""
    requirements: list[_Requirement] | None = None

    def problems(self, at: FieldPath, *, of_labels: bool) -> list[FieldError]:
        if self.raw_selector and self.requirements:
            detail = "may not specified at the same time as requirements"
            return [fielderrors.invalid((*at, "rawSelector"), self.raw_selector, detail)]
        if not self.raw_selector and not self.requirements:
            detail = f"when {show(at)} is specified, requirements or rawSelector is required"
            return [fielderrors.required((*at, "requirements"), detail)]
        found: list[FieldError] = []
        for index, one in enumerate(self.requirements or ()):
            here = (*at, "requirements", index)
            if not one.key and not of_labels:
                found.append(fielderrors.required((*here, "key"), "must be specified"))
            if one.operator in ("In", "NotIn") and not one.values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                found.append(fielderrors.required((*here, "values"), detail))
            if of_labels:
                complaints = names.qualified_name(one.key)
                found += [fielderrors.invalid((*here, "key"), one.key, text) for text in complaints]
        return found


class ResourceAttributes(msgspec.Struct, rename="camel"):
    """What somebody would do to a resource."""

    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    label_selector: _Selector | None = None
    field_selector: _Selector | None = None

    def problems(self) -> list[FieldError]:
        """Return what is wrong with the selectors."""
        found: list[FieldError] = []
        at = ("spec", "resourceAttributes")
        if self.field_selector is not None:
            found += self.field_selector.problems((*at, "fieldSelector"), of_labels=False)
        if self.label_selector is not None:
            found += self.label_selector.problems((*at, "labelSelector"), of_labels=True)
        return found

    def target(self) -> Target:
        return Target(
            self.verb,
            "",
            self.group,
            self.version,
            self.namespace,
            self.resource,
            self.name,
            self.subresource,
            is_resource=True,
        )


class NonResourceAttributes(msgspec.Struct):
    """What somebody would do to a path that names no resource."""

    path: str = ""
    verb: str = ""

    def target(self) -> Target:
        return Target(self.verb, self.path)

    def shown(self) -> Object:
        """Return the attributes as refusals show them, by Go's names."""
        return {"Path": self.path, "Verb": self.verb}


class AccessSpec(msgspec.Struct, rename="camel"):
    """The question of an access review; about oneself there is no user in it."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: list[str] | None = None
    uid: str = ""
    extra: dict[str, list[str]] | None = None

    def asked_about(self) -> User:
        extra = {key.lower(): tuple(values) for key, values in (self.extra or {}).items()}
        return User(self.user, tuple(self.groups or ()), self.uid, extra)


class _RulesSpec(msgspec.Struct):
    namespace: str = ""


class _TokenSpec(msgspec.Struct):
    token: str = ""
    audiences: list[str] | None = None


class Reviews:
    """The handlers of all reviews."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def offer(self, server: Server) -> None:
        """Have a server answer reviews."""
        acts: Mapping[str, Handler] = {
            f"selfsubjectreviews.{AUTHENTICATION}": self.self_review,
            f"tokenreviews.{AUTHENTICATION}": self.token_review,
            f"selfsubjectaccessreviews.{AUTHORIZATION}": self.self_access_review,
            f"subjectaccessreviews.{AUTHORIZATION}": self.access_review,
            f"localsubjectaccessreviews.{AUTHORIZATION}": self.local_access_review,
            f"selfsubjectrulesreviews.{AUTHORIZATION}": self.self_rules_review,
        }
        server.acts.update(acts)

    async def self_review(self, call: Call) -> Response:
        """Answer who asks."""
        review = await _question(call)
        review["metadata"] = {"creationTimestamp": format_time(call.around.clock.now())}
        return _answered(call, review, {"userInfo": user_info(call.user)})

    async def token_review(self, call: Call) -> Response:
        """Answer whose a token is."""
        review = await _question(call)
        spec = _spec(call, review, _TokenSpec)
        if not spec.token:
            raise errors.bad_request("token is required for TokenReview in authentication")
        try:
            verified = self._authenticator.verify(spec.token, tuple(spec.audiences or API_AUDIENCES))
        except BadToken as bad:
            return _answered(call, review, {"user": {}, "error": f"invalid bearer token: {bad}"})
        status = {
            "authenticated": True,
            "user": user_info(verified.user),
            "audiences": list(verified.audiences),
        }
        return _answered(call, review, status)

    async def self_access_review(self, call: Call) -> Response:
        """Answer whether the one who asks may do something."""
        review = await _question(call)
        spec = _spec(call, review, AccessSpec)
        _refuse([*_attribute_problems(spec), *_metadata_problems(review)])
        return self._decided(call, review, spec, call.user)

    async def access_review(self, call: Call) -> Response:
        """Answer whether somebody may do something."""
        review = await _question(call)
        spec = _spec(call, review, AccessSpec)
        _refuse([*_attribute_problems(spec), *_subject_problems(spec), *_metadata_problems(review)])
        return self._decided(call, review, spec, spec.asked_about())

    async def local_access_review(self, call: Call) -> Response:
        """Answer whether somebody may do something in the namespace of the review."""
        review = await _question(call)
        spec = _spec(call, review, AccessSpec)
        metadata = review["metadata"]
        given = metadata.setdefault("namespace", call.namespace)
        found = [
            *_attribute_problems(spec),
            *_subject_problems(spec),
            *_metadata_problems(review, "namespace"),
        ]
        at = ("spec", "resourceAttributes", "namespace")
        asked = spec.resource_attributes
        if asked is not None and asked.namespace != given:
            found.append(fielderrors.invalid(at, asked.namespace, "must match metadata.namespace"))
        if spec.non_resource_attributes is not None:
            value = spec.non_resource_attributes.shown()
            detail = "disallowed on this kind of request"
            found.append(fielderrors.invalid(("spec", "nonResourceAttributes"), value, detail))
        _refuse(found)
        if given != call.namespace:
            raise errors.bad_request(
                f"spec.resourceAttributes.namespace must match namespace: {call.namespace}"
            )
        return self._decided(call, review, spec, spec.asked_about())

    async def self_rules_review(self, call: Call) -> Response:
        """Answer with everything that the one who asks may do in a namespace."""
        review = await _question(call)
        namespace = _spec(call, review, _RulesSpec).namespace
        if not namespace:
            raise errors.bad_request("no namespace on request")
        rules, missing = self._authorizer.roles.rules(call.user, namespace)
        raws = [rule.raw for rule in rules]
        if MASTERS in call.user.groups:
            raws += [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ]
        status: Object = {
            "resourceRules": [_without_empty(raw, _RESOURCE_RULE) for raw in raws if raw.get("resources")],
            "nonResourceRules": [
                _without_empty(raw, _URL_RULE) for raw in raws if raw.get("nonResourceURLs")
            ],
            "incomplete": False,
        }
        if missing:
            status["evaluationError"] = not_found_roles(missing)
        return _answered(call, review, status)

    def _decided(self, call: Call, review: Object, spec: AccessSpec, user: User) -> Response:
        asked = spec.resource_attributes or spec.non_resource_attributes
        assert asked is not None
        decision = self._authorizer.decide(user, asked.target())
        status: Object = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return _answered(call, review, status)


_RESOURCE_RULE = ("verbs", "apiGroups", "resources", "resourceNames")
_URL_RULE = ("verbs", "nonResourceURLs")


async def _question(call: Call) -> Object:
    options = WriteOptions.of(call.request, "CreateOptions")
    review, _ = incoming_object(call.request, call.resource_type, options.validation)
    await admitted(call, call.resource_type, review, dry_run=options.dry_run)
    return review


def _spec(call: Call, review: Object, kind: type[T]) -> T:
    try:
        return msgspec.convert(review.get("spec") or {}, kind)
    except msgspec.ValidationError as bad:
        raise errors.bad_request(f"{call.resource_type.kind} cannot be read: {bad}") from None


def _answered(call: Call, review: Object, status: Object) -> Response:
    value = {
        "kind": call.resource_type.kind,
        "apiVersion": call.resource_type.api_version,
        **review,
        "status": status,
    }
    form = call.wish.form
    return Response(201, written(value, form), form.media_type)


def _attribute_problems(spec: AccessSpec) -> list[FieldError]:
    resource, other = spec.resource_attributes, spec.non_resource_attributes
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [fielderrors.invalid(("spec", "nonResourceAttributes"), other.shown(), detail)]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [fielderrors.invalid(("spec", "resourceAttributes"), None, detail)]
    return resource.problems() if resource is not None else []


def _subject_problems(spec: AccessSpec) -> list[FieldError]:
    if spec.user or spec.groups:
        return []
    detail = "at least one of user or group must be specified"
    return [fielderrors.invalid(("spec", "user"), spec.user, detail)]


def _metadata_problems(review: Object, allowed: str = "") -> list[FieldError]:
    filled = {
        key: value
        for key, value in review["metadata"].items()
        if value and key not in (allowed, "managedFields")
    }
    detail = f"must be empty except for {allowed}" if allowed else "must be empty"
    return [fielderrors.invalid(("metadata",), filled, detail)] if filled else []


def _refuse(problems: list[FieldError]) -> None:
    if problems:
        raise errors.invalid("", "", problems, group=AUTHORIZATION)


def _without_empty(rule: Mapping[str, Any], fields: tuple[str, ...]) -> Object:
    return {field: rule[field] for field in fields if rule.get(field)}
