"""RayCluster: a head Pod, groups of worker Pods, and what makes them one Ray cluster."""

from eagleray.rayapi.declarations.clusteroptions import (
    AUTH_OPTIONS,
    AUTOSCALER_OPTIONS,
    GCS_FAULT_TOLERANCE_OPTIONS,
    HISTORY_SERVER_OPTIONS,
    NETWORK_POLICY,
    TLS_OPTIONS,
)
from eagleray.rayapi.declarations.common import (
    INGRESS_TLS,
    MANAGED_BY,
    POD_TEMPLATE,
    SERVICE,
    STRINGS,
    conditions,
)
from eagleray.rayapi.declare import (
    BOOLEAN,
    INT32,
    INT64,
    QUANTITY,
    STRING,
    TIME,
    Column,
    Version,
    choice,
    field,
    list_of,
    map_of,
    struct,
)

UPGRADE_STRATEGY = struct(
    "RayClusterUpgradeStrategy",
    "What happens to running Pods when the spec changes.",
    field(
        "type",
        choice("Recreate", "None"),
        "`Recreate` deletes all Pods and starts them anew when anything but scaling, tolerations or "
        "scheduling gates changed; running work is lost. `None`, also when unset, keeps running Pods as they "
        "are, so that only Pods created later follow the new spec. Not allowed inside a RayJob or "
        "RayService.",
        pointer=True,
    ),
)

INGRESS_OPTIONS = struct(
    "IngressOptions",
    "Details of the Ingress that `enableIngress` creates.",
    field("host", STRING, "Host name the Ingress answers to. When unset, every host.", pointer=True),
    field("path", STRING, "Path the Ingress answers to, below `host`. When unset, `/`.", pointer=True),
    field(
        "pathType",
        choice("Exact", "Prefix", "ImplementationSpecific"),
        "How `path` is compared with a request. When unset, `Prefix`.",
        pointer=True,
    ),
    field(
        "tls", list_of(INGRESS_TLS), "Hosts served over TLS, with the Secrets that hold their certificates."
    ),
)

_LOGICAL_RESOURCES = field(
    "resources",
    STRINGS,
    "What Ray may schedule on each of these Pods, as quantities by name: `CPU`, `memory`, `GPU` or a name of "
    "your own. Overrides what would be derived from the Ray container, and the requests and limits of the "
    "container stay as they are. Excludes `num-cpus`, `num-gpus`, `memory` and `resources` in "
    "`rayStartParams`.",
)

_RAY_LABELS = field(
    "labels",
    STRINGS,
    "Labels of the Ray nodes, for label-based scheduling in Ray; the Pods carry them too. Keys and values "
    "follow the rules for Kubernetes labels. Excludes `labels` in `rayStartParams`.",
)

_RAY_START_PARAMS = field(
    "rayStartParams",
    STRINGS,
    "Options of `ray start` without the leading dashes; values are strings, so numbers stand in quotes. "
    "`true` gives the bare option, `false` leaves it out. What is missing is filled in, such as `address`, "
    "`metrics-export-port` and the resources of the container.",
    always=True,
)

HEAD_GROUP = struct(
    "HeadGroupSpec",
    "The head: one Pod with Ray's control plane and dashboard.",
    field(
        "template",
        POD_TEMPLATE,
        "The head Pod. Its first container runs Ray: command, probes, environment and the shared memory "
        "volume are added to what you give. Further containers run beside it as they are.",
        required=True,
    ),
    field(
        "headService",
        SERVICE,
        "Template of the Service in front of the head, for a name, type, annotations or ports of your own. "
        "The selector is always the operator's, and the ports of the Ray container are appended. When unset, "
        "a headless Service `<cluster>-head-svc` is created. Inside a RayService it may not set a name.",
        pointer=True,
    ),
    field(
        "enableIngress",
        BOOLEAN,
        "Create an Ingress (on OpenShift a Route) to the dashboard. Off when unset. The dashboard can run "
        "code: protect it.",
        pointer=True,
    ),
    field(
        "ingressOptions",
        INGRESS_OPTIONS,
        "Host, path and TLS of the Ingress; without effect unless `enableIngress` is true, or on OpenShift "
        "Routes.",
        pointer=True,
    ),
    _LOGICAL_RESOURCES,
    _RAY_LABELS,
    _RAY_START_PARAMS,
    field(
        "serviceType",
        STRING,
        "Type of the Service in front of the head: `ClusterIP`, `NodePort` or `LoadBalancer`. When unset or "
        "`ClusterIP`, the Service is headless unless the operator is told otherwise.",
    ),
)

