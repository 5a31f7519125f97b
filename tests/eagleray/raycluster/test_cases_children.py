"""What a cluster has besides Pods, and what the Pods and Services that really come out look like."""

import pytest

from tests.eagleray.raycluster.situations import MOMENT, SCALED, count, running, told
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

SERVED = {"annotations": {"ray.io/enable-serve-service": "true"}}
INGRESS = {"enableIngress": True}


def environment(pod):
    return {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}


def start_command(pod):
    return pod["spec"]["containers"][0]["args"][0]


# --- Services


@pytest.mark.case("RC-83")
async def test_a_head_service_is_made_once_and_kept():
    async with running() as world:
        before = await world.get("Service", "c-head-svc")
        assert await told(world, "CreatedService") == (
            "Normal",
            "Create",
            "Created service default/c-head-svc",
        )
        await world.stop_operator()
        await world.start_operator()
        await world.pass_time(700)
        assert await world.get("Service", "c-head-svc") == before
        assert count(world, "create", "services") == 1
        await world.delete("Service", "c-head-svc")
        await world.pass_time(MOMENT)
        assert (await world.get("Service", "c-head-svc"))["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.case("RC-84")
@pytest.mark.parametrize(
    ("variables", "headless"), [({}, True), ({"ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": "true"}, False)]
)
async def test_the_head_service_is_headless_unless_asked_otherwise(variables, headless):
    async with running(variables=variables) as world:
        spec = (await world.get("Service", "c-head-svc"))["spec"]
        assert (spec["clusterIP"] == "None") is headless
        assert spec.get("publishNotReadyAddresses", False) is headless


@pytest.mark.case("RC-85")
async def test_the_ports_of_the_head_are_those_of_its_container_and_metrics():
    async with running(head={"container": {"ports": [{"name": "random", "containerPort": 1234}]}}) as world:
        ports = (await world.get("Service", "c-head-svc"))["spec"]["ports"]
        assert [(port["name"], port["port"]) for port in ports] == [("metrics", 8080), ("random", 1234)]


@pytest.mark.case("RC-86")
async def test_the_head_service_follows_the_labels_of_the_head():
    labels = {"app.kubernetes.io/name": "testname", "ray.io/identifier": "mine"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "ray", "image": "r"}]}}
    async with running(head={"template": template}) as world:
        (service,) = [one for one in await world.list("Service") if one["metadata"]["name"] == "c-head-svc"]
        selector = service["spec"]["selector"]
        assert len(selector) == 5
        assert selector.items() >= labels.items()
        assert (await world.head())["metadata"]["labels"].items() >= selector.items()
        assert (await world.status())["head"]["serviceName"] == "c-head-svc"


@pytest.mark.case("RC-87")
async def test_a_head_service_of_the_user_is_kept_as_far_as_it_can_be():
    service = {
        "metadata": {"name": "mine", "namespace": "elsewhere", "annotations": {"a": "theirs"}},
        "spec": {"type": "LoadBalancer", "selector": {"app": "theirs"}},
    }
    async with running(head={"headService": service}, headServiceAnnotations={"a": "ours"}) as world:
        made = await world.get("Service", "mine")
        assert made["spec"]["type"] == "LoadBalancer"
        assert "app" not in made["spec"]["selector"]
        assert made["metadata"]["annotations"]["a"] == "ours"


@pytest.mark.case("RC-88")
async def test_the_serve_service_has_the_ports_of_serve():
    ports = [{"name": "serve", "containerPort": 8000}, {"name": "serve-grpc", "containerPort": 9000}]
    async with running(head={"container": {"ports": ports}}, metadata=SERVED) as world:
        made = await world.get("Service", "c-serve-svc")
        assert {port["name"]: port["port"] for port in made["spec"]["ports"]} == {
            "serve": 8000,
            "serve-grpc": 9000,
        }
        assert made["spec"]["selector"] == {"ray.io/cluster": "c"}


@pytest.mark.case("RC-88")
async def test_a_serve_service_without_ports_is_not_made_and_the_step_is_named():
    ports = [{"name": "dashboard", "containerPort": 8265}]
    async with world_of() as world:
        await world.create(raycluster(head={"container": {"ports": ports}}, metadata=SERVED))
        await world.pass_time(MOMENT)
        assert await world.get("Service", "c-serve-svc") is None
        assert (await told(world, "ReconcileFailed"))[2].startswith("Step serve-service failed: ")


# --- Ingress


