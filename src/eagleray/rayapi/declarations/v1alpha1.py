"""The deprecated version v1alpha1 of the first three kinds: a frozen subset of v1.

It gains no fields. What is stored through it loses the fields it does not know.
"""

from eagleray.rayapi.declarations import clusteroptions, raycluster, rayjob, rayservice
from eagleray.rayapi.declarations.common import moment
from eagleray.rayapi.declare import Field, Struct, Version, list_of, map_of, older


def _older(base: Struct, *fields: str | Field) -> Struct:
    return older(base, "v1alpha1", *fields)


def _required(base: Struct, name: str) -> Field:
    return base.field(name)._replace(required=True)


def _version(newer: Version, spec: Struct, status: Struct, *, columns: bool = False) -> Version:
    return newer._replace(
        name="v1alpha1",
        doc=f"{newer.doc} Deprecated: use ray.io/v1, whose fields are a superset.",
        spec=spec,
        status=status,
        columns=newer.columns if columns else (),
        storage=False,
        deprecation=(
            f"ray.io/v1alpha1 {newer.kind} is deprecated; use ray.io/v1 {newer.kind}. "
            "v1alpha1 receives no new fields and will be unavailable in KubeRay 1.9."
        ),
    )


_AUTOSCALER_OPTIONS = _older(
    clusteroptions.AUTOSCALER_OPTIONS,
    "resources",
    "image",
    "imagePullPolicy",
    "securityContext",
    "idleTimeoutSeconds",
    "upscalingMode",
    "env",
    "envFrom",
    "volumeMounts",
)

_HEAD_GROUP = _older(
    raycluster.HEAD_GROUP,
    "template",
    "headService",
    "enableIngress",
    _required(raycluster.HEAD_GROUP, "rayStartParams"),
    "serviceType",
)

_WORKER_GROUP = _older(
    raycluster.WORKER_GROUP,
    "groupName",
    "replicas",
    "minReplicas",
    "maxReplicas",
    _required(raycluster.WORKER_GROUP, "rayStartParams"),
    "template",
    "scaleStrategy",
)

_CLUSTER_SPEC = _older(
    raycluster.SPEC,
    "suspend",
    raycluster.SPEC.field("autoscalerOptions")._replace(type=_AUTOSCALER_OPTIONS),
    "headServiceAnnotations",
    "enableInTreeAutoscaling",
    raycluster.SPEC.field("headGroupSpec")._replace(type=_HEAD_GROUP),
    "rayVersion",
    raycluster.SPEC.field("workerGroupSpecs")._replace(type=list_of(_WORKER_GROUP)),
)

_CLUSTER_STATUS = _older(
    raycluster.STATUS,
    "state",
    "reason",
    "desiredCPU",
    "desiredMemory",
    "desiredGPU",
    "desiredTPU",
    "readyWorkerReplicas",
    "availableWorkerReplicas",
    "desiredWorkerReplicas",
    "minWorkerReplicas",
    "maxWorkerReplicas",
    "lastUpdateTime",
    "endpoints",
    raycluster.STATUS.field("head")._replace(type=_older(raycluster.HEAD_INFO, "podIP", "serviceIP")),
    "observedGeneration",
)

_JOB_SPEC = _older(
    rayjob.SPEC,
    rayjob.SPEC.field("rayClusterSpec")._replace(type=_CLUSTER_SPEC),
    "submitterPodTemplate",
    "metadata",
    "clusterSelector",
    _required(rayjob.SPEC, "entrypoint"),
    "runtimeEnvYAML",
    "jobId",
    "entrypointResources",
    "entrypointNumCpus",
    "entrypointNumGpus",
    "ttlSecondsAfterFinished",
    "shutdownAfterJobFinishes",
    "suspend",
)

_JOB_STATUS = _older(
    rayjob.STATUS,
    "jobId",
    "rayClusterName",
    "dashboardURL",
    "jobStatus",
    "jobDeploymentStatus",
    "message",
    "startTime",
    "endTime",
    rayjob.STATUS.field("rayClusterStatus")._replace(type=_CLUSTER_STATUS),
    "observedGeneration",
)

_HEALTH_TIME = moment(
    "healthLastUpdateTime", "When this status last changed between healthy and unhealthy; no longer written."
)

_DEPLOYMENT_STATUS = _older(rayservice.SERVE_DEPLOYMENT_STATUS, "status", "message", _HEALTH_TIME)

_APP_STATUS = _older(
    rayservice.APP_STATUS,
    "status",
    "message",
    rayservice.APP_STATUS.field("serveDeploymentStatuses")._replace(type=map_of(_DEPLOYMENT_STATUS)),
    _HEALTH_TIME,
)

_SERVICE_CLUSTER_STATUS = _older(
    rayservice.CLUSTER_STATUS,
    rayservice.CLUSTER_STATUS.field("applicationStatuses")._replace(type=map_of(_APP_STATUS)),
    "rayClusterName",
    rayservice.CLUSTER_STATUS.field("rayClusterStatus")._replace(type=_CLUSTER_STATUS),
)

_SERVICE_SPEC = _older(
    rayservice.SPEC,
    "serviceUnhealthySecondThreshold",
    "deploymentUnhealthySecondThreshold",
    "serveService",
    "serveConfigV2",
    rayservice.SPEC.field("rayClusterConfig")._replace(type=_CLUSTER_SPEC, required=False),
)

_SERVICE_STATUS = _older(
    rayservice.STATUS,
    "lastUpdateTime",
    "serviceStatus",
    rayservice.STATUS.field("activeServiceStatus")._replace(type=_SERVICE_CLUSTER_STATUS),
    rayservice.STATUS.field("pendingServiceStatus")._replace(type=_SERVICE_CLUSTER_STATUS),
    "observedGeneration",
)

RAY_CLUSTER = _version(raycluster.V1, _CLUSTER_SPEC, _CLUSTER_STATUS, columns=True)
RAY_JOB = _version(rayjob.V1, _JOB_SPEC, _JOB_STATUS)
RAY_SERVICE = _version(rayservice.V1, _SERVICE_SPEC, _SERVICE_STATUS)
