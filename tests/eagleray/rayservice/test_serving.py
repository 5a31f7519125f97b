"""Serve on a cluster: whether it serves, when it is configured, who gets requests, and what is asked."""

from datetime import timedelta

import pytest

from eagleray.dashboard.errors import Unreachable
from eagleray.dashboard.questions import HealthOf, Observation, ServeOf
from eagleray.dashboard.words import Application, ServeDetails
from eagleray.gates import parse_gates
from eagleray.manifests.rayservice import RayService, service_cluster
from eagleray.raycluster.views import pod_view
from eagleray.rayservice.look import Config, Look, Put, Seen
from eagleray.rayservice.serving import (
    NotAConfiguration,
    configuration,
    count_endpoints,
    hand_over,
    is_head_ready,
    is_ready,
    needs_configuration,
    plan_head_label,
    questions,
    why_not_ready,
)
from kubewire.sources import SeededEntropy
from tests.eagleray.rayservice.scene import CONFIG, NOW, incremental, service

BEFORE = NOW - timedelta(seconds=5)


def look(obj=None, **parts):
    return Look(RayService(obj or service()), NOW, SeededEntropy("serving"), **parts)


def cluster(obj=None, *, head="True", blocked="", **condition):
    """Return a cluster whose head is ready or not."""
    found = service_cluster(RayService(obj or service()), "s-one", "v")
    conditions = [{"type": "HeadPodReady", "status": head, "reason": "Why", "message": "", **condition}]
    if blocked:
        conditions.append({"type": "PodsBlocked", "status": "True", "reason": "X", "message": blocked})
    return {**found, "status": {"conditions": conditions}}


def apps(*found, at=NOW):
    return Observation(ServeDetails(tuple(Application(*app) for app in found)), None, at)


FAILED = Observation(None, Unreachable("refused", certainly_not_done=True), NOW, NOW)
SERVES = apps(("app", "RUNNING"))


def head_pod(*, serve="false", ip="10.0.0.1", ready="True", **metadata):
    return pod_view(
        {
            "metadata": {"name": "h", "namespace": "ns", "labels": {"ray.io/serve": serve}, **metadata},
            "status": {
                "phase": "Running",
                "podIP": ip,
                "conditions": [{"type": "Ready", "status": ready}],
            },
        }
    )


# --- readiness


@pytest.mark.parametrize(
    ("seen", "want"),
    [
        pytest.param(Seen(cluster(), serve=SERVES), True, id="all applications run"),
        pytest.param(
            Seen(cluster(), serve=apps(("a", "RUNNING"), ("b", "DEPLOYING"))), False, id="one is deploying"
        ),
        pytest.param(Seen(cluster(), serve=apps(("a", "UNHEALTHY"))), False, id="one is unhealthy"),
        pytest.param(Seen(cluster(), serve=apps(("a", "DEPLOY_FAILED"))), False, id="one has failed"),
        pytest.param(Seen(cluster(), serve=apps()), False, id="there is none"),
        pytest.param(Seen(cluster()), False, id="nobody has asked yet"),
        pytest.param(Seen(cluster(), serve=FAILED), False, id="it cannot be asked"),
        pytest.param(Seen(cluster(), serve=SERVES._replace(error=FAILED.error)), False, id="any more"),
        pytest.param(Seen(cluster(head="False"), serve=SERVES), False, id="the head is not ready"),
        pytest.param(Seen(None, serve=SERVES), False, id="there is no cluster"),
    ],
)
def test_a_cluster_serves(seen, want):
    assert is_ready(look(), seen) is want


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param((head_pod(),), True, id="a Pod that is ready"),
        pytest.param((head_pod(ready="False"),), False, id="a Pod that is not"),
        pytest.param((), False, id="no Pod"),
        pytest.param((head_pod(), head_pod()), False, id="two Pods"),
    ],
)
def test_without_conditions_of_clusters_the_head_is_judged_by(pods, want):
    settings = Config().settings._replace(gates=parse_gates("RayClusterStatusConditions=false"))
    assert is_head_ready(look(config=Config(settings)), Seen(cluster(head="False"), pods)) is want


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        pytest.param(Seen(), "being made", id="no cluster yet"),
        pytest.param(
            Seen(cluster(head="False", blocked="no node has a GPU")), "no node has a GPU", id="Pods blocked"
        ),
        pytest.param(
            Seen(cluster(head="False", message="pulling")), "head is not ready: pulling", id="the head"
        ),
        pytest.param(Seen(cluster()), "not been asked", id="no answer yet"),
        pytest.param(Seen(cluster(), serve=FAILED), "refused", id="an error"),
        pytest.param(Seen(cluster(), serve=apps()), "no applications", id="no application"),
        pytest.param(
            Seen(cluster(), serve=apps(("a", "RUNNING"), ("b", "UNHEALTHY", "oops"))),
            "application b is UNHEALTHY: oops",
            id="an application",
        ),
        pytest.param(
            Seen(cluster(blocked="no room"), serve=apps(("b", "DEPLOYING", "slow"))),
            "application b is DEPLOYING: slow: no room",
            id="an application whose workers find no room",
        ),
        pytest.param(
            Seen(cluster(), serve=apps(), put_failure="400: bad"), "400: bad", id="a refused configuration"
        ),
    ],
)
def test_what_holds_a_cluster_back_is_told(seen, words):
    assert words in why_not_ready(look(), seen)
    assert why_not_ready(look(), Seen(cluster(), serve=SERVES)) == ""


