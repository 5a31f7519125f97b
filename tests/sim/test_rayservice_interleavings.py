"""Everything that can happen to a RayService, in any order: what must never be so is not, and in the end it serves.

The plan is a pure function, so that whole lives of a service fit into milliseconds: its clusters become ready and fail,
users change their minds, the operator crashes between any two writes, and what Serve was handed is lost on its way.
"""

import itertools
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eagleray.dashboard.orders import PutServe
from eagleray.manifests.settings import Settings
from eagleray.rayservice.clusters import DELETE_AT
from eagleray.rayservice.deletion import plan_end
from eagleray.rayservice.look import Put
from eagleray.rayservice.planning import plan
from kubewire.times import parse_time
from tests.eagleray.rayservice.scene import GATEWAY_OPEN, ROUTE_OPEN, Ray, Scene, incremental, service

WHOLE = 100
DELAY = 60
INTERVAL = 10


class Serve(Ray):
    """Ray on a cluster as it really is, which the operator may or may not know."""

    def __init__(self):
        super().__init__()
        self.capacity = WHOLE
        self.text = None
        self.is_open = False  # whether the operator does not know what became of what it handed over


class Life(Scene):
    """A scene in which things go wrong, and which looks at itself after each write."""

    rays: dict[str, Any]

    def __init__(self, obj, **more):
        super().__init__(obj, **more)
        self.wrong = []
        self.served = set()  # clusters that have ever served
        self.puts_go = "well"
        self.is_robbed = False  # of a cluster, so that the other one has to do with the room it has

    # --- seeing

    def seen(self, name):
        seen = super().seen(name)
        if seen.obj is None:
            return seen
        ray = self.rays[name]
        # Only applications that are there tell what they were deployed from.
        deployed = ray.deployed if ray.head and ray.applications else None
        return seen._replace(is_put_open=ray.is_open, deployed=deployed)

    def look_around(self, write):
        """Note what must not be so."""
        self.served |= {name for name in self.clusters if self.is_serving(name)}
        weights = self.weights
        if weights and (sum(weights.values()) != WHOLE or len(weights) > 2):
            self.wrong.append(f"after {write} the weights are {weights}")
        for name, weight in weights.items():
            is_cramped = name in self.rays and weight > self.rays[name].capacity
            if is_cramped and not self.is_robbed:
                self.wrong.append(
                    f"after {write} {name} has {weight} % of the traffic and {self.rays[name].capacity} % of the room"
                )
        if any(self.is_serving(name) for name in weights if name in self.clusters):
            self.wrong += [
                f"after {write} {name} gets more traffic and does not serve" for name in self.raised
            ]
        self.raised.clear()
        ready = [name for name in (self.active, self.pending) if name in self.served and self.is_ready(name)]
        for name in ("s-head-svc", "s-serve-svc"):
            led_to = self.selected(name) if ("Service", name) in self.children else ""
            if led_to and led_to not in self.served and ready:
                self.wrong.append(f"after {write} {name} leads to {led_to}, which never served; {ready} does")

    @property
    def left_over(self):
        """The clusters that are not used any more, and are not about to go."""
        return [
            name
            for name in self.clusters
            if name not in (self.active, self.pending) and not self._is_due_soon(name)
        ]

    def _is_due_soon(self, name):
        due = (self.children["RayCluster", name]["metadata"].get("annotations") or {}).get(DELETE_AT, "")
        return bool(due) and 0 <= (parse_time(due) - self.now).total_seconds() <= DELAY + 1

    # --- acting

    def step(self):
        return self.partly(None)

    def partly(self, actions, *, is_status_written=True):
        """Make a pass of which only so many actions are carried out, all if None; return whether anything changed."""
        decision = plan(self.look())
        self.again = decision.again
        changed = False
        wanted = [action for stage in decision.stages for action in stage.actions]
        for action in wanted[:actions]:
            changed |= self._act(action)
            self.look_around(type(action).__name__)
        if actions is not None or not is_status_written:
            return changed
        if decision.status is not None and decision.status != self.status:
            self.obj = {**self.obj, "status": decision.status}
            changed = True
        for handover in decision.handovers:
            changed |= self._hand_over(handover)
            self.look_around("a handover")
        return changed

    def _hand_over(self, handover):
        order, ray = handover.order.action, self.rays[handover.cluster]
        assert isinstance(order, PutServe)
        if self.puts_go == "nowhere":
            return False
        configuration = dict(order.configuration)
        ray.capacity = configuration.pop("target_capacity", WHOLE)
        ray.text, ray.configuration = handover.text, configuration
        if self.puts_go == "lost":
            ray.is_open = True
            return False
        ray.put, ray.is_open = Put(handover.text, handover.capacity, self.now), False
        return True

    def _act(self, action):
        changed = super()._act(action)
        for name in self.clusters:
            if not isinstance(self.rays[name], Serve):
                self.rays[name] = Serve()
        return changed

    # --- happening

    def restart(self):
        """Have the operator forget what it only remembered."""
        for ray in self.rays.values():
            ray.put, ray.is_open = None, False
            ray.deployed = ray.configuration if ray.text is not None else None

    def serve(self, name, status="RUNNING", message=""):
        """Have a cluster run whatever it was handed."""
        super().serve(name, status, message)
        if self.rays[name].text is None:
            self.rays[name].applications = ()

    def lose_head(self, name):
        super().lose_head(name)
        self.rays[name].capacity, self.rays[name].text = WHOLE, None

    def open_ways(self, is_open):
        self.auto_gateway = is_open
        for kind, status in (("Gateway", GATEWAY_OPEN), ("HTTPRoute", ROUTE_OPEN)):
            for key in [key for key in self.children if key[0] == kind]:
                self.children[key] = {**self.children[key], "status": status if is_open else {}}

    def become(self, version):
        """Have an operator of another version take over, while nothing else happens."""
        self.restart()
        self.settle()
        before = self.clusters
        self.config = self.config._replace(settings=Settings(version=version))
        self.restart()
        self.settle()
        if self.clusters != before:
            self.wrong.append(f"version {version} made {self.clusters} of {before}")


