"""The configuration by which an API server knows the webhooks: in it stands whom to trust, and only that is changed."""

import base64
import logging
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from eagleray.kube.client import Client
from eagleray.kube.resources import Key, Object, Ref, Resource
from eagleray.webhooks.reviews import WEBHOOKS
from kubewire import errors

log = logging.getLogger(__name__)

CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)

_PATHS: Final = frozenset(webhook.path for webhook in WEBHOOKS)


class Configuration(NamedTuple):
    """The ValidatingWebhookConfiguration of a name; in it, what leads to our Service, or to a URL of ours, is ours."""

    client: Client
    name: str
    service: Key

    async def trust(self, authority: bytes) -> str:
        """Have the API server trust an authority (PEM); returns why nobody will ask us, if that is so."""
        try:
            found = await self.client.get(CONFIGURATIONS, "", self.name)
        except errors.NotFound:
            return (
                f"there is no ValidatingWebhookConfiguration {self.name}: nobody asks before it is installed"
            )
        ours = [
            (position, config)
            for position, config in enumerate(map(_client_config, found.get("webhooks") or ()))
            if self._is_ours(config)
        ]
        if not ours:
            return (
                f"no webhook in ValidatingWebhookConfiguration {self.name} leads to Service {self.service};"
                " correct its clientConfig, or --webhook-service"
            )
        bundle = base64.b64encode(authority).decode("ascii")
        changes = [
            {"op": "add", "path": f"/webhooks/{position}/clientConfig/caBundle", "value": bundle}
            for position, config in ours
            if config.get("caBundle") != bundle
        ]
        if changes:
            await self.client.patch(CONFIGURATIONS, Ref.of(found), changes, "json")
            log.info(
                "ValidatingWebhookConfiguration %s trusts our certificate in %d webhooks",
                self.name,
                len(changes),
            )
        return ""

    def _is_ours(self, config: Object) -> bool:
        service = config.get("service")
        if not isinstance(service, dict):
            url = config.get("url")
            return isinstance(url, str) and urlsplit(url).path in _PATHS
        return (
            service.get("path") in _PATHS
            and Key(str(service.get("namespace")), str(service.get("name"))) == self.service
        )


def _client_config(webhook: Any) -> Object:
    config = webhook.get("clientConfig") if isinstance(webhook, dict) else None
    return config if isinstance(config, dict) else {}
