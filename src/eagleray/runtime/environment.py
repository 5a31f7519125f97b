"""The environment variables that change what the operator does."""

from collections.abc import Mapping
from typing import NamedTuple

from eagleray.runtime.optionkinds import shown


class Environment(NamedTuple):
    """What the variables say; the defaults are those of an empty environment."""

    webhooks: bool = False
    init_container_injection: bool = True
    probes_injection: bool = True
    readiness_period_seconds: int = 0
    head_cluster_ip_service: bool = False
    cluster_domain: str = "cluster.local"
    ingress_on_openshift: bool = False
    raycluster_requeue_seconds: int = 300
    redis_cleanup: bool = True
    zero_downtime: bool = True
    delete_rayjob: bool = False
    deterministic_head_pod_name: bool = False
    login_shell: bool = False
    random_pod_delete: bool = False
    rayjob_transition_grace_seconds: int = 300
    rayjob_status_check_seconds: int = 300


def read_environment(variables: Mapping[str, str]) -> tuple[Environment, list[str]]:
    """Return what the variables say, and a sentence about each that is malformed and therefore ignored."""
    notices: list[str] = []

    def seconds(name: str, default: int, least: int) -> int:
        text = variables.get(name, "")
        try:
            value = int(text) if len(text) <= 18 else least - 1
        except ValueError:
            value = least - 1
        if value >= least:
            return value
        if text:
            notices.append(
                f"{name}: {shown(text)} is not a number of seconds from {least} on; {default} is used"
            )
        return default

    environment = Environment(
        # The one variable whose case counts, as in the reference.
        webhooks=variables.get("ENABLE_WEBHOOKS") == "true",
        init_container_injection=_unless_false(variables, "ENABLE_INIT_CONTAINER_INJECTION"),
        probes_injection=_unless_false(variables, "ENABLE_PROBES_INJECTION"),
        readiness_period_seconds=seconds("EAGLERAY_READINESS_PERIOD_SECONDS", 0, least=1),
        head_cluster_ip_service=_if_true(variables, "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE"),
        cluster_domain=variables.get("CLUSTER_DOMAIN") or "cluster.local",
        ingress_on_openshift=_if_true(variables, "USE_INGRESS_ON_OPENSHIFT"),
        raycluster_requeue_seconds=seconds("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", 300, least=1),
        redis_cleanup=_unless_false(variables, "ENABLE_GCS_FT_REDIS_CLEANUP"),
        zero_downtime=_unless_false(variables, "ENABLE_ZERO_DOWNTIME"),
        delete_rayjob=_if_true(variables, "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES"),
        deterministic_head_pod_name=_if_true(variables, "ENABLE_DETERMINISTIC_HEAD_POD_NAME"),
        login_shell=_if_true(variables, "ENABLE_LOGIN_SHELL"),
        random_pod_delete=_if_true(variables, "ENABLE_RANDOM_POD_DELETE"),
        rayjob_transition_grace_seconds=seconds(
            "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", 300, least=0
        ),
        rayjob_status_check_seconds=seconds("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", 300, least=1),
    )
    return environment, notices


def _if_true(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() == "true"


def _unless_false(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() != "false"
