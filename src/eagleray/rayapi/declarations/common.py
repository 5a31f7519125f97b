"""What several kinds share: Kubernetes' types, and fields that mean the same everywhere."""

from eagleray.rayapi.declare import STRING, TIME, Field, Rule, field, kubernetes_type, list_of, map_of

POD_TEMPLATE = kubernetes_type("core/v1", "PodTemplateSpec")
SERVICE = kubernetes_type("core/v1", "Service")
RESOURCES = kubernetes_type("core/v1", "ResourceRequirements")
SECURITY_CONTEXT = kubernetes_type("core/v1", "SecurityContext")
ENV_VAR = kubernetes_type("core/v1", "EnvVar")
ENV_VAR_SOURCE = kubernetes_type("core/v1", "EnvVarSource")
ENV_FROM_SOURCE = kubernetes_type("core/v1", "EnvFromSource")
VOLUME_MOUNT = kubernetes_type("core/v1", "VolumeMount")
OBJECT_REFERENCE = kubernetes_type("core/v1", "ObjectReference")
INGRESS_TLS = kubernetes_type("networking/v1", "IngressTLS")
INGRESS_RULE = kubernetes_type("networking/v1", "NetworkPolicyIngressRule")
EGRESS_RULE = kubernetes_type("networking/v1", "NetworkPolicyEgressRule")
CONDITION = kubernetes_type("meta/v1", "Condition")

STRINGS = map_of(STRING)

MANAGED_BY = field(
    "managedBy",
    STRING,
    "Who reconciles the object: `ray.io/kuberay-operator` (this operator, also when unset) or "
    "`kueue.x-k8s.io/multikueue`, which makes this operator leave the object alone so that MultiKueue can "
    "run it in another cluster. Cannot be changed once it is set.",
    pointer=True,
    rules=(
        Rule("self == oldSelf", "the managedBy field is immutable"),
        Rule(
            "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",
            "the managedBy field value must be either 'ray.io/kuberay-operator' or "
            "'kueue.x-k8s.io/multikueue'",
        ),
    ),
)


def conditions(doc: str) -> Field:
    """Return a `conditions` field, one entry per type; `doc` says which types there are."""
    return field("conditions", list_of(CONDITION, keys=("type",)), doc)


def moment(name: str, doc: str) -> Field:
    """Return a field that holds a point in time and is unset until it has come."""
    return field(name, TIME, doc, pointer=True)
