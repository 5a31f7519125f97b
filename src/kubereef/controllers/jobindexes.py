"""The indexes of a Job's Pods: which are done, which have failed for good, and which are to be tried next."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from kubereef.controllers import jobpolicies, pods
from kubereef.kinds.resource import Object

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
_VARIABLE = "JOB_COMPLETION_INDEX"


class Indexes(NamedTuple):
    """A set of indexes as ordered, disjoint ranges: a status of `0-99999` takes no room."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str | None, end: int) -> "Indexes":
        """Return the indexes below `end` that a text such as `0,2-5` lists; none if it cannot be read."""
        ranges = []
        last_seen = -1
        for part in (text or "").split(",") if text else ():
            first, _, last = part.partition("-")
            if not _is_number(first) or (last and not _is_number(last)):
                return cls()
            low, high = int(first), int(last or first)
            if low <= last_seen or high < low:
                return cls()
            last_seen = high
            if low < end:
                ranges.append((low, min(high, end - 1)))
        return cls(tuple(_joined(ranges)))

    def has(self, index: int) -> bool:
        place = bisect_right(self.ranges, (index, float("inf"))) - 1
        return place >= 0 and index <= self.ranges[place][1]

    def total(self) -> int:
        return sum(high - low + 1 for low, high in self.ranges)

    def common(self, other: "Indexes") -> int:
        """Return how many indexes two sets have in common."""
        count = mine = its = 0
        while mine < len(self.ranges) and its < len(other.ranges):
            (low, high), (first, last) = self.ranges[mine], other.ranges[its]
            count += max(0, min(high, last) - max(low, first) + 1)
            if high < last:
                mine += 1
            else:
                its += 1
        return count

    def adding(self, indexes: Iterable[int]) -> "Indexes":
        return self.joining(Indexes(tuple((one, one) for one in indexes)))

    def joining(self, other: "Indexes") -> "Indexes":
        return Indexes(tuple(_joined(sorted((*self.ranges, *other.ranges)))))

    def first_missing(self, count: int, end: int) -> list[int]:
        """Return the first indexes below `end` that are not in the set, at most so many."""
        found: list[int] = []
        start = 0
        for low, high in (*self.ranges, (end, end)):
            found += range(start, min(low, end, start + count - len(found)))
            start = high + 1
        return found

    def __str__(self) -> str:
        return ",".join(
            str(low) if low == high else f"{low}{',' if high == low + 1 else '-'}{high}"
            for low, high in self.ranges
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10


def _joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield ordered ranges with those made one that touch or overlap."""
    current: tuple[int, int] | None = None
    for low, high in ranges:
        if current is not None and low <= current[1] + 1:
            current = (current[0], max(current[1], high))
        else:
            if current is not None:
                yield current
            current = (low, high)
    if current is not None:
        yield current


class New(NamedTuple):
    """A Pod to be made for an index, and how often earlier ones of it have failed, counted or not."""

    number: int
    failures: int | None = None
    ignored: int = 0


def is_indexed(job: Object) -> bool:
    return (job.get("spec") or {}).get("completionMode") == "Indexed"


def completions(job: Object) -> int:
    count: int = (job.get("spec") or {}).get("completions") or 0
    return count


def limit_per_index(job: Object) -> int | None:
    """Return how often each index may fail, if they are judged one by one."""
    limit: int | None = (job.get("spec") or {}).get("backoffLimitPerIndex")
    return limit


def index_of(job: Object, pod: Object) -> int | None:
    """Return the index that a Pod works at; None if it has none that the Job has."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    index = int(text) if _is_number(text) else None
    return index if index is not None and index < completions(job) else None


def failures(pod: Object) -> int:
    """Return how many counted failures an index had before a Pod."""
    return _number_in(pod, FAILURES)


def _attempts(pod: Object) -> int:
    return failures(pod) + _number_in(pod, IGNORED_FAILURES)


def _number_in(pod: Object, annotation: str) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if _is_number(text) else 0


def has_failed_for_good(job: Object, pod: Object) -> bool:
    """Tell whether a Pod that has failed was the last try at its index."""
    verdict = jobpolicies.judge(job, pod)
    if verdict.action in ("FailIndex", "Ignore"):
        return verdict.action == "FailIndex"
    limit = limit_per_index(job)
    return limit is not None and failures(pod) >= limit


class Retry(NamedTuple):
    """The last failed Pod of an index that is to be tried again: it knows how often that was."""

    pod: Object
    new: New

    @property
    def attempts(self) -> int:
        return _attempts(self.pod) + 1

    @property
    def failed_at(self) -> datetime:
        return pods.finish_time(self.pod)


def retries(job: Object, failed: Iterable[Object], settled: Indexes, active: set[int]) -> dict[int, Retry]:
    """Return for each index that waits for another try the failed Pod that stays until it has one."""
    last: dict[int, Object] = {}
    for pod in failed:
        index = index_of(job, pod)
        if index is None or index in active or settled.has(index):
            continue
        rank = (_attempts(pod), pods.finish_time(pod))
        if index not in last or rank >= (_attempts(last[index]), pods.finish_time(last[index])):
            last[index] = pod
    return {index: Retry(pod, _next(job, pod, index)) for index, pod in last.items()}


def _next(job: Object, pod: Object, index: int) -> New:
    counts = jobpolicies.judge(job, pod).counts
    return New(index, failures(pod) + counts, _number_in(pod, IGNORED_FAILURES) + (not counts))


def with_index(pod: Object, job: Object, new: New) -> Object:
    """Return a Pod of a Job as one that works at an index and is told so."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = {**(metadata.get("annotations") or {}), INDEX: str(new.number)}
    if new.failures is not None:
        annotations[FAILURES] = str(new.failures)
        if new.ignored:
            annotations[IGNORED_FAILURES] = str(new.ignored)
    name = job["metadata"]["name"]
    told = {field: [_told(one) for one in spec[field]] for field in _CONTAINERS if spec.get(field)}
    return {
        **pod,
        "metadata": {
            **metadata,
            "generateName": f"{name}-{new.number}-",
            "annotations": annotations,
            "labels": {**(metadata.get("labels") or {}), INDEX: str(new.number)},
        },
        "spec": {**spec, **told, "hostname": f"{name}-{new.number}"},
    }


_CONTAINERS = ("initContainers", "containers")


def _told(container: Object) -> Object:
    env = container.get("env") or []
    if any(one.get("name") == _VARIABLE for one in env):
        return container
    field = {"fieldPath": f"metadata.labels['{INDEX}']"}
    return {**container, "env": [*env, {"name": _VARIABLE, "valueFrom": {"fieldRef": field}}]}


def surplus(job: Object, active: Iterable[Object]) -> list[Object]:
    """Return the Pods that work at no index of the Job, or at one that another Pod works at already."""
    taken: set[int] = set()
    unwanted = []
    for pod in sorted(active, key=pods.least_missed_first, reverse=True):
        index = index_of(job, pod)
        if index is None or index in taken:
            unwanted.append(pod)
        else:
            taken.add(index)
    return unwanted
