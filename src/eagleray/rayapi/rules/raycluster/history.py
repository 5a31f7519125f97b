"""RayCluster rule 16: the collector that writes for a history server."""

from collections.abc import Callable, Mapping

from eagleray.rayapi.problems import quoted
from eagleray.rayapi.rules.raycluster.view import Cluster, rulebook
from eagleray.rayapi.rules.reading import Object, is_set, mapping, mappings, text
from eagleray.rayapi.rules.rulebook import Finding, Findings
from kubewire.paths import FieldPath

HISTORY = rulebook()

COLLECTOR_CONTAINER = "ray-history-collector"

_OPTIONS: FieldPath = ("spec", "historyServerOptions")
_COLLECTOR: FieldPath = (*_OPTIONS, "collectorOptions")
_SET_BY_OPERATOR = (
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
)
_AZURE_CONNECTION = "AZURE_STORAGE_CONNECTION_STRING"
_AZURE_ACCOUNT = "AZURE_STORAGE_ACCOUNT_URL"
_AZURE_MODE = "AZURE_STORAGE_AUTH_MODE"


@HISTORY.rule("raycluster-16a")
def history_gate(cluster: Cluster) -> Findings:
    """historyServerOptions need the RayClusterHistoryServer gate."""
    if is_set(cluster.spec, "historyServerOptions") and not cluster.scope.gate("RayClusterHistoryServer"):
        yield Finding(
            _OPTIONS,
            "the RayClusterHistoryServer feature gate is not enabled",
            "enable the gate, or remove historyServerOptions",
        )


@HISTORY.rule("raycluster-16b")
def collector_missing(cluster: Cluster) -> Findings:
    """historyServerOptions have collectorOptions."""
    options = mapping(cluster.spec, "historyServerOptions")
    if is_set(cluster.spec, "historyServerOptions") and not is_set(options, "collectorOptions"):
        yield Finding(_COLLECTOR, "must be set", "describe the collector, or remove historyServerOptions")


@HISTORY.rule("raycluster-16c")
def collector_image(cluster: Cluster) -> Findings:
    """The collector has an image."""
    collector = _collector(cluster)
    if collector is not None and not text(collector, "image"):
        yield Finding((*_COLLECTOR, "image"), "must be set", "name the image of the collector")


@HISTORY.rule("raycluster-16d")
def collector_reserved_variables(cluster: Cluster) -> Findings:
    """The collector's environment leaves out what the operator sets."""
    for position, variable in enumerate(mappings(_collector(cluster) or {}, "env")):
        if variable.get("name") in _SET_BY_OPERATOR:
            yield Finding(
                (*_COLLECTOR, "env", position), f"{variable['name']} is set by the operator", "remove it"
            )


@HISTORY.rule("raycluster-16e")
def storage_backend_missing(cluster: Cluster) -> Findings:
    """The collector's environment names the storage backend as plain text."""
    collector = _collector(cluster)
    if collector is not None and not text(_variables(collector).get("STORAGE_BACKEND", {}), "value"):
        yield Finding(
            (*_COLLECTOR, "env"),
            "STORAGE_BACKEND must be set to a literal value",
            "add it, with a value such as S3, GCS, AZUREBLOB or ALIYUNOSS",
        )


@HISTORY.rule("raycluster-16f")
def storage_backend_variables(cluster: Cluster) -> Findings:
    """The collector's environment has what its storage backend needs."""
    variables = _variables(_collector(cluster) or {})
    backend = text(variables.get("STORAGE_BACKEND", {}), "value").upper()
    needs = _NEEDS.get(backend)
    for names, when in needs(variables) if needs else ():
        if not any(_has_value(variables.get(name, {})) for name in names):
            yield Finding(
                (*_COLLECTOR, "env"),
                f"{' or '.join(names)} must be set when STORAGE_BACKEND is {backend}{when}",
                "add it, with a value or a reference to one",
            )


@HISTORY.rule("raycluster-16g")
def collector_name_taken(cluster: Cluster) -> Findings:
    """No Pod template has a container of the collector's name."""
    if not is_set(cluster.spec, "historyServerOptions"):
        return
    for group in (cluster.head, *cluster.groups):
        for position, container in enumerate(group.containers):
            if container.get("name") == COLLECTOR_CONTAINER:
                yield Finding(
                    group.at_pod("containers", position, "name"),
                    f"the operator adds a container {COLLECTOR_CONTAINER} to {group.title}",
                    "use another name",
                )


def _collector(cluster: Cluster) -> Object | None:
    collector = mapping(cluster.spec, "historyServerOptions").get("collectorOptions")
    return collector if isinstance(collector, dict) else None


def _variables(collector: Object) -> Mapping[str, Object]:
    """Return the collector's environment by name; of two variables of one name the later counts."""
    return {text(variable, "name"): variable for variable in mappings(collector, "env")}


def _has_value(variable: Object) -> bool:
    return bool(text(variable, "value")) or is_set(variable, "valueFrom")


# What must be there: one of these variables, and in which further circumstance.
_Need = tuple[tuple[str, ...], str]


def _azure_needs(variables: Mapping[str, Object]) -> tuple[_Need, ...]:
    mode = text(variables.get(_AZURE_MODE, {}), "value").strip().lower()
    when = f" and {_AZURE_MODE} is {quoted(mode)}"
    if mode == "connection_string":
        return (((_AZURE_CONNECTION,), when),)
    if mode in ("workload_identity", "default"):
        return (((_AZURE_ACCOUNT,), when),)
    return (((_AZURE_CONNECTION, _AZURE_ACCOUNT), ""),)


_NEEDS: Mapping[str, Callable[[Mapping[str, Object]], tuple[_Need, ...]]] = {
    "GCS": lambda _: ((("GCS_BUCKET",), ""),),
    "S3": lambda _: ((("S3_REGION",), ""),),
    "ALIYUNOSS": lambda _: ((("OSS_BUCKET",), ""), (("OSS_ENDPOINT",), ""), (("OSS_REGION",), "")),
    "AZUREBLOB": _azure_needs,
}
