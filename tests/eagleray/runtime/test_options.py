"""What an operator is told: flags, configuration file, gates and environment, and what is wrong with them."""

import io
import json
import logging

import pytest
import yaml

from eagleray.rayapi.rules import ValidationConfig, problems_of
from eagleray.runtime.addresses import Address
from eagleray.runtime.options import OPTIONS, read_options, usage
from eagleray.runtime.startup import begin_logging, options_or_exit
from kubewire.sources import ManualClock
from tests.eagleray.rayapi.rules.builders import raycluster


def options(*arguments, **variables):
    return read_options(arguments, variables)


@pytest.fixture
def config(tmp_path):
    """Write a configuration file with these fields and return the flag that names it."""

    def write(text=None, *, as_json=False, **fields):
        content = {"apiVersion": "config.ray.io/v1alpha1", "kind": "Configuration", **fields}
        path = tmp_path / "config.yaml"
        path.write_text(text or (json.dumps(content) if as_json else yaml.safe_dump(content)))
        return f"--config={path}"

    return write


@pytest.fixture
def refusal(capsys):
    """Start with these arguments, which have to be refused with exit code 1 and one line; return that line."""

    def start(*arguments, **variables):
        with pytest.raises(SystemExit) as end:
            options_or_exit(arguments, variables)
        assert end.value.code == 1
        said = capsys.readouterr()
        assert said.out == ""
        (line,) = said.err.splitlines()
        return line.removeprefix("eagleray operator: ")

    return start


def logged(told):
    """The lines that an operator with these options begins its log with."""
    stream = io.StringIO()
    with begin_logging(told, ManualClock(), stream, logging.getLogger("test.startup")):
        pass
    return [json.loads(line)["msg"] for line in stream.getvalue().splitlines()]


def test_a_log_file_that_cannot_be_written_ends_the_start(capsys, tmp_path):
    told = options(f"--log-file-path={tmp_path}")
    with pytest.raises(SystemExit) as end:
        begin_logging(told, ManualClock(), io.StringIO(), logging.getLogger("test.startup"))
    assert end.value.code == 1
    assert capsys.readouterr().err == f"eagleray operator: --log-file-path: {tmp_path}: Is a directory\n"


# --- flags


@pytest.mark.case("OP-1")
@pytest.mark.parametrize(
    "arguments",
    [
        ["-metrics-addr=:9000"],
        ["--metrics-addr=:9000"],
        ["-metrics-addr", ":9000"],
        ["--metrics-addr", ":9000"],
        ["--metrics-addr=:1", "--metrics-addr=:9000"],
        ["--metrics-addr=:9000", "--"],
    ],
    ids=" ".join,
)
def test_a_flag_can_be_written_in_several_ways(arguments):
    assert options(*arguments) == options()._replace(metrics_address=Address("", 9000))


@pytest.mark.case("OP-2")
@pytest.mark.parametrize(
    ("argument", "on"),
    [
        ("--enable-metrics", True),
        ("-enable-metrics", True),
        ("--enable-metrics=true", True),
        ("-enable-metrics=1", True),
        ("--enable-metrics=T", True),
        ("--enable-metrics=false", False),
        ("--enable-metrics=0", False),
    ],
)
def test_a_switch_can_be_written_in_several_ways(argument, on):
    assert options(argument).enable_metrics is on


