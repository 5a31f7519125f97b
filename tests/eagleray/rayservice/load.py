"""Requests without end: where would one go now, and would it be answered?"""

import asyncio

from tests.eagleray.ray import host_of
from tests.eagleray.rayservice.situations import weights


class Load:
    """Asks again and again, at every endpoint that requests may be led to; `failed` tells when, and why, one was lost.

        async with Load(world) as load:
            ...
        assert load.failed == []

    A request comes in by the Service `s-serve-svc`, or with `routed` by the route, to the Services of the clusters that
    have weight there.
    """

    def __init__(self, world, *, routed=False, every=0.5):
        self._world = world
        self._routed = routed
        self._every = every
        self._asking: asyncio.Task[None] | None = None
        self.count = 0
        self.failed = []
        self.answered_by = []  # the sets of clusters that answered, one after the other

    async def __aenter__(self):
        self._asking = asyncio.create_task(self._ask_always(), name="load")
        return self

    async def __aexit__(self, *_why):
        assert self._asking is not None
        self._asking.cancel()
        await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask_always(self):
        while True:
            await self._ask()
            self.count += 1
            await asyncio.sleep(self._every)

    async def _ask(self):
        services = ["s-serve-svc"]
        if self._routed:
            services = [
                f"{name}-serve-svc" for name, weight in (await weights(self._world)).items() if weight
            ]
        clusters = set()
        for service in services:
            pods = [pod async for pod in self._behind(service)]
            if not pods:
                self._lost(f"nobody is behind {service}")
            for pod in pods:
                cluster = pod["metadata"]["labels"]["ray.io/cluster"]
                clusters.add(cluster)
                if not self._runs(cluster):
                    self._lost(f"no application runs on {cluster}, to which {service} leads")
        if not self.answered_by or self.answered_by[-1] != clusters:
            self.answered_by.append(clusters)

    async def _behind(self, service):
        for found in await self._world.list("EndpointSlice", f"kubernetes.io/service-name={service}"):
            for endpoint in found.get("endpoints") or ():
                pod = await self._world.get("Pod", endpoint["targetRef"]["name"])
                if endpoint["conditions"]["ready"] and pod is not None:
                    yield pod

    def _runs(self, cluster):
        head = self._world.dashboards.heads.get(host_of(cluster))
        applications = head._served().values() if head is not None else ()
        return bool(applications) and all(app["status"] == "RUNNING" for app in applications)

    def _lost(self, why):
        self.failed.append(f"{self._world.clock.now():%H:%M:%S}: {why}")
