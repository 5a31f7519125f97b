"""Which kinds `why` can tell of, and how each is asked about."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from eagleray.kube.resources import RAY_CLUSTERS, RAY_JOBS, Resource
from eagleray.rayapi.kinds import KINDS, kind_named
from eagleray.why import raycluster, rayjob
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


DIAGNOSES: Mapping[str, Diagnosis] = {
    "raycluster": Diagnosis(RAY_CLUSTERS, _raycluster),
    "rayjob": Diagnosis(RAY_JOBS, _rayjob),
}


class UnknownKind(ValueError):
    """`why` knows nothing of this kind; the message says what it knows."""


def diagnosis_of(word: str) -> Diagnosis:
    """Return how a kind is asked about that a user calls by this word, in singular or plural."""
    kind = kind_named(word.removesuffix(".ray.io"))
    known = ", ".join(DIAGNOSES)
    if kind is None:
        kinds = ", ".join(one.singular for one in KINDS)
        raise UnknownKind(f"there is no kind {word!r}; the kinds of Ray are {kinds}")
    if kind.singular not in DIAGNOSES:
        raise UnknownKind(f"nothing can be said of a {kind.name} yet, only of: {known}")
    return DIAGNOSES[kind.singular]
