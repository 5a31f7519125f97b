"""The whole plan of a pass over a service: a pure function of what was seen, the time and the operator's settings."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from eagleray.manifests import naming
from eagleray.rayservice import clusters, promotion, routing, serving
from eagleray.rayservice.deletion import add_finalizer
from eagleray.rayservice.incremental import (
    Hashes,
    Ready,
    Shares,
    Turn,
    is_rolled_back,
    next_capacity,
    rollback_turn,
    shares_of,
    step_due,
    waits_for_traffic,
    why_it_cannot_go_on,
)
from eagleray.rayservice.look import Decision, Handover, Look, Seen, soonest
from eagleray.rayservice.status import Conditions, News, finished, next_status, with_routed_traffic
from eagleray.rayservice.suspension import suspend
from eagleray.rayservice.timeouts import Timeout, is_timed_out, timed_out, timeout_due
from eagleray.runtime.actions import Action, Say, Stage, Tell


def plan(look: Look) -> Decision:
    """Return what a pass does about a service that is valid and there to stay."""
    suspension = suspend(look)
    if suspension is not None:
        return suspension
    farewell = clusters.plan_dangling(look)
    stamps = clusters.plan_stamps(look)
    if stamps is not None:
        return Decision(stages=(stamps,))
    if is_timed_out(look):
        conditions = Conditions(look.service.status["conditions"], look.now)
        return Decision(
            finished(look.service, {"conditions": conditions}), farewell.stages, (), farewell.again
        )
    going_on = _Pass(with_routed_traffic(look)).decision()
    # A cluster that cannot be deleted must not keep those from serving that are used.
    return going_on._replace(
        stages=(*going_on.stages, *farewell.stages), again=soonest(farewell.again, going_on.again)
    )


class _Capacity(NamedTuple):
    """The capacities that the clusters are to have, and whether Serve on both has taken them."""

    wanted: Shares
    is_taken: bool


class _Pass:
    """One pass over a service that runs; what several parts of the plan ask is answered once."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.ready = Ready(_is_ready(look, look.active), _is_ready(look, look.pending))
        self.turn = _rollback_turn(look)
        self.rolling_back = self.turn == "roll back" or (self.turn == "stay" and look.is_rolling_back)
        self.is_active_lost = _is_active_lost(look)
        self.capacity = self._capacity()

    def decision(self) -> Decision:
        look = self.look
        timeout = self._timeout()
        if timeout is not None:
            told = Stage("initializing-timeout", (Tell(timeout.say),))
            return Decision(next_status(look, News(timeout=timeout)), (told,))
        news = self._news()
        complaint = routing.complaint(look)
        handovers: tuple[Handover, ...] = ()
        try:
            handovers = tuple(self._handovers(is_preparing=bool(news.prepared)))
        except serving.NotAConfiguration as why:
            complaint = serving.refused_configuration(look, why)
            news = news._replace(held_back=str(why))
        return Decision(next_status(look, news), tuple(self._stages()), handovers, self._again(), complaint)

    def _timeout(self) -> Timeout | None:
        return timed_out(self.look) if serving.count_endpoints(self.look) == 0 else None

    def _news(self) -> News:
        look = self.look
        is_done = self.rolling_back and is_rolled_back(
            shares_of(look.service), pending_head_ready=serving.is_head_ready(look, look.pending)
        )
        is_promoted = promotion.is_promoted(look, rolling_back=self.rolling_back)
        news = News(
            is_promoted=is_promoted,
            # Where traffic may have moved already, it is rolled back first.
            is_given_up=clusters.is_given_up(look) and not look.is_incremental and not is_promoted,
            is_active_lost=self.is_active_lost and not is_promoted,
            is_rolled_back=is_done,
            rollback=self.turn,
            capacity=self.capacity.wanted if self.capacity.is_taken else None,
            held_back=self._held_back(),
        )
        if self.turn == "roll back":
            news = _with_rollback_words(look, news)
        is_settled = not (news.is_promoted or news.is_given_up or news.is_active_lost or is_done)
        if is_settled and clusters.needs_new_cluster(look, rolling_back=self.rolling_back):
            news = news._replace(prepared=clusters.new_name(look), held_back="")
        return news

    def _stages(self) -> Iterator[Stage]:
        look = self.look
        yield from add_finalizer(look)
        yield from clusters.plan_clusters(look, rolling_back=self.rolling_back)
        if self.is_active_lost:
            yield Stage("rollback", (Tell(_impossible(look)),))
        labels: tuple[Action, ...] = tuple(
            action for seen in (look.active, look.pending) for action in serving.plan_head_label(look, seen)
        )
        if labels:
            yield Stage("head-serve-label", labels)
        if look.is_incremental:
            yield from promotion.plan_cluster_services(look)
            yield from routing.plan_way_in(look, self._may_gain(), rolling_back=self.rolling_back)
        yield from promotion.plan_services(look, self.ready)
        yield from clusters.give_up(look, is_pending_ready=self.ready.pending)

    def _may_gain(self) -> Ready:
        """Return which clusters may get more requests: the one that takes over needs the capacity that is on record."""
        look, shares = self.look, shares_of(self.look.service)
        if self.rolling_back:
            has_room = serving.has_capacity(look.active, shares.active.capacity)
            return self.ready._replace(active=self.ready.active and has_room)
        has_room = serving.has_capacity(look.pending, shares.pending.capacity)
        return self.ready._replace(pending=self.ready.pending and has_room)

    def _capacity(self) -> _Capacity:
        """Return the capacities after the next step, if one is due; they are noted once Serve has taken them."""
        look = self.look
        shares = shares_of(look.service)
        if not _is_shared(look) or routing.why_closed(look):
            return _Capacity(shares, is_taken=False)
        giving = look.service.pending if self.rolling_back else look.service.active
        wanted = next_capacity(
            shares,
            look.service.upgrade_options.surge,
            self.ready,
            rolling_back=self.rolling_back,
            needed=giving.traffic or 0,
        )
        changed, capacity = (
            (look.pending, wanted.pending.capacity)
            if wanted.active == shares.active
            else (look.active, wanted.active.capacity)
        )
        is_taken = wanted != shares and changed.put is not None and changed.put.capacity == capacity
        return _Capacity(wanted, is_taken)

    def _handovers(self, *, is_preparing: bool) -> Iterator[Handover]:
        look = self.look
        if not look.is_incremental:
            seen = look.pending if look.service.pending.name else look.active
            is_wanted = bool(look.service.pending.name) or not is_preparing
            yield from self._configured(seen, None) if is_wanted else ()
        elif not _is_shared(look):
            seen, side = (
                (look.pending, look.service.pending)
                if look.service.pending.name
                else (look.active, look.service.active)
            )
            if look.service.pending.name or not is_preparing:
                yield from self._configured(seen, side.capacity)
        else:
            yield from self._shared_handovers()

    def _shared_handovers(self) -> Iterator[Handover]:
        """Yield what both clusters of an upgrade are handed: the one that is wanted has the service's configuration,
        the other keeps its own, also with another head."""
        look, shares, wanted = self.look, shares_of(self.look.service), self.capacity.wanted
        sides = (
            (look.pending, wanted.pending.capacity, shares.pending.capacity, True),
            (look.active, wanted.active.capacity, shares.active.capacity, False),
        )
        for seen, capacity, present, is_pending in sides:
            if is_pending is not self.rolling_back:
                yield from self._configured(seen, capacity)
            elif self._needs_its_own(seen, is_other_capacity=capacity != present):
                handover = serving.change_capacity(look, seen, capacity, is_pending=is_pending)
                if handover is not None:
                    yield handover

    def _needs_its_own(self, seen: Seen, *, is_other_capacity: bool) -> bool:
        """Tell whether a cluster is to be handed its own configuration once more."""
        is_due = is_other_capacity and not self.capacity.is_taken and serving.is_head_ready(self.look, seen)
        return is_due or serving.has_lost_applications(self.look, seen)

    def _configured(self, seen: Seen, capacity: int | None) -> Iterator[Handover]:
        if serving.needs_configuration(self.look, seen, capacity):
            handover = serving.hand_over(self.look, seen, capacity)
            if handover is not None:
                yield handover

    def _held_back(self) -> str | None:
        """Say what an upgrade, or its undoing, waits for; empty if for nothing but time, None if nobody knows yet."""
        look = self.look
        name, seen = look.service.pending.name, look.pending
        if not name:
            return ""
        if self.rolling_back:
            name, seen = look.service.active.name, look.active
        if serving.is_being_asked(look, seen):
            return None
        why = serving.why_not_ready(look, seen)
        if not why and not _is_ready(look, seen):
            why = f"none of its Pods is ready to take requests, with label {naming.SERVE_LABEL}=true"
        if why:
            return f"{name} is held back: {why}"
        if look.is_incremental and _is_shared(look):
            return routing.why_closed(look) or why_it_cannot_go_on(look.service.upgrade_options)
        return ""

    def _again(self) -> float | None:
        look = self.look
        moments = [timeout_due(look), clusters.upgrade_due(look) if not self.ready.pending else None]
        if _is_shared(look) and waits_for_traffic(shares_of(look.service), rolling_back=self.rolling_back):
            moments.append(step_due(look.service, rolling_back=self.rolling_back))
        return soonest(*(_until(look, moment) for moment in moments))