@pytest.mark.case("OP-2")
def test_a_switch_that_is_on_can_be_switched_off():
    assert options().leader_election is True
    assert options("--enable-leader-election=false").leader_election is False


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(
            ["--enable-metrics=maybe"],
            '--enable-metrics: "maybe" is neither true nor false',
            marks=pytest.mark.case("OP-2"),
        ),
        pytest.param(
            ["--metric-addr=:9000"],
            "unknown flag --metric-addr; did you mean --metrics-addr?",
            marks=pytest.mark.case("OP-3"),
        ),
        pytest.param(["-zzz"], "unknown flag --zzz", id="nothing is near"),
        (
            ["--enable-metrics", "false"],
            '"false" is not a flag; a switch takes its value after =, as in --enable-metrics=false',
        ),
        (["serve"], '"serve" is not a flag; flags are written --name=value'),
        (["---qps=1"], '"---qps=1" is not a flag; flags are written --name=value'),
        (["--", "x"], '"--" is not a flag; flags are written --name=value'),
        (["--=x"], '"--=x" is not a flag; flags are written --name=value'),
        (["--qps"], "--qps has no value; write --qps=VALUE"),
        (["--qps=fast"], '--qps: "fast" is not a number'),
        (["--qps=nan"], '--qps: "nan" is not a number'),
        (["--qps=0"], "--qps: 0 lets nothing through; write a number above 0, or -1 for no limit"),
        (["--burst=1.5"], '--burst: "1.5" is not a whole number'),
        (["--burst=99999999999999999999"], '--burst: "99999999999999999999" is not a whole number'),
        (["--burst=0"], "--burst: 0 is too small; the least is 1"),
        (["--reconcile-concurrency=-1"], "--reconcile-concurrency: -1 is too small; the least is 0"),
        (
            ["--metrics-addr=8080"],
            "--metrics-addr: '8080' is no address; write host:port or :port, or 0 for none",
        ),
        (["--watch-namespace=a,B"], '--watch-namespace: "B" is no namespace: '),
        (["--leader-election-namespace=a_b"], '--leader-election-namespace: "a_b" is no namespace: '),
        (["--webhook-service=a.b"], '--webhook-service: "a.b" is no Service: '),
        (["--webhook-configuration=A"], '--webhook-configuration: "A" is no name: '),
        pytest.param(
            ["--log-file-encoder=xml"],
            '--log-file-encoder: "xml" is not known; write one of json, console',
            marks=pytest.mark.case("OP-12"),
        ),
        pytest.param(
            ["--log-stdout-encoder="],
            '--log-stdout-encoder: "" is not known; write one of json, console',
            marks=pytest.mark.case("OP-12"),
        ),
        (
            ["--batch-scheduler=foo"],
            '--batch-scheduler: "foo" is not known; write one of volcano, yunikorn, kai-scheduler, scheduler-plugins',
        ),
        pytest.param(
            ["--enable-batch-scheduler", "--batch-scheduler=volcano"],
            "--enable-batch-scheduler and --batch-scheduler exclude each other; keep the second",
            marks=pytest.mark.case("OP-14"),
        ),
        (
            ["--feature-gates=KubernetesWAS=true", "--batch-scheduler=yunikorn"],
            "--batch-scheduler: yunikorn and the feature gate KubernetesWAS exclude each other; leave one out",
        ),
        (
            ["--feature-gates=KubernetesWAS=true", "--enable-batch-scheduler"],
            "--batch-scheduler: volcano and the feature gate KubernetesWAS exclude each other; leave one out",
        ),
        pytest.param(
            ["--feature-gates=RayCronJb=true"],
            "--feature-gates: unknown feature gate 'RayCronJb'; did you mean RayCronJob?",
            marks=pytest.mark.case("OP-19"),
        ),
        pytest.param(
            ["--feature-gates=RayCronJob=yes"],
            "--feature-gates: feature gate RayCronJob: 'yes' is neither true nor false; write RayCronJob=true",
            marks=pytest.mark.case("OP-19"),
        ),
        (
            ["--zap-log-level=loud"],
            '--zap-log-level: "loud" is no level; write debug, info, error, panic or a number',
        ),
        (["--zap-log-level=0"], '--zap-log-level: "0" is no level'),
        (["--zap-stacktrace-level=x"], '--zap-stacktrace-level: "x" is not known'),
        (["--zap-encoder=x"], '--zap-encoder: "x" is not known'),
        (["--zap-time-encoding=x"], '--zap-time-encoding: "x" is not known'),
        (
            ["--dashboard-poll-interval=3"],
            '--dashboard-poll-interval: "3" is not a duration; write one such as 3s',
        ),
        (["--dashboard-poll-interval=0s"], "--dashboard-poll-interval: has to be above 0"),
        (["--dashboard-poll-concurrency=0"], "--dashboard-poll-concurrency: 0 is too small; the least is 1"),
    ],
    ids=str,
)
def test_what_is_refused_at_the_start(refusal, arguments, line):
    assert refusal(*arguments).startswith(line)


def test_an_empty_path_is_no_configuration_file():
    assert options("--config=") == options()


