"""Probes that ask Ray itself whether it is well."""

from collections.abc import Mapping
from typing import Any

from eagleray.manifests.cluster import Cluster
from eagleray.manifests.startparams import AGENT_PORT
from eagleray.rayapi.versions import parse_version

Object = dict[str, Any]

DASHBOARD_PORT = 8265
SERVE_PORT = 8000
# From this version on one endpoint answers for the whole node.
_HEALTHZ_SINCE = (2, 53)

_TIMEOUTS = {True: 5, False: 2}


def add_probes(
    cluster: Cluster, container: Object, params: Mapping[str, str], *, head: bool, period: int = 0
) -> None:
    """Give a Ray container the probes that the user has not set.

    With a `period` readiness is asked for that often and from the start on, which costs a little and shows sooner.
    """
    agent_port = _port(params, "dashboard-agent-listen-port", AGENT_PORT)
    raylet = _fetch(2, agent_port, "api/local_raylet_healthz")
    checks = [raylet]
    if head:
        checks.append(_fetch(10, _port(params, "dashboard-port", DASHBOARD_PORT), "api/gcs_healthz"))
    version = parse_version(cluster.ray_version)
    if version is not None and version >= _HEALTHZ_SINCE:
        handler: Object = {"httpGet": {"path": "/api/healthz", "port": agent_port}}
    else:
        handler = _exec(checks)
    if not container.get("livenessProbe"):
        container["livenessProbe"] = _probe(handler, 30, 120, head=head)
    if container.get("readinessProbe"):
        return
    if cluster.crd_type == "RayService" and not head:
        serving = _fetch(10, _serve_port(container), "-/healthz")
        container["readinessProbe"] = _probe(_exec([raylet, serving]), 10, 1, head=head)
    else:
        container["readinessProbe"] = _probe(handler, 10, 10, head=head)
    if period:
        container["readinessProbe"] = _sooner(container["readinessProbe"], period)


def _sooner(probe: Object, period: int) -> Object:
    """Return a probe that asks from the start on, and takes as long as before to give up a Pod that was ready."""
    lasting = (probe["failureThreshold"] - 1) * probe["periodSeconds"]
    times = {
        "initialDelaySeconds": period,
        "periodSeconds": period,
        "failureThreshold": 1 + lasting // period,
    }
    return {**probe, **times}


def _probe(handler: Object, delay: int, failures: int, *, head: bool) -> Object:
    return {
        **handler,
        "initialDelaySeconds": delay,
        "timeoutSeconds": _TIMEOUTS[head],
        "periodSeconds": 5,
        "successThreshold": 1,
        "failureThreshold": failures,
    }


def _exec(checks: list[str]) -> Object:
    return {"exec": {"command": ["bash", "-c", " && ".join(checks)]}}


def _fetch(timeout: int, port: int, path: str) -> str:
    return f"wget --tries 1 -T {timeout} -q -O- http://localhost:{port}/{path} | grep success"


def _port(params: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(params.get(name, default))
    except ValueError:
        return default


def _serve_port(container: Object) -> int:
    for port in container.get("ports") or []:
        if port.get("name") == "serve":
            return int(port["containerPort"])
    return SERVE_PORT