SCALE_STRATEGY = struct(
    "ScaleStrategy",
    "Chooses the workers that go when a group shrinks. Written by Ray's autoscaler.",
    field(
        "workersToDelete",
        list_of(STRING),
        "Names of worker Pods to delete, whatever `replicas` says; lower `replicas` by as many to keep them "
        "from being replaced. Names that do not exist are passed over.",
    ),
)

WORKER_GROUP = struct(
    "WorkerGroupSpec",
    "A group of alike workers, scaled together.",
    field(
        "suspend",
        BOOLEAN,
        "Delete the workers of this group and create none. Set by a RayJob whose deletion policy is "
        "`DeleteWorkers`; not allowed together with autoscaling.",
        pointer=True,
    ),
    field(
        "groupName",
        STRING,
        "Name of the group, different from all others in the cluster. It becomes part of the Pods' names and "
        "their label `ray.io/group`.",
        required=True,
    ),
    field(
        "replicas",
        INT32,
        "How many replicas should run, kept within `minReplicas` and `maxReplicas`. With autoscaling, the "
        "autoscaler writes this field and your value is only where it starts.",
        default=0,
        pointer=True,
    ),
    field(
        "minReplicas",
        INT32,
        "The fewest replicas, also for the autoscaler; not negative and not above `maxReplicas`.",
        required=True,
        default=0,
        pointer=True,
    ),
    field(
        "maxReplicas",
        INT32,
        "The most replicas, also for the autoscaler. Without a limit of your own only the resources of the "
        "Kubernetes cluster stop it.",
        required=True,
        default=2147483647,
        pointer=True,
    ),
    field(
        "idleTimeoutSeconds",
        INT32,
        "Seconds a worker of this group must be idle before it is removed; overrides the value in "
        "`autoscalerOptions`. Only autoscaler v2 reads it, elsewhere it is refused.",
        pointer=True,
    ),
    field(
        "priority",
        INT32,
        "Which group the autoscaler prefers when several could serve a request: the higher number first. "
        "Values other than 0 need autoscaler v2 and Ray 2.56 or later.",
        default=0,
        pointer=True,
    ),
    _LOGICAL_RESOURCES,
    _RAY_LABELS,
    _RAY_START_PARAMS,
    field(
        "template",
        POD_TEMPLATE,
        "The worker Pod. Its first container runs Ray, completed as for the head; an init container waits "
        "until the head answers.",
        required=True,
    ),
    field(
        "scaleStrategy",
        SCALE_STRATEGY,
        "Which workers to remove first. Leave it to the autoscaler unless you scale by hand.",
    ),
    field(
        "numOfHosts",
        INT32,
        "Pods that make up one replica, for accelerators that span several hosts such as TPU slices. They "
        "are created and deleted together.",
        default=1,
    ),
)

SPEC = struct(
    "RayClusterSpec",
    "The Ray cluster you want: its head, its workers, and how they are run.",
    field(
        "upgradeStrategy",
        UPGRADE_STRATEGY,
        "Whether a changed spec recreates the Pods. When unset, it does not.",
        pointer=True,
    ),
    field(
        "authOptions",
        AUTH_OPTIONS,
        "Token authentication for the dashboard and between Ray's processes. When unset, Ray asks nobody for "
        "a token.",
        pointer=True,
    ),
    field(
        "suspend",
        BOOLEAN,
        "Delete all Pods and keep everything else; `false` starts the cluster again. Queueing systems such "
        "as Kueue own this field on the clusters they admit.",
        pointer=True,
    ),
    MANAGED_BY,
    field(
        "autoscalerOptions",
        AUTOSCALER_OPTIONS,
        "Image, resources and behaviour of Ray's autoscaler; without effect unless `enableInTreeAutoscaling` "
        "is true.",
        pointer=True,
    ),
    field(
        "headServiceAnnotations",
        STRINGS,
        "Annotations of the Service in front of the head, for example to configure a load balancer. They win "
        "over those of `headGroupSpec.headService`.",
    ),
    field(
        "enableInTreeAutoscaling",
        BOOLEAN,
        "Run Ray's autoscaler beside the head; it then sets `replicas` of the worker groups by demand. Off "
        "when unset.",
        pointer=True,
    ),
    field(
        "gcsFaultToleranceOptions",
        GCS_FAULT_TOLERANCE_OPTIONS,
        "Lets the cluster survive the loss of its head. When unset, the state of the head is lost with its "
        "Pod and the workers restart.",
        pointer=True,
    ),
    field(
        "historyServerOptions",
        HISTORY_SERVER_OPTIONS,
        "Collects logs and events for the history server. Needs the feature gate RayClusterHistoryServer.",
        pointer=True,
    ),
    field(
        "networkPolicy",
        NETWORK_POLICY,
        "Restricts the network traffic of the Pods; when unset, nothing is restricted. Needs the feature "
        "gate RayClusterNetworkPolicy and a network plugin that enforces policies.",
        pointer=True,
    ),
    field(
        "tlsOptions",
        TLS_OPTIONS,
        "Encryption between Ray's processes. Needs the feature gate RayClusterMTLS and cert-manager.",
        pointer=True,
    ),
    field(
        "headGroupSpec", HEAD_GROUP, "The head of the cluster and the Service in front of it.", required=True
    ),
    field(
        "rayVersion",
        STRING,
        "Version of Ray in the images, such as `2.52.0`. Nothing is installed by it: it decides which "
        "features and health checks are used, so keep it equal to the images. When unset, only what every "
        "version understands is used.",
    ),
    field(
        "workerGroupSpecs",
        list_of(WORKER_GROUP),
        "The groups of workers; none is a cluster of only the head.",
    ),
)

