"""The routing table: which rule a request falls under, by the precedence that Gateway API lays down.

A table is made anew whenever Gateways, routes or namespaces change, and knows nothing of endpoints. What rules
remember between requests, whose turn it is, goes over from the old table where backends and weights are the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl

from kubereef.gateway.attachment import Labels, attach, covers, judge_listeners
from kubereef.gateway.balance import Shares
from kubereef.gateway.reading import Backend, Gateway, Match, Route, Rule

_MOST_HOSTS = 1024
_MOST_PARAMETERS = 1000

RuleKey = tuple[str, str, int]
"""Namespace and name of a route, and the number of a rule in it."""


class Asked(NamedTuple):
    """What of a request decides where it goes. Names of headers are in lower case, repeated ones joined by commas."""

    method: str
    host: str
    path: str
    query: str
    headers: Mapping[str, str]


class LiveRule(NamedTuple):
    """A rule with its memory of whose turn it is."""

    key: RuleKey
    rule: Rule
    shares: Shares[Backend]


class _Candidate(NamedTuple):
    hostname: str
    match: Match
    rule: LiveRule


class Found(NamedTuple):
    """The rule that a request falls under, and the prefix of the path by which it does."""

    rule: LiveRule
    prefix: str


class _Listening:
    """One listener with the candidates of its routes, the first that matches being the right one."""

    __slots__ = ("_by_host", "candidates", "hostname")

    def __init__(self, hostname: str, candidates: Sequence[_Candidate]) -> None:
        self.hostname = hostname
        self.candidates = tuple(candidates)
        self._by_host: dict[str, tuple[_Candidate, ...]] = {}

    def for_host(self, host: str) -> tuple[_Candidate, ...]:
        found = self._by_host.get(host)
        if found is None:
            found = tuple(one for one in self.candidates if covers(one.hostname, host))
            if len(self._by_host) >= _MOST_HOSTS:
                self._by_host.clear()  # whoever asks for ever new hosts gains nothing
            self._by_host[host] = found
        return found


class Site:
    """All that is reached at one port of a Gateway."""

    __slots__ = ("_listening", "port")

    def __init__(self, port: int, listening: Iterable[_Listening]) -> None:
        self.port = port
        self._listening = sorted(listening, key=lambda one: _host_rank(one.hostname))

    def find(self, asked: Asked) -> Found | None:
        """Return the rule that a request falls under. Only the listener that is most exactly for its host counts."""
        for listening in self._listening:
            if covers(listening.hostname, asked.host):
                for candidate in listening.for_host(asked.host):
                    if _matches(candidate.match, asked):
                        return Found(candidate.rule, candidate.match.path)
                return None
        return None


Table = dict[tuple[str, str], dict[int, Site]]
"""Sites by Gateway and port."""


def build_table(
    gateways: Iterable[Gateway],
    routes: Iterable[Route],
    namespaces: Mapping[str, Labels],
    before: Mapping[RuleKey, LiveRule],
) -> tuple[Table, dict[RuleKey, LiveRule]]:
    """Return the sites of all Gateways, and their rules; `before` are the rules of the table that this one replaces."""
    by_gateway: dict[tuple[str, str], list[Route]] = {}
    rules: dict[RuleKey, LiveRule] = {}
    for route in sorted(routes, key=lambda one: (one.created, one.namespace, one.name)):
        for key in dict.fromkeys(parent.key for parent in route.parents):
            by_gateway.setdefault(key, []).append(route)
        for number, rule in enumerate(route.rules):
            live = _live((route.namespace, route.name, number), rule, before)
            rules[live.key] = live
    table = {
        gateway.key: _sites(gateway, by_gateway.get(gateway.key, ()), namespaces, rules)
        for gateway in gateways
    }
    return table, rules


def _live(key: RuleKey, rule: Rule, before: Mapping[RuleKey, LiveRule]) -> LiveRule:
    old = before.get(key)
    if old is not None and old.rule.backends == rule.backends:
        return LiveRule(key, rule, old.shares)
    return LiveRule(key, rule, Shares((backend, backend.weight) for backend in rule.backends))


def _sites(
    gateway: Gateway,
    routes: Sequence[Route],
    namespaces: Mapping[str, Labels],
    rules: Mapping[RuleKey, LiveRule],
) -> dict[int, Site]:
    verdicts = judge_listeners(gateway)
    served = [one for one in gateway.listeners if verdicts[one.name].is_served]
    found: dict[str, dict[_Candidate, None]] = {one.name: {} for one in served}
    for route in routes:
        for parent in route.parents:
            if parent.key != gateway.key:
                continue
            for listener, hostnames in attach(route, parent, gateway, namespaces).places:
                found[listener.name].update(dict.fromkeys(_candidates(route, hostnames, rules)))
    by_port: dict[int, list[_Listening]] = {}
    for listener in served:
        # Sorting keeps the order of equals: the oldest route first, and its rules as they stand.
        candidates = sorted(found[listener.name], key=_rank)
        by_port.setdefault(listener.port, []).append(_Listening(listener.hostname, candidates))
    return {port: Site(port, listening) for port, listening in by_port.items()}


def _candidates(
    route: Route, hostnames: Sequence[str], rules: Mapping[RuleKey, LiveRule]
) -> Iterable[_Candidate]:
    for number, rule in enumerate(route.rules):
        live = rules[route.namespace, route.name, number]
        for hostname in hostnames:
            for match in rule.matches:
                yield _Candidate(hostname, match, live)


def _host_rank(hostname: str) -> tuple[bool, int]:
    """Order hostnames by how exactly they name a host: whole ones, then longer wildcards, then none."""
    is_whole = bool(hostname) and not hostname.startswith("*.")
    return not is_whole, -len(hostname)


def _rank(candidate: _Candidate) -> tuple[object, ...]:
    match = candidate.match
    return (
        *_host_rank(candidate.hostname),
        not match.is_exact,
        -len(match.path.rstrip("/")),
        not match.method,
        -len(match.headers),
        -len(match.query),
    )


def _matches(match: Match, asked: Asked) -> bool:
    if match.is_exact:
        if asked.path != match.path:
            return False
    elif not _is_below(match.path.rstrip("/"), asked.path):
        return False
    if match.method and match.method != asked.method:
        return False
    if any(asked.headers.get(name) != value for name, value in match.headers):
        return False
    return not match.query or _has_parameters(match.query, asked.query)


def _is_below(prefix: str, path: str) -> bool:
    """Tell whether a path is a prefix, or has more elements after it: `/a` is not a prefix of `/ab`."""
    return path.startswith(prefix) and (len(path) == len(prefix) or path[len(prefix)] == "/" or not prefix)


def _has_parameters(wanted: Sequence[tuple[str, str]], query: str) -> bool:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        return False
    first = dict(reversed(pairs))  # of several of a name the first counts
    return all(first.get(name) == value for name, value in wanted)
