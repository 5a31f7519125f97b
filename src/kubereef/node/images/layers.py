"""Layers: what each is made from, which is also its name in the store, and how it is made."""

import os
import platform
import re
import shutil
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import msgspec

from kubereef.node.images.control import Control
from kubereef.node.images.errors import BuildFailed
from kubereef.node.images.host import Base, write_base
from kubereef.node.images.pythons import Python, copy_python

_FORMAT = b"1\n"  # raise it when layers are made differently, so that old ones are not taken for new ones
_PIP_RAW_PROGRESS = (24, 1)  # the first pip that can report bytes in a readable way
_RAW_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_FOREIGN_PIP_SETTINGS = (
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_PYTHON",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_USER",
)
# Isolated from the user's settings, and writing no bytecode: that would name the directory of the build.
_CLEAN = ("-I", "-B")
_PIP_OPTIONS = ("--disable-pip-version-check", "--no-input")
_PIP_INSTALL = ("install", *_PIP_OPTIONS, "--no-compile", "--root-user-action=ignore")
_COPIED_AT_ONCE = 1 << 20
# How pip gets around the kernel's limit on a script's first line; inside the image the path is short.
_LONG_FIRST_LINE = re.compile(rb"'''exec' \"?([^\"\n]+?)\"? \"\$0\" \"\$@\"\n' '''\n")


class PythonLayer(msgspec.Struct, frozen=True, tag="python"):
    """A copy of a Python with packages."""

    python: Python
    prefix: str
    packages: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    owner: tuple[int, int] = (0, 0)
    home: str = "/root"  # the owner's; directories between it and the prefix are theirs too
    machine: str = platform.machine()


class WheelLayer(msgspec.Struct, frozen=True, tag="wheel"):
    """Files out of a wheel."""

    package: str
    files: dict[str, str]
    machine: str = platform.machine()


class ToolsLayer(msgspec.Struct, frozen=True, tag="tools"):
    """Small programs written in Python: name and text of each."""

    interpreter: str
    programs: dict[str, str]


Layer = Base | PythonLayer | WheelLayer | ToolsLayer


def layer_key(layer: Layer) -> str:
    """Return the name under which a layer is stored: equal for equal inputs, in every process."""
    return sha256(_FORMAT + msgspec.json.encode(layer, order="deterministic")).hexdigest()[:40]


def layer_title(layer: Layer) -> str:
    """Return what a list of layers says about this one."""
    match layer:
        case PythonLayer():
            packages = ", ".join(layer.packages)
            return f"Python {layer.python.version}" + (f" with {packages}" if packages else "")
        case WheelLayer():
            return f"programs of {layer.package}"
        case ToolsLayer():
            return "tools: " + ", ".join(sorted(layer.programs))
        case Base():
            return "the machine's programs"


def build_layer(layer: Layer, tree: Path, scratch: Path, control: Control) -> None:
    """Fill the empty directory `tree`; `scratch` is for what is needed only meanwhile."""
    match layer:
        case PythonLayer():
            _build_python(layer, tree, scratch, control)
        case WheelLayer():
            _build_wheel(layer, tree, scratch, control)
        case ToolsLayer():
            _build_tools(layer, tree)
        case Base():
            write_base(layer, tree)


def _build_python(layer: PythonLayer, tree: Path, scratch: Path, control: Control) -> None:
    place = tree / layer.prefix.lstrip("/")
    place.mkdir(parents=True)
    python = copy_python(layer.python, place, layer.prefix, control)
    if layer.packages:
        _install_pip(python, scratch, control)
        _install_packages(layer, python, scratch, control)
    for module in layer.imports:
        control.tell("checking", module)
        control.run([python, *_CLEAN, "-c", f"import {module}"], env=_environment())
    control.tell("compiling", layer.python.version)
    _compile(python, tree, place / "lib", control)
    _point_scripts_at(python.parent, tree)
    if os.geteuid() == 0 and layer.owner != (0, 0):
        _give_to(place, layer.owner, control)
        # A directory that is in several layers looks as in the topmost one, so the home has to be right here too.
        home = tree / layer.home.lstrip("/")
        for directory in (parent for parent in place.parents if parent.is_relative_to(home) and home != tree):
            os.chown(directory, *layer.owner)


def _install_pip(python: Path, scratch: Path, control: Control) -> None:
    control.tell("installing", "pip")
    run: list[str | Path] = [python, *_CLEAN, _runnable_pip(scratch), *_PIP_INSTALL]
    if wheel := _pip_wheel():
        control.run([*run, "--no-index", "--no-deps", wheel], env=_environment())
    # An index without pip is fine: the one that Python came with does.
    control.run([*run, "--upgrade", "pip"], env=_environment(), allow_failure=True)


def _install_packages(layer: PythonLayer, python: Path, scratch: Path, control: Control) -> None:
    install: list[str | Path] = [python, *_CLEAN, "-m", "pip", *_PIP_INSTALL]
    if _pip_version(python, control) >= _PIP_RAW_PROGRESS:
        install.append("--progress-bar=raw")
    limits = scratch / "constraints.txt"
    limits.write_text("".join(f"{line}\n" for line in layer.constraints))
    install += ["--only-binary=:all:", "--constraint", limits, *layer.packages]
    control.tell("resolving", ", ".join(layer.packages))
    try:
        control.run(install, env=_environment(), on_line=_pip_progress(control))
    except BuildFailed as failed:
        if type(failed) is not BuildFailed:
            raise
        raise BuildFailed(
            f"pip could not install {', '.join(layer.packages)} for Python {layer.python.minor}: {failed}; "
            "see that the version exists as a wheel and that pip reaches its package index"
        ) from failed


