"""What environment variables do to a running operator."""

import pytest

from eagleray import __version__
from kubewire import errors
from tests.eagleray.kube.local import status
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

AUTOSCALING = {"enableInTreeAutoscaling": True}


def name_of(obj):
    return obj["metadata"]["name"]


async def has_init_container(world):
    (worker,) = await world.workers()
    return "wait-gcs-ready" in [one["name"] for one in worker["spec"].get("initContainers", ())]


async def has_probes(world):
    return all(
        {"livenessProbe", "readinessProbe"} <= pod["spec"]["containers"][0].keys()
        for pod in await world.pods()
    )


async def is_asked_late_whether_it_is_ready(world):
    probe = (await world.head())["spec"]["containers"][0]["readinessProbe"]
    return (probe["initialDelaySeconds"], probe["periodSeconds"]) == (10, 5)


async def has_headless_head_service(world):
    return (await world.get("Service", "c-head-svc"))["spec"].get("clusterIP") == "None"


async def has_local_addresses(world):
    (worker,) = await world.workers()
    env = {one["name"]: one.get("value") for one in worker["spec"]["containers"][0]["env"]}
    return env["FQ_RAY_IP"] == "c-head-svc.default.svc.cluster.local"


async def has_random_head_name(world):
    return name_of(await world.head()) != "c-head"


async def has_no_login_shell(world):
    commands = [pod["spec"]["containers"][0]["command"] for pod in await world.pods()]
    return all(command[0] == "/bin/bash" and "l" not in command[1] for command in commands)


