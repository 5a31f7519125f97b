"""The beginning and the end of a service: a finalizer, and no cluster left when it goes."""

from typing import Final

from eagleray.kube.resources import RAY_SERVICES, Ref
from eagleray.rayservice.clusters import delete_cluster
from eagleray.rayservice.look import Decision, Look
from eagleray.runtime.actions import Patch, Stage

FINALIZER: Final = "ray.io/rayservice-finalizer"


def add_finalizer(look: Look) -> tuple[Stage, ...]:
    """Return what makes sure that the end of the service is noticed; nothing if that is so already."""
    finalizers = look.service.metadata.get("finalizers") or []
    return () if FINALIZER in finalizers else (_set_finalizers(look, [*finalizers, FINALIZER]),)


def plan_end(look: Look) -> Decision:
    """Return the next step of a deletion: all clusters go at once, and the service when they are gone."""
    finalizers = look.service.metadata.get("finalizers") or []
    if look.clusters:
        going = [one for one in look.clusters if not one["metadata"].get("deletionTimestamp")]
        return Decision(
            stages=(Stage("delete-clusters", tuple(map(delete_cluster, going))),) if going else ()
        )
    if FINALIZER not in finalizers:
        return Decision()
    return Decision(stages=(_set_finalizers(look, [name for name in finalizers if name != FINALIZER]),))


def _set_finalizers(look: Look, names: list[str]) -> Stage:
    change = {"metadata": {"finalizers": names or None}}
    return Stage("finalizer", (Patch(RAY_SERVICES, Ref.of(look.service.obj), change),))
