"""What we build for the reference's samples is what the reference was recorded to build."""

from typing import Any

import pytest
import yaml

from eagleray.manifests.access import autoscaler_account, autoscaler_binding, autoscaler_role
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.pods import Place, head_pod, worker_pod
from eagleray.manifests.services import head_service, headless_service, serve_service
from eagleray.manifests.settings import Settings
from eagleray.manifests.storage import storage_claim
from kubewire.quantity import Quantity, QuantityError
from kubewire.yamltext import load_all
from tests.eagleray.manifests.clusters import stored

SETTINGS = Settings(version="nightly")

# What an API server fills in on objects that leave it out.
SERVER_FILLS = frozenset(
    (
        *(
            "allocateLoadBalancerNodePorts",
            "apiVersion",
            "clusterIP",
            "clusterIPs",
            "defaultMode",
            "dnsPolicy",
        ),
        *("enableServiceLinks", "externalTrafficPolicy", "failureThreshold", "generation", "imagePullPolicy"),
        *(
            "internalTrafficPolicy",
            "ipFamilies",
            "ipFamilyPolicy",
            "nodePort",
            "periodSeconds",
            "preemptionPolicy",
        ),
        *("priority", "protocol", "requests", "resources", "restartPolicy", "schedulerName", "scheme"),
        *("securityContext", "serviceAccount", "serviceAccountName", "sessionAffinity", "successThreshold"),
        *(
            "targetPort",
            "terminationGracePeriodSeconds",
            "terminationMessagePath",
            "terminationMessagePolicy",
        ),
        *("timeoutSeconds", "tolerations", "type", "uid", "apiGroup"),
    )
)


def differences(ours: Any, recorded: Any, path: str = "") -> list[str]:
    """Return where our object says something else than the recorded one, or less than its author said."""
    if isinstance(ours, dict) and isinstance(recorded, dict):
        found = []
        for key, value in ours.items():
            if key in recorded:
                found += differences(value, recorded[key], f"{path}.{key}")
            elif value not in (None, {}, [], "", False):
                found.append(f"{path}.{key}: only ours, {value!r}")
        missing = recorded.keys() - ours.keys() - SERVER_FILLS
        return found + [f"{path}.{key}: only recorded, {recorded[key]!r}" for key in sorted(missing)]
    if isinstance(ours, list) and isinstance(recorded, list):
        if len(ours) != len(recorded):
            return [f"{path}: {len(ours)} entries, recorded {len(recorded)}"]
        pairs = enumerate(zip(ours, recorded, strict=True))
        return [line for at, (mine, theirs) in pairs for line in differences(mine, theirs, f"{path}[{at}]")]
    return (
        []
        if ours == recorded or _same_quantity(ours, recorded)
        else [f"{path}: {ours!r}, recorded {recorded!r}"]
    )


def _same_quantity(ours: Any, recorded: Any) -> bool:
    try:
        return Quantity.of(ours) == Quantity.of(recorded)
    except QuantityError:
        return False


def clusters_of(path):
    for document in load_all(path.read_text()):
        obj: Any = document.value
        if obj and obj.get("kind") == "RayCluster":
            obj["metadata"] |= {"namespace": "<namespace>", "uid": "<uid>"}
            yield Cluster(stored(obj))


@pytest.fixture(scope="module")
def recordings(reference):
    """Every RayCluster sample with what the reference made of it."""
    found = []
    golden = reference / "golden"
    embedded = golden / "alpha-gates" / "ray-cluster.embedded-gcs-ft.yaml"
    for file in [*sorted(golden.glob("ray-cluster.*.yaml")), embedded]:
        created = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)["created"]
        found += [(file.name, cluster, created) for cluster in clusters_of(reference / "samples" / file.name)]
    return found


def of_kind(created, kind):
    return [obj for obj in created if obj["kind"] == kind]


def without_chance(obj):
    """Drop what differs from run to run or is not API: names of Pods, uids, the API's own volume, our wait script."""
    metadata = obj["metadata"]
    for owner in metadata["ownerReferences"]:
        owner.pop("uid", None)
    if obj["kind"] == "Pod":
        metadata.pop("name", None)
        spec = obj["spec"]
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            mounts = [
                m for m in container.get("volumeMounts", []) if not m["name"].startswith("kube-api-access")
            ]
            container["volumeMounts"] = mounts
            if container["name"] == "wait-gcs-ready":
                container["args"] = ["a script"]
        spec["volumes"] = [v for v in spec.get("volumes", []) if not v["name"].startswith("kube-api-access")]
    if obj["kind"] == "Service":
        obj["spec"]["ports"] = sorted(obj["spec"].get("ports", []), key=lambda port: port["name"])
    return obj


def compared(ours, recorded):
    return differences(without_chance(ours), without_chance(recorded))


def build_pod(cluster, labels):
    if labels["ray.io/node-type"] == "head":
        return head_pod(cluster, "", SETTINGS)
    group = next(group for group in cluster.workers if group["groupName"] == labels["ray.io/group"])
    replica_name = labels.get("ray.io/worker-group-replica-name", "")
    place = Place(
        int(labels["ray.io/worker-group-replica-index"]),
        replica_name,
        int(labels.get("ray.io/replica-host-index", 0)),
    )
    return worker_pod(cluster, group, "", place, SETTINGS)


def test_every_pod(recordings):
    wrong = {}
    pods = 0
    for name, cluster, created in recordings:
        for recorded in of_kind(created, "Pod"):
            labels = recorded["metadata"].get("labels", {})
            if labels.get("ray.io/node-type") not in ("head", "worker"):
                continue
            pods += 1
            if found := compared(build_pod(cluster, labels), recorded):
                wrong[f"{name} {labels['ray.io/group']}"] = found
    assert wrong == {}
    assert pods >= 30


def test_every_service(recordings):
    wrong = {}
    services = 0
    for name, cluster, created in recordings:
        ours = [head_service(cluster, SETTINGS), headless_service(cluster), serve_service(cluster)]
        by_name = {service["metadata"]["name"]: service for service in ours if service}
        for recorded in of_kind(created, "Service"):
            if recorded["metadata"].get("ownerReferences", [{}])[0].get("kind") != "RayCluster":
                continue
            services += 1
            if found := compared(by_name.pop(recorded["metadata"]["name"]), recorded):
                wrong[name] = found
        # A sample that was refused made no Service at all.
        assert by_name == {} or not of_kind(created, "Service"), name
    assert wrong == {}
    assert services >= 18


def test_the_claim_of_a_head_that_keeps_its_state_itself(recordings):
    (found,) = (
        compared(storage_claim(cluster), recorded)
        for _, cluster, created in recordings
        for recorded in of_kind(created, "PersistentVolumeClaim")
        if "ownerReferences" in recorded["metadata"]
    )
    assert found == [  # both are the API server's own
        ".metadata.finalizers: only recorded, ['kubernetes.io/pvc-protection']",
        ".spec.volumeMode: only recorded, 'Filesystem'",
    ]


def test_every_right_of_the_autoscaler(recordings):
    seen = set()
    for name, cluster, created in recordings:
        for build in (autoscaler_account, autoscaler_role, autoscaler_binding):
            ours = build(cluster)
            for recorded in of_kind(created, ours["kind"]):
                if "ownerReferences" in recorded["metadata"]:
                    assert compared(ours, recorded) == [], name
                    seen.add(ours["kind"])
    assert seen == {"ServiceAccount", "Role", "RoleBinding"}
