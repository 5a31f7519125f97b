"""What a machine has to offer."""

import os

import pytest

from kubereef.node.machine.capacity import Gpus, capacity, find_gpus, memory_bytes, node_info
from kubewire.quantity import Quantity

MEMINFO = "MemTotal:       16384 kB\nMemFree:          1 kB\n"


def test_processors_are_declared_more_often_than_there_are(tmp_path):
    there = len(os.sched_getaffinity(0))
    assert capacity(tmp_path)["cpu"] == str(4 * there)
    assert Quantity.parse(capacity(tmp_path, cpu_factor=0.3)["cpu"]).milli_value() == 300 * there


@pytest.mark.parametrize(
    ("limits", "want"),
    [
        pytest.param((), 16384 * 1024, id="all that the machine has"),
        pytest.param(("max\n",), 16384 * 1024, id="no limit"),
        pytest.param(("1048576\n",), 1048576, id="a limit on this process"),
        pytest.param(("9223372036854771712",), 16384 * 1024, id="a limit beyond what there is"),
    ],
)
def test_memory_is_what_there_is(limits, want):
    assert memory_bytes(MEMINFO, limits) == want


def test_gpus_are_counted_in_their_order_with_what_they_share(tmp_path):
    for name in ("nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"):
        (tmp_path / name).touch()
    found = find_gpus(tmp_path)
    assert [one.name for one in found.devices] == ["nvidia0", "nvidia2", "nvidia10"]
    assert [one.name for one in found.shared] == ["nvidiactl", "nvidia-uvm"]


def test_without_a_gpu_there_is_nothing_to_share(tmp_path):
    (tmp_path / "nvidiactl").touch()
    assert find_gpus(tmp_path) == Gpus()


def test_gpus_and_declared_resources_are_in_the_capacity(tmp_path):
    amounts = capacity(tmp_path, gpus=2, extra={"example.com/thing": "3"})
    assert (amounts["nvidia.com/gpu"], amounts["example.com/thing"]) == ("2", "3")
    assert "nvidia.com/gpu" not in capacity(tmp_path)


def test_the_machine_is_told_of():
    info = node_info("v1")
    assert info["kubeletVersion"] == "v1"
    assert info["kernelVersion"] == os.uname().release
    assert info["operatingSystem"] == "linux"
