"""Events: what happened to an object. Two groups serve the same events, one in the words of the other."""

from collections.abc import Callable

from kubereef.kinds.behaviours.checks import go_struct, listed, path_segment_name, unchanged
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, named
from kubereef.kinds.columns import UNKNOWN, at, duration, since
from kubereef.kinds.resource import Behaviour, Column, Conversion, Object, TableMoment
from kubewire import fielderrors, names
from kubewire.times import parse_micro_time

_MOST_CHARACTERS = 128
_MOST_OF_MESSAGE = 1024
# The fields of a reference, with the names that messages show.
_REFERENCE = {
    "kind": "Kind",
    "namespace": "Namespace",
    "name": "Name",
    "uid": "UID",
    "apiVersion": "APIVersion",
    "resourceVersion": "ResourceVersion",
    "fieldPath": "FieldPath",
}
_KEPT = ("eventTime", "action", "related", "reportingComponent", "reportingInstance")

# What events.k8s.io calls the fields of the core group; the others have one name.
_RENAMED = {
    "message": "note",
    "involvedObject": "regarding",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_RENAMED_BACK = {new: old for old, new in _RENAMED.items()}
# The core group always writes these, the other only if they are not empty.
_EMPTY_TEXTS = ("reportingComponent", "reportingInstance")


def in_new_words(event: Object) -> Object:
    """Return an event of the core group as events.k8s.io shows it."""
    return {
        _RENAMED.get(field, field): value
        for field, value in event.items()
        if value or field not in _EMPTY_TEXTS
    }


def in_old_words(event: Object) -> Object:
    """Return an event of events.k8s.io as the core group has it."""
    return {
        **dict.fromkeys(_EMPTY_TEXTS, ""),
        **{_RENAMED_BACK.get(field, field): value for field, value in event.items()},
    }


def _problems(event: Object, controller: str) -> Problems:
    """Yield what is wrong with an event in the core group's form; `controller` is what its writer calls that field."""
    namespace = event["metadata"].get("namespace", "")
    about = at(event, "involvedObject", "namespace") or ""
    # What is about the whole cluster is told in the default namespace.
    homes = ("", "default", "kube-system") if event.get("eventTime") else ("", "default")
    is_elsewhere = namespace not in homes if not about else not event.get("eventTime") and about != namespace
    if is_elsewhere:
        yield fielderrors.invalid(("involvedObject", "namespace"), about, "does not match event.namespace")
    if not event.get("eventTime"):
        return
    reporter = event.get("reportingComponent") or ""
    if not reporter:
        yield fielderrors.required((controller,))
    yield from named((controller,), reporter, names.qualified_name)
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field) or ""
        if not value:
            yield fielderrors.required((field,))
        elif len(value) > _MOST_CHARACTERS:
            yield fielderrors.invalid((field,), "", f"can have at most {_MOST_CHARACTERS} characters")
    if len(event.get("message") or "") > _MOST_OF_MESSAGE:
        yield fielderrors.invalid(("message",), "", f"can have at most {_MOST_OF_MESSAGE} characters")


def _new_problems(new_style: Object) -> Problems:
    event = in_old_words(new_style)
    yield from _problems(event, "reportingController")
    yield from _series(event)
    if not event.get("eventTime"):
        yield fielderrors.required(("eventTime",))
    if event.get("type") not in ("Normal", "Warning"):
        yield fielderrors.invalid(("type",), "", f"has invalid value: {event.get('type', '')}")
    for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(field):
            yield fielderrors.invalid((field,), "", "needs to be unset")


def _series(event: Object) -> Problems:
    series = event.get("series")
    if series is not None:
        if series.get("count", 0) < 2:
            yield fielderrors.invalid(("series", "count"), "", "should be at least 2")
        if not series.get("lastObservedTime"):
            yield fielderrors.required(("series", "lastObservedTime"))


def _new_update_problems(new: Object, old: Object) -> Problems:
    event, before = in_old_words(new), in_old_words(old)
    about, reference = event.get("involvedObject") or {}, before.get("involvedObject") or {}
    shown = go_struct(*((name, about.get(field, "")) for field, name in _REFERENCE.items()))
    yield from unchanged(("involvedObject",), about, reference, shown)
    # The reason is looked at twice.
    for field in ("reason", "message", "firstTimestamp", "lastTimestamp", "count", "reason", "type", *_KEPT):
        path = (_RENAMED.get(field, field) if field in _KEPT else field,)
        yield from unchanged(path, event.get(field), before.get(field))
    if event.get("series") != before.get("series"):
        yield from _series(event)


def _moment(event: Object, moment: TableMoment, *path: str) -> str:
    """Return how long ago a moment of an event was that is given to the microsecond."""
    time = at(event, *path)
    return UNKNOWN if not time else duration(moment.now - parse_micro_time(time).timestamp())


def _first_seen(event: Object, moment: TableMoment) -> str:
    time = event.get("firstTimestamp")
    return since(time, moment) if time else _moment(event, moment, "eventTime")


def _last_seen(event: Object, moment: TableMoment) -> str:
    if event.get("series"):
        return _moment(event, moment, "series", "lastObservedTime")
    time = event.get("lastTimestamp")
    return since(time, moment) if time else _first_seen(event, moment)


def _object(event: Object) -> str:
    kind, name = (at(event, "involvedObject", field) or "" for field in ("kind", "name"))
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _source(event: Object) -> str:
    component = at(event, "source", "component") or event.get("reportingComponent") or ""
    instance = at(event, "source", "host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


_COLUMNS = (
    Column("Last Seen", _last_seen),
    Column("Type", lambda event, _: event.get("type", "")),
    Column("Reason", lambda event, _: event.get("reason", "")),
    Column("Object", lambda event, _: _object(event)),
    Column("Subobject", lambda event, _: at(event, "involvedObject", "fieldPath") or "", priority=1),
    Column("Source", lambda event, _: _source(event), priority=1),
    Column("Message", lambda event, _: event.get("message", "").strip()),
    Column("First Seen", _first_seen, priority=1),
    Column(
        "Count",
        lambda event, _: at(event, "series", "count") or event.get("count") or 1,
        priority=1,
    ),
    Column("Name", lambda event, _: event["metadata"]["name"], format="name", priority=1),
)


def _in_new_form(column: Column) -> Column:
    return column._replace(cell=lambda event, moment: column.cell(in_old_words(event), moment))


def _field(*path: str) -> Callable[[Object], str]:
    return lambda event: at(event, *path) or ""


_COMMON_FIELDS = {"reason": _field("reason"), "type": _field("type")}

EVENTS = Behaviour(
    check_name=path_segment_name,
    validate=lambda event: list(_problems(event, "reportingComponent")),
    put_creates=True,
    selectable={
        **{f"involvedObject.{field}": _field("involvedObject", field) for field in _REFERENCE},
        **_COMMON_FIELDS,
        "reportingComponent": _field("reportingComponent"),
        "source": lambda event: at(event, "source", "component") or event.get("reportingComponent") or "",
    },
    columns=_COLUMNS,
)
# Fields are selected in the form that is kept, which is the core group's.
NEW_EVENTS = Behaviour(
    validate=listed(_new_problems),
    validate_update=listed(_new_update_problems),
    put_creates=True,
    selectable={
        **{f"regarding.{field}": _field("involvedObject", field) for field in _REFERENCE},
        **_COMMON_FIELDS,
        "reportingController": _field("reportingComponent"),
    },
    columns=tuple(map(_in_new_form, _COLUMNS)),
)
NEW_EVENTS_CONVERSION = Conversion(to_stored=in_old_words, from_stored=in_new_words)