def test_a_cause_without_end_is_cut():
    assert len(why_not_ready(look(), Seen(cluster(), serve=apps(("b", "UNHEALTHY", "x" * 9000))))) <= 1000


# --- configuring


def put(text=CONFIG, capacity=None, at=BEFORE):
    return Put(text, capacity, at)


@pytest.mark.parametrize(
    ("seen", "want"),
    [
        pytest.param(Seen(cluster(), serve=SERVES), True, id="nothing was, as far as we know"),
        pytest.param(Seen(cluster(), serve=SERVES, put=put()), False, id="the same was"),
        pytest.param(Seen(cluster(), serve=SERVES, put=put("applications: []")), True, id="another text was"),
        pytest.param(Seen(cluster(), serve=SERVES, put=put(capacity=50)), True, id="with another capacity"),
        pytest.param(Seen(cluster(), serve=apps(), put=put()), True, id="the applications are lost"),
        pytest.param(
            Seen(cluster(), serve=apps(at=BEFORE), put=put()), False, id="they were not there before, either"
        ),
        pytest.param(Seen(cluster(), serve=FAILED), False, id="it cannot be asked"),
        pytest.param(Seen(cluster()), False, id="it was not asked yet"),
        pytest.param(Seen(cluster(head="False"), serve=SERVES), False, id="the head is not ready"),
    ],
)
def test_a_configuration_is_handed_over_if(seen, want):
    assert needs_configuration(look(), seen, None) is want


def handed(seen, capacity):
    return hand_over(look(), seen, capacity)


def test_the_same_configuration_is_one_order_and_says_where_it_goes():
    seen = Seen(cluster(), serve=SERVES)
    first, again, other = handed(seen, None), handed(seen, None), handed(seen, 50)
    assert first.order == again.order
    assert first.order.id != other.order.id
    assert first.order.address.host == "s-one-head-svc.ns.svc.cluster.local:8265"
    assert first.said.done.note == "Updated serve applications to the RayCluster ns/s-one"
    assert (first.cluster, first.text, other.capacity) == ("s-one", CONFIG, 50)


@pytest.mark.parametrize(
    ("text", "capacity", "want"),
    [
        pytest.param("", None, {}, id="an empty text"),
        pytest.param("a: 1", None, {"a": 1}, id="a text"),
        pytest.param("a: 1", 40, {"a": 1, "target_capacity": 40}, id="with a capacity"),
        pytest.param("target_capacity: 7", 40, {"target_capacity": 40}, id="in place of the user's"),
        pytest.param('{"a": [1]}', None, {"a": [1]}, id="JSON"),
    ],
)
def test_a_text_configures(text, capacity, want):
    assert configuration(text, capacity) == want


@pytest.mark.parametrize("text", ["[", "- a", "a: 1\n---\nb: 2", "just words"])
def test_a_text_that_configures_nothing_is_refused(text):
    with pytest.raises(NotAConfiguration, match="serveConfigV2"):
        configuration(text)


# --- asking


def test_applications_and_the_proxy_on_the_head_are_asked_for():
    serve, health = questions(look(), Seen(cluster(), (head_pod(),)))
    assert isinstance(serve, ServeOf)
    assert isinstance(health, HealthOf)
    assert health.address.host == "10.0.0.1:8000"


