"""Recordings: chance and bookkeeping go, everything else stays."""

import copy

import pytest

from tests.eagleray.golden.normalise import canonical, recording

NAMESPACE = "ns-of-c"
UID = "0a1b2c3d-0000-4000-8000-00000000000f"
TIME = "2030-01-01T00:00:00Z"
OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "controller": True, "uid": UID}


def obj(kind, name, *, api="v1", **fields):
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": UID,
        "resourceVersion": "7",
        "creationTimestamp": TIME,
        "managedFields": [],
        **fields.pop("metadata", {}),
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def pod(group, suffix, *, labels=None, **fields):
    metadata = {
        "generateName": f"c-{group}-",
        "labels": {"ray.io/group": group, **(labels or {})},
        "ownerReferences": [OWNER],
    }
    return obj("Pod", f"c-{group}-{suffix}", metadata=metadata, **fields)


def cluster(**status):
    return obj("RayCluster", "c", api="ray.io/v1", metadata={"generation": 1}, spec={"x": 1}, status=status)


def recorded(*objects, events=(), applied=(("RayCluster", "c"),)):
    return recording(list(objects), list(events), namespace=NAMESPACE, applied=set(applied))


def created(*objects):
    return recorded(*objects)["created"]


def test_the_manifests_own_objects_are_kept_without_their_spec():
    found = recorded(
        cluster(state="ready", lastUpdateTime=TIME),
        obj("ConfigMap", "mine"),
        applied=(
            ("RayCluster", "c"),
            ("ConfigMap", "mine"),
        ),
    )
    assert found["resources"] == [
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"generation": 1, "name": "c", "namespace": "<namespace>"},
            "status": {"lastUpdateTime": "<time>", "state": "ready"},
        }
    ]
    assert found["created"] == []


def test_of_what_was_created_bookkeeping_nodes_and_status_go():
    (found,) = created(
        pod(
            "boats",
            "x7k2p",
            spec={"nodeName": "node-1", "hostname": "kept"},
            status={"podIP": "10.1.0.3"},
        )
    )
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "c-boats-",
            "labels": {"ray.io/group": "boats"},
            "name": "c-boats-<rand1>",
            "namespace": "<namespace>",
            "ownerReferences": [
                {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "controller": True}
            ],
        },
        "spec": {"hostname": "kept"},
    }


@pytest.mark.parametrize(
    "stock",
    [
        obj("ServiceAccount", "default"),
        obj("ConfigMap", "kube-root-ca.crt"),
        obj("EndpointSlice", "c-head-svc-abcde"),
        obj("Pod", "redis-1", metadata={"ownerReferences": [{"kind": "ReplicaSet", "name": "redis"}]}),
    ],
    ids=lambda stock: f"{stock['kind']} {stock['metadata']['name']}",
)
def test_what_kubernetes_makes_itself_is_left_out(stock):
    assert created(stock) == []


def test_what_somebody_else_makes_is_kept():
    assert [found["kind"] for found in created(obj("ConfigMap", "other"), obj("Secret", "s"))] == [
        "ConfigMap",
        "Secret",
    ]


def spec_of(**spec):
    (found,) = created(pod("boats", "x7k2p", spec=spec, status={"podIP": "10.1.0.3"}))
    return found["spec"]


@pytest.mark.parametrize(
    ("text", "placed"),
    [
        pytest.param("c.ns-of-c.svc:6379", "c.<namespace>.svc:6379", id="the namespace within a text"),
        pytest.param("ns-of-coral", "ns-of-coral", id="a longer word is not the namespace"),
        pytest.param("10.1.0.3", "<ip>", id="a Pod's address"),
        pytest.param("127.0.0.1", "127.0.0.1", id="no address of the cluster"),
        pytest.param("", "", id="nothing is no address"),
        pytest.param(UID, "<uid>", id="a uid"),
        pytest.param("ca-0a1b2c3d", "ca-<uid8>", id="the beginning of a uid"),
        pytest.param(TIME, "<time>", id="a time"),
        pytest.param("since 2030", "since 2030", id="a year is no time"),
        pytest.param("kube-api-access-9xkzp", "kube-api-access-<rand>", id="the volume of a token"),
        pytest.param("c-boats-x7k2p.log", "c-boats-<rand1>.log", id="the random part of a name"),
    ],
)
def test_placeholders(text, placed):
    assert spec_of(hostname=text) == {"hostname": placed}


def test_secrets_show_only_their_size():
    (found,) = created(obj("Secret", "s", data={"auth_token": "aGVsbG8="}))
    assert found["data"] == {"auth_token": "<5 bytes>"}


