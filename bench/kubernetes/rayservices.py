"""RayServices with one application: how they become ready, and what they cost when nothing happens."""

# What builds the manifests of the tests has no types.
# mypy: disable-error-code="no-untyped-call"

from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure
from bench.kubernetes.load import (
    Kind,
    Object,
    Polling,
    delete,
    end_figures,
    idle,
    polling_figure,
    start,
    start_figures,
)
from bench.kubernetes.place import named_services
from bench.kubernetes.ray import Heads, answering
from bench.kubernetes.site import operated
from tests.eagleray.world import rayservice

# The reference asks the dashboard and the head's Serve proxy every 2 s; a question takes it 1.6 ms of CPU time or more.
FIXED = Polling(60, 0.0016)


def _service(name: str) -> Object:
    made: Object = rayservice(name)
    return made


def _is_ready(obj: Object) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


KIND = Kind("rayservices", _service, _is_ready)


async def run(binaries: Path, size: int, settle: Sequence[float], seconds: float) -> list[Figure]:
    """Return what so many RayServices cost."""
    title = f"{size} RayServices on Kubernetes"
    names = [f"bench-{number:04}" for number in range(size)]
    heads = Heads()
    async with named_services(), answering(heads), operated(binaries) as site:
        started = await start(site, KIND, names, names)
        figures = start_figures(title, started, most_share=1.2, most_requests=21)
        if settle:
            found = await idle(site, settle, seconds, heads)
            figures.append(polling_figure(title, size, found, FIXED))
        return figures + end_figures(title, site.peak(), await delete(site, KIND))
