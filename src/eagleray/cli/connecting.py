"""A command's way to a cluster: where it is, which namespace is meant, and a client for somebody who sits and waits."""

import os
from typing import TYPE_CHECKING, NamedTuple

from eagleray.kube.access import ConfigError
from eagleray.kube.client import Client
from eagleray.kube.http import HttpTransport
from eagleray.kube.kubeconfig import find_access
from eagleray.kube.retries import Patience
from kubewire.names import dns1123_label, dns1123_subdomain
from kubewire.sources import SystemClock, SystemEntropy

if TYPE_CHECKING:
    import argparse

    from eagleray.kube.access import Access

# A server that is not there is told soon.
_PATIENCE = Patience(total=15, tries=4)


class NotAsked(ValueError):
    """Arguments with which no cluster can be asked; the message says what to mend."""


class Place(NamedTuple):
    """Where to ask, and about which namespace."""

    access: "Access"
    namespace: str


class Connection:
    """A client with what else a command needs. As a context it is closed at the end."""

    def __init__(self, access: "Access") -> None:
        self.clock, self.entropy = SystemClock(), SystemEntropy()
        self.transport = HttpTransport(access)
        self.client = Client(self.transport, self.clock, self.entropy, patience=_PATIENCE)

    async def __aenter__(self) -> "Connection":  # noqa: PYI034 - nobody derives from it
        return self

    async def __aexit__(self, *_why: object) -> None:
        await self.client.close()


def place_of(arguments: "argparse.Namespace", name: str = "") -> Place:
    """Return where to ask by the arguments `kubeconfig`, `context` and `namespace`; a name is checked as well."""
    try:
        access = find_access(
            os.environ, SystemClock(), kubeconfig=arguments.kubeconfig, context=arguments.context
        )
    except ConfigError as bad:
        raise NotAsked(str(bad)) from bad
    namespace = arguments.namespace or access.namespace
    if problems := dns1123_label(namespace):
        raise NotAsked(f"{namespace!r} is no namespace: {problems[0]}")
    if name and (problems := dns1123_subdomain(name)):
        raise NotAsked(f"{name!r} is no name: {problems[0]}")
    return Place(access, namespace)
