"""The metrics of the runtime itself, under the names that dashboards for controllers know."""

import os
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from eagleray.runtime.metrics import Family, Registry, Sample
from eagleray.runtime.queue import QueueObserver, WorkQueue

RESULTS: Final = ("success", "error", "requeue", "requeue_after")

_RECONCILE_SECONDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
_QUEUE_SECONDS: Final = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)
_REQUEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
_DNS_SECONDS: Final = _REQUEST_SECONDS[:-1]
_BYTES: Final = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)


class ControllerMetrics:
    """What controllers do, in one registry for all of them."""

    def __init__(self, registry: Registry) -> None:
        one = ("controller",)
        named = ("name", "controller")
        self.total = registry.counter(
            "controller_runtime_reconcile_total", "Passes by how they ended", ("controller", "result")
        )
        self.errors = registry.counter("controller_runtime_reconcile_errors_total", "Passes that failed", one)
        self.terminal_errors = registry.counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Passes over objects that are wrong themselves and are not tried again until they change",
            one,
        )
        self.panics = registry.counter(
            "controller_runtime_reconcile_panics_total", "Passes ended by an unexpected exception", one
        )
        self.timeouts = registry.counter(
            "controller_runtime_reconcile_timeouts_total", "Passes that took longer than allowed", one
        )
        self.seconds = registry.histogram(
            "controller_runtime_reconcile_time_seconds", "How long passes took", one, _RECONCILE_SECONDS
        )
        self.max_concurrent = registry.gauge(
            "controller_runtime_max_concurrent_reconciles",
            "Objects that may be reconciled at once; 0 means no limit",
            one,
        )
        self.active = registry.gauge(
            "controller_runtime_active_workers", "Objects that are being reconciled", one
        )
        self.step_errors = registry.counter(
            "eagleray_reconcile_step_errors_total",
            "Failed passes by the step that failed",
            ("controller", "step"),
        )
        self.adds = registry.counter("workqueue_adds_total", "Keys that came into the queue", named)
        self.retries = registry.counter(
            "workqueue_retries_total", "Keys that came back after failures", named
        )
        self.waited = registry.histogram(
            "workqueue_queue_duration_seconds", "How long keys were in the queue", named, _QUEUE_SECONDS
        )
        self.worked = registry.histogram(
            "workqueue_work_duration_seconds", "How long the work on keys took", named, _QUEUE_SECONDS
        )
        self._queues: dict[str, WorkQueue] = {}
        registry.collect(self._queue_families)

    def start(self, controller: str, cap: int | None) -> None:
        """Make the series of a controller exist before anything has happened."""
        for result in RESULTS:
            self.total.start(controller, result)
        for counter in (self.errors, self.terminal_errors, self.panics, self.timeouts):
            counter.start(controller)
        self.seconds.start(controller)
        self.max_concurrent.set(cap or 0, controller)
        self.active.set(0, controller)
        for queue_counter in (self.adds, self.retries):
            queue_counter.start(controller, controller)
        for histogram in (self.waited, self.worked):
            histogram.start(controller, controller)

    def queue(self, controller: str) -> WorkQueue:
        """Return a new queue for a controller; what happens in it is counted."""
        queue = WorkQueue(_QueueCounts(self, controller))
        self._queues[controller] = queue
        return queue

    def _queue_families(self) -> Iterable[Family]:
        depth: list[Sample] = []
        unfinished: list[Sample] = []
        longest: list[Sample] = []
        for name, queue in self._queues.items():
            labels = (("name", name), ("controller", name))
            total, most = queue.work_seconds()
            depth.append(Sample("", labels, len(queue)))
            unfinished.append(Sample("", labels, total))
            longest.append(Sample("", labels, most))
        yield Family("workqueue_depth", "gauge", "Keys that wait", depth)
        yield Family(
            "workqueue_unfinished_work_seconds", "gauge", "How long the work in hand has taken", unfinished
        )
        yield Family(
            "workqueue_longest_running_processor_seconds", "gauge", "The longest work in hand", longest
        )


