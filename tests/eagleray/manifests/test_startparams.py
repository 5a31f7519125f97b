"""The parameters of `ray start`."""

import pytest

from eagleray.manifests.settings import Settings
from eagleray.manifests.startparams import head_params, start_command, worker_params
from tests.eagleray.manifests.clusters import cluster

ALWAYS = {"block": "true", "dashboard-agent-listen-port": "52365", "metrics-export-port": "8080"}


def limits(**amounts):
    return {
        "resources": {"limits": {name.replace("__", "/").replace("_", "."): n for name, n in amounts.items()}}
    }


def head_extras(**head):
    """Return what the head's parameters hold besides those that are always there."""
    params = head_params(cluster(head=head))
    return {key: value for key, value in params.items() if key not in {**ALWAYS, "dashboard-host": ""}}


@pytest.mark.case("RC-59")
def test_a_plain_head():
    params = head_params(cluster(head={"container": {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}}))
    assert start_command(params, head=True) == (
        "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0  "
        "--memory=1073741824  --metrics-export-port=8080  --num-cpus=1 "
    )


@pytest.mark.parametrize(
    ("container", "extras"),
    [
        pytest.param(
            {"resources": {"requests": {"cpu": 2}}},
            {"num-cpus": "2"},
            id="CPUs come from the request where there is no limit",
            marks=pytest.mark.case("RC-60"),
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": 2, "memory": "1Gi"}, "limits": {"cpu": "1500m"}}},
            {"num-cpus": "2"},
            id="a limit of CPUs is rounded up, and memory comes from limits only",
        ),
        pytest.param(
            limits(nvidia_com__gpu=1), {"num-gpus": "1"}, id="a GPU", marks=pytest.mark.case("RC-61")
        ),
        pytest.param(
            {"resources": {"limits": {"nvidia.com/mig-2g.32gb": 1}}},
            {"num-gpus": "1"},
            id="a slice of a GPU",
            marks=pytest.mark.case("RC-61"),
        ),
        pytest.param(
            limits(google_com__tpu=4),
            {"resources": """'{"TPU":4}'"""},
            id="a TPU",
            marks=pytest.mark.case("RC-62"),
        ),
        pytest.param(
            limits(aws_amazon_com__neuroncore=4, google_com__tpu=8, nvidia_com__gpu=1),
            {"num-gpus": "1", "resources": """'{"neuron_cores":4}'"""},
            id="only the first accelerator of Ray's own kinds",
            marks=pytest.mark.case("RC-63"),
        ),
        pytest.param(limits(nvidia_com__gpu=0), {}, id="no GPU at all"),
    ],
)
def test_the_container_tells_what_the_node_has(container, extras):
    assert head_extras(container=container) == extras


@pytest.mark.parametrize(
    ("given", "made"),
    [
        pytest.param(
            '"{"custom_resource":2}"',
            """'{"custom_resource":2,"neuron_cores":4}'""",
            id="an accelerator joins the resources that are given",
            marks=pytest.mark.case("RC-64"),
        ),
        pytest.param(
            '{"neuron_cores":3}', '{"neuron_cores":3}', id="named already", marks=pytest.mark.case("RC-65")
        ),
        pytest.param("{", "{", id="unreadable", marks=pytest.mark.case("RC-65")),
    ],
)
def test_given_resources_are_respected(given, made):
    container = limits(aws_amazon_com__neuroncore=4)
    assert head_extras(container=container, rayStartParams={"resources": given}) == {"resources": made}


def test_unreadable_resources_leave_out_the_gpu_too():
    extras = head_extras(container=limits(nvidia_com__gpu=1), rayStartParams={"resources": "{"})
    assert "num-gpus" not in extras


@pytest.mark.parametrize(
    ("resources", "extras"),
    [
        pytest.param(
            {"CPU": 2, "GPU": 4},
            {"num-cpus": "2", "num-gpus": "4"},
            id="any case",
            marks=pytest.mark.case("RC-67"),
        ),
        pytest.param(
            {"memory": "4Gi"}, {"memory": "4294967296"}, id="bytes", marks=pytest.mark.case("RC-67")
        ),
        pytest.param(
            {"nvidia.com/gpu": 1, "TPU": 4},
            {"num-gpus": "1", "resources": """'{"TPU":4}'"""},
            id="others by their own name",
            marks=pytest.mark.case("RC-68"),
        ),
        pytest.param({"custom": "500m"}, {"resources": """'{"custom":0.5}'"""}, id="fractions stay"),
        pytest.param({"a.gpu": 1, "b.gpu": 2}, {"num-gpus": "1"}, id="of two GPUs the first by name"),
        pytest.param({"custom": "lots"}, {}, id="what is no quantity is skipped"),
    ],
)
def test_a_groups_resources_win(resources, extras):
    assert head_extras(resources=resources) == extras


def test_labels_become_one_parameter():
    assert head_extras(labels={"b": "2", "a": "1"}) == {"labels": "a=1,b=2"}


@pytest.mark.case("RC-66")
def test_switches_are_rendered_as_ray_wants_them():
    params = head_params(
        cluster(
            head={"rayStartParams": {"include-log-monitor": "false", "block": "false", "verbose": "False"}}
        )
    )
    command = start_command(params, head=True)
    assert " --include-log-monitor=false " in command
    assert " --block " in command
    assert "verbose" not in command


@pytest.mark.case("RC-34")
def test_missing_parameters_are_no_parameters():
    plain = cluster()
    plain.head.pop("rayStartParams", None)
    assert head_params(plain) == {**ALWAYS, "dashboard-host": "0.0.0.0"}


def test_a_worker_is_told_where_the_head_is():
    small = cluster(workers=[{}], head={"rayStartParams": {"port": "9999"}})
    params = worker_params(small, small.workers[0], Settings(cluster_domain="example"))
    assert params["address"] == "c-head-svc.ns.svc.example:9999"
    assert start_command(params, head=False).startswith(
        "ray start  --address=c-head-svc.ns.svc.example:9999 "
    )
