"""What the cluster fills in or refuses when objects are created."""

import asyncio

import pytest

from kubewire import errors

CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def pod(name="p", **spec):
    containers = spec.pop("containers", [{"name": "c", "image": "x:1"}])
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


@pytest.fixture
async def account(admin):
    return await admin.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})


@pytest.fixture
async def create(admin, account):
    async def make(**spec):
        return (await admin.create(PODS, pod(**spec)))["spec"]

    return make


def token_volumes(spec):
    return [one for one in spec.get("volumes") or [] if one["name"].startswith("kube-api-access-")]


async def test_a_pod_runs_as_the_default_account_and_gets_its_token(create):
    spec = await create()
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    (volume,) = token_volumes(spec)
    assert volume["projected"]["defaultMode"] == 420
    token, authority, namespace = volume["projected"]["sources"]
    assert token == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    assert authority["configMap"]["name"] == "kube-root-ca.crt"
    assert namespace["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"] == "metadata.namespace"
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert mount == {"name": volume["name"], "readOnly": True, "mountPath": MOUNT}


async def test_every_container_gets_the_token_but_one_that_has_something_there(create):
    own = {"name": "own", "mountPath": MOUNT}
    spec = await create(
        initContainers=[{"name": "i", "image": "x:1"}],
        containers=[{"name": "a", "image": "x:1"}, {"name": "b", "image": "x:1", "volumeMounts": [own]}],
        volumes=[{"name": "own", "emptyDir": {}}],
    )
    (volume,) = token_volumes(spec)
    assert [one["mountPath"] for one in spec["initContainers"][0]["volumeMounts"]] == [MOUNT]
    assert [one["name"] for one in spec["containers"][0]["volumeMounts"]] == [volume["name"]]
    assert [one["name"] for one in spec["containers"][1]["volumeMounts"]] == ["own"]


@pytest.mark.parametrize(
    ("of_pod", "of_account", "mounted"),
    [
        pytest.param(None, None, True, id="nobody says anything"),
        pytest.param(False, None, False, id="the Pod says no"),
        pytest.param(None, False, False, id="the account says no"),
        pytest.param(True, False, True, id="the Pod knows better"),
    ],
)
async def test_a_token_can_be_declined(admin, create, of_pod, of_account, mounted):
    if of_account is not None:
        patch = {"automountServiceAccountToken": of_account}
        await admin.patch(f"{CORE}/serviceaccounts/default", patch)
    wish = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
    spec = await create(**wish)
    assert bool(token_volumes(spec)) is mounted
    assert ("volumes" in spec) is mounted


async def test_a_pod_takes_its_accounts_pull_secrets_unless_it_has_its_own(admin, account, create):
    await admin.patch(f"{CORE}/serviceaccounts/default", {"imagePullSecrets": [{"name": "a"}]})
    assert (await create(name="one"))["imagePullSecrets"] == [{"name": "a"}]
    spec = await create(name="two", imagePullSecrets=[{"name": "b"}])
    assert spec["imagePullSecrets"] == [{"name": "b"}]


async def test_a_pod_of_an_unknown_account_is_refused(create):
    with pytest.raises(errors.Forbidden) as refused:
        await create(serviceAccountName="ghost")
    assert refused.value.message == (
        'pods "p" is forbidden: error looking up service account default/ghost: serviceaccount "ghost" not found'
    )


async def test_the_old_name_of_the_field_counts_too(create):
    with pytest.raises(errors.Forbidden, match="default/ghost"):
        await create(serviceAccount="ghost")


async def test_a_pod_waits_for_the_default_account_of_a_new_namespace(admin):
    making = asyncio.create_task(admin.create(PODS, pod()))
    await asyncio.sleep(0.01)
    assert not making.done()
    await admin.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    assert (await making)["spec"]["serviceAccountName"] == "default"


async def test_but_not_for_ever(admin, monkeypatch):
    monkeypatch.setattr("kubereef.server.serviceaccount_admission._PATIENCE", 0.01)
    with pytest.raises(errors.Forbidden, match='serviceaccount "default" not found'):
        await admin.create(PODS, pod())


async def test_nor_for_any_other_account(admin):
    with pytest.raises(errors.Forbidden):
        async with asyncio.timeout(0.2):
            await admin.create(PODS, pod(serviceAccountName="other"))


async def test_a_namespace_that_is_not_there_is_said_first(admin):
    with pytest.raises(errors.NotFound, match='namespaces "nowhere" not found'):
        await admin.create("/api/v1/namespaces/nowhere/pods", pod())


async def test_a_mirror_pod_is_left_alone(admin):
    mirror = pod(nodeName="n")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert "volumes" not in (await admin.create(PODS, mirror))["spec"]


@pytest.fixture
async def high(admin):
    return await admin.create(CLASSES, {"metadata": {"name": "high"}, "value": 1000})


async def test_a_pod_without_a_class_has_priority_zero(create):
    spec = await create()
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in spec


