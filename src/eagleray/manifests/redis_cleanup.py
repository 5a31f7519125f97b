"""The Job that removes a deleted cluster's state from Redis."""

from typing import Any

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.pods import head_pod, shell
from eagleray.manifests.settings import Settings

Object = dict[str, Any]

NODE_TYPE = "redis-cleanup"
DEADLINE_SECONDS = 300

# Ray's own function does the work; this only finds out where the state is, as Ray would.
_SCRIPT = """\
import os, sys
from urllib.parse import urlparse
from ray._private.gcs_utils import cleanup_redis_storage
address = os.getenv("RAY_REDIS_ADDRESS", "").split(",")[0]
url = urlparse(address if "://" in address else "redis://" + address)
options = {}
if "REDIS_USERNAME" in os.environ:
    options["username"] = os.environ["REDIS_USERNAME"] or url.username
done = cleanup_redis_storage(
    host=url.hostname,
    port=url.port,
    password=os.getenv("REDIS_PASSWORD", url.password),
    use_ssl=url.scheme == "rediss",
    storage_namespace=os.environ["RAY_external_storage_namespace"],
    **options,
)
sys.exit(0 if done else 1)
"""


def cleanup_name(cluster: Cluster) -> str:
    """Return the name of the Job."""
    return naming.checked_label(f"{cluster.name}-redis-cleanup")


def redis_cleanup_job(cluster: Cluster, settings: Settings) -> Object:
    """Return the Job: a head's container that cleans up instead of starting Ray."""
    pod = head_pod(cluster, "", settings)
    metadata, spec = pod["metadata"], pod["spec"]
    labels = {**metadata["labels"], naming.NODE_TYPE_LABEL: NODE_TYPE}
    annotations = metadata.get("annotations") or {}
    container = spec["containers"][0]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        container.pop(probe, None)
    container["command"] = shell(settings)
    hint = "To keep the state of deleted clusters in Redis, set ENABLE_GCS_FT_REDIS_CLEANUP=false on the operator."
    container["args"] = [f"echo '{hint}' && python -c '{_SCRIPT}'"]
    container["env"] += [
        {"name": "RAY_redis_db_connect_retries", "value": "120"},
        {"name": "RAY_redis_db_connect_wait_milliseconds", "value": "500"},
    ]
    amounts = {"cpu": "200m", "memory": "256Mi"}
    container["resources"] = {"limits": dict(amounts), "requests": dict(amounts)}
    spec["containers"] = [container]
    spec["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": cleanup_name(cluster),
            "namespace": cluster.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": metadata["ownerReferences"],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec},
        },
    }
