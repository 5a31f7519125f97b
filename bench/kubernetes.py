"""What RayClusters cost the operator's process on a real control plane with fake nodes.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok run on this machine; Pods run and are ready at
once. They take more of it than the operator does, so that seconds say as much about them: what travels between
machines is CPU as a part of kube-apiserver's own in the same run, requests per cluster, and memory.

    python -m bench.kubernetes [SIZE…]        # 100 clusters unless said; 500 and 1,000 take minutes

On the reference operator (its own run, on two cores): 11 requests per cluster; 0.19 of kube-apiserver's CPU at 100
clusters, 0.27 at 500 and 0.35 at 1,000; 63, 148 and 250 MiB.
"""

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bench.figures import Figure
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from kubereef.node.machine.client import HttpsClient
from kubewire import errors
from tests.kubernetes.plane import NotHere, Plane, programs

CLUSTERS = "/apis/ray.io/v1/namespaces/default/rayclusters"
PODS = "/api/v1/namespaces/default/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODES = "/api/v1/nodes"
WORKERS = 3
FAKE_NODES = 4
CREATORS = 8
IDLE_SECONDS = 30.0
PATIENCE = 1200.0
USER = "operator"
PLENTY = {"cpu": "10000", "memory": "100Ti", "pods": "100000"}
# kwok has its own Pod network; nobody calls the Pods.
KWOK = (
    "--manage-all-nodes=true",
    "--cidr=10.64.0.0/12",
    "--node-ip=192.0.2.2",
    "--node-lease-duration-seconds=40",
)


class Report(NamedTuple):
    """What one run has shown. `cpu` is in seconds by process, until all clusters were ready."""

    size: int
    ready: float
    median: float
    cpu: dict[str, float]
    requests: Counter[str]
    peak: float
    idle: float
    gone: float

    @property
    def share(self) -> float:
        """The operator's CPU as a part of kube-apiserver's."""
        return self.cpu[USER] / self.cpu["kube-apiserver"]

    @property
    def per_cluster(self) -> float:
        return self.requests.total() / self.size


def measure(sizes: Sequence[int] = (100,)) -> list[Figure]:
    """Return what RayClusters cost on a real control plane, if this machine can build one."""
    try:
        binaries = programs("kwok")
    except NotHere as missing:
        return [
            Figure("RayClusters on Kubernetes", f"not measured: {missing}", "where it can be", within=True)
        ]
    return [figure for size in sizes for figure in _figures(asyncio.run(_run(size, binaries)))]


def _figures(report: Report) -> list[Figure]:
    title = f"{report.size} RayClusters on Kubernetes"
    often = ", ".join(f"{count / report.size:.1f} {what}" for what, count in report.requests.most_common(6))
    return [
        Figure(
            f"{title}, all ready",
            f"{report.ready:.1f} s, {report.size / report.ready:.1f} a second, half after {report.median:.1f} s",
            "as fast as the machine",
            within=True,
        ),
        Figure(
            f"{title}, CPU",
            f"{report.cpu[USER]:.1f} s, {report.share:.2f} of kube-apiserver's",
            "at most 1.2 of it",
            report.share <= 1.2,
        ),
        Figure(
            f"{title}, requests",
            f"{report.per_cluster:.1f} each ({often})",
            "at most 10",
            report.per_cluster <= 10.05,
        ),
        Figure(f"{title}, memory", f"{report.peak:.0f} MiB at most", "at most 400 MiB", report.peak <= 400),
        Figure(
            f"{title}, idle",
            f"{report.idle * 60:.2f} CPU seconds a minute",
            "at most 0.6",
            report.idle * 60 <= 0.6,
        ),
        Figure(
            f"{title}, deleted", f"all gone after {report.gone:.1f} s", "as fast as the machine", within=True
        ),
    ]


# --- a run


async def _run(size: int, binaries: Path) -> Report:
    with tempfile.TemporaryDirectory(prefix="bench-kubernetes-") as name:
        directory = Path(name)
        audit = directory / "audit.log"
        (directory / "audit.yaml").write_text(yaml.safe_dump(_audit_policy()))
        flags = [f"--audit-policy-file={directory / 'audit.yaml'}", f"--audit-log-path={audit}"]
        with Plane(directory / "plane", binaries, {"kube-apiserver": flags}) as plane:
            async with _client(plane) as client:
                await _prepare(client)
                with _process(
                    [str(binaries / "kwok"), f"--kubeconfig={plane.kubeconfig}", *KWOK], directory / "kwok"
                ):
                    await _until_nodes_are_ready(client)
                    kubeconfig = plane.kubeconfig_of(USER, USER, "system:masters")
                    command = [
                        sys.executable,
                        "-m",
                        "eagleray.cli.main",
                        "operator",
                        f"--kubeconfig={kubeconfig}",
                    ]
                    flags = [
                        "--enable-leader-election=false",
                        "--metrics-addr=0",
                        "--health-probe-bind-address=0",
                    ]
                    with _process([*command, *flags], directory / "operator") as operator:
                        return await _measured(size, client, plane, operator.pid, audit)


