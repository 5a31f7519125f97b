"""The manifests of config/: what they install, and with which rights."""

import json
import re
from pathlib import Path

import pytest
import yaml

from eagleray.operator.permissions import conditions_of, needed
from eagleray.rayapi.kinds import KINDS
from eagleray.runtime.options import read_options
from eagleray.webhooks.reviews import WEBHOOKS
from scripts.packaging import user_roles
from tests.eagleray.world import raycluster, world_of
from tests.packaging.kustomize import CONFIG
from tests.rights import Right, rights_in

NAME = "kuberay-operator"
INSTALLATIONS = (
    "default",
    "default-with-webhooks",
    "single-namespace",
    "overlays/test-overrides",
    "overlays/kubernetes-was-v1alpha2",
)
COMPONENTS = sorted(path.name for path in (CONFIG / "components").iterdir())


def options(built):
    """Read the operator's options as the operator itself would."""
    variables = {one["name"]: one["value"] for one in built.container.get("env", ()) if "value" in one}
    arguments = [argument.replace("$(POD_NAMESPACE)", "default") for argument in built.container["args"]]
    return read_options(arguments, variables)


def bound(built, kind):
    """Return the rights that bindings of a kind give to the operator."""
    bindings = [one for one in built if one["kind"] == kind]
    for binding in bindings:
        assert [subject["name"] for subject in binding["subjects"]] == [NAME]
    roles = [built.one(one["roleRef"]["kind"], one["roleRef"]["name"]) for one in bindings]
    return {
        Right(verb, group, resource)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.case("OP-103")
@pytest.mark.parametrize("folder", INSTALLATIONS)
def test_an_installation_gives_what_its_operator_needs_and_no_more(build, folder):
    built = build(folder)
    wanted = needed(conditions_of(options(built)))
    if folder == "single-namespace":
        assert bound(built, "ClusterRoleBinding") == set()
        assert bound(built, "RoleBinding") == rights_in(one for one in wanted if one.scope != "cluster")
        assert built.names("ClusterRole") == []
    else:
        assert bound(built, "ClusterRoleBinding") == rights_in(one for one in wanted if one.scope != "own")
        assert bound(built, "RoleBinding") == rights_in(one for one in wanted if one.scope == "own")


@pytest.mark.case("OP-103")
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_brings_the_rights_that_it_needs(build, component, tmp_path):
    gates = {"embedded-storage": "GCSFaultToleranceEmbeddedStorage", "kubernetes-was": "KubernetesWAS"}
    (tmp_path / "kustomization.yaml").write_text(
        json.dumps(
            {
                "resources": [_relative(tmp_path, build.config / "default")],
                "components": [_relative(tmp_path, build.config / "components" / component)],
            }
        )
    )
    built = build(tmp_path)
    if component in gates:
        built.container["args"].append(f"--feature-gates={gates[component]}=true")
    wanted = needed(conditions_of(options(built)))
    assert bound(built, "ClusterRoleBinding") == rights_in(one for one in wanted if one.scope != "own")
    assert bound(built, "RoleBinding") == rights_in(one for one in wanted if one.scope == "own")


def _relative(start, path):
    """Return a path as kustomize wants it: not from the root."""
    return "../" * (len(start.resolve().parts) - 1) + str(path.resolve()).lstrip("/")


@pytest.mark.parametrize("folder", INSTALLATIONS)
@pytest.mark.case("OP-132")
def test_an_operator_ends_in_good_order_and_is_asked_whether_it_lives(build, folder):
    built = build(folder)
    pod = built.one("Deployment", NAME)["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > 30
    assert pod["serviceAccountName"] == built.one("ServiceAccount")["metadata"]["name"]
    container = built.container
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probes"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"]
    assert security["runAsNonRoot"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert not container["image"].endswith((":latest", "operator"))


@pytest.mark.case("OP-127")
def test_the_default_is_in_namespace_default_and_brings_the_definitions(build):
    built = build("default")
    assert built.names("Deployment") == [f"default/{NAME}"]
    assert built.names("CustomResourceDefinition") == sorted(f"/{kind.plural}.ray.io" for kind in KINDS)
    service, deployment = built.one("Service", NAME), built.one("Deployment", NAME)
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= labels
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels


@pytest.mark.case("OP-128")
def test_with_webhooks_the_way_leads_from_the_configuration_to_the_operator(build):
    built = build("default-with-webhooks")
    assert built.names("Namespace") == ["/ray-system"]
    assert built.names("Deployment") == [f"ray-system/{NAME}"]
    assert {"name": "ENABLE_WEBHOOKS", "value": "true"} in built.container["env"]
    read = options(built)
    service = built.one("Service", read.webhook_service, "ray-system")
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, 9443)
    labels = built.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    configuration = built.one("ValidatingWebhookConfiguration", read.webhook_configuration)
    plurals = {kind.name: kind.plural for kind in KINDS}
    described = [
        (one["name"], one["clientConfig"]["service"], one["rules"][0]["resources"], one["failurePolicy"])
        for one in configuration["webhooks"]
    ]
    place = {"name": read.webhook_service, "namespace": "ray-system", "port": 443}
    assert described == [
        (one.name, {**place, "path": one.path}, [plurals[one.kind]], "Fail") for one in WEBHOOKS
    ]
    for webhook in configuration["webhooks"]:
        assert webhook["sideEffects"] == "None"
        (rule,) = webhook["rules"]
        assert (rule["apiGroups"], rule["apiVersions"]) == (["ray.io"], ["v1"])
        assert rule["operations"] == ["CREATE", "UPDATE"]


@pytest.mark.case("OP-129")
def test_the_overlay_of_the_workload_api_has_its_gate_and_its_rights(build):
    built = build("overlays/kubernetes-was-v1alpha2")
    assert options(built).gates.enabled("KubernetesWAS")
    given = {(right.what, right.group) for right in bound(built, "ClusterRoleBinding")}
    assert {("workloads", "scheduling.k8s.io"), ("podgroups", "scheduling.k8s.io")} <= given


def test_the_overlay_for_tests_switches_on_what_needs_nothing_else(build):
    gates = options(build("overlays/test-overrides")).gates
    for gate in ("SidecarSubmitterRestart", "GCSFaultToleranceEmbeddedStorage", "RayCronJob"):
        assert gates.enabled(gate)


def test_an_operator_of_one_namespace_watches_the_one_that_it_is_in(build):
    built = build("single-namespace")
    assert built.container["args"][-1] == "--watch-namespace=$(POD_NAMESPACE)"
    assert built.container["env"][0]["valueFrom"]["fieldRef"] == {"fieldPath": "metadata.namespace"}
    assert {obj["metadata"].get("namespace") for obj in built} == {"default"}


def test_the_roles_for_people_are_installed(build):
    built = build("default")
    for role in user_roles():
        assert built.one("ClusterRole", role["metadata"]["name"])["rules"] == role["rules"]


def test_the_manifests_have_the_version_of_the_product(build):
    from eagleray import __version__

    assert build("default").container["image"] == f"eagleray/operator:{__version__}"


# --- monitoring


@pytest.mark.case("OP-133")
@pytest.mark.usefixtures("virtual_time")
async def test_the_monitors_find_the_pods_of_a_cluster_and_the_ports_that_they_name(build):
    async with world_of() as world:
        # The last two are Ray's own, and a user names them where they are wanted.
        extra = [
            {"name": "as-metrics", "containerPort": 44217},
            {"name": "dash-metrics", "containerPort": 44227},
        ]
        await world.create(raycluster(head={"container": {"ports": extra}}))
        await world.ready()
        pods = await world.pods()
    monitors = [obj for obj in build("monitoring") if obj["kind"] == "PodMonitor"]
    assert len(monitors) == 2
    for monitor in monitors:
        chosen = monitor["spec"]["selector"]["matchLabels"].items()
        (pod,) = (one for one in pods if chosen <= one["metadata"]["labels"].items())
        ports = {port["name"] for one in pod["spec"]["containers"] for port in one.get("ports", ())}
        assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports
        for label in monitor["spec"]["podTargetLabels"]:
            assert label in pod["metadata"]["labels"]


def test_the_operator_s_monitor_finds_its_service(build):
    monitor = build("monitoring").one("ServiceMonitor")
    service = build("default").one("Service", NAME)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ports = {port["name"] for port in service["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


def rules_of(build):
    groups = build("monitoring").one("PrometheusRule")["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.case("OP-133")
def test_the_rules_ask_for_metrics_that_ray_has(build):
    rules = rules_of(build)
    known = (Path(__file__).parent / "ray-metrics.txt").read_text().splitlines()
    asked = {name for rule in rules for name in re.findall(r"\bray_[a-z_]+\b", rule["expr"])} - {
        "ray_io_cluster"
    }
    assert asked
    assert asked <= set(known)


def test_the_rules_have_the_names_that_dashboards_know(build):
    record, alert = rules_of(build)
    assert record["record"] == "ray_gcs_availability_30d"
    assert (alert["alert"], alert["for"]) == ("MissingMetricRayGlobalControlStore", "5m")
    assert alert["labels"] == {"severity": "critical"}


# --- definitions


def test_the_manifests_are_read_without_aliases():
    for path in sorted(set(CONFIG.rglob("*.yaml")) - set(CONFIG.glob("crd/*"))):
        events = yaml.parse(path.read_text(), yaml.CSafeLoader)
        assert not any(isinstance(event, yaml.AliasEvent) for event in events), path
