"""The chart of one RayCluster: what it renders is accepted, and becomes ready under the operator."""

from typing import Any

import pytest

from tests.eagleray.world import world_of
from tests.packaging.helm import RAY_CLUSTER, Refused

REDIS = {
    "redisAddress": "redis:6379",
    "redisPassword": {"value": "secret"},
    "externalStorageNamespace": "mine",
}


@pytest.fixture
def render(helm):
    def rendered(values=None, release="r"):
        objects = helm.render(RAY_CLUSTER, values, release=release, namespace="default")
        return objects.one("RayCluster")

    return rendered


async def ready(cluster):
    """Have a cluster become ready; returns it and its Pods."""
    async with world_of() as world:
        await world.create(cluster)
        made = await world.ready(cluster["metadata"]["name"])
        return made, await world.pods(cluster["metadata"]["name"])


def groups(cluster):
    return {one["groupName"]: one for one in cluster["spec"]["workerGroupSpecs"]}


@pytest.mark.case("OP-125")
@pytest.mark.usefixtures("virtual_time")
async def test_by_default_there_is_one_cluster_with_one_worker(render):
    cluster = render()
    assert cluster["metadata"]["name"] == "r-kuberay"
    made, pods = await ready(cluster)
    assert made["status"]["desiredWorkerReplicas"] == 1
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"rayproject/ray:2.52.0"}
    (head,) = (pod for pod in pods if pod["metadata"]["labels"]["ray.io/node-type"] == "head")
    limits = {"cpu": "1", "memory": "5Gi"}
    assert head["spec"]["containers"][0]["resources"] == {"limits": limits, "requests": limits}
    assert {"name": "log-volume", "mountPath": "/tmp/ray"} in head["spec"]["containers"][0]["volumeMounts"]
    (group,) = groups(cluster).values()
    assert (group["groupName"], group["replicas"], group["minReplicas"], group["maxReplicas"]) == (
        "workergroup",
        1,
        1,
        5,
    )


@pytest.mark.case("OP-125")
@pytest.mark.parametrize(
    ("values", "release", "name"),
    [
        ({}, "my-kuberay", "my-kuberay"),
        ({"nameOverride": "x"}, "r", "r-x"),
        ({"fullnameOverride": "whole"}, "r", "whole"),
    ],
    ids=["after a release that says it", "with a part of one's own", "as told"],
)
def test_the_name_of_the_cluster(render, values, release, name):
    assert render(values, release)["metadata"]["name"] == name


@pytest.mark.case("OP-126")
@pytest.mark.usefixtures("virtual_time")
async def test_a_cluster_with_fault_tolerance_is_accepted_and_becomes_ready(render):
    cluster = render({"gcsFaultTolerance": {"enabled": True, **REDIS}})
    assert cluster["spec"]["gcsFaultToleranceOptions"] == REDIS
    _, pods = await ready(cluster)
    (head,) = (pod for pod in pods if pod["metadata"]["labels"]["ray.io/node-type"] == "head")
    variables = {one["name"]: one.get("value") for one in head["spec"]["containers"][0]["env"]}
    assert variables["RAY_REDIS_ADDRESS"] == "redis:6379"
    assert variables["REDIS_PASSWORD"] == "secret"


@pytest.mark.case("OP-126")
def test_fault_tolerance_without_an_address_is_refused(render):
    with pytest.raises(Refused, match="say where Redis is"):
        render({"gcsFaultTolerance": {"enabled": True}})


@pytest.mark.case("OP-126")
@pytest.mark.usefixtures("virtual_time")
async def test_more_groups_are_accepted_and_become_ready(render):
    small = {
        "disabled": False,
        "replicas": 2,
        "image": {"repository": "other", "tag": "1", "pullPolicy": "Always"},
    }
    cluster = render({"additionalWorkerGroups": {"smallGroup": small, "plain": {"replicas": 1}}})
    assert list(groups(cluster)) == ["plain", "smallGroup", "workergroup"]
    plain = groups(cluster)["plain"]
    assert (plain["minReplicas"], plain["maxReplicas"], plain["numOfHosts"]) == (0, 2147483647, 1)
    made, pods = await ready(cluster)
    assert made["status"]["readyWorkerReplicas"] == 4
    assert sorted(pod["spec"]["containers"][0]["image"] for pod in pods)[:2] == ["other:1", "other:1"]


