"""The rules of a RayJob, and of the job that a RayCronJob's template describes."""

from collections.abc import Iterable, Iterator

from eagleray.rayapi.problems import Problem, at, quoted, shortened
from eagleray.rayapi.rules.naming import name_of, not_a_label, too_long
from eagleray.rayapi.rules.raycluster import described_cluster
from eagleray.rayapi.rules.raycluster.security import kubernetes_tokens
from eagleray.rayapi.rules.rayjob.deletion import DELETION
from eagleray.rayapi.rules.rayjob.view import SELECTOR_KEY, Job, rulebook
from eagleray.rayapi.rules.reading import Object, integer, is_set, mapping, text
from eagleray.rayapi.rules.rulebook import Finding, Findings, Rule, Scope, broken

LONGEST_NAME = 47

_CLUSTER = ("spec", "rayClusterSpec")

METADATA = rulebook()
FINISH = rulebook()
CLUSTER = rulebook()
RUN = rulebook()
STATUS = rulebook()


@METADATA.rule("rayjob-m1")
def name_length(job: Job) -> Findings:
    """The name has at most 47 characters."""
    return too_long("RayJob", name_of(job.obj), LONGEST_NAME)


@METADATA.rule("rayjob-m2")
def name_form(job: Job) -> Findings:
    """The name is a DNS-1035 label."""
    return not_a_label("RayJob", name_of(job.obj))


@FINISH.rule("rayjob-v1")
def suspended_without_shutdown(job: Job) -> Findings:
    """A suspended job may shut its cluster down."""
    if job.suspend and not job.shutdown:
        yield Finding(
            ("spec", "suspend"),
            "a job with shutdownAfterJobFinishes false cannot be suspended, as that deletes its cluster",
            "set shutdownAfterJobFinishes to true, or remove suspend",
        )


@FINISH.rule("rayjob-v2")
def ttl_negative(job: Job) -> Findings:
    """ttlSecondsAfterFinished is not negative."""
    ttl = integer(job.spec, "ttlSecondsAfterFinished")
    if ttl is not None and ttl < 0:
        yield Finding(("spec", "ttlSecondsAfterFinished"), f"{ttl} is negative", "use 0 or more")


@FINISH.rule("rayjob-v3")
def ttl_without_shutdown(job: Job) -> Findings:
    """ttlSecondsAfterFinished delays a shutdown, so there is one."""
    if not job.shutdown and (integer(job.spec, "ttlSecondsAfterFinished") or 0) > 0:
        yield Finding(
            ("spec", "ttlSecondsAfterFinished"),
            "delays the shutdown of the cluster, but shutdownAfterJobFinishes is false",
            "set shutdownAfterJobFinishes to true, or remove it",
        )


@CLUSTER.rule("rayjob-v8")
def suspended_with_selector(job: Job) -> Findings:
    """A job on a selected cluster is not suspended."""
    if job.suspend and job.selector:
        yield Finding(
            ("spec", "suspend"),
            "a job with clusterSelector cannot be suspended, as the cluster is not its own",
            "remove suspend, or use rayClusterSpec instead of clusterSelector",
        )


@CLUSTER.rule("rayjob-v9")
def no_cluster(job: Job) -> Findings:
    """A job has a cluster to run on."""
    if job.cluster is None and not job.selector:
        yield Finding(
            ("spec",),
            "one of RayClusterSpec or ClusterSelector must be set",
            "add rayClusterSpec for a cluster of its own, or clusterSelector for one that exists",
        )


@CLUSTER.rule("rayjob-v10a")
def selector_without_name(job: Job) -> Findings:
    """clusterSelector names the cluster."""
    if job.selector and not text(job.selector, SELECTOR_KEY):
        yield Finding(
            ("spec", "clusterSelector", SELECTOR_KEY),
            "the name of the cluster should not be empty",
            "set it to the name of a RayCluster in the job's namespace",
        )


@CLUSTER.rule("rayjob-v10b")
def selector_in_sidecar_mode(job: Job) -> Findings:
    """SidecarMode has a cluster of its own, as the submitter becomes part of its head."""
    if job.selector and job.mode == "SidecarMode":
        yield Finding(
            ("spec", "clusterSelector"),
            "not supported in SidecarMode, which adds the submitter to the head Pod",
            "use another submissionMode, or rayClusterSpec instead",
        )


@CLUSTER.rule("rayjob-v10c")
def selector_with_retries(job: Job) -> Findings:
    """A job on a selected cluster is not retried, as each attempt takes a new cluster."""
    if job.selector and (job.backoff_limit or 0) > 0:
        yield Finding(
            ("spec", "backoffLimit"),
            "cannot be above 0 with clusterSelector, as each attempt takes a new cluster",
            "set it to 0, or use rayClusterSpec instead of clusterSelector",
        )


@CLUSTER.rule("rayjob-v11")
def interactive_with_retries(job: Job) -> Findings:
    """In InteractiveMode, where the user submits, a job is not retried."""
    if job.mode == "InteractiveMode" and (job.backoff_limit or 0) > 0:
        yield Finding(
            ("spec", "backoffLimit"),
            "cannot be above 0 in InteractiveMode, as only the user can submit again",
            "set it to 0, or use another submissionMode",
        )