def happen(life, what):
    """Let one thing happen, if it can."""
    match what:
        case ("time", seconds):
            life.advance(seconds)
        case ("serves", side) if (name := life.side(side).get("rayClusterName")) in life.clusters:
            life.rays[name].error = None
            life.serve(name)
        case ("deploys", side) if (name := life.side(side).get("rayClusterName")) in life.clusters:
            life.serve(name, "DEPLOYING")
        case ("fails", side) if (name := life.side(side).get("rayClusterName")) in life.clusters:
            life.fail(name)
        case ("loses its head", side) if (name := life.side(side).get("rayClusterName")) in life.clusters:
            life.lose_head(name)
        case ("is taken away", side) if (name := life.side(side).get("rayClusterName")) in life.clusters:
            del life.children["RayCluster", name]
            life.is_robbed = True
        case ("spec", version):
            life.describe(rayVersion=version)
        case ("config", name):
            life.edit(serveConfigV2=f"applications: [{{name: {name}}}]\n")
        case ("suspend", is_suspended):
            life.edit(suspend=is_suspended)
        case ("ways", is_open):
            life.open_ways(is_open)
        case ("puts", how):
            life.puts_go = how
        case ("crash", actions):
            life.partly(actions)
            life.restart()
        case ("conflict",):
            life.partly(None, is_status_written=False)
        case ("restart",):
            life.restart()
        case ("version", version):
            life.become(version)


SIDES = st.sampled_from(["active", "pending"])
HAPPENINGS = st.one_of(
    st.tuples(st.just("time"), st.sampled_from([1, INTERVAL, INTERVAL, 70])),
    st.tuples(st.sampled_from(["serves", "serves", "deploys", "fails", "loses its head"]), SIDES),
    st.tuples(st.just("spec"), st.sampled_from(["2.50.0", "2.51.0", "2.52.0"])),
    st.tuples(st.just("config"), st.sampled_from(["one", "two"])),
    st.tuples(st.just("suspend"), st.booleans()),
    st.tuples(st.just("ways"), st.booleans()),
    st.tuples(st.just("puts"), st.sampled_from(["well", "lost", "nowhere"])),
    st.tuples(st.just("crash"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["conflict", "restart"])),
    st.tuples(st.just("version"), st.sampled_from(["eagleray-1", "eagleray-2"])),
    st.tuples(st.just("is taken away"), SIDES),
)
LIVES = st.lists(st.tuples(HAPPENINGS, st.integers(0, 4)), max_size=25)
NEW_BEGINS = ((("time", 1), 4), (("serves", "pending"), 1))
OLD_SERVES = (*NEW_BEGINS, (("serves", "pending"), 4))
UPGRADE_BEGINS = (*OLD_SERVES, (("spec", "2.51.0"), 4), (("serves", "pending"), 1))
NEW_SERVES = (*UPGRADE_BEGINS, (("serves", "pending"), 3))
BEGINNINGS = st.sampled_from(
    [(), OLD_SERVES, UPGRADE_BEGINS, NEW_SERVES, (*NEW_SERVES, (("time", INTERVAL), 2))]
)
# What lowers the old cluster's capacity is lost on its way, and then the upgrade is not wanted any more.
LOST_AND_UNWANTED = [
    (("time", INTERVAL), 1),
    (("puts", "lost"), 3),
    (("puts", "nowhere"), 0),
    (("spec", None), 1),
    (("time", INTERVAL), 4),
]
# Somebody takes the new cluster away when it has got a part of the traffic.
ROBBED = [(("time", INTERVAL), 2), (("is taken away", "pending"), 0)]
# In the middle of an upgrade comes another operator, and then perhaps another spec.
OPERATOR = [(("version", "eagleray-2"), 4)]
OPERATOR_AND_SPEC = [(("version", "eagleray-2"), 0), (("spec", "2.52.0"), 0)]
# The old cluster has lost its head, and the operator has forgotten what that ran.
FORGOTTEN = [(("restart",), 0), (("loses its head", "active"), 2)]
MAKE = {
    "NewCluster": lambda: service(upgradeStrategy={"type": "NewCluster"}),
    "None": lambda: service(upgradeStrategy={"type": "None"}),
    "in steps of 50": lambda: incremental(step=50, surge=50, interval=INTERVAL),
    "in steps of 15 and 40": lambda: incremental(step=15, surge=40, interval=INTERVAL),
}


