"""The values of the operator's chart, one by one, and the values file of somebody who comes from the reference."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eagleray import __version__
from eagleray.gates import GATES
from eagleray.operator.permissions import conditions_of, needed
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from eagleray.runtime.options import read_options
from eagleray.webhooks.reviews import WEBHOOKS
from tests.packaging.helm import OPERATOR, RAY_CLUSTER, Refused
from tests.rights import Right, rights_in

REFERENCE_VALUES = yaml.safe_load((Path(__file__).parent / "reference-values.yaml").read_text())
NAME = "kuberay-operator"


@pytest.fixture
def render(helm):
    def rendered(values=None, **options):
        return helm.render(OPERATOR, values, **options)

    return rendered


def flags(rendered):
    """Return the flags of the operator as they are written, by name."""
    split = (argument.removeprefix("--").partition("=") for argument in rendered.container["args"])
    return {name: value for name, _, value in split}


def given(rendered, *kinds):
    """Return the rights that roles of some kinds give."""
    return {
        Right(verb, group, resource)
        for role in rendered
        if role["kind"] in kinds and role["metadata"]["name"].startswith(NAME)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def options(rendered, tmp_path=None):
    """Read the operator's options as the operator itself would, from arguments, environment and file."""
    variables = {one["name"]: one["value"] for one in rendered.container.get("env", ()) if "value" in one}
    arguments = rendered.container["args"]
    if tmp_path is not None:
        file = tmp_path / "config.yaml"
        file.write_text(rendered.one("ConfigMap")["data"]["config.yaml"])
        arguments = [one.replace("/etc/kuberay/config.yaml", str(file)) for one in arguments]
    return read_options(arguments, variables)


@pytest.mark.parametrize("chart", [OPERATOR, RAY_CLUSTER], ids=lambda chart: chart.name)
def test_helm_finds_nothing_wrong_with_a_chart(helm, chart):
    assert "0 chart(s) failed" in helm("lint", "--strict", chart)


@pytest.mark.parametrize("chart", [OPERATOR, RAY_CLUSTER], ids=lambda chart: chart.name)
def test_a_chart_has_the_version_of_the_product(chart):
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert described["version"] == __version__
    assert described.get("appVersion", __version__) == __version__


@pytest.mark.case("OP-111", "OP-123", "OP-132")
def test_what_is_installed_by_default(render):
    rendered = render()
    deployment = rendered.one("Deployment", NAME, "rays")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"]["type"] == "Recreate"
    pod = deployment["spec"]["template"]
    chosen = deployment["spec"]["selector"]["matchLabels"]
    assert chosen.items() <= pod["metadata"]["labels"].items()
    assert pod["spec"]["serviceAccountName"] == NAME
    assert pod["spec"]["terminationGracePeriodSeconds"] > 30
    assert rendered.names("ServiceAccount") == [f"rays/{NAME}"]
    assert f"/{NAME}" in rendered.names("ClusterRole")
    (subject,) = rendered.one("ClusterRoleBinding")["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": NAME, "namespace": "rays"}
    assert rendered.one("RoleBinding")["subjects"] == [subject]
    service = rendered.one("Service", NAME, "rays")["spec"]
    assert (service["type"], service["selector"]) == ("ClusterIP", chosen)
    assert [(port["port"], port["targetPort"]) for port in service["ports"]] == [(8080, "http")]
    container = rendered.container
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": 8080, "probes": 8082}
    assert container["image"] == f"eagleray/operator:{__version__}"
    times = {"initialDelaySeconds": 10, "periodSeconds": 5, "failureThreshold": 5}
    assert container["livenessProbe"] == {"httpGet": {"path": "/healthz", "port": "probes"}, **times}
    assert container["readinessProbe"] == {"httpGet": {"path": "/readyz", "port": "probes"}, **times}
    for kind in ("PodDisruptionBudget", "ServiceMonitor", "ConfigMap", "ValidatingWebhookConfiguration"):
        assert rendered.names(kind) == []


def test_the_operator_accepts_the_default_arguments_and_keeps_its_own_defaults(render):
    read = options(render())
    assert flags(render())["feature-gates"] == ",".join(
        f"{gate.name}={str(gate.default).lower()}"
        for gate in GATES.values()
        if gate.implemented and gate.name != "AsyncJobInfoQuery"
    )
    assert read.leader_election
    assert read.enable_metrics
    assert read.reconcile_concurrency is None
    assert (read.qps, read.burst) == (100.0, 200)


