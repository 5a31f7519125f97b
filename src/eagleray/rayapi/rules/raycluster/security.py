"""RayCluster rules 17 to 19: tokens, network policies and TLS."""

from collections.abc import Iterator, Sequence

from eagleray.rayapi.problems import quoted
from eagleray.rayapi.rules.raycluster.view import Cluster, rulebook
from eagleray.rayapi.rules.reading import Object, is_set, is_true, mapping, mappings, text
from eagleray.rayapi.rules.rulebook import Finding, Findings
from kubewire.names import dns1123_label
from kubewire.paths import FieldPath

SECURITY = rulebook()

TOKEN_AUTH_SINCE = "2.52.0"  # noqa: S105 - the Ray version that knows tokens, not a token
KUBERNETES_TOKEN_AUTH_SINCE = "2.55.0"  # noqa: S105 - likewise
TLS_VOLUME = "ray-tls"
TLS_MOUNT_PATH = "/etc/ray/tls"

_AUTH: FieldPath = ("spec", "authOptions")
_POLICY: FieldPath = ("spec", "networkPolicy")
_TLS_VARIABLES = ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
_NAMES_SHOWN = 5

# A mode that leaves one direction open has nothing to make exceptions from in that direction.
_POINTLESS_RULES = {
    "DenyAllEgress": ("ingressRules", "ingress"),
    "DenyAllIngress": ("egressRules", "egress"),
}


@SECURITY.rule("raycluster-17a")
def token_auth_version(cluster: Cluster) -> Findings:
    """Token authentication needs a Ray that knows it."""
    if _token_auth(cluster) and (why := cluster.lacks_ray(TOKEN_AUTH_SINCE)):
        yield Finding(
            (*_AUTH, "mode"),
            f"token needs Ray {TOKEN_AUTH_SINCE} or later, but {why}",
            "set rayVersion to the Ray of the image if that is new enough, or set mode to disabled",
        )


@SECURITY.rule("raycluster-17b")
def kubernetes_token_auth_version(cluster: Cluster) -> Findings:
    """Authentication with Kubernetes tokens needs a Ray that knows it."""
    if not _token_auth(cluster) or not kubernetes_tokens(cluster.spec):
        return
    # A version that is missing or cannot be read is the business of the rule above.
    if cluster.ray_numbers is not None and (why := cluster.lacks_ray(KUBERNETES_TOKEN_AUTH_SINCE)):
        yield Finding(
            (*_AUTH, "enableK8sTokenAuth"),
            f"needs Ray {KUBERNETES_TOKEN_AUTH_SINCE} or later, but {why}",
            "set rayVersion to the Ray of the image if that is new enough, or remove it",
        )


@SECURITY.rule("raycluster-17c")
def kubernetes_token_and_secret(cluster: Cluster) -> Findings:
    """Authentication with Kubernetes tokens has no Secret with a token of its own."""
    auth = mapping(cluster.spec, "authOptions")
    if _token_auth(cluster) and kubernetes_tokens(cluster.spec) and text(auth, "secretName"):
        yield Finding(
            (*_AUTH, "secretName"),
            "set although enableK8sTokenAuth makes Kubernetes issue the tokens",
            "remove one of the two",
        )


@SECURITY.rule("raycluster-17d")
def kubernetes_token_without_mode(cluster: Cluster) -> Findings:
    """Authentication with Kubernetes tokens needs mode token."""
    if kubernetes_tokens(cluster.spec) and not _token_auth(cluster):
        yield Finding(
            (*_AUTH, "enableK8sTokenAuth"),
            "true, but authOptions.mode is not token",
            "set mode to token, or remove it",
        )


@SECURITY.rule("raycluster-18a")
def network_policy_gate(cluster: Cluster) -> Findings:
    """networkPolicy needs the RayClusterNetworkPolicy gate."""
    if is_set(cluster.spec, "networkPolicy") and not cluster.scope.gate("RayClusterNetworkPolicy"):
        yield Finding(
            _POLICY,
            "requires the RayClusterNetworkPolicy feature gate to be enabled",
            "enable the gate, or remove networkPolicy",
        )


@SECURITY.rule("raycluster-18b")
def network_policy_mode(cluster: Cluster) -> Findings:
    """The rules for head and workers are for a direction that the mode restricts."""
    policy = mapping(cluster.spec, "networkPolicy")
    for part in ("head", "worker"):
        yield from _pointless_rules(policy, mapping(policy, part), (*_POLICY, part))