@pytest.mark.parametrize(
    ("argument", "field", "value"),
    [
        ("--health-probe-bind-address=127.0.0.1:1", "probe_address", Address("127.0.0.1", 1)),
        ("--metrics-addr=0", "metrics_address", None),
        ("--leader-election-namespace=ops", "leader_election_namespace", "ops"),
        ("--reconcile-concurrency=2", "reconcile_concurrency", 2),
        ("--reconcile-concurrency=0", "reconcile_concurrency", None),
        ("--watch-namespace=a, b,,a", "watch_namespaces", ("a", "b")),
        ("--batch-scheduler=kai-scheduler", "batch_scheduler", "kai-scheduler"),
        ("--use-kubernetes-proxy", "use_kubernetes_proxy", True),
        ("--qps=0.5", "qps", 0.5),
        ("--qps=-1", "qps", -1.0),
        ("--burst=7", "burst", 7),
        ("--kubeconfig=/k", "kubeconfig", "/k"),
        ("--dashboard-poll-concurrency=2", "dashboard_poll_concurrency", 2),
        ("--dashboard-poll-interval=1m30s", "dashboard_poll_interval", 90.0),
        ("--dashboard-cache-size=2", "dashboard_cache_size", 2),
        ("--dashboard-cache-expiry=500ms", "dashboard_cache_expiry", 0.5),
        ("--webhook-addr=127.0.0.1:1", "webhook_address", Address("127.0.0.1", 1)),
        ("--webhook-cert-dir=/certificates", "webhook_certificates", "/certificates"),
        ("--webhook-service=hooks", "webhook_service", "hooks"),
        ("--webhook-configuration=my.hooks", "webhook_configuration", "my.hooks"),
        ("--dry-run", "dry_run", True),
    ],
)
def test_a_flag_changes_one_thing(argument, field, value):
    assert options(argument) == options()._replace(**{field: value})


@pytest.mark.case("OP-18")
def test_the_client_is_limited_to_100_requests_a_second_and_200_at_once_by_default():
    assert (options().qps, options().burst) == (100.0, 200)


@pytest.mark.case("OP-53")
def test_webhooks_are_where_the_references_are_by_default():
    default = options()
    assert default.webhook_address == Address("", 9443)
    assert default.webhook_certificates == "/tmp/k8s-webhook-server/serving-certs"


def test_the_other_defaults():
    default = options()
    assert (default.metrics_address, default.probe_address) == (Address("", 8080), Address("", 8082))
    assert (default.leader_election, default.reconcile_concurrency, default.watch_namespaces) == (
        True,
        None,
        (),
    )
    assert (default.dashboard_poll_concurrency, default.dashboard_poll_interval) == (256, 3.0)
    assert (default.dashboard_cache_size, default.dashboard_cache_expiry) == (10_000, 600.0)
    assert (default.enable_metrics, default.use_kubernetes_proxy, default.notices) == (False, False, ())


@pytest.mark.case("OP-14")
def test_the_old_switch_of_the_batch_scheduler_means_volcano_and_is_deprecated():
    told = options("--enable-batch-scheduler")
    assert told.batch_scheduler == "volcano"
    (notice,) = logged(told)
    assert "--enable-batch-scheduler is deprecated" in notice


@pytest.mark.case("OP-33")
def test_the_forced_upgrade_is_deprecated_and_changes_nothing():
    told = options("--forced-cluster-upgrade")
    (notice,) = logged(told)
    assert "deprecated" in notice
    assert told._replace(notices=()) == options()


@pytest.mark.parametrize("argument", ["-h", "-help", "--help"])
def test_help_names_every_flag(argument, capsys):
    with pytest.raises(SystemExit) as end:
        options_or_exit(["--qps=1", argument], {})
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"--{option.flag} " in shown for option in OPTIONS.values() if option.flag)
    assert shown.strip() == usage()


# --- feature gates


@pytest.mark.case("OP-19")
def test_gates_that_are_named_are_set_and_others_keep_their_default():
    gates = options("--feature-gates=RayCronJob=false,RayMultiHostIndexing=false").gates
    assert not gates.enabled("RayCronJob")
    assert not gates.enabled("RayMultiHostIndexing")
    assert gates.enabled("RayJobDeletionPolicy")
    assert not gates.enabled("SidecarSubmitterRestart")


@pytest.mark.case("OP-20")
def test_all_beta_gates_can_be_switched_off_except_those_named():
    gates = options("--feature-gates=AllBeta=false,RayMultiHostIndexing=true").gates
    beta = ("RayClusterStatusConditions", "RayJobDeletionPolicy", "RayServiceIncrementalUpgrade")
    assert not any(gates.enabled(name) for name in beta)
    assert gates.enabled("RayMultiHostIndexing")
    assert gates.enabled("RayCronJob")


