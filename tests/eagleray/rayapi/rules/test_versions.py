"""Ray versions, read leniently and strictly."""

import pytest

from eagleray.rayapi.versions import SemanticVersion, parse_semantic, parse_version


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2.52.0", (2, 52)),
        ("2.52", (2, 52)),
        ("2.52.1", (2, 52, 1)),
        ("v2.52.1", (2, 52, 1)),
        (" \t2.52.1", (2, 52, 1)),
        ("2.52.0.dev0", (2, 52)),
        ("2.52.1rc1", (2, 52, 1)),
        ("2.52.1-py310-gpu", (2, 52, 1)),
        ("2.52.", (2, 52)),
        ("2.52.1.2.3", (2, 52, 1, 2, 3)),
        ("2.052", (2, 52)),
        ("0.8", (0, 8)),
        ("10.5", (10, 5)),
        ("0.0", ()),
        ("18446744073709551615.1", (18446744073709551615, 1)),
    ],
)
def test_lenient_versions(text, numbers):
    assert parse_version(text) == numbers


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "v",
        "nightly",
        "latest-2.52.0",
        "vv2.52",
        "V2.52",
        "2..52",
        ".2.52",
        "02.52",
        "02.5",
        "-2.52",
        "2.52\n",
        "2.52\nx",
        "٢.٥٢",
        "18446744073709551616.1",
        "9" * 5000 + ".1",
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_texts_that_are_no_version(text):
    assert parse_version(text) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [("2.9.0", "2.10.0"), ("2.51.9", "2.52"), ("2.52.0", "2.52.0.1"), ("1.13", "2.0"), ("0.0", "0.1")],
)
def test_versions_compare_by_number(older, newer):
    first, second = parse_version(older), parse_version(newer)
    assert first is not None
    assert second is not None
    assert first < second


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.6.0", SemanticVersion(2, 6, 0)),
        ("v2.6.1", SemanticVersion(2, 6, 1)),
        ("2.6", SemanticVersion(2, 6, 0)),
        ("3", SemanticVersion(3, 0, 0)),
        ("2.6.0-rc.1", SemanticVersion(2, 6, 0, "rc.1")),
        ("2.6.0-0", SemanticVersion(2, 6, 0, "0")),
        ("2.6.0-10", SemanticVersion(2, 6, 0, "10")),
        ("2.6.0-0a", SemanticVersion(2, 6, 0, "0a")),
        ("2.6.0+build.5", SemanticVersion(2, 6, 0)),
        ("2.6.0-rc-1+build-5", SemanticVersion(2, 6, 0, "rc-1")),
    ],
)
def test_semantic_versions(text, version):
    assert parse_semantic(text) == version


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not-a-version",
        "2.6.0rc1",
        "2.6.0.1",
        "2..0",
        "2.6.",
        " 2.6.0",
        "2.6.0 ",
        "2.6.0-",
        "2.6.0-a..b",
        "2.6.0-01",
        "2.6.0+",
        "2.6.0-ä",
        "٢.٦",
    ],
    ids=ascii,
)
def test_texts_that_are_no_semantic_version(text):
    assert parse_semantic(text) is None


@pytest.mark.parametrize(
    ("version", "reached"),
    [
        (SemanticVersion(2, 6, 0), True),
        (SemanticVersion(2, 5, 9), False),
        (SemanticVersion(3, 0, 0), True),
        (SemanticVersion(2, 7, 0, "rc1"), False),
    ],
)
def test_a_release_reaches_a_minimum_and_a_pre_release_does_not(version, reached):
    assert version.reaches(2, 6, 0) is reached
