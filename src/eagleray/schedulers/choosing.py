"""Which batch scheduler an operator works with, and what the cluster has to serve for it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from eagleray.kube.informers import Informers
from eagleray.kube.resources import (
    COSCHEDULING_POD_GROUPS,
    GANG_POD_GROUPS,
    GANG_WORKLOADS,
    VOLCANO_POD_GROUPS,
    Resource,
)
from eagleray.kube.views import typed
from eagleray.runtime.options import Options
from eagleray.schedulers import kai, scheduler_plugins, volcano, workload, yunikorn
from eagleray.schedulers.interface import NoScheduler, Scheduler
from eagleray.schedulers.made import Made, Making


class SchedulerError(ValueError):
    """A scheduler that cannot be worked with; the message says what would help."""


class _Known(NamedTuple):
    """A scheduler: the resources that it needs, and how it is made from what finds and makes their objects."""

    needs: Sequence[Resource]
    made: Callable[..., Scheduler]
    remedy: str = ""


_KNOWN: Final[Mapping[str, _Known]] = {
    "": _Known((), NoScheduler),
    volcano.NAME: _Known((VOLCANO_POD_GROUPS,), volcano.Volcano, "install Volcano"),
    yunikorn.NAME: _Known((), yunikorn.YuniKorn),
    scheduler_plugins.NAME: _Known(
        (COSCHEDULING_POD_GROUPS,), scheduler_plugins.SchedulerPlugins, "install scheduler-plugins"
    ),
    kai.NAME: _Known((), kai.Kai),
    workload.NAME: _Known(
        (GANG_WORKLOADS, GANG_POD_GROUPS),
        workload.WorkloadApi,
        "it takes Kubernetes 1.36 with the feature gates GenericWorkload and GangScheduling and this API switched on",
    ),
}


def needs(options: Options) -> Sequence[Resource]:
    """Return what the cluster has to serve for the scheduler that was asked for."""
    return _asked(options).needs


def choose(options: Options, served: Collection[Resource], informers: Informers) -> Scheduler:
    """Return the scheduler that was asked for, with its watches added; SchedulerError if it cannot work here."""
    known = _asked(options)
    missing = [resource for resource in known.needs if resource not in served]
    if missing:
        what = " and ".join(f"{one.kind} of {one.api_version}" for one in missing)
        raise SchedulerError(
            f"{_told_by(options)} needs {what}, which is not served here; {known.remedy}, or leave it out"
        )
    name = _name(options)
    return known.made(
        *(Making(name, resource, informers.add(resource, typed(Made)).cache) for resource in known.needs)
    )


def _asked(options: Options) -> _Known:
    name = _name(options)
    if name not in _KNOWN:
        raise SchedulerError(f"--batch-scheduler: {name!r} is not known")
    return _KNOWN[name]


def _name(options: Options) -> str:
    return workload.NAME if options.gates.enabled("KubernetesWAS") else options.batch_scheduler


def _told_by(options: Options) -> str:
    if options.gates.enabled("KubernetesWAS"):
        return "Feature gate KubernetesWAS"
    return f"--batch-scheduler={options.batch_scheduler}"
