"""The pages about the process, over real sockets, and the checks behind them."""

import asyncio
import socket

import aiohttp
import pytest

from eagleray.runtime import health
from eagleray.runtime.addresses import Address, AddressError, parse_address
from eagleray.runtime.health import Checks, Pulse, metrics_server, probe_server
from eagleray.runtime.metrics import Registry
from eagleray.runtime.options import read_options

LOCAL = Address("127.0.0.1", 0)


async def answer(server, path, method="GET", address=LOCAL):
    port = await server.start(address)
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"http://127.0.0.1:{port}{path}") as response,
        ):
            return response.status, response.headers["Content-Type"], await response.text()
    finally:
        await server.stop()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.case("OP-4")
async def test_metrics_are_served_as_prometheus_text_where_the_flag_says():
    assert read_options([], {}).metrics_address == Address("", 8080)
    registry = Registry()
    registry.gauge("depth", "Keys").set(3)
    port = free_port()
    address = read_options([f"--metrics-addr=:{port}"], {}).metrics_address
    status, kind, text = await answer(metrics_server(registry), "/metrics", address=address)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert text == "# HELP depth Keys\n# TYPE depth gauge\ndepth 3\n"


@pytest.mark.case("OP-5")
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz/", "/readyz/ping"])
async def test_probes_answer_where_the_flag_says(path):
    assert read_options([], {}).probe_address == Address("", 8082)
    port = free_port()
    address = read_options([f"--health-probe-bind-address=:{port}"], {}).probe_address
    status, _, text = await answer(probe_server(Checks(), Checks()), path, address=address)
    assert (status, text) == (200, "[+]ping ok\nok\n")


async def test_a_failing_check_makes_a_probe_fail_with_its_cause():
    ready = Checks()
    ready.add("caches", lambda: "not filled yet: rayclusters")
    server = probe_server(Checks(), ready)
    assert await answer(server, "/readyz") == (
        500,
        "text/plain; charset=utf-8",
        "[+]ping ok\n[-]caches failed: not filled yet: rayclusters\ncheck failed\n",
    )


def test_one_check_can_be_asked_alone():
    checks = Checks()
    checks.add("caches", lambda: "empty")
    assert checks.page("ping").status == 200
    assert checks.page("caches").status == 500
    assert checks.page("nonsense").status == 404


def test_a_check_that_breaks_has_failed():
    checks = Checks()
    checks.add("broken", lambda: str(1 / 0))
    page = checks.page()
    assert page.status == 500
    assert "broken failed: the check is broken: division by zero" in page.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/debug", 404),
        ("GET", "/metrics/x", 404),
        ("POST", "/metrics", 405),
        ("HEAD", "/metrics", 200),
    ],
)
async def test_nothing_else_is_served(method, path, status):
    assert (await answer(metrics_server(Registry()), path, method))[0] == status


@pytest.mark.usefixtures("virtual_time")
async def test_the_pulse_tells_when_the_loop_has_been_silent():
    pulse = Pulse()
    pulse.start()
    await asyncio.sleep(100)
    assert pulse.check() is None
    await pulse.stop()
    await asyncio.sleep(health.SILENCE_SECONDS + 1)
    assert "silent for 3" in str(pulse.check())


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", Address("", 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("localhost:65535", Address("localhost", 65535)),
        ("[::1]:9000", Address("::1", 9000)),
        ("0", None),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8080", "host", ":", ":x", ":65536", ":-1", "::1:80", ":٣"])
def test_what_is_no_address(text):
    with pytest.raises(AddressError, match="is no address"):
        parse_address(text)
