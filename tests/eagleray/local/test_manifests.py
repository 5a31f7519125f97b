"""Manifests as people give them: where they come from, what order they have, and what is none."""

import io
from types import SimpleNamespace

import pytest

from eagleray.local.manifests import BadManifest, manifests_in, read_source


def text(name, kind="ConfigMap"):
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n"


def named(file, raw):
    return [(one.title, one.position.line) for one in manifests_in(file, raw.encode())]


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        pytest.param("", [], id="nothing at all"),
        pytest.param("# only a comment\n---\n", [], id="comments"),
        pytest.param(text("a"), [("ConfigMap/a", 1)], id="one document"),
        pytest.param(
            f"{text('b')}---\n{text('a')}",
            [("ConfigMap/b", 1), ("ConfigMap/a", 5)],
            id="documents as they stand",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n"
            "- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n"
            "- {apiVersion: v1, kind: Pod, metadata: {generateName: p-}}\n",
            [("Secret/s", 4), ("Pod/p-", 5)],
            id="the items of a list",
        ),
        pytest.param(
            '{"apiVersion": "v1",\n "kind": "Pod", "metadata": {"name": "p"}}', [("Pod/p", 1)], id="JSON"
        ),
    ],
)
def test_objects_come_in_their_order_with_their_lines(raw, want):
    assert named("f.yaml", raw) == want


@pytest.mark.parametrize(
    ("raw", "line", "problem"),
    [
        pytest.param(
            f"{text('a')}---\n- 1\n", 5, "this is no object of Kubernetes", id="a document without fields"
        ),
        pytest.param("kind: Pod\nmetadata: {name: p}\n", 1, "apiVersion is missing", id="no version"),
        pytest.param("apiVersion: v1\nmetadata: {name: p}\n", 1, "kind is missing", id="no kind"),
        pytest.param("apiVersion: v1\nkind: Pod\n", 1, "metadata is missing", id="no metadata"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {}\n", 1, "metadata.name is missing", id="no name"
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n",
            1,
            "metadata.name is missing",
            id="a number as a name",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: 7}\n",
            1,
            "metadata.namespace has to be text",
            id="a number as a namespace",
        ),
        pytest.param("a: [\nb: }\n", 2, "flow", id="text that is no YAML"),
    ],
)
def test_what_is_no_object_is_told_with_its_place(raw, line, problem):
    with pytest.raises(BadManifest, match=problem) as told:
        named("f.yaml", raw)
    assert (told.value.file, told.value.position.line) == ("f.yaml", line)


def test_a_folder_is_read_in_the_order_of_names(tmp_path):
    for name in ("b.yaml", "a.json", "z/c.yml", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [name for name, _ in read_source(str(tmp_path))] == [
        str(tmp_path / name) for name in ("a.json", "b.yaml", "z/c.yml")
    ]


def test_an_empty_folder_and_a_missing_file_say_so(tmp_path):
    ((_, empty),) = read_source(str(tmp_path))
    ((_, missing),) = read_source(str(tmp_path / "none.yaml"))
    assert empty == "no manifests in this folder (*.yaml, *.yml, *.json)"
    assert missing == "No such file or directory"


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"kind: Pod\n")))
    assert list(read_source("-")) == [("<stdin>", b"kind: Pod\n")]
