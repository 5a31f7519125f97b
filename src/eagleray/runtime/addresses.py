"""Where a server listens."""

from typing import NamedTuple


class Address(NamedTuple):
    """Where to listen; an empty host is every interface."""

    host: str
    port: int


class AddressError(ValueError):
    """A text that names no place to listen at."""


def parse_address(text: str) -> Address | None:
    """Return the place that `:8080`, `127.0.0.1:8080` or `[::1]:8080` names; None for `0`, which means nowhere."""
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise AddressError(f"{text!r} is no address; write an IPv6 host in brackets, as in [::1]:8080")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise AddressError(f"{text!r} is no address; write host:port or :port, or 0 for none")
    return Address(host, int(port))
