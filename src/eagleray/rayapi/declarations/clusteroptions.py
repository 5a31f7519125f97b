"""The optional features of a RayCluster: authentication, autoscaling, fault tolerance, network and so on."""

from eagleray.rayapi.declarations.common import (
    EGRESS_RULE,
    ENV_FROM_SOURCE,
    ENV_VAR,
    ENV_VAR_SOURCE,
    INGRESS_RULE,
    RESOURCES,
    SECURITY_CONTEXT,
    VOLUME_MOUNT,
)
from eagleray.rayapi.declare import (
    BOOLEAN,
    INT32,
    QUANTITY,
    STRING,
    Rule,
    choice,
    field,
    list_of,
    struct,
)

AUTH_OPTIONS = struct(
    "AuthOptions",
    "How clients prove to Ray who they are.",
    field(
        "enableK8sTokenAuth",
        BOOLEAN,
        "Let Ray accept Kubernetes service account tokens instead of one shared secret. Needs `mode: token` "
        "and Ray 2.55 or later, and excludes `secretName`. Not supported inside a RayJob or RayService.",
        pointer=True,
    ),
    field(
        "secretName",
        STRING,
        "Secret in the same namespace whose key `auth_token` holds the token. When unset, a Secret named "
        "after the cluster is created with a random token.",
        pointer=True,
    ),
    field(
        "mode",
        choice("disabled", "token"),
        "`token` makes every Ray process and the dashboard ask for the token; needs Ray 2.52 or later. "
        "`disabled` leaves the cluster open to whoever reaches it. When `authOptions` is given without a "
        "mode the Secret is created, but nothing uses it: set the mode.",
    ),
)

AUTOSCALER_OPTIONS = struct(
    "AutoscalerOptions",
    "Settings of the autoscaler container beside the head; read only while `enableInTreeAutoscaling` is "
    "true.",
    field(
        "resources",
        RESOURCES,
        "Requests and limits of the autoscaler container. When unset, both are 500m CPU and 512Mi memory. A "
        "value given here replaces them as a whole.",
        pointer=True,
    ),
    field(
        "image",
        STRING,
        "Image of the autoscaler container. When unset, the image of the head's Ray container, which is "
        "almost always right: the autoscaler must match the Ray version.",
        pointer=True,
    ),
    field(
        "imagePullPolicy",
        STRING,
        "When to pull the autoscaler's image: `Always`, `IfNotPresent` (also when unset) or `Never`.",
        pointer=True,
    ),
    field(
        "securityContext",
        SECURITY_CONTEXT,
        "Security settings of the autoscaler container, for namespaces that enforce Pod security. None when "
        "unset.",
        pointer=True,
    ),
    field(
        "idleTimeoutSeconds",
        INT32,
        "Seconds a worker must be idle before Ray removes it. When unset, Ray's own default of 60 applies. "
        "Negative values are refused.",
        pointer=True,
    ),
    field(
        "upscalingMode",
        choice("Default", "Aggressive", "Conservative"),
        "How fast Ray adds workers. `Conservative` adds them in steps that grow with the cluster; `Default` "
        "and `Aggressive` add all that is needed at once. Unset means `Default`.",
        pointer=True,
    ),
    field(
        "version",
        choice("v1", "v2"),
        "Generation of Ray's autoscaler. `v2` also sets the restart policy of head and workers to `Never`. "
        "When unset, nothing is configured and Ray decides by itself; it is never derived from `rayVersion`.",
        pointer=True,
    ),
    field(
        "env",
        list_of(ENV_VAR),
        "Environment variables appended to those of the autoscaler container. "
        "`KUBERAY_GEN_AUTOSCALER_START_CMD` is set by the operator and may not appear.",
    ),
    field(
        "envFrom",
        list_of(ENV_FROM_SOURCE),
        "ConfigMaps and Secrets whose entries become environment variables of the autoscaler container.",
    ),
    field(
        "volumeMounts",
        list_of(VOLUME_MOUNT),
        "Mounts appended to those of the autoscaler container; the volumes must exist in the head's "
        "template.",
    ),
    field(
        "command",
        list_of(STRING),
        "Replaces the shell that starts the autoscaler. When unset, a bash runs the generated command.",
    ),
    field(
        "args",
        list_of(STRING),
        "Replaces the generated arguments. The original command line stays readable in the variable "
        "`KUBERAY_GEN_AUTOSCALER_START_CMD`, so that a wrapper can run something first.",
    ),
)

