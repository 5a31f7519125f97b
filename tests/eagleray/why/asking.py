"""Asks `why` about RayJobs of a world, and about other kinds."""

import inspect
import re

from eagleray.kube.client import Client
from eagleray.why.kinds import diagnosis_of
from eagleray.why.reading import Reader
from eagleray.why.report import lines
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import transport_to
from tests.eagleray.world import NAMESPACE

_RANDOM = re.compile(
    r"(?<=\bj-)[a-z0-9]{5}\b|(?<=-head-)[a-z0-9]{5}\b|(?<=-worker-)[a-z0-9]{5}\b|(?<=session_)[0-9_-]+|\d{4}-\d\d-\d\dT[\d:]+Z"
)


async def why(world, name="j", user=None, kind="rayjobs.ray.io"):
    """Return what is printed and whether all is well; random ends of names, sessions and times are taken off."""
    transport = transport_to(world.simulated.server, *([user] if user else []))
    client = Client(transport, world.clock, SeededEntropy("why"))
    reader = Reader(client, world.clock, SeededEntropy("why"))
    report = await diagnosis_of(kind).diagnose(reader, NAMESPACE, name)
    return [_RANDOM.sub("xxxxx", line) for line in lines(report)], report.is_ready


async def stuck(world):
    shown, is_ready = await why(world)
    assert not is_ready
    return shown


def said(text):
    """Return the lines of a text whose long lines go on, further in, on the next one."""
    return re.sub(r"\n {4,}", " ", inspect.cleandoc(text)).splitlines()
