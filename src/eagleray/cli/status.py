"""`eagleray status`: how the kept cluster is."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from eagleray.local.kept import State
    from eagleray.local.overview import NodeView, ObjectView, Overview

# Imports stand inside the functions: `--help` must not wait for the client.

EXIT_RUNNING = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_RUNNING = 3

_MOST_ROWS = 50
_GIB = 2**30


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    from eagleray.cli.localflags import add_place_flags

    add_place_flags(parser)
    parser.add_argument("-o", "--output", choices=("json",), default="", help="print it for a program")


def run(arguments: "argparse.Namespace") -> int:
    """Tell how the cluster is; 0 if it runs, 3 if it does not, 1 or 2 if that cannot be told."""
    import asyncio
    import os

    from eagleray.local.kept import KeptError, find, place_of

    try:
        place = place_of(arguments.name, arguments.data_dir, os.environ)
    except KeptError as bad:
        return _complaint(str(bad), EXIT_USAGE)
    try:
        state = find(place)
    except KeptError as bad:
        return _complaint(str(bad), EXIT_FAILED)
    found = asyncio.run(_gathered(state))
    if arguments.output == "json":
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        from kubewire.sources import SystemClock

        print("\n".join(lines(found, SystemClock().now())))
    return EXIT_RUNNING if state.is_running else EXIT_NOT_RUNNING


async def _gathered(state: "State") -> "Overview":
    import os

    from eagleray.cli.connecting import Connection
    from eagleray.kube.access import ConfigError
    from eagleray.kube.kubeconfig import find_access
    from eagleray.local.overview import ask, of_state
    from kubewire.sources import SystemClock

    found = of_state(state)
    record = state.record
    if not state.is_running or record is None:
        return found
    # Its own kubeconfig is root's; whoever has the context can use that.
    own = os.access(record.kubeconfig, os.R_OK)
    try:
        if not own and not record.context_file:
            raise ConfigError(f"{record.kubeconfig} is root's, and there is no context")
        access = find_access(
            os.environ,
            SystemClock(),
            kubeconfig=record.kubeconfig if own else record.context_file,
            context="" if own else state.place.name,
        )
    except ConfigError as bad:
        found.unknown += (f"what runs in it: {bad}",)
        return found
    async with Connection(access) as connection:
        await ask(found, connection.client, record.cpu_factor)
    return found


def lines(found: "Overview", now: "datetime") -> "Iterator[str]":
    """Yield an overview as lines for a reader."""
    from eagleray.cli.tables import size, span
    from kubewire.times import parse_time

    if found.state == "running":
        since = span(now - parse_time(found.since))
        yield f"{found.name}: running for {since} as process {found.pid}, version {found.version}"
        yield f"  url         {found.url}"
        yield f"  kubeconfig  {found.kubeconfig}"
        yield f"  context     {f'{found.context} in {found.context_file}' if found.context else 'none'}"
    elif found.state == "starting":
        yield f"{found.name}: starting, as process {found.pid}"
    elif found.state == "crashed":
        yield f"{found.name}: not running; its process ended without a word (see {found.log})"
        yield "  eagleray up starts it again with all its objects, eagleray down clears up after it"
    else:
        yield f"{found.name}: not running"
    if found.directory_bytes is not None:
        yield f"  data        {found.directory} ({size(found.directory_bytes)})"
        yield f"  log         {found.log}"
    if found.node is not None:
        yield from _node_lines(found.node)
    if found.pods is not None:
        yield from _table("Pods", found.pods, now, with_kind=False)
    if found.ray_objects is not None:
        yield from _table("Ray objects", found.ray_objects, now, with_kind=True)
    if found.images:
        yield from ("", "Images")
        from eagleray.cli.tables import table

        rows = [(one.reference, size(one.bytes)) for one in found.images]
        yield from (f"  {line}" for line in table(rows, 0))
    for sentence in found.unknown:
        yield f"not known: {sentence}"


def _node_lines(node: "NodeView") -> "Iterator[str]":
    from eagleray.cli.tables import table

    ready = next((one for one in node.conditions if one.type == "Ready"), None)
    is_ready = ready is not None and ready.status == "True"
    yield from ("", f"Node {node.name}: {'ready' if is_ready else 'not ready'}")
    rows = [("RESOURCE", "CAPACITY", "ALLOCATED", "")]
    for name, amount in node.capacity.items():
        remark = f"{node.cpu_factor:g} times the processors there are" if name == "cpu" else ""
        rows.append((name, _amount(name, amount), _amount(name, node.allocated.get(name, "0")), remark))
    yield from (f"  {line}" for line in table(rows, 0))
    for one in node.conditions:
        # These are well when they hold; all others, such as DiskPressure, when they do not.
        is_well = (one.status == "True") == (one.type in ("Ready", "LimitsEnforced"))
        if one.type == "LimitsEnforced" or not is_well:
            yield f"  {one.type}={one.status}: {one.message}"


def _amount(resource: str, text: str) -> str:
    from kubewire.quantity import Quantity

    if resource in ("memory", "ephemeral-storage"):
        return f"{float(Quantity.parse(text)) / _GIB:.1f} GiB"
    return text


def _table(title: str, found: "Sequence[ObjectView]", now: "datetime", *, with_kind: bool) -> "Iterator[str]":
    from eagleray.cli.tables import span, table
    from kubewire.times import parse_time

    yield ""
    if not found:
        yield f"{title}: none"
        return
    yield title
    rows = [("KIND", "NAMESPACE", "NAME", "STATE", "AGE")]
    rows += [
        (one.kind, one.namespace, one.name, one.state, span(now - parse_time(one.created)))
        for one in found[:_MOST_ROWS]
    ]
    yield from (f"  {line}" for line in table(rows, 0 if with_kind else 1))
    if len(found) > _MOST_ROWS:
        yield f"  and {len(found) - _MOST_ROWS} more"


def _complaint(sentence: str, status: int) -> int:
    print(f"eagleray status: {sentence}", file=sys.stderr)
    return status
