"""The controllers that a cluster runs."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from kubereef.controllers.deployments import DeploymentController
from kubereef.controllers.disruptions import DisruptionController
from kubereef.controllers.endpoints import EndpointsController
from kubereef.controllers.endpointslices import EndpointSliceController
from kubereef.controllers.garbage import GarbageCollector
from kubereef.controllers.jobs import JobController, OrphanedPodsController
from kubereef.controllers.localstorage import LocalStorage
from kubereef.controllers.namespaces import NamespaceController
from kubereef.controllers.quotas import QuotaController
from kubereef.controllers.replicasets import ReplicaSetController
from kubereef.controllers.roles import RoleAggregation
from kubereef.controllers.runtime import Factory, Runner
from kubereef.controllers.scheduling.evictions import PodGarbageCollector, TaintEvictionController
from kubereef.controllers.scheduling.nodelifecycle import NodeLifecycleController
from kubereef.controllers.scheduling.scheduler import Scheduler
from kubereef.controllers.serviceaccounts import RootCertificatePublisher, ServiceAccountController
from kubereef.controllers.ttl import TtlAfterFinishedController
from kubereef.controllers.volumes import ClaimProtection, VolumeBinder, VolumeProtection, VolumeReclaimer
from kubereef.gateway.controller import GATEWAY_CONTROLLERS
from kubereef.gateway.install import furnished
from kubereef.server.core import Server

CONTROLLERS: tuple[Factory, ...] = (
    GarbageCollector,
    NamespaceController,
    ServiceAccountController,
    RootCertificatePublisher,
    RoleAggregation,
    JobController,
    OrphanedPodsController,
    TtlAfterFinishedController,
    ReplicaSetController,
    DeploymentController,
    EndpointsController,
    EndpointSliceController,
    Scheduler,
    NodeLifecycleController,
    TaintEvictionController,
    PodGarbageCollector,
    QuotaController,
    DisruptionController,
    VolumeBinder,
    VolumeReclaimer,
    ClaimProtection,
    VolumeProtection,
)

# What a cluster on one machine has besides: claims that name no storage class get a directory of that machine.
LOCAL: tuple[Factory, ...] = (LocalStorage,)


class Host(Protocol):
    """The cluster that controllers work for."""

    server: Server
    authority: bytes


def runner_for(cluster: Host, factories: Iterable[Factory] = CONTROLLERS) -> Runner:
    """Return the controllers of a cluster, ready to be started; as a context they run while it is open."""
    return Runner(cluster.server, factories, root_ca=cluster.authority.decode())


def standard_parts(
    *, with_storage: bool, with_gateways: bool = True
) -> Sequence[Callable[[Host], AbstractAsyncContextManager[object]]]:
    """Return what runs along with a server; storage of the machine and Gateways where there is a node for them."""
    factories = (*CONTROLLERS, *LOCAL) if with_storage else CONTROLLERS
    if not with_gateways:
        return (lambda cluster: runner_for(cluster, factories),)
    return (furnished, lambda cluster: runner_for(cluster, (*factories, *GATEWAY_CONTROLLERS)))
