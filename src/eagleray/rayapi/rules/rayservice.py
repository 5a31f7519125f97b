"""The rules of a RayService."""

from collections.abc import Iterable

from eagleray.rayapi.problems import Problem, at, quoted
from eagleray.rayapi.rules.naming import name_of, not_a_label, too_long
from eagleray.rayapi.rules.raycluster import described_cluster
from eagleray.rayapi.rules.raycluster.security import kubernetes_tokens
from eagleray.rayapi.rules.reading import Object, integer, is_set, is_true, mapping, text
from eagleray.rayapi.rules.rulebook import Finding, Findings, Rule, Rulebook, Scope
from kubewire.paths import FieldPath

LONGEST_NAME = 47
TIMEOUT_ANNOTATION = "ray.io/initializing-timeout"

_CLUSTER: FieldPath = ("spec", "rayClusterConfig")
_STRATEGY: FieldPath = ("spec", "upgradeStrategy")
_OPTIONS: FieldPath = (*_STRATEGY, "clusterUpgradeOptions")
_INCREMENTAL = "NewClusterWithIncrementalUpgrade"
_UPGRADE_TYPES = ("NewCluster", _INCREMENTAL, "None")
_DEFAULT_SURGE = 100


class Service:
    """A RayService as its rules read it."""

    __slots__ = ("cluster", "incremental", "obj", "options", "scope", "spec", "strategy")

    def __init__(self, obj: Object, scope: Scope) -> None:
        self.obj = obj
        self.scope = scope
        self.spec = mapping(obj, "spec")
        self.cluster = mapping(self.spec, "rayClusterConfig")
        self.strategy = mapping(self.spec, "upgradeStrategy")
        # Without the gate the strategy is accepted and works like None, so its options do not matter.
        gate = scope.gate("RayServiceIncrementalUpgrade")
        self.incremental = gate and self.strategy.get("type") == _INCREMENTAL
        options = self.strategy.get("clusterUpgradeOptions")
        self.options: Object | None = options if self.incremental and isinstance(options, dict) else None

    def option(self, name: str) -> int | None:
        return integer(self.options or {}, name)


_RULES: Rulebook[Service] = Rulebook("RayService")


@_RULES.rule("rayservice-m1")
def name_length(service: Service) -> Findings:
    """The name has at most 47 characters."""
    return too_long("RayService", name_of(service.obj), LONGEST_NAME)


@_RULES.rule("rayservice-m2")
def name_form(service: Service) -> Findings:
    """The name is a DNS-1035 label."""
    return not_a_label("RayService", name_of(service.obj))


@_RULES.rule("rayservice-m3")
def initializing_timeout(service: Service) -> Findings:
    """The annotation ray.io/initializing-timeout is a positive duration or a positive number of seconds."""
    value = text(mapping(service.obj, "metadata", "annotations"), TIMEOUT_ANNOTATION)
    if value and (message := _timeout_problem(value)):
        way_out = "use a duration such as 30m or 1h30m, or whole seconds such as 1800"
        yield Finding(("metadata", "annotations", TIMEOUT_ANNOTATION), message, way_out)


@_RULES.rule("rayservice-v1")
def kubernetes_token_auth(service: Service) -> Findings:
    """A service's cluster does not authenticate with Kubernetes tokens."""
    if kubernetes_tokens(service.cluster):
        yield Finding(
            (*_CLUSTER, "authOptions", "enableK8sTokenAuth"),
            "not supported for a RayService",
            "remove it, as mode token alone works",
        )


@_RULES.embedding("rayservice-v2")
def cluster_config(service: Service) -> Iterable[Problem]:
    """The cluster that the service describes keeps the rules of a RayCluster."""
    for problem in described_cluster(service.obj, service.cluster, service.scope):
        yield at(_CLUSTER, problem)


@_RULES.rule("rayservice-v3")
def head_service_name(service: Service) -> Findings:
    """The head Service of the cluster is not named: during an upgrade there are two."""
    steps = ("headGroupSpec", "headService", "metadata")
    if text(mapping(service.cluster, *steps), "name"):
        yield Finding(
            (*_CLUSTER, *steps, "name"),
            "should not be set, as two clusters exist during an upgrade",
            "remove it, as the RayService has a head Service of its own, <name>-head-svc",
        )


@_RULES.rule("rayservice-v4")
def upgrade_type_unknown(service: Service) -> Findings:
    """upgradeStrategy.type is one that exists."""
    if is_set(service.strategy, "type") and service.strategy["type"] not in _UPGRADE_TYPES:
        yield Finding(
            (*_STRATEGY, "type"),
            f"{quoted(text(service.strategy, 'type'))} is unknown",
            f"use {', '.join(_UPGRADE_TYPES[:-1])} or {_UPGRADE_TYPES[-1]}",
        )


