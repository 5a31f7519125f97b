"""How an incremental upgrade goes on: capacity and traffic step by step, and back again. Numbers and times alone.

Capacity goes ahead of traffic: the cluster that takes over is given room first, then requests, and only then does the
other one give up room. Rolling back is the same with the sides exchanged.
"""

from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from eagleray.manifests.rayservice import RayService, ServiceSide, UpgradeOptions

WHOLE: Final = 100


class Share(NamedTuple):
    """What one cluster has of the whole service, in percent."""

    capacity: int
    traffic: int


class Shares(NamedTuple):
    """What both clusters have."""

    active: Share
    pending: Share


class Ready(NamedTuple):
    """Which of the clusters serve."""

    active: bool
    pending: bool


AT_FIRST: Final = Shares(Share(WHOLE, WHOLE), Share(0, 0))


def shares_of(service: RayService) -> Shares:
    """Return how the status says that the clusters share the service; what it does not say is as at first."""
    return Shares(_share(service.active, AT_FIRST.active), _share(service.pending, AT_FIRST.pending))


def _share(side: ServiceSide, default: Share) -> Share:
    return Share(
        default.capacity if side.capacity is None else side.capacity,
        default.traffic if side.traffic is None else side.traffic,
    )


def is_finished(shares: Shares, *, rolling_back: bool) -> bool:
    """Tell whether no capacity is left to be moved."""
    taking, giving = _sides(shares, rolling_back=rolling_back)
    return taking.capacity == WHOLE and giving.capacity == 0


def waits_for_traffic(shares: Shares, *, rolling_back: bool) -> bool:
    """Tell whether the side that takes over has room for more requests than it gets."""
    taking, _ = _sides(shares, rolling_back=rolling_back)
    return taking.traffic < taking.capacity


def next_capacity(shares: Shares, surge: int, ready: Ready, *, rolling_back: bool, needed: int = 0) -> Shares:
    """Return the shares after the next change of capacity; the same if none is due.

    Nothing is due until the requests of the side that takes over have caught up with its capacity. From the other side
    nothing is taken while that one does not serve, nor what it still needs for requests that it is known to get: the
    last step up to the whole may have been a short one, and somebody may have changed the size of the steps. It is even
    given back what it needs, should somebody have taken the cluster away that had got a part of the requests.
    """
    taking, giving = _sides(shares, rolling_back=rolling_back)
    if is_finished(shares, rolling_back=rolling_back):
        return shares
    if waits_for_traffic(shares, rolling_back=rolling_back):
        giving = giving._replace(capacity=max(needed, giving.capacity))
    elif taking.capacity + giving.capacity > WHOLE:
        if not (ready.active if rolling_back else ready.pending):
            return shares
        giving = giving._replace(capacity=max(0, needed, giving.capacity - surge))
    else:
        taking = taking._replace(capacity=min(WHOLE, taking.capacity + surge))
    return Shares(taking, giving) if rolling_back else Shares(giving, taking)


def next_traffic(shares: Shares, step: int, ready: Ready, *, rolling_back: bool) -> Shares:
    """Return the shares after the next step of traffic; the same if none is due.

    Nobody gets more requests while it does not serve, be it the side that takes over or, where somebody has lowered
    that one's capacity below its traffic, the other.
    """
    taking, _ = _sides(shares, rolling_back=rolling_back)
    traffic = min(WHOLE, taking.traffic + step, taking.capacity)
    gains_on_active = (traffic > taking.traffic) is rolling_back
    is_gainer_ready = ready.active if gains_on_active else ready.pending
    if traffic == taking.traffic or not is_gainer_ready:
        return shares
    on_active = traffic if rolling_back else WHOLE - traffic
    return Shares(
        shares.active._replace(traffic=on_active), shares.pending._replace(traffic=WHOLE - on_active)
    )


def _sides(shares: Shares, *, rolling_back: bool) -> tuple[Share, Share]:
    """Return the side that takes over and the one that gives up."""
    return (shares.active, shares.pending) if rolling_back else (shares.pending, shares.active)


def step_due(service: RayService, *, rolling_back: bool) -> datetime | None:
    """Return when traffic may move again; None if it may at any time."""
    moved = (service.active if rolling_back else service.pending).migrated_at
    return None if moved is None else moved + timedelta(seconds=service.upgrade_options.interval)


def is_step_due(service: RayService, now: datetime, *, rolling_back: bool) -> bool:
    due = step_due(service, rolling_back=rolling_back)
    return due is None or now >= due


def why_it_cannot_go_on(options: UpgradeOptions) -> str:
    """Say which option keeps an upgrade from ever going on; empty if none does."""
    if options.surge == 0:
        return "maxSurgePercent is 0, so no capacity moves; raise it"
    return "stepSizePercent is 0, so no traffic moves; raise it" if options.step == 0 else ""


# --- rolling back

Turn = Literal["roll back", "go on", "stay"]


class Hashes(NamedTuple):
    """What is wanted, what the two clusters were made from, and an upgrade that was given up, if any."""

    goal: str
    active: str
    pending: str
    abandoned: str = ""


def rollback_turn(hashes: Hashes, *, rolling_back: bool) -> Turn:
    """Decide whether an upgrade is to be undone, or one that is being undone is to go on after all.

    What is wanted may be the old cluster, even if the new one is made from the same spec, or something third.
    """
    wants_pending = hashes.goal == hashes.pending and hashes.goal not in (hashes.active, hashes.abandoned)
    if wants_pending:
        return "go on" if rolling_back else "stay"
    return "stay" if rolling_back else "roll back"


def is_rolled_back(shares: Shares, *, pending_head_ready: bool) -> bool:
    """Tell whether all is as before the upgrade; a new cluster without a working head has nothing to give back."""
    is_whole = shares.active == Share(WHOLE, WHOLE)
    return is_whole and (shares.pending == Share(0, 0) or not pending_head_ready)
