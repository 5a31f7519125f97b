"""A real node with an API server of its own, in processes of its own: Pods of a table run on it for real.

`outcomes(table)` starts it once, creates all Pods, waits for each to come to its end (or to be ready, where the table
says so), and returns what became of them. The image is the host's /usr with an /etc of two files.
"""

import asyncio
import json
import os
import shutil
import tempfile
import time
import traceback
from ipaddress import ip_interface, ip_network
from pathlib import Path

from kubereef.cluster import Cluster
from kubereef.controllers.following import follow
from kubereef.node.images import Bind, Image, User
from kubereef.node.kubelet.calls import NetworkCalls
from kubereef.node.kubelet.events import PodEvents
from kubereef.node.kubelet.interfaces import NodeFacts, Tools
from kubereef.node.kubelet.kubelet import Kubelet
from kubereef.node.kubelet.runtime import SandboxRuntime
from kubereef.node.kubelet.tasks import Tasks
from kubereef.node.network import AddressPool, Links, PodLink
from kubereef.node.sandbox import CgroupTree, Control, NodeProcess, Stdio, choose_root_style, probe
from kubereef.store.store import Store
from kubewire.sources import SystemClock, SystemEntropy

REPOSITORY = Path(__file__).parents[4]
NODE = "node-1"
PODS = "/api/v1/namespaces/default/pods"
SECONDS = 40
POD_NETWORK = "10.200.0.0/24"


def outcomes(table, work):
    """Run the table on a new node; return what is told of each Pod, by name, and of the node under ""."""
    os.environ["PYTHONPATH"] = f"{REPOSITORY / 'src'}:{REPOSITORY}"
    return asyncio.run(_run(table, Path(work)))


async def _run(table, work):
    style = choose_root_style(await asyncio.to_thread(probe, work))
    with tempfile.TemporaryFile() as output:
        argument = {"table": table, "work": str(work), "style": style}
        node = NodeProcess("tests.kubereef.node.kubelet.inside:program", argument, output=output.fileno())
        await node.start()
        try:
            code = await asyncio.wait_for(node.wait(), SECONDS)
        finally:
            node.signal(9)
            await node.wait()
            tree = await asyncio.to_thread(CgroupTree.open, _cgroup_name(work))
            tree.root.try_remove()
        output.seek(0)
        if code:
            raise AssertionError(f"the node ended with {code}:\n{output.read().decode(errors='replace')}")
    return json.loads((work / "outcomes.json").read_text())


def _cgroup_name(work):
    return f"kubereef-test-{Path(work).name}"


def program(start):
    """The node program."""
    try:
        asyncio.run(_Node(start).run())
    except BaseException:  # noqa: BLE001 - the top of a process: printed, and told by the exit code
        traceback.print_exc()
        return 1
    return 0


class HostImages:
    """One image for every name: the host's programs."""

    def __init__(self, work):
        self._image = work / "image"
        (self._image / "etc").mkdir(parents=True)
        (self._image / "etc" / "passwd").write_text(
            "root:x:0:0::/root:/bin/sh\napp:x:1234:100::/home/app:/bin/sh\n"
        )
        (self._image / "etc" / "group").write_text("root:x:0:\nextra:x:777:app\n")
        (self._image / "usr").mkdir()
        for name in ("bin", "sbin", "lib", "lib64"):
            host = Path("/", name)
            if host.is_symlink():
                (self._image / name).symlink_to(host.readlink())
        self.held = 0

    async def pull(self, name, policy="IfNotPresent", on_progress=None):
        self.held += 1
        return Image(
            reference=f"{name}:1",
            digest="sha256:" + "0" * 64,
            layers=(self._image,),
            binds=(Bind("/usr", "/usr"),),
            user=User(),
            command=("sleep", "1000"),
        )

    def release(self, image):
        self.held -= 1


class _Network:
    """Pods on a bridge, each with an address."""

    async def start(self):
        self._links = await Links.start([ip_interface("10.200.0.1/24")])
        self._pool = AddressPool(ip_network(POD_NETWORK), reserved=self._links.gateways)

    async def attach(self, uid, namespace):
        address = self._pool.allocate(uid)
        await self._links.attach(PodLink(uid, (ip_interface(f"{address}/24"),)), namespace)
        return (str(address),)

    async def detach(self, uid):
        self._pool.release(uid)

    def close(self):
        self._links.close()


