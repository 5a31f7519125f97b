"""Numbers of Pods and what they ask for."""

import pytest

from eagleray.raycluster.counts import demand_of, worker_counts
from tests.eagleray.manifests.clusters import cluster


def asks(**amounts):
    return {"container": {"resources": {"requests": amounts}}}


def counted(*groups):
    return worker_counts(cluster(workers=[{"groupName": f"g{n}", **group} for n, group in enumerate(groups)]))


def test_the_largest_number_does_not_overflow():
    assert counted({"maxReplicas": 2147483647, "numOfHosts": 4}).most == 2147483647


@pytest.mark.parametrize(
    ("groups", "desired"),
    [
        pytest.param(
            [{"replicas": None, "minReplicas": 1}, {"replicas": None, "minReplicas": 2}], 3, id="unset"
        ),
        pytest.param([{"replicas": 0, "minReplicas": 2}, {"replicas": 6, "maxReplicas": 5}], 7, id="clamped"),
        pytest.param([{"replicas": 3, "numOfHosts": 4}, {"replicas": 3}], 15, id="hosts"),
    ],
)
def test_desired_workers(groups, desired):
    built = cluster(workers=[{"groupName": f"g{n}", **group} for n, group in enumerate(groups)])
    for stored, asked in zip(built.workers, groups, strict=True):
        stored["replicas"] = asked["replicas"]  # an unset one, which defaults would fill
    assert worker_counts(built).desired == desired


def test_a_suspended_group_does_not_count():
    suspended = {"suspend": True, "replicas": 100, "minReplicas": 100, "maxReplicas": 100, **asks(cpu=1)}
    built = cluster(workers=[suspended])
    assert worker_counts(built) == (0, 0, 0)
    assert str(demand_of(built).cpu) == "0"


def test_the_demand_of_all_pods():
    built = cluster(
        head=asks(cpu=1, memory="100Mi"),
        workers=[{"replicas": 4, "numOfHosts": 2, **asks(cpu="1", memory="200Mi")}],
    )
    demand = demand_of(built)
    assert (str(demand.cpu), str(demand.memory)) == ("9", "1700Mi")


def test_every_kind_of_gpu_is_one():
    amounts = {"nvidia.com/gpu": 3, "nvidia.com/mig-1g.10gb": 2, "foo.bar/gpu": 2, "google.com/tpu": 1}
    demand = demand_of(cluster(head={"container": {"resources": {"limits": amounts}}}))
    assert (str(demand.gpu), str(demand.tpu)) == ("7", "1")


def test_a_request_counts_before_a_limit():
    container = {"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 2, "memory": "1Gi"}}}
    demand = demand_of(cluster(head={"container": container}))
    assert (str(demand.cpu), str(demand.memory)) == ("500m", "1Gi")