def _until(look: Look, moment: datetime | None) -> float | None:
    """Return the seconds until a moment; None if it has passed, since whatever it brings has been decided."""
    return (moment - look.now).total_seconds() if moment is not None and moment > look.now else None


def _is_shared(look: Look) -> bool:
    """Tell whether two clusters are there to share the service."""
    return look.active.obj is not None and look.pending.obj is not None


def _is_ready(look: Look, seen: Seen) -> bool:
    """Tell whether a cluster serves. Of two of them, none gets requests of the other while nobody there takes them."""
    return serving.is_ready(look, seen) and (seen.takes_requests or not _is_shared(look))


def _is_active_lost(look: Look) -> bool:
    """Tell whether somebody has taken the active cluster away while another is to take over step by step."""
    is_gone = bool(look.service.active.name) and look.active.obj is None
    return look.is_incremental and is_gone and look.pending.obj is not None


def _impossible(look: Look) -> Say:
    note = (
        f"RayCluster {look.service.active.name} is gone, so there is nothing to roll back to;"
        f" {look.service.pending.name} takes over as soon as it serves"
    )
    return Say("RollbackImpossible", "Reconcile", note, "Warning")


def _rollback_turn(look: Look) -> Turn:
    if not (look.is_incremental and look.is_upgrading):
        return "go on" if look.is_rolling_back else "stay"
    if look.pending.obj is None or look.active.obj is None:
        return "stay"
    return rollback_turn(_hashes(look, look.pending), rolling_back=look.is_rolling_back)


def _hashes(look: Look, pending: Seen) -> Hashes:
    goal = look.service.config_hash
    is_growing = (
        pending.obj is not None and clusters.compare(look.service, pending.obj) is clusters.Match.PARTIAL
    )
    # A cluster to which groups are about to be added is what is wanted.
    made_from = goal if is_growing else clusters.stamp_of(pending)
    return Hashes(goal, clusters.stamp_of(look.active), made_from, clusters.abandoned(look))


def _with_rollback_words(look: Look, news: News) -> News:
    hashes = _hashes(look, look.pending)
    if hashes.goal == hashes.active:
        return news._replace(rollback_message="Goal state reverted to original cluster, rolling back.")
    if hashes.goal == hashes.abandoned:
        return news._replace(
            rollback_reason="UpgradeDeadlineExceeded",
            rollback_message="The new cluster was not healthy in time, rolling back to original cluster.",
        )
    return news._replace(rollback_message="Goal state changed mid-upgrade, rolling back to original cluster.")
