"""What is particular about each built-in kind, by resource."""

from kubereef.kinds.behaviours import (
    configuration,
    endpoints,
    events,
    limits,
    networking,
    rbac,
    volumes,
    workloads,
)
from kubereef.kinds.behaviours.definitions import DEFINITIONS
from kubereef.kinds.behaviours.disruptions import POD_DISRUPTION_BUDGETS
from kubereef.kinds.behaviours.jobs import JOBS
from kubereef.kinds.behaviours.leases import LEASES
from kubereef.kinds.behaviours.namespaces import NAMESPACES
from kubereef.kinds.behaviours.networkpolicies import NETWORK_POLICIES
from kubereef.kinds.behaviours.nodes import NODES
from kubereef.kinds.behaviours.pods import PODS
from kubereef.kinds.behaviours.priorities import PRIORITY_CLASSES
from kubereef.kinds.behaviours.serviceaccounts import SERVICE_ACCOUNTS
from kubereef.kinds.behaviours.services import SERVICES
from kubereef.kinds.behaviours.webhooks import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from kubereef.kinds.resource import Behaviour

BEHAVIOURS: dict[str, Behaviour] = {
    "clusterrolebindings.rbac.authorization.k8s.io": rbac.CLUSTER_ROLE_BINDINGS,
    "clusterroles.rbac.authorization.k8s.io": rbac.CLUSTER_ROLES,
    "configmaps": configuration.CONFIG_MAPS,
    "customresourcedefinitions.apiextensions.k8s.io": DEFINITIONS,
    "deployments.apps": workloads.DEPLOYMENTS,
    "endpoints": endpoints.ENDPOINTS,
    "endpointslices.discovery.k8s.io": endpoints.ENDPOINT_SLICES,
    "events": events.EVENTS,
    "events.events.k8s.io": events.NEW_EVENTS,
    "ingressclasses.networking.k8s.io": networking.INGRESS_CLASSES,
    "ingresses.networking.k8s.io": networking.INGRESSES,
    "jobs.batch": JOBS,
    "leases.coordination.k8s.io": LEASES,
    "limitranges": limits.LIMIT_RANGES,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": MUTATING_WEBHOOKS,
    "namespaces": NAMESPACES,
    "networkpolicies.networking.k8s.io": NETWORK_POLICIES,
    "nodes": NODES,
    "persistentvolumeclaims": volumes.PERSISTENT_VOLUME_CLAIMS,
    "persistentvolumes": volumes.PERSISTENT_VOLUMES,
    "poddisruptionbudgets.policy": POD_DISRUPTION_BUDGETS,
    "pods": PODS,
    "podtemplates": workloads.POD_TEMPLATES,
    "priorityclasses.scheduling.k8s.io": PRIORITY_CLASSES,
    "replicasets.apps": workloads.REPLICA_SETS,
    "resourcequotas": limits.RESOURCE_QUOTAS,
    "rolebindings.rbac.authorization.k8s.io": rbac.ROLE_BINDINGS,
    "roles.rbac.authorization.k8s.io": rbac.ROLES,
    "secrets": configuration.SECRETS,
    "serviceaccounts": SERVICE_ACCOUNTS,
    "services": SERVICES,
    "storageclasses.storage.k8s.io": volumes.STORAGE_CLASSES,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": VALIDATING_WEBHOOKS,
}