@pytest.mark.case("RC-89")
async def test_a_stale_ingress_of_ours_is_updated():
    async with running(head=INGRESS) as world:
        assert await told(world, "CreatedIngress") == (
            "Normal",
            "Create",
            "Created ingress default/c-head-ingress",
        )
        cluster = await world.get("RayCluster", "c")
        cluster["spec"]["headGroupSpec"]["ingressOptions"] = {"host": "ray.example.com"}
        await world.patch_spec("c", cluster["spec"])
        await world.pass_time(MOMENT)
        made = await world.get("Ingress", "c-head-ingress")
        assert made["spec"]["rules"][0]["host"] == "ray.example.com"
        assert await told(world, "UpdatedIngress") == (
            "Normal",
            "Update",
            "Updated ingress default/c-head-ingress",
        )
        await world.pass_time(700)
        assert count(world, "update", "ingresses.networking.k8s.io") == 1


@pytest.mark.case("RC-89")
async def test_an_ingress_of_somebody_else_is_left_alone_and_the_cluster_goes_on():
    theirs = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "c-head-ingress"},
        "spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 1}}}},
    }
    async with world_of() as world:
        before = await world.create(theirs)
        await world.create(raycluster(head=INGRESS))
        await world.ready()
        assert await world.get("Ingress", "c-head-ingress") == before
        kind, action, note = await told(world, "FailedToCreateIngress")
        assert (kind, action) == ("Warning", "Create")
        assert note.startswith("Failed creating ingress default/c-head-ingress, ")


@pytest.mark.case("RC-90")
async def test_a_class_that_admission_has_set_stays():
    async with running(head=INGRESS) as world:
        await world.patch("Ingress", "c-head-ingress", {"spec": {"ingressClassName": "default-class"}})
        await world.patch("RayCluster", "c", {"metadata": {"labels": {"a": "b"}}})
        await world.pass_time(700)
        made = await world.get("Ingress", "c-head-ingress")
        assert made["spec"]["ingressClassName"] == "default-class"
        assert ("update", "ingresses.networking.k8s.io") not in world.writes()


# --- accounts and rights


async def test_an_autoscaled_cluster_has_an_account_with_just_its_rights():
    async with running(**SCALED) as world:
        assert await world.get("ServiceAccount", "c")
        rules = (await world.get("Role", "c"))["rules"]
        assert {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "patch"]} in rules
        binding = await world.get("RoleBinding", "c")
        assert binding["subjects"][0]["name"] == binding["roleRef"]["name"] == "c"
        reasons = await world.reasons("c")
        assert {"CreatedServiceAccount", "CreatedRole", "CreatedRoleBinding"} <= set(reasons)
        assert (await world.head())["spec"]["serviceAccountName"] == "c"


@pytest.mark.case("RC-91")
async def test_an_account_that_the_user_names_has_to_be_there():
    name = "a-very-long-name-of-an-account-that-is-longer-than-fifty-characters"
    head = {"template": {"spec": {"serviceAccountName": name, "containers": [{"name": "ray", "image": "r"}]}}}
    async with world_of() as world:
        await world.create(raycluster(head=head, **SCALED))
        await world.pass_time(MOMENT)
        assert await world.pods() == []
        kind, action, note = await told(world, "AutoscalerServiceAccountNotFound")
        assert (kind, action) == ("Warning", "Validate")
        assert f"default/{name}" in note
        assert await world.get("ServiceAccount", "c") is None
        await world.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        await world.ready()
        assert (await world.head())["spec"]["serviceAccountName"] == name
        assert (await world.get("RoleBinding", "c"))["subjects"][0]["name"] == name


async def test_a_cluster_with_token_authentication_has_a_secret_that_its_pods_read():
    async with running(authOptions={"mode": "token"}, rayVersion="2.52.0") as world:
        secret = await world.get("Secret", "c")
        assert secret["metadata"]["labels"]["ray.io/cluster"] == "c"
        assert secret["data"]["auth_token"]
        for pod in await world.pods():
            (source,) = (
                one for one in pod["spec"]["containers"][0]["env"] if one["name"] == "RAY_AUTH_TOKEN"
            )
            assert source["valueFrom"]["secretKeyRef"] == {"name": "c", "key": "auth_token"}


@pytest.mark.case("RC-102")
@pytest.mark.parametrize(
    ("kind", "version", "name", "spec", "reason"),
    [
        pytest.param("Service", "v1", "c-head-svc", {}, "FailedToCreateService", id="head service"),
        pytest.param("ServiceAccount", "v1", "c", SCALED, "FailedToCreateServiceAccount", id="account"),
        pytest.param("Role", "rbac.authorization.k8s.io/v1", "c", SCALED, "FailedToCreateRole", id="role"),
    ],
)
async def test_a_child_s_name_that_another_owner_has_is_left_to_it(kind, version, name, spec, reason):
    async with world_of() as world:
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
        uid = (await world.create(other))["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": uid, "controller": True}
        theirs = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "ownerReferences": [owner]}}
        if kind == "Service":
            theirs["spec"] = {"ports": [{"port": 80}]}
        before = await world.create(theirs)
        await world.create(raycluster(**spec))
        await world.pass_time(MOMENT)
        assert await world.get(kind, name) == before
        warning, action, note = await told(world, reason)
        assert (warning, action) == ("Warning", "Create")
        assert f"ConfigMap other (uid {uid})" in note
        assert await world.pods() == []


