"""A Pod's sandbox: what its containers share, and what they do not share with others."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from kubereef.node.sandbox import Exit, PodSpec, Refused, StartFailed
from kubereef.node.sandbox.pod import check_pod
from tests.kubereef.node.sandbox.inside import eventually, in_node, text


def inode(path):
    return Path(path).stat().st_ino


@in_node()
async def test_containers_of_a_pod_share_network_hostname_and_ipc_and_pods_do_not(bench):
    one, other = await bench.pod(hostname="one"), await bench.pod(hostname="other")
    script = "hostname; readlink /proc/self/ns/net /proc/self/ns/uts /proc/self/ns/ipc"
    first, second = [(await bench.shell(one, script)).output.split() for _ in range(2)]
    foreign = (await bench.shell(other, script)).output.split()
    assert first == second
    assert first[0] == "one"
    assert not set(first) & set(foreign)


@in_node()
async def test_each_container_has_its_own_mount_and_pid_namespace(bench):
    pod = await bench.pod()
    script = "readlink /proc/self/ns/mnt /proc/self/ns/pid"
    first, second = [set((await bench.shell(pod, script)).output.split()) for _ in range(2)]
    assert not first & second


@in_node()
async def test_the_network_namespace_is_given_as_descriptor_and_path_with_loopback_up(bench):
    pod = await bench.pod()
    assert inode(pod.network_path) == os.fstat(pod.network).st_ino != inode("/proc/self/ns/net")
    result = await bench.shell(pod, "cat /proc/net/dev; cat /sys/class/net/lo/flags")
    assert int(result.output.split()[-1], 16) & 1


@in_node()
async def test_a_pod_in_the_host_network_is_in_the_nodes(bench):
    pod = await bench.pod(host_network=True)
    assert os.fstat(pod.network).st_ino == inode("/proc/self/ns/net")
    result = await bench.shell(pod, "readlink /proc/self/ns/net; cat /sys/class/net/lo/operstate")
    assert result.output.split()[0] == f"net:[{inode('/proc/self/ns/net')}]"


@in_node()
async def test_a_shared_process_namespace_shows_containers_to_each_other_and_reaps_orphans(bench):
    pod = await bench.pod(share_process_namespace=True)
    first = await bench.start(pod, "sleep", "1000")
    result = await bench.shell(pod, "cat /proc/[0-9]*/comm; echo $$; (sleep 0.01 &); exit 0")
    assert "sleep" in result.output.split()
    assert result.output.split()[-1] != "1"
    namespace = f"/proc/{pod.keeper.pid}/ns/pid"

    def members():
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    found += [entry.name] if inode(entry / "ns/pid") == inode(namespace) else []
                except OSError:
                    continue
        return found

    await eventually(lambda: len(members()) == 2)  # the keeper and the first container
    await pod.close()
    assert await first.wait() == Exit(137, signal.SIGKILL)


@in_node()
async def test_sysctls_of_the_pods_own_namespaces_are_set(bench):
    pod = await bench.pod(sysctls={"net.core.somaxconn": "777", "kernel.shmmni": "99"})
    result = await bench.shell(
        pod, "cat /proc/sys/net/core/somaxconn /proc/sys/kernel/shmmni /proc/sys/net/ipv4/ip_unprivileged_port_start"
    )  # fmt: skip
    assert result.output.split() == ["777", "99", "0"]
    assert text("/proc/sys/net/core/somaxconn") != "777\n"


def descriptors():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


@in_node()
async def test_a_pod_whose_keeper_is_killed_has_ended_with_all_its_containers(bench):
    plain, shared = await bench.pod(), await bench.pod(share_process_namespace=True)
    container = await bench.start(shared, "sleep", "1000")
    waiting = [asyncio.ensure_future(pod.ended()) for pod in (plain, shared)]
    shared.keeper.signal(signal.SIGKILL)
    await waiting[1]
    assert (await container.wait()).signal == signal.SIGKILL
    assert not waiting[0].done()
    with pytest.raises(StartFailed):
        await bench.start(shared, "true")
    waiting[0].cancel()
    await shared.close()


@in_node()
async def test_a_closed_pod_leaves_no_namespace_and_no_descriptor(bench):
    before = descriptors()
    for shares in (False, True):
        pod = await bench.pod(share_process_namespace=shares)
        await pod.close()
        await pod.close()  # a second time is harmless
    assert descriptors() == before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"sysctls": {"kernel.panic": "1"}}, "whole machine's", id="a sysctl of the whole machine"
        ),
        pytest.param({"sysctls": {"vm.swappiness": "1"}}, "whole machine's", id="a sysctl of the memory"),
        pytest.param(
            {"sysctls": {"net.core.somaxconn": "1"}, "host_network": True},
            "network's settings",
            id="the host's network",
        ),
        pytest.param({"sysctls": {"net..core": "1"}}, "not a sysctl", id="an empty part"),
        pytest.param({"sysctls": {"net.a/../b": "1"}}, "not a sysctl", id="a path"),
        pytest.param({"hostname": "x" * 65}, "1 to 64 bytes", id="a hostname that is too long"),
        pytest.param({"hostname": ""}, "1 to 64 bytes", id="an empty hostname"),
    ],
)
def test_what_a_pod_cannot_have_is_refused(spec, message):
    with pytest.raises(Refused, match=message):
        check_pod(PodSpec(**{"hostname": "web-0", **spec}))