@CLUSTER.rule("rayjob-v12a")
def sidecar_with_template(job: Job) -> Findings:
    """SidecarMode has no Pod of its own to be described."""
    if job.mode == "SidecarMode" and is_set(job.spec, "submitterPodTemplate"):
        yield Finding(
            ("spec", "submitterPodTemplate"),
            "not supported in SidecarMode, which has no submitter Pod",
            "remove it, or use K8sJobMode",
        )


@CLUSTER.rule("rayjob-v12b")
def sidecar_with_config(job: Job) -> Findings:
    """SidecarMode has no submitter Job to be configured."""
    if job.mode == "SidecarMode" and is_set(job.spec, "submitterConfig"):
        yield Finding(
            ("spec", "submitterConfig"),
            "not supported in SidecarMode, which has no submitter Job",
            "remove it, or use K8sJobMode",
        )


@CLUSTER.rule("rayjob-v12c")
def sidecar_with_restarts(job: Job) -> Findings:
    """In SidecarMode the head's restartPolicy is Never or unset, else the submitter would run again."""
    policy = text(mapping(job.cluster or {}, "headGroupSpec", "template", "spec"), "restartPolicy")
    if job.mode == "SidecarMode" and policy not in ("", "Never"):
        yield Finding(
            (*_CLUSTER, "headGroupSpec", "template", "spec", "restartPolicy"),
            f"{quoted(policy)} would start the submitter again in SidecarMode",
            "set it to Never or remove it",
        )


@CLUSTER.rule("rayjob-v13")
def kubernetes_token_auth(job: Job) -> Findings:
    """A job's cluster does not authenticate with Kubernetes tokens."""
    if kubernetes_tokens(job.cluster or {}):
        yield Finding(
            (*_CLUSTER, "authOptions", "enableK8sTokenAuth"),
            "not supported for a RayJob, whose submitter has no such token",
            "remove it, as mode token alone works",
        )


@CLUSTER.embedding("rayjob-v14")
def cluster_spec(job: Job) -> Iterable[Problem]:
    """The cluster that the job describes keeps the rules of a RayCluster."""
    if job.cluster is not None:
        for problem in described_cluster(job.obj, job.cluster, job.scope):
            yield at(_CLUSTER, problem)


@RUN.rule("rayjob-v15")
def runtime_env(job: Job) -> Findings:
    """runtimeEnvYAML is a YAML mapping."""
    source = text(job.spec, "runtimeEnvYAML")
    if not source:
        return
    from kubewire.yamltext import YamlError, load_all  # only such a job pays for it

    try:
        document = next(load_all(source), None)
    except YamlError as bad:
        message = f"not YAML: {shortened(str(bad), 200)} (line {bad.line})"
    else:
        if document is None or document.value is None or isinstance(document.value, dict):
            return
        message = "not a YAML mapping"
    way_out = "write fields of a runtime environment, such as `pip: [torch]`"
    yield Finding(("spec", "runtimeEnvYAML"), message, way_out)


@RUN.rule("rayjob-v16")
def active_deadline(job: Job) -> Findings:
    """activeDeadlineSeconds is positive."""
    return _not_positive(job, "activeDeadlineSeconds")


@RUN.rule("rayjob-v17")
def pre_running_deadline(job: Job) -> Findings:
    """preRunningDeadlineSeconds is positive."""
    return _not_positive(job, "preRunningDeadlineSeconds")


@RUN.rule("rayjob-v18")
def backoff_limit_negative(job: Job) -> Findings:
    """backoffLimit is not negative."""
    if job.backoff_limit is not None and job.backoff_limit < 0:
        yield Finding(("spec", "backoffLimit"), f"{job.backoff_limit} is negative", "use 0 or more")


@STATUS.rule("rayjob-s1")
def waiting_outside_interactive_mode(job: Job) -> Findings:
    """Only a job in InteractiveMode waits for the user."""
    waiting = mapping(job.obj, "status").get("jobDeploymentStatus") == "Waiting"
    if waiting and job.mode != "InteractiveMode":
        yield Finding(
            ("status", "jobDeploymentStatus"),
            f"cannot be Waiting when submissionMode is {quoted(job.mode)}",
            "set submissionMode to InteractiveMode again, or make a new RayJob",
        )


def _not_positive(job: Job, field: str) -> Findings:
    seconds = integer(job.spec, field)
    if seconds is not None and seconds <= 0:
        yield Finding(("spec", field), f"{seconds} is not positive", "use 1 or more, or remove it")


_SPEC: tuple[Rule[Job], ...] = (*FINISH.rules, *DELETION.rules, *CLUSTER.rules, *RUN.rules)

RAYJOB: tuple[Rule[Job], ...] = (*METADATA.rules, *_SPEC, *STATUS.rules)


def described_job(spec: Object, scope: Scope) -> Iterator[Problem]:
    """Yield what is wrong with the job that a RayCronJob's template describes, paths as in a RayJob."""
    yield from broken(_SPEC, Job({"kind": "RayJob", "spec": spec}, scope), scope)
