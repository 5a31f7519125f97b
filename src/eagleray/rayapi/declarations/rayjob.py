"""RayJob: one program run to its end on a Ray cluster made for it, or on one that exists."""

from eagleray.rayapi.declarations import raycluster
from eagleray.rayapi.declarations.common import MANAGED_BY, POD_TEMPLATE, STRINGS, conditions, moment
from eagleray.rayapi.declare import (
    BOOLEAN,
    INT32,
    INT64,
    NUMBER,
    STRING,
    Column,
    Rule,
    Version,
    at_least,
    choice,
    field,
    list_of,
    struct,
)

_POLICY = choice("DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone")

SUBMITTER_CONFIG = struct(
    "SubmitterConfig",
    "How hard the Kubernetes Job that submits tries.",
    field(
        "backoffLimit",
        INT32,
        "How often the Kubernetes Job that submits is retried after a failed submission; 2 when unset. A "
        "retried submitter attaches to the running Ray job instead of starting a second one. Not allowed in "
        "SidecarMode.",
        pointer=True,
    ),
)

DELETION_POLICY = struct(
    "DeletionPolicy",
    "What to delete after one outcome; deprecated in favour of `deletionRules`.",
    field(
        "policy",
        _POLICY,
        "`DeleteCluster` deletes the RayCluster, `DeleteWorkers` only its workers, `DeleteSelf` the RayJob "
        "with all it owns, `DeleteNone` nothing. Must be set.",
        pointer=True,
    ),
)

DELETION_CONDITION = struct(
    "DeletionCondition",
    "When a deletion rule applies: by the job's status or by the RayJob's, exactly one of the two.",
    field(
        "jobStatus",
        choice("SUCCEEDED", "FAILED"),
        "Applies when Ray reports this end of the job (`status.jobStatus`).",
        pointer=True,
    ),
    field(
        "jobDeploymentStatus",
        choice("Failed"),
        "Applies when the RayJob ended as `Failed`, also for causes outside Ray such as a deadline or a "
        "failed submission (`status.jobDeploymentStatus`).",
        pointer=True,
    ),
    field(
        "ttlSeconds",
        at_least(0, INT32),
        "Seconds to wait after the end before the rule acts. For the same condition, workers may not outlive "
        "the cluster, nor the cluster the RayJob.",
        default=0,
    ),
    rules=(
        Rule(
            "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
            "JobStatus and JobDeploymentStatus cannot be used together within the same deletion condition.",
        ),
        Rule(
            "has(self.jobStatus) || has(self.jobDeploymentStatus)",
            "the deletion condition requires either the JobStatus or the JobDeploymentStatus field.",
        ),
    ),
)

DELETION_RULE = struct(
    "DeletionRule",
    "One deletion and when it happens.",
    field(
        "policy",
        _POLICY,
        "`DeleteCluster` deletes the RayCluster, `DeleteWorkers` only its workers, `DeleteSelf` the RayJob "
        "with all it owns, `DeleteNone` nothing. Of several rules that are due, the most destructive one "
        "acts.",
        required=True,
    ),
    field(
        "condition",
        DELETION_CONDITION,
        "The end of the job that the rule waits for, and how long after it the rule acts.",
        required=True,
    ),
)

DELETION_STRATEGY = struct(
    "DeletionStrategy",
    "What is deleted after the end: either `deletionRules`, or both `onSuccess` and `onFailure`.",
    field(
        "onSuccess",
        DELETION_POLICY,
        "Deprecated: what is deleted after success, `ttlSecondsAfterFinished` after the end.",
        pointer=True,
    ),
    field(
        "onFailure",
        DELETION_POLICY,
        "Deprecated: what is deleted after failure, `ttlSecondsAfterFinished` after the end.",
        pointer=True,
    ),
    field(
        "deletionRules",
        list_of(DELETION_RULE, atomic=True, min_items=1),
        "Deletions in steps, for example the workers at once, the cluster after an hour, the RayJob after a "
        "day. Excludes `shutdownAfterJobFinishes`. No condition and policy may appear twice.",
    ),
    rules=(
        Rule(
            "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
            "legacy policies (onSuccess/onFailure) and deletionRules cannot be used together within the same "
            "deletionStrategy",
        ),
        Rule(
            "((has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules))",
            "deletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field "
            "(cannot be empty)",
        ),
    ),
)

