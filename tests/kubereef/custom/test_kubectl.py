"""kubectl works with custom kinds as with any other."""

import asyncio
import os
import shutil

import pytest
import yaml

from kubereef.serving import Settings, serving
from tests.kubereef.custom.examples import definition, version

SPEC = {
    "type": "object",
    "description": "What the box should be.",
    "properties": {
        "replicas": {"type": "integer", "description": "How many there should be."},
        "size": {"type": "integer", "default": 5},
    },
}
COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
PARTS = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
}
BOX = {
    "apiVersion": "example.com/v1",
    "kind": "Box",
    "metadata": {"name": "b", "namespace": "default"},
    "spec": {"replicas": 1},
}


@pytest.fixture
async def kubectl(tmp_path):
    """Run kubectl against a served cluster: arguments, and what it reads as a file; returns what it prints."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    async with serving(Settings(tmp_path / "data", in_memory=True)) as served:
        home = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(served.kubeconfig)}

        async def run(*arguments, document=None):
            process = await asyncio.create_subprocess_exec(
                "kubectl",
                *arguments,
                env=home,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await process.communicate(yaml.safe_dump(document).encode())
            return output.decode()

        yield run


async def test_a_custom_kind_from_its_definition_to_its_end(kubectl):
    wanted = definition(
        version(spec=SPEC, subresources=PARTS, additionalPrinterColumns=COLUMNS), shortNames=["bx"]
    )
    assert "created" in await kubectl("apply", "-f", "-", document=wanted)
    assert "condition met" in await kubectl("wait", "--for=condition=Established", "crd/boxes.example.com")
    explained = await kubectl("explain", "box.spec")
    assert "What the box should be." in explained
    assert "replicas\t<integer>\n    How many there should be." in explained
    assert await kubectl("apply", "-f", "-", document=BOX) == "box.example.com/b created\n"
    assert await kubectl("apply", "-f", "-", document=BOX) == "box.example.com/b unchanged\n"
    wrong = {**BOX, "spec": {"replica": 1}}
    assert 'unknown field "spec.replica"' in await kubectl("apply", "-f", "-", document=wrong)
    assert (await kubectl("get", "bx")).split() == ["NAME", "SIZE", "b", "5"]
    assert "scaled" in await kubectl("scale", "box/b", "--replicas=3")
    assert await kubectl("get", "box", "b", "-o", "jsonpath={.spec.replicas}") == "3"
    assert "deleted" in await kubectl("delete", "crd", "boxes.example.com")
    assert "NotFound" in await kubectl("get", "boxes")
