"""A directory as a package: the same for the same files, without what is to stay behind, and never too large."""

import io
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagleray.cli.ignoring import read_rules, verdict
from eagleray.cli.workingdir import NotPacked, packed


@pytest.fixture
def tree(tmp_path):
    """Make files by their names, with a content of their own if it is given."""

    def make(*names, **contents):
        for name in (*names, *contents):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(contents.get(name, name))
        return tmp_path

    return make


def files(package):
    with zipfile.ZipFile(io.BytesIO(package.data)) as archive:
        return sorted(name for name in archive.namelist() if not name.endswith("/"))


def test_all_files_are_in_it_with_what_they_hold(tree):
    package = packed(tree("main.py", "lib/helper.py"))
    assert files(package) == ["lib/helper.py", "main.py"]
    with zipfile.ZipFile(io.BytesIO(package.data)) as archive:
        assert archive.read("lib/helper.py") == b"lib/helper.py"
    assert package.uri == f"gcs://{package.name}"
    assert package.name.startswith("_ray_pkg_")
    assert package.name.endswith(".zip")


def test_the_same_files_make_the_same_package(tree):
    directory = tree("a.py", "b/c.py")
    first = packed(directory)
    os.utime(directory / "a.py", (1, 1))
    assert packed(directory) == first


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda top: (top / "a.py").write_text("other"), id="another content"),
        pytest.param(lambda top: (top / "a.py").rename(top / "z.py"), id="another name"),
        pytest.param(lambda top: (top / "a.py").chmod(0o755), id="a program"),
        pytest.param(lambda top: (top / "empty").mkdir(), id="one more directory"),
    ],
)
def test_another_name_stands_for_other_files(tree, change):
    directory = tree("a.py", "b/c.py")
    before = packed(directory).name
    change(directory)
    assert packed(directory).name != before


def test_programs_stay_programs(tree):
    directory = tree("run.sh", "data.txt")
    (directory / "run.sh").chmod(0o700)
    with zipfile.ZipFile(io.BytesIO(packed(directory).data)) as archive:
        modes = {info.filename: info.external_attr >> 16 & 0o777 for info in archive.infolist()}
    assert modes == {"run.sh": 0o755, "data.txt": 0o644}


def test_what_is_ignored_stays_behind(tree):
    rules = {".gitignore": "*.log\nbuild/\n", ".rayignore": "big.bin\n", "sub/.gitignore": "!keep.log\n"}
    directory = tree(
        "a.py", "a.log", "build/x", "big.bin", "sub/keep.log", "sub/b.log", ".git/config", **rules
    )
    assert files(packed(directory)) == [".gitignore", ".rayignore", "a.py", "sub/.gitignore", "sub/keep.log"]


def test_one_file_of_rules_does_not_bring_back_what_another_leaves_out(tree):
    directory = tree("a.log", **{".gitignore": "*.log\n", ".rayignore": "!a.log\n"})
    assert "a.log" not in files(packed(directory))


def test_what_is_excluded_by_the_runtime_environment_stays_behind(tree):
    assert files(packed(tree("a.py", "data/x", "data/y"), excludes=["/data/"])) == ["a.py"]


def test_environments_and_caches_stay_behind(tree):
    directory = tree("a.py", ".venv/bin/python", "venv/x", "__pycache__/a.pyc", "lib/__pycache__/b.pyc")
    assert files(packed(directory)) == ["a.py"]


def test_links_to_files_are_followed_and_those_to_nowhere_passed_over(tree):
    directory = tree("a.py")
    (directory / "link.py").symlink_to(directory / "a.py")
    (directory / "broken").symlink_to("nowhere")
    os.mkfifo(directory / "pipe")
    assert files(packed(directory)) == ["a.py", "link.py"]


def test_a_directory_that_leads_back_into_itself_is_told(tree):
    directory = tree("lib/a.py")
    (directory / "lib" / "again").symlink_to(directory)
    with pytest.raises(NotPacked, match="lib/again leads back"):
        packed(directory)


