"""What is taken out of text that others read."""

import time

import pytest

from eagleray.runtime.redaction import LONGEST_TEXT, redacted, redacted_value


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer s3cr3t-s3cr3t",
        "bearer s3cr3t-s3cr3t",
        "redis://:s3cr3t@redis:6379",
        "https://me:s3cr3t@host/x",
        "password=s3cr3t",
        'REDIS_PASSWORD="s3cr3t"',
        "{'auth_token': 's3cr3t'}",
        "api-key: s3cr3t",
        "spec.redisPassword: s3cr3t",
        "?token=s3cr3t&x=1",
        "got eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.s3cr3t",
    ],
)
def test_secrets_are_taken_out(text):
    assert "s3cr3t" not in redacted(text)
    assert "[redacted]" in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "Created head Pod default/c-head",
        'secrets "ray-auth" not found',
        "http://c-head-svc.default.svc.cluster.local:8265/api/jobs/",
        "the bearer of news",
        "a token of thanks",
        "default/my-token: spec.authOptions.mode: token needs Ray 2.52",
    ],
)
def test_other_text_stays(text):
    assert redacted(text) == text


def test_redacting_twice_changes_nothing():
    once = redacted("password=x token: y redis://:z@h")
    assert redacted(once) == once


def test_values_under_secret_names_are_taken_out_at_any_depth():
    value = {"name": "c", "env": [{"RAY_AUTH_TOKEN": "x", "n": 1, "none": None}], "count": 2.5, "on": True}
    assert redacted_value(value) == {
        "name": "c",
        "env": [{"RAY_AUTH_TOKEN": "[redacted]", "n": 1, "none": None}],
        "count": 2.5,
        "on": True,
    }


def test_values_that_contain_themselves_end():
    loop: dict[str, object] = {}
    loop["again"] = loop
    assert "…" in str(redacted_value(loop))


def test_other_values_become_text():
    assert redacted_value(ValueError("password=x")) == "password=[redacted]"


@pytest.mark.parametrize("text", ["a://" * 500_000, "password" * 300_000, "eyJ" * 700_000, "x:" * 10**6])
def test_long_hostile_text_is_cut_and_takes_no_time(text):
    before = time.perf_counter()
    assert len(redacted(text)) <= LONGEST_TEXT * 2
    assert time.perf_counter() - before < 1
