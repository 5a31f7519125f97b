"""What may be wrong with a definition, in the words and with the paths of Kubernetes' API server."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubereef.kinds.behaviours.definitions import parts
from kubereef.kinds.behaviours.definitions.internal import (
    GO_NAMES,
    declared,
    printed_schema,
    printed_versions,
)
from kubereef.kinds.custom.conditions import APPROVAL, approval, is_true, needs_approval
from kubereef.kinds.resource import Object
from kubewire import fielderrors, names
from kubewire.fielderrors import FieldError
from kubewire.paths import FieldPath, Key, show
from kubewire.schema import structural_problems

Problems = Iterator[FieldError]

_WITH_STATUS = "at the root of the schema if the status subresource is enabled"

# Beside a status of its own, the root of a schema may say only what does not concern the status.
_AT_ROOT = (
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
)


def problems(obj: Object) -> list[FieldError]:
    """Return what is wrong with a new definition."""
    return [*_name_problems(obj), *_spec_problems(obj["spec"], None), *_rest(obj, None)]


def update_problems(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a changed definition."""
    found = [*_spec_problems(new["spec"], old["spec"])]
    spec, before = new["spec"], old["spec"]
    if is_true(old, "Established"):
        found += _immutable(("spec", "scope"), spec["scope"], before["scope"])
        found += _immutable(("spec", "names", "kind"), spec["names"]["kind"], before["names"]["kind"])
    found += _immutable(("spec", "group"), spec["group"], before["group"])
    found += _immutable(("spec", "names", "plural"), spec["names"]["plural"], before["names"]["plural"])
    return [*found, *_rest(new, old)]


def status_problems(new: Object, _old: Object) -> list[FieldError]:
    """Return what is wrong with a definition's status."""
    accepted = (new.get("status") or {}).get("acceptedNames") or {}
    return list(_names_problems(("status", "acceptedNames"), accepted))


def _immutable(at: FieldPath, new: object, old: object) -> list[FieldError]:
    return [] if new == old else [fielderrors.invalid(at, new, "field is immutable")]


def _rest(new: Object, old: Object | None) -> Problems:
    yield from status_problems(new, new)
    yield from _stored_versions_problems(new)
    yield from _approval_problems(new, old)
    if new["spec"].get("preserveUnknownFields") and not (old and old["spec"].get("preserveUnknownFields")):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield fielderrors.invalid(("spec", "preserveUnknownFields"), True, detail)


def _name_problems(obj: Object) -> Problems:
    spec, name = obj["spec"], obj["metadata"].get("name") or ""
    if name and name != f"{spec['names']['plural']}.{spec['group']}":
        yield fielderrors.invalid(("metadata", "name"), name, 'must be spec.names.plural+"."+spec.group')


def _stored_versions_problems(obj: Object) -> Problems:
    at = ("status", "storedVersions")
    stored: Sequence[str] | None = (obj.get("status") or {}).get("storedVersions")
    if not stored:
        yield fielderrors.invalid(at, stored, "must have at least one stored version")
        return
    versions = {version["name"]: version for version in obj["spec"].get("versions") or ()}
    for name, version in versions.items():
        if version.get("storage") and name not in stored:
            yield fielderrors.invalid(at, list(stored), f"must have the storage version {name}")
    for number, name in enumerate(stored):
        if name not in versions:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield fielderrors.invalid((*at, number), name, detail)


def _approval_problems(new: Object, old: Object | None) -> Problems:
    if not needs_approval(new["spec"]["group"]):
        return
    reason, message = approval(new)
    if old is not None and approval(old)[0] == reason:
        return
    at = ("metadata", "annotations", Key(APPROVAL))
    if reason == "MissingAnnotation":
        yield fielderrors.required(at, message)
    elif reason == "InvalidAnnotation":
        yield fielderrors.invalid(at, new["metadata"]["annotations"][APPROVAL], message)