HEAD_INFO = struct(
    "HeadInfo",
    "Where the head and the Service in front of it are found.",
    field("podIP", STRING, "IP address of the head Pod; empty while there is none."),
    field("podName", STRING, "Name of the head Pod; empty while there is none."),
    field("serviceName", STRING, "Name of the Service in front of the head."),
    field("serviceIP", STRING, "Address of that Service; for a headless one the IP address of the head Pod."),
)

_WANTED = "asked for by the head and all wanted workers that are not suspended."

STATUS = struct(
    "RayClusterStatus",
    "What the operator last saw. Written by the operator alone.",
    field(
        "state",
        STRING,
        "`ready` once all wanted Pods have run, `suspended` once a suspended cluster has no Pods left. It "
        "does not fall back when Pods fail later: use `conditions`, which replace it.",
    ),
    field("reason", STRING, "Why `state` is what it is; empty while all is well."),
    field("desiredCPU", QUANTITY, f"CPU {_WANTED}", always=True),
    field("desiredMemory", QUANTITY, f"Memory {_WANTED}", always=True),
    field("desiredGPU", QUANTITY, f"GPUs of any vendor {_WANTED}", always=True),
    field("desiredTPU", QUANTITY, f"Google TPUs {_WANTED}", always=True),
    field(
        "readyWorkerReplicas",
        INT32,
        "Worker Pods that run and are ready. Counts Pods, not replicas of several hosts.",
    ),
    field(
        "availableWorkerReplicas",
        INT32,
        "Worker Pods that run, whether or not their readiness probe succeeds.",
    ),
    field("desiredWorkerReplicas", INT32, "Worker Pods that should run, after the limits of each group."),
    field("minWorkerReplicas", INT32, "The fewest worker Pods over all groups that are not suspended."),
    field(
        "maxWorkerReplicas",
        INT32,
        "The most worker Pods over all groups that are not suspended, at most 2147483647.",
    ),
    field(
        "lastUpdateTime",
        TIME,
        "When this status was last written; it moves only when something else in it changed.",
        pointer=True,
        nullable=True,
    ),
    field("stateTransitionTimes", map_of(TIME), "When each value of `state` was last entered."),
    field(
        "endpoints",
        STRINGS,
        "Ports of the Service in front of the head, by name: the node port if there is one.",
    ),
    field(
        "head",
        HEAD_INFO,
        "Names and addresses of the head's Pod and Service; empty until they exist.",
        always=True,
    ),
    conditions(
        "What is true of the cluster, one entry per type: `HeadPodReady`, `RayClusterProvisioned` (all Pods "
        "were ready once), `ReplicaFailure` (a Pod could not be created or deleted), `RayClusterSuspending`, "
        "`RayClusterSuspended`."
    ),
    field("observedGeneration", INT64, "The `metadata.generation` that this status describes."),
)

COLUMNS = (
    Column("desired workers", ".status.desiredWorkerReplicas", "integer"),
    Column("available workers", ".status.availableWorkerReplicas", "integer"),
    Column("cpus", ".status.desiredCPU"),
    Column("memory", ".status.desiredMemory"),
    Column("gpus", ".status.desiredGPU"),
    Column("tpus", ".status.desiredTPU", priority=1),
    Column("status", ".status.state"),
    Column("age", ".metadata.creationTimestamp", "date"),
    Column("head pod IP", ".status.head.podIP", priority=1),
    Column("head service IP", ".status.head.serviceIP", priority=1),
)

V1 = Version(
    "RayCluster",
    "v1",
    "A Ray cluster: one head Pod and groups of worker Pods that the operator keeps running.",
    SPEC,
    STATUS,
    COLUMNS,
)