@pytest.mark.parametrize(
    ("gate", "fields", "rule"),
    [
        pytest.param(
            "RayClusterNetworkPolicy",
            {"networkPolicy": {}},
            "raycluster-18a",
            marks=pytest.mark.case("OP-48"),
        ),
        pytest.param("RayClusterMTLS", {"tlsOptions": {}}, "raycluster-19a", marks=pytest.mark.case("OP-50")),
        pytest.param(
            "RayClusterHistoryServer",
            {"historyServerOptions": {"collectorOptions": {"image": "collector:1"}}},
            "raycluster-16a",
            marks=pytest.mark.case("OP-51"),
        ),
    ],
)
def test_a_gate_with_nothing_behind_it_is_refused_and_so_are_manifests_that_need_it(
    refusal, gate, fields, rule
):
    assert refusal(f"--feature-gates={gate}=true").startswith(f"--feature-gates: {gate} comes later")
    assert options(f"--feature-gates={gate}=false") == options()
    problems = problems_of(raycluster(**fields), ValidationConfig(options().gates))
    assert rule in [problem.rule for problem in problems]


@pytest.mark.case("OP-52")
@pytest.mark.parametrize("value", ["true", "false"])
def test_the_gate_for_asynchronous_queries_is_accepted_and_changes_nothing_else(value):
    told = options(f"--feature-gates=AsyncJobInfoQuery={value}")
    assert told._replace(gates=options().gates) == options()


# --- the configuration file

FIELDS_AND_FLAGS = {
    "metricsAddr": (":9000", "--metrics-addr=:9000"),
    "probeAddr": (":9001", "--health-probe-bind-address=:9001"),
    "enableLeaderElection": (False, "--enable-leader-election=false"),
    "leaderElectionNamespace": ("ops", "--leader-election-namespace=ops"),
    "reconcileConcurrency": (3, "--reconcile-concurrency=3"),
    "watchNamespace": ("a, b", "--watch-namespace=a, b"),
    "logFile": ("/x.log", "--log-file-path=/x.log"),
    "logFileEncoder": ("console", "--log-file-encoder=console"),
    "logStdoutEncoder": ("console", "--log-stdout-encoder=console"),
    "batchScheduler": ("yunikorn", "--batch-scheduler=yunikorn"),
    "enableBatchScheduler": (True, "--enable-batch-scheduler"),
    "useKubernetesProxy": (True, "--use-kubernetes-proxy"),
    "enableMetrics": (True, "--enable-metrics"),
    "qps": (2.5, "--qps=2.5"),
    "burst": (5, "--burst=5"),
    "dashboardPollConcurrency": (2, "--dashboard-poll-concurrency=2"),
    "dashboardPollInterval": ("10s", "--dashboard-poll-interval=10s"),
    "dashboardCalmInterval": ("90s", "--dashboard-calm-interval=90s"),
    "dashboardCacheSize": (2, "--dashboard-cache-size=2"),
    "dashboardCacheExpiry": ("1s", "--dashboard-cache-expiry=1s"),
    "webhookAddr": (":1", "--webhook-addr=:1"),
    "webhookCertDir": ("/certificates", "--webhook-cert-dir=/certificates"),
    "webhookService": ("hooks", "--webhook-service=hooks"),
    "webhookConfiguration": ("hooks", "--webhook-configuration=hooks"),
}


def test_every_field_with_a_flag_is_in_the_table_of_this_test():
    with_both = {option.field for option in OPTIONS.values() if option.field and option.flag}
    assert with_both == FIELDS_AND_FLAGS.keys()


def without_notices(told):
    return told._replace(notices=())


@pytest.mark.case("OP-21", "OP-22")
@pytest.mark.parametrize("as_json", [False, True], ids=["YAML", "JSON"])
@pytest.mark.parametrize("field", FIELDS_AND_FLAGS)
def test_a_field_does_what_its_flag_does(config, field, as_json):
    value, flag = FIELDS_AND_FLAGS[field]
    told = options(config(as_json=as_json, **{field: value}))
    assert without_notices(told) == without_notices(options(flag))
    assert without_notices(told) != options()