def test_the_dashboard_of_a_cluster_with_tokens_is_asked_with_its_secret():
    obj = service(config={"authOptions": {"mode": "token"}})
    (serve,) = questions(look(obj), Seen(cluster(obj)))
    assert serve.address.secret == "s-one"


@pytest.mark.parametrize(
    ("obj", "seen", "kinds"),
    [
        pytest.param(service(), Seen(), [], id="no cluster"),
        pytest.param(
            service(), Seen(cluster(head="False"), (head_pod(),)), [HealthOf], id="a head that is not ready"
        ),
        pytest.param(
            service(), Seen(cluster(), (head_pod(ip=""),)), [ServeOf], id="a head without an address"
        ),
        pytest.param(
            service(excludeHeadPodFromServeSvc=True),
            Seen(cluster(), (head_pod(),)),
            [ServeOf],
            id="a head that is to get nothing",
        ),
    ],
)
def test_nothing_is_asked_in_vain(obj, seen, kinds):
    assert [type(question) for question in questions(look(obj), seen)] == kinds


# --- requests

HEALTHY, SICK = Observation(True, None, NOW), Observation(False, None, NOW)


@pytest.mark.parametrize(
    ("excluded", "health", "label", "want"),
    [
        pytest.param(False, HEALTHY, "false", "true", id="a proxy that is well gets requests"),
        pytest.param(False, SICK, "true", "false", id="one that is not gets none"),
        pytest.param(False, FAILED, "true", "false", id="one that cannot be asked gets none"),
        pytest.param(False, HEALTHY, "true", None, id="what is so already is not written"),
        pytest.param(False, None, "true", None, id="until it was asked nothing changes"),
        pytest.param(True, None, "true", "false", id="an excluded head gets none"),
        pytest.param(True, HEALTHY, "true", "false", id="however well it is"),
    ],
)
def test_the_label_of_the_head(excluded, health, label, want):
    seen = Seen(cluster(), (head_pod(serve=label),), health=health)
    actions = labelled(look(service(excludeHeadPodFromServeSvc=excluded)), seen)
    assert [action.change["metadata"]["labels"]["ray.io/serve"] for action in actions] == (
        [want] if want else []
    )
    if want:
        assert actions[0].said.done.note == f'Updated the serve label to "{want}" for the Head Pod ns/h'


def labelled(seen, side):
    return [*plan_head_label(seen, side)]


def test_a_head_that_is_going_is_not_labelled():
    going = head_pod(deletionTimestamp="2030-01-01T00:00:00Z")
    assert [*plan_head_label(look(), Seen(cluster(), (going,), health=HEALTHY))] == []


def endpoint(uid="p", *, ready=True):
    return {"conditions": {"ready": ready}, "targetRef": {"uid": uid}}


def endpoints(name, *found):
    return {"metadata": {"labels": {"kubernetes.io/service-name": name}}, "endpoints": found}


BOTH_SIDES = {
    "activeServiceStatus": {"rayClusterName": "s-a"},
    "pendingServiceStatus": {"rayClusterName": "s-b"},
}


@pytest.mark.parametrize(
    ("obj", "slices", "want"),
    [
        pytest.param(service(), [], 0, id="none"),
        pytest.param(service(), [endpoints("s-serve-svc", endpoint("a"), endpoint("b"))], 2, id="two Pods"),
        pytest.param(
            service(),
            [endpoints("s-serve-svc", endpoint()), endpoints("s-serve-svc", endpoint())],
            1,
            id="a Pod twice",
        ),
        pytest.param(
            service(), [endpoints("s-serve-svc", endpoint(ready=False))], 0, id="a Pod that is not ready"
        ),
        pytest.param(
            service(), [endpoints("s-serve-svc", {"conditions": {"ready": True}})], 0, id="no Pod at all"
        ),
        pytest.param(service(), [endpoints("other", endpoint())], 0, id="of another Service"),
        pytest.param(
            service(serveService={"metadata": {"name": "mine"}}),
            [endpoints("mine", endpoint())],
            1,
            id="of the user's",
        ),
        pytest.param(
            incremental(status=BOTH_SIDES),
            [endpoints("s-a-serve-svc", endpoint("a")), endpoints("s-b-serve-svc", endpoint("b"))],
            2,
            id="of both clusters",
        ),
    ],
)
def test_endpoints_are_counted(obj, slices, want):
    assert count_endpoints(look(obj, slices=slices)) == want
