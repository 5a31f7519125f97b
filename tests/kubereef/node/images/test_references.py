"""Image references mean what Docker takes them to mean."""

import pytest

from kubereef.node.images import InvalidReference, Reference, parse_reference

DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "redis", Reference("docker.io", "library/redis", "latest", ""), id="a bare name is official"
        ),
        pytest.param("redis:7.4.0", Reference("docker.io", "library/redis", "7.4.0", ""), id="a tag is kept"),
        pytest.param(
            "rayproject/ray:2.52.0-py310",
            Reference("docker.io", "rayproject/ray", "2.52.0-py310", ""),
            id="an owner is not a registry",
        ),
        pytest.param(
            "docker.io/rayproject/ray:2.52.0",
            Reference("docker.io", "rayproject/ray", "2.52.0", ""),
            id="docker.io may be written",
        ),
        pytest.param(
            "index.docker.io/redis",
            Reference("docker.io", "library/redis", "latest", ""),
            id="index.docker.io is the hub",
        ),
        pytest.param(
            "localhost/app", Reference("localhost", "app", "latest", ""), id="localhost is a registry"
        ),
        pytest.param(
            "host:5000/team/app:v1", Reference("host:5000", "team/app", "v1", ""), id="a port is not a tag"
        ),
        pytest.param("host:5000/app", Reference("host:5000", "app", "latest", ""), id="a port without a tag"),
        pytest.param(
            "[::1]:5000/app", Reference("[::1]:5000", "app", "latest", ""), id="an address in brackets"
        ),
        pytest.param(
            f"redis@{DIGEST}", Reference("docker.io", "library/redis", "", DIGEST), id="a digest needs no tag"
        ),
        pytest.param(
            f"redis:7@{DIGEST}", Reference("docker.io", "library/redis", "7", DIGEST), id="tag and digest"
        ),
        pytest.param(
            "a/b__c-d.e", Reference("docker.io", "a/b__c-d.e", "latest", ""), id="separators inside a name"
        ),
    ],
)
def test_a_reference_is_completed(text, want):
    assert parse_reference(text) == want


def test_a_reference_prints_whole_and_in_short():
    reference = parse_reference("redis:7")
    assert str(reference) == "docker.io/library/redis:7"
    assert reference.familiar == "redis"
    assert parse_reference("quay.io/a/b").familiar == "quay.io/a/b"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "empty", id="nothing"),
        pytest.param("a b", "no repository name", id="a space"),
        pytest.param("Redis", "lowercase", id="upper case"),
        pytest.param("redis:", "no tag", id="an empty tag"),
        pytest.param("redis:-x", "no tag", id="a tag that begins with a dash"),
        pytest.param("redis:" + "x" * 129, "no tag", id="a tag that is too long"),
        pytest.param("redis@sha256:12", "no digest", id="a short digest"),
        pytest.param("redis@", "no digest", id="an empty digest"),
        pytest.param("redis@sha256:" + "a" * 63, "64 hexadecimal digits", id="a digest of the wrong length"),
        pytest.param("a//b", "no repository name", id="an empty part"),
        pytest.param("/a", "no repository name", id="a leading slash"),
        pytest.param("../../etc", "no registry|no repository", id="a path"),
        pytest.param("host:port/a", "no registry", id="a port that is no number"),
        pytest.param("a" * 300, "longer than 255", id="a name that is too long"),
        pytest.param("a-" * 20000, "longer than 1024", id="an endless text"),
    ],
)
def test_what_is_no_reference_is_refused_with_its_mistake(text, why):
    with pytest.raises(InvalidReference, match=why):
        parse_reference(text)
