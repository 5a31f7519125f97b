"""`eagleray why KIND/NAME`: what an object waits for, what would help, and what the operator does next."""

import sys
from typing import TYPE_CHECKING

from eagleray.cli.arguments import add_place

if TYPE_CHECKING:
    import argparse

    from eagleray.kube.access import Access
    from eagleray.why.kinds import Diagnosis

# Imports stand inside the functions: `--help` must not wait for the client.

EXIT_READY = 0
EXIT_NOT_READY = 1
EXIT_USAGE = 2


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    parser.add_argument("object", metavar="KIND/NAME", help="what to ask about, such as raycluster/hello")
    add_place(parser, "its namespace")


def run(arguments: "argparse.Namespace") -> int:
    """Print the report; 0 if the object is ready, 1 if not, 2 if it could not be asked about."""
    import asyncio

    from eagleray.cli.connecting import NotAsked, place_of
    from eagleray.why.kinds import UnknownKind, diagnosis_of
    from kubewire.names import dns1123_subdomain

    kind, slash, name = arguments.object.partition("/")
    if not slash or dns1123_subdomain(name):
        return _complaint(f"{arguments.object!r} is not KIND/NAME, such as raycluster/hello")
    try:
        diagnosis = diagnosis_of(kind)
        access, namespace = place_of(arguments)
    except (UnknownKind, NotAsked) as bad:
        return _complaint(str(bad))
    return asyncio.run(_ask(diagnosis, access, namespace, name))


async def _ask(diagnosis: "Diagnosis", access: "Access", namespace: str, name: str) -> int:
    from eagleray.cli.connecting import Connection
    from eagleray.why.reading import Reader
    from eagleray.why.report import lines
    from kubewire import errors

    async with Connection(access) as connection:
        reader = Reader(connection.client, connection.clock, connection.entropy)
        try:
            report = await diagnosis.diagnose(reader, namespace, name)
        except errors.NotFound:
            what = f"{diagnosis.resource.kind} {namespace}/{name}"
            return _complaint(f"there is no {what}, or its CRD is not installed")
        except (errors.ApiError, OSError) as refusal:
            return _complaint(str(refusal))
    print("\n".join(lines(report)))
    return EXIT_READY if report.is_ready else EXIT_NOT_READY


def _complaint(sentence: str) -> int:
    print(f"eagleray why: {sentence}", file=sys.stderr)
    return EXIT_USAGE
