"""The webhooks of one operator, put together: the certificate's source, its keeper, and the server."""

import asyncio
import logging
from pathlib import Path
from typing import NamedTuple

from eagleray.kube.client import Client
from eagleray.kube.resources import Key
from eagleray.runtime.addresses import Address
from eagleray.runtime.metrics import Registry
from eagleray.webhooks.certificates import SECRET_NAME, Directory, KeptSecret, serving_names
from eagleray.webhooks.keeper import Keeper
from eagleray.webhooks.server import WebhookMetrics, WebhookServer
from eagleray.webhooks.trust import Configuration
from kubewire.certificates import Issuer
from kubewire.sources import Clock, Entropy

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where webhooks are served, and what the cluster knows of that."""

    address: Address
    certificates: Path
    service: Key
    configuration: str
    domain: str


class Webhooks:
    """Serves whether or not this replica leads, so the client may write without a Lease. `port` is set once started."""

    def __init__(
        self, place: Place, client: Client, registry: Registry, *, clock: Clock, entropy: Entropy
    ) -> None:
        self._address = place.address
        self._keeper = _keeper(place, client, clock, entropy)
        self._server = WebhookServer(self._keeper.context, WebhookMetrics(registry), clock)
        self._keeping: asyncio.Task[None] | None = None
        self.port = 0

    def check(self) -> str | None:
        """Return what is wrong if the webhooks cannot be asked."""
        if self._keeping is not None and self._keeping.done() and not self._keeping.cancelled():
            return f"nobody looks after the certificate any more: {self._keeping.exception()!r}"
        return self._keeper.check()

    async def start(self) -> None:
        """Listen, and begin to look after the certificate; OSError if the port is taken."""
        self.port = await self._server.start(self._address)
        self._keeping = asyncio.create_task(self._keeper.run(), name="webhook certificate")

    async def stop(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        await self._server.stop()


def _keeper(place: Place, client: Client, clock: Clock, entropy: Entropy) -> Keeper:
    directory = Directory(place.certificates)
    if directory.is_there:
        log.info("The webhooks are served with the certificate in %s", place.certificates)
        # Whoever put it there has it trusted, as cert-manager does.
        return Keeper(directory, None, clock)
    namespace, service = place.service
    source = KeptSecret(
        client,
        Key(namespace, SECRET_NAME),
        serving_names(namespace, service, place.domain),
        Issuer(clock, entropy),
    )
    return Keeper(source, Configuration(client, place.configuration, place.service), clock)
