"""Which backend a client gets: each in turn, or the one it had before."""

from collections import OrderedDict

from kubereef.node.network.proxy.rules import Backend, Target
from kubewire.sources import Clock

MOST_TRIES = 8
"""Backends that are tried for one connection before it is given up."""

MOST_CLIENTS = 10_000
"""Clients that a listener remembers the backends of."""


class Balancer:
    """Chooses among the backends of one listener."""

    def __init__(self, target: Target, clock: Clock, start: int = 0) -> None:
        self._target = target
        self._clock = clock
        self._turn = start
        self._homes: OrderedDict[str, tuple[Backend, float]] = OrderedDict()

    @property
    def backends(self) -> tuple[Backend, ...]:
        return self._target.backends

    def update(self, target: Target) -> None:
        """Choose among other backends from now on; clients of those that stay keep theirs."""
        self._target = target
        if not target.affinity_seconds:
            self._homes.clear()

    def choices(self, client: str) -> list[Backend]:
        """Return the backends for a client's next connection, in the order in which to try them."""
        backends = self._target.backends
        if not backends:
            return []
        start = self._turn % len(backends)
        self._turn += 1
        order = [*backends[start:], *backends[:start]]
        home = self._home(client)
        if home in order:
            order.remove(home)
            order.insert(0, home)
        return order[:MOST_TRIES]

    def settled(self, client: str, backend: Backend) -> None:
        """Remember where a client was connected to, if its Service wants that."""
        if self._target.affinity_seconds:
            self._homes[client] = (backend, self._clock.monotonic() + self._target.affinity_seconds)
            self._homes.move_to_end(client)
            if len(self._homes) > MOST_CLIENTS:
                self._homes.popitem(last=False)

    def _home(self, client: str) -> Backend | None:
        backend, until = self._homes.get(client, (None, 0.0))
        return backend if until > self._clock.monotonic() else None
