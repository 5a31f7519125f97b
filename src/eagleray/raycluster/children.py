"""The plan for everything that a cluster has besides Pods: accounts and rights, the ways in, the token."""

from collections.abc import Iterator
from typing import Any

from eagleray.kube.resources import (
    INGRESSES,
    ROLE_BINDINGS,
    ROLES,
    ROUTES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from eagleray.manifests import access, ingress, services
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.settings import Settings
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.storage import plan_storage
from eagleray.runtime.actions import SILENT, Action, Create, Refuse, Replace, Said, Say, Stage
from kubewire.owners import controller_of

Object = dict[str, Any]


def plan_children(
    snapshot: Snapshot,
    settings: Settings,
    *,
    routes: bool,
    token: str,
    account_exists: bool,
    claim_exists: bool = True,
) -> Iterator[Stage]:
    """Yield what is missing or out of date, stage by stage, in the order in which it is needed.

    `routes` is whether the way in is OpenShift's, `token` what a new Secret would hold; `account_exists` and
    `claim_exists` are whether the service account and the volume claim that a user names are there.
    """
    cluster = snapshot.cluster
    if cluster.autoscaling:
        yield Stage("service-account", tuple(_account(snapshot, account_exists)))
        yield Stage("role", tuple(_missing(snapshot, ROLES, "role", access.autoscaler_role(cluster))))
        binding = access.autoscaler_binding(cluster)
        yield Stage("role-binding", tuple(_missing(snapshot, ROLE_BINDINGS, "role binding", binding)))
    if cluster.head.get("enableIngress"):
        if routes:
            yield Stage("route", tuple(_missing(snapshot, ROUTES, "route", ingress.head_route(cluster))))
        else:
            yield Stage("ingress", tuple(_ingress(snapshot)))
    if access.needs_auth_secret(cluster):
        secret = access.auth_secret(cluster, token)
        yield Stage("auth-secret", tuple(_missing(snapshot, SECRETS, "", secret)))
    yield Stage("head-service", tuple(_head_service(snapshot, settings)))
    if headless := services.headless_service(cluster):
        yield Stage("headless-service", tuple(_missing(snapshot, SERVICES, "service", headless)))
    yield Stage("serve-service", tuple(_serve_service(snapshot)))
    if cluster.has_embedded_storage:
        yield Stage("storage", tuple(plan_storage(snapshot, claim_exists=claim_exists)))


def needs_account(cluster: Cluster) -> str:
    """Return the service account that a user has to bring, if there is one."""
    return access.user_account(cluster) if cluster.autoscaling else ""


def _account(snapshot: Snapshot, account_exists: bool) -> Iterator[Action]:
    cluster = snapshot.cluster
    name = access.user_account(cluster)
    if not name:
        account = access.autoscaler_account(cluster)
        yield from _missing(snapshot, SERVICE_ACCOUNTS, "service account", account)
    elif not account_exists:
        place = f"{cluster.namespace}/{name}"
        say = Say(
            "AutoscalerServiceAccountNotFound",
            "Validate",
            f"The head's template names service account {place}, which does not exist;"
            " create it, or leave serviceAccountName out to have one made",
            "Warning",
        )
        yield Refuse(f"service account {place} does not exist", say)


def _missing(snapshot: Snapshot, resource: Resource, noun: str, wanted: Object) -> Iterator[Action]:
    """Yield the creation of a child that is not there. Children without a noun come without events."""
    name = wanted["metadata"]["name"]
    if not snapshot.has(resource, name):
        yield Create(resource, wanted, _creation(resource, noun, wanted) if noun else SILENT)


def _creation(resource: Resource, noun: str, wanted: Object) -> Said:
    place = _place(wanted)
    return Said(
        Say(f"Created{resource.kind}", "Create", f"Created {noun} {place}"),
        Say(f"FailedToCreate{resource.kind}", "Create", f"Failed creating {noun} {place}", "Warning"),
    )


def _head_service(snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    found = snapshot.head_services
    if len(found) > 1:
        names = ", ".join(sorted(_place(service) for service in found))
        note = f"More than one head service: {names}; delete all but one"
        yield Refuse(note, Say("FailedToCreateService", "Create", note, "Warning"))
    elif not found:
        wanted = services.head_service(snapshot.cluster, settings)
        yield Create(SERVICES, wanted, _creation(SERVICES, "service", wanted))


def _serve_service(snapshot: Snapshot) -> Iterator[Action]:
    try:
        wanted = services.serve_service(snapshot.cluster)
    except services.NoServePort as missing:
        yield Refuse(str(missing))
        return
    if wanted is not None:
        yield from _missing(snapshot, SERVICES, "", wanted)


def _ingress(snapshot: Snapshot) -> Iterator[Action]:
    wanted = ingress.head_ingress(snapshot.cluster)
    found = snapshot.ingress
    said = _creation(INGRESSES, "ingress", wanted)
    if found is None or (controller_of(found) or {}).get("uid") != snapshot.cluster.uid:
        yield Create(INGRESSES, wanted, said, optional=True)
    elif updated := _updated_ingress(found, wanted):
        place = _place(wanted)
        said = Said(
            Say("UpdatedIngress", "Update", f"Updated ingress {place}"),
            Say("FailedToUpdateIngress", "Update", f"Failed updating ingress {place}", "Warning"),
        )
        yield Replace(INGRESSES, updated, said)


def _updated_ingress(found: Object, wanted: Object) -> Object | None:
    """Return the Ingress as it should become; None if it is so already.

    A class that nobody asked for was set by the cluster's own admission: it stays.
    """
    spec = dict(wanted["spec"])
    live = found.get("spec") or {}
    if "ingressClassName" not in spec and live.get("ingressClassName"):
        spec["ingressClassName"] = live["ingressClassName"]
    metadata = {**found["metadata"]}
    for field in ("labels", "annotations"):
        metadata[field] = wanted["metadata"].get(field) or {}
    same = all(metadata[field] == (found["metadata"].get(field) or {}) for field in ("labels", "annotations"))
    if same and spec == live:
        return None
    return {**found, "metadata": metadata, "spec": spec}


def _place(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
