"""The admission step that holds writes to quotas.

The status of a quota is its ledger: what is admitted is added there in the same breath in which the object is
written, so that two requests never both get the last of something. What is given back is found by the controller.
"""

from typing import NamedTuple

from kubereef.kinds.behaviours.pod_resources import Amounts
from kubereef.kinds.resource import Object
from kubereef.server.admission import Attempt
from kubereef.server.quotas.scopes import is_within, scopes_of
from kubereef.server.quotas.usage import Counted, Evaluator, evaluator_of, read_amounts
from kubereef.store.records import Key, Record
from kubereef.store.store import Store
from kubewire import errors
from kubewire.quantity import ZERO

QUOTAS = "resourcequotas"


class _Concerned(NamedTuple):
    """A quota that is about the object of a write."""

    record: Record
    quota: Object
    hard: Amounts
    used: Amounts


def within_quotas(store: Store, attempt: Attempt) -> list[str]:
    """Refuse what would exceed a quota of its namespace, and charge the quotas for what would not.

    This comes after every other check, directly before the write: what has been charged is going to be written.
    """
    if not store.count(QUOTAS) or not attempt.namespace:
        return []
    evaluator = evaluator_of(attempt.resource_type.resource)
    if evaluator is None or (attempt.operation, attempt.subresource) not in evaluator.grows_by:
        return []
    counted = evaluator.evaluate(attempt.obj)
    concerned = _concerned(store, attempt, evaluator, counted)
    added = _added(attempt, evaluator, counted)
    charges = [(one, _new_usage(attempt, one, added)) for one in concerned]
    is_written = not attempt.dry_run and (attempt.operation != "CREATE" or not _is_taken(store, attempt))
    for one, used in charges:
        if is_written and used != one.used:
            listed = {**(one.quota["status"].get("used") or {}), **{n: str(a) for n, a in used.items()}}
            one.quota["status"]["used"] = listed
            store.put(one.record.key, one.quota, one.record)
    return []


def _concerned(store: Store, attempt: Attempt, evaluator: Evaluator, counted: Counted) -> list[_Concerned]:
    """Return the quotas that count this object, as the last writer left them."""
    found = []
    for durable in store.records(QUOTAS, attempt.namespace):
        record = store.latest(durable.key)
        if record is None:
            continue
        quota = record.object()
        status = quota.get("status") or {}
        # What has not been counted yet cannot be held to.
        limited = sorted(name for name in status.get("hard") or () if evaluator.tracks(name))
        if not limited or not is_within(counted.traits, scopes_of(quota)):
            continue
        if unstated := evaluator.unstated(attempt.obj, limited):
            raise _refused(attempt, f"failed quota: {record.key.name}: {unstated}")
        if any(name not in (status.get("used") or {}) for name in limited):
            because = f"status unknown for quota: {record.key.name}, resources: {','.join(limited)}"
            raise _refused(attempt, because)
        hard, used = read_amounts(status["hard"]), read_amounts(status["used"])
        found.append(_Concerned(record, quota, hard, used))
    return found


def _added(attempt: Attempt, evaluator: Evaluator, counted: Counted) -> Amounts:
    """Return by how much a write changes what is used."""
    before = evaluator.evaluate(attempt.old).usage if attempt.old is not None else {}
    now = counted.usage
    changes = {name: now.get(name, ZERO) - before.get(name, ZERO) for name in now | before}
    return {name: change for name, change in changes.items() if change}


def _new_usage(attempt: Attempt, one: _Concerned, added: Amounts) -> Amounts:
    """Return what is used with the object, unless that is too much."""
    requested = {name: amount for name, amount in added.items() if name in one.hard}
    used = one.used | {name: one.used.get(name, ZERO) + amount for name, amount in requested.items()}
    # Whoever gives something back may do so however much is used.
    exceeded = [name for name, more in requested.items() if more > ZERO and used[name] > one.hard[name]]
    if exceeded:
        shown = (_shown(amounts, exceeded) for amounts in (requested, one.used, one.hard))
        requests, uses, limits = shown
        because = (
            f"exceeded quota: {one.record.key.name}, requested: {requests}, used: {uses}, limited: {limits}"
        )
        raise _refused(attempt, because)
    return used


def _shown(amounts: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in sorted(names) if name in amounts)


def _is_taken(store: Store, attempt: Attempt) -> bool:
    """Tell whether there is an object of the name, so that the creation is going to be refused."""
    key = Key(attempt.resource_type.storage, attempt.namespace, attempt.name)
    return store.latest(key) is not None


def _refused(attempt: Attempt, because: str) -> errors.Forbidden:
    resource_type = attempt.resource_type
    return errors.forbidden(resource_type.plural, attempt.name, because, group=resource_type.group)
