"""The Pythons of this machine, and copies of them that work from another directory.

A copy is a plain installation of its own (`sys.prefix` is where it stands), not a virtual environment: nothing in
it points back to the machine's Python, which may live in a home directory.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from kubereef.node.images.control import Control
from kubereef.node.images.elf import read_dynamic, replace_search_path
from kubereef.node.images.errors import BuildFailed

_DESCRIBE_TIMEOUT = 20.0
_DESCRIBE = """\
import json, os, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
    "version": sys.version.split()[0].rstrip("+"),
    "build": sys.version,
    "executable": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
    "prefix": sys.base_prefix,
    "stdlib": os.path.realpath(paths["stdlib"]),
    "platstdlib": os.path.realpath(sysconfig.get_path("platstdlib", vars={"platbase": sys.base_exec_prefix})),
    "include": paths["include"],
    "scheme": sysconfig.get_preferred_scheme("prefix"),
}))
"""

# Parts of the standard library that no program imports: its tests, editors' files and the static library.
_SKIPPED_DIRECTORIES = frozenset(
    {"test", "tests", "idlelib", "turtledemo", "site-packages", "dist-packages", "__pycache__"}
)
_SKIPPED_SUFFIXES = (".a", ".o", ".pyc")
_MANAGED = "EXTERNALLY-MANAGED"  # a distribution's request not to install into its Python; the copy is ours
_SYSTEM_PREFIXES = ("/usr", "/")  # libraries of these are the base's: every image sees them


class Python(msgspec.Struct, frozen=True):
    """A Python of this machine."""

    version: str  # 3.11.7
    build: str  # what sys.version says: tells two builds of one version apart
    executable: str
    prefix: str
    stdlib: str
    platstdlib: str
    include: str
    scheme: str  # where pip installs: posix_prefix, or posix_local with Debian's patches

    @property
    def minor(self) -> str:
        """The version as images are tagged with it: 3.11."""
        return ".".join(self.version.split(".")[:2])


def describe_python(executable: str | Path) -> Python | None:
    """Return what is to know about a Python, or None when it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603 - a Python of this machine, no shell
            [str(executable), "-I", "-S", "-c", _DESCRIBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DESCRIBE_TIMEOUT,
            check=True,
        )
        return msgspec.json.decode(answer.stdout, type=Python)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return None  # such as a version manager's stand-in for a Python that is not installed


def find_python(minor: str = "") -> Python:
    """Return a Python of that minor version (3.11), or the one that runs this process when there is none."""
    own = describe_python(sys.executable)
    if own is None:
        raise BuildFailed(f"{sys.executable} does not start, so no image can carry a copy of it")
    if minor in ("", own.minor):
        return own
    path = shutil.which(f"python{minor}")
    found = describe_python(path) if path else None
    return found if found is not None and found.minor == minor else own


def copy_python(python: Python, place: Path, prefix: str, control: Control) -> Path:
    """Copy a Python into the directory `place`, which images show as `prefix`; return the copy's executable."""
    control.tell("copying Python", python.version)
    library = place / "lib" / f"python{python.minor}"
    (place / "bin").mkdir(parents=True)
    executable = place / "bin" / f"python{python.minor}"
    shutil.copy(python.executable, executable)
    for alias in ("python3", "python"):
        (place / "bin" / alias).symlink_to(executable.name)
    _copy_tree(Path(python.stdlib), library, control)
    if python.platstdlib != python.stdlib:
        _copy_tree(Path(python.platstdlib), library, control)
    if Path(python.include).is_dir():
        _copy_tree(Path(python.include), place / "include" / f"python{python.minor}", control)
    if python.scheme == "posix_local":
        # Debian's Python installs into prefix/local and imports from there; here both are one place.
        (place / "local").symlink_to(".")
    (library / ("dist-packages" if python.scheme == "posix_local" else "site-packages")).mkdir(exist_ok=True)
    _bring_libraries(python, place, executable, library)
    _rewrite_prefix(library, python.prefix, prefix)
    return executable


def _copy_tree(source: Path, target: Path, control: Control) -> None:
    for directory, folders, files in os.walk(source):
        control.check()
        folders[:] = sorted(set(folders) - _SKIPPED_DIRECTORIES)
        here = target / Path(directory).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        for name in files:
            file = Path(directory, name)
            # Links are followed: what they point to may be outside what images see.
            if name != _MANAGED and not name.endswith(_SKIPPED_SUFFIXES) and file.is_file():
                shutil.copy2(file, here / name)


def _bring_libraries(python: Python, place: Path, executable: Path, library: Path) -> None:
    """Copy the libraries that the Python's own directory holds, and make programs find them in the copy."""
    programs = [executable, *sorted((library / "lib-dynload").glob("*.so"))]
    own = Path(python.prefix, "lib")
    if python.prefix not in _SYSTEM_PREFIXES:
        seen: set[str] = set()
        for program in programs:  # grows while it is walked: libraries want libraries
            for name in read_dynamic(program).needed:
                if name not in seen and (own / name).is_file():
                    seen.add(name)
                    shutil.copy2(own / name, place / "lib" / name)
                    programs.append(place / "lib" / name)
    for program in programs:
        wanted = read_dynamic(program).search_path
        if not wanted.startswith(python.prefix.rstrip("/") + "/") or python.prefix in _SYSTEM_PREFIXES:
            continue
        up = os.path.relpath(place / "lib", program.parent)
        if not replace_search_path(program, f"$ORIGIN/{up}") and program == executable:
            raise BuildFailed(
                f"{python.executable} looks for its library in {wanted}, which cannot be changed in a copy; "
                "use a Python that was installed in a longer path, or the system's"
            )


def _rewrite_prefix(library: Path, old: str, new: str) -> None:
    """Tell the copy's build settings where it stands, so that what is built with it looks in the right place."""
    if old in _SYSTEM_PREFIXES:
        return  # "/usr" is part of too many paths that are meant
    for settings in (*library.glob("_sysconfigdata*.py"), *library.glob("config-*/Makefile")):
        text = settings.read_text(errors="surrogateescape")
        settings.write_text(text.replace(old, new), errors="surrogateescape")
