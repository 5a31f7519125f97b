"""What the cluster fills in or refuses about single kinds: priorities, tolerations, taints, default classes."""

from typing import NamedTuple

from kubereef.kinds.resource import Object
from kubereef.server.addresses import DEFAULT_CIDR, ServiceAddresses
from kubereef.server.admission import Admission, Attempt, namespace_lifecycle
from kubereef.server.authorization import Authorizer
from kubereef.server.escalation import NoEscalation
from kubereef.server.limitranges import default_limits, within_limits
from kubereef.server.quotas.step import within_quotas
from kubereef.server.serviceaccount_admission import ServiceAccountStep, default_account_arrives
from kubereef.server.topology import pod_topology
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire import errors
from kubewire.quantity import Quantity
from kubewire.sources import Entropy

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
STORAGE_CLASSES = "storageclasses.storage.k8s.io"
INGRESS_CLASSES = "ingressclasses.networking.k8s.io"

DEFAULT_PREEMPTION = "PreemptLowerPriority"
_IS_DEFAULT_STORAGE = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_IS_DEFAULT_INGRESS = ("ingressclass.kubernetes.io/is-default-class",)
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS = 300
_LASTING_NAMESPACES = frozenset(("default", "kube-public", "kube-system"))
_PROTECTION = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
}


def cluster_admission(
    entropy: Entropy, authorizer: Authorizer, service_cidr: str = DEFAULT_CIDR
) -> Admission:
    """Return the admission of a whole cluster, whose Services have addresses from a range."""
    mutating = (
        namespace_lifecycle,
        default_limits,
        ServiceAccountStep(entropy),
        priority,
        default_tolerations,
        not_ready_taint,
        default_storage_class,
        default_ingress_class,
        in_use_protection,
        pod_topology,
        # It changes nothing, but comes before objects are found to be invalid, as with Kubernetes.
        NoEscalation(authorizer),
    )
    # Addresses are chosen before webhooks judge what has them, and claimed once more when these have.
    addresses = ServiceAddresses(entropy, service_cidr)
    validating = (within_limits, lasting_namespaces, one_default_priority, claims_that_can_grow, addresses)
    # Quotas come last: what is refused must not have been charged for.
    settling = (addresses, within_quotas)
    return Admission(mutating, validating, (default_account_arrives,), settling)


class _Priority(NamedTuple):
    class_name: str
    value: int
    preemption: str


def priority(store: Store, attempt: Attempt) -> list[str]:
    """Give a Pod the priority of its class; nobody else chooses it."""
    if attempt.resource_type.resource != "pods" or attempt.subresource:
        return []
    spec = attempt.obj.setdefault("spec", {})
    if attempt.operation == "UPDATE" and attempt.old is not None:
        before = attempt.old.get("spec") or {}
        for field in ("priority", "preemptionPolicy"):
            if spec.get(field) is None and before.get(field) is not None:
                spec[field] = before[field]
        return []
    if attempt.operation != "CREATE":
        return []
    found = _priority_of(store, attempt, spec.get("priorityClassName") or "")
    given = spec.get("priority")
    if given is not None and given != found.value:
        raise _refused(
            attempt,
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission"
            f" controller computed {found.value} from the given PriorityClass name",
        )
    wish = spec.get("preemptionPolicy")
    if wish is not None and wish != found.preemption:
        raise _refused(
            attempt,
            f"the string value of PreemptionPolicy ({wish}) must not be provided in pod spec; priority"
            f" admission controller computed {found.preemption} from the given PriorityClass name",
        )
    if found.class_name:
        spec["priorityClassName"] = found.class_name
    spec["priority"], spec["preemptionPolicy"] = found.value, found.preemption
    return []


def claims_that_can_grow(store: Store, attempt: Attempt) -> list[str]:
    """Refuse to give a claim more room than its class can make."""
    resource = attempt.resource_type.resource
    if attempt.operation != "UPDATE" or resource != "persistentvolumeclaims" or attempt.subresource:
        return []
    new, old = ((obj or {}).get("spec") or {} for obj in (attempt.obj, attempt.old))
    wanted, had = (
        ((spec.get("resources") or {}).get("requests") or {}).get("storage") for spec in (new, old)
    )
    if wanted is None or had is None or Quantity.parse(wanted) <= Quantity.parse(had):
        return []
    record = store.get(Key(STORAGE_CLASSES, "", new.get("storageClassName") or ""))
    if record is None or not record.object().get("allowVolumeExpansion"):
        because = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
            "support resize"
        )
        raise _refused(attempt, because)
    return []


def lasting_namespaces(_store: Store, attempt: Attempt) -> list[str]:
    """Refuse to delete the namespaces that a cluster cannot do without."""
    if (
        attempt.operation == "DELETE"
        and attempt.resource_type.resource == "namespaces"
        and attempt.name in _LASTING_NAMESPACES
    ):
        raise _refused(attempt, "this namespace may not be deleted")
    return []


