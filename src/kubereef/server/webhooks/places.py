"""Where webhooks are: at an address of their own, or in Pods behind a Service."""

from kubereef.kinds.resource import Object
from kubereef.server.endpoints import ready_endpoints
from kubereef.server.lines import Lines
from kubereef.server.webhooks.calling import NoPlace, Place
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire.gotext import quote


class Places:
    """Finds hosts: names of Services mean the Pods behind them, reached as the proxy of the API server does."""

    def __init__(self, store: Store, lines: Lines) -> None:
        self._store = store
        self._lines = lines

    def __call__(self, host: str, port: int) -> Place:
        name, _, rest = host.partition(".")
        namespace, _, suffix = rest.partition(".")
        if suffix == "svc":
            host, port = self._behind(namespace, name, port)
        return Place(host, port, self._lines.passage(host))

    def _behind(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        record = self._store.get(Key("services", namespace, name))
        if record is None:
            raise NoPlace(f"service {quote(name)} not found")
        spec: Object = record.object().get("spec") or {}
        if spec.get("type") == "ExternalName":
            return str(spec.get("externalName")), port
        for offered in spec.get("ports") or ():
            if offered.get("port") == port:
                for endpoint in ready_endpoints(self._store, namespace, name, offered.get("name") or ""):
                    return endpoint
                raise NoPlace(f"no endpoints available for service {quote(name)}")
        raise NoPlace(f"no service port {port} found for service {quote(name)}")
