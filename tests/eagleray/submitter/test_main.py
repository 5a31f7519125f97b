"""`eagleray-submitter` as a process: what it prints and how it ends."""

import asyncio
import os
import signal
import ssl
import sys

import pytest

from kubewire.certificates import Identity, Issuer
from kubewire.sources import SystemClock, SystemEntropy
from tests.eagleray.submitter.fake import FakeHead

SUBMITTER = (sys.executable, "-m", "eagleray.submitter.main")
PATIENCE = 30


async def started(*arguments, **variables):
    environment = {**os.environ, "RAY_JOB_SUBMISSION_ID": "job-1", **variables}
    return await asyncio.create_subprocess_exec(
        *SUBMITTER,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )


async def ended(*arguments, **variables):
    """Return the exit code, stdout and stderr of a submitter."""
    process = await started(*arguments, **variables)
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    ("ends", "code", "out", "err"),
    [
        pytest.param("SUCCEEDED", 0, "hello\nworld\nSUCC -- Job 'job-1' succeeded\n", "", id="succeeded"),
        pytest.param("STOPPED", 0, "hello\nworld\nSTOP -- Job 'job-1' was stopped\n", "", id="was stopped"),
        pytest.param("FAILED", 1, "hello\nworld\n", "ERROR -- Job 'job-1' failed: boom\n", id="failed"),
    ],
)
async def test_it_ends_as_its_job_does(ends, code, out, err):
    async with FakeHead(ends=ends, message="boom") as head:
        assert await ended("python", "job.py", RAY_DASHBOARD_ADDRESS=head.address) == (code, out, err)


async def test_its_last_word_has_a_line_of_its_own():
    async with FakeHead(log=["no newline"]) as head:
        _, out, _ = await ended("run", RAY_DASHBOARD_ADDRESS=head.address)
    assert out == "no newline\nSUCC -- Job 'job-1' succeeded\n"


async def test_a_job_that_is_lost_with_its_head_ends_with_86():
    async with FakeHead() as head:
        head.faults["info"] = ["new head"]
        code, _, err = await ended("run", RAY_DASHBOARD_ADDRESS=head.address)
    assert code == 86
    assert err == "ERROR -- The job was lost with the head that it was submitted to\n"


async def test_what_ray_refuses_ends_with_1():
    async with FakeHead() as head:
        head.faults["submit"] = [400]
        code, _, err = await ended("run", RAY_DASHBOARD_ADDRESS=head.address)
    assert code == 1
    assert err.startswith("ERROR -- POST ")


@pytest.mark.parametrize(
    "missing", ["RAY_DASHBOARD_ADDRESS", "RAY_JOB_SUBMISSION_ID"], ids=["no address", "no id"]
)
async def test_without_its_variables_it_ends_with_1(missing):
    variables = {"RAY_DASHBOARD_ADDRESS": "127.0.0.1:1", missing: ""}
    code, out, err = await ended("run", **variables)
    assert (code, out) == (1, "")
    assert err.startswith(f"ERROR -- {missing} is not set")


async def test_it_ends_at_once_when_it_is_told_to():
    async with FakeHead(log=["hello\n"]) as head:
        head.faults["tail"] = [("close", 1)] * 1000
        process = await started("run", RAY_DASHBOARD_ADDRESS=head.address)
        async with asyncio.timeout(PATIENCE):
            assert process.stdout is not None
            assert await process.stdout.readline() == b"hello\n"
            process.send_signal(signal.SIGTERM)
            await process.communicate()
    assert process.returncode == 128 + signal.SIGTERM


async def test_it_speaks_tls_to_an_address_that_says_so(tmp_path):
    issuer = Issuer(SystemClock(), SystemEntropy())
    authority = issuer.authority("authority")
    pair = issuer.serving(authority, Identity("dashboard"), ["127.0.0.1"])
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    (tmp_path / "both").write_bytes(pair.certificate_pem + pair.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both")
    async with FakeHead(ssl=context) as head:
        url = f"https://{head.address}"
        trusting = await ended("run", RAY_DASHBOARD_ADDRESS=url, SSL_CERT_FILE=str(tmp_path / "ca.crt"))
        assert trusting[:2] == (0, "hello\nworld\nSUCC -- Job 'job-1' succeeded\n")
        assert head.ledger.executions("job-1") == 1


async def test_help_tells_the_flags():
    code, out, _ = await ended("--help")
    assert code == 0
    assert "--runtime-env-json" in out
