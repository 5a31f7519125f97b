"""The roles and bindings that every cluster begins with: the ones users rely on, and those of the cluster's parts."""

from typing import Any

from kubereef.kinds.resource import Object

GROUP = "rbac.authorization.k8s.io"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_ALL = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_ISSUER = [
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/",
    "/openid/v1/jwks",
    "/openid/v1/jwks/",
]


def cluster_roles() -> list[Object]:
    """Return the cluster roles; those that aggregate others have no rules of their own."""
    plain = [_role(name, rules) for name, rules in _ROLES.items()]
    parts = [
        _role(f"system:aggregate-to-{name}", rules, {_aggregates_to(name): "true"})
        for name, rules in _AGGREGATED.items()
    ]
    wholes = [_aggregating("admin", ""), _aggregating("edit", "admin"), _aggregating("view", "edit")]
    return [*plain, *parts, *wholes]


def cluster_role_bindings() -> list[Object]:
    """Return the bindings of the cluster roles that somebody has from the beginning."""
    return [_binding(name, subjects) for name, subjects in _BINDINGS.items()]


def _rule(groups: str, resources: str, verbs: list[str], names: str = "") -> Object:
    """Return a rule; groups, resources and names are words in one text, and the core group is written `core`."""
    rule: Object = {
        "apiGroups": ["" if group == "core" else group for group in groups.split()],
        "resources": resources.split(),
        "verbs": verbs,
    }
    if names:
        rule["resourceNames"] = names.split()
    return rule


def _urls(urls: list[str], verbs: list[str]) -> Object:
    return {"nonResourceURLs": urls, "verbs": verbs}


def _metadata(name: str, labels: dict[str, str] | None = None) -> Object:
    return {"name": name, "labels": {**_LABELS, **(labels or {})}, "annotations": {AUTOUPDATE: "true"}}


def _aggregates_to(name: str) -> str:
    return f"{GROUP}/aggregate-to-{name}"


def _role(name: str, rules: list[Object], labels: dict[str, str] | None = None) -> Object:
    return {"metadata": _metadata(name, labels), "rules": rules}


def _aggregating(name: str, into: str) -> Object:
    labels = {_aggregates_to(into): "true"} if into else {}
    selectors = [{"matchLabels": {_aggregates_to(name): "true"}}]
    return {
        "metadata": _metadata(name, labels),
        "aggregationRule": {"clusterRoleSelectors": selectors},
        "rules": [],
    }


def _binding(name: str, subjects: list[tuple[str, str]]) -> Object:
    return {
        "metadata": _metadata(name),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": kind, "name": subject} for kind, subject in subjects],
    }


_EVENTS = _rule("core events.k8s.io", "events", ["create", "patch", "update"])
_TOKEN_REVIEWS = _rule("authentication.k8s.io", "tokenreviews", ["create"])
_ACCESS_REVIEWS = _rule("authorization.k8s.io", "subjectaccessreviews", ["create"])