class _QueueCounts(QueueObserver):
    """Counts what happens in the queue of one controller."""

    def __init__(self, metrics: ControllerMetrics, controller: str) -> None:
        self._metrics = metrics
        self._labels = (controller, controller)

    def added(self) -> None:
        self._metrics.adds.add(*self._labels)

    def retried(self) -> None:
        self._metrics.retries.add(*self._labels)

    def started(self, waited: float) -> None:
        self._metrics.waited.observe(waited, *self._labels)

    def finished(self, worked: float) -> None:
        self._metrics.worked.observe(worked, *self._labels)


class ClientMetrics:
    """What requests to the API server cost. `host` is the server's host and port, `verb` the HTTP method."""

    def __init__(self, registry: Registry) -> None:
        by_verb = ("verb", "host")
        self._seconds = registry.histogram(
            "rest_client_request_duration_seconds", "How long requests took", by_verb, _REQUEST_SECONDS
        )
        self._throttled = registry.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long requests waited for their turn",
            by_verb,
            _REQUEST_SECONDS,
        )
        self._dns = registry.histogram(
            "rest_client_dns_resolution_duration_seconds", "How long names took", ("host",), _DNS_SECONDS
        )
        self._sent = registry.histogram(
            "rest_client_request_size_bytes", "Bytes of requests' bodies", by_verb, _BYTES
        )
        self._received = registry.histogram(
            "rest_client_response_size_bytes", "Bytes of answers' bodies", by_verb, _BYTES
        )
        self._retries = registry.counter(
            "rest_client_request_retries_total", "Requests made again", ("code", "verb", "host")
        )
        self._requests = registry.counter(
            "rest_client_requests_total", "Requests by their answer", ("code", "method", "host")
        )

    def answered(self, verb: str, host: str, code: str, seconds: float, sent: int, received: int) -> None:
        """Count a request; `code` is the answer's status, or `<error>` if there was none."""
        self._requests.add(code, verb, host)
        self._seconds.observe(seconds, verb, host)
        self._sent.observe(sent, verb, host)
        self._received.observe(received, verb, host)

    def retried(self, verb: str, host: str, code: str) -> None:
        """Count a request that is made again because of an answer."""
        self._retries.add(code, verb, host)

    def throttled(self, verb: str, host: str, seconds: float) -> None:
        """Count the time that a request waited for its turn."""
        self._throttled.observe(seconds, verb, host)

    def resolved(self, host: str, seconds: float) -> None:
        """Count the time that finding an address took."""
        self._dns.observe(seconds, host)


class LeaderMetrics:
    """Whether this process leads."""

    def __init__(self, registry: Registry, name: str) -> None:
        self._name = name
        self._status = registry.gauge(
            "leader_election_master_status", "1 on the process that holds the Lease", ("name",)
        )
        self._status.start(name)

    def leads(self, leading: bool) -> None:
        """Say whether this process leads now."""
        self._status.set(1 if leading else 0, self._name)


def collect_process(registry: Registry, started: float) -> None:
    """Add the metrics of this process; `started` is when it began, in seconds since 1970."""

    def families() -> Iterable[Family]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pages = Path("/proc/self/statm").read_text("ascii").split()
        page = os.sysconf("SC_PAGE_SIZE")
        numbers = (
            ("process_cpu_seconds_total", "counter", "CPU time used", usage.ru_utime + usage.ru_stime),
            ("process_virtual_memory_bytes", "gauge", "Virtual memory", int(pages[0]) * page),
            ("process_resident_memory_bytes", "gauge", "Resident memory", int(pages[1]) * page),
            ("process_open_fds", "gauge", "Open files", sum(1 for _ in Path("/proc/self/fd").iterdir())),
            ("process_max_fds", "gauge", "Most open files", resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
            ("process_start_time_seconds", "gauge", "When the process began", started),
        )
        for name, kind, about, value in numbers:
            yield Family(name, kind, about, [Sample("", (), value)])

    registry.collect(families)
