"""The real thing: Ray from the package index, kept in the cache for other tests and runs."""

import asyncio
import os

import pytest

from kubereef.node.images import Images, cache_directory
from kubewire.sources import SystemClock
from tests.kubereef.node.images.rooted import require_roots, run_in

pytestmark = pytest.mark.heavy


@pytest.fixture
async def ray():
    images = Images(cache_directory(), SystemClock())
    yield await images.pull("rayproject/ray:2.52.0")
    await images.close()


async def test_ray_runs_directly(ray):
    place = ray.layers[0] / "home/ray/anaconda3/bin"
    process = await asyncio.create_subprocess_exec(
        place / "python",
        "-I",
        "-B",
        place / "ray",
        "--version",
        stdout=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    output, _ = await process.communicate()
    assert output.decode().strip() == "ray, version 2.52.0"


@pytest.mark.parametrize(
    ("command", "want"),
    [
        ("ray --version", "ray, version 2.52.0"),
        ("id -un; pwd; touch here && echo writable", "ray\n/home/ray\nwritable"),
        (
            "which python pip ray",
            "\n".join(f"/home/ray/anaconda3/bin/{name}" for name in ("python", "pip", "ray")),
        ),
        ("command -v wget curl bash >/dev/null && echo all", "all"),
        (
            "python -c 'import ray.serve, ray.job_submission, ray.autoscaler._private.kuberay.run_autoscaler'",
            "",
        ),
    ],
)
async def test_ray_runs_as_the_user_of_its_image(ray, command, want):
    require_roots()
    output = await asyncio.to_thread(run_in, ray, ["bash", "-lc", command])
    assert output.strip() == want