_ROLES: dict[str, list[Any]] = {
    "cluster-admin": [_rule("*", "*", ["*"]), _urls(["*"], ["*"])],
    "system:discovery": [
        _urls(
            sorted([*_HEALTH, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]),
            ["get"],
        )
    ],
    "system:basic-user": [
        _rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", ["create"]),
        _rule("authentication.k8s.io", "selfsubjectreviews", ["create"]),
    ],
    "system:public-info-viewer": [_urls(_HEALTH, ["get"])],
    "system:monitoring": [
        _urls(
            [
                "/healthz",
                "/healthz/*",
                "/livez",
                "/livez/*",
                "/metrics",
                "/metrics/slis",
                "/readyz",
                "/readyz/*",
            ],
            ["get"],
        )
    ],
    "system:service-account-issuer-discovery": [_urls(_ISSUER, ["get"])],
    "system:auth-delegator": [_TOKEN_REVIEWS, _ACCESS_REVIEWS],
    "system:kubelet-api-admin": [
        _rule("core", "nodes", ["get", "list", "proxy", "watch"]),
        _rule(
            "core",
            "nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy nodes/spec nodes/stats",
            ["*"],
        ),
    ],
    "system:node": [
        _TOKEN_REVIEWS,
        _rule("authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", ["create"]),
        _rule("core", "services", _READ),
        _rule("core", "nodes", ["create", "get", "list", "watch"]),
        _rule("core", "nodes/status", ["patch", "update"]),
        _rule("core", "nodes", ["patch", "update"]),
        _EVENTS,
        _rule("core", "pods", ["create", "delete", "get", "list", "watch"]),
        _rule("core", "pods/status", ["patch", "update"]),
        _rule("core", "pods/eviction", ["create"]),
        _rule("core", "configmaps secrets", _READ),
        _rule("core", "persistentvolumeclaims persistentvolumes", ["get"]),
        _rule("core", "persistentvolumeclaims/status", ["get", "patch", "update"]),
        _rule("core", "endpoints", ["get"]),
        _rule("core", "serviceaccounts/token", ["create"]),
        _rule("core", "serviceaccounts", ["get"]),
        _rule("discovery.k8s.io", "endpointslices", _READ),
        _rule("coordination.k8s.io", "leases", ["create", "delete", "get", "patch", "update"]),
        _rule("node.k8s.io", "runtimeclasses", _READ),
        _rule("storage.k8s.io", "csidrivers", _READ),
        _rule("storage.k8s.io", "csinodes", ["create", "delete", "get", "patch", "update"]),
        _rule("storage.k8s.io", "volumeattachments", ["get"]),
    ],
    "system:node-proxier": [
        _rule("core", "endpoints services", ["list", "watch"]),
        _rule("core", "nodes", _READ),
        _EVENTS,
        _rule("discovery.k8s.io", "endpointslices", ["list", "watch"]),
        _rule("networking.k8s.io", "servicecidrs", ["list", "watch"]),
    ],
    "system:kube-scheduler": [
        _EVENTS,
        _rule("coordination.k8s.io", "leases", ["create"]),
        _rule("coordination.k8s.io", "leases", ["get", "list", "update", "watch"], "kube-scheduler"),
        _rule("core", "nodes", _READ),
        _rule("core", "pods", ["delete", "get", "list", "watch"]),
        _rule("core", "bindings pods/binding", ["create"]),
        _rule("core", "pods/status", ["patch", "update"]),
        _rule("core", "namespaces replicationcontrollers services", _READ),
        _rule("apps extensions", "replicasets", _READ),
        _rule("apps", "statefulsets", _READ),
        _rule("policy", "poddisruptionbudgets", _READ),
        _rule("core", "persistentvolumeclaims persistentvolumes", _READ),
        _rule("storage.k8s.io", "csidrivers csinodes csistoragecapacities volumeattachments", _READ),
        _TOKEN_REVIEWS,
        _ACCESS_REVIEWS,
    ],
    "system:volume-scheduler": [
        _rule("core", "persistentvolumes", ["get", "list", "patch", "update", "watch"]),
        _rule("storage.k8s.io", "storageclasses", _READ),
        _rule("core", "persistentvolumeclaims", ["get", "list", "patch", "update", "watch"]),
    ],
    "system:persistent-volume-provisioner": [
        _rule("core", "persistentvolumes", ["create", "delete", "get", "list", "watch"]),
        _rule("core", "persistentvolumeclaims", ["get", "list", "update", "watch"]),
        _rule("storage.k8s.io", "storageclasses", _READ),
        _rule("core", "events", ["watch"]),
        _EVENTS,
    ],
    "system:kube-controller-manager": [
        _EVENTS,
        _rule("coordination.k8s.io", "leases", ["create"]),
        _rule("coordination.k8s.io", "leases", ["get", "list", "update", "watch"], "kube-controller-manager"),
        _rule("core", "secrets serviceaccounts", ["create"]),
        _rule("core", "secrets", ["delete"]),
        _rule("core", "configmaps namespaces secrets serviceaccounts", ["get"]),
        _rule("core", "secrets serviceaccounts", ["update"]),
        _TOKEN_REVIEWS,
        _ACCESS_REVIEWS,
        _rule("*", "*", ["list", "watch"]),
        _rule("core", "serviceaccounts/token", ["create"]),
    ],
}