async def _measured(size: int, client: HttpsClient, plane: Plane, operator: int, audit: Path) -> Report:
    await asyncio.sleep(5)  # the operator reads what there is
    pids = {USER: operator, "kube-apiserver": plane.pid("kube-apiserver")}
    before = {name: _cpu(pid) for name, pid in pids.items()}
    asked = _requests(audit).total()
    began = time.perf_counter()
    creating = asyncio.create_task(_create(client, size))
    moments = sorted([moment - began async for moment in _as_they_get_ready(client, size)])
    await creating
    cpu = {name: _cpu(pid) - before[name] for name, pid in pids.items()}
    await asyncio.sleep(1)  # the log is written behind
    requests = _requests(audit, skip=asked)
    await asyncio.sleep(10)  # the counts of events and the last statuses
    idle_from = _cpu(operator)
    await asyncio.sleep(IDLE_SECONDS)
    idle = (_cpu(operator) - idle_from) / IDLE_SECONDS
    peak = _peak(operator)
    gone = await _delete(client)
    return Report(size, moments[-1], moments[len(moments) // 2], cpu, requests, peak, idle, gone)


async def _prepare(client: HttpsClient) -> None:
    for kind in KINDS:
        await client.create(CRDS, crd(kind))
    for number in range(FAKE_NODES):
        status = {"capacity": PLENTY, "allocatable": PLENTY}
        await client.create(NODES, {"metadata": {"name": f"fake-{number}"}, "status": status})

    async def is_served() -> bool:
        try:
            told = await client.get("/apis/ray.io/v1")
        except errors.NotFound:
            return False
        return {kind.name for kind in KINDS} <= {one["kind"] for one in told["resources"]}

    await _until(is_served)


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.2)


async def _until_nodes_are_ready(client: HttpsClient) -> None:
    async def are_ready() -> bool:
        return not any(node["spec"].get("taints") for node in (await client.get(NODES))["items"])

    await _until(are_ready)


async def _create(client: HttpsClient, size: int) -> None:
    numbers = iter(range(size))

    async def create() -> None:
        for number in numbers:
            await client.create(CLUSTERS, _cluster(f"bench-{number:04}"))

    await asyncio.gather(*(create() for _ in range(CREATORS)))


async def _as_they_get_ready(client: HttpsClient, size: int) -> AsyncIterator[float]:
    """Yield when each cluster became ready, as the watch tells it."""
    waiting = {f"bench-{number:04}" for number in range(size)}
    async with asyncio.timeout(PATIENCE):
        async for event in client.watch(CLUSTERS):
            obj = event["object"]
            name = obj["metadata"]["name"]
            if name in waiting and (obj.get("status") or {}).get("state") == "ready":
                waiting.discard(name)
                yield time.perf_counter()
                if not waiting:
                    return


async def _delete(client: HttpsClient) -> float:
    """Return after how long clusters and Pods are gone once somebody has deleted them."""
    names = iter([obj["metadata"]["name"] for obj in (await client.get(CLUSTERS))["items"]])
    began = time.perf_counter()

    async def delete() -> None:
        for name in names:
            await client.delete(f"{CLUSTERS}/{name}")

    await asyncio.gather(*(delete() for _ in range(CREATORS)))

    async def are_gone() -> bool:
        return not (await client.get(f"{PODS}?limit=1"))["items"]

    await _until(are_gone)
    return time.perf_counter() - began


def _cluster(name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.52.0"}]}}
    workers = {"groupName": "small", "replicas": WORKERS, "minReplicas": 0, "maxReplicas": 10}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": template},
            "workerGroupSpecs": [{**workers, "rayStartParams": {}, "template": template}],
        },
    }


# --- the machine


@asynccontextmanager
async def _client(plane: Plane) -> AsyncIterator[HttpsClient]:
    tls = ssl.create_default_context(cafile=str(plane.authority))
    tls.load_cert_chain(plane.directory / "admin.crt", plane.directory / "admin.key")
    client = HttpsClient(plane.url, tls)
    try:
        yield client
    finally:
        await client.close()


class _process:  # noqa: N801 - reads as the statement that it is
    """A process that runs as long as a block."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self._log = log

    def __enter__(self) -> "subprocess.Popen[bytes]":
        with self._log.open("wb") as log:
            self._running = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        return self._running

    def __exit__(self, *_why: object) -> None:
        self._running.send_signal(signal.SIGTERM)
        try:
            self._running.wait(60)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()


def _audit_policy() -> dict[str, Any]:
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
    }


def _requests(audit: Path, skip: int = 0) -> Counter[str]:
    """Return how often the operator asked for what, watches left out; the first ones are skipped."""
    found: list[str] = []
    for line in audit.read_text().splitlines():
        entry = json.loads(line)
        reference = entry.get("objectRef") or {}
        parts = [reference.get("resource", "?"), reference.get("subresource", "")]
        found.append(f"{entry['verb']} {'/'.join(filter(None, parts))}")
    return Counter(what for what in found[skip:] if not what.startswith("watch "))


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> float:
    """Return the most memory that a process has had, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} does not tell its memory")


if __name__ == "__main__":
    for result in measure([int(size) for size in sys.argv[1:]] or [100]):
        print(result.text(), flush=True)