@pytest.mark.case("OP-126")
@pytest.mark.usefixtures("virtual_time")
async def test_a_head_alone_is_accepted_and_becomes_ready(render):
    cluster = render({"worker": {"disabled": True}})
    assert cluster["spec"]["workerGroupSpecs"] == []
    _, pods = await ready(cluster)
    assert len(pods) == 1


POD_FIELDS: dict[str, Any] = {
    "initContainers": [{"name": "first", "image": "i"}],
    "serviceAccountName": "someone",
    "restartPolicy": "Never",
    "runtimeClassName": "nvidia",
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "dnsConfig": {"nameservers": ["1.1.1.1"]},
    "priorityClassName": "high",
    "priority": 7,
    "volumes": [{"name": "v", "emptyDir": {}}],
}
CONTAINER_FIELDS: dict[str, Any] = {
    "envFrom": [{"secretRef": {"name": "s"}}],
    "ports": [{"name": "p", "containerPort": 1}],
    "command": ["a"],
    "args": ["b"],
    "lifecycle": {"preStop": {"exec": {"command": ["c"]}}},
    "securityContext": {"runAsUser": 7},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
OTHERS: dict[str, Any] = {
    "labels": {"l": "m"},
    "annotations": {"n": "o"},
    "podSecurityContext": {"fsGroup": 8},
    "containerEnv": [{"name": "OWN", "value": "1"}],
    "sidecarContainers": [{"name": "beside", "image": "j"}],
    "rayStartParams": {"num-cpus": 0, "block": True},
}


@pytest.mark.parametrize("group", ["head", "worker", "additional"])
def test_settings_of_a_group_are_in_its_template(render, group):
    settings = POD_FIELDS | CONTAINER_FIELDS | OTHERS
    values = {"additionalWorkerGroups": {"more": settings}} if group == "additional" else {group: settings}
    cluster = render({**values, "common": {"containerEnv": [{"name": "ALL", "value": "2"}]}})
    if group == "head":
        made = cluster["spec"]["headGroupSpec"]
    else:
        made = groups(cluster)["more" if group == "additional" else "workergroup"]
    spec = made["template"]["spec"]
    assert POD_FIELDS.items() <= spec.items()
    first, beside = spec["containers"]
    assert CONTAINER_FIELDS.items() <= first.items()
    assert [one["name"] for one in first["env"]] == ["ALL", "OWN"]
    assert beside == OTHERS["sidecarContainers"][0]
    assert spec["securityContext"] == {"fsGroup": 8}
    assert made["template"]["metadata"]["labels"]["l"] == "m"
    assert made["template"]["metadata"]["annotations"] == {"n": "o"}
    assert made["rayStartParams"] == {"num-cpus": "0", "block": "true"}


def test_settings_of_the_cluster_are_in_it(render):
    head = {
        "rayVersion": "2.53.0",
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {"idleTimeoutSeconds": 9},
        "headService": {"metadata": {"annotations": {"a": "b"}}},
        "initArgs": {"dashboard-host": "0.0.0.0"},
    }
    cluster = render({"head": head, "service": {"type": "NodePort"}, "annotations": {"c": "d"}})
    spec = cluster["spec"]
    assert (spec["rayVersion"], spec["enableInTreeAutoscaling"]) == ("2.53.0", True)
    assert spec["autoscalerOptions"] == {"idleTimeoutSeconds": 9}
    assert spec["headGroupSpec"]["headService"] == head["headService"]
    assert spec["headGroupSpec"]["serviceType"] == "NodePort"
    assert spec["headGroupSpec"]["rayStartParams"] == {"dashboard-host": "0.0.0.0"}
    assert cluster["metadata"]["annotations"] == {"c": "d"}


def test_a_newer_chart_changes_no_template_of_a_pod(render):
    # Whoever upgrades the chart alone does not want other Pods.
    labels = render()["spec"]["headGroupSpec"]["template"]["metadata"]["labels"]
    assert not any("version" in name or "chart" in name for name in labels)