_WORKLOADS = (
    "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale"
    " statefulsets statefulsets/scale"
)
_WORKLOADS_READ = (
    "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status"
    " replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"
)
_EXTENSIONS = (
    "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets"
    " replicasets/scale replicationcontrollers/scale"
)
_EXTENSIONS_READ = (
    "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status"
    " networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale"
)

_AGGREGATED: dict[str, list[Any]] = {
    "admin": [
        _rule("authorization.k8s.io", "localsubjectaccessreviews", ["create"]),
        _rule(GROUP, "rolebindings roles", _ALL),
    ],
    "edit": [
        _rule("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", _READ),
        _rule("core", "serviceaccounts", ["impersonate"]),
        _rule("core", "pods pods/attach pods/exec pods/portforward pods/proxy", _WRITE),
        _rule("core", "pods/eviction", ["create"]),
        _rule(
            "core",
            "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale"
            " secrets serviceaccounts services services/proxy",
            _WRITE,
        ),
        _rule("core", "serviceaccounts/token", ["create"]),
        _rule("apps", _WORKLOADS, _WRITE),
        _rule("autoscaling", "horizontalpodautoscalers", _WRITE),
        _rule("batch", "cronjobs jobs", _WRITE),
        _rule("extensions", _EXTENSIONS, _WRITE),
        _rule("policy", "poddisruptionbudgets", _WRITE),
        _rule("networking.k8s.io", "ingresses networkpolicies", _WRITE),
        _rule("coordination.k8s.io", "leases", _ALL),
        _rule("resource.k8s.io", "resourceclaims resourceclaimtemplates", _WRITE),
    ],
    "view": [
        _rule(
            "core",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods"
            " replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
            _READ,
        ),
        _rule(
            "core",
            "bindings events limitranges namespaces/status pods/log pods/status"
            " replicationcontrollers/status resourcequotas resourcequotas/status",
            _READ,
        ),
        _rule("core", "namespaces", _READ),
        _rule("discovery.k8s.io", "endpointslices", _READ),
        _rule("apps", _WORKLOADS_READ, _READ),
        _rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", _READ),
        _rule("batch", "cronjobs cronjobs/status jobs jobs/status", _READ),
        _rule("extensions", _EXTENSIONS_READ, _READ),
        _rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", _READ),
        _rule("networking.k8s.io", "ingresses ingresses/status networkpolicies", _READ),
        _rule("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates", _READ),
    ],
}

_BINDINGS: dict[str, list[tuple[str, str]]] = {
    "cluster-admin": [("Group", "system:masters")],
    "system:discovery": [("Group", "system:authenticated")],
    "system:basic-user": [("Group", "system:authenticated")],
    "system:public-info-viewer": [("Group", "system:authenticated"), ("Group", "system:unauthenticated")],
    "system:monitoring": [("Group", "system:monitoring")],
    "system:service-account-issuer-discovery": [("Group", "system:serviceaccounts")],
    # Kubernetes leaves this one without subjects and lets its node authorizer decide; here roles decide alone.
    "system:node": [("Group", "system:nodes")],
    "system:kubelet-api-admin": [("User", "kube-apiserver-kubelet-client")],
    "system:node-proxier": [("User", "system:kube-proxy")],
    "system:kube-scheduler": [("User", "system:kube-scheduler")],
    "system:volume-scheduler": [("User", "system:kube-scheduler")],
    "system:kube-controller-manager": [("User", "system:kube-controller-manager")],
}
