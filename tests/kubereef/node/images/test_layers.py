"""Layers are what their recipe says: a Python that works where it stands, programs out of wheels, tools."""

import os
import subprocess
import sys

import pytest

from kubereef.node.images import Progress
from kubereef.node.images.elf import read_dynamic, replace_search_path
from kubereef.node.images.errors import BuildFailed
from kubereef.node.images.layers import (
    PythonLayer,
    ToolsLayer,
    WheelLayer,
    _install_packages,
    build_layer,
    layer_key,
    layer_title,
)
from kubereef.node.images.pythons import Python, describe_python, find_python
from tests.kubereef.node.images.making import control, make_wheel

MODULE = "import sys\nVALUE = 42\ndef main():\n    print('greetings from', sys.prefix)\n"


def build(layer, folder, reports=None):
    tree, scratch = folder / "tree", folder / "scratch"
    tree.mkdir(parents=True)
    scratch.mkdir()
    build_layer(layer, tree, scratch, control(reports))
    return tree


def out(*argv):
    return subprocess.run(
        [str(part) for part in argv], capture_output=True, check=True, timeout=30
    ).stdout.decode()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One Python layer for all tests of it, with one package from an index of our own, and what was reported."""
    folder = tmp_path_factory.mktemp("a folder with a rather long name and spaces")
    make_wheel(folder / "wheels", "greeter", "1.0", {"greeter.py": MODULE}, script="greet")
    make_wheel(folder / "wheels", "greeter", "2.0", {"greeter.py": "raise SystemExit('too new')"})
    reports: list[Progress] = []
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PIP_NO_INDEX", "1")
        environment.setenv("PIP_FIND_LINKS", (folder / "wheels").as_uri())
        environment.setenv("PIP_TARGET", "/nowhere")
        environment.setenv("PYTHONHOME", "")
        layer = PythonLayer(
            find_python(),
            prefix="/home/ray/anaconda3",
            packages=("greeter",),
            constraints=("greeter<2",),
            imports=("greeter",),
            owner=(1000, 100),
            home="/home/ray",
        )
        return build(layer, folder, reports), reports


def test_the_copy_is_a_python_of_its_own(made):
    tree, _ = made
    place = tree / "home/ray/anaconda3"
    facts = out(
        place / "bin/python", "-I", "-c", "import sys, os; print(sys.prefix, sys.base_prefix, os.__file__)"
    )
    assert facts.rstrip("\n") == f"{place} {place} {place}/lib/python{find_python().minor}/os.py"


def test_the_copy_has_its_extension_modules(made):
    tree, _ = made
    out(
        tree / "home/ray/anaconda3/bin/python", "-I", "-c", "import ssl, ctypes, zlib, sqlite3, json, asyncio"
    )


def test_the_copy_uses_no_library_of_the_original(made):
    tree, _ = made
    binary = tree / f"home/ray/anaconda3/bin/python{find_python().minor}"
    linked = out("ldd", binary)
    assert find_python().prefix == "/usr" or find_python().prefix not in linked


def test_packages_are_installed_within_their_constraints(made):
    tree, _ = made
    value = out(tree / "home/ray/anaconda3/bin/python", "-I", "-c", "import greeter; print(greeter.VALUE)")
    assert value == "42\n"


def test_console_scripts_start_the_interpreter_where_containers_see_it(made):
    tree, _ = made
    lines = (tree / "home/ray/anaconda3/bin/greet").read_text().splitlines()
    assert lines[0] == f"#!/home/ray/anaconda3/bin/python{find_python().minor}"
    assert "import" in "".join(lines[1:4])
    compile("\n".join(lines), "greet", "exec")


def test_nothing_that_is_run_names_the_place_where_it_was_built(made):
    tree, _ = made
    programs = tree / "home/ray/anaconda3/bin"
    assert not [file for file in programs.iterdir() if str(tree).encode() in file.read_bytes()]


def test_code_is_compiled_under_the_names_that_containers_see(made):
    tree, _ = made
    (compiled,) = tree.glob("home/ray/anaconda3/lib/python3*/*-packages/__pycache__/greeter.*.pyc")
    assert b"/home/ray/anaconda3/lib/" in compiled.read_bytes()
    assert str(tree).encode() not in compiled.read_bytes()


def test_pip_is_there(made):
    tree, _ = made
    assert "pip" in out(tree / "home/ray/anaconda3/bin/python", "-I", "-m", "pip", "--version")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")
def test_the_copy_and_the_home_around_it_belong_to_the_user(made):
    tree, _ = made
    for path in ("home/ray", "home/ray/anaconda3", "home/ray/anaconda3/bin/greet"):
        assert ((tree / path).stat().st_uid, (tree / path).stat().st_gid) == (1000, 100)
    assert (tree / "home").stat().st_uid == 0


def test_the_stages_of_a_build_are_reported(made):
    _, reports = made
    stages = list(dict.fromkeys(report.stage for report in reports))
    assert [stage for stage in stages if stage != "downloading"] == [
        "copying Python",
        "installing",
        "resolving",
        "checking",
        "compiling",
    ]


def test_a_package_that_is_not_to_be_had_names_the_way_out(made, tmp_path, wheels):
    tree, _ = made
    layer = PythonLayer(find_python(), "/home/ray/anaconda3", packages=("nothing==1",))
    with pytest.raises(BuildFailed, match=r"pip could not install nothing==1(.|\n)*package index"):
        _install_packages(layer, tree / "home/ray/anaconda3/bin/python", tmp_path, control())


def test_files_come_out_of_a_wheel_as_programs(tmp_path, wheels):
    make_wheel(wheels, "packed", "1.0", {"packed/bin/server": "#!/bin/sh\necho serving\n"})
    layer = WheelLayer("packed==1.0", {"packed/bin/server": "/usr/local/bin/server"})
    tree = build(layer, tmp_path / "work")
    assert out(tree / "usr/local/bin/server") == "serving\n"


def test_a_file_that_a_wheel_lacks_is_named(tmp_path, wheels):
    make_wheel(wheels, "packed", "1.0", {"packed/__init__.py": ""})
    with pytest.raises(BuildFailed, match="has no file packed/bin/none"):
        build(WheelLayer("packed==1.0", {"packed/bin/none": "/usr/local/bin/none"}), tmp_path / "work")


def test_tools_are_programs_of_the_image(tmp_path):
    tree = build(ToolsLayer(sys.executable, {"hello": "print('hello')\n"}), tmp_path / "work")
    assert out(tree / "usr/local/bin/hello") == "hello\n"


def test_equal_layers_have_equal_keys_and_a_change_of_any_input_another():
    python = find_python()
    layer = PythonLayer(python, "/opt/python", packages=("a",))
    assert layer_key(layer) == layer_key(PythonLayer(python, "/opt/python", packages=("a",)))
    others = [
        PythonLayer(python, "/opt/python", packages=("b",)),
        PythonLayer(python, "/opt/python", packages=("a",), constraints=("c<1",)),
        PythonLayer(Python(**{**_fields(python), "build": "another"}), "/opt/python", packages=("a",)),
    ]
    assert len({layer_key(layer), *map(layer_key, others)}) == 4
    assert layer_title(layer) == f"Python {python.version} with a"


def _fields(python):
    return {name: getattr(python, name) for name in python.__struct_fields__}


def test_a_python_that_the_machine_lacks_is_replaced_by_its_own():
    assert find_python("3.2").minor == find_python().minor == f"3.{sys.version_info.minor}"


@pytest.mark.parametrize("program", ["/bin/false", "/nonexistent/python", "/bin/echo"])
def test_what_is_no_python_is_not_taken_for_one(program):
    assert describe_python(program) is None


def test_a_search_path_is_replaced_only_where_it_fits(made, tmp_path):
    tree, _ = made
    original = tree / f"home/ray/anaconda3/bin/python{find_python().minor}"
    if not read_dynamic(original).search_path:
        pytest.skip("this machine's Python has no search path for libraries")
    copy = tmp_path / "python"
    copy.write_bytes(original.read_bytes())
    assert replace_search_path(copy, "$ORIGIN")
    assert read_dynamic(copy).search_path == "$ORIGIN"
    assert not replace_search_path(copy, "/a/much/longer/path/than/there/is/room/for")
    assert read_dynamic(copy).search_path == "$ORIGIN"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"#!/bin/sh\n", id="a script"),
        pytest.param(b"\x7fELF", id="only a magic number"),
        pytest.param(b"\x7fELF\x02\x01" + b"\xff" * 200, id="numbers that lead outside the file"),
    ],
)
def test_what_is_no_program_wants_nothing(tmp_path, content):
    file = tmp_path / "file"
    file.write_bytes(content)
    assert read_dynamic(file).needed == ()
