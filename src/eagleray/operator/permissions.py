"""What an operator may ask of an API server, and why: the one table behind roles, charts and their page.

Each entry is something that the code asks for, or has to be allowed although it never asks: an API server lets nobody
give away a right that they do not have, and some let nobody block the deletion of an owner without it. Tests fail on a
request that no entry covers, and on an entry that no request needs.
"""

from collections.abc import Collection, Iterable
from typing import Final, Literal, NamedTuple

from eagleray.kube.resources import (
    COSCHEDULING_POD_GROUPS,
    ENDPOINT_SLICES,
    EVENTS,
    GANG_POD_GROUPS,
    GANG_WORKLOADS,
    GATEWAYS,
    HTTP_ROUTES,
    INGRESSES,
    JOBS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RAY_CLUSTERS,
    RAY_CRON_JOBS,
    RAY_JOBS,
    RAY_SERVICES,
    ROLE_BINDINGS,
    ROLES,
    ROUTES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    VOLCANO_POD_GROUPS,
    Object,
    Resource,
)
from eagleray.runtime.leases import LEASE_NAME
from eagleray.runtime.options import Options
from eagleray.webhooks.certificates import SECRET_NAME
from eagleray.webhooks.trust import CONFIGURATIONS

# Where a permission is needed: in the namespaces with Ray's objects, in the whole cluster whatever is watched, or in
# the namespace of the operator itself.
Scope = Literal["watched", "cluster", "own"]
# Whether the operator asks for it itself, hands it on to Ray's autoscaler, or needs it to name owners.
Use = Literal["asks", "hands on", "owns"]
# What has to be switched on for a permission to be needed.
Condition = Literal[
    "always",
    "leader-election",
    "proxy",
    "webhooks",
    "embedded-storage",
    "volcano",
    "scheduler-plugins",
    "kubernetes-was",
]

STORAGE_GATE: Final = "GCSFaultToleranceEmbeddedStorage"
WORKLOAD_GATE: Final = "KubernetesWAS"

# What the packaged operator is told to look after, and what its role is limited to.
WEBHOOK_CONFIGURATION: Final = "validating-webhook-configuration"


class Permission(NamedTuple):
    """Some verbs on one resource, or on a `part` of it, or only on the object of a `name`."""

    resource: Resource
    verbs: tuple[str, ...]
    why: str
    when: Condition = "always"
    scope: Scope = "watched"
    use: Use = "asks"
    part: str = ""
    name: str = ""

    @property
    def what(self) -> str:
        """The resource as rules name it."""
        return f"{self.resource.plural}/{self.part}" if self.part else self.resource.plural


def _may(
    resource: Resource,
    verbs: str,
    why: str,
    when: Condition = "always",
    *,
    scope: Scope = "watched",
    use: Use = "asks",
    part: str = "",
    name: str = "",
) -> Permission:
    return Permission(resource, tuple(verbs.split()), why, when, scope, use, part, name)