@pytest.mark.case("OP-103")
@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="by default"),
        pytest.param({"useKubernetesProxy": True}, id="through the proxy"),
        pytest.param({"batchScheduler": {"name": "volcano"}}, id="with Volcano"),
        pytest.param({"batchScheduler": {"enabled": True}}, id="with Volcano, the old way"),
        pytest.param({"batchScheduler": {"name": "scheduler-plugins"}}, id="with scheduler-plugins"),
        pytest.param({"batchScheduler": {"name": "yunikorn"}}, id="with a scheduler that needs nothing"),
        pytest.param(
            {"featureGates": [{"name": "KubernetesWAS", "enabled": True}]}, id="with the workload API"
        ),
        pytest.param(
            {"featureGates": [{"name": "GCSFaultToleranceEmbeddedStorage", "enabled": True}]},
            id="with embedded storage",
        ),
        pytest.param({"webhooks": {"enabled": True}}, id="with webhooks"),
        pytest.param({"leaderElectionEnabled": False}, id="without leader election"),
        pytest.param({"configuration": {"enabled": True}, "useKubernetesProxy": True}, id="with a file"),
    ],
)
def test_the_roles_are_what_an_operator_with_these_values_needs(render, values, tmp_path):
    rendered = render(values)
    read = options(rendered, tmp_path if "configuration" in values else None)
    wanted = needed(conditions_of(read))
    abroad = rights_in(one for one in wanted if one.scope != "own")
    at_home = rights_in(one for one in wanted if one.scope == "own")
    cluster_roles = {
        Right(verb, group, resource)
        for name in {
            binding["roleRef"]["name"] for binding in rendered if binding["kind"] == "ClusterRoleBinding"
        }
        for rule in rendered.one("ClusterRole", name)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert cluster_roles == abroad
    assert given(rendered, "Role") == at_home


@pytest.mark.case("OP-112")
@pytest.mark.parametrize(
    ("values", "release", "name", "label"),
    [
        pytest.param({"fullnameOverride": "ray"}, "r", "ray", NAME, id="a name of one's own"),
        pytest.param({"fullnameOverride": None}, "r", f"r-{NAME}", NAME, id="after the release"),
        pytest.param(
            {"fullnameOverride": ""}, "my-kuberay-operator", "my-kuberay-operator", NAME, id="which says it"
        ),
        pytest.param({"fullnameOverride": "", "nameOverride": "x"}, "r", "r-x", "x", id="a name in part"),
        pytest.param({"fullnameOverride": "a" * 80}, "r", "a" * 63, NAME, id="a name that is too long"),
    ],
)
def test_names_and_labels_follow(render, values, release, name, label):
    rendered = render(values | {"componentOverride": "comp"}, release=release)
    deployment = rendered.one("Deployment")
    assert deployment["metadata"]["name"] == name
    assert rendered.names("Service") == [f"rays/{name}"]
    assert f"/{name}" in rendered.names("ClusterRole")
    assert rendered.one("ClusterRoleBinding")["roleRef"]["name"] == name
    assert deployment["metadata"]["labels"]["app.kubernetes.io/name"] == label
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] == label
    assert labels["app.kubernetes.io/instance"] == release
    assert labels["app.kubernetes.io/component"] == "comp"


AFFINITY: dict[str, Any] = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
}
RESOURCES = {"limits": {"cpu": "2", "memory": "3Gi"}}


