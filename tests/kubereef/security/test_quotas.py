"""Quotas at the API server: what is charged, and what is refused in which words."""

import asyncio
from typing import Any

import pytest

from kubereef.cluster import Cluster
from kubereef.store.journal import SqliteJournal
from kubereef.store.store import Store
from kubewire import errors
from kubewire.sources import ManualClock, SeededEntropy

CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"
QUOTAS = f"{CORE}/resourcequotas"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def pod(name="p", requests=None, limits=None, **spec):
    containers = [
        {"name": "c", "image": "x:1", "resources": {"requests": requests or {}, "limits": limits or {}}}
    ]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


async def set_up(client, hard, used=None, name="q", **spec):
    """Create a quota as it is once a controller has counted."""
    await client.create(QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") | (used or {})}
    await client.patch(f"{QUOTAS}/{name}/status", {"status": status})


@pytest.fixture
async def quota(admin):
    await admin.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})

    async def make(hard, used=None, name="q", **spec):
        await set_up(admin, hard, used, name, **spec)

    return make


async def used(admin, name="q"):
    return (await admin.get(f"{QUOTAS}/{name}"))["status"]["used"]


async def refusal(admin, url, obj):
    with pytest.raises(errors.Forbidden) as refused:
        await admin.create(url, obj)
    return refused.value.message.partition(" is forbidden: ")[2]


async def test_a_pod_is_charged_for_all_that_it_asks_for(admin, quota):
    names = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
    more = ("requests.ephemeral-storage", "requests.example.com/gpu", "pods", "count/pods", "hugepages-2Mi")
    await quota(dict.fromkeys((*names, *more), "100Gi"))
    requests = {
        "cpu": "1",
        "memory": "1Gi",
        "ephemeral-storage": "5M",
        "example.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
    }
    limits = {"cpu": "2", "memory": "2Gi", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"}
    amounts = {"cpu": "3", "memory": "1Mi"}
    init = {"name": "i", "image": "x:1", "resources": {"requests": amounts, "limits": amounts}}
    await admin.create(PODS, pod(requests=requests, limits=limits, initContainers=[init]))
    assert await used(admin) == {
        "cpu": "3",
        "memory": "1Gi",
        "requests.cpu": "3",
        "requests.memory": "1Gi",
        "limits.cpu": "3",
        "limits.memory": "2Gi",
        "requests.ephemeral-storage": "5M",
        "requests.example.com/gpu": "2",
        "pods": "1",
        "count/pods": "1",
        "hugepages-2Mi": "4Mi",
    }


async def test_a_refusal_names_what_is_exceeded_and_nothing_else(admin, quota):
    await quota({"requests.cpu": "2", "requests.memory": "1Gi", "pods": "5"}, {"requests.cpu": "1500m"})
    wish = pod(requests={"cpu": "1", "memory": "2Gi"})
    assert await refusal(admin, PODS, wish) == (
        "exceeded quota: q, requested: requests.cpu=1,requests.memory=2Gi,"
        " used: requests.cpu=1500m,requests.memory=0, limited: requests.cpu=2,requests.memory=1Gi"
    )
    assert (await used(admin))["pods"] == "0"


async def test_containers_must_state_what_is_limited(admin, quota):
    await quota({"limits.memory": "1Gi", "requests.cpu": "1", "requests.ephemeral-storage": "1Gi"})
    wish = pod(requests={"cpu": "1"})
    wish["spec"]["containers"].append({"name": "b", "image": "x:1"})
    assert await refusal(admin, PODS, wish) == (
        "failed quota: q: must specify limits.memory for: b,c; requests.cpu for: b"
    )


async def test_a_pod_that_states_it_for_all_containers_has_stated_it(admin, quota):
    await quota({"requests.cpu": "2"})
    await admin.create(PODS, pod(resources={"requests": {"cpu": "1500m"}}))
    assert await used(admin) == {"requests.cpu": "1500m"}


async def test_a_quota_that_has_not_been_counted_for_refuses(admin, quota):
    await quota({"configmaps": "1"})
    status = {"hard": {"configmaps": "1", "secrets": "1"}, "used": {"configmaps": "0"}}
    await admin.patch(f"{QUOTAS}/q/status", {"status": status})
    because = await refusal(admin, f"{CORE}/secrets", {"metadata": {"name": "s"}})
    assert because == "status unknown for quota: q, resources: secrets"
    assert await admin.create(f"{CORE}/configmaps", {"metadata": {"name": "c"}})


@pytest.mark.parametrize(
    ("scoped", "spec", "is_counted"),
    [
        pytest.param({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, True, id="with a deadline"),
        pytest.param({"scopes": ["Terminating"]}, {}, False, id="without a deadline"),
        pytest.param(
            {"scopes": ["NotTerminating"]}, {"activeDeadlineSeconds": 5}, False, id="not with a deadline"
        ),
        pytest.param({"scopes": ["BestEffort"]}, {}, True, id="best effort"),
        pytest.param({"scopes": ["BestEffort", "Terminating"]}, {}, False, id="all scopes have to hold"),
        pytest.param({"scopes": ["NotBestEffort"]}, {}, False, id="not best effort"),
        pytest.param({"scopes": ["PriorityClass"]}, {"priorityClassName": "high"}, True, id="any class"),
        pytest.param({"scopes": ["PriorityClass"]}, {}, False, id="no class"),
        pytest.param(("In", ["high"]), {"priorityClassName": "high"}, True, id="one of the classes"),
        pytest.param(("In", ["high"]), {"priorityClassName": "low"}, False, id="another class"),
        pytest.param(("NotIn", ["high"]), {"priorityClassName": "low"}, True, id="none of the classes"),
        pytest.param(("NotIn", ["high"]), {}, True, id="no class is none of them"),
        pytest.param(("DoesNotExist", []), {}, True, id="wanted without a class"),
        pytest.param({"scopes": ["CrossNamespacePodAffinity"]}, {}, False, id="within the namespace"),
        pytest.param(
            {"scopes": ["CrossNamespacePodAffinity"]},
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "zone", "namespaces": ["x"], "labelSelector": {}}
                        ]
                    }
                }
            },
            True,
            id="near Pods of another namespace",
        ),
    ],
)
async def test_scopes_narrow_down_what_is_counted(admin, quota, scoped, spec, is_counted):
    for name, value in (("high", 10), ("low", 1)):
        await admin.create(
            "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value}
        )
    if isinstance(scoped, tuple):
        operator, values = scoped
        expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
        scoped = {"scopeSelector": {"matchExpressions": [expression]}}
    await quota({"pods": "5"}, **scoped)
    await admin.create(PODS, pod(**spec))
    assert await used(admin) == {"pods": "1" if is_counted else "0"}