def one_default_priority(store: Store, attempt: Attempt) -> list[str]:
    """Refuse a second priority class that is the default of all Pods."""
    if attempt.operation == "DELETE" or attempt.resource_type.resource != PRIORITY_CLASSES:
        return []
    if not attempt.obj.get("globalDefault"):
        return []
    for other in _objects(store, PRIORITY_CLASSES):
        name = other["metadata"]["name"]
        if other.get("globalDefault") and name != attempt.name:
            raise _refused(
                attempt, f"PriorityClass {name} is already marked as default. Only one default can exist"
            )
    return []


def default_tolerations(_store: Store, attempt: Attempt) -> list[str]:
    """Let a Pod outlive five minutes of trouble with its node, unless it says otherwise."""
    if attempt.operation == "DELETE" or attempt.resource_type.resource != "pods" or attempt.subresource:
        return []
    spec = attempt.obj.setdefault("spec", {})
    tolerations = list(spec.get("tolerations") or ())
    missing = [
        key for key in (_NOT_READY, _UNREACHABLE) if not any(_tolerates(one, key) for one in tolerations)
    ]
    tolerations += [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _TOLERATION_SECONDS,
        }
        for key in missing
    ]
    if missing:
        spec["tolerations"] = tolerations
    return []


def not_ready_taint(_store: Store, attempt: Attempt) -> list[str]:
    """Keep Pods off a new node until somebody has seen that it is ready."""
    if attempt.operation != "CREATE" or attempt.resource_type.resource != "nodes":
        return []
    spec = attempt.obj.setdefault("spec", {})
    taint = {"key": _NOT_READY, "effect": "NoSchedule"}
    taints = spec.get("taints") or []
    if not any((one.get("key"), one.get("effect")) == (_NOT_READY, "NoSchedule") for one in taints):
        spec["taints"] = [*taints, taint]
    return []


def default_storage_class(store: Store, attempt: Attempt) -> list[str]:
    """Give a claim that names no storage class the default one."""
    if attempt.operation != "CREATE" or attempt.resource_type.resource != "persistentvolumeclaims":
        return []
    spec = attempt.obj.setdefault("spec", {})
    legacy = (attempt.obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    if spec.get("storageClassName") is None and legacy is None:
        name = _default_class(store, STORAGE_CLASSES, _IS_DEFAULT_STORAGE)
        if name:
            spec["storageClassName"] = name
    return []


def default_ingress_class(store: Store, attempt: Attempt) -> list[str]:
    """Give an ingress that names no class the default one."""
    if attempt.operation != "CREATE" or attempt.resource_type.resource != "ingresses.networking.k8s.io":
        return []
    spec = attempt.obj.setdefault("spec", {})
    legacy = (attempt.obj["metadata"].get("annotations") or {}).get("kubernetes.io/ingress.class")
    if spec.get("ingressClassName") is None and legacy is None:
        name = _default_class(store, INGRESS_CLASSES, _IS_DEFAULT_INGRESS)
        if name:
            spec["ingressClassName"] = name
    return []


def in_use_protection(_store: Store, attempt: Attempt) -> list[str]:
    """Hold volumes and claims until nobody uses them; a controller lets go of them."""
    finalizer = _PROTECTION.get(attempt.resource_type.resource)
    if attempt.operation != "CREATE" or finalizer is None:
        return []
    metadata = attempt.obj["metadata"]
    if finalizer not in (metadata.get("finalizers") or ()):
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), finalizer]
    return []


def _priority_of(store: Store, attempt: Attempt, name: str) -> _Priority:
    if name:
        record = store.latest(Key(PRIORITY_CLASSES, "", name))
        if record is None:
            raise _refused(attempt, f"no PriorityClass with name {name} was found")
        return _priority_in(record.object())
    defaults = [one for one in _objects(store, PRIORITY_CLASSES) if one.get("globalDefault")]
    if not defaults:
        return _Priority("", 0, DEFAULT_PREEMPTION)
    return _priority_in(min(defaults, key=lambda one: one.get("value", 0)))


def _priority_in(obj: Object) -> _Priority:
    return _Priority(
        obj["metadata"]["name"], obj.get("value", 0), obj.get("preemptionPolicy") or DEFAULT_PREEMPTION
    )


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


def _default_class(store: Store, resource: str, marks: tuple[str, ...]) -> str:
    """Return the name of the class that is marked as the default: the youngest, should there be several."""
    marked = [
        one["metadata"]
        for one in _objects(store, resource)
        if any((one["metadata"].get("annotations") or {}).get(mark) == "true" for mark in marks)
    ]
    newest = max((metadata["creationTimestamp"] for metadata in marked), default="")
    return min((one["name"] for one in marked if one["creationTimestamp"] == newest), default="")


def _objects(store: Store, resource: str) -> list[Object]:
    return [record.object() for record in store.records(resource)]


def _refused(attempt: Attempt, because: str) -> errors.Forbidden:
    resource_type = attempt.resource_type
    return errors.forbidden(resource_type.plural, attempt.name, because, group=resource_type.group)
