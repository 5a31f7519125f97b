"""Everything an operator can be told at its start: flags, configuration file, feature gates and environment.

`read_options` turns them into one frozen value or says in one sentence what is wrong; nothing else reads them.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast, get_args

from eagleray.gates import GateError, Gates, parse_gates
from eagleray.runtime.addresses import Address, AddressError, parse_address
from eagleray.runtime.configfile import read_config
from eagleray.runtime.environment import Environment, read_environment
from eagleray.runtime.flags import parse_flags
from eagleray.runtime.logging import NEVER, Encoder, LogOptions, TimeEncoding
from eagleray.runtime.optionkinds import (
    CONTAINERS,
    COUNT,
    ENVIRONMENT,
    NUMBER,
    SECONDS,
    STRINGS,
    SWITCH,
    TEXT,
    Kind,
    OptionError,
    shown,
)
from kubewire.names import dns1123_label, dns1123_subdomain

Object = dict[str, Any]

BATCH_SCHEDULERS: Final = ("volcano", "yunikorn", "kai-scheduler", "scheduler-plugins")

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "panic": NEVER,
}


class Option(NamedTuple):
    """One thing that can be told: by a flag, by a field of the configuration file, or by either."""

    flag: str
    field: str
    kind: Kind
    default: object
    help: str

    @property
    def name(self) -> str:
        return self.flag or self.field


OPTIONS: Final[Mapping[str, Option]] = {
    option.name: option
    for option in (
        Option("metrics-addr", "metricsAddr", TEXT, ":8080", "where /metrics is served; 0 for nowhere"),
        Option(
            "health-probe-bind-address", "probeAddr", TEXT, ":8082", "where /healthz and /readyz are served"
        ),
        Option(
            "enable-leader-election", "enableLeaderElection", SWITCH, True, "one active replica at a time"
        ),
        Option("leader-election-namespace", "leaderElectionNamespace", TEXT, "", "where the Lease lives"),
        Option("reconcile-concurrency", "reconcileConcurrency", COUNT, 0, "most objects of a kind at once"),
        Option(
            "watch-namespace",
            "watchNamespace",
            TEXT,
            "",
            "namespaces, with commas between them; all if empty",
        ),
        Option("log-file-path", "logFile", TEXT, "", "a file to log to, besides stderr"),
        Option("log-file-encoder", "logFileEncoder", TEXT, "json", "json or console"),
        Option("log-stdout-encoder", "logStdoutEncoder", TEXT, "json", "json or console, for stderr"),
        Option("batch-scheduler", "batchScheduler", TEXT, "", f"one of {', '.join(BATCH_SCHEDULERS)}"),
        Option("enable-batch-scheduler", "enableBatchScheduler", SWITCH, False, "deprecated: volcano"),
        Option(
            "use-kubernetes-proxy", "useKubernetesProxy", SWITCH, False, "reach Ray through the API server"
        ),
        Option("enable-metrics", "enableMetrics", SWITCH, False, "serve the kuberay_* metrics"),
        Option("qps", "qps", NUMBER, 100.0, "requests per second and resource type; below 0 for no limit"),
        Option("burst", "burst", COUNT, 200, "requests at once and resource type"),
        Option("feature-gates", "", TEXT, "", "A=true,B=false; also AllAlpha and AllBeta"),
        Option(
            "config", "", TEXT, "", "a configuration file, which replaces the flags that have a field in it"
        ),
        Option("forced-cluster-upgrade", "", SWITCH, False, "deprecated and without effect"),
        Option("kubeconfig", "", TEXT, "", "a kubeconfig; else the Pod's account or the usual files"),
        Option("zap-devel", "", SWITCH, False, "debug level, and stack traces of warnings"),
        Option("zap-encoder", "", TEXT, "", "without effect: the two encoder flags decide"),
        Option("zap-log-level", "", TEXT, "", "debug, info, error, panic or a number above 0"),
        Option("zap-stacktrace-level", "", TEXT, "", "info, error or panic"),
        Option("zap-time-encoding", "", TEXT, "iso8601", f"one of {', '.join(get_args(TimeEncoding))}"),
        Option(
            "dashboard-poll-concurrency", "dashboardPollConcurrency", COUNT, 256, "dashboards asked at once"
        ),
        Option(
            "dashboard-poll-interval", "dashboardPollInterval", SECONDS, 3.0, "time between two questions"
        ),
        Option(
            "dashboard-calm-interval",
            "dashboardCalmInterval",
            SECONDS,
            60.0,
            "what that grows to while nothing changes",
        ),
        Option("dashboard-cache-size", "dashboardCacheSize", COUNT, 10_000, "answers kept"),
        Option(
            "dashboard-cache-expiry",
            "dashboardCacheExpiry",
            SECONDS,
            600.0,
            "how long unused answers are kept",
        ),
        Option(
            "webhook-addr",
            "webhookAddr",
            TEXT,
            ":9443",
            "where webhooks are served if ENABLE_WEBHOOKS is true",
        ),
        Option(
            "webhook-cert-dir",
            "webhookCertDir",
            TEXT,
            "/tmp/k8s-webhook-server/serving-certs",  # noqa: S108 - the reference's; whoever mounts a Secret there decides
            "where tls.crt and tls.key are; without them the operator keeps a certificate itself",
        ),
        Option(
            "webhook-service",
            "webhookService",
            TEXT,
            "webhook-service",
            "the Service that leads to the webhooks",
        ),
        Option(
            "webhook-configuration",
            "webhookConfiguration",
            TEXT,
            "validating-webhook-configuration",
            "the ValidatingWebhookConfiguration that is told whom to trust",
        ),
        Option("dry-run", "", SWITCH, False, "print plans without acting"),
        Option("", "headSidecarContainers", CONTAINERS, (), "added to every head Pod"),
        Option("", "workerSidecarContainers", CONTAINERS, (), "added to every worker Pod"),
        Option("", "defaultContainerEnvs", ENVIRONMENT, (), "added to all Ray containers"),
        Option("", "defaultPodAnnotations", STRINGS, {}, "added to Ray Pods"),
        Option("", "defaultPodLabels", STRINGS, {}, "added to Ray Pods"),
        Option("", "deleteRayJobAfterJobFinishes", SWITCH, False, "delete a RayJob with its cluster"),
    )
}


class Options(NamedTuple):
    """What an operator was told, checked and complete. `notices` are to be logged once logging has begun."""

    metrics_address: Address | None
    probe_address: Address | None
    leader_election: bool
    leader_election_namespace: str
    reconcile_concurrency: int | None
    watch_namespaces: tuple[str, ...]
    log: LogOptions
    batch_scheduler: str
    use_kubernetes_proxy: bool
    enable_metrics: bool
    qps: float
    burst: int
    gates: Gates
    kubeconfig: str
    dashboard_poll_concurrency: int
    dashboard_poll_interval: float
    dashboard_calm_interval: float
    dashboard_cache_size: int
    dashboard_cache_expiry: float
    webhook_address: Address | None
    webhook_certificates: str
    webhook_service: str
    webhook_configuration: str
    dry_run: bool
    head_sidecars: tuple[Object, ...]
    worker_sidecars: tuple[Object, ...]
    container_env: tuple[Object, ...]
    pod_annotations: Mapping[str, str]
    pod_labels: Mapping[str, str]
    delete_rayjob: bool
    environment: Environment
    notices: tuple[str, ...] = ()


def usage() -> str:
    """Return the help text: every flag with its default."""
    rows = [
        f"  --{option.flag:<28} {option.help}{_default_text(option)}"
        for option in OPTIONS.values()
        if option.flag
    ]
    return "\n".join(["usage: eagleray operator [--FLAG=VALUE ...]", "", *rows])


def read_options(arguments: Sequence[str], variables: Mapping[str, str]) -> Options:
    """Return what flags, configuration file and environment say together; OptionError if they cannot be followed."""
    given = parse_flags(arguments, {option.flag: option.kind for option in OPTIONS.values() if option.flag})
    values = {name: option.default for name, option in OPTIONS.items()} | given
    environment, notices = read_environment(variables)
    path = str(values["config"])
    if path:
        values, file_notices = _with_file(path, values, given)
        notices.extend(file_notices)
    if values["forced-cluster-upgrade"]:
        notices.append("--forced-cluster-upgrade is deprecated and has no effect")
    return _checked(_Told(values, path), environment, notices)


def _with_file(
    path: str, values: Mapping[str, object], given: Mapping[str, object]
) -> tuple[dict[str, object], list[str]]:
    """Return the values with those of a file: what has a field comes from there or is at its default."""
    by_field = {option.field: option for option in OPTIONS.values() if option.field}
    fields, notices = read_config(path, {field: option.kind for field, option in by_field.items()})
    from_file = {option.name: fields.get(field, option.default) for field, option in by_field.items()}
    replaced = [f"--{name}" for name in given if name in from_file]
    if replaced:
        notices.append(f"{path} replaces {', '.join(replaced)}; set their fields there")
    return {**values, **from_file}, notices


class _Told:
    """The values as they were told, with the name by which each was: a flag's, or a field's of the file."""

    def __init__(self, values: Mapping[str, object], path: str) -> None:
        self._values = values
        self._path = path

    def place(self, name: str) -> str:
        """Return where a user finds what is wrong."""
        option = OPTIONS[name]
        return f"--config: {self._path}: {option.field}" if self._path and option.field else f"--{name}"

    def error(self, name: str, problem: str) -> OptionError:
        return OptionError(f"{self.place(name)}: {problem}")

    def text(self, name: str) -> str:
        return cast(str, self._values[name])

    def switch(self, name: str) -> bool:
        return cast(bool, self._values[name])

    def value(self, name: str) -> Any:
        return self._values[name]

    def one_of(self, name: str, known: Sequence[str]) -> str:
        text = self.text(name)
        if text not in known:
            raise self.error(
                name, f"{shown(text)} is not known; write one of {', '.join(filter(None, known))}"
            )
        return text

    def count(self, name: str, least: int) -> int:
        value = cast(int, self._values[name])
        if value < least:
            raise self.error(name, f"{value} is too small; the least is {least}")
        return value

    def positive(self, name: str) -> float:
        value = cast(float, self._values[name])
        if value <= 0:
            raise self.error(name, "has to be above 0")
        return value

    def address(self, name: str) -> Address | None:
        try:
            return parse_address(self.text(name))
        except AddressError as bad:
            raise self.error(name, str(bad)) from None


def _checked(told: _Told, environment: Environment, notices: list[str]) -> Options:
    gates = _gates(told)
    scheduler = _batch_scheduler(told, gates, notices)
    qps = cast(float, told.value("qps"))
    if qps == 0:
        raise told.error("qps", "0 lets nothing through; write a number above 0, or -1 for no limit")
    return Options(
        metrics_address=told.address("metrics-addr"),
        probe_address=told.address("health-probe-bind-address"),
        leader_election=told.switch("enable-leader-election"),
        leader_election_namespace=_namespace(told, "leader-election-namespace"),
        reconcile_concurrency=told.count("reconcile-concurrency", 0) or None,
        watch_namespaces=_namespaces(told, "watch-namespace"),
        log=_log_options(told),
        batch_scheduler=scheduler,
        use_kubernetes_proxy=told.switch("use-kubernetes-proxy"),
        enable_metrics=told.switch("enable-metrics"),
        qps=qps,
        burst=told.count("burst", 1),
        gates=gates,
        kubeconfig=told.text("kubeconfig"),
        dashboard_poll_concurrency=told.count("dashboard-poll-concurrency", 1),
        dashboard_poll_interval=told.positive("dashboard-poll-interval"),
        dashboard_calm_interval=told.positive("dashboard-calm-interval"),
        dashboard_cache_size=told.count("dashboard-cache-size", 1),
        dashboard_cache_expiry=told.positive("dashboard-cache-expiry"),
        webhook_address=told.address("webhook-addr"),
        webhook_certificates=told.text("webhook-cert-dir"),
        webhook_service=_name_checked(told, "webhook-service", told.text("webhook-service"), "Service"),
        webhook_configuration=_named(told, "webhook-configuration"),
        dry_run=told.switch("dry-run"),
        head_sidecars=told.value("headSidecarContainers"),
        worker_sidecars=told.value("workerSidecarContainers"),
        container_env=told.value("defaultContainerEnvs"),
        pod_annotations=told.value("defaultPodAnnotations"),
        pod_labels=told.value("defaultPodLabels"),
        delete_rayjob=told.switch("deleteRayJobAfterJobFinishes") or environment.delete_rayjob,
        environment=environment,
        notices=tuple(notices),
    )


def _gates(told: _Told) -> Gates:
    try:
        gates = parse_gates(told.text("feature-gates"))
    except GateError as bad:
        raise told.error("feature-gates", str(bad)) from None
    if later := gates.unimplemented():
        raise told.error(
            "feature-gates", f"{', '.join(later)} comes later and has nothing behind it yet; leave it out"
        )
    return gates


def _batch_scheduler(told: _Told, gates: Gates, notices: list[str]) -> str:
    scheduler = told.one_of("batch-scheduler", ("", *BATCH_SCHEDULERS))
    if told.switch("enable-batch-scheduler"):
        place = told.place("enable-batch-scheduler")
        if scheduler:
            raise OptionError(
                f"{place} and {told.place('batch-scheduler')} exclude each other; keep the second"
            )
        notices.append(f"{place} is deprecated; write batch-scheduler=volcano")
        scheduler = "volcano"
    if scheduler and gates.enabled("KubernetesWAS"):
        raise OptionError(
            f"{told.place('batch-scheduler')}: {scheduler} and the feature gate KubernetesWAS exclude each other;"
            " leave one out"
        )
    return scheduler


def _log_options(told: _Told) -> LogOptions:
    told.one_of("zap-encoder", ("", "json", "console"))
    devel = told.switch("zap-devel")
    return LogOptions(
        level=_log_level(told, logging.DEBUG if devel else logging.INFO),
        stack_level=_LEVELS.get(
            told.one_of("zap-stacktrace-level", ("", "info", "warn", "error", "panic")),
            logging.WARNING if devel else logging.ERROR,
        ),
        encoder=cast(Encoder, told.one_of("log-stdout-encoder", get_args(Encoder))),
        file=told.text("log-file-path"),
        file_encoder=cast(Encoder, told.one_of("log-file-encoder", get_args(Encoder))),
        time_encoding=cast(TimeEncoding, told.one_of("zap-time-encoding", get_args(TimeEncoding))),
    )


def _log_level(told: _Told, default: int) -> int:
    text = told.text("zap-log-level")
    if not text:
        return default
    if text in _LEVELS:
        return _LEVELS[text]
    # A number is Go's verbosity: any of them includes debug lines.
    if text.isascii() and text.isdigit() and len(text) <= 3 and int(text) > 0:
        return logging.DEBUG
    raise told.error(
        "zap-log-level", f"{shown(text)} is no level; write debug, info, error, panic or a number above 0"
    )


def _namespaces(told: _Told, name: str) -> tuple[str, ...]:
    parts = (part.strip() for part in told.text(name).split(","))
    return tuple(dict.fromkeys(_name_checked(told, name, part) for part in parts if part))


def _namespace(told: _Told, name: str) -> str:
    text = told.text(name).strip()
    return _name_checked(told, name, text) if text else ""


def _name_checked(told: _Told, name: str, text: str, what: str = "namespace") -> str:
    if problems := dns1123_label(text):
        raise told.error(name, f"{shown(text)} is no {what}: {problems[0]}")
    return text


def _named(told: _Told, name: str) -> str:
    text = told.text(name)
    if problems := dns1123_subdomain(text):
        raise told.error(name, f"{shown(text)} is no name: {problems[0]}")
    return text


def _default_text(option: Option) -> str:
    if option.kind is SECONDS:
        return f" ({option.default:g}s)"
    return f" ({str(option.default).lower()})" if option.default not in ("", 0) else ""
