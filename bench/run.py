"""How long `eagleray run` takes until a job prints, against Ray alone on the same machine, and how fast Pods start.

Ray alone is `ray start --head` and `ray job submit` of the same script, outside of any Pod and with the very Ray of the
image; namespaces keep its ports, files and processes to itself, and cost nothing. Both may use every CPU of the
machine: a limit below that would be measured against a Ray without one. They take turns, so that they meet the same
noise, and the median of the rounds counts. Pods are busybox with the image there already.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import yaml

from bench.figures import Figure
from eagleray.kube.resources import PODS, Object
from eagleray.local.cluster import ClusterFailed, LocalCluster, LocalSettings, local_cluster
from kubereef.node.images import cache_directory

ROUNDS = 3
VERSION = "2.52.0"
MARK = "hello from"
SCRIPT = f"import ray; ray.init(); print('{MARK}', len(ray.nodes()), 'node', flush=True)"
ENTRYPOINT = f'python -c "{SCRIPT}"'
SINGLE_PODS = 15
MANY_PODS = 50
IDLE_SECONDS = 10.0
PATIENCE = 600.0
CPUS = os.cpu_count() or 1
# Loopback is down in a new network namespace, and not every machine has a program that brings it up.
LOOPBACK_UP = (
    "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 0x41))"
)


def measure() -> list[Figure]:
    """Return what a run and its Pods take on this machine."""
    if os.geteuid() != 0:
        return [Figure("eagleray run, and Pods", "not measured: a node needs root", "as root", within=True)]
    with tempfile.TemporaryDirectory(prefix="bench-run-") as directory:
        try:
            return [_first_output(Path(directory)), *asyncio.run(_pods(Path(directory)))]
        except ClusterFailed as failure:
            return [
                Figure("eagleray run, and Pods", f"not measured: {failure}", "on such machines", within=True)
            ]


# --- until a job prints


def _first_output(directory: Path) -> Figure:
    manifest = directory / "job.yaml"
    manifest.write_text(yaml.safe_dump(_job()))
    _ours(manifest)  # so that the image is there, and all code is compiled
    ray = _ray_of_image()
    ours, bare = [], []
    for _ in range(ROUNDS):
        bare.append(_bare(ray))
        ours.append(_ours(manifest))
    mine, alone = statistics.median(ours), statistics.median(bare)
    shown = f"{mine:.1f} s, {mine / alone:.2f} x Ray alone ({alone:.1f} s)"
    return Figure("eagleray run, until the job prints", shown, "at most 1.5 x", mine <= 1.5 * alone)


def _job() -> Object:
    container = {
        "name": "ray-head",
        "image": f"rayproject/ray:{VERSION}",
        "resources": {"limits": {"cpu": CPUS, "memory": "2Gi"}},
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "hello"},
        "spec": {
            "entrypoint": ENTRYPOINT,
            "rayClusterSpec": {
                "rayVersion": VERSION,
                "headGroupSpec": {"template": {"spec": {"containers": [container]}}},
            },
        },
    }


def _ours(manifest: Path) -> float:
    return _seconds_to_mark([sys.executable, "-m", "eagleray.cli.main", "run", str(manifest)])


def _ray_of_image() -> Path:
    """Return the home directory in the image's layers that has this Ray."""
    pattern = f"images/layers/*/tree/home/ray/anaconda3/lib/python3*/site-packages/ray-{VERSION}.dist-info"
    found = next(iter(cache_directory().glob(pattern)))
    return found.parents[4]


def _bare(home: Path) -> float:
    submit = f"ray job submit --address http://127.0.0.1:8265 -- {ENTRYPOINT}"
    steps = [
        "mount -t tmpfs none /tmp",
        "mount -t tmpfs none /home",
        "mkdir /home/ray",
        f"mount --bind {home} /home/ray",
        "export PATH=/home/ray/anaconda3/bin:$PATH HOME=/tmp",
        f'python -c "{LOOPBACK_UP}"',
        f"ray start --head --num-cpus={CPUS} --disable-usage-stats >/dev/null 2>&1",
        submit,
    ]
    namespaces = ["unshare", "--pid", "--net", "--mount", "--fork", "--kill-child", "--mount-proc"]
    return _seconds_to_mark([*namespaces, "sh", "-ec", "\n".join(steps)])


def _seconds_to_mark(command: Sequence[str]) -> float:
    """Return how long a command takes until it prints the mark; it has to end well after that."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    seconds = None
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            # Ray shows the command first, and the mark is in it.
            if seconds is None and line.startswith(MARK):
                seconds = time.perf_counter() - began
        code = process.wait(PATIENCE)
    if code or seconds is None:
        raise RuntimeError(
            f"{' '.join(command)[:200]} ended with {code}, and printed {seconds and 'its result'}"
        )
    return seconds


# --- Pods


async def _pods(directory: Path) -> list[Figure]:
    settings = LocalSettings(directory / "cluster", in_memory=True, grace=1.0, cpu_factor=100.0)
    async with local_cluster(settings) as cluster, _running(cluster) as news:
        await _start(cluster, news, ["first"])  # so that the image is there
        single = [await _start(cluster, news, [f"single-{number}"]) for number in range(SINGLE_PODS)]
        many = await _start(cluster, news, [f"many-{number}" for number in range(MANY_PODS)])
        await asyncio.sleep(2)
        idle = await _idle_part(cluster)
    p50 = statistics.median(single)
    return [
        Figure("a Pod, created to Running", f"p50 {p50 * 1000:.0f} ms", "at most 300 ms", p50 <= 0.3),
        Figure(f"{MANY_PODS} Pods at once, all Running", f"{many:.1f} s", "at most 10 s", many <= 10),
        Figure(
            "the node, when nothing happens",
            f"{idle * 100:.1f} % of a CPU with {SINGLE_PODS + MANY_PODS + 1} Pods",
            "at most 5 %",
            idle <= 0.05,
        ),
    ]


@asynccontextmanager
async def _running(cluster: LocalCluster) -> AsyncIterator["asyncio.Queue[str]"]:
    """Give the names of Pods as they come to run."""
    names: asyncio.Queue[str] = asyncio.Queue()
    seen: set[str] = set()

    async def watch() -> None:
        async for batch in cluster.client.watch(PODS):
            for event in batch:
                obj = msgspec.json.decode(event.object)
                name = obj["metadata"].get("name", "")
                if (obj.get("status") or {}).get("phase") == "Running" and name not in seen:
                    seen.add(name)
                    names.put_nowait(name)

    watching = asyncio.create_task(watch())
    try:
        yield names
    finally:
        watching.cancel()


async def _start(cluster: LocalCluster, news: "asyncio.Queue[str]", names: Sequence[str]) -> float:
    """Return how long Pods of these names take from their creation until all of them run."""
    container = {"name": "c", "image": "busybox", "command": ["sleep", "1000"]}
    began = time.perf_counter()
    waiting = set(names)
    for name in names:
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        await cluster.client.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    async with asyncio.timeout(PATIENCE):
        while waiting:
            waiting.discard(await news.get())
    return time.perf_counter() - began


async def _idle_part(cluster: LocalCluster) -> float:
    """Return which part of a CPU this process and the node's own take while nothing happens."""
    processes = [os.getpid(), *_below(cluster.hosted.node.pid)]
    before = sum(map(_cpu_seconds, processes))
    await asyncio.sleep(IDLE_SECONDS)
    return (sum(map(_cpu_seconds, processes)) - before) / IDLE_SECONDS


def _below(pid: int) -> list[int]:
    """Return a process and all below it, Pods included, which sleep."""
    found = [pid]
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += _below(int(child))
    return found


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
