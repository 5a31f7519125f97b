"""Nodes for tests: Pods live as a script says, and nothing really runs.

    nodes = ScriptedNodes(client, clock, scripts=[
        Script(when={"app": "worker"}, nth=3, steps=[Running(after=1), Fails(after=5, exit_code=1)]),
    ])
    async with nodes:
        ...

says that the third Pod with that label fails five seconds after it has started to run. Pods that no script is about
run and are ready at once, until somebody deletes them.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Self

from kubereef.controllers.following import follow
from kubereef.controllers.resources import PODS
from kubereef.kinds.resource import Object
from kubereef.node.machines import Client, Machine, NodeShape, ScriptedPod
from kubereef.node.scripts import Evicted, Fails, NotReady, Ready, Running, Script, Step, Succeeds, Waits
from kubewire.selectors import LabelSelector
from kubewire.sources import Clock

__all__ = [
    "Evicted",
    "Fails",
    "NodeShape",
    "NotReady",
    "Ready",
    "Running",
    "Script",
    "ScriptedNodes",
    "Step",
    "Succeeds",
    "Waits",
]


class ScriptedNodes:
    """Registers nodes, keeps them alive, and lets the Pods on them live as the scripts say."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        nodes: Sequence[NodeShape] = (NodeShape(),),
        scripts: Sequence[Script] = (),
    ) -> None:
        self._client = client
        self._clock = clock
        self._nodes = {
            shape.name: Machine(shape, client, clock, number) for number, shape in enumerate(nodes, 1)
        }
        self._scripts = [(script, count(1)) for script in scripts]
        self._selectors = [LabelSelector.exactly(script.when) for script in scripts]
        self._addresses = count(1)
        self._lives: dict[str, ScriptedPod] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Register the nodes and begin to run Pods."""
        for node in self._nodes.values():
            await node.register()
            self._tasks.append(asyncio.create_task(node.beat(), name=f"heartbeat of {node.shape.name}"))
        self._tasks.append(asyncio.create_task(follow(self._client, PODS.url(), self), name="scripted nodes"))

    async def stop(self) -> None:
        """Stop, as if the machines were switched off: nothing is said to the cluster."""
        tasks = [*self._tasks, *(task for life in self._lives.values() for task in life.tasks)]
        self._tasks, self._lives = [], {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_why: object) -> None:
        await self.stop()

    def lose(self, node: str) -> None:
        """Cut a node off: it says nothing any more, and the Pods on it go on unseen."""
        self._nodes[node].is_connected.clear()

    def restore(self, node: str) -> None:
        """Connect a node again: it catches up on what it could not say."""
        self._nodes[node].is_connected.set()
        for life in self._lives.values():
            if life.node is self._nodes[node]:
                life.repeat_status()

    # --- what the watch tells (see following.Sink)

    def replace(self, objects: list[Object], revision: int) -> None:  # noqa: ARG002 - every sink is told the revision
        present = {pod["metadata"]["uid"] for pod in objects}
        for uid in [uid for uid in self._lives if uid not in present]:
            self._lives.pop(uid).cancel()
        for pod in objects:
            self._follow(pod)

    def apply(self, kind: str, obj: Object, revision: int) -> None:  # noqa: ARG002 - as above
        if kind != "DELETED":
            self._follow(obj)
            return
        life = self._lives.pop(obj["metadata"]["uid"], None)
        if life is not None:
            life.cancel()

    def reached(self, revision: int) -> None:
        """Nothing to do: Pods are looked at one by one."""

    def _follow(self, pod: Object) -> None:
        """Begin a Pod's life on one of the nodes, or end it if that is asked for."""
        node = self._nodes.get(pod["spec"].get("nodeName") or "")
        if node is None:
            return
        uid = pod["metadata"]["uid"]
        life = self._lives.get(uid)
        if life is None:
            is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
            life = ScriptedPod(
                pod, node, self._script_for(pod), _address(next(self._addresses)), is_over=is_over
            )
            self._lives[uid] = life
        if pod["metadata"].get("deletionTimestamp"):
            life.terminate(pod["metadata"].get("deletionGracePeriodSeconds") or 0)

    def _script_for(self, pod: Object) -> Script:
        """Return the first script that is about a Pod. Every script counts the Pods with its labels."""
        labels = pod["metadata"].get("labels")
        chosen: Script | None = None
        for (script, counter), selector in zip(self._scripts, self._selectors, strict=True):
            if not selector.matches(labels):
                continue
            number = next(counter)
            if chosen is None and script.nth in (None, number):
                chosen = script
        return chosen or Script()


def _address(number: int) -> str:
    return f"10.{64 + (number >> 16) % 128}.{number >> 8 & 255}.{number & 255}"
