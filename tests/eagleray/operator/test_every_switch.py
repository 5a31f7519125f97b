"""Nothing can be told to an operator, and nothing is measured, without a test that observes its effect.

The tables say which test that is. A new option, variable, gate or metric fails here until it is in its table.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

from eagleray.gates import GATES
from eagleray.runtime.environment import read_environment
from eagleray.runtime.options import OPTIONS
from tests.eagleray.world import raycluster, world_of

TESTS = Path(__file__).parents[2]
FLAGS = "eagleray/operator/test_flags.py"
VARIABLES = "eagleray/operator/test_variables.py"
METRICS = "eagleray/operator/test_metrics.py"
PROCESS = "reef/test_operator.py"
WEBHOOKS = "reef/test_operator_webhooks.py"
READ = "eagleray/runtime/test_options.py"
LOGS = "eagleray/runtime/test_logging.py"

IN_PROCESS = "test_an_operator_makes_a_cluster_and_ends_in_good_order"
DASHBOARDS = "eagleray/rayjob/test_cases_submission.py"
CLEANUP = "eagleray/rayjob/test_cases_cleanup.py"
TIMERS = "eagleray/rayjob/test_cases_timers.py"
SCHEDULERS = "eagleray/schedulers/test_choosing.py"
SERVICES = "eagleray/rayservice/test_cases_changes.py"
TRUSTED_WEBHOOKS = "test_an_operator_serves_its_webhooks_and_has_them_trusted"
LATER = "nothing behind it yet: refused at the start"

OBSERVED_OPTIONS = {
    "metrics-addr": (PROCESS, IN_PROCESS),
    "health-probe-bind-address": (PROCESS, IN_PROCESS),
    "enable-leader-election": (FLAGS, "test_without_leader_election_there_is_no_lease"),
    "leader-election-namespace": (
        FLAGS,
        "test_the_lease_is_in_the_namespace_that_was_told_and_let_go_at_the_end",
    ),
    "reconcile-concurrency": (
        FLAGS,
        "test_clusters_whose_requests_hang_hold_up_others_only_under_a_cap",
    ),
    "watch-namespace": (FLAGS, "test_clusters_in_watched_namespaces_are_reconciled"),
    "log-file-path": (LOGS, ""),
    "log-file-encoder": (LOGS, ""),
    "log-stdout-encoder": (LOGS, ""),
    "batch-scheduler": (SCHEDULERS, "test_pods_go_to_the_scheduler_that_was_asked_for"),
    "enable-batch-scheduler": (READ, ""),
    "use-kubernetes-proxy": (FLAGS, "test_ray_is_asked_through_the_api_server_alone_if_that_is_told"),
    "enable-metrics": (METRICS, "test_metrics_of_ray_exist_only_when_they_are_asked_for"),
    "qps": (FLAGS, "test_requests_are_spaced_out_for_each_kind_of_object_by_itself"),
    "burst": (FLAGS, "test_requests_are_spaced_out_for_each_kind_of_object_by_itself"),
    "feature-gates": (FLAGS, "test_workers_are_labelled_with_their_indexes"),
    "config": (FLAGS, "test_sidecars_of_the_configuration_come_last_in_heads_and_in_workers"),
    "forced-cluster-upgrade": (READ, ""),
    "kubeconfig": (PROCESS, IN_PROCESS),
    "zap-devel": (LOGS, ""),
    "zap-encoder": (LOGS, ""),
    "zap-log-level": (LOGS, ""),
    "zap-stacktrace-level": (LOGS, ""),
    "zap-time-encoding": (LOGS, ""),
    "dashboard-poll-concurrency": (DASHBOARDS, "test_how_many_dashboards_are_asked_at_once_is_an_option"),
    "dashboard-poll-interval": (DASHBOARDS, "test_how_often_a_dashboard_is_asked_is_an_option"),
    "dashboard-calm-interval": (DASHBOARDS, "test_how_seldom_a_calm_dashboard_is_asked_is_an_option"),
    "dashboard-cache-size": (DASHBOARDS, "test_a_cache_that_is_too_small_costs_time_and_no_job"),
    "dashboard-cache-expiry": (DASHBOARDS, "test_nothing_is_kept_about_objects_that_are_gone"),
    "webhook-addr": (WEBHOOKS, TRUSTED_WEBHOOKS),
    "webhook-cert-dir": (WEBHOOKS, "test_an_operator_serves_with_the_certificate_that_is_mounted"),
    "webhook-service": (WEBHOOKS, TRUSTED_WEBHOOKS),
    "webhook-configuration": (WEBHOOKS, TRUSTED_WEBHOOKS),
    "dry-run": ("eagleray/operator/test_dry_run.py", "test_a_new_cluster_is_planned_and_not_made"),
    "headSidecarContainers": (
        FLAGS,
        "test_sidecars_of_the_configuration_come_last_in_heads_and_in_workers",
    ),
    "workerSidecarContainers": (
        FLAGS,
        "test_sidecars_of_the_configuration_come_last_in_heads_and_in_workers",
    ),
    "defaultContainerEnvs": (
        FLAGS,
        "test_defaults_of_the_configuration_are_in_every_pod_unless_the_user_says_otherwise",
    ),
    "defaultPodAnnotations": (
        FLAGS,
        "test_defaults_of_the_configuration_are_in_every_pod_unless_the_user_says_otherwise",
    ),
    "defaultPodLabels": (
        FLAGS,
        "test_defaults_of_the_configuration_are_in_every_pod_unless_the_user_says_otherwise",
    ),
    "deleteRayJobAfterJobFinishes": (CLEANUP, "test_the_job_itself_is_deleted_if_the_operator_is_told_so"),
}
CHANGES_WHAT_IS_MADE = (VARIABLES, "test_a_variable_changes_what_is_made")
OBSERVED_VARIABLES = {
    "ENABLE_WEBHOOKS": (WEBHOOKS, "test_without_the_very_word_there_are_no_webhooks"),
    "ENABLE_INIT_CONTAINER_INJECTION": CHANGES_WHAT_IS_MADE,
    "ENABLE_PROBES_INJECTION": CHANGES_WHAT_IS_MADE,
    "EAGLERAY_READINESS_PERIOD_SECONDS": CHANGES_WHAT_IS_MADE,
    "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": CHANGES_WHAT_IS_MADE,
    "CLUSTER_DOMAIN": CHANGES_WHAT_IS_MADE,
    "USE_INGRESS_ON_OPENSHIFT": (
        VARIABLES,
        "test_on_openshift_the_way_in_is_a_route_unless_an_ingress_is_asked_for",
    ),
    "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": (
        VARIABLES,
        "test_a_cluster_is_looked_at_again_after_the_resync",
    ),
    "ENABLE_GCS_FT_REDIS_CLEANUP": (
        VARIABLES,
        "test_the_state_in_redis_is_cleaned_up_unless_that_is_switched_off",
    ),
    "ENABLE_ZERO_DOWNTIME": (SERVICES, "test_whether_another_spec_makes_another_cluster"),
    "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": (
        CLEANUP,
        "test_the_job_itself_is_deleted_if_the_operator_is_told_so",
    ),
    "ENABLE_DETERMINISTIC_HEAD_POD_NAME": CHANGES_WHAT_IS_MADE,
    "ENABLE_LOGIN_SHELL": CHANGES_WHAT_IS_MADE,
    "ENABLE_RANDOM_POD_DELETE": (
        VARIABLES,
        "test_surplus_workers_are_the_autoscalers_business_unless_told_otherwise",
    ),
    "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS": (
        TIMERS,
        "test_the_grace_period_is_an_option",
    ),
    "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS": (TIMERS, "test_the_timeout_is_an_option"),
}
OBSERVED_GATES = {
    "RayClusterStatusConditions": (
        FLAGS,
        "test_without_their_gate_there_are_no_conditions_and_suspend_works_all_the_same",
    ),
    "RayJobDeletionPolicy": (
        "eagleray/rayjob/test_cases_validation.py",
        "test_without_its_gate_a_deletion_strategy_is_rejected",
    ),
    "RayMultiHostIndexing": (FLAGS, "test_workers_are_labelled_with_their_indexes"),
    "RayServiceIncrementalUpgrade": (
        SERVICES,
        "test_without_its_gate_an_incremental_strategy_upgrades_nothing",
    ),
    "RayCronJob": ("eagleray/raycronjob/test_cases_schedule.py", "test_without_the_gate_nothing_happens"),
    "SidecarSubmitterRestart": (FLAGS, "test_restarts_of_sidecar_submitters_need_a_server_that_knows_them"),
    "RayClusterNetworkPolicy": LATER,
    "GCSFaultToleranceEmbeddedStorage": (
        "eagleray/raycluster/test_cases_storage.py",
        "test_a_claim_is_made_for_the_head_and_goes_with_the_cluster",
    ),
    "RayClusterMTLS": LATER,
    "RayClusterHistoryServer": LATER,
    "KubernetesWAS": (
        "eagleray/schedulers/test_workload.py",
        "test_a_cluster_that_asks_has_a_workload_and_a_pod_group",
    ),
    "AsyncJobInfoQuery": (FLAGS, "test_the_gate_of_asynchronous_polling_changes_nothing"),
}
SERIES = ("eagleray/runtime/test_series.py", "")
IN_THE_CLUSTER = (METRICS, "test_a_cluster_is_told_of_as_long_as_it_is_there")
SIZES = (METRICS, "test_the_sizes_of_requests_and_answers_are_measured")
OBSERVED_METRICS = {
    "kuberay_cluster_info": IN_THE_CLUSTER,
    "kuberay_cluster_condition_provisioned": IN_THE_CLUSTER,
    "kuberay_cluster_provisioned_duration_seconds": IN_THE_CLUSTER,
    "controller_runtime_active_workers": SERIES,
    "controller_runtime_max_concurrent_reconciles": SERIES,
    "controller_runtime_reconcile_errors_total": SERIES,
    "controller_runtime_reconcile_panics_total": SERIES,
    "controller_runtime_reconcile_time_seconds": SERIES,
    "controller_runtime_reconcile_timeouts_total": SERIES,
    "controller_runtime_reconcile_total": SERIES,
    "controller_runtime_terminal_reconcile_errors_total": SERIES,
    "eagleray_reconcile_step_errors_total": (METRICS, "test_a_failed_step_is_counted_under_its_name"),
    "leader_election_master_status": (
        FLAGS,
        "test_the_lease_is_in_the_namespace_that_was_told_and_let_go_at_the_end",
    ),
    "rest_client_dns_resolution_duration_seconds": SERIES,
    "rest_client_rate_limiter_duration_seconds": (
        METRICS,
        "test_the_time_that_requests_are_held_back_is_measured",
    ),
    "rest_client_request_duration_seconds": (METRICS, "test_requests_are_counted_and_timed"),
    "rest_client_request_retries_total": (METRICS, "test_a_request_that_is_sent_again_is_counted"),
    "rest_client_request_size_bytes": SIZES,
    "rest_client_requests_total": (METRICS, "test_requests_are_counted_and_timed"),
    "rest_client_response_size_bytes": SIZES,
    "workqueue_adds_total": SERIES,
    "workqueue_depth": SERIES,
    "workqueue_longest_running_processor_seconds": SERIES,
    "workqueue_queue_duration_seconds": SERIES,
    "workqueue_retries_total": SERIES,
    "workqueue_unfinished_work_seconds": SERIES,
    "workqueue_work_duration_seconds": SERIES,
}


class Asked(dict[str, str]):
    """An environment that notes which variables somebody asks for."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def get(self, name, default=None):
        self.names.add(name)
        return default


