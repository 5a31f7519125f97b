"""Leases: who holds something, and until when."""

from kubereef.kinds.behaviours.checks import listed
from kubereef.kinds.behaviours.podspec_validation.checks import Problems
from kubereef.kinds.columns import AGE, NAME, text
from kubereef.kinds.resource import Behaviour, Object
from kubewire import fielderrors


def _problems(lease: Object) -> Problems:
    spec = lease.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield fielderrors.invalid(("spec", "leaseDurationSeconds"), seconds, "must be greater than 0")
    if transitions is not None and transitions < 0:
        detail = "must be greater than or equal to 0"
        yield fielderrors.invalid(("spec", "leaseTransitions"), transitions, detail)


def _drop_elections(lease: Object) -> None:
    """Drop what is for elections by the cluster, which this version does not hold."""
    for field in ("strategy", "preferredHolder"):
        (lease.get("spec") or {}).pop(field, None)


LEASES = Behaviour(
    prepare_create=_drop_elections,
    prepare_update=lambda new, _old: _drop_elections(new),
    validate=listed(_problems),
    put_creates=True,
    columns=(NAME, text("Holder", "spec", "holderIdentity"), AGE),
)
