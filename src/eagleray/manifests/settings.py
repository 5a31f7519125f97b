"""What builders are told besides the cluster: the operator's switches and its configuration."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from eagleray.gates import DEFAULT_GATES, Gates

Object = dict[str, Any]


class Settings(NamedTuple):
    """The switches that change what is built; the defaults are those of an operator that was told nothing."""

    version: str = "eagleray-dev"
    cluster_domain: str = "cluster.local"
    login_shell: bool = False
    probes: bool = True
    init_container: bool = True
    deterministic_head_name: bool = False
    head_cluster_ip: bool = False
    gates: Gates = DEFAULT_GATES
    container_env: tuple[Object, ...] = ()
    pod_labels: Mapping[str, str] = {}
    pod_annotations: Mapping[str, str] = {}
    head_sidecars: tuple[Object, ...] = ()
    worker_sidecars: tuple[Object, ...] = ()


def switch(environment: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return a switch of the environment: only the word that contradicts the default counts, in any case."""
    value = environment.get(name, "").lower()
    return value != "false" if default else value == "true"


def settings_from(environment: Mapping[str, str], **others: Any) -> Settings:
    """Return the settings that environment variables and the given values make."""
    return Settings(
        cluster_domain=environment.get("CLUSTER_DOMAIN") or "cluster.local",
        login_shell=switch(environment, "ENABLE_LOGIN_SHELL", default=False),
        probes=switch(environment, "ENABLE_PROBES_INJECTION", default=True),
        init_container=switch(environment, "ENABLE_INIT_CONTAINER_INJECTION", default=True),
        deterministic_head_name=switch(environment, "ENABLE_DETERMINISTIC_HEAD_POD_NAME", default=False),
        head_cluster_ip=switch(environment, "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", default=False),
        **others,
    )