@SECURITY.rule("raycluster-18c")
def network_policy_group_names(cluster: Cluster) -> Findings:
    """With a networkPolicy every groupName is a DNS-1123 label."""
    if not is_set(cluster.spec, "networkPolicy"):
        return
    for group in cluster.groups:
        if dns1123_label(group.name):
            yield Finding(
                group.at("groupName"),
                f"{quoted(group.name)} is not a DNS-1123 label, but a NetworkPolicy is named after it",
                "use at most 63 lower-case letters, digits and '-', with no '-' at either end",
            )


@SECURITY.rule("raycluster-18d")
def network_policy_group_mode(cluster: Cluster) -> Findings:
    """The rules for a worker group are for a direction that the mode restricts."""
    policy = mapping(cluster.spec, "networkPolicy")
    for i, entry in enumerate(mappings(policy, "workerGroups")):
        yield from _pointless_rules(policy, entry, (*_POLICY, "workerGroups", i))


@SECURITY.rule("raycluster-18e")
def network_policy_unknown_group(cluster: Cluster) -> Findings:
    """The rules for a worker group name a group that exists."""
    entries = mappings(mapping(cluster.spec, "networkPolicy"), "workerGroups")
    if not entries:
        return
    names = {group.name: None for group in cluster.groups}
    way_out = f"use {_one_of(list(names))}" if names else "add that group, or remove the entry"
    for i, entry in enumerate(entries):
        if text(entry, "groupName") not in names:
            yield Finding(
                (*_POLICY, "workerGroups", i, "groupName"),
                f"{quoted(text(entry, 'groupName'))} does not match any group in workerGroupSpecs",
                way_out,
            )


@SECURITY.rule("raycluster-19a")
def tls_gate(cluster: Cluster) -> Findings:
    """tlsOptions need the RayClusterMTLS gate."""
    if is_set(cluster.spec, "tlsOptions") and not cluster.scope.gate("RayClusterMTLS"):
        yield Finding(
            ("spec", "tlsOptions"),
            "requires the RayClusterMTLS feature gate to be enabled",
            "enable the gate, or remove tlsOptions",
        )


@SECURITY.rule("raycluster-19b")
def tls_variables(cluster: Cluster) -> Findings:
    """With TLS enabled no environment has the variables that the operator sets for it."""
    for env, _, place in _tls_places(cluster):
        for i, variable in enumerate(env):
            if variable.get("name") in _TLS_VARIABLES:
                yield Finding(
                    (*place, "env", i),
                    f"{variable['name']} is set by the operator when tlsOptions.enabled is true",
                    "remove it",
                )


@SECURITY.rule("raycluster-19c")
def tls_mounts(cluster: Cluster) -> Findings:
    """With TLS enabled nothing is mounted where the operator mounts the certificates."""
    for _, mounts, place in _tls_places(cluster):
        for i, mount in enumerate(mounts):
            if mount.get("name") == TLS_VOLUME or mount.get("mountPath") == TLS_MOUNT_PATH:
                yield Finding(
                    (*place, "volumeMounts", i),
                    f"the operator mounts {TLS_VOLUME} at {TLS_MOUNT_PATH} when tlsOptions.enabled is true",
                    "use another volume name and another path, or remove it",
                )


def kubernetes_tokens(spec: Object) -> bool:
    """Return whether a cluster's spec asks for authentication with tokens that Kubernetes issues."""
    return is_true(mapping(spec, "authOptions"), "enableK8sTokenAuth")


def _token_auth(cluster: Cluster) -> bool:
    return mapping(cluster.spec, "authOptions").get("mode") == "token"


def _pointless_rules(policy: Object, rules: Object, place: FieldPath) -> Findings:
    mode = text(policy, "mode")
    field, direction = _POINTLESS_RULES.get(mode, ("", ""))
    if field and mappings(rules, field):
        yield Finding(
            (*place, field),
            f"cannot be set when mode is {mode}, which leaves {direction} open",
            "remove it, or set mode to DenyAll",
        )


def _tls_places(cluster: Cluster) -> Iterator[tuple[Sequence[Object], Sequence[Object], FieldPath]]:
    """Yield environment and mounts of each container that gets the certificates, and where it stands."""
    if not is_true(mapping(cluster.spec, "tlsOptions"), "enabled"):
        return
    for group in (cluster.head, *cluster.groups):
        yield group.env, group.mounts, group.at_ray_container()
    options = cluster.autoscaler
    yield mappings(options, "env"), mappings(options, "volumeMounts"), ("spec", "autoscalerOptions")


def _one_of(names: list[str]) -> str:
    shown = ", ".join(quoted(name) for name in names[:_NAMES_SHOWN])
    more = f" or one of {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{'one of ' if len(names) > 1 else ''}{shown}{more}"
