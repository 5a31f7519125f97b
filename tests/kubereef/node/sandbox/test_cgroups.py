"""Limits and usage, by the machine's own cgroups and by hand-made directories that look like them."""

import asyncio
import os
import signal
import subprocess

import pytest

from kubereef.node.sandbox import Cgroup, CgroupBusy, CgroupTree, Exit, Limits, Usage
from kubereef.node.sandbox import cgroups as module
from kubereef.node.sandbox.cgroups import Hierarchy, cpu_weight, find_hierarchies
from kubewire.sources import ManualClock, SystemClock
from tests.kubereef.node.sandbox.inside import cgroup_name, eventually, in_node, skip_without

MEGABYTE = 1024 * 1024


async def limited(bench, limits):
    """A container's cgroup with limits; the tree it is in goes by `finish`."""
    tree = CgroupTree.open(cgroup_name(bench.work))
    cgroup = tree.root.child("pod").child("container")
    assert cgroup.apply(limits) == ()
    return tree, cgroup


@in_node("memory limits")
async def test_a_container_over_its_memory_limit_is_killed_and_the_kill_is_counted(bench):
    tree, cgroup = await limited(bench, Limits(memory=32 * MEGABYTE, kill_together=True))
    try:
        pod = await bench.pod()
        fine = await bench.shell(pod, "true", cgroup=cgroup.directories)
        assert (fine.exit, cgroup.usage().oom_kills) == (Exit(0), 0)
        # A shell that is one process keeps 200 MB in a variable: it is process 1, and the only one to be killed.
        hungry = await bench.shell(
            pod, "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}", cgroup=cgroup.directories
        )
        assert hungry.exit == Exit(137, signal.SIGKILL)
        assert cgroup.usage().oom_kills >= 1
    finally:
        await tree.root.remove(SystemClock())


@in_node("memory limits", "cpu limits", "pids limits")
async def test_a_container_sees_its_limits_read_only_and_its_usage_is_counted(bench):
    limits = Limits(memory=64 * MEGABYTE, cpu_cores=0.5, cpu_shares=512, pids=100)
    tree, cgroup = await limited(bench, limits)
    try:
        pod = await bench.pod()
        reads = {
            1: "cat memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us cpu/cpu.shares pids/pids.max",
            2: "cat memory.max cpu.max cpu.weight pids.max",
        }[tree.version]
        place = {1: "memory/x", 2: "x"}[tree.version]
        look = "grep -E 'memory|^0:' /proc/self/cgroup"
        script = f"cd /sys/fs/cgroup; {reads}; {look}; mkdir {place} 2>&1 || echo refused"
        result = await bench.shell(pod, script, cgroup=cgroup.directories)
        words = result.output.split()
        wanted = {1: ["67108864", "50000", "512", "100"], 2: ["67108864", "50000", "100000", "20", "100"]}
        assert words[: len(wanted[tree.version])] == wanted[tree.version]
        assert "Read-only" in words
        assert words[-1] == "refused"
        own = {1: ":memory:/", 2: "0::/"}[tree.version]
        assert any(word.endswith(own) for word in words)  # its cgroup is the root of what it sees
        busy = await bench.start(pod, "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exec sleep 1000",
                                 cgroup=cgroup.directories)  # fmt: skip
        await eventually(lambda: cgroup.usage().cpu_seconds > 0.01)
        await eventually(lambda: cgroup.usage().pids == 1)  # the helper that started it is gone
        usage = cgroup.usage()
        assert usage.memory >= usage.working_set > 0
        assert cgroup.processes() == {busy.pid}
        command = await bench.enter(busy, "true")
        assert command.exit == Exit(0)
    finally:
        await tree.root.remove(SystemClock())
    assert (await busy.wait()).signal == signal.SIGKILL


@in_node("pids limits")
async def test_a_container_cannot_fork_beyond_its_limit(bench):
    tree, cgroup = await limited(bench, Limits(pids=4))
    try:
        result = await bench.shell(
            await bench.pod(), "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait", cgroup=cgroup.directories
        )  # fmt: skip
        assert "fork" in result.output
    finally:
        await tree.root.remove(SystemClock())


@in_node("memory limits")
async def test_a_limit_can_be_changed_while_the_container_runs(bench):
    tree, cgroup = await limited(bench, Limits(memory=64 * MEGABYTE))
    try:
        await bench.start(await bench.pod(), "sleep", "1000", cgroup=cgroup.directories)
        cgroup.apply(Limits(memory=128 * MEGABYTE))
        name = "memory.max" if tree.version == 2 else "memory.limit_in_bytes"
        directory = cgroup.directories.get("") or cgroup.directories["memory"]
        assert (directory / name).read_text() == f"{128 * MEGABYTE}\n"
    finally:
        await tree.root.remove(SystemClock())


def test_a_tree_that_a_killed_node_left_is_ended_and_made_anew():
    skip_without("memory limits")
    name = f"kubereef-test-{os.getpid()}"
    left = CgroupTree.open(name).root.child("pod")
    straggler = subprocess.Popen(["sleep", "1000"])
    try:
        for directory in left.directories.values():
            (directory / "cgroup.procs").write_text(str(straggler.pid))
        assert left.processes() == {straggler.pid}
        tree = CgroupTree.open(name)
        assert straggler.wait(5) == -signal.SIGKILL
        asyncio.run(tree.root.remove(SystemClock()))
        assert not any(
            directory.exists() for directory in (*left.directories.values(), *tree.root.directories.values())
        )
    finally:
        straggler.kill()
        straggler.wait()
        Cgroup(left.directories).try_remove()


