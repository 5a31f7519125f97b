"""Volumes and claims: what fits, what is made, what is kept, and what goes."""

import pytest

from kubereef.__main__ import _parser, _parts
from kubereef.controllers import volumematch
from kubereef.controllers.localstorage import LocalStorage
from kubereef.controllers.scheduling.nodelifecycle import NodeLifecycleController
from kubereef.controllers.scheduling.scheduler import Scheduler
from kubereef.controllers.serviceaccounts import ServiceAccountController
from kubereef.controllers.volumes import ClaimProtection, VolumeBinder, VolumeProtection, VolumeReclaimer
from kubereef.node.scripted import ScriptedNodes
from kubewire import errors
from tests.kubereef.controllers.making import CORE, PODS, items, messages

CLAIMS = f"{CORE}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
BINDING = (ServiceAccountController, VolumeBinder, VolumeReclaimer, ClaimProtection, VolumeProtection)


def claim(name="v", size="1Gi", modes=("ReadWriteOnce",), **spec):
    resources = {"requests": {"storage": size}}
    return {"metadata": {"name": name}, "spec": {"accessModes": list(modes), "resources": resources, **spec}}


def volume(name="pv", size="1Gi", modes=("ReadWriteOnce",), labels=None, **spec):
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "hostPath": {"path": "/tmp/x"},
            **spec,
        },
    }


def known(obj, **meta):
    obj["metadata"] |= {"namespace": "default", "uid": f"uid of {obj['metadata']['name']}", **meta}
    return obj


# --- plans


@pytest.mark.parametrize(
    ("offered", "want"),
    [
        pytest.param(volume(), True, id="just what is asked for"),
        pytest.param(volume(size="2Gi"), True, id="more than is asked for"),
        pytest.param(volume(size="1023Mi"), False, id="too small"),
        pytest.param(volume(modes=["ReadWriteOnce", "ReadOnlyMany"]), True, id="more modes"),
        pytest.param(volume(modes=["ReadOnlyMany"]), False, id="another mode"),
        pytest.param(volume(storageClassName="fast"), False, id="another class"),
        pytest.param(volume(volumeMode="Block"), False, id="a raw disk"),
    ],
)
def test_which_volume_fits(offered, want):
    assert volumematch.fits(offered, known(claim())) is want


def test_a_selector_chooses_among_volumes():
    wish = known(claim(selector={"matchLabels": {"tier": "gold"}}))
    assert not volumematch.fits(volume(), wish)
    assert volumematch.fits(volume(labels={"tier": "gold"}), wish)


def test_the_smallest_volume_that_fits_is_taken():
    offered = [volume("big", "5Gi"), volume("small", "2Gi"), volume("tiny", "1Mi")]
    taken = volumematch.match(known(claim()), offered)
    assert taken is not None
    assert taken["metadata"]["name"] == "small"


def test_a_volume_that_is_kept_for_the_claim_comes_first_and_others_are_not_touched():
    kept = volume("kept", "9Gi", claimRef={"namespace": "default", "name": "v"})
    others = volume("others", claimRef={"namespace": "default", "name": "w"})
    assert volumematch.match(known(claim()), [volume("free"), others, kept]) is kept
    assert volumematch.match(known(claim()), [others]) is None


# --- in a cluster


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(*BINDING)
    return simulated_cluster.client


async def get(client, name="v"):
    return await client.get(f"{CLAIMS}/{name}")


async def phase(client, url):
    return (await client.get(url))["status"]["phase"]


async def is_gone(client, url):
    try:
        await client.get(url)
    except errors.NotFound:
        return True
    return False


