"""The definitions that people bring along register and work: our own of Ray, and the Gateway API's."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubereef.custom.examples import DEFINITIONS, conditions

REPOSITORY = Path(__file__).parents[3]
RAY = sorted((REPOSITORY / "config" / "crd").glob("ray.io_*.yaml"))


@cache
def _load(path):
    return yaml.load(path.read_text(), yaml.CSafeLoader)


@pytest.fixture(scope="session")
def gateway_api():
    """The folder of the Gateway API's definitions, from Go's module cache or proxy."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed, which fetches the module sigs.k8s.io/gateway-api")
    script = REPOSITORY / "scripts" / "gateway-api"
    done = subprocess.run([script], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"the module sigs.k8s.io/gateway-api cannot be had: {done.stderr.strip()[-200:]}")
    return Path(done.stdout.strip())


@pytest.mark.parametrize("path", RAY, ids=[path.stem for path in RAY])
async def test_a_definition_of_ray_is_established(client, path):
    wanted = _load(path)
    await client.create(DEFINITIONS, wanted)
    stored = await client.get(f"{DEFINITIONS}/{wanted['metadata']['name']}")
    assert conditions(stored)["Established"][0] == "True"
    names, group = wanted["spec"]["names"], wanted["spec"]["group"]
    for version in wanted["spec"]["versions"]:
        url = f"/apis/{group}/{version['name']}/namespaces/default/{names['plural']}"
        assert (await client.get(url))["kind"] == names["listKind"]


async def test_our_examples_are_taken_without_a_warning(client):
    plurals = {}
    for path in RAY:
        await client.create(DEFINITIONS, _load(path))
        names = _load(path)["spec"]["names"]
        plurals[names["kind"]] = names["plural"]
    for path in sorted((REPOSITORY / "examples").glob("*.yaml")):
        for obj in yaml.load_all(path.read_text(), yaml.CSafeLoader):
            if obj["kind"] not in plurals:
                continue
            url = f"/apis/ray.io/v1/namespaces/default/{plurals[obj['kind']]}"
            response = await client.send("POST", f"{url}?fieldValidation=Strict", obj)
            assert response.status == 201, response.body
            assert "Warning" not in dict(response.headers)


async def test_the_gateway_api_registers_and_works(client, gateway_api):
    paths = sorted(gateway_api.glob("*.yaml"))
    assert paths
    for path in paths:
        wanted = _load(path)
        await client.create(DEFINITIONS, wanted)
        stored = conditions(await client.get(f"{DEFINITIONS}/{wanted['metadata']['name']}"))
        assert stored["Established"][0] == "True"
        assert stored["KubernetesAPIApprovalPolicyConformant"] == ("True", "ApprovedAnnotation")
    gateways = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways"
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    gateway: dict[str, Any] = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "g"},
        "spec": {"gatewayClassName": "c", "listeners": [listener]},
    }
    made = await client.create(gateways, gateway)
    assert made["spec"]["listeners"][0]["allowedRoutes"] == {"namespaces": {"from": "Same"}}
    twice = {
        **gateway,
        "metadata": {"name": "twice"},
        "spec": {**gateway["spec"], "listeners": [listener, listener]},
    }
    response = await client.send("POST", gateways, twice)
    assert response.status == 422
