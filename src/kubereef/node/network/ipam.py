"""Which address a Pod gets: the next one in turn, so that an address rests for long before it is used again."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class NoFreeAddress(Exception):
    """Every address of the network is taken."""


class AddressPool:
    """The addresses of one network and who has them.

    The same calls give the same addresses. After a restart the pool is told what is in use and goes on behind the
    highest of these, since what was released before is not known any more.
    """

    def __init__(
        self,
        network: Network,
        *,
        reserved: Iterable[Address] = (),
        in_use: Mapping[str, Address] | None = None,
    ) -> None:
        self.network = network
        self._owners: dict[str, Address] = {}
        self._taken: set[int] = {int(address) for address in reserved if address in network}
        self._first = int(network.network_address)
        self._size = network.num_addresses
        if self._size > 2:  # the first address names the network and the last one is for everybody
            self._taken |= {self._first, int(network.broadcast_address)}
        self._last = self._first
        for owner, address in (in_use or {}).items():
            self.take(owner, address)

    @property
    def in_use(self) -> dict[str, Address]:
        """Who has which address."""
        return dict(self._owners)

    def take(self, owner: str, address: Address) -> None:
        """Record that somebody has an address already."""
        if address not in self.network:
            raise ValueError(f"{address} is not in {self.network}")
        if int(address) in self._taken and self._owners.get(owner) != address:
            raise ValueError(f"{address} is taken")
        self._owners[owner] = address
        self._taken.add(int(address))
        self._last = max(self._last, int(address))

    def allocate(self, owner: str) -> Address:
        """Return the owner's address: the one it has, or the next free one after the last that was given."""
        if owner in self._owners:
            return self._owners[owner]
        candidate = self._last - self._first
        # Taken addresses are the only ones that can be in the way, so one step more than their number finds a free one.
        for _ in range(min(len(self._taken) + 1, self._size)):
            candidate = (candidate + 1) % self._size
            number = self._first + candidate
            if number not in self._taken:
                address = ip_address(number) if self.network.version == 4 else IPv6Address(number)
                self._taken.add(number)
                self._owners[owner] = address
                self._last = number
                return address
        raise NoFreeAddress(f"no address is free in {self.network}: {len(self._owners)} are in use")

    def release(self, owner: str) -> None:
        """Give an owner's address back; it comes up again only after all the others. Unknown owners are ignored."""
        address = self._owners.pop(owner, None)
        if address is not None:
            self._taken.discard(int(address))
