"""Installing for real: manifests by kubectl, charts by helm, and the operator as a process under its own account.

The cluster is a Kubereef with RBAC and without a node, so the operator's Pod does not run: its process does, with the
Deployment's own arguments and the token of its service account.
"""

import base64
import gzip
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.eagleray.world import raycluster
from tests.kubernetes.operators import Operator
from tests.packaging.helm import OPERATOR, RAY_CLUSTER
from tests.packaging.kustomize import CONFIG
from tests.reef.kubectl import Kubectl
from tests.reef.kubelet import make_ready
from tests.reef.process import Kubereef

# Kubernetes keeps no larger Secret, and Helm keeps a release in one.
MOST_BYTES = 1024 * 1024
PATIENCE = 120.0
REFERENCE_VALUES = Path(__file__).parent / "reference-values.yaml"

pytestmark = pytest.mark.heavy


@pytest.fixture
def reef(tmp_path):
    with Kubereef(tmp_path / "reef", "--no-node", "--in-memory") as server:
        yield server


@pytest.fixture
def kubectl(reef, kubectl_cache):
    return Kubectl(reef.kubeconfig, kubectl_cache, "default")


@pytest.fixture
def install(reef, helm, tmp_path, monkeypatch):
    """Run helm against the cluster, in namespace ray."""
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"HELM_{name}_HOME", str(tmp_path / "helm" / name.lower()))

    def run(*arguments):
        return helm("--kubeconfig", reef.kubeconfig, "--namespace", "ray", *arguments)

    return run


def kubectl_whole(reef, cache, *arguments):
    """Run kubectl with manifests that take a while."""
    command = ("kubectl", "--kubeconfig", str(reef.kubeconfig), "--cache-dir", str(cache), *arguments)
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    return run.stdout