# --- the Pods that come out


@pytest.mark.case("RC-22")
async def test_pods_are_made_in_the_namespace_of_their_cluster():
    template = {
        "metadata": {"namespace": "elsewhere"},
        "spec": {"containers": [{"name": "ray", "image": "r"}]},
    }
    async with running(head={"template": template}, workers=[{"template": template}]) as world:
        assert len(await world.pods()) == 2


@pytest.mark.case("RC-34")
async def test_groups_without_start_parameters_are_started_all_the_same():
    async with world_of() as world:
        cluster = raycluster()
        del cluster["spec"]["headGroupSpec"]["rayStartParams"]
        del cluster["spec"]["workerGroupSpecs"][0]["rayStartParams"]
        await world.create(cluster)
        await world.ready()
        assert "ray start --head " in start_command(await world.head())
        assert "--address=c-head-svc.default.svc.cluster.local:6379" in start_command(
            (await world.workers())[0]
        )


@pytest.mark.case("RC-59")
async def test_a_head_is_started_with_what_it_has():
    limits = {"cpu": "1", "memory": "1Gi"}
    async with running(head={"container": {"resources": {"limits": limits}}}) as world:
        words = start_command(await world.head()).split("ray start --head", 1)[1].split()
        assert words == [
            "--block",
            "--dashboard-agent-listen-port=52365",
            "--dashboard-host=0.0.0.0",
            "--memory=1073741824",
            "--metrics-export-port=8080",
            "--num-cpus=1",
        ]


@pytest.mark.case("RC-60")
@pytest.mark.case("RC-67")
async def test_workers_are_started_with_what_their_group_has():
    group = {"container": {"resources": {"requests": {"cpu": "2"}}}}
    other = {"groupName": "other", "resources": {"CPU": "2", "GPU": "4"}}
    async with running(workers=[group, other]) as world:
        (plain,) = await world.workers(group="small-group")
        (logical,) = await world.workers(group="other")
        assert "--num-cpus=2" in start_command(plain)
        assert {"--num-cpus=2", "--num-gpus=4"} <= set(start_command(logical).split())


@pytest.mark.case("RC-69")
async def test_a_command_of_the_user_is_left_alone_where_that_was_asked_for():
    keep = {"annotations": {"ray.io/overwrite-container-cmd": "true"}}
    head = {"container": {"command": ["sleep"], "args": ["1"]}}
    async with running(head=head, metadata=keep) as world:
        container = (await world.head())["spec"]["containers"][0]
        assert (container["command"], container["args"]) == (["sleep"], ["1"])
        assert environment(await world.head())["KUBERAY_GEN_RAY_START_CMD"].startswith("ray start --head ")


@pytest.mark.case("RC-72")
async def test_pods_know_the_address_of_their_head():
    async with running(head={"rayStartParams": {"port": "9999"}}) as world:
        assert environment(await world.head())["RAY_ADDRESS"] == "127.0.0.1:9999"
        for worker in await world.workers():
            assert environment(worker)["RAY_ADDRESS"] == "c-head-svc.default.svc.cluster.local:9999"


@pytest.mark.case("RC-73")
@pytest.mark.case("RC-74")
async def test_the_head_of_an_autoscaled_cluster_has_the_autoscaler_beside_it():
    async with running(autoscalerOptions={"version": "v2"}, **SCALED) as world:
        head = await world.head()
        assert [one["name"] for one in head["spec"]["containers"]] == ["ray", "autoscaler"]
        assert environment(head)["RAY_enable_autoscaler_v2"] == "true"
        assert head["spec"]["restartPolicy"] == "Never"
        assert head["spec"]["serviceAccountName"] == "c"


@pytest.mark.case("RC-76")
@pytest.mark.parametrize(("version", "kind"), [("2.53.0", "httpGet"), ("2.52.0", "exec")])
async def test_pods_are_probed_as_their_ray_can_be(version, kind):
    async with running(rayVersion=version) as world:
        for pod in await world.pods():
            assert kind in pod["spec"]["containers"][0]["readinessProbe"]


@pytest.mark.case("RC-80")
@pytest.mark.parametrize("variables", [{}, {"ENABLE_DETERMINISTIC_HEAD_POD_NAME": "true"}])
async def test_the_name_of_a_head_is_cut_to_fit(variables):
    name = "a" * 53
    async with world_of(variables=variables) as world:
        await world.create(raycluster(name))
        await world.ready(name)
        head = (await world.head(name))["metadata"]["name"]
        assert head == f"{'a' * 50}-head" if variables else head.startswith(f"{'a' * 50}-head-")
