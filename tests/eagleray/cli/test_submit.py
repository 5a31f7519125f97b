"""The `job submit` command: the RayJob that flags make, and its way to the end, once and no more than once."""

import argparse
import json

import pytest
import yaml

from eagleray.cli import submit
from eagleray.cli.jobactions import JobActions
from eagleray.cli.main import main
from eagleray.cli.submitting import Delivery, Submitting
from eagleray.cli.workingdir import Package
from eagleray.kube.client import Client
from eagleray.kube.retries import Patience
from eagleray.kube.transport import Answer, AnswerLost, NotSent
from eagleray.rayapi.rules import ValidationConfig
from eagleray.rayapi.validate import validate_object
from kubereef.simulation import run
from kubewire.sources import SeededEntropy
from tests.eagleray.cli.test_job import Kubelets
from tests.eagleray.rayjob.situations import head_of, host, ray_world, reached, set_status
from tests.eagleray.world import raycluster

PACKAGE = Package("_ray_pkg_0.zip", b"zipped", 3)
DELIVERY = Delivery(PACKAGE, {"env_vars": {"A": "b"}})


def flags(*words):
    """Return parsed flags; the command is `python main.py` unless words bring their own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--namespace", default="")
    submit.configure(parser)
    return parser.parse_args([*words, *(() if "--" in words else ("--", "python", "main.py"))])


def made(*words):
    """Return the RayJob that flags make."""
    manifest, _ = submit.prepared(flags(*words), "team")
    return manifest


# --- the RayJob


def test_without_a_directory_the_operator_submits():
    job = made("--name", "train")
    assert job["metadata"] == {"name": "train", "namespace": "team"}
    assert job["spec"]["submissionMode"] == "HTTPMode"
    assert job["spec"]["entrypoint"] == "python main.py"
    assert "jobId" not in job["spec"]


def test_with_a_directory_the_id_of_the_submission_is_in_the_job_from_the_beginning(tmp_path):
    (tmp_path / "main.py").touch()
    manifest, delivery = submit.prepared(flags("--name", "train", "--working-dir", str(tmp_path)), "team")
    assert manifest["spec"]["submissionMode"] == "InteractiveMode"
    assert manifest["spec"]["jobId"].startswith("train-")
    assert delivery is not None
    assert delivery.package.files == 1


def test_the_flags_shape_the_cluster():
    job = made(
        *("--ray-version", "2.50.0", "--workers", "3", "--worker-cpus", "2", "--worker-memory", "8Gi"),
        *("--head-cpus", "500m", "--head-memory", "4Gi", "--gpus", "1", "--env", "A=b=c"),
    )
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["rayVersion"] == "2.50.0"
    head = cluster["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert head["image"] == "rayproject/ray:2.50.0"
    assert head["resources"]["limits"] == {"cpu": "500m", "memory": "4Gi"}
    (group,) = cluster["workerGroupSpecs"]
    assert [group[name] for name in ("replicas", "minReplicas", "maxReplicas")] == [3, 3, 3]
    worker = group["template"]["spec"]["containers"][0]
    assert worker["resources"]["limits"] == {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
    assert worker["env"] == head["env"] == [{"name": "A", "value": "b=c"}]


def test_without_workers_the_head_has_the_gpus():
    cluster = made("--workers", "0", "--gpus", "2")["spec"]["rayClusterSpec"]
    assert "workerGroupSpecs" not in cluster
    limits = cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "2"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        pytest.param((), (True, 30), id="it goes when the end of the log could be read"),
        pytest.param(("--ttl", "5"), (True, 5), id="it goes when it is told to"),
        pytest.param(("--ttl", "0"), (True, 0), id="also at once"),
        pytest.param(("--keep-cluster",), (None, None), id="it stays"),
        pytest.param(("--cluster", "mine"), (None, None), id="a chosen one is not ours to end"),
    ],
)
def test_when_the_cluster_goes(words, wanted):
    spec = made(*words)["spec"]
    assert (spec.get("shutdownAfterJobFinishes"), spec.get("ttlSecondsAfterFinished")) == wanted


def test_a_chosen_cluster_is_chosen_by_its_name():
    spec = made("--cluster", "mine")["spec"]
    assert spec["clusterSelector"] == {"ray.io/cluster": "mine"}
    assert "rayClusterSpec" not in spec


@pytest.mark.parametrize(
    ("words", "entrypoint"),
    [
        pytest.param(("--", "python", "a.py", "two words", "--x"), "python a.py 'two words' --x", id="words"),
        pytest.param(("--", "echo a && echo b"), "echo a && echo b", id="a line for the shell"),
    ],
)
def test_the_command_is_kept_word_for_word(words, entrypoint):
    assert made(*words)["spec"]["entrypoint"] == entrypoint


@pytest.mark.parametrize(
    ("words", "beginning"),
    [
        (("--", "python", "src/My_Train.py"), "my-train-"),
        (("--", "./run.sh"), "run-"),
        (("--", "123"), "job-"),
        (("--", "python -c 'x'"), "python-"),
    ],
)
def test_a_name_that_is_made_up_tells_what_runs(words, beginning):
    assert made(*words)["metadata"]["name"].startswith(beginning)


def test_a_runtime_environment_goes_with_the_job(tmp_path):
    file = tmp_path / "env.yaml"
    file.write_text("pip: [requests]  # why\n")
    assert made("--runtime-env", str(file))["spec"]["runtimeEnvYAML"] == "pip: [requests]  # why\n"


def test_with_a_directory_the_runtime_environment_goes_with_the_submission(tmp_path):
    file = tmp_path / "env.yaml"
    file.write_text("pip: [requests]\nexcludes: ['*.bin']\n")
    (tmp_path / "a.bin").touch()
    words = ("--runtime-env", str(file), "--working-dir", str(tmp_path))
    manifest, delivery = submit.prepared(flags(*words), "team")
    assert "runtimeEnvYAML" not in manifest["spec"]
    assert delivery is not None
    assert (delivery.runtime_env, delivery.package.files) == ({"pip": ["requests"]}, 1)


@pytest.mark.parametrize(
    "words",
    [(), ("--keep-cluster",), ("--cluster", "mine"), ("--workers", "0"), ("--working-dir", "{}")],
    ids=["plain", "kept", "chosen", "no workers", "a directory"],
)
def test_every_job_that_is_made_is_valid(words, tmp_path):
    manifest = made(*(word.format(tmp_path) for word in words))
    assert validate_object(manifest, ValidationConfig()).problems == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(
            ("--cluster", "c", "--workers", "2"), "--workers is about a cluster", id="a shape of none"
        ),
        pytest.param(("--cluster", "c", "--env", "a=b"), "--env is about a cluster", id="variables of none"),
        pytest.param(
            ("--cluster", "c", "--keep-cluster"), "--keep-cluster is about", id="to keep what is kept"
        ),
        pytest.param(("--keep-cluster", "--ttl", "3"), "choose one", id="to keep and to end"),
        pytest.param(("--workers", "-1"), "--workers -1: choose 0 or more", id="less than none"),
        pytest.param(("--runtime-env", "/no/such"), "No such file", id="no file"),
        pytest.param(("--working-dir", "/no/such"), "/no/such is no directory", id="no directory"),
    ],
)
def test_flags_that_cannot_be_are_told_before_anything_is_made(words, sentence, capsys):
    assert main(["job", "submit", "--dry-run", *words, "--", "x"]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1]", "this is no mapping"),
        ("working_dir: .", "name it by --working-dir"),
        ("a: [", "env.yaml"),
    ],
)
def test_a_runtime_environment_that_is_none_is_told(tmp_path, capsys, text, sentence):
    file = tmp_path / "env.yaml"
    file.write_text(text)
    assert main(["job", "submit", "--dry-run", "--runtime-env", str(file), "--", "x"]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("output", "read"), [("yaml", yaml.safe_load), ("json", json.loads)])
def test_a_dry_run_prints_the_job_and_needs_no_cluster(output, read, capsys):
    words = ("--dry-run", "-o", output, "-n", "team", "--name", "a")
    assert main(["job", "submit", *words, "--", "python", "x.py"]) == 0
    assert read(capsys.readouterr().out)["metadata"] == {"name": "a", "namespace": "team"}


# --- its way


class Way(Kubelets):
    """A way to the API server on which requests to Ray can be lost, by their method and the end of their path."""

    def __init__(self, world):
        super().__init__(world)
        self.faults = []

    def _proxied(self, request):
        for fault in self.faults:
            method, ending, kind = fault[:3]
            if request.method == method and request.path.endswith(ending):
                self.faults.remove(fault)
                if kind == "lost":
                    super()._proxied(request)
                    raise AnswerLost("the line broke")
                if kind == "not sent":
                    raise NotSent("nobody listens")
                if callable(kind):
                    kind()
                    raise AnswerLost("the line broke")
                return kind
        return super()._proxied(request)


async def submitted(world, capsys, *, way=None, delivery=DELIVERY, wait=True, meanwhile=None, **spec):
    """Submit the job `j`, and let time pass until that has ended; returns the exit code and both streams."""
    import asyncio

    words = ("--name", "j", *spec.pop("words", ()))
    manifest, _ = submit.prepared(flags(*words), "default")
    if delivery is not None:
        manifest["spec"] |= {"submissionMode": "InteractiveMode", "jobId": "j-once"}
    manifest["spec"] |= spec
    way = way or Way(world)
    client = Client(way, world.clock, SeededEntropy("job"), patience=Patience(total=5, tries=2))
    actions = JobActions(client, way, world.clock)
    printed, said = lambda text: print(text, end=""), submit._say
    submitting = Submitting(actions, client, world.clock, printed=printed, said=said)
    task = asyncio.create_task(submit.perform(submitting, manifest, delivery, wait=wait))
    if meanwhile is not None:
        await meanwhile(world)

    async def is_over():
        return task.done()

    await world.until(is_over)
    shown = capsys.readouterr()
    return task.result(), shown.out, shown.err


def test_a_directory_is_uploaded_submitted_and_followed(capsys):
    async def print_something(world):
        await reached(world, "Running")
        await world.pass_time(5)
        head = await head_of(world)
        head.jobs["j-once"]["logs"] = "one\n"
        await world.pass_time(5)
        head.jobs["j-once"]["logs"] = "one\ntwo\n"

    async def live():
        async with ray_world(lasts=20) as (world, ray):
            result = await submitted(world, capsys, meanwhile=print_something)
            head = await head_of(world)
            return result, head.packages, head.jobs["j-once"], ray.ledger.executions("j-once")

    (code, out, err), packages, job, executions = run(live())
    assert (code, out) == (0, "one\ntwo\n")
    assert packages == {"_ray_pkg_0.zip": b"zipped"}
    assert job["runtime_env"] == {"env_vars": {"A": "b"}, "working_dir": "gcs://_ray_pkg_0.zip"}
    assert job["entrypoint"] == "python main.py"
    assert executions == 1
    said = err.splitlines()
    assert said[0] == "rayjob.ray.io/j created in namespace default"
    assert "uploading 3 files (6 B)" in said
    assert "submitted 'python main.py' as j-once" in said
    assert said[-1] == "rayjob.ray.io/j: SUCCEEDED"


def test_what_the_cluster_waits_for_is_told_meanwhile(capsys):
    async def make_it_late(world):
        await world.pass_time(10)
        await world.create(raycluster("mine"))

    async def live():
        async with ray_world(lasts=5) as (world, _):
            return await submitted(world, capsys, words=("--cluster", "mine"), meanwhile=make_it_late)

    code, _, err = run(live())
    assert code == 0
    assert "waits for: RayCluster default/mine set in the clusterSelector is not found" in err


def test_a_cluster_without_an_operator_is_told(capsys):
    async def start_it_late(world):
        await world.pass_time(10)
        await world.start_operator()

    async def live():
        async with ray_world(lasts=5, operator=False) as (world, _):
            return await submitted(world, capsys, meanwhile=start_it_late)

    code, _, err = run(live())
    assert code == 0
    assert "waits for: an operator" in err


def test_files_that_are_there_already_are_not_uploaded(capsys):
    async def put_it_there(world):
        while not world.dashboards.heads:
            await world.pass_time(0.01)
        (head,) = world.dashboards.heads.values()
        head.packages["_ray_pkg_0.zip"] = b"earlier"

    async def live():
        async with ray_world(lasts=5) as (world, _):
            result = await submitted(world, capsys, meanwhile=put_it_there)
            return result, (await head_of(world)).packages

    (code, _, err), packages = run(live())
    assert (code, packages) == (0, {"_ray_pkg_0.zip": b"earlier"})
    assert "3 files are there already, as _ray_pkg_0.zip" in err


@pytest.mark.parametrize(
    ("ends", "code"),
    [("SUCCEEDED", 0), ("FAILED", 1), ("STOPPED", 1)],
    ids=["succeeded", "failed", "stopped"],
)
@pytest.mark.parametrize("delivery", [DELIVERY, None], ids=["with files", "without"])
def test_only_success_ends_with_0(ends, code, delivery, capsys):
    async def live():
        async with ray_world(lasts=5, ends=ends) as (world, _):
            return await submitted(world, capsys, delivery=delivery)

    got, _, err = run(live())
    assert got == code
    assert err.splitlines()[-1].startswith(f"rayjob.ray.io/j: {ends}")


@pytest.mark.parametrize("kind", ["lost", "not sent"])
@pytest.mark.parametrize(
    ("method", "ending"),
    [("GET", "/api/version"), ("GET", ".zip"), ("PUT", ".zip"), ("POST", "/api/jobs/"), ("GET", "/logs")],
    ids=["the version", "the question", "the upload", "the submission", "the log"],
)
def test_a_line_that_breaks_once_costs_nothing_and_runs_nothing_twice(method, ending, kind, capsys):
    async def live():
        async with ray_world(lasts=10) as (world, ray):
            way = Way(world)
            way.faults.append((method, ending, kind))
            result = await submitted(world, capsys, way=way)
            assert not way.faults, "it was never asked for"
            return result[0], ray.ledger.executions("j-once")

    assert run(live()) == (0, 1)


def test_a_head_that_is_replaced_during_the_submission_does_not_get_it_again(capsys):
    async def live():
        async with ray_world(lasts=None) as (world, ray):
            way = Way(world)

            def replaced():
                (at,) = world.dashboards.heads
                world.dashboards.heads[at].submit("j-once")
                world.dashboards.restart(at)

            way.faults.append(("POST", "/api/jobs/", replaced))
            result = await submitted(world, capsys, way=way)
            return result, ray.ledger.executions("j-once")

    (code, _, err), executions = run(live())
    assert (code, executions) == (1, 1)
    assert "the head was replaced while the job was being submitted" in err


def test_of_a_long_reason_the_first_line_is_told(capsys):
    async def fail(world):
        await reached(world, "Running")
        await world.pass_time(3)
        (await head_of(world)).set_status("j-once", "FAILED", "exit code 3, last logs:\none\ntwo")

    async def live():
        async with ray_world(lasts=None) as (world, _):
            return await submitted(world, capsys, meanwhile=fail)

    assert run(live())[2].endswith("rayjob.ray.io/j: FAILED: exit code 3, last logs:\n")


def test_ray_that_refuses_the_job_is_quoted(capsys):
    async def live():
        async with ray_world(lasts=5) as (world, _):
            way = Way(world)
            way.faults.append(("POST", "/api/jobs/", Answer(400, b"ValueError: no such field")))
            return await submitted(world, capsys, way=way)

    code, _, err = run(live())
    assert code == 1
    assert "Ray refused: " in err
    assert "no such field" in err


def test_an_upload_that_is_too_large_on_the_way_is_told(capsys):
    async def live():
        async with ray_world(lasts=5) as (world, _):
            way = Way(world)
            way.faults.append(("PUT", ".zip", Answer(413, b"Request Entity Too Large")))
            return await submitted(world, capsys, way=way)

    code, _, err = run(live())
    assert code == 1
    assert "leave files out by a .rayignore file" in err


def test_without_waiting_it_returns_once_the_job_can_do_without(capsys):
    async def live():
        async with ray_world(lasts=None) as (world, ray):
            result = await submitted(world, capsys, wait=False)
            return result, ray.ledger.executions("j-once")

    (code, out, err), executions = run(live())
    assert (code, out, executions) == (0, "", 1)
    assert "eagleray job logs j -n default -f" in err
    assert "eagleray job stop j -n default" in err


def test_a_name_that_is_taken_is_told(capsys):
    async def live():
        async with ray_world(lasts=5) as (world, _):
            await submitted(world, capsys)
            return await submitted(world, capsys)

    code, _, err = run(live())
    assert code == 1
    assert "choose another --name" in err


def test_a_job_that_fails_before_ray_has_it_ends_with_its_reason(capsys):
    async def live():
        async with ray_world(lasts=5) as (world, _):
            cluster = {"clusterSelector": {"ray.io/cluster": "mine"}}
            words = ("--cluster", "mine")
            return await submitted(world, capsys, words=words, preRunningDeadlineSeconds=30, **cluster)

    code, _, err = run(live())
    assert code == 1
    assert "rayjob.ray.io/j: Failed: PreRunningDeadlineExceeded" in err


def test_a_job_that_is_deleted_meanwhile_is_told(capsys):
    async def delete(world):
        await reached(world, "Running")
        await world.pass_time(3)
        await world.delete("RayJob", "j")

    async def live():
        async with ray_world(lasts=None) as (world, _):
            return await submitted(world, capsys, meanwhile=delete)

    code, _, err = run(live())
    assert code == 1
    assert "RayJob default/j was deleted meanwhile" in err


def test_a_cluster_that_goes_first_leaves_the_last_word_to_the_operator(capsys):
    async def lose(world):
        await reached(world, "Running")
        await world.pass_time(3)
        world.dashboards.kill(await host(world))
        await set_status(world, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")

    async def live():
        async with ray_world(lasts=None) as (world, _):
            return await submitted(world, capsys, meanwhile=lose)

    assert run(live())[0] == 0


def test_a_chosen_cluster_gets_the_job(capsys):
    async def live():
        async with ray_world(lasts=5) as (world, ray):
            await world.create(raycluster("mine"))
            await world.ready("mine")
            result = await submitted(world, capsys, words=("--cluster", "mine"))
            return result[0], ray.ledger.executions("j-once")

    assert run(live()) == (0, 1)


@pytest.mark.parametrize(
    ("is_submitted", "sentence"),
    [(True, "goes on"), (False, "was not submitted: nothing will run")],
    ids=["it runs", "it does not run yet"],
)
def test_whoever_goes_is_told_what_they_leave(is_submitted, sentence):
    manifest = made("--name", "j")
    assert sentence in submit.left_behind(manifest, is_submitted=is_submitted)[0]
