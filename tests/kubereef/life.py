"""A short life of a cluster, with everything that its controllers wrote, for comparing two of them.

Run as a program it prints a digest of the writes.
"""

import asyncio
import hashlib
import sys

from kubereef.controllers.standard import CONTROLLERS
from kubereef.simulation import SimulatedCluster, run

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def writes(seed):
    """Return every write: what happened to which object, and what it became."""

    async def life():
        cluster = SimulatedCluster(seed)
        await cluster.start()
        await cluster.run(*CONTROLLERS)
        client = cluster.client
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
        spec = {"parallelism": 3, "completions": 5, "template": template}
        for name in ("first", "second"):
            await client.create(JOBS, {"metadata": {"name": name}, "spec": spec})
        await client.create("/api/v1/namespaces", {"metadata": {"name": "short-lived"}})
        await asyncio.sleep(1)
        for number, pod in enumerate((await client.get(PODS))["items"]):
            phase = {"status": {"phase": "Failed" if number % 2 else "Succeeded"}}
            await client.patch(f"{PODS}/{pod['metadata']['name']}/status", phase)
        await client.delete("/api/v1/namespaces/short-lived")
        await asyncio.sleep(30)
        await cluster.restart_controllers()
        await client.delete(f"{JOBS}/first?propagationPolicy=Foreground")
        await cluster.pass_time(3600)
        changes = [
            (change.type, *change.key, change.record.data) for change in cluster.store.history.since(1)
        ]
        await cluster.stop()
        return changes

    return run(life())


if __name__ == "__main__":
    print(hashlib.sha256(repr(writes(int(sys.argv[1]))).encode()).hexdigest())