async def test_a_claim_without_a_class_waits_and_then_gets_the_volume_that_comes(client, simulated_cluster):
    await client.create(CLAIMS, claim())
    await simulated_cluster.pass_time(1)
    want = "no persistent volumes available for this claim and no storage class is set"
    assert await messages(client, "FailedBinding") == [want]
    await client.create(VOLUMES, volume(size="2Gi"))
    await simulated_cluster.pass_time(1)
    bound = await get(client)
    assert bound["spec"]["volumeName"] == "pv"
    assert bound["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "2Gi"},
    }
    marks = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    assert bound["metadata"]["annotations"] == marks
    taken = await client.get(f"{VOLUMES}/pv")
    assert taken["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    assert taken["status"]["phase"] == "Bound"


async def test_two_claims_do_not_share_a_volume(client, simulated_cluster):
    await client.create(VOLUMES, volume())
    await client.create(CLAIMS, claim("a"))
    await client.create(CLAIMS, claim("b"))
    await simulated_cluster.pass_time(1)
    assert sorted([await phase(client, f"{CLAIMS}/a"), await phase(client, f"{CLAIMS}/b")]) == [
        "Bound",
        "Pending",
    ]


async def test_a_claim_waits_for_the_volume_that_it_names(client, simulated_cluster):
    await client.create(VOLUMES, volume("other"))
    await client.create(CLAIMS, claim(volumeName="mine", storageClassName=""))
    await simulated_cluster.pass_time(1)
    assert await phase(client, f"{CLAIMS}/v") == "Pending"
    await client.create(VOLUMES, volume("mine"))
    await simulated_cluster.pass_time(1)
    assert await phase(client, f"{CLAIMS}/v") == "Bound"
    assert await phase(client, f"{VOLUMES}/other") == "Available"


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        pytest.param({"size": "1Mi"}, "requested PV is too small", id="too small"),
        pytest.param({"storageClassName": "fast"}, "storageClassName does not match", id="another class"),
        pytest.param({"volumeMode": "Block"}, "incompatible volumeMode", id="a raw disk"),
        pytest.param({"modes": ["ReadOnlyMany"]}, "incompatible accessMode", id="another mode"),
    ],
)
async def test_a_claim_does_not_get_a_named_volume_that_does_not_suit_it(
    client, simulated_cluster, offered, words
):
    await client.create(VOLUMES, volume("mine", **offered))
    await client.create(CLAIMS, claim(volumeName="mine", storageClassName=""))
    await simulated_cluster.pass_time(1)
    assert await messages(client, "VolumeMismatch") == [f'Cannot bind to requested volume "mine": {words}']
    assert await phase(client, f"{VOLUMES}/mine") == "Available"


@pytest.mark.parametrize(
    ("policy", "want"), [("Retain", "Released"), ("Delete", None)], ids=["is kept", "goes too"]
)
async def test_a_volume_that_is_given_back(client, simulated_cluster, policy, want):
    await client.create(VOLUMES, volume(persistentVolumeReclaimPolicy=policy))
    await client.create(CLAIMS, claim())
    await simulated_cluster.pass_time(1)
    await client.delete(f"{CLAIMS}/v")
    await simulated_cluster.pass_time(1)
    assert await is_gone(client, f"{CLAIMS}/v")
    if want:
        assert await phase(client, f"{VOLUMES}/pv") == want
        await client.create(CLAIMS, claim())
        await simulated_cluster.pass_time(1)
        assert await phase(client, f"{CLAIMS}/v") == "Pending", "another claim of the name is not the same"
    else:
        assert await is_gone(client, f"{VOLUMES}/pv")


async def test_a_claim_whose_volume_is_gone_is_lost(client, simulated_cluster):
    await client.create(VOLUMES, volume())
    await client.create(CLAIMS, claim())
    await simulated_cluster.pass_time(1)
    await client.delete(f"{VOLUMES}/pv")
    await simulated_cluster.pass_time(1)
    assert not await is_gone(client, f"{VOLUMES}/pv"), "a bound volume is protected"
    await client.patch(f"{VOLUMES}/pv", {"metadata": {"finalizers": None}})
    await simulated_cluster.pass_time(1)
    assert await phase(client, f"{CLAIMS}/v") == "Lost"
    assert len(await messages(client, "ClaimLost")) == 1


