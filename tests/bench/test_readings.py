"""What is read of a run."""

import json
import os
import subprocess
import sys
import time

import pytest
import yaml

from bench.kubernetes.readings import counted, cpu_seconds, peak_mebibytes, percentile
from tests.kubernetes.audit import Audit


def entry(verb, resource="", subresource=""):
    reference = {"resource": resource, "subresource": subresource} if resource else None
    return json.dumps({"verb": verb, "requestURI": "/apis?timeout=30s", "objectRef": reference}) + "\n"


@pytest.fixture
def audit(tmp_path):
    return Audit(tmp_path, {"users": ["operator"]}, "Metadata")


@pytest.mark.parametrize(
    ("values", "share", "want"),
    [
        pytest.param([5], 0.5, 5, id="the only one is all of them"),
        pytest.param([3, 1, 2], 0.5, 2, id="half is the middle"),
        pytest.param([4, 3, 1, 2], 0.5, 2, id="of an even number it is the lower of two"),
        pytest.param(range(1, 101), 0.99, 99, id="one in a hundred may be above the 99th"),
        pytest.param(range(1, 31), 0.99, 30, id="of few values the 99th is the largest"),
        pytest.param([2, 1], 0.0, 1, id="nothing is below the smallest"),
    ],
)
def test_percentile(values, share, want):
    assert percentile(values, share) == want


def test_the_audit_log_is_asked_for_one_user_alone(audit, tmp_path):
    policy, log = audit.flags
    file = tmp_path / "audit-policy.yaml"
    assert yaml.safe_load(file.read_text())["rules"] == [
        {"level": "Metadata", "users": ["operator"]},
        {"level": "None"},
    ]
    assert policy.endswith(f"={file}")
    assert log.endswith(f"={tmp_path}/audit.log")


def test_requests_are_counted_by_verb_and_resource(audit, tmp_path):
    lines = [
        entry("create", "pods"),
        entry("create", "pods"),
        entry("patch", "rayjobs", "status"),
        entry("get"),
    ]
    (tmp_path / "audit.log").write_text("".join(lines))
    assert counted(audit.since(0)) == {"create pods": 2, "patch rayjobs/status": 1, "get /apis": 1}


def test_watches_and_a_line_that_is_still_being_written_are_not_counted(audit, tmp_path):
    (tmp_path / "audit.log").write_text(entry("watch", "pods") + entry("create", "pods")[:10])
    assert counted(audit.since(0)) == {}


def test_requests_are_counted_from_a_mark_on(audit, tmp_path):
    assert audit.mark() == 0
    assert counted(audit.since(0)) == {}
    log = tmp_path / "audit.log"
    log.write_text(entry("create", "pods"))
    mark = audit.mark()
    log.write_text(log.read_text() + entry("create", "services"))
    assert counted(audit.since(mark)) == {"create services": 1}


def test_a_process_tells_its_time_and_its_memory():
    assert cpu_seconds(os.getpid()) == pytest.approx(time.process_time(), abs=0.1)
    assert 1 < peak_mebibytes(os.getpid()) < 100_000


def test_a_process_that_has_ended_tells_nothing():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(ProcessLookupError):
        cpu_seconds(ended.pid)
