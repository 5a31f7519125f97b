"""What quotas say is used, while objects come, change and go."""

import asyncio

import pytest

from kubereef.controllers.garbage import GarbageCollector
from kubereef.controllers.quotas import QuotaController
from kubewire import errors
from tests.kubereef.controllers.making import CORE, PODS

QUOTAS = f"{CORE}/resourcequotas"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def pod(name="p", cpu="1", **spec):
    containers = [{"name": "c", "image": "x:1", "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


@pytest.fixture
async def cluster(simulated_cluster):
    await simulated_cluster.client.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    await simulated_cluster.run(GarbageCollector, QuotaController)
    return simulated_cluster


async def set_up(cluster, hard, name="q", **spec):
    await cluster.client.create(QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    await cluster.pass_time(0)


async def status(cluster, name="q"):
    await cluster.pass_time(0)
    return (await cluster.client.get(f"{QUOTAS}/{name}"))["status"]


async def used(cluster, name="q"):
    return (await status(cluster, name))["used"]


async def test_what_is_there_before_the_quota_is_counted_at_once(cluster):
    await cluster.client.create(PODS, pod("a"))
    await cluster.client.create(PODS, pod("b", cpu="500m"))
    await set_up(cluster, {"pods": "1", "requests.cpu": "3", "count/secrets": "9"})
    assert await status(cluster) == {
        "hard": {"pods": "1", "requests.cpu": "3", "count/secrets": "9"},
        "used": {"pods": "2", "requests.cpu": "1500m", "count/secrets": "0"},
    }


async def test_a_deleted_object_is_given_back_at_once(cluster):
    await set_up(cluster, {"pods": "1", "configmaps": "1"})
    for url, obj in ((PODS, pod()), (f"{CORE}/configmaps", {"metadata": {"name": "p"}})):
        await cluster.client.create(url, obj)
        with pytest.raises(errors.Forbidden):
            await cluster.client.create(url, {**obj, "metadata": {"name": "another"}})
        await cluster.client.delete(f"{url}/p?gracePeriodSeconds=0")
        await cluster.pass_time(0)
        await cluster.client.create(url, {**obj, "metadata": {"name": "another"}})
    assert await used(cluster) == {"pods": "1", "configmaps": "1"}


async def test_a_pod_that_has_ended_is_only_an_object(cluster):
    await set_up(cluster, {"pods": "1", "requests.cpu": "1", "count/pods": "9"})
    await cluster.client.create(PODS, pod())
    await cluster.client.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    assert await used(cluster) == {"pods": "0", "requests.cpu": "0", "count/pods": "1"}


async def test_a_pod_that_nobody_ends_is_given_back_after_twice_its_grace_period(cluster):
    await cluster.client.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    await set_up(cluster, {"pods": "1"})
    await cluster.client.create(PODS, pod(nodeName="n"))
    await cluster.client.delete(f"{PODS}/p?gracePeriodSeconds=30")
    await cluster.pass_time(59)
    assert await used(cluster) == {"pods": "1"}
    await cluster.pass_time(3)
    assert await used(cluster) == {"pods": "0"}


async def test_new_limits_take_hold_with_what_is_used_of_them(cluster):
    await set_up(cluster, {"pods": "5"})
    await cluster.client.create(PODS, pod())
    await cluster.client.patch(f"{QUOTAS}/q", {"spec": {"hard": {"pods": None, "requests.cpu": "1"}}})
    assert await status(cluster) == {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "1"}}


async def test_scopes_hold_for_what_is_there(cluster):
    await cluster.client.create(PODS, pod("short", activeDeadlineSeconds=5))
    await cluster.client.create(PODS, pod("long"))
    await set_up(cluster, {"pods": "5"}, "short", scopes=["Terminating"])
    await set_up(cluster, {"pods": "5"}, "all")
    assert await used(cluster, "short") == {"pods": "1"}
    assert await used(cluster, "all") == {"pods": "2"}


async def test_a_service_that_changes_its_type_and_a_wrong_status_are_counted_anew(cluster):
    await set_up(cluster, {"services.nodeports": "5"})
    ports = [{"port": 1}]
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
    await cluster.client.create(f"{CORE}/services", service)
    assert await used(cluster) == {"services.nodeports": "1"}
    await cluster.client.patch(f"{QUOTAS}/q/status", {"status": {"used": {"services.nodeports": "4"}}})
    assert await used(cluster) == {"services.nodeports": "1"}
    await cluster.client.patch(f"{CORE}/services/s", {"spec": {"type": "ClusterIP"}})
    assert await used(cluster) == {"services.nodeports": "0"}


async def test_kinds_that_come_later_are_counted_then(cluster):
    await set_up(cluster, {"count/widgets.example.com": "2"})
    assert (await status(cluster)).get("used", {}) == {}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await cluster.client.create(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    await cluster.pass_time(1)
    assert await used(cluster) == {"count/widgets.example.com": "0"}
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    await cluster.client.create(widgets, widget)
    assert await used(cluster) == {"count/widgets.example.com": "1"}
    await cluster.client.delete(f"{widgets}/w")
    assert await used(cluster) == {"count/widgets.example.com": "0"}


async def test_late_news_of_pods_never_give_back_what_was_just_charged(simulated_cluster, late_news):
    cluster = simulated_cluster
    await cluster.client.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    late_news["pods"] = 5
    await cluster.run(GarbageCollector, QuotaController)
    await set_up(cluster, {"pods": "2"})
    created = 0
    for number in range(6):
        try:
            await cluster.client.create(PODS, pod(f"p{number}"))
            created += 1
        except errors.Forbidden:
            await asyncio.sleep(0.5)
    assert created == 2
    assert await used(cluster) == {"pods": "2"}


async def test_a_quota_that_is_right_is_not_written(cluster):
    await set_up(cluster, {"pods": "2"})
    before = (await cluster.client.get(f"{QUOTAS}/q"))["metadata"]["resourceVersion"]
    await cluster.client.create(f"{CORE}/configmaps", {"metadata": {"name": "c"}})
    await cluster.pass_time(3600)
    assert (await cluster.client.get(f"{QUOTAS}/q"))["metadata"]["resourceVersion"] == before
