"""The metrics of RayServices, under the reference's names."""

from collections.abc import Iterable
from typing import Any

from eagleray.kube.cache import Cache
from eagleray.manifests.rayservice import RayService
from eagleray.raycluster.status import condition_of
from eagleray.rayservice.look import READY, UPGRADING
from eagleray.runtime.metrics import Family, Registry, Sample

Object = dict[str, Any]

_LABELS = ("name", "namespace", "uid")


class ServiceMetrics:
    """Tells what services there are, and which of them are ready or being upgraded."""

    def __init__(self, registry: Registry, services: Cache[Object]) -> None:
        self._services = services
        registry.collect(self._families)

    def _families(self) -> Iterable[Family]:
        info: list[Sample] = []
        ready: list[Sample] = []
        upgrading: list[Sample] = []
        for obj in self._services:
            service = RayService(obj)
            labels = tuple(zip(_LABELS, (service.name, service.namespace, service.uid), strict=True))
            info.append(Sample("", labels, 1))
            ready.append(Sample("", (*labels, ("condition", _is_true(service, READY))), 1))
            upgrading.append(Sample("", (*labels, ("condition", _is_true(service, UPGRADING))), 1))
        yield Family("kuberay_service_info", "gauge", "RayServices", info)
        yield Family("kuberay_service_condition_ready", "gauge", "Whether RayServices are ready", ready)
        yield Family(
            "kuberay_service_condition_upgrade_in_progress",
            "gauge",
            "Whether RayServices are being upgraded",
            upgrading,
        )


def _is_true(service: RayService, kind: str) -> str:
    condition = condition_of(service.status, kind)
    return "true" if condition is not None and condition["status"] == "True" else "false"
