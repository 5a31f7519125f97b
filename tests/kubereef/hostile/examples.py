"""One small object of every kind that a server accepts, by the name of its definition; hostile ones grow from these."""

from typing import Any

Object = dict[str, Any]

_LABELS = {"app": "hostile"}
_SELECTOR = {"matchLabels": _LABELS}
_POD_SPEC: Object = {"containers": [{"name": "main", "image": "busybox"}]}
_TEMPLATE: Object = {"metadata": {"labels": _LABELS}, "spec": _POD_SPEC}
_ONCE: Object = {"metadata": {"labels": _LABELS}, "spec": {**_POD_SPEC, "restartPolicy": "Never"}}
_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_SUBJECTS = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
_ABOUT = {"kind": "Pod", "name": "standing", "apiVersion": "v1"}
_ASKED = {"verb": "get", "resource": "pods"}
_MOMENT = "2026-01-02T03:04:05.000000Z"


def _core(name: str, **fields: Any) -> tuple[str, Object]:
    return f"io.k8s.api.core.v1.{name}", fields


EXAMPLES: dict[str, Object] = dict(
    [
        _core("Namespace"),
        _core("Binding", target={"kind": "Node", "name": "nowhere"}),
        _core("ConfigMap", data={"key": "value"}, binaryData={"raw": "AAEC"}),
        _core(
            "Endpoints",
            subsets=[{"addresses": [{"ip": "10.9.8.7"}], "ports": [{"name": "http", "port": 80}]}],
        ),
        _core("LimitRange", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]}),
        _core(
            "PersistentVolumeClaim",
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
        _core(
            "PersistentVolume",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/nowhere"},
                "persistentVolumeReclaimPolicy": "Retain",
            },
        ),
        _core("Pod", spec=_POD_SPEC),
        _core("PodTemplate", template=_TEMPLATE),
        _core("ResourceQuota", spec={"hard": {"count/widgets.example.com": "100"}}),
        _core("Secret", stringData={"password": "secret"}, type="Opaque"),
        _core("ServiceAccount"),
        _core("Service", spec={"selector": _LABELS, "ports": [{"port": 80}]}),
        _core("Node", spec={"unschedulable": True}),
        ("io.k8s.api.core.v1.Event", {"involvedObject": _ABOUT, "reason": "Tested", "message": "told"}),
        (
            "io.k8s.api.events.v1.Event",
            {
                "regarding": _ABOUT,
                "reason": "Tested",
                "action": "Testing",
                "note": "told",
                "type": "Normal",
                "eventTime": _MOMENT,
                "reportingController": "example.com/hostile",
                "reportingInstance": "hostile-1",
            },
        ),
        ("io.k8s.api.apps.v1.Deployment", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
        (
            "io.k8s.api.apps.v1.ReplicaSet",
            {"spec": {"replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE}},
        ),
        ("io.k8s.api.apps.v1.DaemonSet", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
        (
            "io.k8s.api.apps.v1.StatefulSet",
            {"spec": {"serviceName": "a", "replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE}},
        ),
        ("io.k8s.api.batch.v1.Job", {"spec": {"suspend": True, "template": _ONCE}}),
        (
            "io.k8s.api.batch.v1.CronJob",
            {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": _ONCE}}}},
        ),
        ("io.k8s.api.autoscaling.v1.Scale", {"spec": {"replicas": 0}}),
        ("io.k8s.api.coordination.v1.Lease", {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}),
        (
            "io.k8s.api.discovery.v1.EndpointSlice",
            {
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.9.8.7"]}],
                "ports": [{"name": "http", "port": 80}],
            },
        ),
        ("io.k8s.api.networking.v1.IngressClass", {"spec": {"controller": "example.com/ingress"}}),
        (
            "io.k8s.api.networking.v1.Ingress",
            {"spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}},
        ),
        ("io.k8s.api.networking.v1.NetworkPolicy", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
        ("io.k8s.api.policy.v1.PodDisruptionBudget", {"spec": {"minAvailable": 1, "selector": _SELECTOR}}),
        ("io.k8s.api.policy.v1.Eviction", {}),
        ("io.k8s.api.rbac.v1.ClusterRole", {"rules": _RULES}),
        ("io.k8s.api.rbac.v1.Role", {"rules": _RULES}),
        ("io.k8s.api.rbac.v1.ClusterRoleBinding", {"roleRef": _ROLE, "subjects": _SUBJECTS}),
        ("io.k8s.api.rbac.v1.RoleBinding", {"roleRef": _ROLE, "subjects": _SUBJECTS}),
        ("io.k8s.api.scheduling.v1.PriorityClass", {"value": 1000}),
        ("io.k8s.api.storage.v1.StorageClass", {"provisioner": "example.com/disks"}),
        ("io.k8s.api.authentication.v1.TokenReview", {"spec": {"token": "nonsense"}}),
        ("io.k8s.api.authentication.v1.TokenRequest", {"spec": {"audiences": [], "expirationSeconds": 600}}),
        (
            "io.k8s.api.authorization.v1.SubjectAccessReview",
            {"spec": {"user": "a", "resourceAttributes": _ASKED}},
        ),
        ("io.k8s.api.authorization.v1.SelfSubjectAccessReview", {"spec": {"resourceAttributes": _ASKED}}),
        ("io.k8s.api.authorization.v1.SelfSubjectRulesReview", {"spec": {"namespace": "default"}}),
        (
            "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
            {"spec": {"user": "a", "resourceAttributes": _ASKED}},
        ),
    ]
)

# The definition that a custom kind has before anybody has touched it.
WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "When", "type": "date", "jsonPath": ".spec.when"},
                    {"name": "Part", "type": "string", "jsonPath": ".spec.parts[?(@.name=='a')].colour"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-validations": [
                                    {"rule": "!has(self.size) || self.size < 100", "message": "too large"}
                                ],
                                "properties": {
                                    "size": {"type": "integer", "format": "int32"},
                                    "replicas": {"type": "integer", "default": 1},
                                    "ratio": {"type": "number"},
                                    "when": {"type": "string", "format": "date-time"},
                                    "pattern": {"type": "string", "pattern": "^(a+)+$", "maxLength": 4096},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "anything": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                    "labels": {
                                        "type": "object",
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "parts": {
                                        "type": "array",
                                        "maxItems": 100,
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "colour": {"type": "string", "enum": ["red", "blue"]},
                                            },
                                        },
                                    },
                                    "tags": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}

EXAMPLES["com.example.v1.Widget"] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "spec": {"size": 1, "parts": [{"name": "a", "colour": "red"}], "tags": ["x"], "anything": {"a": [1]}},
}
EXAMPLES["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"] = {
    "spec": {
        "group": "hostile.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    }
                },
            }
        ],
    }
}
