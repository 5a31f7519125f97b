"""What a node and its Pods are on the machine: what there is while they live, and what is to be gone with them."""

import subprocess
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.kubereef.node.machine.realnode import cgroups_of, family, namespaces, oldest_child_of

_LISTENS = "0A"  # the state of a socket, in /proc/net/tcp


class Traces(NamedTuple):
    """What Pods leave on a machine for as long as they live."""

    processes: frozenset[object]
    namespaces: frozenset[str]
    mounts: frozenset[str]
    links: frozenset[str]
    addresses: frozenset[str]
    listeners: frozenset[str]
    cgroups: frozenset[str]

    def beyond(self, earlier: "Traces") -> dict[str, frozenset[object]]:
        """Return what is here and was not there; empty when nothing is."""
        more = {name: now - then for name, now, then in zip(self._fields, self, earlier, strict=True)}
        return {name: things for name, things in more.items() if things}


def traces_of(kubereef: int) -> Traces:
    """Return what is on the machine for the node and the Pods of a Kubereef, which is named by its process."""
    processes = family(kubereef)
    threads = [thread for number, _ in processes for thread in _threads(number)]
    first, program = _node_of(kubereef)
    networks = _networks(program)
    cgroups = [path for top in cgroups_of(kubereef) for path in top.rglob("*") if path.is_dir()]
    return Traces(
        processes=frozenset(processes),
        namespaces=frozenset(namespaces(threads)),
        mounts=frozenset(_mounts(first)),
        links=frozenset(link for network in networks for link in _links(network)),
        addresses=frozenset(address for network in networks for address in _addresses(network)),
        listeners=frozenset(listener for network in networks for listener in _listeners(network)),
        cgroups=frozenset(map(str, cgroups)),
    )


def _node_of(kubereef):
    """Return process 1 of the node, which is in its namespaces, and the program of the node below it."""
    first = oldest_child_of(
        oldest_child_of(kubereef)
    )  # a child of the one that holds the namespaces from outside
    return first, oldest_child_of(first)


def _threads(pid):
    with suppress(OSError):  # it may have ended
        return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    return []


def _mounts(pid):
    return [line.split()[4] for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]


def _networks(pid):
    """Return where the network namespaces are found that a process has entered or holds open, but for the host's."""
    found: dict[str, Path] = {}
    for path in (Path(f"/proc/{pid}/ns/net"), *Path(f"/proc/{pid}/fd").iterdir()):
        with suppress(OSError):  # it may have been closed
            found.setdefault(path.readlink().name, path)
    host = Path("/proc/self/ns/net").readlink().name
    return [path for name, path in found.items() if name.startswith("net:[") and name != host]


def _seen_in(network, file):
    """Return the lines of a file of /proc/net as it is seen in a network namespace; none if that has just gone."""
    command = ("nsenter", f"--net={network}", "cat", f"/proc/net/{file}")
    ended = subprocess.run(command, capture_output=True, text=True)
    return ended.stdout.splitlines() if ended.returncode == 0 else []


def _links(network):
    return [line.partition(":")[0].strip() for line in _seen_in(network, "dev")[2:]]


def _addresses(network):
    """Return the addresses that are local in a network namespace."""
    lines = [line.strip() for line in _seen_in(network, "fib_trie")]
    return [before.removeprefix("|-- ") for before, line in pairwise(lines) if line.endswith("host LOCAL")]


def _listeners(network):
    """Return where somebody listens in a network namespace, as the kernel writes it."""
    rows = [line.split() for file in ("tcp", "tcp6") for line in _seen_in(network, file)[1:]]
    return [row[1] for row in rows if row[3] == _LISTENS]