REDIS_CREDENTIAL = struct(
    "RedisCredential",
    "A user name or password, written down or read from elsewhere.",
    field(
        "valueFrom",
        ENV_VAR_SOURCE,
        "Where the value comes from, usually a key of a Secret. Prefer this for passwords.",
        pointer=True,
    ),
    field("value", STRING, "The value itself; visible to everyone who may read the object."),
)

GCS_EMBEDDED_STORAGE = struct(
    "GcsEmbeddedStorage",
    "The volume on which the head keeps its state when the backend is `rocksdb`.",
    field(
        "claimName",
        STRING,
        "Existing PersistentVolumeClaim to use. It is never created, changed or deleted, and excludes "
        "`size`, `storageClassName` and `accessModes`. When unset, a claim `<cluster>-gcs-pvc` is created.",
    ),
    field("size", QUANTITY, "Size of the created claim. When unset, 1Gi.", pointer=True),
    field(
        "storageClassName",
        STRING,
        "Storage class of the created claim. When unset, the default class of the Kubernetes cluster.",
        pointer=True,
    ),
    field(
        "accessModes", list_of(STRING), "Access modes of the created claim. When unset, only ReadWriteOnce."
    ),
    field("subPath", STRING, "Folder of the volume to use, so that several clusters can share one claim."),
    field(
        "deletionPolicy",
        choice("DeleteWithCluster", "Retain"),
        "`DeleteWithCluster`, also when unset, removes the created claim with the RayCluster; `Retain` keeps "
        "it, and a later cluster of the same name finds its state again.",
        pointer=True,
    ),
)

GCS_FAULT_TOLERANCE_OPTIONS = struct(
    "GcsFaultToleranceOptions",
    "Keeps the state of the head outside its Pod, so that workers survive a restart of the head. Replaces "
    "the annotation `ray.io/ft-enabled`, which may not be given at the same time.",
    field(
        "backend",
        choice("redis", "rocksdb"),
        "Where the state lives: `redis`, also when unset, in a Redis you provide; `rocksdb` on a volume of "
        "the head, which needs the feature gate GCSFaultToleranceEmbeddedStorage. Cannot be changed once it "
        "is set.",
        rules=(Rule("self == oldSelf", "gcsFaultToleranceOptions.backend is immutable"),),
    ),
    field(
        "redisUsername",
        REDIS_CREDENTIAL,
        "User name for a Redis with access lists (6 and later); leave it out for the default user.",
        pointer=True,
    ),
    field(
        "redisPassword",
        REDIS_CREDENTIAL,
        "Password for Redis. It is handed to Ray in the environment variable `REDIS_PASSWORD`, which you may "
        "not set yourself.",
        pointer=True,
    ),
    field(
        "externalStorageNamespace",
        STRING,
        "Prefix of this cluster's keys in Redis. When unset, the uid of the RayCluster, so that a deleted "
        "and recreated cluster starts afresh; give a name to find the state again.",
    ),
    field(
        "redisAddress",
        STRING,
        "Address of Redis as `host:port` or with a scheme (`redis://`, `rediss://` for TLS); several "
        "addresses are separated by commas. Not allowed with `rocksdb`.",
    ),
    field(
        "storage", GCS_EMBEDDED_STORAGE, "The volume for `rocksdb`; not allowed with `redis`.", pointer=True
    ),
)

