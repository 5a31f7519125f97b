"""The `job` command: what it lists, prints and stops, and how it ends when it cannot."""

import argparse
import base64
from contextlib import asynccontextmanager

import pytest

from eagleray.cli.job import perform
from eagleray.cli.jobactions import JobActions
from eagleray.cli.main import main
from eagleray.kube.client import Client
from eagleray.kube.retries import Patience
from eagleray.kube.transport import Answer, Stream, nothing
from kubereef.simulation import run
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import transport_to
from tests.eagleray.ray import SUBMITTER
from tests.eagleray.rayjob.situations import ended, head_of, ray_world, reached, running
from tests.eagleray.world import raycluster, rayjob

MODES = ("K8sJobMode", "SidecarMode", "HTTPMode", "InteractiveMode")


class Kubelets:
    """A way to the API server on which logs and proxied requests are answered, for which it would need nodes.

    `logs` has what containers have printed, by name, unless a `refusal` is given instead; `asked` has the requests that
    were answered here.
    """

    def __init__(self, world):
        self.world = world
        self.inner = transport_to(world.simulated.server)
        self.host = "local"
        self.logs = {}
        self.refusal = None
        self.asked = []

    async def send(self, request):
        return await self.inner.send(request)

    @asynccontextmanager
    async def stream(self, request):
        if request.path.endswith("/log"):
            self.asked.append(request)
            yield self.refusal or Stream(Answer(200), self._printed(dict(request.query)))
        elif "/proxy/" in request.path:
            self.asked.append(request)
            yield Stream(self._proxied(request), nothing())
        else:
            async with self.inner.stream(request) as stream:
                yield stream

    async def close(self):
        await self.inner.close()

    async def _printed(self, query):
        for chunk in self.logs[query["container"]]:
            yield chunk

    def _proxied(self, request):
        before, _, path = request.path.partition("/proxy")
        namespace, service = before.split("/")[4::2]
        host = f"{service.removesuffix(':dashboard')}.{namespace}.svc.cluster.local:8265"
        head = self.world.dashboards.heads.get(host)
        if head is None:
            return UNAVAILABLE
        return head.handle(request.method, path, dict(request.headers), request.body)


UNAVAILABLE = Answer(
    503, b'{"kind":"Status","reason":"ServiceUnavailable","message":"no endpoints available for service"}'
)


async def ask(world, capsys, *words, way=None, name="j"):
    """Return the exit code of the command, and what it has printed on both streams."""
    arguments = {"all_namespaces": False, "follow": False, "name": name, "action": words[0]}
    arguments |= dict.fromkeys(words[1:], True)
    way = way or Kubelets(world)
    client = Client(way, world.clock, SeededEntropy("job"), patience=Patience(total=5, tries=2))
    actions = JobActions(client, way, world.clock)
    code = await perform(actions, argparse.Namespace(**arguments), "default")
    shown = capsys.readouterr()
    return code, shown.out, shown.err


# --- list


def test_jobs_are_listed_with_what_they_wait_for(capsys):
    async def live():
        async with ray_world(lasts=None) as (world, _):
            await world.create(rayjob("runs", submissionMode="HTTPMode"))
            await world.create(rayjob("waits", submissionMode="InteractiveMode"))
            await world.create(rayjob("selects", cluster=False, clusterSelector={"ray.io/cluster": "mine"}))
            await world.create(rayjob("bad", backoffLimit=-1))
            await world.pass_time(150)
            jobs = {job["metadata"]["name"]: job["status"] for job in await world.list("RayJob")}
            return await ask(world, capsys, "list", name=""), jobs

    (code, shown, _), jobs = run(live())
    assert code == 0
    rows = [[cell.strip() for cell in line.split("   ") if cell] for line in shown.splitlines()]
    runs, waits = jobs["runs"], jobs["waits"]["rayClusterName"]
    invalid = "The RayJob spec is invalid: spec.backoffLimit: -1 is negative; use 0 or more"
    missing = "RayCluster default/mine set in the clusterSelector is not found. It must be created manually"
    by_hand = f"submit a job to RayCluster default/{waits} and write its id into spec.jobId"
    assert rows == [
        ["NAME", "STATE", "JOB", "CLUSTER", "AGE", "WAITS FOR"],
        ["bad", "ValidationFailed", "-", "-", "2m", invalid],
        ["runs", "Running", "RUNNING", runs["rayClusterName"], "2m", f"Ray job {runs['jobId']} is RUNNING"],
        ["selects", "Initializing", "-", "mine", "2m", missing],
        ["waits", "Waiting", "-", waits, "2m", by_hand],
    ]


