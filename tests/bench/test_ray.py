"""The stand-in for Ray: heads told apart by the host that they are asked at."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import pytest

from bench.kubernetes.ray import Heads, answering

FIRST, SECOND = (
    "first-head-svc.default.svc.cluster.local:8265",
    "second-head-svc.default.svc.cluster.local:8265",
)
PROXY = "10.64.0.7:8000"


@asynccontextmanager
async def asked(heads):
    """Give a way to ask; it returns the status and the JSON, if there is any."""
    async with answering(heads, "127.0.0.1", (0,)) as (port,), aiohttp.ClientSession() as session:

        async def ask(host, path, method="GET", seconds=5, **options):
            url = f"http://127.0.0.1:{port}{path}"
            timeout = aiohttp.ClientTimeout(total=seconds)
            headers = {"Host": host}
            async with session.request(method, url, headers=headers, timeout=timeout, **options) as answer:
                body = await answer.read()
                return answer.status, json.loads(body) if answer.ok and body else None

        yield ask


async def submit(ask, host, job):
    status, _ = await ask(
        host, "/api/jobs/", "POST", json={"submission_id": job, "entrypoint": "python job.py"}
    )
    assert status == 200


async def test_a_job_runs_from_its_submission_until_it_is_finished():
    heads = Heads()
    async with asked(heads) as ask:
        assert (await ask(FIRST, "/api/jobs/j"))[0] == 404
        await submit(ask, FIRST, "j")
        assert (await ask(FIRST, "/api/jobs/j"))[1]["status"] == "RUNNING"
        heads.finish(FIRST, "j")
        assert (await ask(FIRST, "/api/jobs/j"))[1]["status"] == "SUCCEEDED"


async def test_a_job_is_known_at_its_own_head_alone():
    async with asked(Heads()) as ask:
        await submit(ask, FIRST, "j")
        assert (await ask(SECOND, "/api/jobs/j"))[0] == 404


async def test_every_head_keeps_a_session_of_its_own():
    async with asked(Heads()) as ask:
        first, second, again = [
            (await ask(host, "/api/version"))[1]["session_name"] for host in (FIRST, SECOND, FIRST)
        ]
        assert first == again != second


async def test_applications_run_as_soon_as_they_are_put():
    async with asked(Heads()) as ask:
        wanted = {"applications": [{"name": "app", "import_path": "app.graph"}]}
        assert (await ask(FIRST, "/api/serve/applications/", "PUT", json=wanted))[0] == 200
        _, found = await ask(FIRST, "/api/serve/applications/")
        assert found["applications"]["app"]["status"] == "RUNNING"


async def test_a_serve_proxy_is_healthy():
    heads = Heads()
    async with answering(heads, "127.0.0.1", (0, 0)) as ports, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{ports[1]}/-/healthz"
        async with session.get(url, headers={"Host": PROXY}) as answer:
            assert (answer.status, await answer.text()) == (200, "success")


async def test_questions_are_counted_and_the_connections_that_they_came_over():
    heads = Heads()
    for _ in range(2):
        async with asked(heads) as ask:
            for _ in range(3):
                await ask(FIRST, "/api/version")
    assert (heads.questions, heads.connections) == (6, 2)


async def test_a_head_that_hangs_does_not_answer_and_the_others_do():
    heads = Heads(lambda host: host == FIRST)
    async with asked(heads) as ask:
        with pytest.raises(TimeoutError):
            await ask(FIRST, "/api/version", seconds=0.1)
        assert (await ask(SECOND, "/api/version"))[0] == 200
        assert heads.questions == 2


async def test_a_head_that_hangs_holds_nothing_once_the_one_who_asked_has_left():
    async with asked(Heads(lambda _host: True)) as ask:
        before = len(asyncio.all_tasks())
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await ask(FIRST, "/api/version", seconds=0.02)
        await asyncio.sleep(0.1)
        assert len(asyncio.all_tasks()) <= before
