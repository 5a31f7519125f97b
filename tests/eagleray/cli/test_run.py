"""The `run` command before anything runs: what it refuses, and in which words."""

import os

import pytest

from eagleray.cli.main import main

JOB = """\
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: hello}
spec:
  entrypoint: python -c 1
  clusterSelector: {ray.io/cluster: mine}
  backoffLimit: -1
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"


@pytest.fixture
def nothing_starts(monkeypatch):
    """Whoever would start a cluster finds that only root can."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def run(tmp_path, text, *flags, name="job.yaml"):
    file = tmp_path / name
    file.write_text(text)
    return main(["run", str(file), *flags]), str(file)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        pytest.param(JOB, 7, "spec.backoffLimit: -1 is negative; use 0 or more", id="a rule of a controller"),
        pytest.param(
            JOB.replace("backoffLimit", "backofLimit"), 7, "unknown field", id="a field that nobody knows"
        ),
        pytest.param(f"{MAP}---\nkind: Pod\n", 5, "apiVersion: missing", id="an object without a version"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n", 1, "metadata is missing", id="what the server would refuse"
        ),
        pytest.param("a: [\nb: }\n", 2, "flow", id="no YAML"),
    ],
)
def test_problems_are_told_with_their_place_before_anything_starts(
    nothing_starts, tmp_path, capsys, text, line, problem
):
    code, file = run(tmp_path, text)
    shown = capsys.readouterr()
    assert code == 1
    (told,) = shown.err.splitlines()
    assert told.startswith(f"{file}:{line}:")
    assert problem in told
    assert shown.out == ""


def test_a_file_that_is_not_there_is_told(nothing_starts, tmp_path, capsys):
    assert main(["run", str(tmp_path / "none.yaml")]) == 1
    assert "none.yaml:1:1: error: No such file or directory" in capsys.readouterr().err


def test_files_without_objects_are_no_use(nothing_starts, tmp_path, capsys):
    code, _ = run(tmp_path, "# nothing\n")
    assert (code, capsys.readouterr().err) == (2, "eagleray run: there is no object in what was given\n")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        pytest.param(
            ["-n", "No_Namespace"], "'No_Namespace' is no namespace", id="a namespace that cannot be"
        ),
        pytest.param(["--timeout", "0"], "'0' is not a number from 0.001", id="no time at all"),
        pytest.param(["--cpu-factor", "x"], "'x' is not a number", id="a factor that is no number"),
        pytest.param(["--resource", "gpu"], "'gpu' is not NAME=AMOUNT", id="a resource without an amount"),
        pytest.param(["--outbound", "sideways"], "invalid choice", id="a way out that there is not"),
    ],
)
def test_flags_that_make_no_sense_are_a_matter_of_usage(nothing_starts, tmp_path, capsys, flags, problem):
    try:
        code, _ = run(tmp_path, MAP, *flags)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--keep"]], ids=["its own cluster", "the kept one"])
def test_without_root_the_command_is_told_that_works(nothing_starts, tmp_path, capsys, monkeypatch, flags):
    monkeypatch.setattr("sys.argv", ["/opt/eagleray.py", "run", "a b.yaml", *flags])
    monkeypatch.delenv("KUBECONFIG", raising=False)
    code, _ = run(tmp_path, MAP, *flags)
    told = capsys.readouterr().err
    assert code == 1
    assert "needs root; run it as: sudo " in told
    assert told.rstrip().endswith(" ".join(["-m eagleray.cli.main run 'a b.yaml'", *flags]))