def test_ports_and_addresses_that_a_server_chose():
    service = obj(
        "Service",
        "c-head-svc",
        spec={
            "clusterIP": "10.96.0.7",
            "clusterIPs": ["10.96.0.7"],
            "ports": [{"name": "serve", "port": 8000, "nodePort": 30001}, {"name": "client", "port": 10001}],
        },
    )
    found = recorded(service, cluster(endpoints={"serve": "30001", "client": "10001"}))
    assert found["created"][0]["spec"] == {
        "clusterIP": "<ip>",
        "clusterIPs": ["<ip>"],
        "ports": [
            {"name": "client", "port": 10001},
            {"name": "serve", "nodePort": "<nodePort>", "port": 8000},
        ],
    }
    assert found["resources"][0]["status"]["endpoints"] == {"client": "10001", "serve": "<nodePort>"}


def test_pods_stand_in_the_order_of_their_places_and_random_texts_are_numbered_in_that_order():
    def worker(index, suffix):
        labels = {
            "ray.io/worker-group-replica-index": str(index),
            "ray.io/worker-group-replica-name": f"boats-rep0{index}",
        }
        return pod("boats", suffix, labels=labels)

    found = created(worker(1, "aaaaa"), pod("headgroup", "ccccc"), worker(0, "bbbbb"))
    label = "ray.io/worker-group-replica-name"
    assert [(one["metadata"]["labels"].get(label), one["metadata"]["name"]) for one in found] == [
        ("boats-<rand1>", "c-boats-<rand2>"),
        ("boats-<rand3>", "c-boats-<rand4>"),
        (None, "c-headgroup-<rand5>"),
    ]


def test_the_same_random_text_has_the_same_number_everywhere():
    found = recorded(pod("headgroup", "ccccc"), cluster(head={"podName": "c-headgroup-ccccc"}))
    assert found["resources"][0]["status"]["head"]["podName"] == "c-headgroup-<rand1>"
    assert found["created"][0]["metadata"]["name"] == "c-headgroup-<rand1>"


def test_events_are_a_set_without_numbers():
    def event(text):
        note = f"Created worker Pod {NAMESPACE}/{text}"
        return {
            "note": note,
            "reason": "CreatedWorkerPod",
            "type": "Normal",
            "regarding": {"kind": "RayCluster"},
        }

    workers = pod("boats", "aaaaa"), pod("boats", "bbbbb")
    found = recorded(*workers, events=[event("c-boats-aaaaa"), event("c-boats-bbbbb")])
    assert found["events"] == [
        {
            "message": "Created worker Pod <namespace>/c-boats-<rand>",
            "reason": "CreatedWorkerPod",
            "regarding": "RayCluster",
            "type": "Normal",
        }
    ]


def test_a_cluster_made_for_a_job_has_a_random_name_and_the_job_a_snapshot_of_its_status():
    owned = obj(
        "RayCluster", "j-k2x9q", api="ray.io/v1", metadata={"ownerReferences": [OWNER]}, status={"a": 1}
    )
    job = obj(
        "RayJob",
        "j",
        api="ray.io/v1",
        status={"jobId": "j-m4zt8", "rayClusterName": "j-k2x9q", "rayClusterStatus": {"a": 1}},
    )
    found = recorded(owned, job, applied=[("RayJob", "j")])
    assert found["created"][0]["metadata"]["name"] == "j-<rand2>"
    assert found["created"][0]["status"] == {"a": 1}
    assert found["resources"][0]["status"] == {
        "jobId": "j-<rand1>",
        "rayClusterName": "j-<rand2>",
        "rayClusterStatus": "<snapshot>",
    }


def test_what_only_ours_has_numbers_no_random_text():
    told = [{"message": "job j-m4zt8 runs on j-k2x9q"}]
    job = obj(
        "RayJob",
        "j",
        api="ray.io/v1",
        status={"conditions": told, "dashboardURL": "j-k2x9q-head-svc", "jobId": "j-m4zt8"},
    )
    owned = obj("RayCluster", "j-k2x9q", api="ray.io/v1", metadata={"ownerReferences": [OWNER]})
    found = recorded(owned, job, applied=[("RayJob", "j")])
    assert found["resources"][0]["status"] == {
        "conditions": [{"message": "job j-<rand2> runs on j-<rand1>"}],
        "dashboardURL": "j-<rand1>-head-svc",
        "jobId": "j-<rand2>",
    }


def test_only_a_head_with_a_submitter_has_a_hash_of_chance():
    def head(*containers):
        stamped = {"ray.io/upgrade-strategy-recreate-hash": "ABC", "other": "x"}
        found = obj("Pod", "c-head", metadata={"annotations": stamped}, spec={"containers": list(containers)})
        return created(found)[0]["metadata"]["annotations"]

    ray, submitter = {"name": "ray-head"}, {"name": "ray-job-submitter"}
    assert head(ray)["ray.io/upgrade-strategy-recreate-hash"] == "ABC"
    assert head(ray, submitter) == {
        "ray.io/upgrade-strategy-recreate-hash": "<hash of random text>",
        "other": "x",
    }


def test_a_canonical_recording_stays_as_it_is_and_its_source_too():
    made = recorded(pod("boats", "aaaaa"), pod("headgroup", "bbbbb"), cluster(state="ready"))
    before = copy.deepcopy(made)
    assert canonical(made) == made == before
