"""What builders are told besides the cluster: the operator's switches and its configuration."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from eagleray import __version__
from eagleray.gates import DEFAULT_GATES, Gates
from eagleray.runtime.environment import Environment
from eagleray.runtime.options import Options

Object = dict[str, Any]

# How objects name the operator that made them. Another one in their annotations is restamped, never acted on.
VERSION = f"eagleray-{__version__}"


class Settings(NamedTuple):
    """The switches that change what is built; the defaults are those of an operator that was told nothing."""

    version: str = VERSION
    cluster_domain: str = "cluster.local"
    login_shell: bool = False
    probes: bool = True
    # How often a Pod is asked whether it is ready, from its start on; 0 is as the reference does.
    readiness_period: int = 0
    init_container: bool = True
    deterministic_head_name: bool = False
    head_cluster_ip: bool = False
    gates: Gates = DEFAULT_GATES
    container_env: tuple[Object, ...] = ()
    pod_labels: Mapping[str, str] = {}
    pod_annotations: Mapping[str, str] = {}
    head_sidecars: tuple[Object, ...] = ()
    worker_sidecars: tuple[Object, ...] = ()


def settings_of(options: Options) -> Settings:
    """Return what an operator's options mean for the objects that it makes."""
    return switched(options.environment)._replace(
        gates=options.gates,
        container_env=options.container_env,
        pod_labels=options.pod_labels,
        pod_annotations=options.pod_annotations,
        head_sidecars=options.head_sidecars,
        worker_sidecars=options.worker_sidecars,
    )


def switched(environment: Environment) -> Settings:
    """Return the settings that environment variables alone make."""
    return Settings(
        cluster_domain=environment.cluster_domain,
        login_shell=environment.login_shell,
        probes=environment.probes_injection,
        readiness_period=environment.readiness_period_seconds,
        init_container=environment.init_container_injection,
        deterministic_head_name=environment.deterministic_head_pod_name,
        head_cluster_ip=environment.head_cluster_ip_service,
    )