async def test_a_pod_has_the_priority_of_its_class(create, high):
    spec = await create(priorityClassName="high")
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "PreemptLowerPriority")


async def test_a_default_class_is_for_every_pod_without_one(admin, create):
    body = {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True, "preemptionPolicy": "Never"}
    await admin.create(CLASSES, body)
    spec = await create()
    assert (spec["priority"], spec["priorityClassName"]) == (5, "usual")
    assert spec["preemptionPolicy"] == "Never"


async def test_there_is_one_default_class_only(admin):
    await admin.create(CLASSES, {"metadata": {"name": "one"}, "value": 1, "globalDefault": True})
    with pytest.raises(errors.Forbidden, match="PriorityClass one is already marked as default"):
        await admin.create(CLASSES, {"metadata": {"name": "two"}, "value": 2, "globalDefault": True})
    await admin.patch(f"{CLASSES}/one", {"description": "the one"})
    await admin.delete(f"{CLASSES}/one")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_first_namespaces_stay(admin, name):
    with pytest.raises(errors.Forbidden) as refused:
        await admin.delete(f"/api/v1/namespaces/{name}")
    assert refused.value.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


@pytest.mark.parametrize(
    ("spec", "because"),
    [
        pytest.param(
            {"priorityClassName": "ghost"}, "no PriorityClass with name ghost was found", id="unknown"
        ),
        pytest.param(
            {"priority": 7},
            "the integer value of priority (7) must not be provided in pod spec; priority admission controller"
            " computed 0 from the given PriorityClass name",
            id="chosen",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission"
            " controller computed PreemptLowerPriority from the given PriorityClass name",
            id="policy chosen",
        ),
    ],
)
async def test_nobody_chooses_a_priority_but_by_class(create, spec, because):
    with pytest.raises(errors.Forbidden) as refused:
        await create(**spec)
    assert refused.value.message == f'pods "p" is forbidden: {because}'


async def test_a_given_priority_that_fits_is_fine(create, high):
    assert (await create(priorityClassName="high", priority=1000))["priority"] == 1000


async def test_a_pod_tolerates_a_troubled_node_for_five_minutes(create):
    assert (await create())["tolerations"] == [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        pytest.param({"operator": "Exists"}, [], id="everything"),
        pytest.param(
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            ["node.kubernetes.io/unreachable"],
            id="one of them",
        ),
        pytest.param(
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"},
            ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
            id="another effect",
        ),
    ],
)
async def test_what_a_pod_tolerates_already_is_not_added(create, toleration, added):
    tolerations = (await create(tolerations=[toleration]))["tolerations"]
    assert [one["key"] for one in tolerations[1:]] == added


async def test_a_new_node_takes_no_pods_until_it_is_ready(admin):
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    node = await admin.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    assert node["spec"]["taints"] == [taint]
    node = await admin.create("/api/v1/nodes", {"metadata": {"name": "m"}, "spec": {"taints": [taint]}})
    assert node["spec"]["taints"] == [taint]


def claim(name="v", **spec):
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec},
    }


async def made_class(admin, name, **marks):
    metadata = {"name": name, "annotations": {f"storageclass.kubernetes.io/{k}": v for k, v in marks.items()}}
    await admin.create(STORAGE, {"metadata": metadata, "provisioner": "example.com/x"})


async def test_a_claim_gets_the_youngest_default_class(admin, clock):
    assert (
        "storageClassName" not in (await admin.create(f"{CORE}/persistentvolumeclaims", claim("a")))["spec"]
    )
    await made_class(admin, "plain")
    await made_class(admin, "old", **{"is-default-class": "true"})
    clock.advance(60)
    await made_class(admin, "new", **{"is-default-class": "true"})
    await made_class(admin, "off", **{"is-default-class": "false"})
    made = await admin.create(f"{CORE}/persistentvolumeclaims", claim("b"))
    assert made["spec"]["storageClassName"] == "new"
    made = await admin.create(f"{CORE}/persistentvolumeclaims", claim("c", storageClassName="plain"))
    assert made["spec"]["storageClassName"] == "plain"
    made = await admin.create(f"{CORE}/persistentvolumeclaims", claim("d", storageClassName=""))
    assert made["spec"]["storageClassName"] == ""


async def test_a_claim_is_protected_from_being_deleted_in_use(admin):
    made = await admin.create(f"{CORE}/persistentvolumeclaims", claim())
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


async def test_an_ingress_gets_the_default_class(admin):
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    url = "/apis/networking.k8s.io/v1"
    body = {
        "metadata": {"name": "web", "annotations": annotations},
        "spec": {"controller": "example.com/web"},
    }
    await admin.create(f"{url}/ingressclasses", body)
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    spec = {"defaultBackend": backend}
    made = await admin.create(
        f"{url}/namespaces/default/ingresses", {"metadata": {"name": "i"}, "spec": spec}
    )
    assert made["spec"]["ingressClassName"] == "web"
