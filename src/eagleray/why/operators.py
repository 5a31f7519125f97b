"""Whether an operator is there that looks after an object."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from kubewire.times import parse_micro_time

Object = dict[str, Any]


def absence_of(obj: Object, leases: Sequence[Object] | None, now: datetime) -> str:
    """Return why nobody has looked at an object as it is now; empty if somebody has.

    `leases` are those of operators; None if they may not be seen.
    """
    metadata = obj["metadata"]
    generation = metadata.get("generation", 0)
    if (obj.get("status") or {}).get("observedGeneration") == generation:
        return ""
    unseen = f"generation {generation} has not been looked at"
    if leases is None:
        return (
            f"{unseen}; whether an operator runs cannot be seen with your rights:"
            " ask an administrator for the Lease ray-operator-leader"
        )
    holder = _holder(leases, now)
    if not holder:
        return (
            f"{unseen}, and nobody holds a Lease ray-operator-leader: start the operator (eagleray operator)"
        )
    return (
        f"{unseen}, though {holder} holds the Lease: see its log, and whether it watches namespace"
        f" {metadata['namespace']} (--watch-namespace)"
    )


def nobody_leads(leases: Sequence[Object] | None, now: datetime) -> Iterator[str]:
    """Yield a note if operators once led here and none does now. Without any Lease nothing can be said."""
    if leases and not _holder(leases, now):
        yield "nobody holds the Lease ray-operator-leader: no operator is at work, unless one runs without election"


def _holder(leases: Sequence[Object], now: datetime) -> str:
    """Return who holds a Lease that has not run out."""
    for lease in leases:
        spec = lease.get("spec") or {}
        renewed, holder = spec.get("renewTime"), spec.get("holderIdentity")
        if renewed and holder:
            age = (now - parse_micro_time(renewed)).total_seconds()
            if age <= (spec.get("leaseDurationSeconds") or 0):
                return str(holder)
    return ""