@pytest.mark.case("OP-113")
@pytest.mark.parametrize(
    ("value", "given", "path"),
    [
        ("imagePullSecrets", [{"name": "pull"}], ("template", "spec", "imagePullSecrets")),
        ("nodeSelector", {"pool": "ray"}, ("template", "spec", "nodeSelector")),
        ("priorityClassName", "high", ("template", "spec", "priorityClassName")),
        ("affinity", AFFINITY, ("template", "spec", "affinity")),
        ("tolerations", [{"operator": "Exists"}], ("template", "spec", "tolerations")),
        ("podSecurityContext", {"fsGroup": 7}, ("template", "spec", "securityContext")),
        ("annotations", {"a": "b"}, ("template", "metadata", "annotations")),
        ("terminationGracePeriodSeconds", 99, ("template", "spec", "terminationGracePeriodSeconds")),
        ("hostUsers", False, ("template", "spec", "hostUsers")),
        ("replicas", 3, ("replicas",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_settings_of_the_deployment_are_in_it_as_given(render, value, given, path):
    found = render({value: given}).one("Deployment")["spec"]
    for step in path:
        found = found[step]
    assert found == given


@pytest.mark.case("OP-113")
def test_settings_of_the_container_are_in_it_as_given(render):
    image = {"repository": "example.com/ray", "tag": "7", "pullPolicy": "Always"}
    rendered = render(
        {"image": image, "resources": RESOURCES, "labels": {"a": "b"}, "securityContext": {"runAsUser": 7}}
    )
    container = rendered.container
    assert (container["image"], container["imagePullPolicy"]) == ("example.com/ray:7", "Always")
    assert container["resources"]["limits"] == RESOURCES["limits"]
    assert container["securityContext"]["runAsUser"] == 7
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    deployment = rendered.one("Deployment")
    assert deployment["metadata"]["labels"]["a"] == "b"
    assert deployment["spec"]["template"]["metadata"]["labels"]["a"] == "b"


def test_replicas_of_which_one_acts_are_replaced_one_by_one(render):
    spec = render({"replicas": 2}).one("Deployment")["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate"}


@pytest.mark.case("OP-114")
def test_a_service_account_that_exists_is_used(render):
    rendered = render({"serviceAccount": {"create": False, "name": "x"}})
    assert rendered.names("ServiceAccount") == []
    assert rendered.one("Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "x"
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert [subject["name"] for subject in rendered.one(kind)["subjects"]] == ["x"]


@pytest.mark.case("OP-115")
def test_the_log_goes_where_it_is_told(render):
    logging = {"stdoutEncoder": "console", "fileEncoder": "console"}
    rendered = render({"logging": logging})
    assert (flags(rendered)["log-stdout-encoder"], flags(rendered)["log-file-encoder"]) == (
        "console",
        "console",
    )
    assert "log-file-path" not in flags(rendered)
    assert "volumeMounts" not in rendered.container
    half = render({"logging": {**logging, "baseDir": "/logs"}})
    assert "log-file-path" not in flags(half)
    rendered = render({"logging": {**logging, "baseDir": "/logs", "fileName": "a.log", "sizeLimit": "1Gi"}})
    assert flags(rendered)["log-file-path"] == "/logs/a.log"
    (volume,) = rendered.one("Deployment")["spec"]["template"]["spec"]["volumes"]
    assert volume == {"name": "kuberay-logs", "emptyDir": {"sizeLimit": "1Gi"}}
    (mount,) = rendered.container["volumeMounts"]
    assert mount == {"name": "kuberay-logs", "mountPath": "/logs"}


@pytest.mark.case("OP-116")
@pytest.mark.parametrize(
    ("values", "flag", "group"),
    [
        pytest.param(
            {"enabled": True}, {"enable-batch-scheduler": ""}, "scheduling.volcano.sh", id="the old way"
        ),
        pytest.param(
            {"name": "volcano"}, {"batch-scheduler": "volcano"}, "scheduling.volcano.sh", id="Volcano"
        ),
        pytest.param(
            {"name": "scheduler-plugins"},
            {"batch-scheduler": "scheduler-plugins"},
            "scheduling.x-k8s.io",
            id="scheduler-plugins",
        ),
        pytest.param({"name": "yunikorn"}, {"batch-scheduler": "yunikorn"}, "", id="YuniKorn"),
        pytest.param({"name": "default"}, {}, "", id="none, by the name of default"),
        pytest.param({}, {}, "", id="none"),
        pytest.param(None, {}, "", id="nothing said"),
    ],
)
def test_a_batch_scheduler_has_its_flag_and_its_rights(render, values, flag, group):
    rendered = render({"batchScheduler": values})
    found = {name: value for name, value in flags(rendered).items() if "batch-scheduler" in name}
    assert found == flag
    groups = {right.group for right in given(rendered, "ClusterRole")}
    assert {one for one in groups if one.startswith("scheduling.")} == ({group} if group else set())


@pytest.mark.case("OP-116")
def test_a_batch_scheduler_that_is_named_twice_is_refused(render):
    with pytest.raises(Refused, match=r"enabled and batchScheduler\.name are set both"):
        render({"batchScheduler": {"enabled": True, "name": "yunikorn"}})


@pytest.mark.case("OP-117")
def test_settings_can_be_handed_over_in_a_file(render, tmp_path):
    own = {
        "defaultContainerEnvs": [{"name": "A", "value": "b"}],
        "defaultPodAnnotations": {"c": "d"},
        "defaultPodLabels": {"e": "f"},
        "headSidecarContainers": [{"name": "h", "image": "i"}],
        "workerSidecarContainers": [{"name": "j", "image": "k"}],
    }
    values = {
        "configuration": {"enabled": True, **own},
        "singleNamespaceInstall": True,
        "useKubernetesProxy": True,
        "reconcileConcurrency": 3,
        "batchScheduler": {"name": "volcano"},
        "logging": {"baseDir": "/logs", "fileName": "a.log", "stdoutEncoder": "console"},
        "kubeClient": {"qps": 7.5, "burst": 9},
        "metrics": {"enabled": False},
    }
    rendered = render(values)
    assert rendered.names("ConfigMap") == [f"rays/{NAME}-config"]
    assert set(flags(rendered)) == {"config", "feature-gates"}
    assert flags(rendered)["config"] == "/etc/kuberay/config.yaml"
    volumes = {one["name"]: one for one in rendered.one("Deployment")["spec"]["template"]["spec"]["volumes"]}
    assert volumes["operator-config"]["configMap"] == {"name": f"{NAME}-config"}
    mounts = {one["name"]: one["mountPath"] for one in rendered.container["volumeMounts"]}
    assert mounts == {"operator-config": "/etc/kuberay", "kuberay-logs": "/logs"}
    file = yaml.safe_load(rendered.one("ConfigMap")["data"]["config.yaml"])
    assert own.items() <= file.items()
    by_file = options(rendered, tmp_path)
    by_flags = options(render({**values, "configuration": {"enabled": False}}))
    for field in (
        "leader_election",
        "reconcile_concurrency",
        "watch_namespaces",
        "batch_scheduler",
        "enable_metrics",
    ):
        assert getattr(by_file, field) == getattr(by_flags, field), field
    for field in ("use_kubernetes_proxy", "qps", "burst", "log"):
        assert getattr(by_file, field) == getattr(by_flags, field), field
    assert [one["name"] for one in (*by_file.head_sidecars, *by_file.worker_sidecars)] == ["h", "j"]


def test_an_operator_starts_anew_when_its_file_changes(render):
    def mark(**values):
        template = render({"configuration": {"enabled": True, **values}}).one("Deployment")["spec"][
            "template"
        ]
        return template["metadata"]["annotations"]["checksum/config"]

    assert mark() == mark()
    assert mark() != mark(defaultPodLabels={"a": "b"})


@pytest.mark.case("OP-118")
def test_the_gates_that_are_listed_are_set_and_no_others(render):
    gates = [{"name": "RayCronJob", "enabled": False}, {"name": "RayMultiHostIndexing", "enabled": True}]
    assert (
        flags(render({"featureGates": gates}))["feature-gates"]
        == "RayCronJob=false,RayMultiHostIndexing=true"
    )
    assert "feature-gates" not in flags(render({"featureGates": []}))


def test_a_gate_with_nothing_behind_it_is_refused_before_it_stops_the_operator(render):
    with pytest.raises(Refused, match="RayClusterMTLS has nothing behind it"):
        render({"featureGates": [{"name": "RayClusterMTLS", "enabled": True}]})


@pytest.mark.case("OP-119")
def test_metrics_are_served_and_scraped_as_told(render):
    assert "enable-metrics" not in flags(render({"metrics": {"enabled": False}}))
    monitor = {
        "enabled": True,
        "interval": "7s",
        "honorLabels": False,
        "additionalLabels": {"release": "prom"},
        "namespace": "monitoring",
    }
    rendered = render({"metrics": {"serviceMonitor": monitor}})
    assert flags(rendered)["enable-metrics"] == "true"
    made = rendered.one("ServiceMonitor", NAME, "monitoring")
    assert made["metadata"]["labels"]["release"] == "prom"
    (endpoint,) = made["spec"]["endpoints"]
    assert endpoint == {"port": "http", "path": "/metrics", "interval": "7s", "honorLabels": False}
    assert made["spec"]["namespaceSelector"] == {"matchNames": ["rays"]}
    chosen = made["spec"]["selector"]["matchLabels"].items()
    assert chosen <= rendered.one("Service", NAME)["metadata"]["labels"].items()
    assert render({"metrics": {"serviceMonitor": {"enabled": True}}}).names("ServiceMonitor") == [
        f"rays/{NAME}"
    ]


@pytest.mark.case("OP-120")
@pytest.mark.parametrize(
    ("values", "flag", "expected"),
    [
        ({"useKubernetesProxy": True}, "use-kubernetes-proxy", "true"),
        ({"useKubernetesProxy": False}, "use-kubernetes-proxy", "false"),
        ({}, "use-kubernetes-proxy", None),
        ({"leaderElectionEnabled": False}, "enable-leader-election", "false"),
        ({"reconcileConcurrency": 10}, "reconcile-concurrency", "10"),
        ({"reconcileConcurrency": "10"}, "reconcile-concurrency", "10"),
        ({}, "reconcile-concurrency", None),
        ({"kubeClient": {"qps": 12.5}}, "qps", "12.5"),
        ({"kubeClient": {"burst": 1000}}, "burst", "1000"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_a_value_becomes_its_flag(render, values, flag, expected):
    assert flags(render(values)).get(flag) == expected


@pytest.mark.case("OP-120")
def test_the_command_can_be_chosen(render):
    assert render({"operatorCommand": "/bin/other"}).container["command"] == ["/bin/other"]


@pytest.mark.case("OP-120")
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"reconcileConcurrency": 0}, "reconcileConcurrency: 0 is no positive integer"),
        ({"reconcileConcurrency": "many"}, "reconcileConcurrency: many is no positive integer"),
        ({"kubeClient": {"qps": "fast"}}, "kubeClient.qps: fast is no number of requests"),
        ({"kubeClient": {"qps": -1}}, "kubeClient.qps: -1 is no number of requests"),
        ({"kubeClient": {"burst": "1.5"}}, "kubeClient.burst: 1.5 is no integer"),
        (
            {"replicas": 2, "leaderElectionEnabled": False},
            "replicas: more than one need leaderElectionEnabled",
        ),
        ({"replicas": "two"}, "replicas"),
        ({"batchScheduler": {"name": "slurm"}}, "batchScheduler"),
        ({"webhooks": {"enable": True}}, "webhooks"),
        ({"logging": {"stdoutEncoder": "xml"}}, "stdoutEncoder"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("file", [False, True], ids=["by flags", "by a file"])
def test_a_value_that_cannot_be_is_refused_with_a_message(render, values, sentence, file):
    with pytest.raises(Refused) as refused:
        render({"configuration": {"enabled": file}, **values})
    assert sentence in str(refused.value)


@pytest.mark.case("OP-121")
def test_without_rbac_there_is_no_role_and_no_binding(render):
    rendered = render({"rbacEnable": False, "webhooks": {"enabled": True}})
    assert {one["kind"] for one in rendered} == {
        "Deployment",
        "Service",
        "ServiceAccount",
        "ValidatingWebhookConfiguration",
    }


@pytest.mark.case("OP-121")
def test_an_operator_of_one_namespace_has_no_right_outside(render):
    rendered = render({"singleNamespaceInstall": True})
    assert rendered.names("ClusterRole") == rendered.names("ClusterRoleBinding") == []
    assert flags(rendered)["watch-namespace"] == "rays"
    assert rendered.names("RoleBinding") == [f"rays/{NAME}", f"rays/{NAME}-leader-election"]
    assert rendered.one("RoleBinding", NAME)["roleRef"]["kind"] == "Role"
    wanted = rights_in(needed(conditions_of(options(rendered)), "watched", "own"))
    assert given(rendered, "Role") == wanted
    assert {one["metadata"].get("namespace") for one in rendered} == {"rays"}


@pytest.mark.case("OP-121")
def test_an_operator_of_several_namespaces_has_a_role_in_each(render):
    values = {"singleNamespaceInstall": True, "watchNamespace": ["a", "b"]}
    rendered = render(values)
    assert flags(rendered)["watch-namespace"] == "a,b"
    for namespace in ("a", "b"):
        (subject,) = rendered.one("RoleBinding", NAME, namespace)["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": NAME, "namespace": "rays"}
        assert rendered.one("Role", NAME, namespace)["rules"]
    assert f"rays/{NAME}" not in rendered.names("Role")
    without = render({**values, "crNamespacedRbacEnable": False})
    assert without.names("RoleBinding") == [f"rays/{NAME}-leader-election"]
    everywhere = render({"watchNamespace": ["a", "b"]})
    assert flags(everywhere)["watch-namespace"] == "a,b"
    assert f"/{NAME}" in everywhere.names("ClusterRole")


@pytest.mark.case("OP-122")
def test_variables_are_in_the_operator_s_container(render):
    env = [{"name": "CLUSTER_DOMAIN", "value": "example"}, {"name": "A", "valueFrom": {"fieldRef": {}}}]
    assert render({"env": env}).container["env"] == env
    assert "env" not in render().container


def test_webhooks_lead_to_the_operator(render):
    rendered = render({"webhooks": {"enabled": True, "failurePolicy": "Ignore"}})
    service = rendered.one("Service", f"{NAME}-webhook")
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, "webhooks")
    assert {"name": "webhooks", "containerPort": 9443, "protocol": "TCP"} in rendered.container["ports"]
    configuration = rendered.one("ValidatingWebhookConfiguration")
    described = {
        one["name"]: (
            one["clientConfig"]["service"]["path"],
            one["rules"][0]["resources"],
            one["failurePolicy"],
        )
        for one in configuration["webhooks"]
    }
    plurals = {kind.name: kind.plural for kind in KINDS}
    assert described == {one.name: (one.path, [plurals[one.kind]], "Ignore") for one in WEBHOOKS}
    places = {
        (one["clientConfig"]["service"]["namespace"], one["clientConfig"]["service"]["name"])
        for one in configuration["webhooks"]
    }
    assert places == {("rays", service["metadata"]["name"])}
    read = options(rendered)
    assert read.environment.webhooks
    assert read.webhook_service == service["metadata"]["name"]
    assert read.webhook_configuration == configuration["metadata"]["name"]
    (rule,) = rendered.one("ClusterRole", configuration["metadata"]["name"])["rules"]
    assert rule["resourceNames"] == [configuration["metadata"]["name"]]


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ({}, {"maxUnavailable": 1}),
        ({"maxUnavailable": "50%"}, {"maxUnavailable": "50%"}),
        ({"minAvailable": 0}, {"minAvailable": 0}),
    ],
    ids=["by default", "some may go", "some have to stay"],
)
def test_a_disruption_budget_covers_the_operator_s_pods(render, values, limit):
    rendered = render({"podDisruptionBudget": {"enabled": True, **values}})
    spec = rendered.one("PodDisruptionBudget", NAME, "rays")["spec"]
    chosen = spec.pop("selector")["matchLabels"]
    assert chosen == rendered.one("Deployment")["spec"]["selector"]["matchLabels"]
    assert spec == limit


def test_the_definitions_of_the_chart_are_those_of_the_product_and_stay_when_it_goes(render):
    rendered = render(crds=True)
    for kind in KINDS:
        made = rendered.one("CustomResourceDefinition", f"{kind.plural}.ray.io")
        assert made["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert made == crd(kind)
    assert render(crds=False).names("CustomResourceDefinition") == []


@pytest.mark.case("OP-124")
def test_a_values_file_written_for_the_reference_renders_and_is_read_by_the_operator(render):
    rendered = render(REFERENCE_VALUES)
    read = options(rendered)
    assert read.batch_scheduler == "volcano"
    assert (read.qps, read.burst, read.reconcile_concurrency) == (150.5, 300, 4)
    assert not read.gates.enabled("RayCronJob")
    assert read.environment.cluster_domain == "cluster.example"
    assert str(read.log.file) == "/var/log/kuberay/operator.log"


@pytest.mark.case("OP-124")
def test_names_and_selectors_are_those_of_the_reference_so_that_a_release_is_upgraded_in_place(render):
    rendered = render(REFERENCE_VALUES, release="kuberay-operator")
    deployment = rendered.one("Deployment", NAME)
    # A Deployment's selector cannot be changed: with another one, an upgrade would be refused.
    assert deployment["spec"]["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": NAME,
        "app.kubernetes.io/instance": "kuberay-operator",
    }
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        assert f"/{NAME}" in rendered.names(kind)
    for kind in ("ServiceAccount", "Service"):
        assert rendered.names(kind) == [f"rays/{NAME}"]
    for kind in ("Role", "RoleBinding"):
        assert rendered.names(kind) == [f"rays/{NAME}-leader-election"]