@pytest.mark.case("OP-54", "OP-55", "OP-56", "OP-63")
@pytest.mark.parametrize(
    ("name", "value", "question", "answer"),
    [
        ("ENABLE_INIT_CONTAINER_INJECTION", "", has_init_container, True),
        ("ENABLE_INIT_CONTAINER_INJECTION", "False", has_init_container, False),
        ("ENABLE_INIT_CONTAINER_INJECTION", "no", has_init_container, True),
        ("ENABLE_PROBES_INJECTION", "", has_probes, True),
        ("ENABLE_PROBES_INJECTION", "FALSE", has_probes, False),
        ("ENABLE_PROBES_INJECTION", "no", has_probes, True),
        ("EAGLERAY_READINESS_PERIOD_SECONDS", "", is_asked_late_whether_it_is_ready, True),
        ("EAGLERAY_READINESS_PERIOD_SECONDS", "2", is_asked_late_whether_it_is_ready, False),
        ("EAGLERAY_READINESS_PERIOD_SECONDS", "-1", is_asked_late_whether_it_is_ready, True),
        ("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "", has_headless_head_service, True),
        ("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "True", has_headless_head_service, False),
        ("CLUSTER_DOMAIN", "", has_local_addresses, True),
        ("CLUSTER_DOMAIN", "example.org", has_local_addresses, False),
        ("ENABLE_DETERMINISTIC_HEAD_POD_NAME", "", has_random_head_name, True),
        ("ENABLE_DETERMINISTIC_HEAD_POD_NAME", "True", has_random_head_name, False),
        ("ENABLE_LOGIN_SHELL", "", has_no_login_shell, True),
        ("ENABLE_LOGIN_SHELL", "True", has_no_login_shell, False),
    ],
)
async def test_a_variable_changes_what_is_made(name, value, question, answer):
    async with world_of(variables={name: value} if value else {}) as world:
        await world.create(raycluster())
        await world.ready()
        assert await question(world) == answer


@pytest.mark.case("OP-59")
@pytest.mark.parametrize(("value", "seconds"), [("60", 60), ("x", 300)])
async def test_a_cluster_is_looked_at_again_after_the_resync(value, seconds):
    async with world_of(variables={"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": value}) as world:
        await world.create(raycluster())
        await world.ready()
        await world.pass_time(5)
        passes = passes_of(world)
        await world.pass_time(seconds - 10)
        assert passes_of(world) == passes
        await world.pass_time(15)
        assert passes_of(world) == passes + 1


def passes_of(world):
    page = world.operator.registry.render().splitlines()
    made = [
        line for line in page if line.startswith('controller_runtime_reconcile_total{controller="raycluster"')
    ]
    return sum(float(line.split()[-1]) for line in made)


@pytest.mark.case("OP-59")
async def test_a_role_that_somebody_deleted_is_back(world):
    await world.create(raycluster(**AUTOSCALING))
    await world.ready()
    await world.delete("Role", "c")
    await world.pass_time(5)
    assert await world.get("Role", "c") is not None


@pytest.mark.case("OP-60")
@pytest.mark.parametrize(
    ("variables", "is_kept"), [({}, True), ({"ENABLE_GCS_FT_REDIS_CLEANUP": "False"}, False)]
)
async def test_the_state_in_redis_is_cleaned_up_unless_that_is_switched_off(variables, is_kept):
    async with world_of(variables=variables) as world:
        await world.create(raycluster(gcsFaultToleranceOptions={"redisAddress": "redis:6379"}))
        cluster = await world.ready()
        assert ("finalizers" in cluster["metadata"]) == is_kept
        await world.delete("RayCluster", "c")
        await world.pass_time(60)
        assert bool(world.bodies("create", "jobs.batch")) == is_kept


@pytest.mark.case("OP-65")
@pytest.mark.parametrize(("variables", "left"), [({}, 3), ({"ENABLE_RANDOM_POD_DELETE": "True"}, 1)])
async def test_surplus_workers_are_the_autoscalers_business_unless_told_otherwise(variables, left):
    async with world_of(variables=variables) as world:
        await world.create(raycluster(workers=[{"replicas": 3}], **AUTOSCALING))
        await world.ready()
        await world.set_group("c", replicas=1)
        await world.pass_time(60)
        assert len(await world.workers()) == left


@pytest.mark.case("OP-68")
async def test_the_version_is_in_every_request_and_in_head_pods(world):
    await world.create(raycluster())
    await world.ready()
    version = f"eagleray-{__version__}"
    assert all(version in dict(request.headers)["user-agent"] for request in world.faults.sent)
    head = await world.head()
    assert head["metadata"]["annotations"]["ray.io/kuberay-version"] == version
    env = {one["name"]: one.get("value", "") for one in head["spec"]["containers"][0]["env"]}
    assert f"kuberay_version={version}" in env["RAY_USAGE_STATS_EXTRA_TAGS"]


@pytest.mark.case("OP-71", "OP-72")
async def test_pods_jobs_and_secrets_of_others_are_never_asked_for(world):
    await world.create(raycluster())
    await world.ready()
    selectors: dict[str, set[str]] = {}
    for request in world.faults.sent:
        if request.verb in ("list", "watch"):
            asked = dict(request.query).get("labelSelector", "")
            selectors.setdefault(request.resource, set()).add(asked)
    assert selectors["pods"] == {"ray.io/node-type in (head,worker,redis-cleanup)"}
    assert selectors["jobs.batch"] == {"app.kubernetes.io/created-by=kuberay-operator"}
    assert selectors["secrets"] == {"ray.io/cluster"}


ROUTES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "routes.route.openshift.io"},
    "spec": {
        "group": "route.openshift.io",
        "scope": "Namespaced",
        "names": {"plural": "routes", "singular": "route", "kind": "Route", "listKind": "RouteList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


@pytest.mark.case("OP-58", "OP-69")
@pytest.mark.parametrize(
    ("variables", "ways"),
    [({}, (1, 0)), ({"USE_INGRESS_ON_OPENSHIFT": "True"}, (0, 1))],
    ids=["Route", "Ingress"],
)
async def test_on_openshift_the_way_in_is_a_route_unless_an_ingress_is_asked_for(variables, ways):
    async with world_of(variables=variables, operator=False) as world:
        await world.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", ROUTES)
        await world.pass_time(1)
        await world.start_operator()
        await world.create(raycluster(head={"enableIngress": True}))
        await world.ready()
        routes = await world.api.get("/apis/route.openshift.io/v1/namespaces/default/routes")
        assert (len(routes["items"]), len(await world.list("Ingress"))) == ways


@pytest.mark.case("OP-69")
async def test_an_operator_that_cannot_learn_what_is_served_ends_with_an_error():
    async with world_of(operator=False) as world:
        world.faults.next = [status(errors.Forbidden("no"))] * 100
        await world.start_operator()
        await world.pass_time(130)
        assert await world.stop_operator() == 1