async def test_every_quota_that_is_concerned_is_charged_or_none(admin, quota):
    await quota({"pods": "5"}, name="a")
    await quota({"pods": "1"}, {"pods": "1"}, name="b")
    assert "exceeded quota: b" in await refusal(admin, PODS, pod())
    assert await used(admin, "a") == {"pods": "0"}


async def test_neither_a_dry_run_nor_a_taken_name_is_charged(admin, quota):
    await quota({"pods": "5"})
    await admin.create(PODS, pod())
    await admin.create(f"{PODS}?dryRun=All", pod("q"))
    with pytest.raises(errors.AlreadyExists):
        await admin.create(PODS, pod())
    assert await used(admin) == {"pods": "1"}


async def test_services_count_with_their_node_ports_and_give_them_back(admin, quota):
    hard = {"services": "2", "services.nodeports": "2", "services.loadbalancers": "1", "count/services": "9"}
    await quota(hard)
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
    await admin.create(f"{CORE}/services", service)
    assert await used(admin) == {
        "services": "1",
        "services.nodeports": "2",
        "services.loadbalancers": "0",
        "count/services": "1",
    }
    more: dict[str, Any] = {
        "metadata": {"name": "t"},
        "spec": {"type": "LoadBalancer", "ports": ports[:1]},
    }
    assert "requested: services.nodeports=1, used: services.nodeports=2" in await refusal(
        admin, f"{CORE}/services", more
    )
    without = {**more, "spec": {**more["spec"], "allocateLoadBalancerNodePorts": False}}
    await admin.create(f"{CORE}/services", without)
    await admin.patch(f"{QUOTAS}/q/status", {"status": {"hard": {"services.nodeports": "0"}}})
    # Whoever gives something back may, even while too much is used.
    await admin.patch(f"{CORE}/services/s", {"spec": {"ports": ports[:1]}})
    assert (await used(admin))["services.nodeports"] == "1"
    await admin.patch(f"{CORE}/services/s", {"spec": {"type": "ClusterIP", "ports": ports}})
    assert (await used(admin))["services.nodeports"] == "0"
    with pytest.raises(errors.Forbidden, match=r"exceeded quota: q, requested: services.nodeports=2"):
        await admin.patch(f"{CORE}/services/s", {"spec": {"type": "NodePort"}})


