"""Asking webhooks: the mutating ones in turn, each about what the one before left, the validating ones at once."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from kubereef.kinds.registry import Registry
from kubereef.server.incoming import check_kind, well_formed
from kubereef.server.lines import Lines
from kubereef.server.media import decoded_json
from kubereef.server.requests import User
from kubereef.server.webhooks.calling import Caller, CallFailed
from kubereef.server.webhooks.configurations import MUTATING, VALIDATING, Hook, Hooks
from kubereef.server.webhooks.matching import Invocation, invocation_of, is_exempt
from kubereef.server.webhooks.places import Places
from kubereef.server.webhooks.reviews import BadAnswer, Verdict, denial, question, verdict
from kubereef.server.webhooks.subjects import Subject, copied
from kubereef.store.store import Store
from kubewire import errors, jsonpatch
from kubewire.gotext import quote
from kubewire.sources import Clock, Entropy

log = logging.getLogger(__name__)

Warn = Callable[[str], None]


class Webhooks:
    """The webhooks of a cluster. Where none is configured, asking costs next to nothing.

    Nobody is asked about what the server does as the user `own`: it has to be able to start whoever is out of reach.
    """

    def __init__(
        self, store: Store, registry: Registry, clock: Clock, entropy: Entropy, lines: Lines, own: User
    ) -> None:
        self._store = store
        self._own = own
        self._registry = registry
        self._clock = clock
        self._entropy = entropy
        self._caller = Caller(Places(store, lines))
        self._mutating = Hooks(MUTATING)
        self._validating = Hooks(VALIDATING)

    @property
    def is_any(self) -> bool:
        """Whether there is somebody who could be asked."""
        return bool(self._store.count(MUTATING) or self._store.count(VALIDATING))

    async def mutate(self, subject: Subject, warn: Warn, again: Callable[[], object] = lambda: None) -> None:
        """Have the object of a subject changed by whoever wants to; raises ApiError if somebody refuses it.

        `again` is what the server itself does to objects; it is done once more to an object that has been changed.
        """
        hooks = self._mutating.of(self._store)
        if not hooks or self._is_exempt(subject):
            return
        rounds = _Rounds()
        await self._asked_in_turn(hooks, subject, warn, rounds)
        if not rounds.is_changed:
            return
        before = None if subject.obj is None else copied(subject.obj)
        again()
        if subject.obj != before:
            rounds.note_change()
        if rounds.due:
            chosen = [hook for hook in hooks if hook.id in rounds.due]
            await self._asked_in_turn(chosen, subject, warn, _Rounds())

    async def validate(self, subject: Subject, warn: Warn) -> None:
        """Ask whoever wants to judge a subject, all at once; raises ApiError if somebody refuses it."""
        hooks = self._validating.of(self._store)
        if not hooks or self._is_exempt(subject):
            return
        found = (invocation_of(hook, subject, self._store, self._registry) for hook in hooks)
        invocations = [one for one in found if one is not None]
        for refusal in await asyncio.gather(*(self._judgement(one, subject, warn) for one in invocations)):
            if refusal is not None:
                raise refusal

    async def close(self) -> None:
        """Let go of all connections."""
        await self._caller.close()

    def _is_exempt(self, subject: Subject) -> bool:
        return subject.user == self._own or is_exempt(subject)

    async def _asked_in_turn(
        self, hooks: Sequence[Hook], subject: Subject, warn: Warn, rounds: "_Rounds"
    ) -> None:
        for hook in hooks:
            invocation = invocation_of(hook, subject, self._store, self._registry)
            if invocation is None:
                continue
            try:
                if await self._change(invocation, subject, warn):
                    rounds.note_change()
            except CallFailed as bad:
                if (refusal := _refusal_after(hook, bad)) is not None:
                    raise refusal from None
            if hook.reinvoked:
                rounds.asked.add(hook.id)

    async def _change(self, invocation: Invocation, subject: Subject, warn: Warn) -> bool:
        """Ask one mutating webhook and do what it says; return whether the object has become another."""
        answer = await self._asked(invocation, subject, warn, mutating=True)
        operations = _operations(answer)
        if not operations:
            return False
        hook = invocation.hook
        if subject.obj is None:
            because = "attempted to modify the object, which is not supported for this operation"
            raise errors.internal_error(f"admission webhook {quote(hook.name)} {because}")
        if answer.patch_type != "JSONPatch":
            raise CallFailed(f"unsupported patch type {quote(answer.patch_type)}")
        patched = _patched(invocation, subject, subject.obj, operations)
        is_changed = patched != subject.obj
        subject.obj.clear()
        subject.obj.update(patched)
        return is_changed

    async def _judgement(
        self, invocation: Invocation, subject: Subject, warn: Warn
    ) -> errors.ApiError | None:
        try:
            await self._asked(invocation, subject, warn, mutating=False)
        except CallFailed as bad:
            return _refusal_after(invocation.hook, bad)
        except errors.ApiError as refusal:
            return refusal
        return None

    async def _asked(
        self, invocation: Invocation, subject: Subject, warn: Warn, *, mutating: bool
    ) -> Verdict:
        """Return what a webhook says that allows the request; raises CallFailed if it says nothing of use."""
        hook = invocation.hook
        if subject.dry_run and not hook.allows_dry_run:
            raise errors.bad_request(f"admission webhook {quote(hook.name)} does not support dry run")
        uid = self._entropy.uid()
        body = question(uid, hook.review_version, invocation.version, subject)
        try:
            raw = await self._caller.ask(hook.address, body, min(hook.timeout, self._left(subject)))
            answer = verdict(raw, uid, hook.review_version, mutating=mutating)
        except BadAnswer as bad:
            raise CallFailed(str(bad)) from None
        except CallFailed:
            self._left(subject)
            raise
        for warning in answer.warnings:
            warn(warning)
        if not answer.allowed:
            raise denial(hook.name, answer.status)
        return answer

    def _left(self, subject: Subject) -> float:
        """Return how many seconds the request has left, or refuse it if there are none."""
        left = subject.until - self._clock.now().timestamp()
        if left <= 0:
            raise errors.timeout("request did not complete within the allotted timeout")
        return left


class _Rounds:
    """Which webhooks have to be asked again, because somebody changed the object after they had seen it."""

    def __init__(self) -> None:
        self.is_changed = False
        # Those that want to be asked again, should there be a reason; and those for whom there is one.
        self.asked: set[str] = set()
        self.due: set[str] = set()

    def note_change(self) -> None:
        self.is_changed = True
        self.due |= self.asked


def _refusal_after(hook: Hook, bad: CallFailed) -> errors.InternalError | None:
    """Return how a request is refused whose webhook failed; None if it is to go on without."""
    failure = f"failed calling webhook {quote(hook.name)}: {bad}"
    if not hook.ignores_failures:
        return errors.internal_error(failure)
    log.warning("%s; the request goes on without it", failure)
    return None


def _operations(answer: Verdict) -> tuple[jsonpatch.Operation, ...]:
    if not answer.patch:
        return ()
    try:
        patch = decoded_json(answer.patch).value
        if not isinstance(patch, list):
            raise ValueError(jsonpatch.cannot_unmarshal(patch, "Go value of type jsonpatch.Patch"))
        return jsonpatch.parse(patch)
    except ValueError as bad:  # a PatchError is one
        raise CallFailed(f"received undecodable patch in webhook response: {bad}") from None


def _patched(
    invocation: Invocation,
    subject: Subject,
    obj: dict[str, object],
    operations: tuple[jsonpatch.Operation, ...],
) -> dict[str, object]:
    """Return an object as a patch leaves it: read, with defaults, in the version of the request."""
    version = invocation.version if subject.is_whole else subject.object_type
    shown = subject.shown(copied(obj), version)
    try:
        patched = jsonpatch.apply(shown, operations)
        if not isinstance(patched, dict):
            raise errors.internal_error("the patch leaves no object")
        check_kind(version, patched)
        patched, _ = well_formed(version, patched, [], "Ignore")
    except ValueError as bad:  # a PatchError is one
        raise errors.internal_error(str(bad)) from None
    except errors.BadRequest as bad:
        raise errors.internal_error(bad.message) from None
    version.behaviour.defaults(patched)
    return subject.taken_back(patched, version)
