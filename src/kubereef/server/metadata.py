"""The metadata that the server owns: filled in on creation, carried over on updates."""

from typing import NamedTuple

from kubereef.kinds.resource import Object, ResourceType
from kubewire import fielderrors, names
from kubewire.fielderrors import FieldError, Verbatim
from kubewire.sources import Clock, Entropy
from kubewire.times import format_time

# Fields of the metadata that no writer decides.
_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


class _Passes(NamedTuple):
    """How often an update has its metadata judged, since a server tells a problem each time that it meets it.

    `content` is for labels, annotations and owners, `finalizers` for finalizers without a domain, which some kinds
    allow, and `changes` for what an update may not touch.
    """

    content: int = 4
    finalizers: int = 2
    changes: int = 2


_ONCE_MORE = _Passes(3, 1, 2)
_PASSES = {
    **dict.fromkeys(("services", "podtemplates", "resourcequotas", "deployments.apps"), _ONCE_MORE),
    **dict.fromkeys(("replicasets.apps", "events.events.k8s.io"), _ONCE_MORE),
    **dict.fromkeys(("networkpolicies.networking.k8s.io", "priorityclasses.scheduling.k8s.io"), _ONCE_MORE),
    **dict.fromkeys(("limitranges", "endpointslices.discovery.k8s.io"), _Passes(3, 1, 1)),
    "persistentvolumes": _Passes(4, 2, 1),
    **dict.fromkeys(("events", "poddisruptionbudgets.policy"), _Passes(2, 0, 1)),
    "leases.coordination.k8s.io": _Passes(3, 0, 2),
    "customresourcedefinitions.apiextensions.k8s.io": _Passes(3, 0, 2),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _Passes(3, 0, 1),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _Passes(3, 0, 1),
}


def _passes(resource_type: ResourceType) -> _Passes:
    return _Passes(3, 0, 2) if resource_type.custom else _PASSES.get(resource_type.resource, _Passes())


_BEGUN = ("deletionTimestamp", "deletionGracePeriodSeconds")


def begin(resource_type: ResourceType, obj: Object, namespace: str, clock: Clock, entropy: Entropy) -> None:
    """Fill in the metadata of a new object."""
    metadata = obj["metadata"]
    for field in (*_SERVER_OWNED, "selfLink"):
        metadata.pop(field, None)
    if resource_type.namespaced:
        metadata["namespace"] = namespace
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = names.generate_name(metadata["generateName"], entropy)
    metadata["uid"] = entropy.uid()
    metadata["creationTimestamp"] = format_time(clock.now())
    if resource_type.behaviour.counts_generations:
        metadata["generation"] = 1


def hide(obj: Object, *, name: bool) -> Object:
    """Take off what the server itself has filled in about a new object, and return it; the name only if asked to."""
    fields = (*_SERVER_OWNED, "name") if name else _SERVER_OWNED
    return {field: obj["metadata"].pop(field) for field in fields if field in obj["metadata"]}


def carry_over(new: Object, old: Object) -> None:
    """Give an updated object the metadata that an update cannot change."""
    metadata, before = new["metadata"], old["metadata"]
    for field in _SERVER_OWNED:
        if field == "uid" and metadata.get("uid"):
            continue  # a wrong one is refused, not replaced
        if field in _BEGUN and metadata.get(field) is not None and field not in before:
            continue  # nor does an update begin a deletion
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    metadata["name"] = before["name"]
    if "namespace" in before:
        metadata["namespace"] = before["namespace"]
    if "generateName" in before:
        metadata["generateName"] = before["generateName"]
    else:
        metadata.pop("generateName", None)
    metadata.pop("selfLink", None)


def without_double_owners(obj: Object) -> list[str]:
    """Drop owners that are there already, and return the warning about it."""
    owners = obj["metadata"].get("ownerReferences") or []
    kept: dict[str, Object] = {}
    doubles = []
    for owner in owners:
        shown = fielderrors.as_json(owner)
        if shown in kept:
            doubles.append(str(owner.get("uid") or ""))
        kept[shown] = owner
    if not doubles:
        return []
    obj["metadata"]["ownerReferences"] = list(kept.values())
    return [
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may"
        " reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        + ", ".join(doubles)
    ]


def count_generation(resource_type: ResourceType, new: Object, old: Object) -> None:
    """Count the generation up if what is desired has changed."""
    if not resource_type.behaviour.counts_generations:
        return
    # Without a part of its own, a status is nothing but another field.
    reported = ("metadata", "status") if "status" in resource_type.subresources else ("metadata",)
    if _desire(new, reported) != _desire(old, reported):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _desire(obj: Object, reported: tuple[str, ...]) -> Object:
    return {field: value for field, value in obj.items() if field not in reported}


