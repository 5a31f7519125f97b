"""The light-weight submitter against a real Ray: its log, its end, and a second submission that only follows."""

import os
import subprocess
import sys

import pytest

from tests.ray.jobs import Told, head_only

pytestmark = pytest.mark.heavy

CLUSTER = "lone"
PATIENCE = 180


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return Told(tmp_path_factory.mktemp("submitter") / "told")


@pytest.fixture(scope="module")
def address(reef, told):
    """Where the dashboard of a ready head answers on this machine."""
    reef.create(head_only(CLUSTER, told))
    reef.ready(CLUSTER)
    with reef.forwarded(f"svc/{CLUSTER}-head-svc", 8265) as port:
        yield f"127.0.0.1:{port}"


def submitted(address, job_id, entrypoint):
    variables = {**os.environ, "RAY_DASHBOARD_ADDRESS": address, "RAY_JOB_SUBMISSION_ID": job_id}
    command = [sys.executable, "-m", "eagleray.submitter.main", "--", *entrypoint.split()]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=variables)


def test_a_job_is_run_once_however_often_it_is_submitted(address, told):
    for _ in range(2):
        ended = submitted(address, "once", told.entrypoint("compute"))
        assert ended.returncode == 0, ended
        assert "attempt once runs\n" in ended.stdout
        assert "Ray says 42\n" in ended.stdout
        assert ended.stdout.splitlines()[-1] == "SUCC -- Job 'once' succeeded"
    assert len(told.lines("once")) == 1


def test_a_job_that_fails_is_told_with_its_reason(address, told):
    ended = submitted(address, "unlucky", told.entrypoint("fail", "unlucky"))
    assert ended.returncode == 1, ended
    assert "no luck\n" in ended.stdout
    assert "ERROR -- Job 'unlucky' failed: " in ended.stderr
