"""Who a container's processes are and what they may do, seen in /proc and by trying."""

import platform
import subprocess
import sys

import pytest

from kubereef.node.sandbox import (
    DEFAULT_CAPABILITIES,
    Command,
    Exit,
    Refused,
    Security,
    StartFailed,
    resolve_capabilities,
)
from kubereef.node.sandbox.privileges import CAPABILITY_NAMES, capability_mask
from kubereef.node.sandbox.seccomp import default_profile
from tests.kubereef.node.sandbox.inside import USUAL_ENV, in_node, skip_without

ALL = frozenset(CAPABILITY_NAMES)


async def status(bench, pod, **security):
    result = await bench.run(pod, "cat", "/proc/self/status", command={"security": Security(**security)})
    return dict(line.split(":\t", 1) for line in result.output.splitlines())


@in_node()
async def test_root_in_a_container_has_the_default_capabilities_and_no_others(bench):
    seen = await status(bench, await bench.pod())
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(seen[name], 16) == capability_mask(resolve_capabilities())
    assert (seen["CapInh"], seen["CapAmb"], seen["NoNewPrivs"]) == ("0" * 16, "0" * 16, "0")


@in_node()
async def test_another_user_has_its_ids_and_no_capability(bench):
    seen = await status(bench, await bench.pod(), uid=1000, gid=100, groups=(100, 2000))
    assert seen["Uid"].split() == ["1000"] * 4
    assert seen["Gid"].split() == ["100"] * 4
    assert seen["Groups"].split() == ["100", "2000"]
    assert int(seen["CapEff"], 16) == int(seen["CapPrm"], 16) == 0


@in_node()
async def test_dropped_capabilities_are_gone_and_added_ones_there(bench):
    wanted = resolve_capabilities(add=["NET_ADMIN"], drop=["ALL"])
    seen = await status(bench, await bench.pod(), capabilities=wanted, no_new_privileges=True)
    assert int(seen["CapEff"], 16) == int(seen["CapBnd"], 16) == capability_mask(["NET_ADMIN"])
    assert seen["NoNewPrivs"] == "1"


INHERITED = """
import sys
from pathlib import Path
from kubereef.node.sandbox.privileges import capability_mask, take_identity
from kubereef.node.sandbox.syscalls import PR_CAP_AMBIENT, prctl, set_capabilities

mask = capability_mask(["NET_RAW", "SETUID", "SETGID", "SETPCAP"])
set_capabilities(effective=mask, permitted=mask, inheritable=mask)
prctl(PR_CAP_AMBIENT, 2, 13)  # raise NET_RAW, which programs of other users would then have too
take_identity(int(sys.argv[1]), 0, (), ["NET_RAW"], no_new_privileges=False)
print(Path("/proc/self/status").read_text())
"""