@pytest.mark.case("OP-21")
@pytest.mark.parametrize(
    ("fields", "burst"),
    [
        pytest.param({"burst": 5}, 5, id="the field is in the file"),
        pytest.param({}, 200, id="the field is not in the file and has its default"),
        pytest.param({"burst": None}, 200, id="null counts as not given"),
    ],
)
def test_beside_a_file_a_flag_that_has_a_field_does_not_count_and_that_is_said(config, fields, burst):
    told = options("--burst=9", config(**fields))
    assert told.burst == burst
    (notice,) = told.notices
    assert "replaces --burst" in notice


@pytest.mark.case("OP-25")
def test_beside_a_file_flags_without_a_field_count(config):
    told = options(
        "--feature-gates=RayCronJob=false", config(burst=5), "--zap-log-level=debug", "--kubeconfig=/k"
    )
    assert (told.burst, told.log.level, told.kubeconfig, told.notices) == (5, logging.DEBUG, "/k", ())
    assert not told.gates.enabled("RayCronJob")


@pytest.mark.case("OP-26")
def test_the_encoders_of_the_file_count(config):
    assert options(config(logStdoutEncoder="console")).log.encoder == "console"


@pytest.mark.case("OP-27")
def test_a_concurrency_of_0_is_no_cap(config):
    assert options(config(reconcileConcurrency=0)).reconcile_concurrency is None


@pytest.mark.case("OP-24")
def test_an_unknown_field_is_ignored_and_named(config):
    told = options(config(burst=5, metricAddr=":1"))
    assert told.burst == 5
    (notice,) = logged(told)
    assert "unknown field metricAddr is ignored; did you mean metricsAddr?" in notice


def test_fields_without_a_flag(config):
    container = {"name": "fluent", "image": "fluentbit", "resources": {"limits": {"cpu": "1"}}}
    told = options(
        config(
            headSidecarContainers=[container],
            workerSidecarContainers=[container],
            defaultContainerEnvs=[{"name": "A", "value": "1"}],
            defaultPodAnnotations={"a": "b"},
            defaultPodLabels={"c": "d"},
            deleteRayJobAfterJobFinishes=True,
        )
    )
    assert told.head_sidecars == told.worker_sidecars == (container,)
    assert told.container_env == ({"name": "A", "value": "1"},)
    assert (told.pod_annotations, told.pod_labels, told.delete_rayjob) == ({"a": "b"}, {"c": "d"}, True)
    assert told.notices == ()


@pytest.mark.case("OP-23")
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"burst": 1.5}, "burst: 1.5 is not a whole number"),
        ({"burst": "5"}, 'burst: "5" is not a whole number'),
        ({"burst": True}, "burst: true is not a whole number"),
        ({"burst": 0}, "burst: 0 is too small; the least is 1"),
        ({"qps": "fast"}, 'qps: "fast" is not a number'),
        ({"enableMetrics": "true"}, 'enableMetrics: "true" is neither true nor false'),
        ({"metricsAddr": 8080}, "metricsAddr: 8080 is not a string"),
        ({"metricsAddr": "x"}, "metricsAddr: 'x' is no address"),
        ({"dashboardPollInterval": 3}, "dashboardPollInterval: 3 is not a string"),
        ({"logFileEncoder": "xml"}, 'logFileEncoder: "xml" is not known; write one of json, console'),
        ({"batchScheduler": "foo"}, 'batchScheduler: "foo" is not known'),
        ({"headSidecarContainers": {}}, "headSidecarContainers: {} is not a list"),
        ({"headSidecarContainers": ["x"]}, 'headSidecarContainers[0]: "x" is not an object'),
        ({"headSidecarContainers": [{"image": "x"}]}, "headSidecarContainers[0].name: is missing"),
        (
            {"workerSidecarContainers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": "x"}]}]},
            "workerSidecarContainers[1]: json: cannot unmarshal string into Go struct field ContainerPort.ports",
        ),
        (
            {"defaultContainerEnvs": [{"name": "A", "value": 1}]},
            "defaultContainerEnvs[0]: json: cannot unmarshal number into Go struct field EnvVar.value of type string",
        ),
        ({"defaultPodLabels": ["x"]}, 'defaultPodLabels: ["x"] is not a map of strings'),
        ({"defaultPodLabels": {"a": 1}}, "defaultPodLabels[a]: 1 is not a string; put it in quotes"),
        ({"apiVersion": "v1"}, 'apiVersion: is "v1"; write config.ray.io/v1alpha1'),
        ({"kind": "Config"}, 'kind: is "Config"; write Configuration'),
    ],
    ids=str,
)
def test_a_wrong_field_ends_the_start_with_its_path(refusal, config, fields, problem):
    flag = config(**fields)
    path = flag.removeprefix("--config=")
    assert refusal(flag).startswith(f"--config: {path}: {problem}")


