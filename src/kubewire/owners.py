"""Owner references: which object an object belongs to, and which one controls it."""

from collections.abc import Mapping
from typing import Any


class OwnershipError(ValueError):
    """An owner reference that cannot be made or set."""


def owner_reference(
    owner: Mapping[str, Any], *, controller: bool = True, block_owner_deletion: bool = True
) -> dict[str, Any]:
    """Return a reference to an object that the API server has stored.

    A controller is the one owner that manages the object; `block_owner_deletion` makes a foreground
    deletion of the owner wait for the object.
    """
    metadata = owner.get("metadata") or {}
    reference = {
        "apiVersion": owner.get("apiVersion"),
        "kind": owner.get("kind"),
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
    }
    missing = [field for field, value in reference.items() if not value]
    if missing:
        raise OwnershipError(
            f"an owner needs {', '.join(missing)}: use the object that the API server returned"
        )
    if controller:
        reference["controller"] = True
    if block_owner_deletion:
        reference["blockOwnerDeletion"] = True
    return reference


def owner_references(obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the object's owner references, none if it has no such field."""
    return list((obj.get("metadata") or {}).get("ownerReferences") or [])


def controller_of(obj: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the reference to the object's controller, or None if nothing controls it."""
    return next((owner for owner in owner_references(obj) if owner.get("controller") is True), None)


def is_controlled_by(obj: Mapping[str, Any], uid: str) -> bool:
    """Whether the object's controller has this uid; a controller of the same name may be another one."""
    controller = controller_of(obj)
    return controller is not None and controller.get("uid") == uid


def with_owner(obj: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with this owner; a reference to the same uid is replaced where it stands.

    Raises OwnershipError if the reference is to a controller and another one controls the object.
    """
    uid = reference["uid"]
    controller = controller_of(obj)
    if reference.get("controller") is True and controller is not None and controller.get("uid") != uid:
        raise OwnershipError(f"already controlled by {controller.get('kind')} {controller.get('name')}")
    owners = [dict(reference) if owner.get("uid") == uid else owner for owner in owner_references(obj)]
    if not any(owner.get("uid") == uid for owner in owners):
        owners.append(dict(reference))
    return _with_owners(obj, owners)


def without_owner(obj: Mapping[str, Any], uid: str) -> dict[str, Any]:
    """Return the object without references to this uid, and without the field once it is empty."""
    return _with_owners(obj, [owner for owner in owner_references(obj) if owner.get("uid") != uid])


def _with_owners(obj: Mapping[str, Any], owners: list[dict[str, Any]]) -> dict[str, Any]:
    metadata = dict(obj.get("metadata") or {})
    if owners:
        metadata["ownerReferences"] = owners
    else:
        metadata.pop("ownerReferences", None)
    return {**obj, "metadata": metadata}
