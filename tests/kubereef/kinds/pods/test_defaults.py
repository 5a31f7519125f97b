"""Pods and templates are filled in as Kubernetes fills them in."""

import copy
from typing import Any

import pytest
import yaml

from kubereef.kinds.behaviours.podspec_defaults import pod_defaults, template_defaults
from kubewire import gotypes
from tests.kubereef.kinds.pods.manifests import pod, with_container

POD = "io.k8s.api.core.v1.Pod"


def filled(obj):
    obj = copy.deepcopy(obj)
    gotypes.read(POD, obj)
    pod_defaults(obj)
    return obj["spec"]


def test_a_pod_that_names_only_what_it_must_gets_the_rest():
    spec = filled(pod())
    assert spec == {
        "containers": [
            {
                "name": "c",
                "image": "x:1",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }


def test_a_template_gets_what_belongs_to_every_pod_but_not_what_a_pod_works_out():
    template: dict[str, Any] = {
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}], "hostNetwork": True}
    }
    template_defaults(template)
    assert template["metadata"] == {}
    assert template["spec"]["restartPolicy"] == "Always"
    assert "enableServiceLinks" not in template["spec"]
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        pytest.param({"limits": {"cpu": "2"}}, {"cpu": "2"}, id="a limit is requested"),
        pytest.param(
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            {"cpu": "1", "memory": "1Gi"},
            id="only what is not requested",
        ),
        pytest.param(
            {"requests": {"cpu": "100u"}}, {"cpu": "1m"}, id="amounts are rounded up to thousandths"
        ),
    ],
)
def test_requests_of_a_container(resources, requests):
    assert filled(with_container(resources=resources))["containers"][0]["resources"]["requests"] == requests


def test_a_pod_requests_as_a_whole_what_its_containers_request_together():
    spec = filled(
        pod(
            resources={"limits": {"cpu": "4", "memory": "8Gi"}},
            containers=[
                {"name": "a", "image": "x", "resources": {"requests": {"cpu": "1"}}},
                {"name": "b", "image": "x", "resources": {"requests": {"cpu": "500m"}}},
            ],
        )
    )
    assert spec["resources"]["requests"] == {"cpu": "1500m", "memory": "8Gi"}


def test_the_old_name_of_the_service_account_is_kept_in_step():
    assert filled(pod(serviceAccount="old"))["serviceAccountName"] == "old"
    spec = filled(pod(serviceAccountName="new", serviceAccount="old"))
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("new", "new")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param(0, 0, id="zero means at once"),
        pytest.param(-7, 1, id="a negative one means the shortest"),
    ],
)
def test_grace_periods(given, kept):
    assert filled(pod(terminationGracePeriodSeconds=given))["terminationGracePeriodSeconds"] == kept


@pytest.mark.parametrize(
    ("status", "addresses"),
    [
        pytest.param({"podIP": "10.0.0.1"}, ("10.0.0.1", ["10.0.0.1"]), id="the list follows the single one"),
        pytest.param(
            {"podIPs": [{"ip": "10.0.0.2"}]}, ("10.0.0.2", ["10.0.0.2"]), id="the single one follows"
        ),
        pytest.param(
            {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]},
            ("10.0.0.1", ["10.0.0.1"]),
            id="the single one is right",
        ),
    ],
)
def test_the_address_of_a_pod_and_its_list_agree(status, addresses):
    obj = {**pod(), "status": status}
    pod_defaults(obj)
    assert (obj["status"]["podIP"], [one["ip"] for one in obj["status"]["podIPs"]]) == addresses


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"schedulingGroup": {"podGroupName": "g"}}, id="gangs"),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "lifecycle": {"stopSignal": "SIGINT"}}]},
            id="stop signals",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "p"}}]}}]},
            id="bundles of trust",
        ),
    ],
)
def test_what_this_version_does_not_know_yet_is_dropped(spec):
    text = str(filled(pod(**spec)))
    assert not any(
        word in text for word in ("schedulingGroup", "stopSignal", "lifecycle", "clusterTrustBundle")
    )


def test_filling_in_twice_is_filling_in_once():
    spec = filled(
        with_container(
            ports=[{"containerPort": 80}], livenessProbe={"grpc": {"port": 9}}, env=[{"name": "A"}]
        )
    )
    again = copy.deepcopy(spec)
    pod_defaults({"metadata": {}, "spec": again})
    assert again == spec


def test_pods_that_a_real_server_stored_lack_nothing(reference):
    pods = [one for file in (reference / "golden").rglob("*.yaml") for one in _pods_in(file)]
    assert pods
    for one in pods:
        assert filled(one) == _read(one)["spec"]


def _pods_in(file):
    pending = [yaml.load(file.read_text(), yaml.CSafeLoader)]
    while pending:
        value = pending.pop()
        if isinstance(value, dict) and value.get("kind") == "Pod" and "spec" in value:
            yield value
        elif isinstance(value, dict | list):
            pending += value.values() if isinstance(value, dict) else value


def _read(obj):
    obj = copy.deepcopy(obj)
    gotypes.read(POD, obj)
    return obj