class _Node:
    def __init__(self, start):
        self._start = start
        self._work = Path(start.argument["work"])
        self._table = start.argument["table"]
        self._clock = SystemClock()
        self._outcomes = {}

    async def run(self):
        cluster = Cluster(Store(), clock=self._clock, entropy=SystemEntropy())
        await cluster.start()
        self._client = cluster.client()
        control = Control(self._start.control)
        cgroups = CgroupTree.open(_cgroup_name(self._work))
        self._images, network, prober = HostImages(self._work), _Network(), NetworkCalls()
        await network.start()
        runtime = SandboxRuntime(control, cgroups, self._clock)
        events = PodEvents(self._client, self._clock, NODE)
        tools = Tools(
            client=self._client,
            clock=self._clock,
            entropy=SystemEntropy(),
            runtime=runtime,
            images=self._images,
            network=network,
            prober=prober,
            events=events,
            offload=asyncio.to_thread,
            tasks=Tasks(),
        )
        facts = NodeFacts(
            name=NODE,
            directory=self._work / "node",
            host_ips=("10.200.0.1",),
            cluster_dns=("10.96.0.10",),
            allocatable={"cpu": "2", "memory": "4Gi"},
            root_style=self._start.argument["style"],
        )
        self._kubelet = Kubelet(tools, facts)
        await self._kubelet.start()
        await self._make_objects()
        following = asyncio.ensure_future(follow(self._client, "/api/v1/pods", self._kubelet))
        await asyncio.gather(*(self._live(name, entry) for name, entry in self._table.items()))
        await self._until_all_is_removed()
        mounts, processes = _left_behind()
        self._outcomes[""] = {
            "held": self._images.held,
            "mounts": mounts,
            "directories": [str(one) for one in (self._work / "node" / "pods").rglob("*")],
            "processes": processes,
            "unenforced": cgroups.unenforced,
        }
        (self._work / "outcomes.json").write_text(json.dumps(self._outcomes))
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await self._kubelet.stop(0.0)
        await prober.close()
        await cluster.stop()
        network.close()
        control.close()

    async def _until_all_is_removed(self):
        """Pods that were over are gone for the API server before the node has removed their directories."""
        for _ in range(100):
            if not any((self._work / "node" / "pods").iterdir()):
                return
            await asyncio.sleep(0.05)

    async def _make_objects(self):
        for plural, obj in (
            ("serviceaccounts", {"metadata": {"name": "default"}}),
            ("configmaps", {"metadata": {"name": "config"}, "data": {"color": "blue", "size": "7"}}),
            ("configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "pem"}}),
            ("secrets", {"metadata": {"name": "secret"}, "data": {"password": "aHVzaA=="}}),
        ):
            await self._client.create(f"/api/v1/namespaces/default/{plural}", obj)

    async def _live(self, name, entry):
        """Let a Pod live, note what became of it, and delete it."""
        spec = {
            "nodeName": NODE,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            **entry["spec"],
        }
        url = f"{PODS}/{name}"
        meta = {"name": name, **entry.get("metadata", {})}
        await self._client.create(PODS, {"metadata": meta, "spec": spec})
        pod = await self._until(url, entry.get("until", "over"))
        found = {"status": pod["status"], "logs": {}, "entered": ""}
        worker = self._kubelet.find("default", name)
        if worker is not None:
            if command := entry.get("enter"):
                found["entered"] = await _entered(worker.container("app"), command)
            for life in worker.containers():
                file = life.log_file()
                found["logs"][life.name] = _plain(file.read_text()) if file is not None else ""
        listed = (await self._client.get("/api/v1/namespaces/default/events"))["items"]
        found["events"] = [
            [one["reason"], one["message"]] for one in listed if one["involvedObject"]["name"] == name
        ]
        began = time.monotonic()
        await self._client.delete(url)
        await self._until_gone(name)
        found["deletion"] = time.monotonic() - began
        self._outcomes[name] = found

    async def _until_gone(self, name):
        for _ in range(400):
            if name not in [one["metadata"]["name"] for one in (await self._client.get(PODS))["items"]]:
                return
            await asyncio.sleep(0.05)

    async def _until(self, url, what):
        pod = {}
        for _ in range(400):
            pod = await self._client.get(url)
            status = pod.get("status") or {}
            ready = any(
                one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ()
            )
            restarts = [one["restartCount"] for one in status.get("containerStatuses") or ()]
            if (
                (what == "over" and status.get("phase") in ("Succeeded", "Failed"))
                or (what == "ready" and ready)
                or (what == "restarted" and any(restarts) and ready)
            ):
                return pod
            await asyncio.sleep(0.05)
        return pod


def _left_behind():
    """Return the mounts of Pods, and how many processes there are."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "/pods/" in line]
    return mounts, sum(entry.name.isdigit() for entry in Path("/proc").iterdir())


async def _entered(life, command):
    reading, writing = os.pipe()
    process = await life.enter(command, Stdio(stdout=writing, stderr=writing))
    os.close(writing)
    ended = await process.wait()
    text = os.read(reading, 65536).decode()
    os.close(reading)
    process.close()
    return f"{ended.code} {text}"


def _plain(log):
    """Return the text of a log without times and streams."""
    return "".join(f"{line.split(' ', 3)[3]}\n" for line in log.splitlines())


def remove(work):
    shutil.rmtree(work, ignore_errors=True)
