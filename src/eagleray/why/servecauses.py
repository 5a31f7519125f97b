"""What keeps the clusters of a RayService from serving: their Pods, their applications, the way in, refused steps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec

from eagleray.dashboard.words import RUNNING
from eagleray.kube.resources import GATEWAYS, HTTP_ROUTES, RAY_CLUSTERS
from eagleray.manifests.gateway import gateway_name, is_open, is_routed, route_name
from eagleray.manifests.naming import SERVE_LABEL
from eagleray.manifests.rayservice import INCREMENTAL, RayService, ServiceSide, serve_port
from eagleray.raycluster.status import HEAD_READY, condition_of
from eagleray.raycluster.troubles import trouble_of
from eagleray.raycluster.views import PodView
from eagleray.rayservice.look import READY, UPGRADING
from eagleray.rayservice.serving import NotAConfiguration, configuration
from eagleray.rayservice.timeouts import INITIALIZING
from eagleray.why import raycluster
from eagleray.why.eventing import open_failures
from eagleray.why.reading import Seen, SeenService
from kubewire.times import format_time

Object = dict[str, Any]

_HEALTHY: Final = "HEALTHY"
_REFUSED_CONFIGURATION: Final = "FailedToUpdateServeApplications"
_NOT_TAKEN: Final = "Serve did not take serveConfigV2: "
_NOT_ASKED: Final = "Serve cannot be asked: "
_NO_TAKERS: Final = "none of its Pods is ready to take requests"
# Serve read the configuration and would not have it: a status of 4xx between the place and the message.
_REFUSED: Final = re.compile(r"/api/serve/applications/?: 4\d\d: ")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
# What goes wrong in Python comes with a traceback, which begins with where it was called and ends with what it was.
_MESSAGE_START, _MESSAGE_END = 200, 800
# Enough to tell whether two texts are about the same; each of them may have been cut.
_TELLING: Final = 200
# What is refused is tried again for as long as it is wanted: a step after 1,000 s at the latest, a configuration after
# a minute. Whatever was not told for longer than that, and the minute that telling may take, is not wanted any more.
_STEP_OVER: Final = timedelta(seconds=1200)
_HANDOVER_OVER: Final = timedelta(seconds=180)

# Steps that were refused, by the event that tells so, and the event that tells that one was done.
_REFUSED_STEPS: Final[Mapping[str, str]] = {
    "FailedToCreateRayCluster": "CreatedRayCluster",
    "FailedToUpdateRayCluster": "UpdatedRayCluster",
    "FailedToDeleteRayCluster": "DeletedRayCluster",
    "FailedToCreateService": "CreatedService",
    "FailedToUpdateService": "UpdatedService",
    "FailedToDeleteService": "DeletedService",
    "FailedToUpdateHeadPodServeLabel": "UpdatedHeadPodServeLabel",
    "FailedToCreateGateway": "CreatedGateway",
    "FailedToUpdateGateway": "UpdatedGateway",
    "FailedToCreateHTTPRoute": "CreatedHTTPRoute",
    "FailedToUpdateHTTPRoute": "UpdatedHTTPRoute",
}
_REFUSED_HANDOVERS: Final[Mapping[str, str]] = {
    _REFUSED_CONFIGURATION: "UpdatedServeApplications",
    "FailedToUpdateTargetCapacity": "UpdatedServeTargetCapacity",
}


class Word(NamedTuple):
    """What the operator, who has asked Ray, says that a service waits for."""

    cluster: str = ""  # which one that is about; empty if it is about none
    cause: str = ""


NO_WORD: Final = Word()


def operators_word(service: RayService) -> Word:
    """Return what the conditions of a service say that an upgrade, or its first start, waits for."""
    upgrading, ready = (condition_of(service.status, kind) or {} for kind in (UPGRADING, READY))
    if upgrading.get("status") == "True":
        message = upgrading.get("message")
    else:
        message = ready.get("message") if ready.get("reason") == INITIALIZING else ""
    _, _, text = str(message or "").partition("; ")
    cluster, about, cause = text.partition(" is held back: ")
    return Word(cluster, cause) if about else Word(cause=text)


def of_clusters(seen: SeenService) -> Sequence[str]:
    """Return all that keeps a service from serving, or from being what is wanted; the newer cluster comes first."""
    service = seen.service
    word = operators_word(service)
    found = [*_of_configuration(seen)]
    for side, cluster in ((service.pending, seen.pending), (service.active, seen.active)):
        if side.name:
            found += _of_side(side, cluster, seen, word.cause if word.cluster == side.name else "")
    refusals = [*of_refusals(seen, word)]
    way_in = [*_closed(seen)]
    if not way_in and not word.cluster and not _is_about_text(word.cause):
        way_in = [word.cause] if word.cause else [*_missing(seen, refusals)]
    return [*found, *way_in, *refusals]


def _of_configuration(seen: SeenService) -> Iterator[str]:
    try:
        wanted = configuration(seen.service.serve_config)
    except NotAConfiguration as wrong:
        yield f"spec.{wrong}"
    else:
        if not wanted.get("applications"):
            yield "spec.serveConfigV2 has no applications, so there is nothing to serve; name some"


def _is_about_text(cause: str) -> bool:
    """Tell whether a cause is found in the text of the configuration, too."""
    return cause.startswith("serveConfigV2 is ")


# --- one cluster


def _of_side(side: ServiceSide, cluster: Seen | None, seen: SeenService, word: str) -> Iterator[str]:
    """Yield what is wrong with one of the clusters, then what Ray says of its applications."""
    is_told = False
    if cluster is None:
        if RAY_CLUSTERS not in seen.unseen:
            yield f"RayCluster {seen.service.namespace}/{side.name} does not exist (yet)"
            is_told = True
    else:
        report = raycluster.diagnose(_with_idle_as_ready(cluster))
        if not report.is_ready:
            yield report.verdict
            yield from report.causes
        is_told = not report.is_ready and not _has_ready_head(cluster)
    applications: Mapping[str, Object] = side.status.get("applicationStatuses") or {}
    troubles = list(_of_applications(side.name, applications))
    yield from troubles
    if is_told or (troubles and word.startswith("application ")):
        return
    if word.startswith(_NO_TAKERS) and cluster is not None and cluster.snapshot.pods:
        yield from of_endpoints(cluster, seen)
    elif not applications and any(_of_configuration(seen)):
        return
    elif word:
        yield f"{side.name}: {word}{_help(word)}"
    elif cluster is not None and not applications:
        yield f"{side.name}: Serve has no applications, though spec.serveConfigV2 names some: see the head's logs"


def idle_workers(cluster: Seen | None) -> Sequence[PodView]:
    """Return the workers with nothing wrong but that they are not ready.

    A worker is ready while its Serve proxy is, which is there while a replica runs on it. So it is no cause of anything
    that it is not: it waits for the applications, or none of them has use for it.
    """
    pods = cluster.snapshot.pods if cluster is not None else ()
    return [pod for pod in pods if cluster is not None and pod.is_worker and _is_only_unready(pod, cluster)]


def _is_only_unready(pod: PodView, cluster: Seen) -> bool:
    if not pod.is_running or pod.is_running_and_not_unready or pod.is_terminating:
        return False
    has_ended = any(status.last_state.terminated is not None for status in pod.status.container_statuses)
    is_on_lost_node = pod.spec.node_name in cluster.unready_nodes
    return trouble_of(pod) is None and not has_ended and not is_on_lost_node


def _with_idle_as_ready(cluster: Seen) -> Seen:
    idle = {pod.name for pod in idle_workers(cluster)}
    if not idle:
        return cluster
    pods = [_without_word_on_readiness(pod) if pod.name in idle else pod for pod in cluster.snapshot.pods]
    return cluster._replace(snapshot=cluster.snapshot._replace(pods=pods))


def _without_word_on_readiness(pod: PodView) -> PodView:
    others = tuple(one for one in pod.status.conditions if one.type != "Ready")
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=others))


def _has_ready_head(cluster: Seen) -> bool:
    condition = condition_of(cluster.cluster.obj.get("status") or {}, HEAD_READY)
    return condition is not None and condition["status"] == "True"


def _of_applications(cluster: str, applications: Mapping[str, Object]) -> Iterator[str]:
    for name, application in applications.items():
        if application.get("status") != RUNNING:
            yield f"{cluster}: application {name} is {_told(application)}"
        for deployment, status in (application.get("serveDeploymentStatuses") or {}).items():
            if status.get("status") != _HEALTHY:
                yield f"{cluster}: deployment {deployment} of application {name} is {_told(status)}"


def _told(status: Object) -> str:
    message = plain(str(status.get("message") or ""))
    if len(message) > _MESSAGE_START + _MESSAGE_END:
        message = f"{message[:_MESSAGE_START]} … {message[-_MESSAGE_END:]}"
    return ": ".join(text for text in (str(status.get("status") or "in no known state"), message) if text)


def plain(message: str) -> str:
    """Return a message of Ray as one line, without its colours or anything else that steers a terminal."""
    line = " ".join(_COLOUR.sub("", message).split())
    return line if line.isprintable() else "".join(letter for letter in line if letter.isprintable())


def _help(word: str) -> str:
    """Return what helps against a failure to ask Serve, to be added to it."""
    if _REFUSED.search(word):
        return "; mend spec.serveConfigV2"
    if word.startswith((_NOT_TAKEN, _NOT_ASKED)) or _REFUSED_CONFIGURATION in word:
        return "; see the head's logs, and whether a network policy keeps the operator from its dashboard"
    return ""


# --- the way in


def _closed(seen: SeenService) -> Iterator[str]:
    """Yield why no request comes in by the Gateway that leads to the clusters, if it is there."""
    if not _has_way_in(seen):
        return
    gateway, route = _names(seen)
    if seen.gateway is not None and not is_open(seen.gateway):
        conditions = (seen.gateway.get("status") or {}).get("conditions") or ()
        told = _untrue(conditions, "Accepted", "Programmed")
        yield (
            f"{gateway} is not accepted and programmed{told}; see whether a controller runs for GatewayClass"
            f" {seen.service.upgrade_options.gateway_class}"
        )
    elif seen.route is not None and not is_routed(seen.route):
        parents = (seen.route.get("status") or {}).get("parents") or ()
        conditions = [one for parent in parents for one in parent.get("conditions") or ()]
        told = _untrue(conditions, "Accepted", "ResolvedRefs")
        yield f"{route} is not accepted with all its references resolved{told}; see {gateway}"


def _missing(seen: SeenService, refusals: Sequence[str]) -> Iterator[str]:
    """Yield what is not there of the way in, unless a refusal says why."""
    is_refused = any(
        refusal.startswith(("FailedToCreateGateway", "FailedToCreateHTTPRoute")) for refusal in refusals
    )
    if not _has_way_in(seen) or is_refused:
        return
    parts = ((GATEWAYS, seen.gateway), (HTTP_ROUTES, seen.route))
    for name, (resource, found) in zip(_names(seen), parts, strict=True):
        if found is None and resource not in seen.unseen:
            yield f"{name} does not exist (yet)"


def _has_way_in(seen: SeenService) -> bool:
    return seen.service.upgrade_type == INCREMENTAL and bool(seen.service.active.name)


def _names(seen: SeenService) -> tuple[str, str]:
    return f"Gateway {gateway_name(seen.service)}", f"HTTPRoute {route_name(seen.service)}"


def _untrue(conditions: Sequence[Object], *kinds: str) -> str:
    """Return what conditions say that are not true, to be added to a sentence."""
    texts = [
        ": ".join(str(one[field]) for field in ("type", "status", "reason", "message") if one.get(field))
        for one in conditions
        if one.get("type") in kinds and one.get("status") != "True"
    ]
    return f" ({'; '.join(texts)})" if texts else ""


# --- requests


def of_endpoints(cluster: Seen, seen: SeenService) -> Iterator[str]:
    """Yield why no Pod of a cluster takes requests though all applications on it run."""
    for pod in cluster.snapshot.pods:
        yield f"Pod {pod.name} takes no requests: {_why_left_out(pod, cluster, seen)}"


def _why_left_out(pod: PodView, cluster: Seen, seen: SeenService) -> str:
    if pod.is_head and seen.service.excludes_head:
        return "spec.excludeHeadPodFromServeSvc keeps the head out, so workers have to be there for them"
    label = pod.metadata.labels.get(SERVE_LABEL)
    if label == "true":
        return "its endpoint is not ready (yet)" if pod.is_running_and_not_unready else "it is not ready"
    proxy = f"its Serve proxy does not answer at :{serve_port(cluster.cluster)}/-/healthz"
    return f"{proxy}, so its label {SERVE_LABEL} is {label or 'not set'}; see Serve's logs on it"


# --- refused steps


def of_refusals(seen: SeenService, word: Word = NO_WORD) -> Iterator[str]:
    """Yield the steps that are refused, but for what the operator's word has told."""
    told = word.cause.removeprefix(_NOT_TAKEN)[:_TELLING]
    for remedies, over in ((_REFUSED_STEPS, _STEP_OVER), (_REFUSED_HANDOVERS, _HANDOVER_OVER)):
        for failure in open_failures(seen.events, remedies, format_time(seen.now - over)):
            is_about_text = failure.startswith(_REFUSED_CONFIGURATION) and ": serveConfigV2 is " in failure
            if not is_about_text and not (told and told in failure):
                yield f"{failure}{_help(failure)}"