@pytest.mark.parametrize("uid", [0, 1000])
def test_what_kubereef_itself_inherited_does_not_reach_a_container(uid):
    skip_without()
    ran = subprocess.run([sys.executable, "-c", INHERITED, str(uid)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    seen = dict(line.split(":\t", 1) for line in ran.stdout.splitlines() if ":\t" in line)
    assert (seen["CapInh"], seen["CapAmb"]) == ("0" * 16, "0" * 16)
    assert (
        int(seen["CapEff"], 16)
        == int(seen["CapPrm"], 16)
        == (capability_mask(["NET_RAW"]) if uid == 0 else 0)
    )


@in_node("seccomp")
async def test_the_default_seccomp_profile_is_really_applied(bench):
    pod = await bench.pod()
    everything = Security(capabilities=resolve_capabilities(add=["SYS_ADMIN"]))
    without = await bench.shell(pod, "unshare -u echo made", command={"security": everything})
    assert without.output == "made\n"
    filtered = Security(seccomp="RuntimeDefault")
    result = await bench.shell(
        pod, "grep Seccomp: /proc/self/status; unshare -U true", command={"security": filtered}
    )
    assert result.output.startswith("Seccomp:\t2\n")
    assert "Operation not permitted" in result.output
    quiet = Security(uid=1000, gid=1000, seccomp="RuntimeDefault", no_new_privileges=True)
    assert (await bench.shell(pod, "ls / | wc -l; id", command={"security": quiet})).exit == Exit(0)


@in_node("seccomp")
async def test_a_command_inside_runs_under_its_own_security(bench):
    container = await bench.start(await bench.pod(), "sleep", "1000")
    weak = Security(
        uid=1000, gid=1000, capabilities=frozenset(), no_new_privileges=True, seccomp="RuntimeDefault"
    )
    result = await bench.enter(container, "cat", "/proc/self/status", security=weak)
    seen = dict(line.split(":\t", 1) for line in result.output.splitlines())
    assert (seen["Uid"].split()[0], seen["CapBnd"], seen["NoNewPrivs"], seen["Seccomp"]) == (
        "1000", "0" * 16, "1", "2"
    )  # fmt: skip


@in_node()
async def test_resource_limits_and_the_oom_score_are_set(bench):
    pod = await bench.pod()
    result = await bench.shell(
        pod, "ulimit -n; cat /proc/self/oom_score_adj", command={"rlimits": {"nofile": (64, 128)}}, oom_score_adj=900
    )  # fmt: skip
    assert result.output.split() == ["64", "900"]


@in_node()
async def test_a_resource_limit_that_does_not_exist_fails_the_start(bench):
    pod = await bench.pod()
    with pytest.raises((StartFailed, Refused)):
        await bench.run(pod, "true", command={"rlimits": {"nonsense": (1, 1)}})


@pytest.mark.parametrize(
    ("add", "drop", "want"),
    [
        pytest.param([], [], DEFAULT_CAPABILITIES, id="nothing asked gives the runtimes' default"),
        pytest.param([], ["ALL"], frozenset(), id="ALL dropped leaves none"),
        pytest.param(["NET_BIND_SERVICE"], ["ALL"], {"NET_BIND_SERVICE"}, id="one added to none"),
        pytest.param(
            ["CAP_SYS_PTRACE"], [], DEFAULT_CAPABILITIES | {"SYS_PTRACE"}, id="a name may carry its prefix"
        ),
        pytest.param(["ALL"], [], ALL, id="ALL added gives every one"),
        pytest.param(["ALL"], ["NET_RAW"], ALL - {"NET_RAW"}, id="ALL but one"),
        pytest.param([], ["KILL"], DEFAULT_CAPABILITIES - {"KILL"}, id="one dropped"),
    ],
)
def test_capabilities_combine_as_in_container_runtimes(add, drop, want):
    assert resolve_capabilities(add, drop, held=ALL) == want


@pytest.mark.parametrize(
    ("add", "held", "message"),
    [
        pytest.param(["SYS_RESOURCE"], ALL - {"SYS_RESOURCE"}, "does not hold SYS_RESOURCE", id="not held"),
        pytest.param(["FLY"], ALL, "FLY: no such capability", id="unknown"),
    ],
)
def test_a_capability_that_cannot_be_given_is_refused(add, held, message):
    with pytest.raises(Refused, match=message):
        resolve_capabilities(add, held=held)


def test_all_added_on_a_node_that_lacks_one_gives_those_it_has():
    assert resolve_capabilities(["ALL"], held=ALL - {"SYS_RESOURCE"}) == ALL - {"SYS_RESOURCE"}


def test_the_default_profile_is_refused_where_the_call_numbers_are_not_known():
    with pytest.raises(Refused, match="s390x"):
        default_profile((), machine="s390x")


def test_a_capability_lets_its_calls_through_the_default_profile():
    strict, loose = (default_profile(caps, machine="x86_64") for caps in ((), ("SYS_ADMIN",)))
    mount_number = (165).to_bytes(4, "little")
    assert mount_number in strict
    assert mount_number not in loose


def test_this_machine_has_a_default_profile():
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip(f"{platform.machine()} has no default profile")
    assert len(default_profile(())) % 8 == 0


def test_a_command_defaults_to_the_default_capabilities():
    assert Command(argv=("true",), env=USUAL_ENV).security.capabilities == DEFAULT_CAPABILITIES
