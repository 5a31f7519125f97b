"""Which rule a request falls under, and which backend gets it."""

import pytest

from kubereef.gateway.reading import read_gateway, read_route
from kubereef.gateway.table import Asked, build_table
from tests.kubereef.gateway.making import backend, gateway, listener, path, route, rule


def table_of(gateways, routes, namespaces=None, before=None):
    return build_table(map(read_gateway, gateways), map(read_route, routes), namespaces or {}, before or {})


def asked(target="/", host="any.example", method="GET", **headers):
    plain, _, query = target.partition("?")
    return Asked(
        method, host, plain, query, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def winner(routes, request, gateways=None, port=80, namespaces=None):
    """Return the name of the first backend of the rule that a request falls under."""
    table, _ = table_of(gateways or [gateway()], routes, namespaces)
    found = table["default", "gate"][port].find(request)
    return found and found.rule.rule.backends[0].service.name


def to(name, *matches):
    return rule(backend(name), matches=list(matches))


@pytest.mark.parametrize(
    ("target", "want"),
    [
        pytest.param("/a", "a", id="the prefix itself"),
        pytest.param("/a/", "a", id="the prefix with a slash"),
        pytest.param("/a/b", "a", id="elements after the prefix"),
        pytest.param("/ab", "all", id="more letters are another element"),
        pytest.param("/a/long", "long", id="the longer prefix wins"),
        pytest.param("/a/long/more", "long", id="the longer prefix wins below it"),
        pytest.param("/exact", "exact", id="an exact path wins over prefixes"),
        pytest.param("/exact/", "all", id="an exact path is exact"),
        pytest.param("/exact?x=1", "exact", id="the query is no part of the path"),
    ],
)
def test_paths(target, want):
    rules = [
        to("all", path("/")),
        to("a", path("/a")),
        to("long", path("/a/long/")),
        to("exact", path("/exact", "Exact")),
    ]
    assert winner([route(*rules)], asked(target)) == want


@pytest.mark.parametrize(
    ("request_", "want"),
    [
        pytest.param(asked("/p"), "plain", id="nothing special"),
        pytest.param(asked("/p", method="POST"), "method", id="a method counts more than nothing"),
        pytest.param(asked("/p", x_a="1"), "header", id="a header"),
        pytest.param(asked("/p", x_a="1", x_b="2"), "two headers", id="more headers win over fewer"),
        pytest.param(asked("/p", x_a="2"), "plain", id="another value of the header"),
        pytest.param(asked("/p", method="POST", x_a="1"), "method", id="a method wins over headers"),
        pytest.param(asked("/p?q=1"), "query", id="a parameter"),
        pytest.param(asked("/p?q=2&q=1"), "plain", id="of a repeated parameter the first counts"),
        pytest.param(asked("/p?q=1", x_a="1"), "header", id="a header wins over parameters"),
    ],
)
def test_methods_headers_and_parameters(request_, want):
    def match(**more):
        return {**path("/p"), **more}

    def exact(name, value):
        return {"name": name, "value": value}

    rules = [
        to("plain", match()),
        to("query", match(queryParams=[exact("q", "1")])),
        to("header", match(headers=[exact("X-A", "1")])),
        to("two headers", match(headers=[exact("X-A", "1"), exact("x-b", "2")])),
        to("method", match(method="POST")),
    ]
    assert winner([route(*rules)], request_) == want


def test_a_query_with_thousands_of_parameters_matches_nothing():
    rules = [to("plain"), to("query", {**path("/"), "queryParams": [{"name": "q", "value": "1"}]})]
    assert winner([route(*rules)], asked("/?q=1" + "&x=1" * 5000)) == "plain"


def test_of_equal_matches_the_oldest_route_wins_then_the_name_then_the_order():
    old = route(to("old"), name="z", created="2030-01-01T00:00:00Z")
    new = route(to("new"), name="a", created="2030-01-02T00:00:00Z")
    assert winner([new, old], asked()) == "old"
    twin = route(to("twin"), name="b", created="2030-01-02T00:00:00Z")
    assert winner([twin, new], asked()) == "new"
    assert winner([route(to("first"), to("second"))], asked()) == "first"


@pytest.mark.parametrize(
    ("host", "want"),
    [
        pytest.param("a.example.com", "whole", id="a whole name wins"),
        pytest.param("b.example.com", "wildcard", id="a wildcard is for all names below"),
        pytest.param("c.b.example.com", "longer", id="the longer wildcard wins"),
        pytest.param("example.com", "any", id="a wildcard is not for the name itself"),
        pytest.param("elsewhere.net", "any", id="any other host"),
    ],
)
def test_hostnames_of_routes(host, want):
    routes = [
        route(to("any"), name="any"),
        route(to("wildcard"), name="wildcard", hostnames=["*.example.com"]),
        route(to("longer"), name="longer", hostnames=["*.b.example.com"]),
        route(to("whole"), name="whole", hostnames=["A.example.com"]),
    ]
    assert winner(routes, asked(host=host)) == want


def test_only_the_listener_that_is_most_exactly_for_a_host_counts():
    listeners = [listener("all"), listener("one", hostname="one.example.com")]
    routes = [
        route(to("all"), name="all", parents=[{"name": "gate", "sectionName": "all"}]),
        route(to("one", path("/x")), name="one", parents=[{"name": "gate", "sectionName": "one"}]),
    ]
    gateways = [gateway(*listeners)]
    assert winner(routes, asked("/x", "one.example.com"), gateways) == "one"
    assert winner(routes, asked("/y", "one.example.com"), gateways) is None
    assert winner(routes, asked("/y", "two.example.com"), gateways) == "all"


def test_a_route_may_name_a_port():
    gateways = [gateway(listener("one", 80), listener("two", 81))]
    routes = [route(to("two"), parents=[{"name": "gate", "port": 81}])]
    assert winner(routes, asked(), gateways, port=81) == "two"
    assert winner(routes, asked(), gateways, port=80) is None


def test_routes_of_other_namespaces_come_through_where_their_labels_are_selected():
    allowed = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "red"}}}}
    gateways = [gateway(listener(allowedRoutes=allowed))]
    foreign = route(to("web"), namespace="far", parents=[{"name": "gate", "namespace": "default"}])
    assert winner([foreign], asked(), gateways, namespaces={"far": {"team": "red"}}) == "web"
    assert winner([foreign], asked(), gateways, namespaces={"far": {"team": "blue"}}) is None


