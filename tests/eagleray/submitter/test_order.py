"""What a submitter makes of its arguments and its environment."""

import pytest

from eagleray.dashboard.requests import Submission
from eagleray.submitter.order import Head, Order, Wrong, read_order

ENVIRONMENT = {"RAY_DASHBOARD_ADDRESS": "head:8265", "RAY_JOB_SUBMISSION_ID": "job-1"}


def order(*arguments, **variables):
    return read_order(arguments, {**ENVIRONMENT, **variables})


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(["python", "job.py"], Submission("python job.py", "job-1"), id="an entrypoint"),
        pytest.param(
            ["--", "python", "job.py"], Submission("python job.py", "job-1"), id="behind two dashes"
        ),
        pytest.param(
            ["python", "job.py", "--epochs", "3"],
            Submission("python job.py --epochs 3", "job-1"),
            id="with flags of its own",
        ),
        pytest.param(["--", "--odd"], Submission("--odd", "job-1"), id="that looks like a flag"),
        pytest.param(
            ["--runtime-env-json", '{"pip": ["x"]}', "-metadata-json={}", "run"],
            Submission("run", "job-1", runtime_env={"pip": ["x"]}, metadata={}),
            id="with a runtime environment",
        ),
        pytest.param(
            [
                *("--entrypoint-num-cpus=1.5", "--entrypoint-num-gpus", "2"),
                *('--entrypoint-resources={"TPU": 4}', "--metadata-json", '{"a": "b"}', "--", "run"),
            ],
            Submission(
                "run", "job-1", metadata={"a": "b"}, num_cpus=1.5, num_gpus=2.0, resources={"TPU": 4.0}
            ),
            id="with all flags",
        ),
    ],
)
def test_arguments_make_a_submission(arguments, want):
    assert order(*arguments).submission == want


@pytest.mark.parametrize(
    ("address", "host", "tls"),
    [
        ("head.default.svc:8265", "head.default.svc:8265", False),
        ("http://head:8265", "head:8265", False),
        ("http://head:8265/", "head:8265", False),
        ("https://ray.example.org", "ray.example.org", True),
        ("[::1]:8265", "[::1]:8265", False),
    ],
)
def test_an_address_without_a_scheme_is_spoken_to_over_http(address, host, tls):
    told = order("run", RAY_DASHBOARD_ADDRESS=address)
    assert (told.address.host, told.tls) == (host, tls)


@pytest.mark.parametrize(
    ("arguments", "variables", "place"),
    [
        pytest.param(["run"], {"RAY_DASHBOARD_ADDRESS": ""}, "RAY_DASHBOARD_ADDRESS", id="no address"),
        pytest.param(["run"], {"RAY_JOB_SUBMISSION_ID": " "}, "RAY_JOB_SUBMISSION_ID", id="no id"),
        pytest.param([], {}, "entrypoint", id="no entrypoint"),
        pytest.param(["--"], {}, "entrypoint", id="no entrypoint behind the dashes"),
        pytest.param(["--runtime-env", "{}", "run"], {}, "did you mean", id="an unknown flag"),
        pytest.param(["--runtime-env-json"], {}, "--runtime-env-json", id="a flag without its value"),
        pytest.param(["--runtime-env-json=[]", "run"], {}, "--runtime-env-json", id="a list as environment"),
        pytest.param(["--metadata-json={", "run"], {}, "--metadata-json", id="no JSON"),
        pytest.param(['--metadata-json={"a": 1}', "run"], {}, "--metadata-json", id="a number as metadata"),
        pytest.param(
            ['--entrypoint-resources={"a": "b"}', "run"], {}, "--entrypoint-resources", id="a text as amount"
        ),
        pytest.param(["--entrypoint-num-cpus=-1", "run"], {}, "--entrypoint-num-cpus", id="negative CPUs"),
        pytest.param(["--entrypoint-num-gpus=x", "run"], {}, "--entrypoint-num-gpus", id="no number"),
        pytest.param(
            ["--runtime-env-json=" + "[" * 100_000, "run"], {}, "--runtime-env-json", id="JSON without end"
        ),
        pytest.param(
            ["run"], {"RAY_DASHBOARD_ADDRESS": "ftp://x"}, "RAY_DASHBOARD_ADDRESS", id="another scheme"
        ),
        pytest.param(["run"], {"RAY_DASHBOARD_ADDRESS": "x/y"}, "RAY_DASHBOARD_ADDRESS", id="a path"),
        pytest.param(["run"], {"RAY_DASHBOARD_ADDRESS": "a@b:1"}, "RAY_DASHBOARD_ADDRESS", id="a password"),
        pytest.param(["run"], {"EAGLERAY_REQUESTED_AT": "soon"}, "EAGLERAY_REQUESTED_AT", id="no time"),
    ],
)
def test_what_cannot_be_followed_names_its_place(arguments, variables, place):
    with pytest.raises(Wrong, match=place):
        order(*arguments, **variables)


def test_the_head_that_is_meant_comes_from_the_environment():
    told: Order = order("run", EAGLERAY_HEAD_SESSION="session_x", EAGLERAY_REQUESTED_AT="1893456000")
    assert told.head == Head("session_x", 1893456000.0)


@pytest.mark.parametrize(
    ("head", "session", "want"),
    [
        pytest.param(Head(), "session_a", False, id="nobody in particular is meant"),
        pytest.param(Head("session_a"), "session_a", False, id="the one that is meant"),
        pytest.param(Head("session_a"), "session_b", True, id="another one"),
        pytest.param(
            Head("", 1893456000.0), "session_2029-12-31_23-59-59_000000_1", False, id="one from before"
        ),
        pytest.param(
            Head("", 1893456000.0), "session_2030-01-01_00-00-01_000000_1", True, id="one that began later"
        ),
        pytest.param(Head("", 1893456000.0), "session_latest", False, id="one that does not tell when"),
        pytest.param(
            Head("", 1893456000.0), "session_2030-99-01_00-00-01_000000_1", False, id="one with no such day"
        ),
    ],
)
def test_which_head_is_another_one(head, session, want):
    assert head.is_another(session) is want