def test_no_jobs_at_all(capsys):
    async def live():
        async with ray_world() as (world, _):
            return await ask(world, capsys, "list", name=""), await ask(
                world, capsys, "list", "all_namespaces"
            )

    one, all_of_them = run(live())
    assert one == (0, "no RayJobs in default\n", "")
    assert all_of_them == (0, "no RayJobs\n", "")


# --- logs


@pytest.mark.parametrize("mode", ["K8sJobMode", "SidecarMode"])
@pytest.mark.parametrize("words", [("logs",), ("logs", "follow")], ids=["so far", "followed"])
def test_a_submitter_prints_what_its_job_prints(mode, words, capsys):
    async def live():
        async with running(mode=mode) as (world, _):
            way = Kubelets(world)
            way.logs[SUBMITTER] = [b"caf\xc3", b"\xa9\n", b"done\n"]
            return await ask(world, capsys, *words, way=way), way.asked

    told, (request,) = run(live())
    assert told == (0, "café\ndone\n", "")
    assert dict(request.query) == {"container": SUBMITTER} | ({"follow": "true"} if "follow" in words else {})


def test_of_several_submitters_the_last_one_speaks(capsys):
    async def live():
        async with ray_world(submitter_faults=["dies before"], lasts=None) as (world, _):
            await world.create(rayjob())
            await world.pass_time(60)
            way = Kubelets(world)
            way.logs[SUBMITTER] = [b""]
            await ask(world, capsys, "logs", way=way)
            pods = await world.list("Pod", "batch.kubernetes.io/job-name=j")
            return way.asked[0].path, [(pod["status"]["phase"], pod["metadata"]["name"]) for pod in pods]

    path, pods = run(live())
    assert sorted(phase for phase, _ in pods) == ["Failed", "Running"]
    assert dict(pods)["Running"] == path.split("/")[-2]


@pytest.mark.parametrize("mode", ["HTTPMode", "InteractiveMode"])
def test_where_there_is_no_submitter_ray_is_asked_through_the_proxy(mode, capsys):
    async def live():
        async with running(mode=mode) as (world, _):
            head = await head_of(world)
            (job,) = head.jobs.values()
            job["logs"] = "one\ntwo\n"
            way = Kubelets(world)
            return await ask(world, capsys, "logs", way=way), [request.path for request in way.asked]

    told, paths = run(live())
    assert told == (0, "one\ntwo\n", "")
    assert len(paths) == 1
    assert "-head-svc:dashboard/proxy/api/jobs/" in paths[0]


def test_a_log_is_followed_to_the_end_of_the_job(capsys):
    async def live():
        async with running(mode="HTTPMode") as (world, _):
            head = await head_of(world)
            ((job_id, job),) = head.jobs.items()
            way = Kubelets(world)
            answers = iter(["one\n", "one\ntwo\n", "one\ntwo\n", "one\ntwo\nthree\n"])

            def handle(method, path, headers, body, plain=head.handle):
                if path.endswith("/logs"):
                    job["logs"] = next(answers)
                    if job["logs"].count("\n") == 2:
                        head.set_status(job_id, "SUCCEEDED")
                return plain(method, path, headers, body)

            head.handle = handle
            return await ask(world, capsys, "logs", "follow", way=way)

    assert run(live()) == (0, "one\ntwo\n", "")


async def _stop_with_token(capsys, *, keys):
    async with ray_world(token="sesame", lasts=None) as (world, _):
        authentication = {"mode": "token", "secretName": "keys"}
        await world.create(raycluster("c", authOptions=authentication, rayVersion="2.52.0"))
        data = {"auth_token": base64.b64encode(b"sesame").decode()}
        await world.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": data})
        selector = {"ray.io/cluster": "c"}
        await world.create(rayjob(cluster=False, clusterSelector=selector, submissionMode="HTTPMode"))
        await world.pass_time(20)
        if not keys:
            await world.delete("Secret", "keys")
        return await ask(world, capsys, "stop")


def test_a_dashboard_that_asks_for_a_token_gets_the_one_of_the_secret(capsys):
    code, out, err = run(_stop_with_token(capsys, keys=True))
    assert (code, err) == (0, "")
    assert out.startswith("rayjob.ray.io/j: Ray stops job j-")


