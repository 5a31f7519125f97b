"""Differences are found wherever they are, and only what is meant to differ may."""

import pytest

from tests.eagleray.golden.compare import ABSENT, Difference, differences, judged, read_allowances


@pytest.mark.parametrize(
    ("ours", "recorded", "found"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="the same"),
        pytest.param({"a": 1}, {"a": 2}, [Difference(("a",), 1, 2)], id="another value"),
        pytest.param({"a": 1}, {}, [Difference(("a",), 1, ABSENT)], id="only ours"),
        pytest.param({}, {"a": None}, [Difference(("a",), ABSENT, None)], id="only recorded"),
        pytest.param({"a": 1}, {"a": True}, [Difference(("a",), 1, True)], id="another type"),
        pytest.param([1, 2], [1], [Difference(("1",), 2, ABSENT)], id="a longer list"),
        pytest.param(
            [{"name": "x", "v": 1}, {"name": "y"}],
            [{"name": "x", "v": 2}],
            [Difference(("x", "v"), 1, 2), Difference(("y",), {"name": "y"}, ABSENT)],
            id="entries by their names",
        ),
        pytest.param(
            [{"name": "x"}, {"name": "y"}],
            [{"name": "y"}, {"name": "x"}],
            [Difference(("order",), ["x", "y"], ["y", "x"])],
            id="entries in another order",
        ),
        pytest.param(
            [{"kind": "Pod", "metadata": {"name": "p"}}],
            [{"kind": "Pod", "metadata": {"name": "q"}}],
            [
                Difference(("Pod p",), {"kind": "Pod", "metadata": {"name": "p"}}, ABSENT),
                Difference(("Pod q",), ABSENT, {"kind": "Pod", "metadata": {"name": "q"}}),
            ],
            id="another object",
        ),
    ],
)
def test_differences(ours, recorded, found):
    assert differences(ours, recorded) == found


ALLOWED = """
- {reason: version, paths: [["**"]], replaced: nightly, by: "${version}"}
- {reason: generation, paths: [[resources, "RayCluster *", metadata, generation]], ours: 1, recorded: 2}
- {reason: time, paths: [[resources, "*", status, at]], ours: <time>, recorded: null}
- {reason: words, paths: [[events, Bad, message]], like: 'bad (\\S+): .*'}
- {reason: news, paths: [[resources, "*", status, news]], added: 'since \\d+'}
"""


@pytest.mark.parametrize(
    ("difference", "reason"),
    [
        pytest.param(Difference(("a", "b"), "v1;x", "nightly;x"), "version", id="only the version differs"),
        pytest.param(Difference(("a", "b"), "v1;y", "nightly;x"), None, id="more than the version differs"),
        pytest.param(Difference(("a", "b"), "v1", 7), None, id="no text, so no version"),
        pytest.param(
            Difference(("resources", "RayCluster c", "metadata", "generation"), 1, 2),
            "generation",
            id="as expected",
        ),
        pytest.param(
            Difference(("resources", "RayCluster c", "metadata", "generation"), 1, 3),
            None,
            id="another value",
        ),
        pytest.param(
            Difference(("resources", "Pod c", "metadata", "generation"), 1, 2), None, id="another kind"
        ),
        pytest.param(
            Difference(("resources", "RayCluster c", "metadata"), 1, 2), None, id="a path that ends before"
        ),
        pytest.param(
            Difference(("resources", "x", "status", "at"), "<time>", ABSENT), "time", id="only ours"
        ),
        pytest.param(
            Difference(("events", "Bad", "message"), "bad c: so", "bad c: thus"), "words", id="other words"
        ),
        pytest.param(
            Difference(("events", "Bad", "message"), "bad c: so", "bad d: so"),
            None,
            id="about something else",
        ),
        pytest.param(
            Difference(("resources", "x", "status", "news"), "since 7", ABSENT), "news", id="an addition"
        ),
        pytest.param(
            Difference(("resources", "x", "status", "news"), "for ever", ABSENT), None, id="another addition"
        ),
        pytest.param(
            Difference(("resources", "x", "status", "news"), "since 7", "since 6"),
            None,
            id="no addition, since both have it",
        ),
    ],
)
def test_what_is_allowed(difference, reason):
    refused, used = judged([difference], read_allowances(ALLOWED, version="v1"))
    assert (refused, used) == (([], {reason}) if reason else ([difference], set()))


@pytest.mark.parametrize("values", ["", ", ours: 1", ", replaced: x"])
def test_an_allowance_without_values_is_too_wide(values):
    with pytest.raises(ValueError, match="not narrow enough to be allowed: because"):
        read_allowances(f"- {{reason: because, paths: [[a]]{values}}}")
