"""What the runs on a control plane tell of what they have measured."""

import asyncio
from collections import Counter

import pytest

from bench.kubernetes import neighbour, suite
from bench.kubernetes.__main__ import parsed
from bench.kubernetes.load import Idle, Polling, Sightings, Start, polling_figure, start_figures, watched
from bench.kubernetes.neighbour import Small
from bench.kubernetes.rayjobs import Round, beside_figure
from tests.kubernetes.plane import NotHere


def started(**details):
    plain = {
        "size": 10,
        "seconds": 2.0,
        "median": 1.0,
        "cpu": {"operator": 1.0, "kube-apiserver": 4.0},
        "requests": Counter({"create pods": 40, "patch rayclusters/status": 20}),
    }
    return Start(**{**plain, **details})


def test_a_start_is_told_in_rates_shares_and_requests():
    shown = [figure.shown for figure in start_figures("many", started(), most_share=1.2, most_requests=10)]
    assert shown == [
        "2.0 s, 5.0 a second, half after 1.0 s; 0.50 s for each CPU second of kube-apiserver",
        "1.0 s, 0.25 of kube-apiserver's",
        "6.0 each (4.0 create pods, 2.0 patch rayclusters/status)",
    ]


@pytest.mark.parametrize(
    ("bounds", "want"),
    [
        pytest.param({}, [True, True, True], id="what is just within its bounds"),
        pytest.param({"most_wait": 0.49}, [False, True, True], id="too late"),
        pytest.param({"most_share": 0.24}, [True, False, True], id="too much CPU"),
        pytest.param({"most_requests": 5}, [True, True, False], id="too many requests"),
    ],
)
def test_bounds_of_a_start(bounds, want):
    just_met = {"most_share": 0.25, "most_requests": 6, "most_wait": 0.5}
    figures = start_figures("many", started(), **{**just_met, **bounds})
    assert [figure.within for figure in figures] == want


def idle(after, cpu, questions):
    return Idle(after, cpu, 0, questions)


@pytest.mark.parametrize(
    ("size", "late", "is_within"),
    [
        pytest.param(100, idle(630, 0.5, 200), True, id="a twentieth of asking for ever"),
        pytest.param(100, idle(630, 0.51, 200), False, id="more than a twentieth"),
        pytest.param(100, idle(60, 5.0, 1000), True, id="too early to tell"),
        pytest.param(10, idle(630, 0.1, 20), True, id="too few to tell"),
    ],
)
def test_idle_objects_cost_a_twentieth_of_asking_for_ever(size, late, is_within):
    figure = polling_figure("many", size, [idle(15, 10.0, 2000), late], Polling(20, cost=0.005))
    assert figure.within is is_within
    assert f"({size / 10:.1f} s)" in figure.shown


@pytest.mark.parametrize(
    ("calm", "hanging", "is_within"),
    [
        pytest.param([1, 2, 3], [1, 2, 3], True, id="as without them"),
        pytest.param([1, 2, 4], [1, 3, 6], True, id="half as much again"),
        pytest.param([0.1, 0.2, 0.3], [0.9, 1.1, 1.2], True, id="a second more"),
        pytest.param([1, 2, 3], [1, 2, 5], False, id="the slowest are much later"),
        pytest.param([1, 2, 5], [3.5, 3.5, 5], False, id="most are much later"),
    ],
)
def test_jobs_beside_dashboards_that_hang(calm, hanging, is_within):
    rounds = [Round(started(), [], reactions, 0.0) for reactions in (calm, hanging)]
    figure = beside_figure("many", *rounds)
    assert figure.within is is_within
    assert figure.name == "many, 7 of them hanging"


@pytest.mark.parametrize(
    ("beside", "grown", "is_within"),
    [
        pytest.param(Small(10, 10.5, 10.6, 11), 3.0, True, id="at once"),
        pytest.param(Small(10, 10.1, 11.9, 12), 3.0, False, id="with its Pods late"),
        pytest.param(Small(10, 12, 12.9, 13), 24.0, True, id="later, as the big one is"),
    ],
)
def test_a_small_cluster_beside_a_large_one(beside, grown, is_within):
    assert neighbour.figure(100, [beside], [beside], grown).within is is_within


async def test_sightings_are_waited_for_and_the_first_one_counts():
    sightings = Sightings()
    waiting = asyncio.create_task(sightings.until(["a", "b"]))
    await sightings.note(["a"])
    first = sightings.first["a"]
    await sightings.note(["a", "c"])
    assert not waiting.done()
    await sightings.note(["b"])
    assert await waiting == [first, sightings.first["b"]]


class Watches:
    """A client whose watches each tell one event of a list and end; it remembers from where each was asked."""

    def __init__(self, *events):
        self._events = list(events)
        self.asked = []

    async def get(self, url):
        return {"metadata": {"resourceVersion": "5"}}

    async def watch(self, url):
        self.asked.append(url)
        if not self._events:
            await asyncio.Event().wait()
        yield self._events.pop(0)


def event(name, version, kind="MODIFIED"):
    return {"type": kind, "object": {"metadata": {"name": name, "resourceVersion": version}}}


def name_of(seen):
    return [seen["object"]["metadata"]["name"]]


async def test_a_watch_that_ends_goes_on_where_it_was():
    client = Watches(event("a", "7"), event("b", "9"))
    async with watched(client, "/things", name_of) as sightings:
        await sightings.until(["a", "b"])
    assert client.asked[:2] == ["/things?resourceVersion=5", "/things?resourceVersion=7"]


async def test_a_watch_that_fails_fails_whoever_waits():
    client = Watches({"type": "ERROR", "object": {"message": "too old"}})
    with pytest.raises(ExceptionGroup) as failure:
        async with watched(client, "/things", name_of) as sightings:
            await sightings.until(["a"])
    assert "too old" in str(failure.value.exceptions[0])


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("", {"sizes": [100], "kind": "raycluster", "settle": [15]}, id="100 RayClusters"),
        pytest.param("5 7", {"sizes": [5, 7]}, id="several sizes"),
        pytest.param(
            "--kind rayjob", {"settle": [15, 630]}, id="idle dashboards are looked at soon and late"
        ),
        pytest.param("--kind rayservice --settle 60", {"settle": [60]}, id="or when one says"),
        pytest.param("--idle 0", {"settle": []}, id="or never"),
        pytest.param("--kind rayjob --hang 0.1", {"hang": 0.1}, id="a share that hangs"),
        pytest.param("--neighbour 500", {"neighbour": 500}, id="a neighbour"),
    ],
)
def test_command_line(line, want):
    assert vars(parsed(line.split())).items() >= want.items()


@pytest.mark.parametrize(
    "line", ["--kind rayjob --hang 1", "--kind rayjob --hang -0.1", "--hang 0.1", "--kind pod"]
)
def test_command_lines_that_make_no_sense(line, capsys):
    with pytest.raises(SystemExit):
        parsed(line.split())
    assert "error:" in capsys.readouterr().err


def test_a_machine_without_the_programs_says_so_and_fails_nothing(monkeypatch):
    def missing(*_more):
        raise NotHere("there is no Go")

    monkeypatch.setattr(suite, "programs", missing)
    figures = suite.measure()
    assert {figure.shown for figure in figures} == {"not measured: there is no Go"}
    assert all(figure.within for figure in figures)
