"""Runs in the test world: what `perform` shows and returns, with nobody at a terminal."""

import asyncio
import io

from eagleray.kube.client import Client
from eagleray.kube.retries import Patience
from eagleray.kube.transport import Answer
from eagleray.local.manifests import Manifest
from eagleray.local.running import Way, Work, perform
from eagleray.local.screen import Screen
from kubewire.sources import SeededEntropy
from kubewire.yamltext import Position
from tests.eagleray.cli.test_job import UNAVAILABLE, Kubelets


class Pods(Kubelets):
    """A way on which logs of containers are answered in one piece as well; one that `is_cut_off` reaches no Ray."""

    is_cut_off = False

    def _proxied(self, request):
        return UNAVAILABLE if self.is_cut_off else super()._proxied(request)

    async def send(self, request):
        if request.path.endswith("/log"):
            self.asked.append(request)
            return self.refusal or Answer(200, b"".join(self.logs[dict(request.query)["container"]]))
        return await super().send(request)


def manifest(obj, line=1):
    """Return an object as if it stood in a file."""
    return Manifest(obj, "job.yaml", Position(line, 1))


class Scene:
    """One run in a world: what is shown on both streams, and the ways in that were opened."""

    def __init__(self, world):
        self.world = world
        self.kubelets = Pods(world)
        self.lines, self.printed = io.StringIO(), io.StringIO()
        self.screen = Screen(self.lines, self.printed, world.clock, {})
        self.client = Client(
            self.kubelets, world.clock, SeededEntropy("run"), patience=Patience(total=5, tries=2)
        )
        self.opened = []
        self.taken_ports = set()

    async def run(self, *objects, fails=None, **options):
        """Return the exit code of a run of these objects; one that never ends is ended, and fails."""
        options.setdefault("timeout", 3600)
        way = Way(
            self.client,
            self.kubelets,
            self.world.clock,
            SeededEntropy("run"),
            forward=self._forward,
            fails=fails,
        )
        return await perform(Work([manifest(obj) for obj in objects], **options), way, self.screen)

    def start(self, *objects, **options):
        return asyncio.create_task(self.run(*objects, **options))

    async def _forward(self, address, port, at):
        if at in self.taken_ports:
            raise OSError("address already in use")
        self.opened.append((address, port, at))
        return at or 40000 + len(self.opened)

    @property
    def told(self):
        """The lines that were shown, without their times."""
        return [line.partition("s  ")[2] for line in self.lines.getvalue().splitlines()]

    @property
    def output(self):
        return self.printed.getvalue()
