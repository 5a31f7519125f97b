"""Deletion of namespaces and what is in them."""

import asyncio

import pytest

from kubereef.controllers.namespaces import NamespaceController
from kubereef.kinds.resource import ResourceType
from kubewire import errors

NS = "/api/v1/namespaces"
CM = f"{NS}/doomed/configmaps"


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(NamespaceController)
    await simulated_cluster.client.create(NS, {"metadata": {"name": "doomed"}})
    return simulated_cluster.client


async def exists(client, url):
    try:
        await client.get(url)
    except errors.NotFound:
        return False
    return True


async def conditions(client):
    status = (await client.get(f"{NS}/doomed"))["status"]
    assert status["phase"] == "Terminating"
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in status["conditions"]}


async def test_an_empty_namespace_goes_at_once(client):
    await client.delete(f"{NS}/doomed")
    await asyncio.sleep(1)
    assert not await exists(client, f"{NS}/doomed")


async def test_its_content_goes_before_it_and_that_of_others_stays(client):
    for kind in ("configmaps", "secrets", "serviceaccounts"):
        await client.create(f"{NS}/doomed/{kind}", {"metadata": {"name": "a"}})
    await client.create(f"{NS}/default/configmaps", {"metadata": {"name": "a"}})
    await client.delete(f"{NS}/doomed")
    await asyncio.sleep(1)
    assert not await exists(client, f"{NS}/doomed")
    assert (await client.get(CM))["items"] == []
    assert await exists(client, f"{NS}/default/configmaps/a")


async def test_custom_content_goes_too(client, simulated_cluster):
    for version in ("v1", "v2"):
        widgets = ResourceType(
            group="example.com",
            version=version,
            kind="Widget",
            plural="widgets",
            singular="widget",
            namespaced=True,
            verbs=frozenset(("create", "delete", "deletecollection", "get", "list", "watch")),
            custom=True,
        )
        simulated_cluster.server.around.registry.add(widgets)
    url = "/apis/example.com/v1/namespaces/doomed/widgets"
    await client.create(url, {"metadata": {"name": "w"}})
    await client.delete(f"{NS}/doomed")
    await asyncio.sleep(1)
    assert not await exists(client, f"{url}/w")
    assert not await exists(client, f"{NS}/doomed")


async def test_held_content_is_told_and_the_namespace_goes_as_soon_as_it_is_let_go(client):
    for name in ("first", "second"):
        await client.create(CM, {"metadata": {"name": name, "finalizers": ["example.com/hold"]}})
    await client.delete(f"{NS}/doomed")
    await asyncio.sleep(1)
    found = await conditions(client)
    assert found["NamespaceContentRemaining"] == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 2 resource instances",
    )
    assert found["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances",
    )
    assert found["NamespaceDeletionContentFailure"][0] == "False"
    await client.patch(f"{CM}/first", {"metadata": {"finalizers": None}})
    await asyncio.sleep(1)
    assert "has 1 resource" in (await conditions(client))["NamespaceContentRemaining"][2]
    await client.patch(f"{CM}/second", {"metadata": {"finalizers": None}})
    await asyncio.sleep(1)
    assert not await exists(client, f"{NS}/doomed")


async def test_pods_go_before_everything_else(client):
    await client.create(f"{NS}/doomed/serviceaccounts", {"metadata": {"name": "default"}})
    await client.create(CM, {"metadata": {"name": "needed"}})
    pod = {
        "metadata": {"name": "p", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    await client.create(f"{NS}/doomed/pods", pod)
    await client.delete(f"{NS}/doomed")
    await asyncio.sleep(60)
    assert await exists(client, f"{CM}/needed")
    assert "pods. has 1 resource" in (await conditions(client))["NamespaceContentRemaining"][2]
    await client.patch(f"{NS}/doomed/pods/p", {"metadata": {"finalizers": None}})
    await asyncio.sleep(1)
    assert not await exists(client, f"{NS}/doomed")


async def test_a_finalizer_of_somebody_else_keeps_the_emptied_namespace(client):
    await client.patch(f"{NS}/doomed", {"metadata": {"finalizers": ["example.com/hold"]}})
    await client.create(CM, {"metadata": {"name": "a"}})
    await client.delete(f"{NS}/doomed")
    await asyncio.sleep(1)
    assert (await client.get(CM))["items"] == []
    assert (await client.get(f"{NS}/doomed"))["spec"].get("finalizers") is None
    await client.patch(f"{NS}/doomed", {"metadata": {"finalizers": None}})
    assert not await exists(client, f"{NS}/doomed")


async def test_a_deletion_that_began_while_it_was_stopped_is_finished(client, simulated_cluster):
    await client.create(CM, {"metadata": {"name": "a"}})
    await simulated_cluster.stop_controllers()
    await client.delete(f"{NS}/doomed")
    await asyncio.sleep(60)
    assert await exists(client, f"{CM}/a")
    await simulated_cluster.restart_controllers()
    await asyncio.sleep(1)
    assert not await exists(client, f"{NS}/doomed")


async def test_content_that_cannot_be_deleted_is_told(client, simulated_cluster):
    await client.create(CM, {"metadata": {"name": "a"}})
    gate = simulated_cluster.server.gatekeeper
    authorize = gate.authorize

    def stubborn(user, target):
        if target.verb == "deletecollection" and target.plural == "configmaps":
            raise errors.internal_error("not today")
        authorize(user, target)

    gate.authorize = stubborn
    await client.delete(f"{NS}/doomed")
    await asyncio.sleep(1)
    status, reason, message = (await conditions(client))["NamespaceDeletionContentFailure"]
    assert (status, reason) == ("True", "ContentDeletionFailed")
    assert "not today" in message
    gate.authorize = authorize
    await asyncio.sleep(60)
    assert not await exists(client, f"{NS}/doomed")


async def test_a_namespace_that_is_not_being_deleted_is_left_alone(client):
    await client.create(CM, {"metadata": {"name": "a"}})
    await asyncio.sleep(3600)
    assert await exists(client, f"{CM}/a")
