"""What containers and Pods may use."""

from pathlib import Path

import pytest

from kubereef.node.kubelet.problems import ConfigProblem
from kubereef.node.kubelet.resources import GpuPool, container_limits, oom_score, pod_limits
from kubereef.node.sandbox import Limits
from tests.kubereef.node.kubelet.fakes import IMAGE, container, pod

MIB = 1 << 20


@pytest.mark.parametrize(
    ("resources", "limits"),
    [
        pytest.param({}, Limits(cpu_shares=2, kill_together=True), id="nothing asked for"),
        pytest.param(
            {"requests": {"cpu": "250m"}, "limits": {"cpu": "1500m", "memory": "64Mi"}},
            Limits(memory=64 * MIB, cpu_cores=1.5, cpu_shares=256, kill_together=True),
            id="both given",
        ),
    ],
)
def test_limits_of_a_container(resources, limits):
    assert container_limits(container(resources=resources)) == limits


def test_a_pod_is_limited_where_all_its_containers_are():
    small = {"limits": {"cpu": "1", "memory": "10Mi"}, "requests": {"cpu": "1", "memory": "10Mi"}}
    both = {"containers": [container("a", resources=small), container("b", resources=small)]}
    assert pod_limits(both) == Limits(memory=20 * MIB, cpu_cores=2.0, cpu_shares=2048)
    one = {"containers": [container("a", resources=small), container("b")]}
    assert pod_limits(one) == Limits(memory=None, cpu_cores=None, cpu_shares=1024)
    whole = {**one, "resources": {"limits": {"memory": "50Mi"}}}
    assert pod_limits(whole).memory == 50 * MIB


@pytest.mark.parametrize(
    ("resources", "score"),
    [
        pytest.param({}, 1000, id="BestEffort goes first"),
        pytest.param({"requests": {"memory": "512Mi"}}, 500, id="Burstable by what it asks for"),
        pytest.param({"requests": {"cpu": "1"}}, 999, id="Burstable without memory"),
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1Mi"}, "limits": {"cpu": "1", "memory": "1Mi"}},
            None,
            id="Guaranteed",
        ),
    ],
)
def test_who_is_killed_first_when_memory_runs_out(resources, score):
    one = container(resources=resources)
    assert oom_score({"containers": [one]}, one, "1Gi") == score


def test_gpus_are_given_to_one_container_at_a_time():
    first, second, shared = Path("/dev/nvidia0"), Path("/dev/nvidia1"), Path("/dev/nvidiactl")
    pool = GpuPool([first, second], [shared])
    assert pool.claim("u1", "a", 1) == (first, shared)
    assert pool.claim("u1", "a", 1) == (first, shared)  # after a restart of the container
    assert pool.claim("u2", "a", 1) == (second, shared)
    assert pool.claim("u3", "a", 0) == ()
    with pytest.raises(ConfigProblem, match=r"nvidia.com/gpu"):
        pool.claim("u3", "a", 1)
    pool.release("u1")
    assert pool.claim("u3", "a", 1) == (first, shared)


async def test_a_pod_of_the_hosts_network_has_its_address_and_no_link(bench):
    probed = container(readinessProbe={"tcpSocket": {"port": 80}})
    await bench.create(pod(probed, hostNetwork=True))
    status = await bench.status()
    assert (status["podIP"], status["hostIP"]) == ("192.168.1.10", "192.168.1.10")
    assert bench.network.attached == {}
    assert bench.runtime.sandboxes[0].spec.host_network
    assert bench.prober.asked == [("127.0.0.1", 80, None, 1.0)]


@pytest.mark.parametrize(
    ("policy", "events"),
    [
        pytest.param("IfNotPresent", ["Pulled"], id="an image that is there"),
        pytest.param("Always", ["Pulling", "Pulled"], id="one that is looked at again each time"),
    ],
)
async def test_the_pull_policy_is_passed_on(bench, policy, events):
    await bench.create(pod(container(imagePullPolicy=policy)))
    assert bench.images.pulls == [(IMAGE, policy)]
    assert [reason for reason, _ in await bench.events("Pulling", "Pulled")] == events