# Whatever is created is also read: after an answer was lost, to see whose the object of that name is.
PERMISSIONS: Final = (
    _may(PODS, "create delete deletecollection get list patch watch", "heads and workers"),
    _may(SERVICES, "create delete get list update watch", "the ways to heads and to Serve"),
    _may(SECRETS, "create get list watch", "tokens of clusters, and those that users name"),
    _may(SERVICE_ACCOUNTS, "create get list watch", "the account of a cluster's autoscaler"),
    _may(ROLES, "create get list watch", "what an autoscaler may do"),
    _may(ROLE_BINDINGS, "create get list watch", "to whom it is given"),
    _may(JOBS, "create delete get list patch watch", "submitters of RayJobs, cleanup of Redis"),
    _may(ENDPOINT_SLICES, "list watch", "whether a RayService can be reached"),
    _may(INGRESSES, "create get list update watch", "dashboards from outside"),
    _may(ROUTES, "create get list watch", "the same on OpenShift"),
    _may(GATEWAYS, "create delete get list update watch", "incremental upgrades of RayServices"),
    _may(HTTP_ROUTES, "create delete get list update watch", "incremental upgrades of RayServices"),
    _may(EVENTS, "create patch", "what is told about objects"),
    _may(
        RAY_CLUSTERS, "create delete get list patch update watch", "clusters, and those of jobs and services"
    ),
    _may(RAY_CLUSTERS, "patch", "their status", part="status"),
    _may(RAY_JOBS, "create delete get list patch watch", "jobs, and those of RayCronJobs"),
    _may(RAY_JOBS, "patch", "their status", part="status"),
    _may(RAY_SERVICES, "list patch watch", "services, whose finalizer is kept"),
    _may(RAY_SERVICES, "patch", "their status", part="status"),
    _may(RAY_CRON_JOBS, "list watch", "schedules"),
    _may(RAY_CRON_JOBS, "patch", "their status", part="status"),
    _may(NODES, "get", "whether a Pod that does not end is on a lost node", scope="cluster"),
    # Not asked for, but needed.
    _may(PODS, "get list patch watch", "given to autoscalers", use="hands on"),
    _may(PODS, "patch", "given to autoscalers", use="hands on", part="resize"),
    _may(RAY_CLUSTERS, "get patch", "given to autoscalers", use="hands on"),
    _may(RAY_CLUSTERS, "update", "owners of what is made for them", use="owns", part="finalizers"),
    _may(RAY_JOBS, "update", "owners of what is made for them", use="owns", part="finalizers"),
    _may(RAY_SERVICES, "update", "owners of what is made for them", use="owns", part="finalizers"),
    _may(RAY_CRON_JOBS, "update", "owners of what is made for them", use="owns", part="finalizers"),
    # Only if something is switched on.
    _may(LEASES, "create", "which replica acts", "leader-election", scope="own"),
    _may(LEASES, "get update", "which replica acts", "leader-election", scope="own", name=LEASE_NAME),
    _may(SERVICES, "create get update", "Ray's dashboards through the API server", "proxy", part="proxy"),
    _may(PODS, "get", "Serve on heads through the API server", "proxy", part="proxy"),
    _may(PERSISTENT_VOLUME_CLAIMS, "create get list patch watch", "where a GCS is kept", "embedded-storage"),
    _may(
        PERSISTENT_VOLUME_CLAIMS,
        "delete",
        "a claim is given to its cluster, or taken from it",
        "embedded-storage",
        use="owns",
    ),
    _may(VOLCANO_POD_GROUPS, "create get list patch watch", "gangs of Volcano", "volcano"),
    _may(
        COSCHEDULING_POD_GROUPS,
        "create get list patch watch",
        "gangs of scheduler-plugins",
        "scheduler-plugins",
    ),
    _may(GANG_WORKLOADS, "create delete get list watch", "gangs of Kubernetes itself", "kubernetes-was"),
    _may(
        GANG_POD_GROUPS, "create delete get list patch watch", "gangs of Kubernetes itself", "kubernetes-was"
    ),
    _may(
        CONFIGURATIONS,
        "get patch",
        "whom the API server trusts",
        "webhooks",
        scope="cluster",
        name=WEBHOOK_CONFIGURATION,
    ),
    _may(SECRETS, "create", "the certificate of the webhooks", "webhooks", scope="own"),
    _may(SECRETS, "get update", "the certificate of the webhooks", "webhooks", scope="own", name=SECRET_NAME),
)


def conditions_of(options: Options) -> frozenset[Condition]:
    """Return what is switched on for an operator with these options."""
    switched: dict[Condition, bool] = {
        "always": True,
        "leader-election": options.leader_election,
        "proxy": options.use_kubernetes_proxy,
        "webhooks": options.environment.webhooks,
        "embedded-storage": options.gates.enabled(STORAGE_GATE),
        "volcano": options.batch_scheduler == "volcano",
        "scheduler-plugins": options.batch_scheduler == "scheduler-plugins",
        "kubernetes-was": options.gates.enabled(WORKLOAD_GATE),
    }
    return frozenset(condition for condition, on in switched.items() if on)


def needed(conditions: Collection[Condition], *scopes: Scope) -> list[Permission]:
    """Return what is needed under these conditions, in some scopes or in all."""
    return [
        permission
        for permission in PERMISSIONS
        if permission.when in conditions and (not scopes or permission.scope in scopes)
    ]


def rules(permissions: Iterable[Permission]) -> list[Object]:
    """Return the rules of a role that gives these permissions, those with the same verbs put together."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for permission in permissions:
        place = (permission.resource.group, permission.what, permission.name)
        verbs.setdefault(place, set()).update(permission.verbs)
    resources: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for (group, what, name), allowed in verbs.items():
        resources.setdefault((group, tuple(sorted(allowed)), name), []).append(what)
    return [
        {
            "apiGroups": [group],
            **({"resourceNames": [name]} if name else {}),
            "resources": sorted(named),
            "verbs": list(allowed),
        }
        for (group, allowed, name), named in sorted(resources.items())
    ]
