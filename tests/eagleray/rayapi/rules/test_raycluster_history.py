"""RayCluster rule 16: the history collector."""

import pytest

from tests.eagleray.rayapi.rules.builders import env, group, head, only, problems, raycluster, rules

GATE = "RayClusterHistoryServer=true"
RESERVED = [
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
]
ELSEWHERE = {"STORAGE_BACKEND": "elsewhere"}


def collecting(*groups, collector=None, head_spec=None, **variables):
    options = {"image": "collector:1", **env(**variables), **(collector or {})}
    return raycluster(
        *groups,
        headGroupSpec=head_spec or head(),
        historyServerOptions={"collectorOptions": options},
    )


@pytest.mark.case("RC-99")
def test_the_collector_needs_its_gate():
    problem = only(collecting(**ELSEWHERE))
    assert problem.rule == "raycluster-16a"
    assert "RayClusterHistoryServer feature gate is not enabled" in problem.message
    assert rules(collecting(**ELSEWHERE), GATE) == []


def test_no_history_needs_no_gate():
    assert rules(raycluster(historyServerOptions=None)) == []


@pytest.mark.parametrize("options", [{}, {"collectorOptions": None}], ids=["absent", "null"])
def test_history_needs_a_collector(options):
    assert rules(raycluster(historyServerOptions=options), GATE) == ["raycluster-16b"]


def test_an_empty_collector_lacks_image_and_backend():
    obj = raycluster(historyServerOptions={"collectorOptions": {}})
    assert rules(obj, GATE) == ["raycluster-16c", "raycluster-16e"]


@pytest.mark.parametrize("image", ["", None])
def test_the_collector_needs_an_image(image):
    assert rules(collecting(collector={"image": image}, **ELSEWHERE), GATE) == ["raycluster-16c"]


@pytest.mark.parametrize("name", RESERVED)
def test_the_collector_does_not_set_what_the_operator_sets(name):
    problem = only(collecting(**ELSEWHERE, **{name: "x"}), GATE)
    assert problem.rule == "raycluster-16d"
    assert problem.path[-2:] == ("env", 1)


def test_the_collector_may_set_other_variables():
    assert rules(collecting(**ELSEWHERE, pod_ip="x", HTTP_PROXY="x"), GATE) == []


@pytest.mark.parametrize(
    "variable",
    [
        pytest.param({"name": "STORAGE_BACKEND"}, id="no value"),
        pytest.param({"name": "STORAGE_BACKEND", "value": ""}, id="an empty value"),
        pytest.param({"name": "STORAGE_BACKEND", "valueFrom": {"fieldRef": {}}}, id="a value from elsewhere"),
        pytest.param({"name": "storage_backend", "value": "S3"}, id="another name"),
    ],
)
def test_the_collector_names_its_backend_literally(variable):
    assert rules(collecting(collector={"env": [variable]}), GATE) == ["raycluster-16e"]


def test_of_two_backends_the_last_counts():
    variables = [{"name": "STORAGE_BACKEND", "value": value} for value in ("S3", "elsewhere")]
    assert rules(collecting(collector={"env": variables}), GATE) == []


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        pytest.param({"STORAGE_BACKEND": "GCS"}, ["GCS_BUCKET"], id="GCS needs a bucket"),
        pytest.param({"STORAGE_BACKEND": "gcs", "GCS_BUCKET": "b"}, [], id="in any case"),
        pytest.param({"STORAGE_BACKEND": "GCS", "GCS_BUCKET": ""}, ["GCS_BUCKET"], id="which is not empty"),
        pytest.param({"STORAGE_BACKEND": "S3"}, ["S3_REGION"], id="S3 needs a region"),
        pytest.param({"STORAGE_BACKEND": "s3", "S3_REGION": "r"}, [], id="S3 with a region"),
        pytest.param(
            {"STORAGE_BACKEND": "ALIYUNOSS"},
            ["OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"],
            id="ALIYUNOSS needs three",
        ),
        pytest.param(
            {"STORAGE_BACKEND": "AliyunOSS", "OSS_BUCKET": "b", "OSS_ENDPOINT": "e", "OSS_REGION": "r"},
            [],
            id="ALIYUNOSS with all three",
        ),
        pytest.param(
            {"STORAGE_BACKEND": "AZUREBLOB"},
            ["AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT_URL"],
            id="AZUREBLOB needs either",
        ),
        pytest.param(
            {"STORAGE_BACKEND": "azureblob", "AZURE_STORAGE_CONNECTION_STRING": "c"}, [], id="a connection"
        ),
        pytest.param({"STORAGE_BACKEND": "azureblob", "AZURE_STORAGE_ACCOUNT_URL": "u"}, [], id="an account"),
        pytest.param(
            {
                "STORAGE_BACKEND": "AZUREBLOB",
                "AZURE_STORAGE_AUTH_MODE": " Connection_String ",
                "AZURE_STORAGE_ACCOUNT_URL": "u",
            },
            ["AZURE_STORAGE_CONNECTION_STRING"],
            id="mode connection_string needs the connection",
        ),
        pytest.param(
            {
                "STORAGE_BACKEND": "AZUREBLOB",
                "AZURE_STORAGE_AUTH_MODE": "WORKLOAD_IDENTITY",
                "AZURE_STORAGE_CONNECTION_STRING": "c",
            },
            ["AZURE_STORAGE_ACCOUNT_URL"],
            id="mode workload_identity needs the account",
        ),
        pytest.param(
            {
                "STORAGE_BACKEND": "AZUREBLOB",
                "AZURE_STORAGE_AUTH_MODE": "default",
                "AZURE_STORAGE_CONNECTION_STRING": "c",
            },
            ["AZURE_STORAGE_ACCOUNT_URL"],
            id="mode default needs the account",
        ),
        pytest.param(
            {
                "STORAGE_BACKEND": "AZUREBLOB",
                "AZURE_STORAGE_AUTH_MODE": "other",
                "AZURE_STORAGE_CONNECTION_STRING": "c",
            },
            [],
            id="another mode needs either",
        ),
        pytest.param({"STORAGE_BACKEND": "local"}, [], id="other backends pass"),
    ],
)
def test_what_a_backend_needs(variables, missing):
    found = problems(collecting(**variables), GATE)
    assert [problem.rule for problem in found] == ["raycluster-16f"] * len(missing)
    assert [problem.message.partition(" must")[0] for problem in found] == missing


def test_a_value_from_elsewhere_is_enough_for_a_backend():
    variables = [
        {"name": "STORAGE_BACKEND", "value": "S3"},
        {"name": "S3_REGION", "valueFrom": {"configMapKeyRef": {"name": "s3", "key": "region"}}},
    ]
    assert rules(collecting(collector={"env": variables}), GATE) == []


@pytest.mark.parametrize("place", ["head", "worker"])
def test_the_collectors_container_name_is_taken(place):
    container = {"name": "ray-history-collector"}
    if place == "head":
        obj = collecting(head_spec=head(container), **ELSEWHERE)
    else:
        obj = collecting(group(), group("b", container), **ELSEWHERE)
    assert rules(obj, GATE) == ["raycluster-16g"]
    del obj["spec"]["historyServerOptions"]
    assert rules(obj) == []
