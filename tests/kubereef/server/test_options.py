"""What a request asks for besides the object: options that make no sense are refused, and cost nothing."""

import base64
import json

import pytest

from kubereef.server.answers import MAX_CUT_WARNING, MAX_WARNINGS, warning_headers
from kubewire import errors

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.client.create(MAPS, {"metadata": {"name": "c"}})
    return simulated_cluster.client


@pytest.mark.parametrize(
    ("options", "because"),
    [
        pytest.param(
            {"gracePeriodSeconds": "x"},
            'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: json: cannot unmarshal string into Go '
            "struct field DeleteOptions.gracePeriodSeconds of type int64",
            id="a period that is no number",
        ),
        pytest.param(
            {"preconditions": ["x"]},
            "DeleteOptions.preconditions of type v1.Preconditions",
            id="no preconditions",
        ),
        pytest.param({"orphanDependents": 1}, "of type bool", id="a flag that is none"),
        pytest.param({"dryRun": "All"}, "of type []string", id="a list that is none"),
    ],
)
async def test_a_deletion_with_options_of_the_wrong_type_is_refused(client, options, because):
    with pytest.raises(errors.BadRequest) as refusal:
        await client.delete(f"{MAPS}/c", options)
    assert because in refusal.value.message
    await client.get(f"{MAPS}/c")


@pytest.mark.parametrize(
    ("query", "body"),
    [
        pytest.param("gracePeriodSeconds=1e21", {}, id="beside a body that says nothing"),
        pytest.param("gracePeriodSeconds=", None, id="that says nothing"),
    ],
)
async def test_a_parameter_that_does_not_count_keeps_no_deletion(client, query, body):
    await client.delete(f"{MAPS}/c?{query}", body)
    with pytest.raises(errors.NotFound):
        await client.get(f"{MAPS}/c")


async def test_a_deletion_that_is_only_half_a_dry_run_is_refused(client):
    with pytest.raises(errors.Invalid, match="dryRun: Unsupported value"):
        await client.delete(f"{MAPS}/c", {"dryRun": ["Some"]})
    await client.get(f"{MAPS}/c")


@pytest.mark.parametrize("period", [10**12, 2**63 - 1])
async def test_a_pod_may_be_given_more_time_than_there_are_dates(client, period):
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    await client.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await client.create(PODS, pod)
    ending = await client.delete(f"{PODS}/p", {"gracePeriodSeconds": period})
    assert ending["metadata"]["deletionGracePeriodSeconds"] == period
    assert ending["metadata"]["deletionTimestamp"] > "2200"
    sooner = await client.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})
    assert sooner["metadata"]["deletionTimestamp"] < "2200"


@pytest.mark.parametrize("version", ["18446744073709551616", "9" * 5000])
@pytest.mark.parametrize("url", [MAPS, f"{MAPS}/c", f"{MAPS}?watch=true"])
async def test_a_version_that_no_number_holds_is_refused(client, url, version):
    response = await client.send("GET", f"{url}{'&' if '?' in url else '?'}resourceVersion={version}")
    assert json.loads(response.body)["message"].endswith("value out of range")


async def test_a_forged_continue_token_is_refused_however_deep_it_is(client):
    token = base64.urlsafe_b64encode(b"[" * 20_000).decode()
    with pytest.raises(errors.BadRequest, match="continue key is not valid"):
        await client.get(f"{MAPS}?continue={token}")


@pytest.mark.parametrize("query", ["", "&watch=true"])
async def test_a_table_that_is_to_hold_what_it_cannot_is_refused_before_it_begins(client, query):
    response = await client.send("GET", f"{MAPS}?includeObject=Everything{query}", headers=TABLE)
    assert response.status == 400
    assert json.loads(response.body)["message"] == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Everything": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_few_warnings_are_told_in_full_and_once():
    long = "x" * (MAX_WARNINGS - 1)
    assert warning_headers(["a", long, "a"]) == (("Warning", '299 - "a"'), ("Warning", f'299 - "{long}"'))


def test_of_many_warnings_the_beginnings_are_told_until_there_is_enough():
    headers = warning_headers(f"{number:06}{'x' * 300}" for number in range(100_000))
    assert len(headers) == MAX_WARNINGS // MAX_CUT_WARNING
    assert {len(value) for _, value in headers} == {MAX_CUT_WARNING + len('299 - ""')}


def test_a_warning_cannot_end_its_header():
    [(_, value)] = warning_headers(["a\r\nSet-Cookie: b\0\x7f"])
    assert value == '299 - "a  Set-Cookie: b  "'
