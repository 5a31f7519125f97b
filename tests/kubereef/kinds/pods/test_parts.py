"""What has a path of its own: binding, eviction, resizing, ephemeral containers, the status."""

import re

import pytest

from kubewire import errors
from kubewire.times import format_time
from tests.kubereef.kinds.pods.manifests import PODS, pod, with_container

NODE = {"kind": "Node", "name": "n"}


def binding(name="p", target=None, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": target or NODE,
    }


def eviction(name="p", **options):
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": options,
    }


@pytest.mark.parametrize("path", [f"{PODS}/p/binding", "/api/v1/namespaces/default/bindings"])
async def test_a_scheduler_binds_a_pod_to_a_node(client, clock, path):
    await client.create(
        "/api/v1/nodes", {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}}
    )
    await client.create(PODS, pod())
    done = await client.create(path, binding(annotations={"a": "b"}))
    assert done == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    bound = await client.get(f"{PODS}/p")
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"] == {"a": "b"}
    assert bound["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z"}
    assert bound["metadata"]["generation"] == 1
    assert bound["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": format_time(clock.now()),
        }
    ]


@pytest.mark.parametrize(
    ("spec", "body", "refusal"),
    [
        pytest.param({"nodeName": "m"}, binding(), 'pod p is already assigned to node "m"', id="twice"),
        pytest.param(
            {"schedulingGates": [{"name": "g"}]},
            binding(),
            "pod p has non-empty .spec.schedulingGates",
            id="at a gate",
        ),
        pytest.param(
            {}, binding(uid="other"), "Precondition failed: UID in precondition: other", id="another Pod"
        ),
        pytest.param(
            {},
            binding(target={"kind": "Planet", "name": "n"}),
            "target.kind: Unsupported value",
            id="to no node",
        ),
        pytest.param(
            {}, binding(target={"kind": "Node"}), "target.name: Required value", id="to a node without a name"
        ),
        pytest.param(
            {}, binding("q"), "name in URL does not match name in Binding object", id="for another name"
        ),
    ],
)
async def test_a_binding_is_refused(client, spec, body, refusal):
    await client.create(PODS, pod(**spec))
    with pytest.raises(errors.ApiError, match=re.escape(refusal)):
        await client.create(f"{PODS}/p/binding", body)
    assert (await client.get(f"{PODS}/p"))["spec"].get("nodeName") == spec.get("nodeName")


async def test_a_pod_that_ends_is_bound_no_more(client):
    await client.create(PODS, {**pod(), "metadata": {"name": "p", "finalizers": ["a.b/c"]}})
    await client.delete(f"{PODS}/p")
    with pytest.raises(errors.Conflict, match="is being deleted"):
        await client.create(f"{PODS}/p/binding", binding())


async def test_an_evicted_pod_ends_and_says_why(client):
    await client.create(PODS, pod(nodeName="n"))
    await client.create(f"{PODS}/p/eviction", eviction(gracePeriodSeconds=3))
    evicted = await client.get(f"{PODS}/p")
    assert evicted["metadata"]["deletionGracePeriodSeconds"] == 3
    (condition,) = evicted["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


async def test_an_eviction_without_effect_changes_nothing(client):
    made = await client.create(PODS, pod(nodeName="n"))
    await client.create(f"{PODS}/p/eviction?dryRun=All", eviction())
    assert await client.get(f"{PODS}/p") == made


async def test_an_eviction_of_another_pod_is_refused(client):
    await client.create(PODS, pod(nodeName="n"))
    with pytest.raises(errors.Conflict, match="UID in the precondition"):
        await client.create(f"{PODS}/p/eviction", eviction(preconditions={"uid": "other"}))


async def test_resizing_changes_the_sizes_and_nothing_else(client):
    await client.create(PODS, with_container(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}))
    patch = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "y:2", "resources": {"requests": {"cpu": "1500m"}}}]},
    }
    resized = await client.patch(f"{PODS}/p/resize", patch, "strategic")
    (container,) = resized["spec"]["containers"]
    assert container["image"] == "x:1"
    assert container["resources"] == {"requests": {"cpu": "1500m"}, "limits": {"cpu": "2"}}
    assert "labels" not in resized["metadata"]
    assert resized["metadata"]["generation"] == 2


async def test_resizing_may_not_change_the_quality_of_service(client):
    await client.create(PODS, pod())
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    with pytest.raises(errors.Invalid, match="Pod QOS Class may not change as a result of resizing"):
        await client.patch(f"{PODS}/p/resize", patch, "strategic")


async def test_an_ephemeral_container_is_added_and_stays(client):
    await client.create(PODS, pod())
    look = {"name": "look", "image": "busybox", "targetContainerName": "c"}
    added = await client.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [look]}})
    (container,) = added["spec"]["ephemeralContainers"]
    assert container["imagePullPolicy"] == "Always"
    assert added["metadata"]["generation"] == 2
    with pytest.raises(errors.Invalid, match='existing ephemeral containers "look" may not be removed'):
        await client.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": []}})
    with pytest.raises(errors.Invalid, match='"Command": null'):
        await client.patch(
            f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{**look, "command": ["sh"]}]}}
        )


async def test_a_pod_with_an_ephemeral_container_can_still_be_labelled(client):
    await client.create(PODS, pod())
    look = {"name": "look", "image": "busybox"}
    await client.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [look]}})
    labelled = await client.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["labels"] == {"a": "b"}


async def test_a_kubelet_cannot_disown_a_pod_or_change_its_quality(client):
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}
    await client.create(PODS, {**pod(), "metadata": {"name": "p", "ownerReferences": [owner]}})
    patch = {"metadata": {"ownerReferences": None}, "status": {"phase": "Running", "qosClass": None}}
    updated = await client.patch(f"{PODS}/p/status", patch)
    assert updated["metadata"]["ownerReferences"] == [owner]
    assert updated["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    with pytest.raises(errors.Invalid, match="field is immutable"):
        await client.patch(f"{PODS}/p/status", {"status": {"qosClass": "Guaranteed"}})


async def test_what_ended_for_good_is_not_reported_alive_again(client):
    await client.create(PODS, pod(restartPolicy="Never"))
    ended = {"name": "c", "state": {"terminated": {"exitCode": 0}}}
    await client.patch(f"{PODS}/p/status", {"status": {"containerStatuses": [ended]}})
    alive = {"name": "c", "state": {"running": {}}}
    with pytest.raises(errors.Invalid, match="may not be transitioned to non-terminated state"):
        await client.patch(f"{PODS}/p/status", {"status": {"containerStatuses": [alive]}})
