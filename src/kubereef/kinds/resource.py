"""A resource that the server offers, as data: one description serves every verb."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubewire import names
from kubewire.fielderrors import FieldError

Object = dict[str, Any]


class Column(NamedTuple):
    """A column of `kubectl get`: `cell` reads its value from an object."""

    name: str
    cell: Callable[[Object, "TableMoment"], object]
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


class TableMoment(NamedTuple):
    """When a table is made, for the columns that show ages."""

    now: float


class Subresource(NamedTuple):
    """A part of an object that is reached by a path of its own, such as `status`."""

    name: str
    verbs: frozenset[str]
    group: str = ""
    version: str = ""
    kind: str = ""


def only_status(new: Object, old: Object) -> None:
    """Take over nothing but the status: what a write to the status subresource may change."""
    status = new.get("status")
    version = new["metadata"].get("resourceVersion")
    new.clear()
    new.update(old)
    new["metadata"] = {**old["metadata"], "resourceVersion": version or old["metadata"]["resourceVersion"]}
    if status is None:
        new.pop("status", None)
    else:
        new["status"] = status


class Part(NamedTuple):
    """A subresource through which one part of an object is written: what such a write changes, and when it may not."""

    prepare: Callable[[Object, Object], None]
    validate: Callable[[Object, Object], list[FieldError]]


class Behaviour(NamedTuple):
    """What is particular about a kind. Every function may be left out.

    `read` makes a well-formed object of what came in: it drops the fields it does not know and returns their paths,
    and raises ValueError where the types are wrong. `defaults` fills the object in; `prepare_create` and
    `prepare_update` drop or carry over what the writer may not choose; `validate` and `validate_update` find what is
    wrong. All change or read the object they are given and nothing else.
    """

    read: Callable[[Object], list[str]] = lambda _obj: []
    defaults: Callable[[Object], None] = lambda _obj: None
    prepare_create: Callable[[Object], None] = lambda _obj: None
    prepare_update: Callable[[Object, Object], None] = lambda _new, _old: None
    prepare_status: Callable[[Object, Object], None] = only_status
    validate: Callable[[Object], list[FieldError]] = lambda _obj: []
    validate_update: Callable[[Object, Object], list[FieldError]] = lambda _new, _old: []
    validate_status: Callable[[Object, Object], list[FieldError]] = lambda _new, _old: []
    warnings: Callable[[Object], list[str]] = lambda _obj: []
    check_name: Callable[[str], list[str]] = names.dns1123_subdomain
    # What is wrong with a new object alone, and the warnings about an update where they are not those of a creation.
    validate_create: Callable[[Object], list[FieldError]] = lambda _obj: []
    update_warnings: Callable[[Object, Object], list[str]] | None = None
    # Parts with a subresource of their own, besides the status.
    parts: Mapping[str, Part] = {}
    # Fields that a field selector may name, besides metadata.name and metadata.namespace.
    selectable: Mapping[str, Callable[[Object], str]] = {}
    columns: tuple[Column, ...] = ()
    # What a row of a table says of its object besides the columns, such as that it is over.
    row_conditions: Callable[[Object], list[Object]] = lambda _obj: []
    # Whether a change of the spec counts up metadata.generation; `True` also starts it at 1.
    counts_generations: bool = False
    # Whether an object has to say of which kind it is, and an update which version it replaces.
    needs_kind: bool = False
    needs_version: bool = False
    # Whether a PUT of an object that does not exist creates it.
    put_creates: bool = False
    # How long whoever runs the object gets to end it, as a kubelet does for a Pod: given the object and the wish.
    grace: Callable[[Object, int | None], int] | None = None
    # What a deletion does to dependents unless the request says.
    default_propagation: str = "Background"
    # What besides finalizers keeps an object whose deletion has begun, and what the beginning changes about it.
    held: Callable[[Object], bool] = lambda _obj: False
    begin_deletion: Callable[[Object], None] = lambda _obj: None
    # Whether a deletion answers with the object instead of a Status.
    returns_deleted: bool = False
    # The status that a new object begins with, given as it was sent. Most kinds let no writer choose it.
    first_status: Callable[[Object], Object | None] = lambda _obj: None


class Conversion(NamedTuple):
    """How a version differs from the form that is kept; both functions return a new object.

    `applies` tells from the kept bytes whether showing them needs a conversion at all, so that most are not decoded.
    """

    to_stored: Callable[[Object], Object]
    from_stored: Callable[[Object], Object]
    applies: Callable[[bytes], bool] = lambda _data: True


class ScalePaths(NamedTuple):
    """Where a kind keeps its size; for built-in kinds the selector is an object, for custom ones a text."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")
    # Whether a size that is not there is an error rather than zero.
    is_explicit: bool = False


class ResourceType:
    """One version of one resource, with everything a request needs to know about it."""

    def __init__(
        self,
        *,
        group: str,
        version: str,
        kind: str,
        plural: str,
        singular: str,
        namespaced: bool,
        verbs: frozenset[str],
        short_names: tuple[str, ...] = (),
        categories: tuple[str, ...] = (),
        subresources: Mapping[str, Subresource] = {},
        definition: str = "",
        custom: bool = False,
        stored_as: str = "",
        conversion: Conversion | None = None,
        behaviour: Behaviour = Behaviour(),  # noqa: B008 - immutable
        list_kind: str = "",
        schema: Mapping[str, Any] | None = None,
        scale: ScalePaths | None = None,
        deprecation: str = "",
        shown_verbs: tuple[str, ...] = (),
        kept_kind: str | None = None,
    ) -> None:
        self.group = group
        self.version = version
        self.kind = kind
        self.plural = plural
        self.singular = singular
        self.namespaced = namespaced
        self.verbs = verbs
        self.short_names = short_names
        self.categories = categories
        self.subresources = subresources
        self.definition = definition
        self.custom = custom
        self.conversion = conversion
        self.behaviour = behaviour
        self.api_version = f"{group}/{version}" if group else version
        # The name of the resource apart from versions, as RBAC and messages use it, and the one it is kept under.
        self.resource = f"{plural}.{group}" if group else plural
        self.storage = stored_as or self.resource
        self.qualified_kind = f"{kind}.{group}" if group else kind
        self.list_kind = list_kind or f"{kind}List"
        # The OpenAPI schema of a custom resource; those of built-in ones are published under their `definition`.
        self.schema = schema
        self.scale = scale
        # The verbs as discovery lists them.
        self.shown_verbs = shown_verbs or tuple(sorted(verbs))
        # Group, version and kind in which objects are kept; empty if nothing is, or clients are not to know.
        usual = f"{group if not stored_as else ''}/{version}/{kind}" if "list" in verbs else ""
        self.kept_kind = usual if kept_kind is None else kept_kind
        # What every answer about this version warns of.
        self.deprecation = deprecation
        # What others derive from the description, made once.
        self.cache: dict[object, Any] = {}
        # Objects are kept without apiVersion and kind; this opens one for an answer.
        self.opening = b'{"apiVersion":"%s","kind":"%s",' % (self.api_version.encode(), kind.encode())

    def to_stored(self, obj: Object) -> Object:
        """Return an object of this version in the form that is kept."""
        return obj if self.conversion is None else self.conversion.to_stored(obj)

    def from_stored(self, obj: Object) -> Object:
        """Return an object as it is kept in the form of this version."""
        return obj if self.conversion is None else self.conversion.from_stored(obj)

    def __repr__(self) -> str:
        return f"ResourceType({self.api_version} {self.plural})"