def live(obj, *happenings):
    """Return a life in which things have happened, each followed by so many passes."""
    life = Life(obj)
    for what, passes in itertools.chain(*happenings):
        happen(life, what)
        for _ in range(passes):
            life.step()
        life.look_around(what)
        assert not life.wrong, life.wrong
    return life


def heal(life):
    """Have everything go well from now on, and let time pass until nothing changes any more."""
    life.puts_go = "well"
    life.open_ways(True)
    life.edit(suspend=False)
    for _ in range(60):
        for name in life.clusters:
            life.rays[name].error = None
            life.serve(name)
        if life.settle() == 0 and not life.pending and life.clusters == [life.active]:
            return
        assert not life.wrong, life.wrong
        life.advance(INTERVAL)


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MAKE.items()])
@settings(max_examples=100)
@given(begins=BEGINNINGS, happenings=LIVES)
@example(begins=NEW_SERVES, happenings=LOST_AND_UNWANTED)
@example(begins=NEW_SERVES, happenings=ROBBED)
@example(begins=NEW_SERVES, happenings=OPERATOR)
@example(begins=NEW_SERVES, happenings=OPERATOR_AND_SPEC)
@example(begins=NEW_SERVES, happenings=FORGOTTEN)
def test_whatever_happens_traffic_is_whole_and_in_the_end_the_latest_spec_serves(make, begins, happenings):
    obj = make()
    life = live(obj, begins, happenings)
    heal(life)
    assert not life.wrong, life.wrong
    assert (life.clusters, life.pending) == ([life.active], "")
    assert life.condition("Ready") == ("True", "NonZeroServeEndpoints")
    assert life.rays[life.active].text == life.obj["spec"]["serveConfigV2"]
    if obj["spec"]["upgradeStrategy"]["type"] != "None":
        made_from = life.children["RayCluster", life.active]["spec"].get("rayVersion")
        assert made_from == life.obj["spec"]["rayClusterConfig"].get("rayVersion")
    if obj["spec"]["upgradeStrategy"]["type"].startswith("NewClusterWith"):
        assert life.weights == {life.active: WHOLE}
        assert life.rays[life.active].capacity == WHOLE


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MAKE.items()])
@settings(max_examples=30)
@given(begins=BEGINNINGS, happenings=LIVES)
def test_whatever_has_happened_no_cluster_is_left_over_when_passes_go_through(make, begins, happenings):
    life = live(make(), begins, happenings)
    life.puts_go = "well"
    life.settle()
    assert life.left_over == []


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MAKE.items()])
@settings(max_examples=30)
@given(begins=BEGINNINGS, happenings=LIVES)
def test_whatever_has_happened_a_deleted_service_takes_its_clusters_with_it(make, begins, happenings):
    life = live(make(), begins, happenings)
    life.step()
    life.obj["metadata"] = {**life.obj["metadata"], "deletionTimestamp": "2030-01-01T02:00:00Z"}
    for _ in range(2):
        for stage in plan_end(life.look()).stages:
            for action in stage.actions:
                life._act(action)
    assert life.clusters == []
    assert not life.obj["metadata"].get("finalizers")
