"""Names: the expected messages are those of k8s.io/apimachinery 0.36."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.names import (
    SUFFIX_ALPHABET,
    dns1035_label,
    dns1123_label,
    dns1123_subdomain,
    generate_name,
    label_key,
    label_value,
    port_name,
    qualified_name,
)
from kubewire.sources import SeededEntropy

NO_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end"
    " with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NO_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start"
    " and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NO_1035_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NO_KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
WITH_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
NO_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        pytest.param("a", [], id="one letter"),
        pytest.param("1-a-9", [], id="digits and dashes"),
        pytest.param("a" * 63, [], id="63 characters"),
        pytest.param("a" * 64, ["must be no more than 63 characters"], id="64 characters"),
        pytest.param("a.b", ["must not contain dots"], id="a subdomain"),
        pytest.param("", [NO_LABEL], id="nothing"),
        pytest.param("A", [NO_LABEL], id="a capital"),
        pytest.param("-a", [NO_LABEL], id="a dash first"),
        pytest.param("a-", [NO_LABEL], id="a dash last"),
        pytest.param("a..b", [NO_LABEL], id="two dots"),
        pytest.param("a\n", [NO_LABEL], id="a line break"),
        pytest.param("é", [NO_LABEL], id="an accent"),
        pytest.param("-" * 64, ["must be no more than 63 characters", NO_LABEL], id="long and wrong"),
    ],
)
def test_dns1123_label(value, problems):
    assert dns1123_label(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        pytest.param("a", [], id="one label"),
        pytest.param("a.b-c.1", [], id="several labels"),
        pytest.param("a" * 253, [], id="253 characters"),
        pytest.param("a" * 254, ["must be no more than 253 characters"], id="254 characters"),
        pytest.param("", [NO_SUBDOMAIN], id="nothing"),
        pytest.param(".a", [NO_SUBDOMAIN], id="a dot first"),
        pytest.param("a.", [NO_SUBDOMAIN], id="a dot last"),
        pytest.param("a..b", [NO_SUBDOMAIN], id="an empty label"),
        pytest.param("a.-b", [NO_SUBDOMAIN], id="a dash at the start of a label"),
        pytest.param("a_b", [NO_SUBDOMAIN], id="an underscore"),
    ],
)
def test_dns1123_subdomain(value, problems):
    assert dns1123_subdomain(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        pytest.param("a-1", [], id="a letter first"),
        pytest.param("1a", [NO_1035_LABEL], id="a digit first"),
        pytest.param("a-", [NO_1035_LABEL], id="a dash last"),
        pytest.param("", [NO_1035_LABEL], id="nothing"),
        pytest.param("a" * 64, ["must be no more than 63 characters"], id="64 characters"),
    ],
)
def test_dns1035_label(value, problems):
    assert dns1035_label(value) == problems


@pytest.mark.parametrize("check", [qualified_name, label_key], ids=["a qualified name", "a label key"])
@pytest.mark.parametrize(
    ("value", "problems"),
    [
        pytest.param("A_b.c-1", [], id="a name"),
        pytest.param("example.com/Name", [], id="a name with a prefix"),
        pytest.param("a" * 253 + "/" + "b" * 63, [], id="the longest"),
        pytest.param("a" * 64, ["name part must be no more than 63 bytes"], id="a long name"),
        pytest.param("a" * 254 + "/b", ["prefix part must be no more than 253 bytes"], id="a long prefix"),
        pytest.param("/b", ["prefix part must be non-empty"], id="an empty prefix"),
        pytest.param("A.b/c", [f"prefix part {NO_SUBDOMAIN}"], id="a prefix with capitals"),
        pytest.param("a/", ["name part must be non-empty", f"name part {NO_KEY}"], id="an empty name"),
        pytest.param("", ["name part must be non-empty", f"name part {NO_KEY}"], id="nothing"),
        pytest.param("-a", [f"name part {NO_KEY}"], id="a dash first"),
        pytest.param(
            "a/b/c",
            [f"a valid label key {NO_KEY} {WITH_PREFIX}"],
            id="two slashes",
        ),
    ],
)
def test_qualified_name(check, value, problems):
    assert check(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        pytest.param("", [], id="nothing is fine"),
        pytest.param("My_value.1-a", [], id="letters, digits and signs"),
        pytest.param("a" * 63, [], id="63 bytes"),
        pytest.param("a" * 64, ["must be no more than 63 bytes"], id="64 bytes"),
        pytest.param("é" * 32, ["must be no more than 63 bytes", NO_VALUE], id="64 bytes in 32 characters"),
        pytest.param("a b", [NO_VALUE], id="a space"),
        pytest.param("_a", [NO_VALUE], id="an underscore first"),
        pytest.param("\ud800", [NO_VALUE], id="half a surrogate pair"),
    ],
)
def test_label_value(value, problems):
    assert label_value(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        pytest.param("http-1", [], id="letters, digits and a dash"),
        pytest.param("a" * 15, [], id="15 characters"),
        pytest.param("a" * 16, ["must be no more than 15 characters"], id="16 characters"),
        pytest.param("123", ["must contain at least one letter (a-z)"], id="digits only"),
        pytest.param("a--b", ["must not contain consecutive hyphens"], id="two dashes"),
        pytest.param("-a", ["must not begin or end with a hyphen"], id="a dash first"),
        pytest.param("a-", ["must not begin or end with a hyphen"], id="a dash last"),
        pytest.param(
            "A",
            [
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
            ],
            id="a capital",
        ),
        pytest.param(
            "",
            [
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
            ],
            id="nothing",
        ),
    ],
)
def test_port_name(value, problems):
    assert port_name(value) == problems


@pytest.mark.parametrize(
    ("check", "pattern"),
    [
        pytest.param(dns1123_label, r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", id="a label"),
        pytest.param(
            dns1123_subdomain,
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
            id="a subdomain",
        ),
        pytest.param(dns1035_label, r"[a-z]([-a-z0-9]*[a-z0-9])?", id="a DNS-1035 label"),
        pytest.param(label_value, r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", id="a label value"),
    ],
)
@given(data=st.data())
def test_checks_decide_what_their_messages_say(check, pattern, data):
    value = data.draw(st.text("aZ0-._/é\n", max_size=8))

    assert (check(value) == []) == (re.fullmatch(pattern, value) is not None)


@pytest.mark.parametrize(
    ("base", "start"),
    [
        pytest.param("worker-", "worker-", id="a short base stays"),
        pytest.param("a" * 58, "a" * 58, id="58 characters stay"),
        pytest.param("a" * 59, "a" * 58, id="a longer base is cut"),
        pytest.param("", "", id="no base at all"),
    ],
)
def test_a_generated_name_is_the_base_and_five_characters(base, start):
    name = generate_name(base, SeededEntropy(1))

    assert name[:-5] == start
    assert len(name) == len(start) + 5
    assert set(name[-5:]) <= set(SUFFIX_ALPHABET)


def test_generated_names_differ():
    entropy = SeededEntropy(1)

    assert len({generate_name("worker-", entropy) for _ in range(100)}) == 100
