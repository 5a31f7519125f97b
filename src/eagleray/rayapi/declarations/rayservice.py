"""RayService: Ray Serve applications that stay reachable while the cluster below them is replaced."""

from eagleray.rayapi.declarations import raycluster
from eagleray.rayapi.declarations.common import MANAGED_BY, SERVICE, conditions, moment
from eagleray.rayapi.declare import (
    BOOLEAN,
    INT32,
    INT64,
    STRING,
    Column,
    Version,
    at_least,
    field,
    map_of,
    struct,
)

CLUSTER_UPGRADE_OPTIONS = struct(
    "ClusterUpgradeOptions",
    "How an incremental upgrade moves capacity and traffic from the old cluster to the new one.",
    field(
        "maxSurgePercent",
        INT32,
        "How much capacity, in percent of the service, is added to the new cluster before the old one gives "
        "some up; 0 to 100. 100 starts the whole new cluster first.",
        default=100,
        pointer=True,
    ),
    field(
        "stepSizePercent",
        INT32,
        "How much traffic, in percent, moves to the new cluster in one step; 0 to 100 and not above "
        "`maxSurgePercent`.",
        required=True,
        pointer=True,
    ),
    field(
        "intervalSeconds",
        INT32,
        "Seconds to wait between two steps of traffic; must be positive.",
        required=True,
        pointer=True,
    ),
    field(
        "gatewayClassName",
        STRING,
        "GatewayClass of the Gateway that splits the traffic; it must be installed in the Kubernetes "
        "cluster.",
        required=True,
    ),
)

UPGRADE_STRATEGY = struct(
    "RayServiceUpgradeStrategy",
    "How a changed `rayClusterConfig` reaches the service.",
    field(
        "type",
        STRING,
        "`NewCluster` starts a second cluster and switches over when it serves. "
        "`NewClusterWithIncrementalUpgrade` moves capacity and traffic step by step and needs autoscaling "
        "and `clusterUpgradeOptions`. `None` never replaces the cluster. Unset means `NewCluster`, unless "
        "the operator disables it.",
        pointer=True,
    ),
    field(
        "clusterUpgradeOptions",
        CLUSTER_UPGRADE_OPTIONS,
        "The steps of an incremental upgrade; required for `NewClusterWithIncrementalUpgrade`, unused "
        "otherwise.",
        pointer=True,
    ),
)

SPEC = struct(
    "RayServiceSpec",
    "The applications and the cluster that serves them.",
    field(
        "serviceUnhealthySecondThreshold",
        INT32,
        "Deprecated and without effect; accepted so that old manifests still apply.",
        pointer=True,
    ),
    field(
        "deploymentUnhealthySecondThreshold",
        INT32,
        "Deprecated and without effect; accepted so that old manifests still apply.",
        pointer=True,
    ),
    field(
        "serveService",
        SERVICE,
        "Template of the Service in front of the applications, for a name, type, annotations or ports of "
        "your own; its selector is always the operator's. When unset, `<name>-serve-svc` is created. Ignored "
        "by incremental upgrades.",
        pointer=True,
    ),
    field(
        "upgradeStrategy",
        UPGRADE_STRATEGY,
        "How a changed `rayClusterConfig` reaches the service. When unset, a new cluster takes over once it "
        "serves.",
        pointer=True,
    ),
    field(
        "serveConfigV2",
        STRING,
        "The applications, as the YAML text of a Ray Serve config with a list `applications`. A change is "
        "applied to the running cluster, without a new one.",
    ),
    field(
        "rayClusterConfig",
        raycluster.SPEC,
        "The RayCluster that serves. Changes other than scaling and added worker groups start a new cluster, "
        "which takes over when its applications run.",
        required=True,
    ),
    field(
        "excludeHeadPodFromServeSvc",
        BOOLEAN,
        "Keep requests away from the head. When false, the head takes part as soon as a Serve proxy runs on "
        "it.",
    ),
    field(
        "suspend",
        BOOLEAN,
        "Delete the clusters and Services and wait; setting it back starts the service anew. Unrelated to "
        "`rayClusterConfig.suspend`.",
    ),
    MANAGED_BY,
    field(
        "rayClusterDeletionDelaySeconds",
        at_least(0, INT32),
        "Seconds to keep a replaced cluster, so that requests under way can end; 60 when unset.",
        pointer=True,
    ),
)

SERVE_DEPLOYMENT_STATUS = struct(
    "ServeDeploymentStatus",
    "One deployment of an application, as Ray Serve reports it.",
    field("status", STRING, "`UPDATING` while replicas come and go, `HEALTHY`, or `UNHEALTHY`."),
    field("message", STRING, "What Ray Serve says about that status; empty while all is well."),
)

APP_STATUS = struct(
    "AppStatus",
    "One application, as Ray Serve reports it.",
    field(
        "status", STRING, "`NOT_STARTED`, `DEPLOYING`, `RUNNING`, `DEPLOY_FAILED`, `DELETING` or `UNHEALTHY`."
    ),
    field("message", STRING, "What Ray Serve says about that status; for a failed deployment, the error."),
    field(
        "serveDeploymentStatuses",
        map_of(SERVE_DEPLOYMENT_STATUS),
        "The deployments that make up the application, by name.",
    ),
)

CLUSTER_STATUS = struct(
    "RayServiceClusterStatus",
    "A cluster of the service and what runs on it.",
    field("applicationStatuses", map_of(APP_STATUS), "The applications on this cluster, by name."),
    field("rayClusterName", STRING, "Name of the RayCluster; empty when there is none."),
    field(
        "rayClusterStatus", raycluster.STATUS, "Copy of the RayCluster's status, as last seen.", always=True
    ),
    field(
        "targetCapacity",
        INT32,
        "Percent of the service's capacity this cluster should hold. Only during incremental upgrades.",
        pointer=True,
    ),
    field(
        "trafficRoutedPercent",
        INT32,
        "Percent of the traffic that goes to this cluster. Only during incremental upgrades.",
        pointer=True,
    ),
    moment(
        "lastTrafficMigratedTime",
        "When `trafficRoutedPercent` last changed. Only during incremental upgrades.",
    ),
)

STATUS = struct(
    "RayServiceStatuses",
    "How the service is doing. Written by the operator alone.",
    conditions(
        "What is true of the service, one entry per type: `Ready` (some endpoint takes requests), "
        "`UpgradeInProgress`, `RollbackInProgress`, `Suspending`, `Suspended`."
    ),
    moment(
        "lastUpdateTime",
        "When this status was last written; it moves only when something else in it changed.",
    ),
    field(
        "serviceStatus", STRING, "Deprecated: `Running` while the condition `Ready` is true, otherwise empty."
    ),
    field(
        "activeServiceStatus",
        CLUSTER_STATUS,
        "The cluster that takes the requests; without a name until the first one does.",
        always=True,
    ),
    field(
        "pendingServiceStatus",
        CLUSTER_STATUS,
        "The cluster that is being prepared to take over; without a name when there is none.",
        always=True,
    ),
    field(
        "numServeEndpoints",
        INT32,
        "How many Pods are ready to take requests, over all clusters of the service.",
    ),
    field("observedGeneration", INT64, "The `metadata.generation` that this status describes."),
)

V1 = Version(
    "RayService",
    "v1",
    "Ray Serve applications behind a stable address, upgraded without interruption.",
    SPEC,
    STATUS,
    (
        Column("service status", ".status.serviceStatus"),
        Column("num serve endpoints", ".status.numServeEndpoints"),
    ),
)
