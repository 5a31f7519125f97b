"""What every namespace has from the start: an account for its Pods, and the certificate of the server's authority."""

from kubereef.controllers.caches import Key
from kubereef.controllers.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object
from kubewire import errors

ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"

_DESCRIPTION = "kubernetes.io/description"
_WHAT_FOR = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def _namespace_of(name: str, obj: Object) -> list[Key]:
    """Return the key of an object's namespace, if the object has the name that matters."""
    meta = obj["metadata"]
    return [Key("", meta["namespace"])] if meta["name"] == name else []


class _NamespaceFurnisher(Controller):
    """A controller that puts one thing into every namespace that is not being deleted."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.namespaces = self.watch(NAMESPACES)

    def takes_content(self, key: Key) -> bool:
        """Tell whether a namespace is there to stay."""
        namespace = self.namespaces.get(key)
        return namespace is not None and not namespace["metadata"].get("deletionTimestamp")


class ServiceAccountController(_NamespaceFurnisher):
    """Gives each namespace its default account."""

    name = "service-account-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.accounts = self.watch(SERVICE_ACCOUNTS, lambda obj: _namespace_of(ACCOUNT, obj))

    async def sync(self, key: Key) -> None:
        if self.takes_content(key) and self.accounts.get((key.name, ACCOUNT)) is None:
            await _create(self, SERVICE_ACCOUNTS, {"metadata": {"name": ACCOUNT, "namespace": key.name}})


class RootCertificatePublisher(_NamespaceFurnisher):
    """Keeps the certificate of the cluster's authority in each namespace, as it is."""

    name = "root-ca-cert-publisher"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.config_maps = self.watch(CONFIG_MAPS, lambda obj: _namespace_of(ROOT_CA, obj))

    async def sync(self, key: Key) -> None:
        if not self.takes_content(key):
            return
        data = {"ca.crt": self.world.root_ca}
        wanted = {
            "metadata": {"name": ROOT_CA, "namespace": key.name, "annotations": {_DESCRIPTION: _WHAT_FOR}},
            "data": data,
        }
        present = self.config_maps.get((key.name, ROOT_CA))
        if present is None:
            await _create(self, CONFIG_MAPS, wanted)
            return
        annotations = present["metadata"].get("annotations") or {}
        if present.get("data") != data or not annotations.get(_DESCRIPTION):
            metadata = {**present["metadata"], "annotations": {**annotations, _DESCRIPTION: _WHAT_FOR}}
            await self.hands.replace(CONFIG_MAPS, {**present, "metadata": metadata, "data": data})


async def _create(controller: Controller, resource: Resource, obj: Object) -> None:
    """Create an object, unless somebody else has or the namespace is gone."""
    try:
        await controller.hands.create(resource, obj)
    except (errors.AlreadyExists, errors.NotFound):
        return
