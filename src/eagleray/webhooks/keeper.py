"""Keeps the certificate that the webhooks are served with: takes it up, has it trusted, and looks again for ever."""

import logging
import ssl
from typing import Final

from eagleray.kube.access import Pair
from eagleray.kube.http import load_pair
from eagleray.webhooks.certificates import Serving, Source, Unusable
from eagleray.webhooks.trust import Configuration
from kubewire import errors
from kubewire.sources import Clock

log = logging.getLogger(__name__)

# A renewed file, or a configuration that somebody has replaced, is noticed within this time.
_LOOK_EVERY: Final = 30.0
_TRY_AGAIN_AFTER: Final = 2.0


class Keeper:
    """Looks after one certificate.

    `context` is for a server: a new connection gets the certificate of that moment, and is refused as long as there
    is none.
    """

    def __init__(self, source: Source, configuration: Configuration | None, clock: Clock) -> None:
        self._source = source
        self._configuration = configuration
        self._clock = clock
        self._shown: Serving | None = None
        self._loaded: ssl.SSLContext | None = None
        self._problem = "not looked for yet"
        self._told = ""
        self.context = _server_context()
        self.context.sni_callback = self._choose

    def check(self) -> str | None:
        """Return what is wrong if there is no certificate to serve with."""
        return None if self._loaded is not None else f"no certificate: {self._problem}"

    async def run(self) -> None:
        """Look after the certificate until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_EVERY if await self.refresh() else _TRY_AGAIN_AFTER)

    async def refresh(self) -> bool:
        """Take up the certificate as it is now and have it trusted; returns whether all is well."""
        try:
            serving = await self._source.current()
            if serving != self._shown:
                self._take(serving)
            hint = ""
            if self._configuration is not None and serving.authority:
                hint = await self._configuration.trust(serving.authority)
        except errors.Conflict:
            return False  # another replica has just done the same
        except (Unusable, errors.ApiError, OSError) as bad:
            # What was taken before goes on being served.
            self._problem = str(bad)
            self._tell(f"The certificate of the webhooks: {bad}")
            return False
        self._tell(hint)
        return True

    def _take(self, serving: Serving) -> None:
        loaded = _server_context()
        _load(loaded, serving)
        if self._shown is not None:
            log.info("The webhooks are served with a new certificate")
        self._shown, self._loaded = serving, loaded

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        """Give a new connection the present certificate; called whether or not the other side says whom it wants."""
        if self._loaded is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._loaded
        return None

    def _tell(self, text: str) -> None:
        """Log what is wrong, once as long as it stays the same."""
        if text and text != self._told:
            log.warning("%s", text)
        self._told = text


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load(context: ssl.SSLContext, serving: Serving) -> None:
    try:
        load_pair(context, Pair(serving.certificate, serving.key))
    except ssl.SSLError as bad:
        raise Unusable(f"certificate and key cannot be used together ({bad})") from bad
