"""Stand-ins for what the runtime is given: an event writer, Leases, and objects."""

import asyncio
from copy import deepcopy

from eagleray.runtime.controller import Controller
from eagleray.runtime.events import Recorder
from eagleray.runtime.metrics import Registry
from eagleray.runtime.series import ControllerMetrics
from kubereef.simulation import VirtualClock
from kubewire import errors
from kubewire.sources import SeededEntropy


def ray_cluster(name="c", namespace="default"):
    meta = {"name": name, "namespace": namespace, "uid": f"uid-of-{namespace}-{name}", "resourceVersion": "7"}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": meta}


class Events:
    """Keeps the events that are written; `refusals` are raised first, one per request."""

    def __init__(self, *refusals):
        self.written = {}
        self.requests = []
        self.refusals = list(refusals)

    async def create(self, namespace, event):
        self._request("create", event["metadata"]["name"])
        self.written[namespace, event["metadata"]["name"]] = deepcopy(event)

    async def patch(self, namespace, name, patch):
        self._request("patch", name)
        self.written[namespace, name] |= patch

    def _request(self, verb, name):
        self.requests.append((verb, name))
        if self.refusals and (refusal := self.refusals.pop(0)) is not None:
            raise refusal

    @property
    def all(self):
        return list(self.written.values())


class Leases:
    """The Leases of a cluster. While it is `away`, requests fail or hang."""

    def __init__(self):
        self.stored = {}
        self.requests = []
        self.away = None
        self._version = 0

    async def get(self, namespace, name):
        await self._asked("get")
        if (namespace, name) not in self.stored:
            raise errors.not_found("leases", name)
        return deepcopy(self.stored[namespace, name])

    async def create(self, namespace, lease):
        await self._asked("create")
        if (namespace, lease["metadata"]["name"]) in self.stored:
            raise errors.already_exists("leases", lease["metadata"]["name"])
        return self.store(namespace, lease)

    async def replace(self, namespace, lease):
        await self._asked("replace")
        meta = lease["metadata"]
        if self.stored[namespace, meta["name"]]["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            raise errors.modified("leases", meta["name"])
        return self.store(namespace, lease)

    def store(self, namespace, lease):
        self._version += 1
        lease = deepcopy(lease)
        lease["metadata"]["resourceVersion"] = str(self._version)
        self.stored[namespace, lease["metadata"]["name"]] = lease
        return deepcopy(lease)

    def holder(self, namespace="ops", name="ray-operator-leader"):
        return self.stored[namespace, name]["spec"]["holderIdentity"]

    async def _asked(self, verb):
        self.requests.append(verb)
        if self.away == "hangs":
            await asyncio.sleep(1e6)
        if self.away is not None:
            raise self.away


class World:
    """A controller with all that it needs, under virtual time."""

    def __init__(self, reconcile, *, cap=None, timeout=None, find=None, name="raycluster"):
        self.registry = Registry()
        self.metrics = ControllerMetrics(self.registry)
        self.events = Events()
        self.recorder = Recorder(self.events, VirtualClock(), f"{name}-controller", "host")
        self.controller = Controller(
            name,
            "RayCluster",
            reconcile,
            find=find or (lambda key: ray_cluster(key.name, key.namespace)),
            events=self.recorder,
            metrics=self.metrics,
            entropy=SeededEntropy(1),
            cap=cap,
            timeout=timeout,
        )
        self.queue = self.controller.queue

    async def __aenter__(self):
        self.recorder.start()
        self.controller.start()
        return self

    async def __aexit__(self, *_why):
        await self.controller.stop(patience=0)
        await self.recorder.stop()