SPEC = struct(
    "RayJobSpec",
    "The program, the cluster it runs on, and what happens afterwards.",
    field(
        "activeDeadlineSeconds",
        INT32,
        "Seconds from `status.startTime` after which the attempt fails with `DeadlineExceeded`, which is not "
        "retried. Must be positive; no limit when unset.",
        pointer=True,
    ),
    field(
        "backoffLimit",
        INT32,
        "How many more attempts are made after a failed one, each on a new RayCluster. Not allowed together "
        "with `clusterSelector` or in InteractiveMode.",
        default=0,
        pointer=True,
    ),
    field(
        "rayClusterSpec",
        raycluster.SPEC,
        "The RayCluster to create for each attempt. Later changes do not reach a cluster that exists. Either "
        "this or `clusterSelector` must be set.",
        pointer=True,
    ),
    field(
        "submitterPodTemplate",
        POD_TEMPLATE,
        "The Pod that submits in K8sJobMode. Its first container gets the submit command unless it has a "
        "`command` of its own. When unset, a Pod with the head's image is used. Not allowed in SidecarMode.",
        pointer=True,
    ),
    field("metadata", STRINGS, "Key-value pairs stored with the job in Ray. Needs Ray 2.6 or later."),
    field(
        "clusterSelector",
        STRINGS,
        "Runs the job on an existing RayCluster of the same namespace, named by the key `ray.io/cluster`. "
        "The cluster is never deleted by the RayJob, so `suspend`, retries and deletion of the cluster are "
        "not available.",
    ),
    field(
        "submitterConfig",
        SUBMITTER_CONFIG,
        "Settings of the Kubernetes Job that submits in K8sJobMode. Not allowed in SidecarMode.",
        pointer=True,
    ),
    MANAGED_BY,
    field(
        "deletionStrategy",
        DELETION_STRATEGY,
        "What is deleted once the job has ended, more finely than `shutdownAfterJobFinishes` does. Nothing "
        "when both are unset.",
        pointer=True,
    ),
    field(
        "entrypoint",
        STRING,
        "The shell command to run on the cluster, such as `python /home/ray/samples/train.py`. In "
        "InteractiveMode you start the job yourself and leave it empty.",
    ),
    field(
        "runtimeEnvYAML",
        STRING,
        "The job's Ray runtime environment as YAML text: `pip`, `working_dir`, `env_vars` and so on. Must be "
        "a mapping.",
    ),
    field(
        "jobId",
        STRING,
        "Submission id of the job in Ray. When empty, `<name>-<random>` is chosen. In InteractiveMode you "
        "write the id of the job you started here.",
    ),
    field(
        "submissionMode",
        STRING,
        "Who submits. `K8sJobMode`: a Kubernetes Job that also keeps the job's output as its log. "
        "`HTTPMode`: the operator, through the dashboard. `SidecarMode`: a container in the head Pod. "
        "`InteractiveMode`: you, after the cluster is ready.",
        default="K8sJobMode",
    ),
    field(
        "entrypointResources",
        STRING,
        'Custom Ray resources reserved for the entrypoint, as the text of a JSON object: `{"tape": 1}`.',
    ),
    field("entrypointNumCpus", NUMBER, "CPUs reserved for the entrypoint process; 0 or unset reserves none."),
    field("entrypointNumGpus", NUMBER, "GPUs reserved for the entrypoint process; 0 or unset reserves none."),
    field(
        "ttlSecondsAfterFinished",
        INT32,
        "Seconds to keep the RayCluster after the end when `shutdownAfterJobFinishes` is true; must be 0 "
        "otherwise.",
        default=0,
    ),
    field(
        "preRunningDeadlineSeconds",
        at_least(1, INT32),
        "Seconds from `status.startTime` within which the job must run; otherwise the attempt fails with "
        "`PreRunningDeadlineExceeded` and is retried if `backoffLimit` allows. No limit when unset.",
        pointer=True,
    ),
    field(
        "shutdownAfterJobFinishes",
        BOOLEAN,
        "Delete the RayCluster once the job has ended and `ttlSecondsAfterFinished` has passed. When false, "
        "the cluster stays until the RayJob is deleted.",
    ),
    field(
        "suspend",
        BOOLEAN,
        "Delete the RayCluster and wait; setting it back starts anew with a fresh cluster. Needs "
        "`shutdownAfterJobFinishes`. Queueing systems such as Kueue create RayJobs suspended and release "
        "them.",
    ),
)

