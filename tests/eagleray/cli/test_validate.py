"""`eagleray validate` on files, folders and standard input."""

import io
import json
import sys
import types

import pytest

from eagleray.cli.main import main

GOOD = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: good}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: head, image: ray}]}}
"""
BAD = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: bad}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: head, image: ray}]}}
  workerGroupSpecs:
  - groupName: small
    minReplicas: 3
    maxReplicas: 2
    template: {spec: {containers: [{name: worker, image: ray}]}}
"""
OTHER = "apiVersion: v1\nkind: Service\nmetadata: {name: other}\n"


@pytest.fixture
def validate(tmp_path, capsys, monkeypatch):
    """Runs the command in a folder with the given files; returns exit status and printed lines."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, **files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        status = main(["validate", *arguments])
        return status, capsys.readouterr().out.splitlines()

    return run


def test_a_good_manifest_is_valid(validate):
    assert validate("a.yaml", a_yaml=GOOD) == (0, ["1 valid, 0 with problems"])


@pytest.mark.case("OP-184")
def test_a_problem_is_told_with_its_place_and_rule(validate):
    status, lines = validate("a.yaml", a_yaml=BAD)
    assert status == 1
    told = "2 is below minReplicas 3; raise it or lower minReplicas [raycluster-4e]"
    assert lines == [
        f"a.yaml:10:5: error: spec.workerGroupSpecs[0].maxReplicas: {told}",
        "0 valid, 1 with problems",
    ]


@pytest.mark.case("OP-184")
def test_all_documents_of_a_file_are_judged_and_other_kinds_passed_over(validate):
    status, lines = validate("a.yaml", a_yaml=f"{GOOD}---\n{OTHER}---\n{BAD}---\n# nothing\n")
    assert status == 1
    assert lines[0] == "a.yaml:8:1: note: Service/other is not a Ray kind; passed over"
    assert lines[1].startswith("a.yaml:21:5: error: spec.workerGroupSpecs[0].maxReplicas")
    assert lines[-1] == "1 valid, 1 with problems, 1 of other kinds passed over"


def test_only_other_kinds_are_fine(validate):
    status, lines = validate("a.yaml", a_yaml=OTHER)
    assert status == 0
    assert lines[-1] == "0 valid, 0 with problems, 1 of other kinds passed over"


@pytest.mark.case("OP-184")
def test_a_folder_is_searched_through(validate):
    status, lines = validate(
        ".", a_yaml=GOOD, deep__er__b_yml=BAD, c_json=json.dumps({"kind": "x"}), d_txt="no"
    )
    assert status == 1
    assert [line.partition(":")[0] for line in lines[:-1]] == ["./c.json", "./c.json", "./deep/er/b.yml"]


def test_an_empty_folder_could_not_be_read(validate):
    status, lines = validate(".")
    assert status == 2
    assert lines[0] == ".:1:1: error: no manifests in this folder (*.yaml, *.yml, *.json)"


@pytest.mark.case("OP-184")
def test_standard_input_is_read(validate, monkeypatch):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(BAD.encode())))
    status, lines = validate("-")
    assert status == 1
    assert lines[0].startswith("<stdin>:10:5: error: ")


def test_items_of_a_list_are_judged_at_their_own_paths(validate):
    items = "".join("- " + text.replace("\n", "\n  ").rstrip(" ") for text in (GOOD, BAD))
    status, lines = validate("a.yaml", a_yaml=f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert status == 1
    assert "error: items[1].spec.workerGroupSpecs[0].maxReplicas: 2 is below" in lines[0]
    assert lines[-1] == "1 valid, 1 with problems"


@pytest.mark.case("OP-184")
def test_json_output_has_every_part(validate):
    status, lines = validate("-o", "json", "a.yaml", a_yaml=BAD)
    assert status == 1
    report = json.loads("\n".join(lines))
    assert {key: report[key] for key in ("valid", "invalid", "passedOver", "unreadable")} == {
        "valid": 0,
        "invalid": 1,
        "passedOver": 0,
        "unreadable": 0,
    }
    assert report["findings"] == [
        {
            "file": "a.yaml",
            "line": 10,
            "column": 5,
            "severity": "error",
            "object": "RayCluster/bad",
            "rule": "raycluster-4e",
            "path": "spec.workerGroupSpecs[0].maxReplicas",
            "message": "2 is below minReplicas 3",
            "wayOut": "raise it or lower minReplicas",
        }
    ]


@pytest.mark.case("OP-187")
def test_feature_gates_change_the_verdict(validate, capsys):
    manifest = GOOD + "  tlsOptions: {enabled: true}\n"
    status, lines = validate("a.yaml", a_yaml=manifest)
    assert status == 1
    assert "requires the RayClusterMTLS feature gate" in lines[0]
    assert main(["validate", "--feature-gates=RayClusterMTLS=true", "a.yaml"]) == 0
    assert "does not have RayClusterMTLS yet" in capsys.readouterr().err


def test_an_unknown_gate_is_refused(validate, capsys):
    assert main(["validate", "--feature-gates=RayClusterMTL=true", "a.yaml"]) == 2
    assert "RayClusterMTLS" in capsys.readouterr().err


def test_a_warning_alone_leaves_the_object_valid(validate):
    manifest = BAD.replace("minReplicas: 3", "minReplicas: 1\n    replicas: 7")
    status, lines = validate("a.yaml", a_yaml=manifest)
    assert status == 0
    assert ": warning: spec.workerGroupSpecs[0].replicas: " in lines[0]
    assert lines[-1] == "1 valid, 0 with problems"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        pytest.param("a: [1", "a.yaml:2:1: error: ", id="broken YAML"),
        pytest.param(
            "a:\n\tb: 1\n", "a.yaml:2:1: error: a tab cannot stand here; indent with spaces", id="a tab"
        ),
        pytest.param(b"\xff\xfe\x00", "a.yaml:1:1: error: not UTF-8 text", id="not text"),
        pytest.param(b"a\0b", "a.yaml:1:1: error: a binary file", id="a binary file"),
        pytest.param(b"#" * 10_000_000, "a.yaml:1:1: error: more than 8 MiB", id="a file of ten megabytes"),
        pytest.param("[" * 10_000, "a.yaml:1:201: error: nested more than 200 deep", id="deep nesting"),
        pytest.param(
            "x: &a [1]\ny: &b [*a, *b]\n", "a.yaml:2:12: error: anchor &b contains itself", id="a loop"
        ),
    ],
)
@pytest.mark.case("OP-186")
def test_what_cannot_be_read_is_told_and_ends_with_two(validate, text, start):
    status, lines = validate("a.yaml", a_yaml=text)
    assert status == 2
    assert lines[0].startswith(start)
    assert lines[-1].endswith("1 could not be read")


@pytest.mark.case("OP-184")
def test_a_file_that_is_not_there_does_not_hide_the_others(validate):
    status, lines = validate("missing.yaml", "a.yaml", a_yaml=GOOD)
    assert status == 2
    assert lines == [
        "missing.yaml:1:1: error: No such file or directory",
        "1 valid, 0 with problems, 1 could not be read",
    ]


@pytest.mark.case("OP-186")
def test_a_key_given_twice_is_a_problem_in_its_line(validate):
    status, lines = validate("a.yaml", a_yaml=GOOD + "  suspend: true\n  suspend: false\n")
    assert status == 1
    assert lines[0] == (
        "a.yaml:8:3: error: spec.suspend: given twice, first in line 7; keep one of them [duplicate-key]"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            GOOD.replace("headGroupSpec", "headGroupSpecs"), "did you mean headGroupSpec?", id="a field"
        ),
        pytest.param(GOOD.replace("image", "imagee"), "did you mean image?", id="a field of a container"),
        pytest.param(GOOD.replace("RayCluster", "RayClustr"), "did you mean RayCluster?", id="a kind"),
        pytest.param(GOOD.replace("ray.io/v1", "ray.io/v2"), "write ray.io/v1", id="a version"),
        pytest.param(GOOD.replace("ray.io/v1", "v1"), "write ray.io/v1", id="a group"),
    ],
)
@pytest.mark.case("OP-185")
def test_a_mistyped_word_is_answered_with_the_nearest(validate, text, told):
    status, lines = validate("a.yaml", a_yaml=text)
    assert status == 1
    assert any(told in line for line in lines)


def test_wrong_types_are_told_before_any_rule_and_it_says_so(validate):
    status, lines = validate("a.yaml", a_yaml=BAD + '  suspend: "yes"\n  rayVersion: 2\n')
    assert status == 1
    quotes = 'write "yes" as a plain boolean, without quotes'
    assert lines == [
        f"a.yaml:12:3: error: spec.suspend: must be of type boolean; {quotes} [schema-type]",
        "a.yaml:13:3: error: spec.rayVersion: must be of type string; put it in quotes [schema-type]",
        "a.yaml:1:1: note: the rules of the controllers were not checked; correct the errors above first",
        "0 valid, 1 with problems",
    ]


def test_nothing_in_a_manifest_can_steer_the_terminal(validate):
    _, lines = validate("a.yaml", a_yaml=GOOD + '  "\\e[31mred": 1\n')
    assert "\\x1b[31mred" in lines[0]
    assert "\x1b" not in "".join(lines)
