"""The volumes that a Pod needs before it can be placed, and what they say about the place."""

from typing import NamedTuple

from kubereef.controllers.caches import Cache
from kubereef.controllers.pods import is_deleting
from kubereef.kinds.resource import Object

SELECTED_NODE = "volume.kubernetes.io/selected-node"


class VolumeNeeds(NamedTuple):
    """What the claims of a Pod mean for it: an obstacle, node affinities of volumes, claims that wait for a node."""

    obstacle: str = ""
    affinities: tuple[Object, ...] = ()
    waiting: tuple[Object, ...] = ()


def claim_names(pod: Object) -> list[str]:
    """Return the names of the claims that a Pod uses."""
    names = []
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names


def volume_needs(pod: Object, claims: Cache, volumes: Cache, classes: Cache) -> VolumeNeeds:
    """Return what the claims of a Pod mean for its placement."""
    affinities: list[Object] = []
    waiting: list[Object] = []
    for name in claim_names(pod):
        claim = claims.get((pod["metadata"]["namespace"], name))
        if claim is None:
            return VolumeNeeds(f'persistentvolumeclaim "{name}" not found')
        if is_deleting(claim):
            return VolumeNeeds(f'persistentvolumeclaim "{name}" is being deleted')
        if not is_bound(claim):
            if not waits_for_consumer(claim, classes):
                return VolumeNeeds("pod has unbound immediate PersistentVolumeClaims")
            waiting.append(claim)
            continue
        volume = volumes.get(("", claim["spec"]["volumeName"]))
        required = ((volume or {}).get("spec") or {}).get("nodeAffinity", {}).get("required")
        if required:
            affinities.append(required)
    return VolumeNeeds("", tuple(affinities), tuple(waiting))


def is_bound(claim: Object) -> bool:
    return (
        bool((claim.get("spec") or {}).get("volumeName"))
        and (claim.get("status") or {}).get("phase") == "Bound"
    )


def waits_for_consumer(claim: Object, classes: Cache) -> bool:
    """Tell whether a claim gets its volume only when a Pod is to use it."""
    storage_class = classes.get(("", (claim.get("spec") or {}).get("storageClassName") or ""))
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
