"""Every mount of a container has the flags that keep it harmless, and what tells of the machine is covered."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kubereef.node.sandbox import CgroupTree, Mount, StartFailed
from kubereef.node.sandbox.syscalls import mount
from tests.kubereef.node.sandbox.inside import REPOSITORY, in_node, skip_without

SAFE = {"nosuid", "nodev", "noexec"}
# What Docker and containerd cover, or let nobody write to.
COVERED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
    "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap",
    "/sys/firmware",
)  # fmt: skip
PROTECTED = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


class Seen(NamedTuple):
    """A mount as a container sees it."""

    kind: str
    flags: set[str]


async def mounts_of(bench, **spec):
    """Return the mounts of a container by their place; of several at one place the one on top."""
    result = await bench.run(await bench.pod(), "cat", "/proc/self/mountinfo", **spec)
    found = {}
    for line in result.output.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        found[fields[4]] = Seen(right.split()[0], set(fields[5].split(",")))
    return found


@in_node()
async def test_each_mount_of_a_container_has_the_flags_it_should(bench):
    volume, inner = bench.directory(), bench.directory()
    seen = await mounts_of(
        bench,
        mounts=(
            Mount(target="/open", source=volume),
            Mount(target="/closed", source=inner, read_only=True),
            Mount(target="/memory", kind="tmpfs"),
            Mount(target="/still", kind="tmpfs", read_only=True),
        ),
    )
    wanted = {
        "/": {"nodev", "rw"},
        "/dev": {*SAFE, "rw"},
        "/dev/null": {"nosuid", "noexec", "ro"},
        "/dev/tty": {"nosuid", "noexec", "ro"},
        "/dev/pts": {"nosuid", "noexec"},
        "/dev/shm": {*SAFE, "rw"},
        "/dev/mqueue": {*SAFE, "rw"},
        "/proc": {*SAFE, "rw"},
        "/sys": {*SAFE, "ro"},
        "/open": {"nodev", "rw"},
        "/closed": {"nodev", "ro"},
        "/memory": {"nosuid", "nodev", "rw"},
        "/still": {"nosuid", "nodev", "ro"},
    }
    assert {place: flags - seen[place].flags for place, flags in wanted.items()} == {
        place: set() for place in wanted
    }


@in_node()
async def test_what_tells_of_the_machine_is_covered_and_what_changes_it_cannot_be_written(bench):
    seen = await mounts_of(bench)
    present = [path for path in (*COVERED, *PROTECTED) if is_there(path)]
    assert {path: "ro" in seen[path].flags for path in present if path in seen} == dict.fromkeys(
        present, True
    )
    for path in COVERED:
        if is_there(path):
            assert seen[path].kind in (("tmpfs",) if is_directory(path) else ("devtmpfs", "tmpfs")), path


def is_there(path):
    return Path(path).exists()


def is_directory(path):
    return Path(path).is_dir()


@in_node("memory limits")
async def test_a_container_sees_its_own_cgroup_as_the_whole_and_cannot_change_it(bench):
    tree = CgroupTree.open(f"kubereef-test-{bench.work.name}")
    cgroup = tree.root.child("app")
    seen = await mounts_of(bench, cgroup=cgroup.directories)
    for name in cgroup.directories:
        assert {*SAFE, "ro"} <= seen[f"/sys/fs/cgroup/{name}".rstrip("/")].flags
    assert "ro" in seen["/sys/fs/cgroup"].flags
    pod = await bench.pod()
    result = await bench.run(pod, "cat", "/proc/self/cgroup", cgroup=cgroup.directories)
    places = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in result.output.splitlines()}
    assert {places[name] for name in cgroup.directories} == {"/"}
    container = await bench.start(pod, "sleep", "1000", cgroup=cgroup.directories)
    entered = await bench.enter(container, "cat", "/proc/self/cgroup")
    inside = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in entered.output.splitlines()}
    assert {inside[name] for name in cgroup.directories} == {"/"}
    container.signal(9)
    await container.wait()
    tree.root.try_remove()


@in_node()
async def test_a_read_only_volume_is_so_also_where_something_is_mounted_in_it(bench):
    volume = bench.directory()
    (volume / "deep").mkdir()
    mount("deep", str(volume / "deep"), "tmpfs")
    mounts = (Mount(target="/data", source=volume, read_only=True),)
    result = await bench.shell(await bench.pod(), "touch /data/deep/file || echo refused", mounts=mounts)
    assert result.output.endswith("refused\n")


@in_node()
async def test_an_image_cannot_put_a_link_in_the_place_of_what_every_container_has(bench):
    for name in ("proc", "sys", "dev"):
        (bench.image / name).symlink_to("elsewhere")
    seen = await mounts_of(bench)
    assert [seen[place].kind for place in ("/proc", "/sys", "/dev")] == ["proc", "sysfs", "tmpfs"]


@in_node()
async def test_a_link_in_an_image_cannot_lead_a_volume_onto_the_root_or_into_proc(bench):
    (bench.image / "whole").symlink_to("/")
    (bench.image / "knows").symlink_to("/proc")
    pod = await bench.pod()
    for target in ("/whole", "/knows/sys"):
        with pytest.raises(StartFailed, match="where nothing can be mounted"):
            await bench.shell(pod, "true", mounts=(Mount(target=target, source=bench.directory()),))


SHARED = """
import asyncio, sys
from kubereef.node.sandbox import NodeProcess

async def main():
    node = NodeProcess("tests.kubereef.node.sandbox.test_mounts:mount_here", argument=sys.argv[1])
    await node.start()
    print(await node.wait(), sys.argv[1] in open("/proc/self/mountinfo").read(), open("/proc/self/stat").read() != "")

asyncio.run(main())
"""


def mount_here(start):
    mount("mine", start.argument, "tmpfs")
    return 0 if start.argument in Path("/proc/self/mountinfo").read_text() else 1


def test_mounts_of_a_node_do_not_reach_a_machine_that_shares_its_own(tmp_path):
    skip_without()
    command = ["unshare", "--mount", "--propagation", "shared", sys.executable, "-c", SHARED, str(tmp_path)]
    env = {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(command, capture_output=True, text=True, env=env, timeout=30)
    assert ran.stdout == "0 False True\n", ran.stderr