def problems(resource_type: ResourceType, obj: Object) -> list[FieldError]:
    """Return what is wrong with an object's metadata."""
    metadata = obj["metadata"]
    found: list[FieldError] = []
    check = resource_type.behaviour.check_name
    prefix, name = metadata.get("generateName", ""), metadata.get("name", "")
    if prefix:
        # A prefix may end in a dash, which a name may not.
        probe = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        found += [fielderrors.invalid(("metadata", "generateName"), prefix, text) for text in check(probe)]
    if not name:
        detail = "name or generateName is required"
        found.append(fielderrors.required(("metadata", "name"), detail))
    else:
        found += [fielderrors.invalid(("metadata", "name"), name, text) for text in check(name)]
    found += _content_problems(metadata)
    found += _finalizer_problems(metadata)
    if _passes(resource_type).finalizers:
        found += _plain_finalizers(metadata)
    return found


def _content_problems(metadata: Object) -> list[FieldError]:
    return [*_label_problems(metadata), *_annotation_problems(metadata), *_owner_problems(metadata)]


def update_problems(resource_type: ResourceType, new: Object, old: Object, part: str) -> list[FieldError]:
    """Return what is wrong with the metadata of an update, of the whole or of a part, as often as it is told."""
    passes = _passes(resource_type)
    if part:
        return [*problems(resource_type, new), *_changes(new, old) * _Passes().changes]
    metadata = new["metadata"]
    content, finalizers = _content_problems(metadata), _finalizer_problems(metadata)
    plain = _plain_finalizers(metadata)
    return [
        *_changes(new, old) * passes.changes,
        *content * passes.content,
        *finalizers * (passes.content - passes.changes),
        *plain * passes.finalizers,
    ]


def _changes(new: Object, old: Object) -> list[FieldError]:
    """Return what an update may not do to the metadata."""
    metadata, before = new["metadata"], old["metadata"]
    found = []
    for field in ("uid", *_BEGUN):
        if metadata.get(field) != before.get(field):
            shown = metadata.get(field, "")
            found.append(fielderrors.invalid(("metadata", field), shown, "field is immutable"))
    if before.get("deletionTimestamp"):
        added = [
            one for one in metadata.get("finalizers") or [] if one not in (before.get("finalizers") or [])
        ]
        if added:
            listed = ", ".join(fielderrors.printed(one) for one in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            found.append(fielderrors.forbidden(("metadata", "finalizers"), detail))
    return found


_MAX_ANNOTATIONS = 256 * 1024


def _label_problems(metadata: Object) -> list[FieldError]:
    at = ("metadata", "labels")
    found = []
    for key, value in (metadata.get("labels") or {}).items():
        found += [fielderrors.invalid(at, key, text) for text in names.qualified_name(key)]
        found += [fielderrors.invalid(at, value, text) for text in names.label_value(value)]
    return found


def _annotation_problems(metadata: Object) -> list[FieldError]:
    at = ("metadata", "annotations")
    found = []
    size = 0
    for key, value in (metadata.get("annotations") or {}).items():
        found += [fielderrors.invalid(at, key, text) for text in names.qualified_name(key.lower())]
        size += len(key.encode()) + len(value.encode())
    if size > _MAX_ANNOTATIONS:
        found.append(fielderrors.too_long(at, _MAX_ANNOTATIONS))
    return found


def _owner_problems(metadata: Object) -> list[FieldError]:
    at = ("metadata", "ownerReferences")
    owners = metadata.get("ownerReferences") or []
    found = []
    for owner in owners:
        version = owner.get("apiVersion") or ""
        if not version or version.count("/") > 1:
            found.append(fielderrors.invalid((*at, "apiVersion"), version, "version must not be empty"))
        found += [
            fielderrors.invalid((*at, field), "", "must not be empty")
            for field in ("kind", "name", "uid")
            if not owner.get(field)
        ]
        if (version, owner.get("kind")) == ("v1", "Event"):
            detail = "/v1, Kind=Event is disallowed from being an owner"
            found.append(fielderrors.invalid(at, Verbatim(_shown_owner(owner)), detail))
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        detail = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        )
        shown = Verbatim(f"[{','.join(map(_shown_owner, owners))}]")
        found.append(fielderrors.invalid(at, shown, detail))
    return found


_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def _shown_owner(owner: Object) -> str:
    given = [field for field in _OWNER_FIELDS if owner.get(field) is not None]
    return "{" + ",".join(f'"{field}":{fielderrors.as_json(owner[field])}' for field in given) + "}"


# Finalizers that Kubernetes itself gave plain names; all others have the domain of whoever takes them off.
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def _plain_finalizers(metadata: Object) -> list[FieldError]:
    """Return the finalizers of a built-in kind that do not say whose they are."""
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        fielderrors.invalid(("metadata", "finalizers", index), finalizer, detail)
        for index, finalizer in enumerate(metadata.get("finalizers") or [])
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


def _finalizer_problems(metadata: Object) -> list[FieldError]:
    at = ("metadata", "finalizers")
    found = []
    both = {"orphan", "foregroundDeletion"} <= set(metadata.get("finalizers") or [])
    for finalizer in metadata.get("finalizers") or []:
        found += [fielderrors.invalid(at, finalizer, text) for text in names.qualified_name(finalizer)]
    if both:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(fielderrors.invalid(at, metadata["finalizers"], detail))
    return found