@_RULES.rule("rayservice-v5")
def deletion_delay_negative(service: Service) -> Findings:
    """rayClusterDeletionDelaySeconds is not negative."""
    delay = integer(service.spec, "rayClusterDeletionDelaySeconds")
    if delay is not None and delay < 0:
        yield Finding(("spec", "rayClusterDeletionDelaySeconds"), f"{delay} is negative", "use 0 or more")


@_RULES.rule("rayservice-v6")
def incremental_without_autoscaling(service: Service) -> Findings:
    """An incremental upgrade needs autoscaling."""
    if service.incremental and not is_true(service.cluster, "enableInTreeAutoscaling"):
        yield Finding(
            (*_CLUSTER, "enableInTreeAutoscaling"),
            f"must be true for {_INCREMENTAL}, which resizes both clusters",
            "set it to true, or use upgradeStrategy.type NewCluster",
        )


@_RULES.rule("rayservice-v7")
def incremental_without_options(service: Service) -> Findings:
    """An incremental upgrade needs clusterUpgradeOptions."""
    if service.incremental and service.options is None:
        yield Finding(
            _OPTIONS,
            f"required for {_INCREMENTAL}",
            "add stepSizePercent, intervalSeconds and gatewayClassName, or use type NewCluster",
        )


@_RULES.rule("rayservice-v8")
def surge_out_of_range(service: Service) -> Findings:
    """maxSurgePercent lies between 0 and 100."""
    surge = service.option("maxSurgePercent")
    if surge is not None and not 0 <= surge <= 100:
        yield Finding((*_OPTIONS, "maxSurgePercent"), f"{surge} is not between 0 and 100", "use 1 to 100")


@_RULES.rule("rayservice-v9")
def step_out_of_range(service: Service) -> Findings:
    """stepSizePercent is there and lies between 0 and 100."""
    step = service.option("stepSizePercent")
    if service.options is not None and (step is None or not 0 <= step <= 100):
        message = "must be set" if step is None else f"{step} is not between 0 and 100"
        yield Finding((*_OPTIONS, "stepSizePercent"), message, "use 1 to 100")


@_RULES.rule("rayservice-v10")
def step_above_surge(service: Service) -> Findings:
    """stepSizePercent is not above maxSurgePercent, which is 100 unless set."""
    step = service.option("stepSizePercent")
    surge = service.option("maxSurgePercent")
    if surge is None:
        surge = _DEFAULT_SURGE
    if step is not None and step > surge:
        yield Finding(
            (*_OPTIONS, "stepSizePercent"),
            f"{step} is above maxSurgePercent {surge}",
            "lower it or raise maxSurgePercent",
        )


@_RULES.rule("rayservice-v11")
def interval_not_positive(service: Service) -> Findings:
    """intervalSeconds is there and positive."""
    interval = service.option("intervalSeconds")
    if service.options is not None and (interval is None or interval <= 0):
        message = "must be set" if interval is None else f"{interval} is not positive"
        yield Finding((*_OPTIONS, "intervalSeconds"), message, "use 1 or more")


@_RULES.rule("rayservice-v12")
def gateway_class_missing(service: Service) -> Findings:
    """gatewayClassName is there."""
    if service.options is not None and not text(service.options, "gatewayClassName"):
        yield Finding((*_OPTIONS, "gatewayClassName"), "must be set", "name a GatewayClass of the cluster")


def _timeout_problem(value: str) -> str | None:
    from kubewire.times import parse_go_duration  # few services have the annotation

    try:
        duration = parse_go_duration(value)
    except ValueError:
        seconds = _decimal(value)
        if seconds is None:
            return f"{quoted(value)} has an invalid format"
        return None if seconds > 0 else f"{quoted(value)} must be a positive number of seconds"
    return None if duration > 0 else f"{quoted(value)} must be a positive duration"


def _decimal(value: str) -> int | None:
    """Return the number as Go reads it: a sign and ASCII digits, within 64 bits, no blanks or underscores."""
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not digits or digits.strip("0123456789") or len(digits.lstrip("0")) > len(str(2**63)):
        return None
    number = int(digits.lstrip("0") or "0") * (-1 if value[0] == "-" else 1)
    return number if -(2**63) <= number < 2**63 else None


RAYSERVICE: tuple[Rule[Service], ...] = tuple(_RULES.rules)
