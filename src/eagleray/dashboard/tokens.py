"""Tokens that dashboards ask for, from the Secrets of their clusters. They are shown nowhere."""

import base64
import binascii
import re
from collections import OrderedDict
from typing import Final, Protocol

from eagleray.dashboard.address import Address
from eagleray.dashboard.errors import Unauthorised, Unreachable
from eagleray.kube.resources import SECRETS, Object, Resource
from eagleray.kube.transport import TransportError
from kubewire.errors import ApiError, NotFound

TOKEN_KEY: Final = "auth_token"  # noqa: S105 - the name of a key
HEADER: Final = "x-ray-authorization"

_VISIBLE = re.compile(r"[!-~]{1,8192}")
_MOST_TOKENS: Final = 10_000


class Token:
    """A token that keeps itself out of messages."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not _VISIBLE.fullmatch(text):
            raise ValueError("a token consists of 1 to 8192 visible ASCII characters")
        self._text = text

    @property
    def header(self) -> tuple[str, str]:
        """The header that shows the token to Ray. The API server's proxy passes it on, unlike `authorization`."""
        return HEADER, f"Bearer {self._text}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Token([redacted])"


class Tokens(Protocol):
    """Whoever knows the tokens of dashboards."""

    async def current(self, address: Address) -> Token | None:
        """Return what to show at an address; None where nothing is asked for."""
        ...

    def refused(self, address: Address, token: Token | None) -> bool:
        """Take note that a token was refused; return whether asking for the current one may give another."""
        ...


class NoTokens:
    """For dashboards that ask nobody for anything."""

    async def current(self, address: Address) -> Token | None:
        if address.secret:
            raise Unauthorised(
                f"{address}: there is no way to read Secret {_name(address)}", certainly_not_done=True
            )
        return None

    def refused(self, _address: Address, _token: Token | None) -> bool:
        return False


class SecretReader(Protocol):
    """Whoever can read a Secret, such as the client of the Kubernetes API."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return an object as it is now."""
        ...


class SecretTokens:
    """Reads tokens from Secrets and remembers them until they are refused."""

    def __init__(self, client: SecretReader, most: int = _MOST_TOKENS) -> None:
        self._client = client
        self._most = most
        self._known: OrderedDict[tuple[str, str], Token] = OrderedDict()

    async def current(self, address: Address) -> Token | None:
        if not address.secret:
            return None
        key = (address.namespace, address.secret)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        token = await self._read(address)
        self._known[key] = token
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return token

    def refused(self, address: Address, token: Token | None) -> bool:
        key = (address.namespace, address.secret)
        if self._known.get(key) == token:
            self._known.pop(key, None)
        return bool(address.secret)

    async def _read(self, address: Address) -> Token:
        try:
            secret = await self._client.get(SECRETS, address.namespace, address.secret)
        except NotFound as missing:
            raise Unauthorised(
                f"Secret {_name(address)} with the token is missing", certainly_not_done=True
            ) from missing
        except (ApiError, TransportError) as failure:
            raise Unreachable(
                f"Secret {_name(address)} cannot be read: {failure}", certainly_not_done=True
            ) from failure
        try:
            text = base64.b64decode((secret.get("data") or {})[TOKEN_KEY], validate=True).decode("ascii")
            return Token(text.strip())
        except (KeyError, TypeError, ValueError, binascii.Error):
            # Without the cause: its text could show a part of the token.
            raise Unauthorised(
                f"Secret {_name(address)} has no usable token under {TOKEN_KEY}", certainly_not_done=True
            ) from None


def _name(address: Address) -> str:
    return f"{address.namespace}/{address.secret}"
