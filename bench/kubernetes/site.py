"""A control plane with fake nodes and the operator's process on it, for as long as one run lasts."""

import asyncio
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.kubernetes.readings import counted, cpu_seconds, peak_mebibytes
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from kubereef.node.machine.client import HttpsClient
from kubewire import errors
from tests.kubernetes.audit import Audit
from tests.kubernetes.plane import Plane, die_with_parent, end, free_ports

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODES = "/api/v1/nodes"
FAKE_NODES = 4
PLENTY = {"cpu": "10000", "memory": "100Ti", "pods": "100000"}
POD_NETWORK = "10.64.0.0/12"
OPERATOR, API_SERVER = "operator", "kube-apiserver"
PATIENCE = 1200.0
# kwok leases its nodes and gives Pods addresses; nobody calls it.
_KWOK = (
    "--manage-all-nodes=true",
    f"--cidr={POD_NETWORK}",
    "--node-ip=192.0.2.2",
    "--node-lease-duration-seconds=40",
)


class Site(NamedTuple):
    """What a run measures: `client` is the administrator's, `audit` tells of the operator's requests."""

    client: HttpsClient
    audit: Audit
    pids: dict[str, int]

    def cpu(self) -> dict[str, float]:
        """Return the processor time of operator and API server so far, by name."""
        return {name: cpu_seconds(pid) for name, pid in self.pids.items()}

    def requests(self, mark: int) -> Counter[str]:
        """Return how often the operator has asked for what since a mark of the audit log."""
        return counted(self.audit.since(mark))

    def operator_cpu(self) -> float:
        return cpu_seconds(self.pids[OPERATOR])

    def peak(self) -> float:
        """Return the most memory that the operator has had, in MiB."""
        return peak_mebibytes(self.pids[OPERATOR])


@asynccontextmanager
async def operated(binaries: Path) -> AsyncIterator[Site]:
    """Give a site with the four kinds, nodes that are ready, and an operator that has read what there is."""
    with tempfile.TemporaryDirectory(prefix="bench-kubernetes-") as name:
        directory = Path(name)
        audit = Audit(directory, {"users": [OPERATOR]}, "Metadata")
        with Plane(directory / "plane", binaries, {API_SERVER: audit.flags}) as plane:
            async with _administrator(plane) as client:
                await _prepare(client)
                kwok = [str(binaries / "kwok"), f"--kubeconfig={plane.kubeconfig}", *_KWOK]
                with _running(kwok, directory / "kwok.log"):
                    await until(lambda: _are_ready(client))
                    kubeconfig = plane.kubeconfig_of(OPERATOR, OPERATOR, "system:masters")
                    (probes,) = free_ports(1)
                    with _running(_operator(kubeconfig, probes), directory / "operator.log") as operator:
                        await until(lambda: asyncio.to_thread(_says_ready, probes))
                        pids = {OPERATOR: operator.pid, API_SERVER: plane.pid(API_SERVER)}
                        yield Site(client, audit, pids)


def _operator(kubeconfig: Path, probes: int) -> list[str]:
    return [
        *(sys.executable, "-m", "eagleray.cli.main", "operator"),
        f"--kubeconfig={kubeconfig}",
        "--enable-leader-election=false",
        "--metrics-addr=0",
        f"--health-probe-bind-address=127.0.0.1:{probes}",
    ]


def _says_ready(probes: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{probes}/readyz", timeout=5):
            return True
    except OSError:
        return False


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that happens in another process."""
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.2)


@asynccontextmanager
async def _administrator(plane: Plane) -> AsyncIterator[HttpsClient]:
    tls = ssl.create_default_context(cafile=str(plane.authority))
    tls.load_cert_chain(plane.directory / "admin.crt", plane.directory / "admin.key")
    client = HttpsClient(plane.url, tls)
    try:
        yield client
    finally:
        await client.close()


async def _prepare(client: HttpsClient) -> None:
    for kind in KINDS:
        await client.create(CRDS, crd(kind))
    for number in range(FAKE_NODES):
        status = {"capacity": PLENTY, "allocatable": PLENTY}
        await client.create(NODES, {"metadata": {"name": f"fake-{number}"}, "status": status})

    async def are_served() -> bool:
        try:
            told = await client.get("/apis/ray.io/v1")
        except errors.NotFound:
            return False
        return {kind.name for kind in KINDS} <= {one["kind"] for one in told["resources"]}

    await until(are_served)


async def _are_ready(client: HttpsClient) -> bool:
    return not any(node["spec"].get("taints") for node in (await client.get(NODES))["items"])


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process as long as a block, and no longer than this process."""
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            stdout=written,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it makes one call of the kernel and takes no lock
        )
    try:
        yield process
        if process.poll() is not None:
            last = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
            raise RuntimeError(f"{command[0]} has ended with {process.returncode}: {last}")
    finally:
        end(process)
