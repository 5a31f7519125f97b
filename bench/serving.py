"""How many requests a RayService loses while it is changed, and how long after its new cluster serves it is promoted.

Real Ray Serve in Pods of a node, and a Pod that asks 50 times a second, as in `tests/ray/test_services.py`. What the
new cluster itself needs lasts from the change of the spec until Ray says that its applications run; what the operator,
the Services and the Gateway add to that lasts until the cluster is the active one.
"""

# The cluster of the tests has no types.
# mypy: disable-error-code="no-untyped-call"

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.figures import Figure
from tests.kubereef.node.machine.realnode import Refused, require_node
from tests.ray.load import PER_SECOND, Load
from tests.ray.reef import RayReef
from tests.ray.services import GATEWAY, PAUSES, SERVE, STEP_BY_STEP, Served

REQUESTS = 60 * PER_SECOND
MOST = 1.25


def measure() -> list[Figure]:
    """Return what upgrades cost on this machine."""
    with tempfile.TemporaryDirectory(prefix="bench-serving-") as directory:
        try:
            require_node(Path(directory))
        except pytest.skip.Exception as why:
            return [Figure("a RayService under load", f"not measured: {why}", "as root", within=True)]
        with RayReef(Path(directory)) as reef:
            served = Served(reef)
            served.make()
            served.alone()
            situation = (reef, Path(directory), served)
            return [_in_place(*situation), *_at_once(*situation), *_step_by_step(*situation)]


class _Upgrade(NamedTuple):
    """How long it took from the change of a spec until the new cluster served, and until it was the active one."""

    serving: float
    promoted: float

    def figure(self, name: str, pauses: float = 0.0) -> Figure:
        ratio = self.promoted / (self.serving + pauses)
        own = f"the new cluster's own {self.serving:.1f} s" + (
            f" and {pauses:.0f} s of pauses" if pauses else ""
        )
        shown = f"{self.promoted:.1f} s, {ratio:.2f} x {own}"
        return Figure(f"{name}, until promoted", shown, f"at most {MOST} x", ratio <= MOST)


def _in_place(reef: RayReef, directory: Path, served: Served) -> Figure:
    with Load(reef, directory, SERVE) as load:
        load.reach(PER_SECOND)
        served.replace_code()
        reef.until(lambda: load.answers()[served.answer], "the other code answers")
        load.reach(REQUESTS)
    return _lost("serveConfigV2 in place", load)


def _at_once(reef: RayReef, directory: Path, served: Served) -> list[Figure]:
    with Load(reef, directory, SERVE) as load:
        upgrade = _upgrade(reef, served, load)
    return [_lost("NewCluster", load), upgrade.figure("NewCluster")]


def _step_by_step(reef: RayReef, directory: Path, served: Served) -> list[Figure]:
    served.change(upgradeStrategy=STEP_BY_STEP)
    served.settled()
    reef.until(served.is_open, "the Gateway is open")
    with Load(reef, directory, GATEWAY) as load:
        upgrade = _upgrade(reef, served, load)
    return [_lost("incremental upgrade", load), upgrade.figure("incremental upgrade", PAUSES)]


def _upgrade(reef: RayReef, served: Served, load: Load) -> _Upgrade:
    """Have a cluster replaced under a load, to the very end of the old one."""
    load.reach(PER_SECOND)
    old = served.active
    began = time.monotonic()
    served.replace_cluster()
    new = reef.until(lambda: served.pending, "there is a new cluster")
    reef.until(lambda: _serves(reef, new), "its applications run")
    serving = time.monotonic() - began
    reef.until(lambda: served.active != old, "it is the active one")
    upgrade = _Upgrade(serving, time.monotonic() - began)
    served.alone()
    load.reach(REQUESTS)
    return upgrade


def _serves(reef: RayReef, cluster: str) -> bool:
    """Tell whether Ray itself says that all applications of a cluster run."""
    try:
        applications = reef.dashboard("GET", "/api/serve/applications/", name=cluster)["applications"]
    except Refused:
        return False  # there is nobody yet who could tell
    return bool(applications) and all(one["status"] == "RUNNING" for one in applications.values())


def _lost(what: str, load: Load) -> Figure:
    requests, failures = load.requests, load.failures
    return Figure(f"requests lost, {what}", f"{len(failures)} of {len(requests)}", "none", not failures)
