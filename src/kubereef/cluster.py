"""A whole API server in this process: store, kinds, admission, access, and what every cluster begins with."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from kubereef.kinds.builtin import builtin_types
from kubereef.kinds.registry import Registry
from kubereef.server import podparts
from kubereef.server.accounts import AccountTokens
from kubereef.server.addresses import DEFAULT_CIDR
from kubereef.server.admission_steps import cluster_admission
from kubereef.server.authentication import Authenticator
from kubereef.server.authorization import Authorizer
from kubereef.server.bootstrap import BOOTSTRAP_USER, Entrance, api_service_ip, bootstrap
from kubereef.server.calls import Surroundings
from kubereef.server.core import Server
from kubereef.server.definitions import Definitions
from kubereef.server.discovery import Discovery
from kubereef.server.forwarding import Forwarding
from kubereef.server.frontpages import FrontPages
from kubereef.server.gate import Gate
from kubereef.server.health import Health
from kubereef.server.inprocess import LocalClient
from kubereef.server.lines import DirectLines, Lines
from kubereef.server.openapi import OpenApi
from kubereef.server.rbac import RoleBook
from kubereef.server.requests import ADMINISTRATOR, User
from kubereef.server.reviews import Reviews
from kubereef.server.tokenrequests import TokenRequests
from kubereef.server.tokens import Signer, StaticTokens
from kubereef.server.webhooks.asking import Webhooks
from kubereef.store.store import Store
from kubewire.sources import Clock, Entropy

# Something that lives as long as the cluster runs, such as its controllers.
Part = Callable[["Cluster"], AbstractAsyncContextManager[object]]


class Cluster:
    """A Kubernetes without a wire: speak to it with `client`, or put `server` behind a transport."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        entropy: Entropy,
        tokens: StaticTokens | None = None,
        signer: Signer | None = None,
        lines: Lines | None = None,
        parts: Sequence[Part] = (),
        authority: bytes = b"",
        service_cidr: str = DEFAULT_CIDR,
        tracks_owners: bool = True,
    ) -> None:
        self.store = store
        self.clock = clock
        self.entropy = entropy
        # The certificate by which Pods know the server, in PEM form.
        self.authority = authority
        self.service_cidr = service_cidr
        self._signer = signer or Signer.fresh()
        self._lines: Lines = lines or DirectLines()
        self._parts = parts
        self._roles = RoleBook(store)
        self._running = AsyncExitStack()
        self._not_ready = "not started"
        authorizer = Authorizer(self._roles)
        admission = cluster_admission(entropy, authorizer, service_cidr)
        registry = Registry(builtin_types())
        self._webhooks = Webhooks(store, registry, clock, entropy, self._lines, BOOTSTRAP_USER)
        around = Surroundings(
            store, registry, clock, entropy, admission, tracks_owners, webhooks=self._webhooks
        )
        accounts = AccountTokens(self._signer, store, clock)
        authenticator = Authenticator(tokens or StaticTokens({}), accounts)
        self.server = Server(around, Gate(authenticator, authorizer))
        self._definitions = Definitions(self.server)
        self._furnish(authenticator, authorizer)

    def client(self, user: User = ADMINISTRATOR) -> LocalClient:
        """Return a client that speaks to the server as a user, without a wire."""
        return LocalClient(self.server, user)

    async def start(self, entrance: Entrance | None = None) -> None:
        """Make the cluster ready: what it begins with is there, and its parts run."""
        service_ip = api_service_ip(self.service_cidr)
        await self._definitions.follow()
        await bootstrap(self.client(BOOTSTRAP_USER), entrance or Entrance(), service_ip)
        for part in self._parts:
            await self._running.enter_async_context(part(self))
        self._not_ready = ""

    async def stop(self) -> None:
        """Stop the parts, the last first, and let go of the store."""
        self._not_ready = "shutting down"
        await self._running.aclose()
        await self._webhooks.close()
        await self._lines.close()
        self._roles.close()
        await self._definitions.stop()
        await self.store.close()

    def drain(self) -> None:
        """Stop being ready, and end every watch."""
        self._not_ready = "shutting down"
        self.store.end_watches()

    def _furnish(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        server = self.server
        Reviews(authenticator, authorizer).offer(server)
        Forwarding(self._lines).offer(server)
        podparts.offer(server)
        server.subresources[("serviceaccounts", "token")] = TokenRequests(self._signer).create
        health = Health({}, {"startup": lambda: self._not_ready})
        server.pages += [health.page, FrontPages(server, self._signer).page]
        server.pages += [Discovery(server).page, OpenApi(server).page]