def _pip_wheel() -> Path | None:
    """The pip that comes inside this Python, for environments that have none yet."""
    bundled = sorted(Path(sysconfig.get_path("stdlib"), "ensurepip", "_bundled").glob("pip-*.whl"))
    return bundled[-1] if bundled else None


def _runnable_pip(scratch: Path) -> Path:
    """A pip that any Python can run, without anything else that is installed beside it."""
    if wheel := _pip_wheel():
        return wheel / "pip"
    spec = find_spec("pip")
    if spec is None or not spec.submodule_search_locations:
        raise BuildFailed(
            f"{sys.executable} has neither ensurepip nor pip; install your distribution's python3-venv or python3-pip"
        )
    copy = scratch / "pip"
    if not copy.exists():
        package = Path(spec.submodule_search_locations[0])
        shutil.copytree(package, copy / "pip")
        for about in package.parent.glob("pip-*.dist-info"):
            shutil.copytree(about, copy / about.name)
    return copy / "pip"


def _pip_version(python: Path, control: Control) -> tuple[int, ...]:
    found = re.search(
        r"pip (\d+)\.(\d+)", control.run([python, *_CLEAN, "-m", "pip", "--version"], env=_environment())
    )
    return tuple(map(int, found.groups())) if found else (0,)


def _pip_progress(control: Control) -> Callable[[str], None]:
    file = ""

    def on_line(line: str) -> None:
        nonlocal file
        word, _, rest = line.strip().partition(" ")
        if raw := _RAW_PROGRESS.fullmatch(line.strip()):
            control.tell("downloading", file, int(raw[1]), int(raw[2]))
        elif word == "Downloading":
            file = rest.partition(" ")[0].rpartition("/")[2]
            control.tell("downloading", file)
        elif word == "Collecting":
            control.tell("resolving", rest.partition(" ")[0])
        elif word == "Installing":
            control.tell("installing", rest.removeprefix("collected packages: "))

    return on_line


def _environment() -> dict[str, str]:
    """The process's environment, with its pip configuration, without what would lead another Python astray."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name not in _FOREIGN_PIP_SETTINGS
    }
    return {**kept, "PIP_USER": "0"}


def _compile(python: Path, tree: Path, library: Path, control: Control) -> None:
    # Layers are shared and read-only, so without this every container would compile what it imports. Tracebacks are
    # to name paths inside the image. Files that are templates and no Python fail, which is no harm.
    control.run(
        [python, *_CLEAN, "-m", "compileall", "-q", "-j", "0", "-s", tree, "-p", "/", library],
        env=_environment(),
        allow_failure=True,
    )


def _point_scripts_at(programs: Path, tree: Path) -> None:
    """Make console scripts start the interpreter where containers see it."""
    built_in = str(tree).encode()
    for script in sorted(programs.iterdir()):
        if script.is_symlink() or not script.is_file():
            continue
        with script.open("rb") as file:
            if file.read(2) != b"#!":
                continue
        head, newline, body = script.read_bytes().partition(b"\n")
        if head == b"#!/bin/sh" and (long := _LONG_FIRST_LINE.match(body)):
            head, body = b"#!" + long[1], body[long.end() :]
        script.write_bytes(head.replace(built_in, b"") + newline + body)


def _give_to(place: Path, owner: tuple[int, int], control: Control) -> None:
    os.lchown(place, *owner)
    for directory, folders, files in os.walk(place):
        control.check()
        for name in (*folders, *files):
            os.lchown(Path(directory, name), *owner)


def _build_wheel(layer: WheelLayer, tree: Path, scratch: Path, control: Control) -> None:
    control.tell("downloading", layer.package)
    target = scratch / "wheel"
    control.run(
        [sys.executable, *_CLEAN, _runnable_pip(scratch), "download", *_PIP_OPTIONS, "--no-deps",
         "--only-binary=:all:", "--dest", target, layer.package],
        env=_environment(),
        on_line=_pip_progress(control),
    )  # fmt: skip
    (wheel,) = target.iterdir()
    control.tell("unpacking", wheel.name)
    with _opened(wheel) as archive:
        for name, path in sorted(layer.files.items()):
            place = tree / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                packed = archive.open(name)
            except KeyError:
                raise BuildFailed(f"{wheel.name} has no file {name}; correct the recipe") from None
            with packed, place.open("wb") as unpacked:
                while chunk := packed.read(_COPIED_AT_ONCE):
                    control.check()
                    unpacked.write(chunk)
            place.chmod(0o755)


def _opened(wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except zipfile.BadZipFile as bad:
        raise BuildFailed(f"{wheel.name} is damaged: {bad}; empty pip's cache and try again") from bad


def _build_tools(layer: ToolsLayer, tree: Path) -> None:
    place = tree / "usr/local/bin"
    place.mkdir(parents=True)
    for name, text in layer.programs.items():
        (place / name).write_text(f"#!{layer.interpreter}\n{text}")
        (place / name).chmod(0o755)
