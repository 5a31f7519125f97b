"""What a cluster needs besides Pods, planned from what is there."""

from typing import Any

import msgspec
import pytest

from eagleray.kube.resources import ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, SERVICES
from eagleray.manifests.ingress import head_ingress
from eagleray.manifests.services import head_service
from eagleray.manifests.settings import Settings
from eagleray.raycluster.children import plan_children
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.views import Child
from eagleray.runtime.actions import Create, Refuse, Replace, described
from tests.eagleray.manifests.clusters import cluster

SCALED: Any = {"enableInTreeAutoscaling": True}
OPEN = {"head": {"enableIngress": True}}


def stages(snapshot, *, routes=False, account_exists=True):
    return list(plan_children(snapshot, Settings(), routes=routes, token="t", account_exists=account_exists))


def lines(snapshot, **around):
    return list(described(stages(snapshot, **around)))


def child(name, owner="u-1", **more):
    metadata = {"name": name, "ownerReferences": [{"uid": owner, "controller": True}], **more}
    return msgspec.convert({"metadata": metadata}, Child)


def ours(built):
    """Return an object as the server gives it back."""
    built["metadata"] |= {"uid": "u-9", "resourceVersion": "5"}
    return built


@pytest.mark.parametrize(
    ("facts", "made"),
    [
        pytest.param({}, ["head-service: create Service ns/c-head-svc"], id="an ordinary cluster"),
        pytest.param(
            SCALED,
            [
                "service-account: create ServiceAccount ns/c",
                "role: create Role ns/c",
                "role-binding: create RoleBinding ns/c",
                "head-service: create Service ns/c-head-svc",
            ],
            id="an autoscaled one",
        ),
        pytest.param(
            OPEN,
            ["ingress: create Ingress ns/c-head-ingress", "head-service: create Service ns/c-head-svc"],
            id="one with a way in",
        ),
        pytest.param(
            {"authOptions": {"mode": "token"}, "rayVersion": "2.52.0"},
            ["auth-secret: create Secret ns/c", "head-service: create Service ns/c-head-svc"],
            id="one with a token",
        ),
        pytest.param(
            {"workers": [{"numOfHosts": 2}]},
            [
                "head-service: create Service ns/c-head-svc",
                "headless-service: create Service ns/c-headless",
            ],
            id="one whose replicas have several hosts",
        ),
    ],
)
def test_what_is_missing_is_made_in_order(facts, made):
    assert lines(Snapshot(cluster(**facts))) == made


def test_on_openshift_the_way_in_is_a_route():
    assert lines(Snapshot(cluster(**OPEN)), routes=True)[0] == "route: create Route ns/c-head-route"


def test_what_is_there_is_left_alone():
    scaled = cluster(**SCALED)
    present = {(kind, "c"): child("c") for kind in (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)}
    services = [ours(head_service(scaled, Settings()))]
    assert lines(Snapshot(scaled, head_services=services, children=present)) == []


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(child("c-headless", owner="u-2"), id="somebody else's"),
        pytest.param(child("c-headless", deletionTimestamp="2026-01-01T00:00:00Z"), id="one on its way out"),
    ],
)
def test_what_does_not_count_is_asked_for_again(found):
    hosts = cluster(workers=[{"numOfHosts": 2}])
    snapshot = Snapshot(hosts, children={(SERVICES, "c-headless"): found})
    assert "headless-service: create Service ns/c-headless" in lines(snapshot)


def test_a_missing_account_of_the_user_stops_the_plan():
    scaled = cluster(head={"pod": {"serviceAccountName": "mine"}}, **SCALED)
    (refusal,) = stages(Snapshot(scaled), account_exists=False)[0].actions
    assert isinstance(refusal, Refuse)
    assert refusal.say is not None
    assert refusal.say.reason == "AutoscalerServiceAccountNotFound"
    assert stages(Snapshot(scaled))[0].actions == ()


def test_an_ingress_is_replaced_only_when_it_differs():
    open_cluster = cluster(**OPEN)
    same = ours(head_ingress(open_cluster))
    assert stages(Snapshot(open_cluster, ingress=same))[0].actions == ()
    defaulted = {**same, "spec": {**same["spec"], "ingressClassName": "set-by-admission"}}
    assert stages(Snapshot(open_cluster, ingress=defaulted))[0].actions == ()
    stale = {**same, "spec": {**defaulted["spec"], "rules": []}}
    (update,) = stages(Snapshot(open_cluster, ingress=stale))[0].actions
    assert isinstance(update, Replace)
    assert update.obj["spec"]["ingressClassName"] == "set-by-admission"
    assert update.obj["metadata"]["resourceVersion"] == "5"
    foreign = {**same, "metadata": {**same["metadata"], "ownerReferences": []}}
    (create,) = stages(Snapshot(open_cluster, ingress=foreign))[0].actions
    assert isinstance(create, Create)
    assert create.optional
