"""`eagleray job submit`: a command of the user's, run by Ray in a cluster, with the files around it."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from eagleray.cli.jobmanifest import Shape
    from eagleray.cli.submitting import Delivery, Submitting
    from eagleray.kube.access import Access

# Imports stand inside the functions: `--help` must not wait for the client.

EXIT_SUCCEEDED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

# The end of the log is read after Ray has told the end of the job; the cluster stays that long.
_TTL = 30
_SHAPE = (
    "image",
    "ray_version",
    "workers",
    "head_cpus",
    "head_memory",
    "worker_cpus",
    "worker_memory",
    "gpus",
)
_MOST_ENV = 2**20


class Wrong(Exception):
    """Flags with which nothing can be submitted; the message says what to mend."""


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the action."""
    parser.usage = "%(prog)s [FLAG ...] -- COMMAND [ARGUMENT ...]"
    parser.add_argument("--name", default="", help="the RayJob's name; by default one is made up")
    parser.add_argument(
        "--working-dir",
        default="",
        metavar="DIR",
        help="a directory whose files the job finds where it starts",
    )
    parser.add_argument(
        "--runtime-env", default="", metavar="FILE", help="a runtime environment of Ray, as YAML"
    )
    shape = parser.add_argument_group("the cluster that is made for the job")
    shape.add_argument("--image", help="the image of its Pods (rayproject/ray:RAY_VERSION)")
    shape.add_argument("--ray-version", help="the version of Ray (2.52.0)")
    shape.add_argument("--workers", type=int, metavar="N", help="how many workers (1)")
    shape.add_argument("--head-cpus", metavar="N", help="the processors of the head (1)")
    shape.add_argument("--head-memory", metavar="AMOUNT", help="the memory of the head (3Gi)")
    shape.add_argument("--worker-cpus", metavar="N", help="the processors of each worker (1)")
    shape.add_argument("--worker-memory", metavar="AMOUNT", help="the memory of each worker (2Gi)")
    shape.add_argument(
        "--gpus", type=int, metavar="N", help="the GPUs of each worker, or of the head if there are none (0)"
    )
    shape.add_argument(
        "--env", type=_variable, action="append", metavar="NAME=VALUE", help="a variable of all its Pods"
    )
    shape.add_argument("--keep-cluster", action="store_true", help="leave it running after the job")
    shape.add_argument(
        "--ttl",
        type=int,
        metavar="S",
        help=f"how many seconds it stays after the job, so that logs can be read ({_TTL})",
    )
    parser.add_argument("--cluster", default="", metavar="NAME", help="run in this RayCluster instead")
    parser.add_argument(
        "--no-wait",
        action="store_true",
        help="return once the job can do without you; else its log is followed",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the RayJob, and do nothing")
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), default="yaml", help="how --dry-run prints it"
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="what Ray is to run")


def run(arguments: "argparse.Namespace") -> int:
    """Submit; 0 if the job succeeded, or runs and was not to be waited for."""
    from eagleray.cli.connecting import NotAsked, place_of
    from eagleray.cli.workingdir import NotPacked

    try:
        if arguments.dry_run:
            manifest, _ = prepared(arguments, arguments.namespace)
            _print(manifest, arguments.output)
            return EXIT_SUCCEEDED
        access, namespace = place_of(arguments, arguments.name)
        manifest, delivery = prepared(arguments, namespace)
    except (Wrong, NotPacked, NotAsked) as bad:
        return _complaint(str(bad), EXIT_USAGE)
    return _submitted(access, manifest, delivery, wait=not arguments.no_wait)


def prepared(arguments: "argparse.Namespace", namespace: str) -> "tuple[dict[str, Any], Delivery | None]":
    """Return the RayJob that the flags ask for, and what is to be handed over to Ray with it."""
    import shlex
    from pathlib import Path

    from eagleray.cli.jobmanifest import Wish, job_manifest
    from eagleray.cli.submitting import Delivery
    from eagleray.cli.workingdir import packed
    from kubewire.sources import SystemEntropy

    shape = _shape(arguments)
    environment, text = _runtime_env(arguments.runtime_env)
    suffix = SystemEntropy().suffix(5)
    name = arguments.name or f"{_stem(arguments.command)}-{suffix}"
    delivery = None
    directory = arguments.working_dir
    if directory:
        excludes = environment.pop("excludes", None) or []
        if not isinstance(excludes, list) or not all(isinstance(one, str) for one in excludes):
            raise Wrong(f"{arguments.runtime_env}: excludes must be a list of patterns")
        delivery = Delivery(packed(Path(directory), excludes), environment)
    wish = Wish(
        name=name,
        namespace=namespace,
        # One word is a line for the shell; several are the words of a command.
        entrypoint=arguments.command[0] if len(arguments.command) == 1 else shlex.join(arguments.command),
        shape=shape,
        cluster=arguments.cluster,
        job_id=f"{name}-{SystemEntropy().suffix(5)}" if delivery is not None else "",
        runtime_env="" if delivery is not None else text,
        ttl=_TTL if arguments.ttl is None else arguments.ttl,
        keep_cluster=arguments.keep_cluster,
    )
    return job_manifest(wish), delivery


