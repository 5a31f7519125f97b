"""What Kubernetes fills into a Pod, and into the template of one, where its writer says nothing.

The object has been read into its type before, so that fields have the right types and empty ones are absent.
"""

from collections.abc import Iterator
from typing import Any

from kubereef.kinds.behaviours.image_names import is_latest
from kubereef.kinds.behaviours.pod_resources import (
    aggregated,
    is_for_whole_pod,
    is_huge_page,
    may_overcommit,
    quantity,
)
from kubereef.kinds.resource import Object
from kubewire.quantity import Quantity

_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_SOURCES: dict[str, Object] = {
    "hostPath": {"type": ""},
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
# Init containers were once written as annotations; these are dropped for good.
_DROPPED_ANNOTATIONS = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{what}"
    for stage in ("alpha", "beta")
    for what in ("s", "-statuses")
)


def pod_defaults(pod: Object) -> None:
    """Fill in a Pod."""
    spec: Object = pod.setdefault("spec", {})
    for container in (*_listed(spec, "containers"), *_listed(spec, "initContainers")):
        _request_limits(container)
    if spec.get("resources") is not None:
        _default_whole_pod(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in (*_listed(spec, "containers"), *_listed(spec, "initContainers")):
            for port in _listed(container, "ports"):
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
    _spec_defaults(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _drop_annotations(pod)
    _agree_on_address(pod.get("status") or {})


def template_defaults(template: Object) -> None:
    """Fill in the template of a Pod, as Deployments, ReplicaSets and Jobs have one."""
    template.setdefault("metadata", {})
    _spec_defaults(template.setdefault("spec", {}))
    _drop_annotations(template)


def _spec_defaults(spec: Object) -> None:
    _fill(
        spec,
        {
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "schedulerName": "default-scheduler",
        },
    )
    spec.setdefault("securityContext", {})  # a new one for every Pod
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    # Gangs of Pods are not known to this version.
    spec.pop("schedulingGroup", None)
    for volume in _listed(spec, "volumes"):
        _volume_defaults(volume)
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in _listed(spec, field):
            _container_defaults(container)
    _round_amounts(spec.get("overhead"))
    _round_resources(spec)


def _container_defaults(container: Object) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    _fill(
        container,
        {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    )
    for port in _listed(container, "ports"):
        _fill(port, {"protocol": "TCP"})
    for variable in _listed(container, "env"):
        source = variable.get("valueFrom") or {}
        _field_defaults(source)
        if source.get("fileKeyRef") is not None:
            source["fileKeyRef"].setdefault("optional", False)
    _round_resources(container)
    for field in _PROBES:
        if (probe := container.get(field)) is not None:
            _fill(probe, _PROBE)
            _handler_defaults(probe)
            if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
                grpc["service"] = ""
    if (lifecycle := container.get("lifecycle")) is not None:
        # The signal that stops a container is not known to this version.
        if lifecycle.pop("stopSignal", None) is not None and not lifecycle:
            del container["lifecycle"]
        for hook in ("postStart", "preStop"):
            _handler_defaults(lifecycle.get(hook) or {})


def _handler_defaults(handler: Object) -> None:
    if (get := handler.get("httpGet")) is not None:
        _fill(get, {"path": "/", "scheme": "HTTP"})


def _field_defaults(source: Object) -> None:
    if (reference := source.get("fieldRef")) is not None:
        _fill(reference, {"apiVersion": "v1"})


def _volume_defaults(volume: Object) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
        return
    for source, defaults in _SOURCES.items():
        if (given := volume.get(source)) is not None:
            _fill(given, defaults)
    for item in _listed(volume.get("downwardAPI") or {}, "items"):
        _field_defaults(item)
    for projection in _listed(volume.get("projected") or {}, "sources"):
        _projection_defaults(projection)
    if (image := volume.get("image")) is not None and "pullPolicy" not in image:
        image["pullPolicy"] = _pull_policy(image.get("reference", ""))
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        claim["spec"].setdefault("volumeMode", "Filesystem")
        _round_resources(claim["spec"])


def _projection_defaults(projection: Object) -> None:
    for item in _listed(projection.get("downwardAPI") or {}, "items"):
        _field_defaults(item)
    if (token := projection.get("serviceAccountToken")) is not None:
        token.setdefault("expirationSeconds", _TOKEN_SECONDS)
    # Bundles of trust and certificates of Pods are not known to this version.
    for unknown in ("clusterTrustBundle", "podCertificate"):
        projection.pop(unknown, None)


def _pull_policy(image: str) -> str:
    return "Always" if is_latest(image) else "IfNotPresent"


def _request_limits(container: Object) -> None:
    """Have a container request what it is limited to, unless it says how much it requests."""
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _default_whole_pod(spec: Object) -> None:
    """Complete what a Pod asks for as a whole by what its containers ask for."""
    resources = spec["resources"]
    requests: dict[str, Any] = resources.get("requests") or {}
    limits: dict[str, Any] = resources.get("limits") or {}
    if requests or limits:
        pages = {
            name: str(amount) for name, amount in aggregated(spec, "limits").items() if is_huge_page(name)
        }
        limits = {**{name: text for name, text in pages.items() if name not in requests}, **limits}
    if limits:
        resources["limits"] = limits
        needed = {
            name: str(amount)
            for name, amount in aggregated(spec, "requests").items()
            if is_for_whole_pod(name) and may_overcommit(name)
        }
        limited = {name: text for name, text in limits.items() if is_for_whole_pod(name)}
        requests = {**limited, **needed, **requests}
        if requests:
            resources["requests"] = requests


def _round_resources(holder: Object) -> None:
    resources = holder.get("resources") or {}
    _round_amounts(resources.get("limits"))
    _round_amounts(resources.get("requests"))


def _round_amounts(amounts: dict[str, str] | None) -> None:
    """Round amounts up to thousandths, the finest that is kept of them."""
    if not amounts:
        return
    for name, text in amounts.items():
        amount = quantity(text)
        if amount.nano % 10**6:
            amounts[name] = str(Quantity(amount.milli_value() * 10**6, amount.family))


def _drop_annotations(obj: Object) -> None:
    annotations = obj["metadata"].get("annotations")
    if annotations and not _DROPPED_ANNOTATIONS.isdisjoint(annotations):
        kept = {key: value for key, value in annotations.items() if key not in _DROPPED_ANNOTATIONS}
        obj["metadata"]["annotations"] = kept
        if not kept:
            del obj["metadata"]["annotations"]


def _agree_on_address(status: Object) -> None:
    """Make the single address of a Pod and the first of its list the same; the single one is right."""
    address = status.get("podIP")
    listed = status.get("podIPs")
    if address and (not listed or listed[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif listed and listed[0].get("ip"):
        status["podIP"] = listed[0]["ip"]


def _listed(obj: Object, field: str) -> Iterator[Object]:
    return iter(obj.get(field) or ())


def _fill(obj: Object, defaults: Object) -> None:
    for field, value in defaults.items():
        obj.setdefault(field, value)
