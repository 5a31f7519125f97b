"""The wheel, installed into an environment that has nothing else: everything that users call is there and works."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import PathDistribution, distribution
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eagleray import __version__

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("kubewire", "kubereef", "eagleray")
PATIENCE = 120
# What of this process would show in one of the fresh environment, or keep its modules from being compiled once for all.
OURS = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
for name in ("kubewire", "kubereef", "eagleray"):
    package = importlib.import_module(name)
    assert package.__file__.startswith(sys.prefix), package.__file__
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""

USER_PROGRAM = """\
from eagleray.rayapi.rules import ValidationConfig
from eagleray.rayapi.validate import validate_object
problems: list[str] = [str(one) for one in validate_object({}, ValidationConfig()).problems]
"""


class Installed(NamedTuple):
    """An environment with the wheel in it."""

    wheel: Path
    bin: Path
    elsewhere: Path  # a directory that is not the checkout

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        variables = {name: value for name, value in os.environ.items() if name not in OURS}
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=self.elsewhere,
            env=variables,
        )


def needed(name: str, found: dict[str, PathDistribution]) -> Iterator[PathDistribution]:
    """Yield what a distribution needs at run time, as it is installed here, which is as the lock says."""
    for text in distribution(name).requires or ():
        wanted = Requirement(text)
        applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if applies and canonicalize_name(wanted.name) not in found:
            there = distribution(wanted.name)
            assert isinstance(there, PathDistribution)
            found[canonicalize_name(wanted.name)] = there
            yield there
            yield from needed(wanted.name, found)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)]
    subprocess.run(command, check=True, capture_output=True, cwd=REPOSITORY, timeout=PATIENCE)
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment: the wheel by pip, and beside it what it needs, copied from here and not from a network."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=PATIENCE)
    python = place / "bin" / "python"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"),
            *("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", str(wheel)),
        ],
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    (site,) = (place / "lib").glob("python*/site-packages")
    for there in needed("eagleray", {}):
        for file in there.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(Path(str(file.locate())))
    return Installed(wheel, place / "bin", tmp_path_factory.mktemp("elsewhere"))


# --- what is in it


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_packages_is_inside(names):
    wanted = {
        str(file.relative_to(REPOSITORY / "src"))
        for package in PACKAGES
        for file in (REPOSITORY / "src" / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert wanted <= names


@pytest.mark.parametrize(
    "name",
    [
        *(f"{package}/py.typed" for package in PACKAGES),
        "kubewire/data/definitions-1.36.json",
        "kubereef/node/images/recipes.yaml",
    ],
)
def test_types_and_data_are_inside(names, name):
    assert name in names


def test_nothing_else_is_inside(names):
    tops = {name.partition("/")[0] for name in names}
    assert tops == {*PACKAGES, f"eagleray-{__version__}.dist-info"}
    assert not [name for name in names if "test" in name.rpartition("/")[2] or name.endswith(".pyc")]


# --- what it does


def test_the_command_tells_its_version(installed):
    assert installed.run("eagleray", "--version").stdout == f"eagleray {__version__}\n"


def test_manifests_are_validated(installed):
    done = installed.run("eagleray", "validate", str(REPOSITORY / "examples" / "hello.yaml"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "text"),
    [
        pytest.param(("eagleray", "operator", "--help"), "--enable-leader-election", id="the operator"),
        pytest.param(("eagleray", "run", "--help"), "usage: eagleray run", id="running a manifest"),
        pytest.param(("python", "-m", "kubereef", "--help"), "--data-dir", id="the embedded Kubernetes"),
        pytest.param(("eagleray-submitter", "--help"), "--runtime-env-json", id="the submitter"),
    ],
)
def test_commands_tell_how_they_are_used(installed, command, text):
    done = installed.run(*command)
    assert done.returncode == 0, done.stderr
    assert text in done.stdout


def test_crds_can_be_made_of_it(installed):
    program = (
        "from eagleray.rayapi.crd import crd; from eagleray.rayapi.kinds import KINDS;"
        " print(*(crd(kind)['metadata']['name'] for kind in KINDS))"
    )
    done = installed.run("python", "-c", program)
    assert done.stdout.split() == [
        *("rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io", "raycronjobs.ray.io")
    ], done.stderr


@pytest.mark.heavy
def test_every_module_can_be_imported(installed):
    done = installed.run("python", "-W", "error", "-c", IMPORT_EVERYTHING)
    assert done.returncode == 0, done.stderr


@pytest.mark.heavy
def test_programs_of_users_are_checked_against_its_types(installed, tmp_path):
    (tmp_path / "right.py").write_text(USER_PROGRAM)
    (tmp_path / "wrong.py").write_text(USER_PROGRAM.replace("ValidationConfig())", "None)"))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    command += ["--python-executable", str(installed.bin / "python"), "right.py", "wrong.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    (error, total) = done.stdout.splitlines()
    assert error.startswith('wrong.py:3: error: Argument 2 to "validate_object" has incompatible type "None"')
    assert total == "Found 1 error in 1 file (checked 2 source files)"