@pytest.mark.case("OP-23")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", '["a"] is not a Configuration'),
        (" \n", "null is not a Configuration"),
        ("burst: 5\n", "apiVersion: is missing; write config.ray.io/v1alpha1"),
        ("apiVersion: config.ray.io/v1alpha1\n", "kind: is missing; write Configuration"),
        ("a: [\n", ""),
        ("a: 1\na: 2\n", "a is given twice"),
    ],
    ids=["a list", "nothing", "no apiVersion", "no kind", "no YAML", "a field twice"],
)
def test_a_file_that_is_no_configuration_is_refused(refusal, config, text, problem):
    assert problem in refusal(config(text))


@pytest.mark.case("OP-23")
def test_a_missing_file_is_refused(refusal, tmp_path):
    assert (
        refusal(f"--config={tmp_path}/none.yaml")
        == f"--config: {tmp_path}/none.yaml: No such file or directory"
    )


def test_a_file_without_end_is_refused(refusal):
    assert "MiB" in refusal("--config=/dev/zero")


# --- the environment


@pytest.mark.parametrize(
    ("name", "value", "field", "want"),
    [
        ("ENABLE_WEBHOOKS", "true", "webhooks", True),
        ("ENABLE_WEBHOOKS", "TRUE", "webhooks", False),
        ("ENABLE_INIT_CONTAINER_INJECTION", "False", "init_container_injection", False),
        ("ENABLE_INIT_CONTAINER_INJECTION", "0", "init_container_injection", True),
        ("ENABLE_PROBES_INJECTION", "FALSE", "probes_injection", False),
        ("ENABLE_PROBES_INJECTION", "no", "probes_injection", True),
        ("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "True", "head_cluster_ip_service", True),
        ("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "1", "head_cluster_ip_service", False),
        ("CLUSTER_DOMAIN", "example.org", "cluster_domain", "example.org"),
        ("CLUSTER_DOMAIN", "", "cluster_domain", "cluster.local"),
        ("USE_INGRESS_ON_OPENSHIFT", "TRUE", "ingress_on_openshift", True),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "60", "raycluster_requeue_seconds", 60),
        ("ENABLE_GCS_FT_REDIS_CLEANUP", "false", "redis_cleanup", False),
        ("ENABLE_ZERO_DOWNTIME", "false", "zero_downtime", False),
        ("ENABLE_DETERMINISTIC_HEAD_POD_NAME", "true", "deterministic_head_pod_name", True),
        ("ENABLE_LOGIN_SHELL", "true", "login_shell", True),
        ("ENABLE_RANDOM_POD_DELETE", "true", "random_pod_delete", True),
        (
            "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
            "5",
            "rayjob_transition_grace_seconds",
            5,
        ),
        (
            "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
            "0",
            "rayjob_transition_grace_seconds",
            0,
        ),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "5", "rayjob_status_check_seconds", 5),
    ],
)
def test_a_variable_changes_one_thing(name, value, field, want):
    told = options(**{name: value})
    assert told.environment == options().environment._replace(**{field: want})
    assert told.notices == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "x"),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "0"),
        ("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", "x"),
        ("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", "-1"),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "0"),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "-1"),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "1.5"),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "9" * 10_000),
    ],
    ids=lambda text: text[:60],
)
def test_a_malformed_number_of_seconds_is_300_and_that_is_said(name, value):
    told = options(**{name: value})
    assert told.environment == options().environment
    (notice,) = told.notices
    assert notice.startswith(f"{name}: ")
    assert "300 is used" in notice


@pytest.mark.parametrize(
    ("variable", "field", "want"),
    [
        ("true", False, True),
        ("True", False, True),
        ("", True, True),
        ("false", True, True),
        ("", False, False),
    ],
)
def test_rayjobs_are_deleted_if_the_variable_or_the_field_says_so(config, variable, field, want):
    flag = config(deleteRayJobAfterJobFinishes=field)
    assert options(flag, DELETE_RAYJOB_CR_AFTER_JOB_FINISHES=variable).delete_rayjob is want


def test_options_cannot_be_changed():
    with pytest.raises(AttributeError):
        options().burst = 1