def variables():
    asked = Asked()
    read_environment(asked)
    return asked.names


@cache
def functions_of(file):
    tree = ast.parse((TESTS / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(
    ("names", "table"),
    [
        pytest.param(set(OPTIONS), OBSERVED_OPTIONS, id="options"),
        pytest.param(variables(), OBSERVED_VARIABLES, id="variables"),
        pytest.param(set(GATES), OBSERVED_GATES, id="gates"),
    ],
)
def test_the_tables_have_everything_that_an_operator_can_be_told(names, table):
    assert names == table.keys()


@pytest.mark.usefixtures("virtual_time")
async def test_the_table_has_everything_that_is_measured():
    async with world_of(flags=("--enable-metrics", "--enable-leader-election")) as world:
        await world.create(raycluster())
        await world.ready()
        page = world.operator.registry.render()
    measured = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE ")}
    # What every process has is the operating system's word, and what RayJobs have is their tests' business.
    ours = {name for name in measured if not name.startswith(("process_", "kuberay_job_"))}
    assert ours == OBSERVED_METRICS.keys()


@pytest.mark.parametrize(
    "table", [OBSERVED_OPTIONS, OBSERVED_VARIABLES, OBSERVED_GATES, OBSERVED_METRICS], ids=len
)
def test_what_the_tables_name_exists(table):
    for name, where in table.items():
        if isinstance(where, str):
            continue
        file, function = where
        if function:
            assert function in functions_of(file), name
        else:
            assert name in (TESTS / file).read_text(), f"{file} does not speak of {name}"