def _spec_problems(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Problems:
    yield from _group_problems(spec.get("group") or "")
    yield from _scope_problems(spec.get("scope") or "")
    versions: Sequence[Mapping[str, Any]] = spec.get("versions") or []
    for number, version in enumerate(versions):
        at = ("spec", "versions", number)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield fielderrors.required((*at, "schema", "openAPIV3Schema"))
        yield from _label_problems((*at, "name"), version.get("name") or "")
        yield from parts.deprecation_problems(at, version)
    if len({version.get("name") for version in versions}) != len(versions):
        detail = "must contain unique version names"
        yield fielderrors.invalid(("spec", "versions"), printed_versions(spec), detail)
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield fielderrors.invalid(("spec", "versions"), printed_versions(spec), detail)
    if versions:
        yield from _label_problems(("spec", "version"), versions[0].get("name") or "")
    for field in ("plural", "singular", "kind", "listKind"):
        if not spec["names"].get(field):
            yield fielderrors.required(("spec", "names", field))
    yield from _names_problems(("spec", "names"), spec["names"])
    schema_problems = list(_schema_problems(spec, old))
    yield from schema_problems
    for place in declared(spec, "subresources"):
        yield from parts.subresource_problems(place.path, place.value)
    for place in declared(spec, "additionalPrinterColumns"):
        yield from parts.column_problems(place.path, place.value)
    # A schema that is refused cannot tell what there is to select by.
    for place in declared(spec, "selectableFields") if not schema_problems else ():
        schema = (place.version or versions[0]).get("schema") or {}
        yield from parts.selectable_problems(place.path, place.value, schema.get("openAPIV3Schema"))
    yield from parts.conversion_problems(spec)


def _group_problems(group: str) -> Problems:
    at = ("spec", "group")
    if not group:
        yield fielderrors.required(at)
    elif wrong := names.dns1123_subdomain(group):
        yield fielderrors.invalid(at, group, ",".join(wrong))
    elif "." not in group:
        yield fielderrors.invalid(at, group, "should be a domain with at least one dot")


def _scope_problems(scope: str) -> Problems:
    at = ("spec", "scope")
    if not scope:
        yield fielderrors.required(at)
    elif scope not in ("Cluster", "Namespaced"):
        yield fielderrors.not_supported(at, scope, ("Cluster", "Namespaced"))


def _label_problems(at: FieldPath, name: str) -> Problems:
    if wrong := names.dns1035_label(name):
        yield fielderrors.invalid(at, name, ",".join(wrong))


def _names_problems(at: FieldPath, given: Mapping[str, Any]) -> Problems:
    for field in ("plural", "singular"):
        if given.get(field):
            yield from _label_problems((*at, field), given[field])
    for field in ("kind", "listKind"):
        name = given.get(field) or ""
        if name and (wrong := names.dns1035_label(name.lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            yield fielderrors.invalid((*at, field), name, detail)
    for number, name in enumerate(given.get("shortNames") or ()):
        yield from _label_problems((*at, "shortNames", number), name)
    if given.get("kind") and given["kind"] == given.get("listKind"):
        detail = "kind and listKind may not be the same"
        yield fielderrors.invalid((*at, "listKind"), given["listKind"], detail)
    for number, name in enumerate(given.get("categories") or ()):
        yield from _label_problems((*at, "categories", number), name)


def _schema_problems(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Problems:
    accepted = [version.get("schema") for version in (old or {}).get("versions") or ()]
    for place in declared(spec, "schema"):
        raw = (place.value or {}).get("openAPIV3Schema")
        if raw is None:
            continue
        at = (*place.path, "openAPIV3Schema")
        versions = spec["versions"] if place.version is None else [place.version]
        if any((version.get("subresources") or {}).get("status") is not None for version in versions):
            yield from _root_problems(at, raw)
        if raw.get("nullable"):
            yield fielderrors.forbidden((*at, "nullable"), "nullable cannot be true at the root")
        # A schema that was accepted once is still good; judging it anew can take long.
        if place.value not in accepted:
            yield from structural_problems(raw, show(at))


def _root_problems(at: FieldPath, raw: Mapping[str, Any]) -> Problems:
    for keyword, name in GO_NAMES.items():
        if raw.get(keyword) in (None, "", False, [], {}):
            continue
        if keyword == "type" and raw["type"] != "object":
            detail = f'only "object" is allowed as the type {_WITH_STATUS}'
            yield fielderrors.invalid((*at, "type"), raw["type"], detail)
            return
        if name not in _AT_ROOT:
            fields = f"[{' '.join(_AT_ROOT)}]"
            detail = f"only {fields} fields are allowed {_WITH_STATUS}"
            yield fielderrors.invalid(at, printed_schema(raw), detail)
            return
