"""The node from the side of the process that starts it."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from kubereef.__main__ import _node_options, _parser, main
from kubereef.node.machine.launch import ApiServer, Node, NodeFailed, NodeOptions
from kubereef.serving import Settings, serving
from kubewire import errors
from tests.kubereef.node.machine.realnode import require_node


@asynccontextmanager
async def cluster(directory, **options):
    """A served cluster and a node for it, which has not been started."""
    node_options = NodeOptions(directory=directory / "node", outbound="off", **options)
    settings = Settings(directory, in_memory=True, advertise_address=node_options.gateway)
    async with serving(settings) as served:
        certificates = served.credentials.certificates
        node = Node(
            node_options, ApiServer(settings.host, served.port, certificates, served.cluster.client())
        )
        yield served, node


async def test_a_loopback_port_of_the_host_leads_into_the_node(tmp_path):
    require_node(tmp_path)
    async with cluster(tmp_path) as (served, node):
        await node.start()
        try:
            port = await node.forward("10.244.0.1", 10250)
            trust = ssl.create_default_context(cafile=served.credentials.certificates.authority_path)
            async with (
                aiohttp.ClientSession() as anybody,
                anybody.get(f"https://127.0.0.1:{port}/healthz", ssl=trust) as answer,
            ):
                assert (answer.status, await answer.text()) == (401, "Unauthorized")
            connection = await node.dial("kubereef", 10250)
            assert connection.fileno() >= 0
            connection.close()
            with pytest.raises(OSError, match="not open to callers"):
                await node.dial("127.0.0.1", 10250)
        finally:
            await node.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_the_dns_has_an_address_that_no_service_takes(tmp_path):
    require_node(tmp_path)
    async with cluster(tmp_path) as (served, node):
        client = served.cluster.client()
        taken = {"metadata": {"name": "first"}, "spec": {"clusterIP": "10.96.0.10", "ports": [{"port": 1}]}}
        await client.create("/api/v1/namespaces/default/services", taken)
        await node.start()
        await node.stop()
        dns = await client.get("/api/v1/namespaces/kube-system/services/kube-dns")
        assert dns["spec"]["clusterIP"] != "10.96.0.10"


async def test_a_node_that_does_not_come_up_says_why_and_leaves_nothing(tmp_path):
    require_node(tmp_path)
    async with cluster(tmp_path) as (_, node):
        node._api = node._api._replace(port=1)  # where no API server listens
        with pytest.raises(NodeFailed, match="the API server cannot be reached"):
            await node.start()
        assert node.log_path.exists()
        with pytest.raises(NodeFailed, match="has not been started"):
            _ = node.pid


def test_a_node_covers_itself_its_pods_and_its_services(tmp_path):
    node = Node(NodeOptions(directory=tmp_path, name="n"), api=None)  # type: ignore[arg-type]  # it is not started
    assert [node.covers(host) for host in ("n", "10.244.3.4", "10.96.0.1")] == [True] * 3
    assert [node.covers(host) for host in ("m", "10.245.0.1", "127.0.0.1")] == [False] * 3


def test_who_is_not_root_is_told_the_command_that_works(monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main(["--in-memory", "--node", "--cpu-factor", "2"]) == 1
    said = capsys.readouterr().err
    assert "a node needs root; run it as: sudo " in said
    assert "-m kubereef --in-memory --node --cpu-factor 2" in said


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--node", "--no-controllers"], "a node needs the controllers"),
        (["--node", "--no-node"], "a node needs the controllers"),
        (["--cpu-factor", "many"], "is not a number"),
        (["--cpu-factor", "0"], "is not a number"),
        (["--pod-cidr", "10.0.0.0/30"], "too few Pods"),
        (["--pod-cidr", "fd00::/64"], "argument --pod-cidr"),
        (["--resource", "thing"], "is not NAME=AMOUNT"),
        (["--resource", "=3"], "is not NAME=AMOUNT"),
        (["--resource", "thing=much"], "is not NAME=AMOUNT"),
        (["--outbound", "pigeon"], "invalid choice"),
        (["--image-max-age", "long"], "is not a duration such as 720h"),
        (["--image-max-age=-1h"], "is not a duration such as 720h"),
        (["--image-max-size", "much"], "is not a size such as 20Gi"),
        (["--image-max-size=-1Gi"], "is not a size such as 20Gi"),
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense_are_refused(options, complaint, capsys):
    with pytest.raises(SystemExit):
        main(["--in-memory", *options])
    assert complaint in capsys.readouterr().err


IMAGE_DEFAULTS = {"recipes": None, "images": None, "strict_images": False}


@pytest.mark.parametrize(
    ("options", "want"),
    [
        pytest.param(
            [],
            {**IMAGE_DEFAULTS, "image_max_age": 30 * 86400.0, "image_max_bytes": 20 * 2**30},
            id="a month and twenty gigabytes unless told otherwise",
        ),
        pytest.param(
            ["--recipes", "/r", "--image-cache", "/c", "--strict-images"],
            {"recipes": Path("/r"), "images": Path("/c"), "strict_images": True},
            id="recipes, cache and strictness",
        ),
        pytest.param(
            ["--image-max-age", "90m", "--image-max-size", "5Gi"],
            {"image_max_age": 5400.0, "image_max_bytes": 5 * 2**30},
            id="how long and how much is kept",
        ),
        pytest.param(
            ["--image-max-age", "0", "--image-max-size", "0"],
            {"image_max_age": 0.0, "image_max_bytes": 0},
            id="everything is kept",
        ),
    ],
)
def test_options_of_images_reach_the_node(options, want, tmp_path):
    parsed = _parser().parse_args(["--in-memory", "--node", *options])
    made = _node_options(parsed, tmp_path)
    assert {name: getattr(made, name) for name in want} == want


class Refusing:
    async def create(self, url, body):
        raise errors.forbidden("services", "kube-dns", "not today")


async def test_what_the_api_server_refuses_is_why_the_node_does_not_start(tmp_path):
    require_node(tmp_path)
    async with cluster(tmp_path) as (_, node):
        node._api = node._api._replace(client=Refusing())
        with pytest.raises(NodeFailed, match="not today"):
            await node.start()
