"""Which records a list or watch is about."""

from typing import Any, NamedTuple

import msgspec

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.requests import Request
from kubereef.store.records import Change, Record
from kubewire import errors
from kubewire.gotext import quote
from kubewire.selectors import FieldSelector, FieldTerm, LabelSelector, SelectorError

# A change is kept for long: so many things are noted with it, and what ever new selections make of it is not.
MAX_CACHED = 32


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Meta


_head = msgspec.json.Decoder(_Head).decode


def _unselectable(resource_type: ResourceType, field: str) -> str:
    """Return why objects cannot be selected by a field, in the words that each kind has for it."""
    if resource_type.resource == "jobs.batch":
        return f"field label {quote(field)} not supported for Job"
    if resource_type.custom or resource_type.behaviour.selectable:
        return f"field label not supported: {field}"
    return f'{quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"'


class Selection(NamedTuple):
    """Namespace, labels and fields that a record must have."""

    resource_type: ResourceType
    namespace: str
    labels: LabelSelector
    fields: FieldSelector

    @classmethod
    def of(cls, request: Request, resource_type: ResourceType, namespace: str, name: str = "") -> "Selection":
        """Return what a request selects; `name` is the only one that it is about, if there is one."""
        try:
            labels = LabelSelector.parse(request.parameter("labelSelector"))
            fields = FieldSelector.parse(request.parameter("fieldSelector"))
        except SelectorError as bad:
            raise errors.bad_request(str(bad)) from None
        if name and not fields.terms:
            fields = FieldSelector((FieldTerm("metadata.name", name),))
        for term in fields.terms:
            if term.field not in ("metadata.name", "metadata.namespace", *resource_type.behaviour.selectable):
                raise errors.bad_request(_unselectable(resource_type, term.field))
        return cls(resource_type, namespace, labels, fields)

    @property
    def is_everything(self) -> bool:
        """Whether neither labels nor fields matter."""
        return not self.labels.requirements and not self.fields.terms

    def has(self, record: Record) -> bool:
        """Tell whether a record is selected."""
        if self.namespace and record.key.namespace != self.namespace:
            return False
        if self.labels.requirements and not self.labels.matches(_head(record.data).metadata.labels):
            return False
        if not self.fields.terms:
            return True
        obj: Object | None = None

        def field(name: str) -> str:
            nonlocal obj
            if name == "metadata.name":
                return record.key.name
            if name == "metadata.namespace":
                return record.key.namespace
            obj = obj or record.object()
            return self.resource_type.behaviour.selectable[name](obj)

        return self.fields.matches(field)

    def has_cached(self, change: Change, record: Record) -> bool:
        """As `has`, but worked out once for all watchers with the same selection."""
        if self.is_everything:
            return not self.namespace or record.key.namespace == self.namespace
        key: tuple[Any, ...] = (self.namespace, self.labels, self.fields, record is change.record)
        found = change.cache.get(key)
        if found is None:
            found = self.has(record)
            if len(change.cache) < MAX_CACHED:
                change.cache[key] = found
        return bool(found)
