"""Tests that run in a network namespace of their own, in a process of their own.

`@in_namespace` makes a coroutine a test that starts a child process, which enters a new namespace before anything else,
runs the coroutine there, and ends; whatever it made ends with it. The abilities it needs are probed for real first.
"""

import asyncio
import ctypes
import functools
import importlib.util
import inspect
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[4]
_SECONDS = 60
_CLONE_NEWNET = 0x40000000


def in_namespace(*needs):
    """Mark a coroutine as one that runs inside; `needs` are names of abilities besides namespaces and links."""

    def decorate(function):
        @functools.wraps(function)
        def test():
            missing = {
                name: why for name, why in abilities().items() if name in ("namespaces", "links", *needs)
            }
            if missing:
                pytest.skip("; ".join(f"the kernel refuses {name}: {why}" for name, why in missing.items()))
            path = Path(inspect.getfile(function))
            ended = _child(str(path), function.__name__)
            if ended.returncode:
                pytest.fail(f"inside the namespace:\n{ended.stdout}{ended.stderr}", pytrace=False)

        # pytest must see a plain function: the wrapped one is a coroutine.
        del test.__wrapped__
        vars(test)["inside"] = function
        return test

    return decorate


@functools.cache
def abilities():
    """What the machine lacks, and why, as found by a process of its own."""
    ended = _child("probe")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def _child(*arguments):
    command = [sys.executable, "-W", "error", "-m", "tests.kubereef.node.network.inside", *arguments]
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}", "PYTHONASYNCIODEBUG": ""}
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _main(arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(1, signal.SIGKILL)  # a test run that is killed takes its children along
    if arguments == ["probe"]:
        from kubereef.node.network import probe

        print(json.dumps(probe().missing))
        return
    path, name = arguments
    if libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    spec = importlib.util.spec_from_file_location("scenario", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scenario"] = module
    spec.loader.exec_module(module)
    asyncio.run(getattr(module, name).inside())


if __name__ == "__main__":
    _main(sys.argv[1:])
