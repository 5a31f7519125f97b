"""Runs a program with an image as its root, in namespaces of its own that end with it."""

import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from kubereef.node.images import Image

_PROBE = """\
mount -t tmpfs none {place} && mkdir {place}/l {place}/u {place}/w {place}/m &&
mount -t overlay none -o lowerdir={place}/l,upperdir={place}/u,workdir={place}/w {place}/m
"""


@cache
def what_is_missing() -> str:
    """Why no image can be a root here; nothing when one can."""
    if os.geteuid() != 0:
        return "needs root to mount"
    if shutil.which("unshare") is None:
        return "needs the program unshare"
    with tempfile.TemporaryDirectory() as place:
        probe = subprocess.run(
            ["unshare", "--mount", "sh", "-c", _PROBE.format(place=shlex.quote(place))], capture_output=True
        )
    return "" if probe.returncode == 0 else f"needs overlay mounts: {probe.stderr.decode().strip()}"


def require_roots() -> None:
    if reason := what_is_missing():
        pytest.skip(reason)


def run_in(image: Image, argv: list[str], network: bool = False, timeout: float = 60) -> str:
    """Return what a program prints in the image, run as the image's user in its working directory."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place, "script")
        script.write_text(_script(image, argv, Path(place)))
        spaces = ["--mount", "--pid", "--fork", "--kill-child"] + ([] if network else ["--net"])
        done = subprocess.run(
            ["unshare", *spaces, "sh", "-e", str(script)],
            env=dict(image.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
        )
    output = done.stdout.decode()
    assert done.returncode == 0, output
    return output


def _script(image: Image, argv: list[str], place: Path) -> str:
    layers = ":".join(str(layer) for layer in image.layers)
    work = place / "work"  # a tmpfs of the script's own, so nothing of the mounts outlives it
    lines = [
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        f"mkdir {work} && mount -t tmpfs none {work} && mkdir {work}/up {work}/scratch {work}/root",
        f"mount -t overlay none -o lowerdir={layers},upperdir={work}/up,workdir={work}/scratch {work}/root",
    ]
    for bind in image.binds:
        target = f"{work}/root{bind.target}"
        lines.append(f"mount --bind {bind.source} {target} && mount -o remount,ro,bind {target}")
    lines.append(f"mount -t proc proc {work}/root/proc")
    # Devices of its own: the machine's are not to be within reach of what runs here.
    lines.append(f"mount -t tmpfs none {work}/root/dev && mkdir -m 1777 {work}/root/dev/shm")
    for name, minor in (("null", 3), ("zero", 5), ("random", 8), ("urandom", 9)):
        lines.append(f"mknod -m 666 {work}/root/dev/{name} c 1 {minor}")
    user = f"--userspec={image.user.uid}:{image.user.gid} --groups={image.user.gid}"
    env = " ".join(f"{name}={shlex.quote(value)}" for name, value in image.env.items())
    command = shlex.join(["sh", "-c", f"cd {image.workdir} && exec {shlex.join(argv)}"])
    lines.append(f"exec chroot {user} {work}/root /usr/bin/env -i {env} {command}")
    return "\n".join(lines)
