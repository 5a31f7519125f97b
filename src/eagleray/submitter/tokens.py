"""The token that a submitter's container was given: in its environment, or in a file that Kubernetes renews."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eagleray.dashboard.address import Address
from eagleray.dashboard.errors import Unauthorised
from eagleray.dashboard.tokens import Token
from eagleray.manifests.environment import TOKEN_MOUNT

VARIABLE: Final = "RAY_AUTH_TOKEN"
FILE: Final = Path(TOKEN_MOUNT) / "token"
_LONGEST: Final = 8192


class GivenTokens:
    """The same token for every address, because a submitter speaks to one."""

    def __init__(self, variables: Mapping[str, str], file: Path = FILE) -> None:
        self._given = variables.get(VARIABLE, "").strip()
        self._file = file

    async def current(self, _address: Address) -> Token | None:
        text = self._given or self._kept()
        try:
            return Token(text) if text else None
        except ValueError:
            # Without the cause: its text could show a part of the token.
            raise Unauthorised(
                f"{VARIABLE} or {self._file} holds no usable token", certainly_not_done=True
            ) from None

    def refused(self, _address: Address, _token: Token | None) -> bool:
        return False  # the file was read a moment ago

    def _kept(self) -> str:
        try:
            with self._file.open("rb") as file:
                return file.read(_LONGEST).decode("ascii", "replace").strip()
        except FileNotFoundError:
            return ""
        except OSError as bad:
            raise Unauthorised(f"{self._file}: {bad.strerror or bad}", certainly_not_done=True) from bad