def test_too_much_is_told_with_the_largest_files(tree):
    directory = tree("small.py")
    (directory / "noise.bin").write_bytes(os.urandom(50_000))
    with pytest.raises(
        NotPacked, match=r"more than 20 KiB.*largest files are noise\.bin \(49 KiB\).*\.rayignore"
    ):
        packed(directory, most=20_480)
    (directory / ".rayignore").write_text("noise.bin\n")
    packed(directory, most=20_480)


@pytest.mark.parametrize("name", ["missing", "a.py"])
def test_what_is_no_directory_is_told(tree, name):
    with pytest.raises(NotPacked, match="is no directory"):
        packed(tree("a.py") / name)


# --- rules


@pytest.mark.parametrize(
    ("rules", "path", "is_left_out"),
    [
        pytest.param("*.log", "a/b.log", True, id="a name is meant anywhere"),
        pytest.param("/b.log", "a/b.log", None, id="a slash in front ties it to the top"),
        pytest.param("a/b", "x/a/b", None, id="a slash inside as well"),
        pytest.param("**/a/b", "x/a/b", True, id="unless two stars go before it"),
        pytest.param("a/**/b", "a/b", True, id="two stars may be nothing"),
        pytest.param("a/**/b", "a/x/y/b", True, id="or many"),
        pytest.param("a/**", "a", None, id="what is inside is not the directory itself"),
        pytest.param("a/**", "a/x/y", True, id="but everything in it"),
        pytest.param("a/", "a", None, id="a slash at the end means directories"),
        pytest.param("a*c", "a/c", None, id="a star does not go beyond a name"),
        pytest.param("a?c", "abc", True, id="a question mark is one character"),
        pytest.param("[^a]b", "cb", True, id="a class can be turned around"),
        pytest.param("[!a]b", "ab", None, id="in two ways"),
        pytest.param(r"\!a", "!a", True, id="a mark can be meant as it is"),
        pytest.param(r"\#a", "#a", True, id="and so can a hash"),
        pytest.param("#a", "#a", None, id="which is a comment otherwise"),
        pytest.param("a  ", "a", True, id="spaces at the end are nothing"),
        pytest.param("a\\ ", "a ", True, id="unless they are meant"),
        pytest.param("*\n!a", "a", False, id="the last rule decides"),
        pytest.param("!a\n*", "a", True, id="whichever it is"),
        pytest.param("*a" * 40 + "b", "a" * 300, None, id="many stars take no time"),
        pytest.param("**/" * 50 + "b", "/".join("a" * 200), None, id="and neither do many gaps"),
        pytest.param("[", "a", None, id="a class without end means nothing"),
    ],
)
def test_rules_mean_what_git_means(rules, path, is_left_out):
    assert verdict(read_rules(rules), path.split("/"), is_directory=False) is is_left_out


_NAMES = st.sampled_from(["a", "b", "ab", "a.log", "b.log"])
_PATTERNS = st.sampled_from(
    [
        "a",
        "/a",
        "a/",
        "*.log",
        "!a.log",
        "!b",
        "a/b",
        "**/b",
        "a/**",
        "a/*",
        "/a/**/b",
        "?b",
        "[ab]",
        "!a/",
        "*",
    ]
)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(_NAMES, min_size=1, max_size=3), min_size=1, max_size=6),
    st.lists(_PATTERNS, max_size=4),
)
def test_what_git_would_track_is_what_is_packed(tmp_path_factory, paths, rules):
    directory: Path = tmp_path_factory.mktemp("tree")
    for steps in paths:
        path = directory.joinpath(*steps)
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (directory / ".gitignore").write_text("\n".join(rules))
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", str(directory)], check=True, env=environ)
    command = ["git", "-C", str(directory), "ls-files", "-z", "--others", "--exclude-standard"]
    tracked = subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout
    assert files(packed(directory)) == sorted(name for name in tracked.split("\0") if name)
