"""Serve on a cluster: whether it serves, when it is handed a configuration, and who gets requests."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from eagleray.dashboard.address import Address, AddressError, head_address, serve_address
from eagleray.dashboard.errors import clipped
from eagleray.dashboard.orders import Order, PutServe
from eagleray.dashboard.questions import HealthOf, Question, ServeOf
from eagleray.dashboard.words import RUNNING, ServeDetails
from eagleray.kube.resources import PODS
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayservice import cluster_serve_name, serve_port
from eagleray.manifests.services import head_service
from eagleray.raycluster.status import BLOCKED, HEAD_READY, condition_of
from eagleray.rayservice.look import Handover, Look, Seen
from eagleray.runtime.actions import Action, Patch, Refuse, Said, Say, Stage
from kubewire.yamltext import YamlError, load

Object = dict[str, Any]

SERVICE_NAME_LABEL: Final = "kubernetes.io/service-name"
CAPACITY_FIELD: Final = "target_capacity"
_LONGEST_CAUSE: Final = 1000


class NotAConfiguration(ValueError):
    """A text that Serve cannot be configured with."""


# --- readiness


def is_head_ready(look: Look, seen: Seen) -> bool:
    """Tell whether the head of a cluster can be asked."""
    if seen.obj is None:
        return False
    if look.config.gate("RayClusterStatusConditions"):
        condition = condition_of(seen.obj.get("status") or {}, HEAD_READY)
        return condition is not None and condition["status"] == "True"
    head = seen.head
    return head is not None and head.is_running and head.ready is not None and head.ready.status == "True"


def is_ready(look: Look, seen: Seen) -> bool:
    """Tell whether there are applications on a cluster, and all of them run."""
    details = _details(look, seen)
    return details is not None and details.is_ready


def _details(look: Look, seen: Seen) -> ServeDetails | None:
    """Return what Serve says of its applications; None while it cannot be asked, or does not answer."""
    if not is_head_ready(look, seen) or seen.serve is None or seen.serve.error is not None:
        return None
    return seen.serve.serve


def why_not_ready(look: Look, seen: Seen) -> str:
    """Say what holds a cluster back, in words that a user can act on; empty if nothing does."""
    return clipped(_why_not_ready(look, seen), _LONGEST_CAUSE)


def _why_not_ready(look: Look, seen: Seen) -> str:
    if seen.obj is None:
        return "the cluster is being made"
    status = seen.obj.get("status") or {}
    if not is_head_ready(look, seen):
        if blocked := condition_of(status, BLOCKED):
            return str(blocked["message"])
        head = condition_of(status, HEAD_READY) or {}
        return f"the head is not ready: {head.get('message') or head.get('reason') or 'it is being started'}"
    if seen.put_failure:
        return f"Serve did not take serveConfigV2: {seen.put_failure}"
    if _is_unanswered(seen):
        return "Serve has not been asked yet"
    if seen.serve is not None and seen.serve.error is not None:
        return f"Serve cannot be asked: {seen.serve.error}"
    answered = _details(look, seen)
    applications = answered.applications if answered is not None else ()
    for application in applications:
        if application.status != RUNNING:
            told = f"application {application.name} is {application.status}"
            blocked = condition_of(status, BLOCKED)
            # Replicas that find no room are told by Serve as ones that start slowly; the cluster knows better.
            details = [application.message, blocked["message"] if blocked else ""]
            return ": ".join([told, *(text for text in details if text)])
    return "" if applications else "Serve has no applications yet; see serveConfigV2"


def is_being_asked(look: Look, seen: Seen) -> bool:
    """Tell whether it will be known in a moment what holds a cluster back, as for an operator that was just started."""
    cluster = seen.cluster
    can_be_asked = (
        cluster is not None and is_head_ready(look, seen) and dashboard_of(look, cluster) is not None
    )
    return can_be_asked and _is_unanswered(seen) and not seen.put_failure


def _is_unanswered(seen: Seen) -> bool:
    return seen.serve is None or (seen.serve.serve is None and seen.serve.error is None)


# --- asking


def dashboard_of(look: Look, cluster: Cluster) -> Address | None:
    """Return where to ask Ray about a cluster; None if its head Service has no port for it."""
    secret = cluster.auth.get("secretName") or naming.checked_name(cluster.name)
    try:
        return head_address(
            head_service(cluster, look.config.settings),
            domain=look.config.settings.cluster_domain,
            secret=secret if cluster.auth.get("mode") == "token" else "",
        )
    except AddressError:
        return None


def questions(look: Look, seen: Seen) -> Iterator[Question]:
    """Yield what is to be asked about a cluster: how its applications are, and whether its head takes traffic."""
    cluster = seen.cluster
    if cluster is None:
        return
    if is_head_ready(look, seen) and (address := dashboard_of(look, cluster)) is not None:
        yield ServeOf(address)
    head = seen.head
    if head is not None and head.status.pod_ip and not look.service.excludes_head:
        yield HealthOf(serve_address(cluster.namespace, head.name, head.status.pod_ip, serve_port(cluster)))


# --- configuring


def configuration(text: str, capacity: int | None = None) -> Mapping[str, Any]:
    """Return what a text says to Serve, with a capacity in percent if one is given."""
    try:
        value = load(text)
    except YamlError as wrong:
        raise NotAConfiguration(f"serveConfigV2 is no YAML: {wrong}") from wrong
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise NotAConfiguration("serveConfigV2 is no mapping; begin with `applications:`")
    return value if capacity is None else {**value, CAPACITY_FIELD: capacity}


def needs_configuration(look: Look, seen: Seen, capacity: int | None) -> bool:
    """Tell whether Serve on a cluster is to be handed the service's configuration.

    It is if we have not done so since we were started, if another text or capacity is wanted now, or may have been
    taken meanwhile, or if Serve has lost its applications since, as it does with its head. It is asked first, so that
    one that cannot answer is let be.
    """
    if _details(look, seen) is None:
        return False
    put = seen.put
    if put is None or seen.is_put_open or put.text != look.service.serve_config or put.capacity != capacity:
        return True
    return has_lost_applications(look, seen)


def has_capacity(seen: Seen, capacity: int) -> bool:
    """Tell whether a cluster is known to have a capacity; an order that was lost on its way may have changed it."""
    if seen.put is None or seen.is_put_open:
        return False
    return seen.put.capacity is None or seen.put.capacity >= capacity


def has_lost_applications(look: Look, seen: Seen) -> bool:
    """Tell whether Serve does not know any more what it was handed, as with another head."""
    details, put = _details(look, seen), seen.put
    if details is None or details.applications or put is None or seen.serve is None:
        return False
    return seen.serve.at > put.at and _has_applications(put.text)


def _has_applications(text: str) -> bool:
    try:
        return bool(configuration(text).get("applications"))
    except NotAConfiguration:
        return False


def hand_over(look: Look, seen: Seen, capacity: int | None) -> Handover | None:
    """Return what hands the service's configuration to a cluster; None if that has no address. May raise
    NotAConfiguration."""
    text = look.service.serve_config
    return _handover(look, seen, configuration(text, capacity), text, capacity, APPLICATIONS)


def change_capacity(look: Look, seen: Seen, capacity: int, *, is_pending: bool) -> Handover | None:
    """Return what hands a cluster its own configuration over again, with another capacity; None if nobody knows it.

    What an old cluster runs may be older than what the service asks for now, which is for the new one; unless it runs
    nothing any more. May raise NotAConfiguration.
    """
    if seen.put is not None:
        text = seen.put.text
    elif seen.deployed is not None:
        text = json.dumps(seen.deployed)
    elif is_pending or _runs_nothing(look, seen):
        text = look.service.serve_config
    else:
        return None
    return _handover(look, seen, configuration(text, capacity), text, capacity, CAPACITY)


def _runs_nothing(look: Look, seen: Seen) -> bool:
    details = _details(look, seen)
    return details is not None and not details.applications


class Telling(NamedTuple):
    """How it is told that a configuration was handed over, and that it was not."""

    done: str
    failed: str
    what: str


APPLICATIONS: Final = Telling(
    "UpdatedServeApplications", "FailedToUpdateServeApplications", "serve applications to"
)
CAPACITY: Final = Telling(
    "UpdatedServeTargetCapacity", "FailedToUpdateTargetCapacity", "the Serve target capacity of"
)


def _handover(
    look: Look, seen: Seen, config: Mapping[str, Any], text: str, capacity: int | None, telling: Telling
) -> Handover | None:
    cluster = seen.cluster
    address = dashboard_of(look, cluster) if cluster is not None else None
    if cluster is None or address is None:
        return None
    # The same content has the same name, so that however often it is wanted it is one order.
    encoded = json.dumps(config, sort_keys=True, default=str).encode()
    order_id = f"serve {cluster.name} {hashlib.sha256(encoded).hexdigest()[:16]}"
    subject = f"{telling.what} the RayCluster {cluster.namespace}/{cluster.name}"
    if telling is CAPACITY:
        subject += f" to {capacity}%"
    said = Said(
        Say(telling.done, "Update", f"Updated {subject}"),
        Say(telling.failed, "Update", f"Failed to update {subject}:", "Warning"),
    )
    return Handover(cluster.name, Order(order_id, address, PutServe(config)), text, capacity, said)


def refused_configuration(look: Look, why: NotAConfiguration) -> Stage:
    """Return the step that fails because the service's configuration is none."""
    say = Say("FailedToUpdateServeApplications", "Update", f"{look.service.place}: {why}", "Warning")
    return Stage("serve-config", (Refuse(str(why), say),))