def _shape(arguments: "argparse.Namespace") -> "Shape | None":
    from eagleray.cli.jobmanifest import RAY_VERSION, Shape

    given = {name: value for name in _SHAPE if (value := getattr(arguments, name)) is not None}
    if arguments.cluster:
        more = [*given, *(name for name in ("env", "ttl") if getattr(arguments, name) is not None)]
        if more or arguments.keep_cluster:
            flag = f"--{more[0].replace('_', '-')}" if more else "--keep-cluster"
            raise Wrong(
                f"{flag} is about a cluster that is made for the job, and --cluster chooses one that is there"
            )
        return None
    if arguments.keep_cluster and arguments.ttl is not None:
        raise Wrong("--ttl says when the cluster goes, and --keep-cluster that it stays; choose one")
    for name in ("workers", "gpus", "ttl"):
        if (number := getattr(arguments, name)) is not None and number < 0:
            raise Wrong(f"--{name} {number}: choose 0 or more")
    given.setdefault("image", f"rayproject/ray:{given.get('ray_version', RAY_VERSION)}")
    return Shape(**given, env=dict(arguments.env or ()))


def _runtime_env(file: str) -> tuple[dict[str, Any], str]:
    """Return a runtime environment as a mapping and as it is written."""
    from pathlib import Path

    from kubewire.yamltext import YamlError, decode, load

    if not file:
        return {}, ""
    try:
        with Path(file).open("rb") as reader:
            text = decode(reader.read(_MOST_ENV))
        found = load(text)
    except OSError as bad:
        raise Wrong(f"--runtime-env {file}: {bad.strerror or bad}") from bad
    except YamlError as bad:
        raise Wrong(f"--runtime-env {file}: {bad}") from bad
    if not isinstance(found, dict):
        raise Wrong(f"--runtime-env {file}: this is no mapping, such as `pip: [requests]`")
    directory = found.get("working_dir")
    if isinstance(directory, str) and "://" not in directory:
        raise Wrong(
            f"--runtime-env {file}: working_dir {directory!r} is a directory; name it by --working-dir"
        )
    return found, text


def _variable(text: str) -> tuple[str, str]:
    import argparse

    name, sign, value = text.partition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _stem(command: list[str]) -> str:
    """Return a beginning for a name that tells what runs: the script, if there is one."""
    import re
    from pathlib import PurePath

    words = " ".join(command).split()
    script = next((word for word in words if word.endswith(".py")), words[0] if words else "job")
    stem = re.sub(r"[^a-z0-9]+", "-", PurePath(script).stem.lower()).strip("-")[:30].strip("-")
    return stem if stem and stem[0].isalpha() else "job"


def _submitted(access: "Access", manifest: dict[str, Any], delivery: "Delivery | None", *, wait: bool) -> int:
    import asyncio

    from eagleray.cli.connecting import Connection
    from eagleray.cli.jobactions import JobActions
    from eagleray.cli.submitting import Submitting

    made: list[Submitting] = []

    async def ask() -> int:
        async with Connection(access) as connection:
            actions = JobActions(connection.client, connection.transport, connection.clock)
            submitting = Submitting(
                actions, connection.client, connection.clock, printed=_print_output, said=_say
            )
            made.append(submitting)
            return await perform(submitting, manifest, delivery, wait=wait)

    try:
        return asyncio.run(ask())
    except KeyboardInterrupt:
        if made and made[0].is_created:
            for line in left_behind(manifest, is_submitted=made[0].is_submitted):
                _say(line)
        return EXIT_INTERRUPTED


async def perform(
    submitting: "Submitting", manifest: dict[str, Any], delivery: "Delivery | None", *, wait: bool
) -> int:
    """Submit to a cluster, and tell how that went; returns the exit code."""
    from eagleray.cli.jobactions import Refused
    from eagleray.cli.submitting import SUCCEEDED
    from eagleray.dashboard.errors import DashboardError, Unreachable
    from kubewire import errors

    name = manifest["metadata"]["name"]
    try:
        end = await submitting.run(manifest, delivery, wait=wait)
    except Refused as refused:
        return _complaint(str(refused))
    except Unreachable as silent:
        return _complaint(f"Ray's dashboard cannot be reached through the API server: {silent}")
    except DashboardError as refused:
        return _complaint(f"Ray refused: {refused}")
    except errors.NotFound as missing:
        return _complaint(f"the RayJob cannot be made, is its CRD installed? {missing}")
    except (errors.ApiError, OSError) as refusal:
        return _complaint(str(refusal))
    if end is None:
        for line in left_behind(manifest, is_submitted=True):
            _say(line)
        return EXIT_SUCCEEDED
    # Ray repeats the end of the log after the first line.
    because = next(iter(end.message.splitlines()), "")
    _say(f"rayjob.ray.io/{name}: {end.status}" + (f": {because}" if because else ""))
    return EXIT_SUCCEEDED if end.status == SUCCEEDED else EXIT_FAILED


def left_behind(manifest: dict[str, Any], *, is_submitted: bool) -> list[str]:
    """Return what to tell somebody who goes while a job is on its way."""
    name = manifest["metadata"]["name"]
    namespace = f"-n {manifest['metadata']['namespace']}"
    if not is_submitted:
        return [
            f"rayjob.ray.io/{name} was made, but its command was not submitted: nothing will run",
            f"  kubectl delete rayjob {name} {namespace}",
        ]
    return [
        f"rayjob.ray.io/{name} goes on",
        f"  eagleray job logs {name} {namespace} -f",
        f"  eagleray job stop {name} {namespace}",
    ]


def _print(manifest: dict[str, Any], output: str) -> None:
    if output == "json":
        import json

        print(json.dumps(manifest, indent=2))
        return
    import yaml

    print(yaml.safe_dump(manifest, sort_keys=False), end="")


def _print_output(text: str) -> None:
    print(text, end="", flush=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _complaint(sentence: str, status: int = EXIT_FAILED) -> int:
    print(f"eagleray job submit: {sentence}", file=sys.stderr)
    return status
