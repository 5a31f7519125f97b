"""The operator's account on a plane, with exactly the rights of the manifests, and tokens that can be taken away."""

from pathlib import Path
from typing import Any

import yaml

from kubereef.node.machine.client import HttpsClient
from tests.conftest import REPOSITORY
from tests.kubernetes.plane import Plane

NAME = "kuberay-operator"
CONFIG = REPOSITORY / "config"
# The manifests of the account and its rights: always, and with the way to Ray through the API server.
MANIFESTS = (
    "rbac/service_account.yaml",
    "rbac/role.yaml",
    "rbac/role_binding.yaml",
    "rbac/leader_election_role.yaml",
    "rbac/leader_election_role_binding.yaml",
    "components/proxy/role.yaml",
)

_RBAC = "rbac.authorization.k8s.io"
_PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": f"/apis/{_RBAC}/v1/clusterroles",
    "ClusterRoleBinding": f"/apis/{_RBAC}/v1/clusterrolebindings",
    "Role": f"/apis/{_RBAC}/v1/namespaces/{{}}/roles",
    "RoleBinding": f"/apis/{_RBAC}/v1/namespaces/{{}}/rolebindings",
}


class Account:
    """The operator's ServiceAccount in a namespace of its own."""

    def __init__(self, plane: Plane, namespace: str, *more: str) -> None:
        """`more` are further manifests, for what is switched on."""
        self.namespace = namespace
        self._plane = plane
        self._manifests = (*MANIFESTS, *more)
        self._kubeconfigs = 0

    async def install(self, api: HttpsClient) -> None:
        """Create the account with the rights that the manifests give it, in its own namespace instead of theirs."""
        await api.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        for manifest in self._manifests:
            for obj in yaml.safe_load_all((CONFIG / manifest).read_text()):
                for subject in obj.get("subjects", ()):
                    subject["namespace"] = self.namespace
                await api.create(_PATHS[obj["kind"]].format(self.namespace), _without_place(obj))

    async def token(self, api: HttpsClient, bound_to: dict[str, Any] | None = None) -> str:
        """Return a token of the account; one that is bound to a Secret ends with it."""
        spec: dict[str, Any] = {"expirationSeconds": 3600}
        if bound_to is not None:
            metadata = bound_to["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Secret",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        made = await api.create(f"{self._accounts}/{NAME}/token", {"spec": spec})
        return str(made["status"]["token"])

    async def secret(self, api: HttpsClient, name: str) -> dict[str, Any]:
        """Create a Secret for a token to be bound to."""
        return await api.create(self._secrets, {"metadata": {"name": name}})

    async def revoke(self, api: HttpsClient, secret: dict[str, Any]) -> None:
        """Take a token away, by the Secret that it is bound to."""
        await api.delete(f"{self._secrets}/{secret['metadata']['name']}")

    def kubeconfig(self, token: Path) -> Path:
        """Return a kubeconfig of the account, which reads its token from a file."""
        self._kubeconfigs += 1
        return self._plane.kubeconfig_with(f"operator-{self._kubeconfigs}", token)

    @property
    def _accounts(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/serviceaccounts"

    @property
    def _secrets(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"


def _without_place(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "namespace"}
    return {**obj, "metadata": metadata}
