"""kill -9 of every part of a node at random moments: nothing is left, and the next start takes up where it was."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kubereef.node.machine.leftovers import sweep_cgroups
from tests.kubereef.node.machine.realnode import (
    PODS,
    NodeReef,
    Refused,
    all_processes,
    cgroups_of,
    children_of,
    family,
    host_devices,
    host_traces,
    is_alive,
    left_since,
    namespaces,
    oldest_child_of,
    require_node,
    until,
)

pytestmark = pytest.mark.heavy

SLEEP = ("sh", "-c", "exec sleep 1000")
LONGEST_WAIT = 1.2
MOMENTS = 8
WITHIN = 15


def whom_to_kill(reef):
    """Return the parts of a Kubereef whose end is the end of all, from the outside in."""
    # The kernel may leave children out of its list while others come and go.
    (holder,) = until(lambda: children_of(reef.pid))
    (process_1,) = until(lambda: children_of(holder))
    program = until(lambda: children_of(process_1) and oldest_child_of(process_1))
    return {"Kubereef": reef.pid, "the holder": holder, "process 1": process_1, "the program": program}


def churn(reef, number):
    """Have Pods of all kinds come and go."""
    with suppress(Refused):
        reef.send("DELETE", f"{PODS}/short-{number - 1}")
    reef.run(f"short-{number}", *SLEEP)
    reef.run(f"shared-{number}", *SLEEP, shareProcessNamespace=True)
    reef.run(f"memory-{number}", *SLEEP, volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}])


def test_nothing_is_left_whenever_and_whoever_is_killed(tmp_path):
    require_node(tmp_path)
    seed = random.randrange(1000)
    chance = random.Random(seed)
    before, devices = host_traces(), host_devices()
    for moment in range(MOMENTS):
        with NodeReef(tmp_path) as reef:
            if moment == 0:
                reef.run("always", *SLEEP)
                reef.run("never", *SLEEP, restartPolicy="Never")
                reef.run("done", "true", restartPolicy="Never")
                reef.until("always", "Running")
                reef.until("never", "Running")
                reef.until("done", "Succeeded")
            else:  # what was kept lives on by its policy
                until(lambda reef=reef: is_running(reef.pod("always")))
                assert reef.until("never", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
                assert reef.pod("done")["status"]["phase"] == "Succeeded"
                assert reef.pod("done")["status"]["containerStatuses"][0]["restartCount"] == 0
            parts = whom_to_kill(reef)
            name = list(parts)[moment % len(parts)]
            churn(reef, moment)
            time.sleep(chance.uniform(0, LONGEST_WAIT))
            where = f"seed {seed}, moment {moment}, {name}"
            processes = family(reef.pid)
            own = namespaces(number for number, _ in processes) - namespaces([os.getpid()])
            others = all_processes()  # later ones may be in new namespaces that got the numbers of old ones
            os.kill(parts[name], signal.SIGKILL)
            reef.wait()
        until(lambda processes=processes: not any(is_alive(one) for one in processes), where=where)
        until(lambda own=own, others=others: not own & namespaces(others), where=where)
        assert not left_since(before), where
        assert host_devices() == devices, where
        sweep_cgroups()  # as the next node does
        assert not cgroups_of(reef.pid), where
    with NodeReef(tmp_path) as reef:
        reef.send("DELETE", PODS)
        until(lambda: not reef.send("GET", PODS)["items"])
        until(lambda: not list((tmp_path / "node" / "pods").iterdir()))
        assert reef.stop() == ""
    assert not left_since(before)


def is_running(pod):
    (status,) = pod["status"].get("containerStatuses") or [{}]
    return "running" in status.get("state", {}) and status["restartCount"] > 0


def helpers_of(parts, *, depth):
    """Return the processes that build a sandbox at this moment, which are in the node's own pid namespace (depth 1),
    or those that keep a Pod's, and are in there (depth 2)."""
    process_1, program = parts["process 1"], parts["the program"]
    like_it = Path(f"/proc/{process_1}/cmdline").read_bytes()
    found = []
    for child in children_of(process_1):
        with suppress(OSError):
            if child == program or Path(f"/proc/{child}/cmdline").read_bytes() != like_it:
                continue
            facts = dict(
                line.split(":", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines()
            )
            if len(facts["NSpid"].split()) == depth + 1:
                found.append(child)
    return found


def test_a_helper_that_is_killed_costs_no_pod(tmp_path):
    require_node(tmp_path)
    with NodeReef(tmp_path, "--in-memory") as reef:
        parts = whom_to_kill(reef)
        # The process that keeps a shared namespace takes all of its Pod with it, which begins anew.
        reef.run("shared", *SLEEP, shareProcessNamespace=True)
        until(lambda: is_ready(reef.pod("shared")), where="before the keeper is killed")
        (keeper,) = until(lambda: helpers_of(parts, depth=2), where="looking for the keeper")
        os.kill(keeper, signal.SIGKILL)
        until(lambda: is_running(reef.pod("shared")), where="after the keeper was killed")
        told = reef.send("GET", "/api/v1/namespaces/default/events")["items"]
        assert "SandboxChanged" in {one["reason"] for one in told}
        killed, number, chance = 0, 0, random.Random(3)
        deadline = time.monotonic() + 30
        names = ["shared"]
        while killed < WITHIN and time.monotonic() < deadline:
            number += 1
            names += [f"p-{number}", f"s-{number}"]
            reef.run(names[-2], *SLEEP)
            reef.run(names[-1], *SLEEP, shareProcessNamespace=True)
            for _ in range(20):
                time.sleep(chance.uniform(0, 0.01))
                for helper in helpers_of(parts, depth=1)[:1]:
                    with suppress(ProcessLookupError):
                        os.kill(helper, signal.SIGKILL)
                        killed += 1
        assert killed >= WITHIN
        for name in names:
            # One that did not start twice in a row waits for ten seconds, then for twenty.
            until(lambda name=name: is_ready(reef.pod(name)), patience=60, where=name)
        for name in names:
            reef.send("DELETE", f"{PODS}/{name}")
        until(lambda: not reef.send("GET", PODS)["items"], where="after all Pods were deleted")
        until(
            lambda: children_of(parts["process 1"]) == [parts["the program"]],
            where="with nobody left but the program",
        )
        assert reef.stop() == ""


def is_ready(pod):
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ())
    )
