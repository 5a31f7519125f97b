"""A pytest plugin: `pytest -p tests.kubernetes.scenarios tests/eagleray/raycluster …` lets worlds live on a real plane.

The scenarios are those of tests/eagleray, unchanged; only where they take place and how time passes is exchanged. What
cannot be shown there is left out by name, with the reason, in elsewhere.yaml.
"""

import functools
import tempfile
from pathlib import Path

import pytest
import yaml

from eagleray.kube import informers
from tests.eagleray import world as worlds
from tests.kubernetes.patience import PatientLoop
from tests.kubernetes.place import House, PlanePlace
from tests.kubernetes.plane import NotHere, Plane, programs

_FOR_EVER = 1e6
ELSEWHERE = Path(__file__).with_name("elsewhere.yaml")
# Nodes of worlds that have ended vanish at once, and those of the next one must not be taken for them.
FLAGS = {"kube-controller-manager": ["--node-monitor-period=2s"]}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every", type=int, default=1, help="take only every so many-th scenario")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that live in a world, and leave out those that cannot live in a real one."""
    reasons = _reasons()
    kept, left = [], []
    for item in items:
        if {"world", "virtual_time"} & set(getattr(item, "fixturenames", ())):
            kept.append(item)
        else:
            left.append(item)
    # By name, so that the order in which tests run does not matter.
    names = set(sorted(item.nodeid for item in kept)[:: config.getoption("every")])
    chosen = [item for item in kept if item.nodeid in names]
    for item in chosen:
        name = item.nodeid.removeprefix("tests/eagleray/")
        if reason := reasons.get(name) or reasons.get(name.partition("[")[0]):
            item.add_marker(pytest.mark.skip(reason=reason))
    config.hook.pytest_deselected(items=[*left, *(item for item in kept if item.nodeid not in names)])
    items[:] = chosen


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    try:
        binaries = programs()
    except NotHere as missing:
        pytest.exit(f"skipped: {missing}", returncode=0)
    directory = tempfile.TemporaryDirectory(prefix="plane-")
    plane = Plane(Path(directory.name), binaries, FLAGS)
    session.config.add_cleanup(directory.cleanup)
    session.config.add_cleanup(plane.stop)
    plane.__enter__()
    house = House()
    worlds.place_of = lambda _seed: PlanePlace(plane, house)
    worlds.loop_of = PatientLoop
    # Bookmarks come by the server's time, of which little passes here; their absence says nothing.
    informers.Timing = functools.partial(informers.Timing, silence=_FOR_EVER)  # type: ignore[misc, assignment]  # as said


def _reasons() -> dict[str, str]:
    """Return why tests are left out, by their names."""
    listed = yaml.safe_load(ELSEWHERE.read_text()) or {}
    return {name: reason for reason, names in listed.items() for name in names}