RAY_JOB_INFO = struct(
    "RayJobStatusInfo",
    "What Ray's dashboard reports about the job.",
    moment("startTime", "When the entrypoint started, by Ray's clock."),
    moment("endTime", "When the entrypoint ended, by Ray's clock."),
)

SUBMISSION = struct(
    "RayJobSubmission",
    "The submission of the current attempt, recorded before it is made so that it is never made twice.",
    field("attempt", INT32, "Number of the attempt, counted from 1; retries count up."),
    field("submissionId", STRING, "The submission id under which Ray knows the job."),
    field("headSession", STRING, "Ray's session on the head at that time; a new head has another one."),
    moment("requestedAt", "When the submission was about to be requested."),
)

STATUS = struct(
    "RayJobStatus",
    "How far the job has come. Written by the operator alone.",
    field("rayJobInfo", RAY_JOB_INFO, "Start and end of the job as Ray reports them.", always=True),
    field("jobId", STRING, "Submission id of the current attempt, for `ray job logs` and `ray job status`."),
    field(
        "rayClusterName",
        STRING,
        "Name of the RayCluster of the current attempt; each attempt has its own unless `clusterSelector` is "
        "set.",
    ),
    field(
        "dashboardURL",
        STRING,
        "Address of the cluster's dashboard, without a scheme; empty until the cluster is ready.",
    ),
    field(
        "jobStatus",
        STRING,
        "What Ray says of the job: `PENDING`, `RUNNING`, `STOPPED`, `SUCCEEDED` or `FAILED`; empty before it "
        "is known to Ray.",
    ),
    field(
        "jobDeploymentStatus",
        STRING,
        "Where the RayJob stands: empty (new), `Initializing`, `Waiting`, `Running`, `Complete`, `Failed`, "
        "`Retrying`, `Suspending`, `Suspended` or `ValidationFailed`.",
    ),
    field(
        "reason",
        STRING,
        "Why the job failed, in one word: `AppFailed`, `SubmissionFailed`, `DeadlineExceeded`, `JobLost` and "
        "others.",
    ),
    field("message", STRING, "Why, in a sentence: Ray's message about the job or the operator's."),
    moment("startTime", "When the current attempt began; deadlines count from here."),
    moment("endTime", "When the RayJob ended as `Complete` or `Failed`; deletion delays count from here."),
    field(
        "succeeded",
        INT32,
        "How many attempts succeeded: 0 or 1, for a success is never repeated.",
        default=0,
        pointer=True,
    ),
    field(
        "failed",
        INT32,
        "How many attempts failed so far; the RayJob gives up when they exceed `backoffLimit`.",
        default=0,
        pointer=True,
    ),
    field(
        "rayClusterStatus", raycluster.STATUS, "Copy of the RayCluster's status, as last seen.", always=True
    ),
    moment(
        "jobStatusCheckFailureStartTime",
        "Since when the dashboard has not answered questions about the job; unset while it answers.",
    ),
    field("observedGeneration", INT64, "The `metadata.generation` that this status describes."),
    field(
        "submission",
        SUBMISSION,
        "The submission of the current attempt; unset before there is one.",
        pointer=True,
    ),
    conditions(
        "What is true of the job, one entry per type: `Complete`, `Failed` and `Suspended` as on a "
        "Kubernetes Job, so that `kubectl wait` works, and `Progressing`, which names what the job is "
        "waiting for."
    ),
)

V1 = Version(
    "RayJob",
    "v1",
    "A program that runs to its end on a Ray cluster, created for it or chosen by name.",
    SPEC,
    STATUS,
    (
        Column("job status", ".status.jobStatus"),
        Column("deployment status", ".status.jobDeploymentStatus"),
        Column("ray cluster name", ".status.rayClusterName"),
        Column("start time", ".status.startTime"),
        Column("end time", ".status.endTime"),
        Column("age", ".metadata.creationTimestamp", "date"),
    ),
)
