"""The names and labels of the runtime's own metrics."""

import asyncio

import pytest

from eagleray.kube.resources import Key
from eagleray.runtime.metrics import Registry
from eagleray.runtime.outcomes import Done
from eagleray.runtime.series import ClientMetrics, ControllerMetrics, LeaderMetrics, collect_process
from kubereef.simulation import settle
from tests.eagleray.runtime.standins import World

REQUEST_BUCKETS = ["0.005", "0.025", "0.1", "0.25", "0.5", "1", "2", "4", "8", "15", "30", "60", "+Inf"]
SIZE_BUCKETS = [
    *map(str, (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)),
    "+Inf",
]


def buckets(text, name):
    lines = [line for line in text.splitlines() if line.startswith(f"{name}_bucket{{")]
    return [line.split('le="')[1].split('"')[0] for line in lines]


@pytest.fixture
def client():
    registry = Registry()
    metrics = ClientMetrics(registry)
    metrics.answered("GET", "k8s:443", "200", seconds=0.2, sent=0, received=5000)
    metrics.throttled("GET", "k8s:443", 0.01)
    metrics.resolved("k8s", 0.001)
    metrics.retried("GET", "k8s:443", "429")
    return registry.render()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("rest_client_request_duration_seconds", REQUEST_BUCKETS),
        ("rest_client_rate_limiter_duration_seconds", REQUEST_BUCKETS),
        ("rest_client_dns_resolution_duration_seconds", [*REQUEST_BUCKETS[:-2], "+Inf"]),
        ("rest_client_request_size_bytes", SIZE_BUCKETS),
        ("rest_client_response_size_bytes", SIZE_BUCKETS),
    ],
)
def test_the_buckets_of_the_clients_histograms(client, name, wanted):
    assert buckets(client, name) == wanted


@pytest.mark.parametrize(
    "line",
    [
        'rest_client_requests_total{code="200",method="GET",host="k8s:443"} 1',
        'rest_client_request_retries_total{code="429",verb="GET",host="k8s:443"} 1',
        'rest_client_request_duration_seconds_count{verb="GET",host="k8s:443"} 1',
        'rest_client_response_size_bytes_sum{verb="GET",host="k8s:443"} 5000',
        'rest_client_dns_resolution_duration_seconds_count{host="k8s"} 1',
        'rest_client_rate_limiter_duration_seconds_count{verb="GET",host="k8s:443"} 1',
    ],
)
def test_what_the_client_did_is_counted(client, line):
    assert line in client.splitlines()


@pytest.mark.case("OP-98")
@pytest.mark.parametrize(
    "series",
    [
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_time_seconds_count",
        "controller_runtime_max_concurrent_reconciles",
        "controller_runtime_active_workers",
    ],
)
@pytest.mark.usefixtures("virtual_time")
async def test_a_controllers_series_exist_from_the_start(series):
    async with World(None) as world:
        assert f'{series}{{controller="raycluster"}} 0' in world.registry.render().splitlines()


@pytest.mark.case("OP-97")
@pytest.mark.parametrize("result", ["success", "error", "requeue", "requeue_after"])
@pytest.mark.usefixtures("virtual_time")
async def test_every_result_of_a_pass_has_its_series_from_the_start(result):
    async with World(None, name="rayjob") as world:
        line = f'controller_runtime_reconcile_total{{controller="rayjob",result="{result}"}} 0'
        assert line in world.registry.render().splitlines()


@pytest.mark.case("OP-99")
@pytest.mark.usefixtures("virtual_time")
async def test_the_queue_of_a_controller_is_measured():
    async def reconcile(key):
        await asyncio.sleep(30)
        if key.name == "bad":
            raise OSError("no")
        return Done()

    async with World(reconcile, cap=1) as world:
        assert 'workqueue_depth{name="raycluster",controller="raycluster"} 0' in world.registry.render()
        for name in ("bad", "b", "c"):
            world.queue.add(Key("default", name))
        await asyncio.sleep(40)
        await settle()
        lines = world.registry.render().splitlines()
    label = '{name="raycluster",controller="raycluster"}'
    values = {
        line.split("{")[0]: float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith("workqueue") and label in line
    }
    assert values["workqueue_depth"] == 2  # c, and the one that failed
    assert values["workqueue_adds_total"] == 4
    assert values["workqueue_retries_total"] == 1
    assert values["workqueue_unfinished_work_seconds"] == pytest.approx(10, abs=0.1)
    assert values["workqueue_longest_running_processor_seconds"] == pytest.approx(10, abs=0.1)
    assert values["workqueue_queue_duration_seconds_count"] == 2
    assert values["workqueue_queue_duration_seconds_sum"] == pytest.approx(30)
    assert values["workqueue_work_duration_seconds_sum"] == pytest.approx(30)
    assert buckets("\n".join(lines), "workqueue_work_duration_seconds")[:2] == ["1e-08", "1e-07"]


@pytest.mark.usefixtures("virtual_time")
async def test_how_long_passes_take_is_measured():
    async def reconcile(key):
        await asyncio.sleep(0.12)
        return Done()

    async with World(reconcile) as world:
        world.queue.add(Key("default", "a"))
        await asyncio.sleep(1)
    text = world.registry.render()
    name = "controller_runtime_reconcile_time_seconds"
    assert f'{name}_bucket{{controller="raycluster",le="0.1"}} 0' in text
    assert f'{name}_bucket{{controller="raycluster",le="0.15"}} 1' in text


def test_a_process_that_waits_for_the_lease_says_so():
    registry = Registry()
    leader = LeaderMetrics(registry, "ray-operator-leader")
    series = 'leader_election_master_status{name="ray-operator-leader"}'
    assert f"{series} 0" in registry.render()
    leader.leads(True)
    assert f"{series} 1" in registry.render()
    leader.leads(False)
    assert f"{series} 0" in registry.render()


def test_controllers_share_one_registry():
    metrics = ControllerMetrics(registry := Registry())
    for name in ("raycluster", "rayjob"):
        metrics.start(name, None)
        metrics.queue(name)
    text = registry.render()
    assert text.count("# TYPE workqueue_depth gauge") == 1
    assert 'workqueue_depth{name="rayjob",controller="rayjob"} 0' in text


def test_the_process_tells_of_itself():
    registry = Registry()
    collect_process(registry, started=1234.5)
    values = dict(line.split(" ") for line in registry.render().splitlines() if not line.startswith("#"))
    assert values.pop("process_start_time_seconds") == "1234.5"
    assert values.keys() == {
        "process_cpu_seconds_total",
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
    }
    assert all(float(value) > 0 for value in values.values())