def kubeconfig_of(reef, kubectl, namespace, directory):
    """Return a kubeconfig of the operator's account."""
    token = kubectl("create", "token", "kuberay-operator", "-n", namespace).strip()
    config = yaml.safe_load(reef.kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    file = directory / "operator.kubeconfig"
    file.write_text(json.dumps(config))
    return file


def started(reef, kubectl, namespace, directory, *flags):
    """Start the operator with the arguments of its Deployment."""
    deployment = kubectl.read("deployment", "kuberay-operator", "-n", namespace)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return Operator(
        kubeconfig_of(reef, kubectl, namespace, directory),
        directory / "operator.log",
        *container["args"],
        f"--leader-election-namespace={namespace}",
        *flags,
    )


def until(holds):
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
    return found


def make_cluster(kubectl, obj):
    """Create a RayCluster and have it become ready; returns it and its Pods."""
    name = obj["metadata"]["name"]
    kubectl("create", "-f", "-", given=obj)
    make_ready(kubectl, f"ray.io/cluster={name}", 2, PATIENCE)
    until(lambda: (kubectl.read("raycluster", name).get("status") or {}).get("state") == "ready")
    return kubectl.read("raycluster", name), pods(kubectl, name)


def pods(kubectl, name):
    """Return the Pods of a cluster, but for what a scheduler or node says of them, which changes by itself."""
    found = kubectl.read("pods", "-l", f"ray.io/cluster={name}")["items"]
    changing = ("resourceVersion", "managedFields")
    return {
        pod["metadata"]["uid"]: (
            {key: value for key, value in pod["metadata"].items() if key not in changing},
            pod["spec"],
        )
        for pod in found
    }


@pytest.mark.case("OP-127", "OP-103", "OP-105")
def test_an_operator_of_the_manifests_is_ready_and_does_its_work_under_its_account(
    reef, kubectl, kubectl_cache, tmp_path
):
    kubectl_whole(reef, kubectl_cache, "create", "-k", str(CONFIG / "default"))
    operator = started(reef, kubectl, "default", tmp_path)
    try:
        operator.until_ready()
        make_cluster(kubectl, raycluster("hello", enableInTreeAutoscaling=True))
        assert kubectl.read("role", "hello")["rules"]
        assert kubectl.read("lease", "ray-operator-leader")["spec"]["holderIdentity"]
        assert operator.refusals(403) == 0
        assert operator.terminate() == 0
    finally:
        operator.kill()


@pytest.mark.case("OP-128")
def test_with_webhooks_a_bad_name_is_refused_at_admission(
    reef, kubectl, kubectl_cache, tmp_path, monkeypatch
):
    manifests = str(CONFIG / "default-with-webhooks")
    kubectl_whole(reef, kubectl_cache, "apply", "--server-side", "-k", manifests)
    # There is no Pod behind the Service here: the API server is led to the process itself.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    name = "validating-webhook-configuration"
    configuration = kubectl.read("validatingwebhookconfiguration", name)
    for webhook in configuration["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
    kubectl("replace", "-f", "-", given=configuration)
    monkeypatch.setenv("ENABLE_WEBHOOKS", "true")
    operator = started(reef, kubectl, "ray-system", tmp_path, f"--webhook-addr=127.0.0.1:{port}")
    try:
        operator.until_ready()
        until(
            lambda: all(
                webhook["clientConfig"].get("caBundle")
                for webhook in kubectl.read("validatingwebhookconfiguration", name)["webhooks"]
            )
        )
        assert "tls.crt" in kubectl.read("secret", "webhook-server-cert", "-n", "ray-system")["data"]
        refusal = kubectl("create", "-f", "-", given=raycluster("a" * 54), code=1)
        assert "metadata.name" in refusal
        assert "no more than 53 characters" in refusal
        kubectl("create", "-f", "-", given=raycluster("short"))
        assert operator.refusals(403) == 0
    finally:
        operator.kill()


def test_a_release_fits_into_its_secret_and_is_upgraded_and_leaves_the_definitions_when_it_goes(
    reef, kubectl, install, tmp_path
):
    told = install("install", "ray", OPERATOR, "--create-namespace")
    assert "rollout status deployment/kuberay-operator" in told
    assert "WARNING" not in told
    (secret,) = kubectl.read("secrets", "-n", "ray", "-l", "owner=helm")["items"]
    kept = base64.b64decode(secret["data"]["release"])
    assert len(kept) < MOST_BYTES * 2 / 3, "the record of a release comes close to what a Secret holds"
    assert json.loads(gzip.decompress(base64.b64decode(kept)))["name"] == "ray"

    operator = started(reef, kubectl, "ray", tmp_path)
    try:
        operator.until_ready()
        install("install", "one", RAY_CLUSTER)
        inside = Kubectl(reef.kubeconfig, tmp_path, "ray")
        make_ready(inside, "ray.io/cluster=one-kuberay", 2, PATIENCE)
        until(lambda: (inside.read("raycluster", "one-kuberay").get("status") or {}).get("state") == "ready")
        before = pods(inside, "one-kuberay")
        assert operator.refusals(403) == 0

        # Somebody has another version of the definitions; an upgrade brings ours.
        kubectl("label", "crd", "rayclusters.ray.io", "app.kubernetes.io/part-of=other", "--overwrite")
        install(
            "upgrade", "ray", OPERATOR, "--set", "replicas=2", "--set", "podDisruptionBudget.enabled=true"
        )
        labels = kubectl.read("crd", "rayclusters.ray.io")["metadata"]["labels"]
        assert labels["app.kubernetes.io/part-of"] == "eagleray"
        assert kubectl.read("deployment", "kuberay-operator", "-n", "ray")["spec"]["replicas"] == 2

        install("uninstall", "ray")
        assert pods(inside, "one-kuberay") == before
        assert len(kubectl.read("crd")["items"]) == 4
        assert kubectl.read("clusterrole", "-l", "app.kubernetes.io/instance=ray")["items"] == []
        install("install", "ray", OPERATOR)
        assert pods(inside, "one-kuberay") == before
    finally:
        operator.kill()


@pytest.mark.case("OP-124")
def test_a_release_of_the_reference_is_upgraded_in_place_and_rolled_back_and_no_pod_is_touched(
    reef, kubectl, install, reference, tmp_path
):
    chart = reference_shaped_chart(tmp_path / "kuberay-operator", reference / "crds")
    install("install", "kuberay-operator", chart, "--create-namespace")
    before = kubectl.read("deployment", "kuberay-operator", "-n", "ray")
    inside = Kubectl(reef.kubeconfig, tmp_path, "ray")
    inside("create", "-f", "-", given=raycluster("old", namespace="ray"))
    cluster = inside.read("raycluster", "old")
    inside("create", "-f", "-", given=ray_pod(cluster))
    old_pods = pods(inside, "old")

    told = install(
        *("upgrade", "kuberay-operator", OPERATOR, "--take-ownership"),
        *("--values", REFERENCE_VALUES, "--set", "metrics.serviceMonitor.enabled=false"),
    )
    assert "which is KubeRay's operator and not Eagleray's" in told
    after = kubectl.read("deployment", "kuberay-operator", "-n", "ray")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["selector"] == before["spec"]["selector"]
    (container,) = after["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    crd = kubectl.read("crd", "raycronjobs.ray.io")
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert pods(inside, "old") == old_pods
    assert inside.read("raycluster", "old") == cluster

    install("rollback", "kuberay-operator", "1")
    back = kubectl.read("deployment", "kuberay-operator", "-n", "ray")
    assert back["metadata"]["uid"] == before["metadata"]["uid"]
    (container,) = back["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "mirror.example.com/kuberay/operator:v1.5.1"
    assert len(kubectl.read("crd")["items"]) == 4, "a definition that goes takes all objects with it"
    assert pods(inside, "old") == old_pods
    assert inside.read("raycluster", "old") == cluster


def ray_pod(cluster):
    """Return a Pod as an operator makes it for a cluster."""
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "controller": True}
    owner |= {field: cluster["metadata"][field] for field in ("name", "uid")}
    labels = {"ray.io/cluster": "old", "ray.io/node-type": "head"}
    metadata = {"name": "old-head", "namespace": "ray", "labels": labels, "ownerReferences": [owner]}
    spec = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def reference_shaped_chart(directory, definitions):
    """Write a chart that installs what the reference's does, under its names, with definitions beside the release."""
    labels = {
        "app.kubernetes.io/name": "kuberay-operator",
        "app.kubernetes.io/instance": "{{ .Release.Name }}",
    }
    named = {"name": "kuberay-operator", "labels": {**labels, "helm.sh/chart": "kuberay-operator-1.5.1"}}
    image = "mirror.example.com/kuberay/operator:v1.5.1"
    probe = {"httpGet": {"path": "/metrics", "port": "http"}, "periodSeconds": 5}
    container = {
        "name": "kuberay-operator",
        "image": image,
        "command": ["/manager"],
        "args": ["--enable-leader-election=true"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "resources": {"limits": {"cpu": "100m", "memory": "512Mi"}},
    }
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "kuberay-operator", "namespace": "{{ .Release.Namespace }}"}
    lease = {**named, "name": "kuberay-operator-leader-election"}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": named,
            "spec": {"selector": labels, "ports": [{"name": "http", "port": 8080, "targetPort": "http"}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": named,
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": {**labels, "app.kubernetes.io/component": "kuberay-operator"}},
                    "spec": {"serviceAccountName": "kuberay-operator", "containers": [container]},
                },
            },
        },
    ]
    for kind, metadata in (("ClusterRole", named), ("Role", lease)):
        rule = {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get"]}
        role = {"apiGroup": rbac, "kind": kind, "name": metadata["name"]}
        objects += [
            {"apiVersion": f"{rbac}/v1", "kind": kind, "metadata": metadata, "rules": [rule]},
            {
                "apiVersion": f"{rbac}/v1",
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": role,
                "subjects": [subject],
            },
        ]
    (directory / "templates").mkdir(parents=True)
    (directory / "Chart.yaml").write_text(
        json.dumps({"apiVersion": "v2", "name": "kuberay-operator", "version": "1.5.1"})
    )
    text = "\n---\n".join(json.dumps(obj, indent=1) for obj in objects)
    (directory / "templates" / "all.yaml").write_text(text)
    shutil.copytree(definitions, directory / "crds")
    return directory
