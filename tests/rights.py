"""Watches over what operators of tests ask for: a request that their packaging does not allow is noted.

Every operator that a test of this process starts speaks through a `Judged` transport, whoever made its own. The
fixture of tests/conftest.py fails a test in which something was noted.
"""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from eagleray.kube.http import HttpTransport
from eagleray.operator.assembly import Operator
from eagleray.operator.permissions import Permission, conditions_of, needed
from kubereef.server.requests import Request as ServerRequest
from kubereef.server.routing import target_of

# What no permission of the operator allowed, since the last test.
uncovered: list[str] = []


class Right(NamedTuple):
    """One verb on one resource, as rules name them."""

    verb: str
    group: str
    what: str

    def __str__(self):
        return f"{self.verb} {self.what}.{self.group}" if self.group else f"{self.verb} {self.what}"


def right_of(request):
    """Return the right that a request takes; None if it asks for what everybody may see, such as the version."""
    query = parse_qs(urlencode(request.query), keep_blank_values=True)
    target = target_of(ServerRequest(request.method, request.path, query))
    if not target.is_resource:
        return None
    what = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
    return Right(target.verb, target.group, what)


def rights_in(permissions: Iterable[Permission]):
    return {
        Right(verb, permission.resource.group, permission.what)
        for permission in permissions
        for verb in permission.verbs
    }


class Judged:
    """A transport that notes what is asked for without a permission, and passes everything on."""

    def __init__(self, inner, allowed):
        self._inner = inner
        self._allowed = allowed

    @property
    def host(self):
        return self._inner.host

    def _judge(self, request):
        right = right_of(request)
        if right is not None and right not in self._allowed:
            uncovered.append(f"{right} ({request.method} {request.path})")

    async def send(self, request):
        self._judge(request)
        return await self._inner.send(request)

    def stream(self, request):
        self._judge(request)
        return self._inner.stream(request)

    async def close(self):
        await self._inner.close()


def watch_over_operators():
    """Have all operators of this process judged from now on.

    Not those that speak over a network: there an API server judges, and operators look at the kind of their transport.
    """
    made = Operator.__init__

    def judged(self, options, transport, **others):
        if not isinstance(transport, HttpTransport):
            transport = Judged(transport, rights_in(needed(conditions_of(options))))
        made(self, options, transport, **others)

    Operator.__init__ = judged  # type: ignore[method-assign] # for the rest of the process, on purpose


watch_over_operators()
