"""Which kinds `why` can tell of, and how each is asked about."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from eagleray.kube.resources import RAY_CLUSTERS, RAY_CRON_JOBS, RAY_JOBS, RAY_SERVICES, Resource
from eagleray.rayapi.kinds import KINDS, kind_named
from eagleray.why import raycluster, raycronjob, rayjob, rayservice
from eagleray.why.reading import Reader
from eagleray.why.report import Report


class Diagnosis(NamedTuple):
    """How a kind is asked about: its resource, and a function of a reader, a namespace and a name."""

    resource: Resource
    diagnose: Callable[[Reader, str, str], Awaitable[Report]]


async def _raycluster(reader: Reader, namespace: str, name: str) -> Report:
    return raycluster.diagnose(await reader.raycluster(namespace, name))


async def _rayjob(reader: Reader, namespace: str, name: str) -> Report:
    return rayjob.diagnose(await reader.rayjob(namespace, name))


async def _rayservice(reader: Reader, namespace: str, name: str) -> Report:
    return rayservice.diagnose(await reader.rayservice(namespace, name))


async def _raycronjob(reader: Reader, namespace: str, name: str) -> Report:
    return raycronjob.diagnose(await reader.raycronjob(namespace, name))


DIAGNOSES: Mapping[str, Diagnosis] = {
    "raycluster": Diagnosis(RAY_CLUSTERS, _raycluster),
    "rayjob": Diagnosis(RAY_JOBS, _rayjob),
    "rayservice": Diagnosis(RAY_SERVICES, _rayservice),
    "raycronjob": Diagnosis(RAY_CRON_JOBS, _raycronjob),
}


class UnknownKind(ValueError):
    """`why` knows nothing of this kind; the message says what it knows."""


def diagnosis_of(word: str) -> Diagnosis:
    """Return how a kind is asked about that a user calls by this word, in singular or plural."""
    kind = kind_named(word.removesuffix(".ray.io"))
    if kind is None:
        kinds = ", ".join(one.singular for one in KINDS)
        raise UnknownKind(f"there is no kind {word!r}; the kinds of Ray are {kinds}")
    return DIAGNOSES[kind.singular]
