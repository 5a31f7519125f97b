"""The webhooks that there are, as the configurations in the store say."""

from base64 import b64decode
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from kubereef.kinds.resource import Object
from kubereef.store.records import Key, Record
from kubereef.store.store import Store
from kubewire.selectors import LabelSelector

GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"

_HTTPS = 443


class Address(NamedTuple):
    """Where a webhook is asked, and the certificates that vouch for it, in PEM form."""

    url: str
    authorities: bytes


class Rule(NamedTuple):
    """Which operations on which resources a webhook wants to hear of; `*` is any."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]  # with the part, which is empty for the whole
    scope: str


class Hook(NamedTuple):
    """One webhook."""

    id: str
    name: str
    address: Address
    rules: tuple[Rule, ...]
    namespaces: LabelSelector
    objects: LabelSelector
    conditions: tuple[str, ...]
    takes_equivalents: bool
    ignores_failures: bool
    # Whether it may be asked about what is only tried.
    allows_dry_run: bool
    reinvoked: bool
    timeout: float
    review_version: str


class Hooks:
    """The webhooks of one kind of configuration."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        # What was made of a record, so that it is made once.
        self._known: dict[Key, tuple[Record, tuple[Hook, ...]]] = {}

    def of(self, store: Store) -> Sequence[Hook]:
        """Return the webhooks in the order in which they are asked: by configuration, then as listed there."""
        if not store.count(self._resource):
            return ()
        known = self._known
        self._known = {}
        for record in store.records(self._resource):
            last = known.get(record.key)
            is_same = last is not None and last[0] is record
            self._known[record.key] = last if last is not None and is_same else (record, _hooks_of(record))
        return [hook for _, hooks in self._known.values() for hook in hooks]


def _hooks_of(record: Record) -> tuple[Hook, ...]:
    webhooks = record.object().get("webhooks") or ()
    return tuple(_hook(f"{record.key.name}/{index}", webhook) for index, webhook in enumerate(webhooks))


def _hook(identity: str, webhook: Object) -> Hook:
    versions = webhook.get("admissionReviewVersions") or ()
    return Hook(
        id=identity,
        name=webhook["name"],
        address=_address(webhook.get("clientConfig") or {}),
        rules=tuple(map(_rule, webhook.get("rules") or ())),
        namespaces=LabelSelector.of(webhook.get("namespaceSelector") or {}),
        objects=LabelSelector.of(webhook.get("objectSelector") or {}),
        conditions=tuple(one["expression"].strip() for one in webhook.get("matchConditions") or ()),
        takes_equivalents=webhook.get("matchPolicy") == "Equivalent",
        ignores_failures=webhook.get("failurePolicy") == "Ignore",
        allows_dry_run=webhook.get("sideEffects") in ("None", "NoneOnDryRun"),
        reinvoked=webhook.get("reinvocationPolicy") == "IfNeeded",
        timeout=float(webhook.get("timeoutSeconds") or 10),
        # The first that both sides know.
        review_version=next(version for version in versions if version in ("v1", "v1beta1")),
    )


def _address(client: Object) -> Address:
    authorities = b64decode(client.get("caBundle") or "")
    service = client.get("service")
    if service is None:
        url = urlsplit(client["url"])
        return Address(url._replace(path=url.path or "/").geturl(), authorities)
    # The name that the certificate of the webhook has to be for.
    host = f"{service['name']}.{service['namespace']}.svc"
    path = service.get("path") or "/"
    return Address(f"https://{host}:{service.get('port') or _HTTPS}{path}", authorities)


def _rule(rule: Object) -> Rule:
    resources = (text.partition("/") for text in rule.get("resources") or ())
    return Rule(
        operations=frozenset(rule.get("operations") or ()),
        groups=frozenset(rule.get("apiGroups") or ()),
        versions=frozenset(rule.get("apiVersions") or ()),
        resources=tuple((resource, part) for resource, _, part in resources),
        scope=rule.get("scope") or "*",
    )