def test_a_token_that_cannot_be_had_is_told(capsys):
    told = run(_stop_with_token(capsys, keys=False))
    assert told == (1, "", "eagleray job: Ray refused: Secret default/keys with the token is missing\n")


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        pytest.param(
            rayjob(cluster=False, clusterSelector={"ray.io/cluster": "mine"}),
            "RayJob default/j has no submitter: it is Initializing and waits for this: RayCluster default/mine set in",
            id="a job without a cluster",
        ),
        pytest.param(
            rayjob(submissionMode="InteractiveMode"),
            "RayJob default/j has no job that Ray knows: it is Waiting and waits for this: submit a job",
            id="a job that nobody has submitted",
        ),
        pytest.param(
            rayjob(submissionMode="InteractiveMode", jobId="typo"),
            "RayJob default/j has no job that Ray knows: it is Running and waits for this: RayCluster",
            id="an id that Ray does not know",
        ),
    ],
)
def test_a_job_that_has_printed_nothing_says_what_it_waits_for(job, sentence, capsys):
    async def live():
        async with ray_world() as (world, _):
            await world.create(job)
            await world.pass_time(20)
            return await ask(world, capsys, "logs")

    code, out, err = run(live())
    assert (code, out) == (1, "")
    assert err.startswith(f"eagleray job: {sentence}")
    assert err.endswith("(eagleray why rayjob/j -n default)\n")


# --- stop


@pytest.mark.parametrize("mode", MODES)
def test_stop_has_ray_stop_the_job_in_every_mode(mode, capsys):
    async def live():
        async with running(mode=mode, shutdownAfterJobFinishes=mode == "HTTPMode") as (world, _):
            (job_id,) = (await head_of(world)).jobs
            told = await ask(world, capsys, "stop")
            stopped = (await head_of(world)).jobs[job_id]["status"]
            state = await reached(world, "Complete", "Failed")
            return told, job_id, stopped, (state["jobDeploymentStatus"], state["jobStatus"])

    (code, out, err), job_id, stopped, state = run(live())
    assert (code, err) == (0, "")
    left = "is deleted after that" if mode == "HTTPMode" else "is left running"
    assert out.splitlines() == [
        f"rayjob.ray.io/j: Ray stops job {job_id}",
        f"note: the RayJob becomes Complete with job status STOPPED; its cluster {left}",
    ]
    assert stopped == "STOPPED"
    assert state == ("Complete", "STOPPED")


def test_what_has_ended_is_not_stopped(capsys):
    async def live():
        async with ended(submissionMode="HTTPMode") as (world, _):
            way = Kubelets(world)
            return await ask(world, capsys, "stop", way=way), way.asked

    told, asked = run(live())
    assert told == (1, "", "eagleray job: RayJob default/j has ended already: SUCCEEDED\n")
    assert asked == []


# --- what cannot be done


def test_a_dashboard_that_nobody_answers_at(capsys):
    async def live():
        async with running(mode="HTTPMode") as (world, _):
            world.dashboards.heads.clear()
            return await ask(world, capsys, "stop"), await ask(world, capsys, "logs")

    for code, out, err in run(live()):
        assert (code, out) == (2, "")
        assert err.startswith(
            "eagleray job: Ray's dashboard cannot be reached through the API server: the API server"
        )
        assert "no endpoints available" in err


def test_a_cluster_that_is_gone_has_taken_the_log_with_it(capsys):
    async def live():
        async with ended(submissionMode="HTTPMode", shutdownAfterJobFinishes=True) as (world, _):
            await world.pass_time(30)
            return await ask(world, capsys, "logs")

    code, out, err = run(live())
    assert (code, out) == (1, "")
    assert err.endswith("of RayJob default/j is gone, and Ray with it\n")


def test_a_container_that_has_not_started(capsys):
    async def live():
        async with running() as (world, _):
            way = Kubelets(world)
            words = r"container \"ray-job-submitter\" is waiting to start: ImagePullBackOff"
            body = f'{{"kind":"Status","reason":"BadRequest","message":"{words}"}}'
            way.refusal = Stream(Answer(400, body.encode()), nothing())
            return await ask(world, capsys, "logs", way=way)

    code, out, err = run(live())
    assert (code, out) == (2, "")
    assert err == 'eagleray job: container "ray-job-submitter" is waiting to start: ImagePullBackOff\n'


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["logs", ".."], "'..' is no name", id="a name that no object has"),
        pytest.param(["stop", "a", "-n", "A/B"], "'A/B' is no namespace", id="a namespace that is none"),
        pytest.param(["list", "--context", "x"], "there is no context 'x'", id="an unknown context"),
        pytest.param(["list"], "127.0.0.1:1", id="a server that does not answer"),
    ],
)
def test_what_cannot_be_asked_ends_with_2_and_a_sentence(arguments, sentence, tmp_path, capsys):
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    assert main(["job", *arguments, "--kubeconfig", str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("eagleray job: ")
    assert sentence in shown.err
    assert len(shown.err.splitlines()) == 1


def test_a_job_that_does_not_exist(capsys):
    async def live():
        async with ray_world() as (world, _):
            return [await ask(world, capsys, action, name="none") for action in ("logs", "stop")]

    sentence = "eagleray job: there is no RayJob default/none, or its CRD is not installed\n"
    assert run(live()) == [(2, "", sentence)] * 2


# Nothing listens at port 1.
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""