COLLECTOR_OPTIONS = struct(
    "CollectorOptions",
    "The container that collects logs and events of its Pod for the history server.",
    field("image", STRING, "Image of the collector. Must be set, there is no default image.", pointer=True),
    field(
        "imagePullPolicy",
        STRING,
        "When to pull the collector's image: `Always`, `IfNotPresent` (also when unset) or `Never`.",
        pointer=True,
    ),
    field(
        "resources",
        RESOURCES,
        "Requests and limits of the collector. When unset, it asks for 50m CPU and 64Mi memory and is "
        "limited to 200m and 256Mi.",
        pointer=True,
    ),
    field(
        "env",
        list_of(ENV_VAR),
        "Environment of the collector. `STORAGE_BACKEND` (GCS, S3, AliyunOSS, AzureBlob) chooses where the "
        "history goes, and each backend asks for its own variables, such as `GCS_BUCKET` or `S3_REGION`. "
        "Variables that the operator sets itself, such as `RAY_CLUSTER_NAME` and `POD_IP`, may not appear.",
    ),
)

HISTORY_SERVER_OPTIONS = struct(
    "HistoryServerOptions",
    "Keeps what happened in the cluster readable after it is gone.",
    field(
        "collectorOptions",
        COLLECTOR_OPTIONS,
        "The collector added to every Pod of the cluster. Must be set when `historyServerOptions` is.",
        pointer=True,
    ),
)

NETWORK_POLICY_RULES = struct(
    "NetworkPolicyRules",
    "Traffic allowed in addition to the traffic within the cluster.",
    field(
        "ingressRules",
        list_of(INGRESS_RULE),
        "Who may connect to these Pods, on which ports. Not allowed in mode `DenyAllEgress`, which leaves "
        "incoming traffic alone. The operator itself needs a rule here to reach the dashboard.",
    ),
    field(
        "egressRules",
        list_of(EGRESS_RULE),
        "Where these Pods may connect to, on which ports. Not allowed in mode `DenyAllIngress`, which leaves "
        "outgoing traffic alone. DNS is not allowed by itself: most clusters need a rule for port 53.",
    ),
)

GROUP_NETWORK_POLICY_RULES = struct(
    "WorkerGroupNetworkPolicyRules",
    "Traffic allowed to one worker group in addition to the traffic within the cluster.",
    field("groupName", STRING, "The worker group, by its `groupName`; it must exist.", required=True),
    *NETWORK_POLICY_RULES.fields,
)

NETWORK_POLICY = struct(
    "NetworkPolicyConfig",
    "Closes the Pods of the cluster to the network except for what is listed.",
    field(
        "mode",
        choice("DenyAll", "DenyAllIngress", "DenyAllEgress"),
        "Which direction is closed: both, only incoming, or only outgoing. Pods of the cluster always reach "
        "each other.",
        default="DenyAll",
        pointer=True,
    ),
    field(
        "head",
        NETWORK_POLICY_RULES,
        "Traffic allowed to and from the head besides that within the cluster, such as clients of the "
        "dashboard.",
        pointer=True,
    ),
    field(
        "worker",
        NETWORK_POLICY_RULES,
        "Traffic allowed to and from all workers besides that within the cluster, such as a data store.",
        pointer=True,
    ),
    field(
        "workerGroups",
        list_of(GROUP_NETWORK_POLICY_RULES, keys=("groupName",)),
        "Rules for single worker groups; an entry replaces the rules of `worker` for its group.",
    ),
)

TLS_OPTIONS = struct(
    "TLSOptions",
    "Encrypts the traffic between Ray's processes, with certificates from cert-manager.",
    field(
        "enabled",
        BOOLEAN,
        "Create certificates and switch Ray's TLS on; a change takes effect on Pods created afterwards. Off "
        "when unset. With it, `RAY_USE_TLS`, the `RAY_TLS_*` variables and the volume `ray-tls` belong to "
        "the operator.",
        pointer=True,
    ),
)