async def test_claims_count_with_their_size_and_by_class(admin, quota):
    suffix = "gold.storageclass.storage.k8s.io"
    hard = {"persistentvolumeclaims": "9", "requests.storage": "9Gi"}
    await quota({**hard, f"{suffix}/requests.storage": "3Gi", f"{suffix}/persistentvolumeclaims": "1"})

    def claim(name, size, of_class):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {"metadata": {"name": name}, "spec": {**spec, "storageClassName": of_class}}

    claims = f"{CORE}/persistentvolumeclaims"
    await admin.create(claims, claim("a", "2Gi", "gold"))
    await admin.create(claims, claim("b", "4Gi", "tin"))
    assert f"used: {suffix}/persistentvolumeclaims=1, limited" in await refusal(
        admin, claims, claim("c", "1Gi", "gold")
    )
    assert await used(admin) == {
        "persistentvolumeclaims": "2",
        "requests.storage": "6Gi",
        f"{suffix}/requests.storage": "2Gi",
        f"{suffix}/persistentvolumeclaims": "1",
    }


async def test_objects_of_any_kind_are_counted(admin, quota):
    await quota({"count/widgets.example.com": "1", "count/jobs.batch": "0"})
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await admin.create(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    widget = {"apiVersion": "example.com/v1", "kind": "Widget"}
    await admin.create(widgets, {**widget, "metadata": {"name": "a"}})
    assert await refusal(admin, widgets, {**widget, "metadata": {"name": "b"}}) == (
        "exceeded quota: q, requested: count/widgets.example.com=1, used: count/widgets.example.com=1,"
        " limited: count/widgets.example.com=1"
    )


async def test_events_are_never_counted(admin, quota):
    await quota({"count/events": "0"})
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"namespace": "default"},
        "reason": "r",
        "message": "m",
    }
    assert await admin.create(f"{CORE}/events", event)


async def test_a_resize_is_charged_for_the_difference(admin, quota):
    await admin.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    await quota({"requests.cpu": "2"})
    await admin.create(PODS, pod(requests={"cpu": "1"}, nodeName="n"))

    async def resize(cpu):
        spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
        await admin.patch(f"{PODS}/p/resize", {"spec": spec}, "strategic")

    await resize("1800m")
    assert await used(admin) == {"requests.cpu": "1800m"}
    with pytest.raises(errors.Forbidden, match=r"requested: requests.cpu=1200m, used: requests.cpu=1800m"):
        await resize("3")


async def test_of_many_writes_in_flight_only_as_many_pass_as_there_is_room_for(tmp_path):
    """With a journal writes overlap: each is answered when it is durable, while others come in."""
    journal = SqliteJournal(tmp_path / "objects.db")
    cluster = Cluster(Store(journal), clock=ManualClock(), entropy=SeededEntropy(1))
    await cluster.start()
    client = cluster.client()
    await set_up(client, {"configmaps": "7"})

    async def create(number):
        try:
            await client.create(f"{CORE}/configmaps", {"metadata": {"name": f"c{number}"}})
        except errors.Forbidden:
            return False
        return True

    passed = await asyncio.gather(*map(create, range(50)))
    assert sum(passed) == 7
    assert await used(client) == {"configmaps": "7"}
    await cluster.stop()
