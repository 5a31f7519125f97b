"""The way to the cluster that this process runs in, as every Pod has it."""

from collections.abc import Mapping
from pathlib import Path

from eagleray.kube.access import Access, ConfigError, FileSource, UserCredentials
from kubewire.sources import Clock

_MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_in_cluster(environ: Mapping[str, str]) -> bool:
    """Whether the environment is that of a Pod."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def in_cluster(environ: Mapping[str, str], clock: Clock, mounted: Path = _MOUNTED) -> Access:
    """Return the way in that the Pod's service account has; its token is read again when it is renewed."""
    if not is_in_cluster(environ):
        raise ConfigError(
            "this is no Pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; give a kubeconfig"
        )
    for name in ("token", "ca.crt"):
        if not (mounted / name).is_file():
            raise ConfigError(
                f"{mounted / name}: there is no such file; the Pod needs a service account whose token is mounted"
                " (automountServiceAccountToken)"
            )
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    namespace = mounted / "namespace"
    return Access(
        f"https://{f'[{host}]' if ':' in host else host}:{port}",
        UserCredentials(token=FileSource(mounted / "token", clock)),
        authority=FileSource(mounted / "ca.crt", clock),
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
    )