# --- requests


def plan_head_label(look: Look, seen: Seen) -> Iterator[Action]:
    """Yield the change of the label by which the head gets requests or not.

    Until its Serve proxy has been asked the label stays: an operator that was just started takes nobody's traffic.
    """
    head = seen.head
    if head is None or head.is_terminating:
        return
    if not look.service.excludes_head and seen.health is None:
        return
    takes_traffic = not look.service.excludes_head and seen.health is not None and seen.health.takes_traffic
    wanted = "true" if takes_traffic else "false"
    if head.metadata.labels.get(naming.SERVE_LABEL) == wanted:
        return
    place = f"{look.service.namespace}/{head.name}"
    said = Said(
        Say(
            "UpdatedHeadPodServeLabel",
            "Update",
            f'Updated the serve label to "{wanted}" for the Head Pod {place}',
        ),
        Say(
            "FailedToUpdateHeadPodServeLabel",
            "Update",
            f'Failed to update the serve label to "{wanted}" for the Head Pod {place}:',
            "Warning",
        ),
    )
    change = {"metadata": {"labels": {naming.SERVE_LABEL: wanted}}}
    yield Patch(PODS, head.metadata.ref, change, said)


def count_endpoints(look: Look) -> int:
    """Return how many Pods are ready to take requests; one that has several addresses is one."""
    names = set(_serve_services(look))
    return len(
        {
            target["uid"]
            for found in look.slices
            if (found["metadata"].get("labels") or {}).get(SERVICE_NAME_LABEL) in names
            for endpoint in found.get("endpoints") or ()
            if (endpoint.get("conditions") or {}).get("ready") is True
            and (target := endpoint.get("targetRef") or {}).get("uid")
        }
    )


def _serve_services(look: Look) -> Iterator[str]:
    active, pending = look.service.active.name, look.service.pending.name
    if not look.is_incremental or not active:
        yield look.service.serve_service_name
        return
    yield cluster_serve_name(active)
    if pending:
        yield cluster_serve_name(pending)
