"""The plan for the volume on which a head keeps its state itself."""

from collections.abc import Iterator
from typing import Any

from eagleray.kube.resources import PERSISTENT_VOLUME_CLAIMS, Ref
from eagleray.manifests.cluster import Cluster, owner_of
from eagleray.manifests.storage import claim_name, is_kept, options_of, storage_claim
from eagleray.raycluster.snapshot import Snapshot
from eagleray.runtime.actions import Action, Create, Patch, Said, Say, Tell
from kubewire.quantity import Quantity

Object = dict[str, Any]


def needs_user_claim(cluster: Cluster) -> str:
    """Return the claim that a user has to bring, if there is one."""
    return str(options_of(cluster).get("claimName") or "") if cluster.has_embedded_storage else ""


def plan_storage(snapshot: Snapshot, *, claim_exists: bool) -> Iterator[Action]:
    """Yield what the claim needs: to be made, to be told of where it differs, to go or stay with its cluster."""
    cluster = snapshot.cluster
    place = f"{cluster.namespace}/{claim_name(cluster)}"
    if needs_user_claim(cluster):
        if not claim_exists:
            yield _warning(
                "Validate", f"GCS storage PVC {place} does not exist; create it, or leave claimName out"
            )
        return
    found = snapshot.claim
    wanted = storage_claim(cluster)
    if found is None:
        said = Said(
            Say("CreatedPVC", "Create", f"Created GCS storage PVC {place}"),
            Say("FailedToCreatePVC", "Create", f"Failed to create GCS storage PVC {place}", "Warning"),
        )
        yield Create(PERSISTENT_VOLUME_CLAIMS, wanted, said)
        return
    if differing := _drift(found, wanted):
        text = f"GCS storage PVC {place} is kept as it is, though its {', '.join(differing)} differ from the spec"
        yield _warning("Update", text)
    yield from _ownership(cluster, found)


def _warning(action: str, note: str) -> Tell:
    return Tell(Say("FailedToCreatePVC", action, note, "Warning"))


def _drift(found: Object, wanted: Object) -> list[str]:
    """Return what of a claim differs from the spec; a claim cannot be changed into another."""
    have, want = found.get("spec") or {}, wanted["spec"]
    differing = []
    size = ((have.get("resources") or {}).get("requests") or {}).get("storage") or "0"
    if Quantity.of(size) != Quantity.of(want["resources"]["requests"]["storage"]):
        differing.append("size")
    if "storageClassName" in want and want["storageClassName"] != have.get("storageClassName"):
        differing.append("storageClassName")
    if sorted(have.get("accessModes") or ()) != sorted(want["accessModes"]):
        differing.append("accessModes")
    return differing


def _ownership(cluster: Cluster, found: Object) -> Iterator[Action]:
    """Yield the change by which a claim goes with its cluster or outlives it, as the spec says now."""
    owners = found["metadata"].get("ownerReferences") or []
    mine = [owner for owner in owners if owner.get("uid") == cluster.uid]
    if is_kept(cluster) == (not mine):
        return
    others = [owner for owner in owners if owner.get("uid") != cluster.uid]
    if not is_kept(cluster) and any(owner.get("controller") for owner in others):
        return  # somebody else's: it is used, and left to them
    changed = others if is_kept(cluster) else [*others, owner_of(cluster)]
    change = {"metadata": {"ownerReferences": changed or None}}
    yield Patch(PERSISTENT_VOLUME_CLAIMS, Ref.of(found), change)