async def test_a_claim_that_a_pod_uses_is_protected_until_the_pod_is_gone(client, simulated_cluster):
    await client.create(CLAIMS, claim())
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "v"}}]
    spec = {"nodeName": "n", "volumes": volumes, "containers": [{"name": "c", "image": "i"}]}
    await client.create(PODS, {"metadata": {"name": "user"}, "spec": spec})
    await client.delete(f"{CLAIMS}/v")
    await simulated_cluster.pass_time(60)
    assert (await get(client))["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    await client.delete(f"{PODS}/user?gracePeriodSeconds=0")
    await simulated_cluster.pass_time(1)
    assert await is_gone(client, f"{CLAIMS}/v")


@pytest.mark.parametrize(
    ("fields", "reason", "words"),
    [
        pytest.param(
            None, "ProvisioningFailed", 'storageclass.storage.k8s.io "c" not found', id="no such class"
        ),
        pytest.param(
            {"provisioner": "kubernetes.io/no-provisioner"},
            "ProvisioningFailed",
            "no volume plugin matched name: kubernetes.io/no-provisioner",
            id="a class without a provisioner",
        ),
        pytest.param(
            {"provisioner": "example.com/disk"},
            "ExternalProvisioning",
            "external provisioner 'example.com/disk'",
            id="somebody else's provisioner",
        ),
        pytest.param(
            {"provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"},
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
            id="a class that waits for a Pod",
        ),
    ],
)
async def test_what_a_claim_waits_for(client, simulated_cluster, fields, reason, words):
    if fields:
        await client.create(CLASSES, {"metadata": {"name": "c"}, **fields})
    await client.create(CLAIMS, claim(storageClassName="c"))
    await simulated_cluster.pass_time(1)
    assert words in (await messages(client, reason))[0]
    assert await phase(client, f"{CLAIMS}/v") == "Pending"


# --- storage of the machine


@pytest.fixture
async def local(simulated_cluster):
    await simulated_cluster.run(*BINDING, LocalStorage, Scheduler, NodeLifecycleController)
    return simulated_cluster.client


async def test_a_claim_gets_a_directory_of_the_machine(local, simulated_cluster):
    await local.create(CLAIMS, claim(size="3Gi"))
    await simulated_cluster.pass_time(1)
    bound = await get(local)
    assert (bound["spec"]["storageClassName"], bound["status"]["phase"]) == ("local", "Bound")
    made = await local.get(f"{VOLUMES}/{bound['spec']['volumeName']}")
    assert made["spec"]["capacity"] == {"storage": "3Gi"}
    assert made["spec"]["hostPath"]["path"].endswith(bound["metadata"]["uid"])
    await local.delete(f"{CLAIMS}/v")
    await simulated_cluster.pass_time(1)
    assert await items(local, VOLUMES) == []


async def test_a_default_class_that_somebody_removed_does_not_come_back_beside_another(
    local, simulated_cluster
):
    assert [one["metadata"]["name"] for one in await items(local, CLASSES)] == ["local"]
    await local.create(CLASSES, {"metadata": {"name": "mine"}, "provisioner": "example.com/disk"})
    await local.delete(f"{CLASSES}/local")
    await simulated_cluster.restart_controllers()
    assert [one["metadata"]["name"] for one in await items(local, CLASSES)] == ["mine"]


async def test_a_pod_and_a_claim_that_waits_for_it_come_together(local, simulated_cluster):
    slow = {"provisioner": "kubereef.io/local", "volumeBindingMode": "WaitForFirstConsumer"}
    await local.create(CLASSES, {"metadata": {"name": "slow"}, **slow})
    await local.create(CLAIMS, claim(storageClassName="slow"))
    async with ScriptedNodes(local, simulated_cluster.clock):
        await simulated_cluster.pass_time(1)
        assert await items(local, VOLUMES) == []
        volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "v"}}]
        spec = {"volumes": volumes, "containers": [{"name": "c", "image": "i"}]}
        await local.create(PODS, {"metadata": {"name": "user"}, "spec": spec})
        await simulated_cluster.pass_time(1)
        assert (await local.get(f"{PODS}/user"))["status"]["phase"] == "Running"
        affinity = (await items(local, VOLUMES))[0]["spec"]["nodeAffinity"]
        assert affinity["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["node-1"]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param([], True, id="has it"),
        pytest.param(["--no-node"], False, id="without a node has not"),
    ],
)
async def test_a_cluster_and_its_storage(simulated_cluster, arguments, want):
    for part in _parts(_parser().parse_args(["--in-memory", *arguments])):
        async with part(simulated_cluster.cluster):
            await simulated_cluster.pass_time(1)
    assert bool(await items(simulated_cluster.client, CLASSES)) is want
