"""Small valid objects to break, and what the rules say of them."""

from typing import Any

from eagleray.gates import parse_gates
from eagleray.rayapi.problems import Problem
from eagleray.rayapi.rules import ValidationConfig, problems_of

Json = dict[str, Any]


def problems(obj: Json, gates: str = "") -> list[Problem]:
    return problems_of(obj, ValidationConfig(parse_gates(gates)))


def rules(obj: Json, gates: str = "") -> list[str]:
    """The names of the rules that the object breaks, in order, each once."""
    return list(dict.fromkeys(problem.rule for problem in problems(obj, gates)))


def only(obj: Json, gates: str = "") -> Problem:
    """The one problem of the object."""
    (problem,) = problems(obj, gates)
    return problem


def pod(container: Json | None = None, **spec: Any) -> Json:
    return {"spec": {"containers": [{"name": "ray", "image": "ray:2.52.0", **(container or {})}], **spec}}


def env(*names: str, **values: str) -> Json:
    """A container part with these variables set."""
    return {
        "env": [
            {"name": name, "value": value} for name, value in {**dict.fromkeys(names, "x"), **values}.items()
        ]
    }


def mounts(*entries: tuple[str, str]) -> Json:
    return {"volumeMounts": [{"name": name, "mountPath": path} for name, path in entries]}


def head(container: Json | None = None, pod_spec: Json | None = None, **spec: Any) -> Json:
    return {"template": pod(container, **(pod_spec or {})), **spec}


def group(
    name: str | None = "small",
    container: Json | None = None,
    pod_spec: Json | None = None,
    **spec: Any,
) -> Json:
    template = pod(container, **(pod_spec or {}))
    return {"groupName": name, "minReplicas": 0, "maxReplicas": 5, "template": template, **spec}


def cluster_spec(*groups: Json, **spec: Any) -> Json:
    return {"headGroupSpec": head(), "workerGroupSpecs": list(groups), **spec}


def raycluster(*groups: Json, metadata: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "test", **(metadata or {})},
        "spec": cluster_spec(*groups, **spec),
    }


def rayjob(metadata: Json | None = None, **spec: Any) -> Json:
    """A RayJob with a cluster of its own, unless the spec says otherwise; a value None takes a field away."""
    fields = {"entrypoint": "python x.py", "rayClusterSpec": cluster_spec(), **spec}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "test", **(metadata or {})},
        "spec": {name: value for name, value in fields.items() if value is not None},
    }


def selecting(**spec: Any) -> Json:
    """A RayJob on a cluster that exists."""
    return rayjob(rayClusterSpec=None, clusterSelector={"ray.io/cluster": "shared"}, **spec)


def rayservice(metadata: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": "test", **(metadata or {})},
        "spec": {"rayClusterConfig": cluster_spec(), **spec},
    }


def raycronjob(metadata: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCronJob",
        "metadata": {"name": "test-cronjob", **(metadata or {})},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": rayjob()["spec"], **spec},
    }
