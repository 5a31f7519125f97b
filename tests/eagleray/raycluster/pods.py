"""Pods as the controller sees them."""

from eagleray.raycluster.views import PodView, pod_view


def pod(name: str, node_type: str = "worker", group: str = "small", **facts) -> PodView:
    """Return a running, ready Pod; facts say what is different about it."""
    labels = {"ray.io/node-type": node_type, "ray.io/group": group, **facts.pop("labels", {})}
    ready = facts.pop("ready", "True")
    conditions = facts.pop("conditions", [{"type": "Ready", "status": ready}] if ready else [])
    state = {"terminated": {"reason": "Error"}} if facts.pop("ray_ended", False) else {"running": {}}
    return pod_view(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "labels": labels,
                "annotations": facts.pop("annotations", {}),
                "creationTimestamp": facts.pop("made", "2026-01-01T00:00:00Z"),
                "deletionTimestamp": "2026-01-01T01:00:00Z" if facts.pop("terminating", False) else None,
            },
            "spec": {
                "restartPolicy": facts.pop("restart", "Always"),
                "containers": [{"name": "ray"}],
                "nodeName": facts.pop("node", "n"),
            },
            "status": {
                "phase": facts.pop("phase", "Running"),
                "podIP": "10.0.0.1",
                "conditions": conditions,
                "containerStatuses": facts.pop("containers", [{"name": "ray", "state": state}]),
            },
        }
    )


def head(name: str = "head", **facts) -> PodView:
    return pod(name, "head", "headgroup", **facts)


def host(name: str, replica: str, index: int, number: int, **facts) -> PodView:
    """Return one host of a replica of several."""
    labels = {
        "ray.io/worker-group-replica-name": replica,
        "ray.io/worker-group-replica-index": str(index),
        "ray.io/replica-host-index": str(number),
    }
    return pod(name, labels=labels, **facts)