def deal(live, count):
    got = [live.shares.next() for _ in range(count)]
    return {name: sum(1 for one in got if one.service.name == name) for name in ("a", "b")}


def test_a_hundred_requests_are_shared_out_exactly_by_weight():
    _, rules = table_of([gateway()], [route(rule(backend("a", 70), backend("b", 30)))])
    (live,) = rules.values()
    assert deal(live, 100) == {"a": 70, "b": 30}
    assert deal(live, 10) == {"a": 7, "b": 3}


def test_a_backend_without_weight_gets_nothing_and_without_any_weight_nobody_does():
    _, rules = table_of([gateway()], [route(rule(backend("a", 0), backend("b", 1)))])
    assert deal(next(iter(rules.values())), 10) == {"a": 0, "b": 10}
    _, rules = table_of([gateway()], [route(rule(backend("a", 0)))])
    assert next(iter(rules.values())).shares.next() is None


def test_whose_turn_it_is_outlives_a_new_table_with_the_same_weights_and_not_other_weights():
    routes = [route(rule(backend("a", 1), backend("b", 1)))]
    _, before = table_of([gateway()], routes)
    next(iter(before.values())).shares.next()
    _, after = table_of([gateway()], [*routes, route(name="other")], before=before)
    assert after["default", "route", 0].shares is before["default", "route", 0].shares
    _, changed = table_of([gateway()], [route(rule(backend("a", 1), backend("b", 2)))], before=after)
    assert changed["default", "route", 0].shares is not after["default", "route", 0].shares
