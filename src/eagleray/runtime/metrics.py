"""Counters, gauges and histograms, and the text that Prometheus reads.

Written by hand: a registry is a value that a test can own, series vanish with what they are about, whole families
may be computed when asked for, and nothing is imported (prometheus-client takes 69 ms).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from math import isnan
from typing import NamedTuple, Protocol, TypeVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

LabelValues = tuple[str, ...]


class Sample(NamedTuple):
    """One number: the family's name with a suffix, its labels in order, and the value."""

    suffix: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Family(NamedTuple):
    """All series of one name, ready to be written."""

    name: str
    type: str
    help: str
    samples: Iterable[Sample]


class Metric(Protocol):
    """What a registry holds."""

    def family(self) -> Family:
        """Return the present numbers."""
        ...


M = TypeVar("M", bound=Metric)


class Registry:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._collectors: list[Callable[[], Iterable[Family]]] = []

    def counter(self, name: str, about: str, labels: Sequence[str] = ()) -> "Counter":
        """Add a number that only grows."""
        return self._added(name, Counter(name, about, labels))

    def gauge(self, name: str, about: str, labels: Sequence[str] = ()) -> "Gauge":
        """Add a number that goes up and down."""
        return self._added(name, Gauge(name, about, labels))

    def histogram(
        self, name: str, about: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> "Histogram":
        """Add a distribution over buckets, given by their upper bounds."""
        return self._added(name, Histogram(name, about, labels, buckets))

    def collect(self, collector: Callable[[], Iterable[Family]]) -> None:
        """Add families that are computed at every scrape, such as those made from a cache."""
        self._collectors.append(collector)

    def render(self) -> str:
        """Return everything in Prometheus' text format, families sorted by name."""
        families = [metric.family() for metric in self._metrics.values()]
        for collector in self._collectors:
            families.extend(collector())
        lines: list[str] = []
        for family in sorted(families, key=lambda family: family.name):
            lines.append(f"# HELP {family.name} {_escaped_help(family.help)}")
            lines.append(f"# TYPE {family.name} {family.type}")
            lines.extend(_line(family.name, sample) for sample in family.samples)
        return "\n".join([*lines, ""])

    def _added(self, name: str, metric: M) -> M:
        if name in self._metrics:
            raise ValueError(f"the metric {name} exists already")
        self._metrics[name] = metric
        return metric


class _Labelled:
    """What the kinds of metrics share: a name, a help text and the names of labels."""

    type = ""

    def __init__(self, name: str, about: str, labels: Sequence[str]) -> None:
        self._name = name
        self._about = about
        self._label_names = tuple(labels)

    def _labels(self, values: LabelValues) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self._label_names, values, strict=True))

    def _checked(self, values: LabelValues) -> LabelValues:
        if len(values) != len(self._label_names):
            raise ValueError(f"{self._name} has the labels {self._label_names}, not {values}")
        return values


class _Numbers(_Labelled):
    """A number per combination of label values."""

    def __init__(self, name: str, about: str, labels: Sequence[str]) -> None:
        super().__init__(name, about, labels)
        self._values: dict[LabelValues, float] = {}
        if not labels:
            self._values[()] = 0.0

    def start(self, *labels: str) -> None:
        """Make the series of these labels exist, at 0 if it did not, so that an alert sees its first rise."""
        self._values.setdefault(self._checked(labels), 0.0)

    def value(self, *labels: str) -> float:
        """Return the number of a series; one that does not exist counts 0."""
        return self._values.get(self._checked(labels), 0.0)

    def remove(self, *labels: str) -> None:
        """Drop a series, if it exists."""
        self._values.pop(labels, None)

    def family(self) -> Family:
        samples = [Sample("", self._labels(values), number) for values, number in self._values.items()]
        return Family(self._name, self.type, self._about, samples)


class Counter(_Numbers):
    """A number that only grows."""

    type = "counter"

    def add(self, *labels: str, amount: float = 1.0) -> None:
        """Let the series of these labels grow."""
        if amount < 0:
            raise ValueError(f"{self._name} only grows; {amount} would shrink it")
        self._checked(labels)
        self._values[labels] = self._values.get(labels, 0.0) + amount


class Gauge(_Numbers):
    """A number that goes up and down."""

    type = "gauge"

    def set(self, value: float, *labels: str) -> None:
        """Give the series of these labels a value."""
        self._values[self._checked(labels)] = value


class Histogram(_Labelled):
    """How values are distributed over buckets."""

    type = "histogram"

    def __init__(self, name: str, about: str, labels: Sequence[str], buckets: Sequence[float]) -> None:
        super().__init__(name, about, labels)
        self._bounds = tuple(sorted(buckets))
        self._series: dict[LabelValues, _Distribution] = {}
        if not labels:
            self.start()

    def start(self, *labels: str) -> None:
        """Make the series of these labels exist, empty if it did not."""
        if labels not in self._series:
            self._series[self._checked(labels)] = _Distribution(len(self._bounds))

    def observe(self, value: float, *labels: str) -> None:
        """Count a value."""
        self.start(*labels)
        series = self._series[labels]
        series.counts[bisect_left(self._bounds, value)] += 1
        series.sum += value

    def count(self, *labels: str) -> int:
        """Return how many values a series has seen."""
        series = self._series.get(self._checked(labels))
        return sum(series.counts) if series else 0

    def remove(self, *labels: str) -> None:
        """Drop a series, if it exists."""
        self._series.pop(labels, None)

    def family(self) -> Family:
        samples = [
            sample for values, series in self._series.items() for sample in self._samples(values, series)
        ]
        return Family(self._name, self.type, self._about, samples)

    def _samples(self, values: LabelValues, series: "_Distribution") -> list[Sample]:
        labels = self._labels(values)
        total = 0
        samples: list[Sample] = []
        for bound, count in zip((*self._bounds, float("inf")), series.counts, strict=True):
            total += count
            samples.append(Sample("_bucket", (*labels, ("le", _number(bound))), total))
        return [*samples, Sample("_sum", labels, series.sum), Sample("_count", labels, total)]


class _Distribution:
    __slots__ = ("counts", "sum")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.sum = 0.0


def _line(name: str, sample: Sample) -> str:
    labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels)
    shown = f"{{{labels}}}" if labels else ""
    return f"{name}{sample.suffix}{shown} {_number(sample.value)}"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    if value == float("-inf"):
        return "-Inf"
    if isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