async def test_a_cgroup_whose_processes_do_not_end_is_reported_after_a_while(tmp_path):
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "cgroup.procs").write_text("")
    (tmp_path / "group" / "cgroup.kill").write_text("")
    clock = ManualClock()
    removal = asyncio.ensure_future(Cgroup({"": tmp_path / "group"}).remove(clock))
    while not removal.done():
        clock.advance(1.0)
        await asyncio.sleep(0.002)
    with pytest.raises(CgroupBusy, match="do not end"):
        await removal


def made(directory, **files):
    directory.mkdir(parents=True)
    for name, content in files.items():
        (directory / name.replace("__", ".")).write_text(content)
    return directory


def test_version_2_files_hold_the_limits(tmp_path):
    group = made(tmp_path / "g", cgroup__controllers="memory cpu pids")
    limits = Limits(memory=1000, cpu_cores=1.5, cpu_shares=1024, pids=10, kill_together=True)
    assert Cgroup({"": group}).apply(limits) == ()
    names = ("memory.max", "cpu.max", "cpu.weight", "pids.max", "memory.oom.group")
    assert [(group / name).read_text() for name in names] == ["1000", "150000 100000", "39", "10", "1"]


def test_version_2_files_tell_the_usage(tmp_path):
    group = made(
        tmp_path / "g",
        memory__current="900\n", memory__stat="anon 100\ninactive_file 300\n", cpu__stat="usage_usec 2500000\n",
        pids__current="3\n", memory__events="low 0\noom 2\noom_kill 1\n",
    )  # fmt: skip
    assert Cgroup({"": group}).usage() == Usage(900, 600, 2.5, 3, 1)


def test_version_2_hands_controllers_down_to_children(tmp_path):
    group = made(tmp_path / "g", cgroup__controllers="memory cpu pids io")
    child = Cgroup({"": group}).child("pod")
    assert child.directories == {"": group / "pod"}
    assert (group / "cgroup.subtree_control").read_text() == "+pids"  # one at a time; the file keeps the last


def test_limits_that_nobody_enforces_are_told(tmp_path):
    group = Cgroup({"memory": made(tmp_path / "memory")})
    assert group.apply(Limits(memory=1, cpu_cores=1, pids=1)) == ("cpu_cores", "pids")
    assert Cgroup({}).apply(Limits(memory=1)) == ("memory",)
    assert Cgroup({}).usage() == Usage()


def test_where_no_hierarchy_can_be_written_the_reason_is_told(tmp_path, monkeypatch):
    places = {"memory": Hierarchy(tmp_path / "nowhere", tmp_path / "nowhere")}
    monkeypatch.setattr(module, "find_hierarchies", lambda *_: places)
    tree = CgroupTree.open("node")
    assert (tree.version, tree.root.directories) == (0, {})
    assert "No such file or directory" in tree.unenforced["memory"]
    assert "no cgroup hierarchy" in tree.unenforced["pids"]


def test_version_2_goes_to_the_top_where_its_own_cgroup_hands_nothing_down(tmp_path, monkeypatch):
    top, own = tmp_path, tmp_path / "session"
    own.mkdir()
    monkeypatch.setattr(module, "find_hierarchies", lambda *_: {"": Hierarchy(top, own)})

    def make(directory):
        directory.mkdir()
        given = "" if directory.parent == own else "memory cpu pids"
        (directory / "cgroup.controllers").write_text(given)

    monkeypatch.setattr(module, "_make_empty", make)
    tree = CgroupTree.open("node")
    assert (tree.version, tree.root.directories, tree.unenforced) == (2, {"": top / "node"}, {})


@pytest.mark.parametrize(
    ("shares", "weight"),
    [pytest.param(0, 1, id="too few"), pytest.param(2, 1, id="the fewest"), pytest.param(1024, 39, id="one CPU"),
     pytest.param(262144, 10000, id="the most"), pytest.param(10**9, 10000, id="too many")],
)  # fmt: skip
def test_shares_map_to_weights_as_the_kubelet_maps_them(shares, weight):
    assert cpu_weight(shares) == weight


@pytest.mark.parametrize(
    ("mountinfo", "membership", "want"),
    [
        pytest.param(
            "30 20 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
            "0::/user.slice/session.scope\n",
            {"": ("/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/session.scope")},
            id="version 2 alone",
        ),
        pytest.param(
            "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "32 20 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
            "4:memory:/job\n3:cpu,cpuacct:/\n",
            {
                "memory": ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/job"),
                "cpu": ("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
                "cpuacct": ("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
            },
            id="version 1, some controllers together",
        ),
        pytest.param(
            "31 20 0:27 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            "4:memory:/docker/1\n",
            {"memory": ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory")},
            id="inside a container, whose own cgroup is mounted",
        ),
        pytest.param(
            "31 20 0:27 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            "4:memory:/elsewhere\n",
            {"memory": ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory")},
            id="in a cgroup that the mount does not show",
        ),
        pytest.param("22 1 8:1 / / rw - ext4 /dev/sda rw\n", "", {}, id="none"),
    ],
)
def test_hierarchies_are_found_in_procs_two_files(mountinfo, membership, want):
    found = find_hierarchies(mountinfo, membership)
    assert {name: (str(place.top), str(place.own)) for name, place in found.items()} == want
