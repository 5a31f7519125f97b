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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that live in a world, and leave out those that cannot live in a real one."""
    reasons = _reasons()
    kept, left = [], []
    for item in items:
        name = item.nodeid.removeprefix("tests/eagleray/")
        found = next((key for key in reasons if name == key or name.startswith(f"{key}[")), None)
        is_scenario = {"world", "virtual_time"} & set(getattr(item, "fixturenames", ()))
        if not is_scenario:
            left.append(item)
            continue
        if found:
            item.add_marker(pytest.mark.skip(reason=reasons[found]))
        kept.append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


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
    """Return why tests are left out, by the beginning of their names."""
    listed = yaml.safe_load(ELSEWHERE.read_text()) or {}
    return {name: reason for reason, names in listed.items() for name in names}
