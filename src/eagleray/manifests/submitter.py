"""The submitter of a RayJob: the command that hands the entrypoint to Ray at most once, and what runs it."""

import copy
import json
from typing import Any, NamedTuple

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster, ray_container
from eagleray.manifests.environment import TOKEN_MOUNT, add_auth, token_volume
from eagleray.manifests.pods import shell
from eagleray.manifests.rayjob import SIDECAR, RayJob, origin_labels, owner_of
from eagleray.manifests.settings import Settings
from eagleray.rayapi.versions import parse_semantic
from kubewire.gotext import quote
from kubewire.times import parse_time
from kubewire.yamltext import YamlError, load

Object = dict[str, Any]

CONTAINER = "ray-job-submitter"
DEFAULT_BACKOFF_LIMIT = 2
# How a submitter ends that finds another head than the one it was made for.
OTHER_HEAD_EXIT_CODE = 86
# By which a submitter with a command of its own, such as eagleray-submitter, knows the head that it was made for.
SESSION_VARIABLE = "EAGLERAY_HEAD_SESSION"
REQUESTED_AT_VARIABLE = "EAGLERAY_REQUESTED_AT"

_DEFAULT_DASHBOARD_PORT = 8265
_OLDEST_RAY_WITH_METADATA = (2, 6, 0)


class NotSubmittable(ValueError):
    """A job that no command can submit; the message says why."""


class Expected(NamedTuple):
    """The head that an attempt was meant for: its session, or at least the time by which it had begun."""

    session: str
    requested_at: str  # RFC 3339


def submitter_job(job: RayJob, cluster: Cluster, expected: Expected, settings: Settings) -> Object:
    """Return the Job that submits an attempt and follows its log."""
    template = submitter_template(job, cluster)
    pod = template.setdefault("spec", {})
    address = _with_scheme(job.dashboard_url)
    command = _command(job, address, f"{address}/api/gcs_healthz", check=_check(address, expected))
    if pod["containers"][0].get("command"):
        _tell_head(pod["containers"][0], expected)
    _configure(pod["containers"][0], job, command, settings, always=False)
    add_auth(cluster, pod["containers"][0])
    if volume := token_volume(cluster):
        pod["volumes"] = [*(pod.get("volumes") or []), volume]
    labels = {**origin_labels(job), naming.CREATED_BY_LABEL: naming.APP_LABELS[naming.CREATED_BY_LABEL]}
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    limit = (job.spec.get("submitterConfig") or {}).get("backoffLimit")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "labels": labels,
            "ownerReferences": [owner_of(job)],
        },
        "spec": {"backoffLimit": DEFAULT_BACKOFF_LIMIT if limit is None else limit, "template": template},
    }


def sidecar_submitter(job: RayJob, cluster: Cluster, settings: Settings) -> Object:
    """Return the container that submits from beside Ray, in the head's own Pod."""
    restarts = settings.gates.enabled("SidecarSubmitterRestart")
    ports = ray_container(cluster.head).get("ports") or []
    port = next(
        (port["containerPort"] for port in ports if port.get("name") == "dashboard"), _DEFAULT_DASHBOARD_PORT
    )
    container = _default_container(cluster)
    # The head and its submitter come and go together, so there is no other head to be wary of.
    health = f"http://localhost:{port}/api/gcs_healthz"
    command = _command(job, f"http://127.0.0.1:{port}", health, check=() if restarts else None)
    _configure(container, job, command, settings, always=True)
    add_auth(cluster, container)
    if restarts:
        container["restartPolicy"] = "OnFailure"
    return container


def submitter_template(job: RayJob, cluster: Cluster) -> Object:
    """Return the Pod of a submitter as it is described: by the user, for one in a Pod of its own, or by default."""
    given: Object | None = job.spec.get("submitterPodTemplate") if job.mode != SIDECAR else None
    default = {"spec": {"containers": [_default_container(cluster)], "restartPolicy": "Never"}}
    return copy.deepcopy(given) or default


def _default_container(cluster: Cluster) -> Object:
    return {
        "name": CONTAINER,
        "image": ray_container(cluster.head).get("image"),
        "resources": {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "200Mi"},
        },
    }


def _configure(container: Object, job: RayJob, command: str, settings: Settings, *, always: bool) -> None:
    if always or not container.get("command"):
        container["command"] = shell(settings, "e")
        container["args"] = [command]
    container["env"] = [
        *(container.get("env") or []),
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        # Beside Ray it is empty: the container is described before there is a Service, and needs none.
        {"name": "RAY_DASHBOARD_ADDRESS", **({} if job.mode == SIDECAR else {"value": job.dashboard_url})},
        {"name": "RAY_JOB_SUBMISSION_ID", "value": job.job_id},
    ]


