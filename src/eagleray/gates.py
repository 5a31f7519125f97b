"""Feature gates: what can be switched on or off with `--feature-gates=A=true,B=false`.

The names, stages and meanings are KubeRay's. Two answers differ: `RayCronJob` is on, and `AsyncJobInfoQuery`,
which the reference has dropped, is still accepted and changes nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

Stage = Literal["alpha", "beta"]


class Gate(NamedTuple):
    """One gate: `since` is the KubeRay version that brought it to its stage.

    A gate that is not `implemented` is known but has nothing behind it yet: an operator refuses to start with
    it.
    """

    name: str
    stage: Stage
    default: bool
    since: str
    doc: str
    implemented: bool = True


GATES: Mapping[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("RayClusterStatusConditions", "beta", True, "1.3", "Conditions in the status of a RayCluster."),
        Gate("RayJobDeletionPolicy", "beta", True, "1.6", "A RayJob's deletionStrategy; suspended groups."),
        Gate("RayMultiHostIndexing", "beta", True, "1.6", "Labels with replica and host index on workers."),
        Gate("RayServiceIncrementalUpgrade", "beta", True, "1.7", "Upgrades that move traffic step by step."),
        Gate("RayCronJob", "alpha", True, "1.6", "The RayCronJob controller."),
        Gate("SidecarSubmitterRestart", "alpha", False, "1.7", "A failed sidecar submitter is restarted."),
        Gate("RayClusterNetworkPolicy", "alpha", False, "1.7", "NetworkPolicies for a RayCluster.", False),
        Gate("GCSFaultToleranceEmbeddedStorage", "alpha", False, "1.7", "The GCS kept in RocksDB."),
        Gate("RayClusterMTLS", "alpha", False, "1.7", "Mutual TLS by cert-manager.", False),
        Gate("RayClusterHistoryServer", "alpha", False, "1.7", "The history collector sidecar.", False),
        Gate("KubernetesWAS", "alpha", False, "1.7", "Gang scheduling by Kubernetes' own workload API."),
        Gate("AsyncJobInfoQuery", "alpha", False, "1.6", "Accepted and without effect: polling always is."),
    )
}

# Go's flag also knows these two: they set every gate of a stage that is not named itself.
_STAGES: Mapping[str, Stage] = {"AllAlpha": "alpha", "AllBeta": "beta"}

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class GateError(ValueError):
    """A text that sets no feature gates; the message says what to write instead."""


class Gates:
    """Which gates are on. Immutable: the same value can be handed to everything that runs."""

    __slots__ = ("_on",)

    _on: frozenset[str]

    def __init__(self, on: Iterable[str] = ()) -> None:
        names = frozenset(on)
        if unknown := sorted(names - GATES.keys()):
            raise _unknown(unknown[0])
        object.__setattr__(self, "_on", names)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Gates are immutable; {name} cannot be set")

    def enabled(self, name: str) -> bool:
        """Return whether the gate is on; asking for a gate that does not exist is an error."""
        if name not in GATES:
            raise _unknown(name)
        return name in self._on

    def unimplemented(self) -> tuple[str, ...]:
        """Return the gates that are on with nothing behind them yet, in the order they are declared."""
        return tuple(name for name, gate in GATES.items() if name in self._on and not gate.implemented)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gates) and self._on == other._on

    def __hash__(self) -> int:
        return hash(self._on)

    def __repr__(self) -> str:
        return f"Gates({sorted(self._on)})"


DEFAULT_GATES = Gates(name for name, gate in GATES.items() if gate.default)


def parse_gates(text: str) -> Gates:
    """Return the gates that a flag such as `A=true,B=false` asks for; other gates keep their default.

    As in Go, blanks around names and values and empty items are fine, and of two settings the later counts.
    """
    settings: dict[str, bool] = {}
    for item in text.split(","):
        if setting := item.strip():
            name, value = _setting(setting)
            settings[name] = value
    by_stage = {stage: settings.pop(name) for name, stage in _STAGES.items() if name in settings}
    return Gates(
        name for name, gate in GATES.items() if settings.get(name, by_stage.get(gate.stage, gate.default))
    )


def _setting(item: str) -> tuple[str, bool]:
    name, equals, value = (part.strip() for part in item.partition("="))
    if name not in GATES and name not in _STAGES:
        raise _unknown(name)
    if not equals:
        raise GateError(f"feature gate {name} has no value; write {name}=true or {name}=false")
    if value in _TRUE:
        return name, True
    if value in _FALSE:
        return name, False
    raise GateError(f"feature gate {name}: {_clipped(value)!r} is neither true nor false; write {name}=true")


def _unknown(name: str) -> GateError:
    from difflib import get_close_matches  # only a mistake pays for it

    shown = _clipped(name)
    folded = {known.lower(): known for known in (*GATES, *_STAGES)}
    if near := get_close_matches(shown.lower(), folded, n=1, cutoff=0.5):
        return GateError(f"unknown feature gate {shown!r}; did you mean {folded[near[0]]}?")
    return GateError(f"unknown feature gate {shown!r}; known are {', '.join(GATES)}")


def _clipped(text: str) -> str:
    return text if len(text) <= 64 else f"{text[:61]}..."
