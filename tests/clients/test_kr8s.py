"""kr8s: its verbs, on built-in kinds and on RayClusters; the synchronous half and the asynchronous one."""

import asyncio
from pathlib import Path

import kr8s
import kr8s.asyncio
import pytest
import yaml
from kr8s.asyncio.objects import ConfigMap as AsyncConfigMap
from kr8s.objects import ConfigMap, CustomResourceDefinition, Deployment, Node, Pod, new_class

from tests.clients.closing import close, forget_watches

CRD = Path(__file__).parents[2] / "config" / "crd" / "ray.io_rayclusters.yaml"
PATIENCE = 20

pytestmark = [
    pytest.mark.heavy,
    # kr8s warns of versions that are newer than it.
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported"),
    # It leaves watches without closing their connections.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def api(cluster, namespace):
    api = kr8s.api(kubeconfig=str(cluster.kubeconfig), namespace=namespace)
    yield api
    close(api)


def config_map(api, name, labels=None, **data):
    raw = {"metadata": {"name": name, "labels": labels or {}}, "data": data}
    return ConfigMap(raw, api=api, namespace=api.namespace)


def deployment(api, name, replicas=1):
    labels = {"app": name}
    pod = {"containers": [{"name": "web", "image": "busybox"}], "terminationGracePeriodSeconds": 0}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return Deployment(
        {"metadata": {"name": name, "labels": labels}, "spec": spec}, api=api, namespace=api.namespace
    )


def test_it_learns_who_and_where_it_is(api):
    assert api.version()["major"] == "1"
    assert api.whoami()
    assert {"pods", "deployments", "customresourcedefinitions"} <= {
        one["name"] for one in api.api_resources()
    }
    assert "apps/v1" in list(api.api_versions())


def test_an_object_is_created_read_changed_and_deleted(api):
    one = config_map(api, "one", key="value")
    one.create()
    assert one.exists()
    one.patch({"data": {"key": "another"}})
    one.patch([{"op": "add", "path": "/data/more", "value": "too"}], type="json")
    assert ConfigMap.get("one", api=api, namespace=api.namespace).data == {"key": "another", "more": "too"}
    one.label(tier="front")
    one.annotate(note="yes")
    assert (one.labels.tier, one.annotations.note) == ("front", "yes")
    one.remove_label("tier")
    assert "tier" not in one.labels
    one.delete()
    one.wait("delete", timeout=PATIENCE)
    assert not one.exists()
    with pytest.raises(kr8s.NotFoundError):
        one.refresh()


def test_lists_are_by_selectors_and_kinds_by_name(api):
    for number in range(4):
        config_map(api, f"c{number}", labels={"odd": str(number % 2)}).create()
    assert {one.name for one in api.get("configmaps", label_selector="odd=1")} == {"c1", "c3"}
    assert [one.name for one in api.get("cm", field_selector={"metadata.name": "c2"})] == ["c2"]
    assert [one.name for one in api.get("configmaps", "c0")] == ["c0"]
    assert "node-1" in {one.name for one in api.get("nodes")}


def test_a_deployment_is_waited_for_scaled_and_followed(api):
    web = deployment(api, "web")
    web.create()
    web.wait("condition=Available", timeout=PATIENCE)
    assert web.ready()
    web.scale(2)
    web.wait("jsonpath='{.status.readyReplicas}'=2", timeout=PATIENCE)
    pods = list(api.get("pods", label_selector="app=web"))
    assert len(pods) == 2
    assert all(pod.ready() for pod in pods)
    assert pods[0].metadata.ownerReferences[0].kind == "ReplicaSet"
    web.delete(propagation_policy="Foreground")
    web.wait("delete", timeout=PATIENCE)
    assert not list(api.get("pods", label_selector="app=web"))


def test_a_watch_tells_of_changes(api):
    web = deployment(api, "web", replicas=0)
    web.create()
    watched = api.watch("deployments", field_selector={"metadata.name": "web"})
    kind, seen = next(watched)
    assert (kind, seen.name) == ("ADDED", "web")
    web.label(tier="front")
    assert next(one for kind, one in watched if kind == "MODIFIED" and "tier" in one.labels)
    watched.close()


def test_a_node_is_cordoned_and_tainted(api):
    node = Node.get("node-1", api=api)
    node.cordon()
    assert node.unschedulable
    node.uncordon()
    assert not node.unschedulable
    node.taint("busy", "yes", effect="PreferNoSchedule")
    assert "busy" in {one.key for one in node.taints}


def test_owners_take_their_children_along(api):
    owner, child = config_map(api, "owner"), config_map(api, "child")
    owner.create()
    child.create()
    child.set_owner(owner)
    owner.delete(propagation_policy="Foreground")
    child.wait("delete", timeout=PATIENCE)


def test_a_ray_cluster_is_an_object_like_any_other(api):
    definition = CustomResourceDefinition(yaml.load(CRD.read_text(), Loader=yaml.CSafeLoader), api=api)
    if not definition.exists():
        definition.create()
    definition.wait("condition=Established", timeout=PATIENCE)
    kind = new_class("RayCluster", "ray.io/v1", asyncio=False)
    pod = {"template": {"spec": {"containers": [{"name": "ray-head", "image": "rayproject/ray:2.52.0"}]}}}
    raw = {"metadata": {"name": "sea"}, "spec": {"headGroupSpec": {"rayStartParams": {}, **pod}}}
    sea = kind(raw, api=api, namespace=api.namespace)
    sea.create()
    sea.patch({"spec": {"suspend": True}})
    assert sea.metadata.generation == 2
    sea.patch({"status": {"state": "suspended"}}, subresource="status")
    assert [(one.name, one.status.state) for one in api.get("rayclusters.ray.io")] == [("sea", "suspended")]
    with pytest.raises(kr8s.ServerError, match=r"spec\.suspend"):
        sea.patch({"spec": {"suspend": "no"}})
    sea.delete()
    sea.wait("delete", timeout=PATIENCE)


async def test_many_requests_go_side_by_side(cluster, namespace):
    api = await kr8s.asyncio.api(kubeconfig=str(cluster.kubeconfig), namespace=namespace)
    made = [
        AsyncConfigMap(
            {"metadata": {"name": f"c{number}", "labels": {"many": "yes"}}}, api=api, namespace=namespace
        )
        for number in range(20)
    ]
    await asyncio.gather(*(one.create() for one in made))
    found = [one async for one in api.get("configmaps", label_selector="many=yes")]
    assert len(found) == 20
    await asyncio.gather(*(one.delete() for one in made))
    assert api._session is not None
    await api._session.aclose()
    forget_watches()


def test_a_pod_is_made_from_a_few_words(api):
    pod = Pod.gen(name="words", image="busybox", command=["sleep", "1000"])
    pod.api, pod.namespace = api, api.namespace
    pod.create()
    pod.wait("condition=Ready", timeout=PATIENCE)
    assert pod.spec.nodeName == "node-1"
    pod.delete()