def _tell_head(container: Object, expected: Expected) -> None:
    container["env"] = [
        *(container.get("env") or []),
        {"name": SESSION_VARIABLE, "value": expected.session},
        {"name": REQUESTED_AT_VARIABLE, "value": _epoch(expected.requested_at)},
    ]


def _with_scheme(url: str) -> str:
    return url if url.startswith("http://") else f"http://{url}"


def _check(address: str, expected: Expected) -> tuple[str, ...]:
    """Return the words that end the submitter if another head than the expected one answers.

    Where the session is not known, the head must have begun before the attempt was meant for it: the name of a
    session tells when that was.
    """
    program = (
        "import datetime as d, json, os, re, sys, urllib.request as u; "
        f"kept = '{TOKEN_MOUNT}/token'; "
        "token = os.environ.get('RAY_AUTH_TOKEN') or (open(kept).read() if os.path.exists(kept) else ''); "
        "headers = {'x-ray-authorization': 'Bearer ' + token} if token else {}; "
        "answer = u.urlopen(u.Request(sys.argv[1] + '/api/version', headers=headers), timeout=10); "
        "found = json.load(answer).get('session_name') or ''; "
        "begun = re.match('session_([0-9_-]{26})', found); "
        "late = lambda: d.datetime.strptime(begun[1], '%Y-%m-%d_%H-%M-%S_%f').timestamp() > float(sys.argv[3]); "
        "other = found != sys.argv[2] if sys.argv[2] else bool(begun) and late(); "
        f"sys.exit({OTHER_HEAD_EXIT_CODE} if other else 0)"
    )
    lost = "The job was lost with the head that it was submitted to"
    return (
        "python",
        "-c",
        f'"{program}"',
        address,
        f'"{expected.session}"',
        _epoch(expected.requested_at),
        f'|| {{ code=$? ; echo "{lost}" ; exit $code ; }} ;',
    )


def _epoch(moment: str) -> str:
    return str(int(parse_time(moment).timestamp()))


def _command(job: RayJob, address: str, health: str, *, check: tuple[str, ...] | None) -> str:
    """Return the whole command. With a `check`, a submission that Ray knows already is only followed."""
    job_id = job.job_id
    probe = (
        f"import urllib.request; r=urllib.request.urlopen('{health}', timeout=10);"
        " exit(0 if b'success' in r.read() else 1)"
    )
    waiting = f"Waiting for Ray Dashboard GCS to become healthy at {address} ..."
    words = [f'until python -c "{probe}" >/dev/null 2>&1 ; do echo "{waiting}" ; sleep 2 ; done ;']
    if check is not None:
        words.append(f"if ! ray job status --address {address} {job_id} >/dev/null 2>&1 ; then")
        words += check
    words.append(f"ray job submit --address {address}")
    if check is not None:
        words.append("--no-wait")
    words += _options(job)
    words += ["--", (job.spec.get("entrypoint") or "").strip(), ";"]
    if check is not None:
        words.append(f"fi ; ray job logs --address {address} --follow {job_id}")
    return " ".join(words)


def _options(job: RayJob) -> list[str]:
    spec = job.spec
    words: list[str] = []
    if environment := spec.get("runtimeEnvYAML"):
        words += ["--runtime-env-json", quote(_json(runtime_env(environment)))]
    if metadata := spec.get("metadata"):
        _require_metadata_support((spec.get("rayClusterSpec") or {}).get("rayVersion") or "")
        words += ["--metadata-json", quote(_json(metadata))]
    if job.job_id:
        words += ["--submission-id", job.job_id]
    for field, option in (("entrypointNumCpus", "cpus"), ("entrypointNumGpus", "gpus")):
        if (amount := spec.get(field) or 0) > 0:
            words += [f"--entrypoint-num-{option}", f"{amount:.6f}"]
    if resources := spec.get("entrypointResources"):
        words += ["--entrypoint-resources", quote(resources)]
    return words


def runtime_env(text: str) -> Object:
    """Return the runtime environment that a job asks for."""
    try:
        value = load(text)
    except YamlError as bad:
        raise NotSubmittable(f"spec.runtimeEnvYAML: {bad}") from bad
    if value is not None and not isinstance(value, dict):
        raise NotSubmittable("spec.runtimeEnvYAML: has to be a mapping")
    return value or {}


def _require_metadata_support(version: str) -> None:
    if not version:
        return
    parsed = parse_semantic(version)
    if parsed is None or not parsed.reaches(*_OLDEST_RAY_WITH_METADATA):
        raise NotSubmittable(
            f"spec.metadata needs Ray 2.6.0 or later, and rayVersion is {version}; correct it, or leave metadata out"
        )


def _json(value: object) -> str:
    """Return compact JSON with sorted keys, in which nothing could end a script of a web page."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
