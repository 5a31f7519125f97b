"""Which volume a claim gets: pure functions of claims, volumes and classes."""

from collections.abc import Iterable

from kubereef.controllers.scheduling import affinity
from kubereef.kinds.resource import Object
from kubewire.quantity import Quantity
from kubewire.selectors import LabelSelector


def class_of(obj: Object) -> str:
    """Return the storage class that a claim asks for or a volume has; empty for none."""
    legacy = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    name: str = legacy if legacy is not None else (obj.get("spec") or {}).get("storageClassName") or ""
    return name


def is_claimed_by(volume: Object, claim: Object) -> bool:
    """Tell whether a volume is this claim's, or is kept for one of its name."""
    reference = (volume.get("spec") or {}).get("claimRef") or {}
    meta = claim["metadata"]
    if (reference.get("namespace"), reference.get("name")) != (meta["namespace"], meta["name"]):
        return False
    return reference.get("uid") in (None, "", meta["uid"])


def is_free(volume: Object) -> bool:
    """Tell whether no claim has a volume and none is meant to."""
    return not (volume.get("spec") or {}).get("claimRef") and not volume["metadata"].get("deletionTimestamp")


def fits(volume: Object, claim: Object) -> bool:
    """Tell whether a volume is what a claim asks for: size, class, modes and labels."""
    offered, wanted = volume.get("spec") or {}, claim.get("spec") or {}
    selector = wanted.get("selector")
    return (
        not mismatch(volume, claim)
        and (not selector or LabelSelector.of(selector).matches(volume["metadata"].get("labels")))
        and (offered.get("volumeAttributesClassName") or "")
        == (wanted.get("volumeAttributesClassName") or "")
    )


def mismatch(volume: Object, claim: Object) -> str:
    """Return why a claim cannot have the volume that it names; nothing if it can."""
    offered, wanted = volume.get("spec") or {}, claim.get("spec") or {}
    if _size(volume) < requested(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if (offered.get("volumeMode") or "Filesystem") != (wanted.get("volumeMode") or "Filesystem"):
        return "incompatible volumeMode"
    if not all(mode in (offered.get("accessModes") or ()) for mode in wanted.get("accessModes") or ()):
        return "incompatible accessMode"
    return ""


def requested(claim: Object) -> Quantity:
    """Return how much storage a claim asks for."""
    spec = claim.get("spec") or {}
    return Quantity.of(((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0")


def match(claim: Object, volumes: Iterable[Object], node: Object | None = None) -> Object | None:
    """Return the volume for a claim: one that is kept for it, or the smallest free one that fits.

    A volume that only some nodes reach is taken only if `node` is one of them.
    """
    listed = list(volumes)
    kept = next((one for one in listed if is_claimed_by(one, claim)), None)
    if kept is not None:
        return kept
    free = [one for one in listed if is_free(one) and fits(one, claim) and _is_reached(one, node)]
    return min(free, key=lambda one: (_size(one), one["metadata"]["name"]), default=None)


def _is_reached(volume: Object, node: Object | None) -> bool:
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    return not required or node is None or affinity.matches_any(required, node)


def _size(volume: Object) -> Quantity:
    return Quantity.of(((volume.get("spec") or {}).get("capacity") or {}).get("storage") or "0")
