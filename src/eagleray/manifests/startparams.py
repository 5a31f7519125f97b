"""The parameters of `ray start`, and the command that they make."""

import json
import re
from collections.abc import Mapping
from typing import Any

from eagleray.manifests.cluster import Cluster, ray_container
from eagleray.manifests.settings import Settings
from kubewire.quantity import Quantity, QuantityError

Object = dict[str, Any]
Params = dict[str, str]

METRICS_PORT = 8080
AGENT_PORT = 52365

_MIG = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb\Z")
# Accelerators that Ray knows by a resource of its own.
_ACCELERATORS = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU"}
# Switches whose value Ray wants to see even where it is true or false.
_VALUED_SWITCHES = frozenset(("log-color", "include-dashboard", "include-log-monitor"))


def is_gpu(resource: str) -> bool:
    """Tell whether a resource counts as a GPU."""
    return resource.endswith("gpu") or bool(_MIG.search(resource))


def head_params(cluster: Cluster) -> Params:
    """Return all parameters of the head's `ray start`."""
    group = cluster.head
    params = _given(group)
    params.setdefault("dashboard-host", "0.0.0.0")  # noqa: S104 - inside the Pod, where the head Service points
    if cluster.autoscaling:
        params["no-monitor"] = "true"
    options = cluster.fault_tolerance or {}
    if options.get("redisUsername") is not None:
        params["redis-username"] = "$REDIS_USERNAME"
    if options.get("redisPassword") is not None:
        params["redis-password"] = "$REDIS_PASSWORD"
    return _completed(params, group)


def worker_params(cluster: Cluster, group: Object, settings: Settings) -> Params:
    """Return all parameters of a worker's `ray start`."""
    params = _given(group)
    params.setdefault("address", f"{cluster.head_host(settings)}:{cluster.head_port}")
    return _completed(params, group)


def start_command(params: Mapping[str, str], *, head: bool) -> str:
    """Return the `ray start` command; its spaces are part of what users compare and override."""
    return ("ray start --head " if head else "ray start ") + "".join(
        _option(key, params[key]) for key in sorted(params)
    )


def _option(key: str, value: str) -> str:
    if value.lower() in ("true", "false") and key not in _VALUED_SWITCHES:
        return f" --{key} " if value.lower() == "true" else ""
    return f" --{key}={value} "


def _given(group: Object) -> Params:
    """Return what the user asked for: rayStartParams, overruled by the group's resources and labels."""
    params: Params = dict(group.get("rayStartParams") or {})
    params |= _resource_params(group.get("resources") or {})
    if labels := group.get("labels"):
        params["labels"] = ",".join(f"{key}={labels[key]}" for key in sorted(labels))
    return params


def _resource_params(resources: Mapping[str, Any]) -> Params:
    params: Params = {}
    custom: dict[str, float] = {}
    for name in sorted(resources):
        amount = _quantity(resources[name])
        if amount is None:
            continue
        lowered = name.lower()
        if lowered == "cpu":
            params["num-cpus"] = str(amount.value())
        elif lowered == "memory":
            params["memory"] = str(amount.value())
        elif is_gpu(lowered):
            params.setdefault("num-gpus", str(amount.value()))
        else:
            custom[name] = float(amount)
    if custom:
        params["resources"] = _quoted_json(custom)
    return params


def _completed(params: Params, group: Object) -> Params:
    params.setdefault("metrics-export-port", str(METRICS_PORT))
    params.setdefault("dashboard-agent-listen-port", str(AGENT_PORT))
    params["block"] = "true"
    resources = ray_container(group).get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    cpu = _quantity(limits.get("cpu", requests.get("cpu")))
    if "num-cpus" not in params and cpu is not None and cpu.nano:
        params["num-cpus"] = str(cpu.value())
    memory = _quantity(limits.get("memory"))
    if "memory" not in params and memory is not None and memory.nano:
        params["memory"] = str(memory.value())
    _add_accelerators(params, limits)
    return params


def _add_accelerators(params: Params, limits: Mapping[str, Any]) -> None:
    known = _existing_resources(params.get("resources"))
    if known is None:
        return  # what cannot be read is left alone, with all that would go beside it
    has_accelerator = any(name in known for name in _ACCELERATORS.values())
    for name in sorted(limits):
        amount = _quantity(limits[name])
        if amount is None or not amount.nano:
            continue
        if is_gpu(name):
            params.setdefault("num-gpus", str(amount.value()))
        elif name in _ACCELERATORS and not has_accelerator:
            known[_ACCELERATORS[name]] = float(amount.value())
            params["resources"] = _quoted_json(known)
            has_accelerator = True


def _existing_resources(text: str | None) -> dict[str, float] | None:
    if not text:
        return {}
    try:
        found = json.loads(text.strip("'\"` "))
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(isinstance(value, int | float) for value in found.values()):
        return None
    return found


def _quoted_json(amounts: Mapping[str, float]) -> str:
    whole = {name: int(value) if float(value).is_integer() else value for name, value in amounts.items()}
    return f"'{json.dumps(whole, separators=(',', ':'), sort_keys=True)}'"


def _quantity(value: Any) -> Quantity | None:
    if value is None:
        return None
    try:
        return Quantity.of(value)
    except QuantityError:
        return None
