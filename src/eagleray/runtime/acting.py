"""The few effects of a controller: a plan's actions become requests, and their ends become events."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from eagleray.kube.writer import Writer
from eagleray.runtime.actions import (
    Action,
    Create,
    Delete,
    DeleteAll,
    Patch,
    Refuse,
    Replace,
    Said,
    Say,
    Stage,
    Tell,
)
from eagleray.runtime.events import Recorder
from eagleray.runtime.outcomes import step
from kubewire import errors

log = logging.getLogger(__name__)

# Of many independent actions so few go at once that others do not wait behind them, here, at the API server or at the
# scheduler. Beside a cluster that grows to 500 workers a small one is ready in 0.3 s, with 16 at once in 5 s; the big
# one grows no sooner.
MOST_AT_ONCE = 2

# What an API server or the way to it may do to a request; anything else is a bug and no part of a plan's failure.
_REFUSALS = (errors.ApiError, OSError)


class PlanRefused(OSError):
    """A plan that says itself that it cannot go on."""


class ActionFailed(Exception):
    """An action failed: `cause` says how, `mark` what it was about. Raised where the cause has to be told on."""

    def __init__(self, cause: Exception, mark: str) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.mark = mark


class Acting:
    """Carries plans out through a writer, whose caches know of each answer, and tells what became of them."""

    def __init__(self, writer: Writer, events: Recorder) -> None:
        self._writer = writer
        self._events = events

    async def act(self, regarding: Mapping[str, Any], stages: Sequence[Stage]) -> bool:
        """Do everything in order. The first stage with a failure is finished as far as it had begun and ends the plan.

        Raises ActionFailed, with the step's name noted on its cause; where a stage may fail, returns False instead.
        """
        for stage in stages:
            try:
                await self._stage(regarding, stage)
            except ActionFailed as failed:
                if not stage.may_fail:
                    raise
                log.warning("Step %s failed, and is not tried again: %s", stage.name, failed)
                return False
        return True

    async def _stage(self, regarding: Mapping[str, Any], stage: Stage) -> None:
        """Do a stage: one action first, so that a failure that all share costs little, then a few at once."""
        waiting = list(stage.actions)
        at_once = 1
        while waiting:
            batch, waiting = waiting[:at_once], waiting[at_once:]
            failures = [
                failure
                for failure in await asyncio.gather(
                    *(self._try(regarding, stage.name, action) for action in batch)
                )
                if failure is not None
            ]
            if failures:
                raise failures[0]
            at_once = MOST_AT_ONCE

    async def _try(self, regarding: Mapping[str, Any], name: str, action: Action) -> ActionFailed | None:
        said = _said(action)
        try:
            with step(name):
                await self._do(action)
        except _REFUSALS as refusal:
            # A plan that refuses to go on has said all there is to say.
            self._tell(regarding, said.failed, "" if isinstance(action, Refuse) else str(refusal))
            if isinstance(action, Create) and action.optional and isinstance(refusal, errors.Conflict):
                return None
            return ActionFailed(refusal, said.mark)
        self._tell(regarding, said.done)
        return None

    async def _do(self, action: Action) -> None:
        match action:
            case Create(resource, obj):
                await self._writer.create_child(resource, obj)
            case Replace(resource, obj):
                await self._writer.replace(resource, obj)
            case Patch(resource, ref, change):
                await self._writer.patch(resource, ref, change)
            case Delete(resource, ref):
                await self._writer.delete(resource, ref)
            case DeleteAll(resource, selection):
                await self._writer.delete_collection(resource, selection)
            case Refuse(message):
                raise PlanRefused(message)
            case Tell():
                pass

    def _tell(self, regarding: Mapping[str, Any], say: Say | None, error: str = "") -> None:
        if say is None:
            return
        tell = self._events.warning if say.kind == "Warning" else self._events.normal
        joint = "" if not error else " " if say.note.endswith(":") else ", "
        tell(regarding, say.reason, say.action, f"{say.note}{joint}{error}")


def _said(action: Action) -> Said:
    if isinstance(action, Tell):
        return Said(done=action.say)
    if isinstance(action, Refuse):
        return Said(failed=action.say)
    return action.said
