"""The metrics of a running operator."""

import re

import pytest

from eagleray.kube.access import Access, UserCredentials
from eagleray.kube.http import HttpTransport
from eagleray.operator.assembly import Operator
from eagleray.runtime.options import read_options
from kubewire import errors
from kubewire.sources import SeededEntropy, SystemClock
from tests.eagleray.kube.local import status
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")


@pytest.fixture
async def counted():
    async with world_of(flags=("--enable-metrics",)) as world:
        yield world


def series(world, name):
    """Return the series of a name: their labels, and their values."""
    page = world.operator.registry.render()
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", page, re.MULTILINE)
    return [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)) for labels, value in found]


@pytest.mark.case("OP-16")
async def test_metrics_of_ray_exist_only_when_they_are_asked_for(world):
    await world.create(raycluster())
    await world.ready()
    assert "kuberay_" not in world.operator.registry.render()


@pytest.mark.case("OP-16", "OP-84", "OP-85", "OP-86")
async def test_a_cluster_is_told_of_as_long_as_it_is_there(counted):
    await counted.create(raycluster())
    made = await counted.ready()
    about = {"name": "c", "namespace": "default", "uid": made["metadata"]["uid"]}
    assert series(counted, "kuberay_cluster_info") == [({**about, "owner_kind": "None"}, 1)]
    assert series(counted, "kuberay_cluster_condition_provisioned") == [({**about, "condition": "true"}, 1)]
    ((labels, seconds),) = series(counted, "kuberay_cluster_provisioned_duration_seconds")
    assert labels == about
    assert 0 <= seconds < 10
    await counted.delete("RayCluster", "c")
    await counted.pass_time(60)
    assert "kuberay_cluster_info{" not in counted.operator.registry.render()
    assert made["metadata"]["uid"] not in counted.operator.registry.render()


@pytest.mark.case("OP-84")
@pytest.mark.parametrize("kind", ["RayJob", "RayService"])
async def test_a_cluster_that_was_made_for_another_object_names_its_kind(counted, kind):
    await counted.create(raycluster(metadata={"labels": {"ray.io/originated-from-crd": kind}}))
    await counted.pass_time(5)
    ((labels, _),) = series(counted, "kuberay_cluster_info")
    assert labels["owner_kind"] == kind


@pytest.mark.case("OP-85")
async def test_a_cluster_whose_pods_do_not_run_is_not_provisioned(counted):
    await counted.create(raycluster(head={"container": {"resources": {"requests": {"cpu": "1000"}}}}))
    await counted.pass_time(5)
    ((labels, _),) = series(counted, "kuberay_cluster_condition_provisioned")
    assert labels["condition"] == "false"
    assert series(counted, "kuberay_cluster_provisioned_duration_seconds") == []


DURATIONS = ["0.005", "0.025", "0.1", "0.25", "0.5", "1", "2", "4", "8", "15", "30", "60", "+Inf"]


@pytest.mark.case("OP-93", "OP-96")
async def test_requests_are_counted_and_timed(counted):
    await counted.create(raycluster())
    await counted.ready()
    buckets = series(counted, "rest_client_request_duration_seconds_bucket")
    verb = buckets[0][0]["verb"]
    assert [labels["le"] for labels, _ in buckets if labels["verb"] == verb] == DURATIONS
    assert {frozenset(labels) for labels, _ in buckets} == {frozenset(("verb", "host", "le"))}
    requests = {
        (labels["method"], labels["code"]): value
        for labels, value in series(counted, "rest_client_requests_total")
    }
    created = [request for request in counted.faults.sent if request.verb == "create"]
    assert requests["POST", "201"] == len(created)


@pytest.mark.case("OP-93")
async def test_the_time_that_requests_are_held_back_is_measured():
    async with world_of(flags=("--qps=1", "--burst=1")) as world:
        await world.create(raycluster(workers=[{"replicas": 3}]))
        await world.pass_time(20)
        held = {
            labels["verb"]: value
            for labels, value in series(world, "rest_client_rate_limiter_duration_seconds_sum")
        }
        assert held["POST"] > 1


@pytest.mark.case("OP-96")
async def test_a_request_that_is_sent_again_is_counted(counted):
    counted.faults.next = [status(errors.TooManyRequests("slow down"))]
    await counted.create(raycluster())
    await counted.ready()
    ((labels, value),) = series(counted, "rest_client_request_retries_total")
    assert (labels["code"], value) == ("429", 1)


@pytest.mark.case("OP-95")
async def test_the_sizes_of_requests_and_answers_are_measured(counted):
    await counted.create(raycluster())
    await counted.ready()
    for name in ("rest_client_request_size_bytes", "rest_client_response_size_bytes"):
        bounds = {float(labels["le"]) for labels, _ in series(counted, f"{name}_bucket")}
        assert (min(bounds), max(bounds - {float("inf")})) == (64, 16777216)
        sums = {labels["verb"]: value for labels, value in series(counted, f"{name}_sum")}
        assert sums["POST"] > 1000


@pytest.mark.case("OP-101")
async def test_a_failed_step_is_counted_under_its_name(counted):
    counted.faults.refuse("create", "pods", errors.Forbidden("no"))
    await counted.create(raycluster())
    await counted.pass_time(1)
    (found,) = series(counted, "eagleray_reconcile_step_errors_total")
    assert found[0] == {"controller": "raycluster", "step": "head-pod"}
    assert found[1] > 1


@pytest.mark.case("OP-94")
async def test_the_time_of_looking_up_the_servers_address_is_measured():
    transport = HttpTransport(Access("https://kubernetes.example:6443", UserCredentials()))
    options = read_options((), {})
    operator = Operator(options, transport, clock=SystemClock(), entropy=SeededEntropy(1))
    assert transport.on_resolved is not None
    transport.on_resolved("kubernetes.example:6443", 29.0)
    text = operator.registry.render()
    name = "rest_client_dns_resolution_duration_seconds"
    assert f'{name}_count{{host="kubernetes.example:6443"}} 1' in text
    assert f'{name}_bucket{{host="kubernetes.example:6443",le="30"}} 1' in text
    await operator.close()
