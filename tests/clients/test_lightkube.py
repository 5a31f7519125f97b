"""lightkube: its verbs, on built-in kinds and on RayClusters."""

import gc
import itertools
import threading
import warnings
from pathlib import Path

import httpx2
import pytest
import yaml
from lightkube import ApiError, Client, KubeConfig, codecs, operators
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Node, Pod
from lightkube.types import CascadeType, PatchType

from tests.clients.waiting import eventually

CRD = Path(__file__).parents[2] / "config" / "crd" / "ray.io_rayclusters.yaml"
RayCluster = create_namespaced_resource("ray.io", "v1", "RayCluster", "rayclusters")

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def everything(cluster):
    """A client that is not bound to a namespace."""
    with Client(KubeConfig.from_file(str(cluster.kubeconfig)), field_manager="lightkube") as client:
        yield client
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # watches that were left keep their sockets for a while
        gc.collect()


@pytest.fixture
def client(cluster, namespace):
    config = KubeConfig.from_file(str(cluster.kubeconfig))
    with Client(config, namespace=namespace, field_manager="lightkube", timeout=httpx2.Timeout(20)) as client:
        yield client


def config_map(name, labels=None, **data):
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels), data=data)


def deployment(name, replicas=1):
    labels = {"app": name}
    pod = PodSpec(containers=[Container(name="web", image="busybox")], terminationGracePeriodSeconds=0)
    return Deployment(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(matchLabels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


def test_an_object_is_created_read_replaced_and_deleted(client):
    made = client.create(config_map("one", key="value"))
    assert made.metadata.uid
    found = client.get(ConfigMap, "one")
    found.data["key"] = "another"
    assert client.replace(found).data == {"key": "another"}
    with pytest.raises(ApiError) as stale:
        client.replace(
            ConfigMap(metadata=ObjectMeta(name="one", resourceVersion=made.metadata.resourceVersion))
        )
    assert (stale.value.status.code, stale.value.status.reason) == (409, "Conflict")
    client.delete(ConfigMap, "one")
    with pytest.raises(ApiError) as gone:
        client.get(ConfigMap, "one")
    assert (gone.value.status.code, gone.value.status.reason) == (404, "NotFound")


def test_a_dry_run_changes_nothing(client):
    assert client.create(config_map("dry", key="value"), dry_run=True).metadata.uid
    with pytest.raises(ApiError, match='"dry" not found'):
        client.get(ConfigMap, "dry")


def test_lists_come_in_chunks_and_by_selectors(client):
    for number in range(7):
        client.create(config_map(f"c{number}", labels={"odd": str(number % 2)}))
    names = [one.metadata.name for one in client.list(ConfigMap, chunk_size=3)]
    assert {f"c{number}" for number in range(7)} <= set(names)
    odd = client.list(ConfigMap, labels={"odd": operators.in_(["1"])})
    assert [one.metadata.name for one in odd] == ["c1", "c3", "c5"]
    named = client.list(ConfigMap, fields={"metadata.name": "c4"})
    assert [one.metadata.name for one in named] == ["c4"]


def test_a_collection_is_deleted_at_once(client):
    for number in range(3):
        client.create(config_map(f"c{number}", labels={"ours": "yes"}))
    client.deletecollection(ConfigMap)
    assert not list(client.list(ConfigMap, labels={"ours": operators.exists()}))


def test_a_watch_tells_of_changes_from_a_version_on(client):
    listed = client.list(ConfigMap)
    list(listed)

    def change():
        client.create(config_map("seen", key="value"))
        client.patch(ConfigMap, "seen", {"data": {"key": "another"}}, patch_type=PatchType.MERGE)
        client.delete(ConfigMap, "seen")

    changes = threading.Thread(target=change)
    changes.start()
    watched = client.watch(ConfigMap, resource_version=listed.resourceVersion, server_timeout=20)
    seen = [(kind, one.metadata.name) for kind, one in itertools.islice(watched, 3)]
    changes.join()
    assert seen == [("ADDED", "seen"), ("MODIFIED", "seen"), ("DELETED", "seen")]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param(PatchType.JSON, [{"op": "replace", "path": "/spec/replicas", "value": 3}], id="json"),
        pytest.param(PatchType.MERGE, {"spec": {"replicas": 3}}, id="merge"),
        pytest.param(
            PatchType.STRATEGIC,
            {"spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "web", "tty": True}]}}}},
            id="strategic merge",
        ),
    ],
)
def test_a_patch_of_every_kind_changes_a_deployment(client, kind, patch):
    client.create(deployment("web"))
    patched = client.patch(Deployment, "web", patch, patch_type=kind)
    assert patched.spec.replicas == 3
    assert patched.spec.template.spec.containers[0].image == "busybox"


def test_apply_creates_conflicts_and_forces(client):
    client.apply(config_map("applied", key="mine"), field_manager="first")
    with pytest.raises(ApiError) as refused:
        client.apply(config_map("applied", key="yours"), field_manager="second")
    assert refused.value.status.code == 409
    assert 'conflict with "first": .data.key' in str(refused.value.status.message)
    assert client.apply(config_map("applied", key="yours"), field_manager="second", force=True).data == {
        "key": "yours"
    }


def test_a_deployment_is_waited_for_and_scaled(client):
    client.create(deployment("web"))
    client.wait(Deployment, "web", for_conditions=["Available"])
    scale = client.get(Deployment.Scale, "web")
    assert scale.status.selector == "app=web"
    client.replace(Deployment.Scale(metadata=scale.metadata, spec=ScaleSpec(replicas=2)), "web")
    watched = client.watch(Deployment, fields={"metadata.name": "web"}, server_timeout=20)
    assert next(one for _, one in watched if one.status and one.status.readyReplicas == 2)
    client.delete(Deployment, "web", cascade=CascadeType.FOREGROUND)
    eventually(lambda: not list(client.list(Pod)))
    eventually(lambda: not list(client.list(Deployment)))


def test_nodes_are_listed_without_a_namespace(everything):
    assert "node-1" in {one.metadata.name for one in everything.list(Node)}


def test_pods_of_all_namespaces_are_listed(everything, client):
    client.create(deployment("web"))
    client.wait(Deployment, "web", for_conditions=["Available"])
    assert client.namespace in {one.metadata.namespace for one in everything.list(Pod, namespace="*")}


def test_a_ray_cluster_is_an_object_like_any_other(everything, client, namespace):
    definition = yaml.load(CRD.read_text(), Loader=yaml.CSafeLoader)
    everything.apply(codecs.from_dict(definition), force=True)
    everything.wait(CustomResourceDefinition, "rayclusters.ray.io", for_conditions=["Established"])
    pod = {"template": {"spec": {"containers": [{"name": "ray-head", "image": "rayproject/ray:2.52.0"}]}}}
    made = RayCluster(metadata=ObjectMeta(name="sea"), spec={"headGroupSpec": {"rayStartParams": {}, **pod}})
    assert client.create(made).metadata.generation == 1
    patched = client.patch(RayCluster, "sea", {"spec": {"suspend": True}}, patch_type=PatchType.MERGE)
    assert patched.metadata.generation == 2
    status = {"status": {"state": "suspended"}}
    client.patch(RayCluster.Status, "sea", status, patch_type=PatchType.MERGE)
    assert client.get(RayCluster, "sea").status == {"state": "suspended"}
    assert [one.metadata.name for one in client.list(RayCluster)] == ["sea"]
    with pytest.raises(ApiError, match=r"spec\.suspend") as wrong:
        client.patch(RayCluster, "sea", {"spec": {"suspend": "no"}}, patch_type=PatchType.MERGE)
    assert (wrong.value.status.code, wrong.value.status.reason) == (422, "Invalid")
    client.delete(RayCluster, "sea")
