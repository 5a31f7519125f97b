"""RayJobs for the node: a head without workers, and a program that leaves a line for each time that it was run.

    told = Told(directory)
    reef.create(job("hello", told.entrypoint("succeed"), told))
    ended(reef, "hello")
    told.lines("hello")

The program and its lines are in a directory of this machine, which heads have as a hostPath volume.
"""

from pathlib import Path
from typing import NamedTuple

from tests.eagleray.world import rayjob
from tests.ray.reef import SLOW_START, cluster

# Of the CPU a head has what it finds: it is busy while it starts and idle afterwards.
RESOURCES = {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
PLACE = "/told"
ENDS = ("Complete", "Failed")
FAILING_CODE = 3

_PROGRAM = f"""
import json, os, pathlib, sys, time

what, number, place = sys.argv[1], sys.argv[2], pathlib.Path("{PLACE}")
gate = place / number
attempt = json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])["metadata"]["job_submission_id"]
with open(place / "lines", "a") as told:
    told.write(f"{{attempt}} {{os.environ['HOSTNAME']}}\\n")
print("attempt", attempt, "runs", flush=True)
if what == "wait":
    while not gate.exists():
        time.sleep(0.2)
elif what == "sleep":
    time.sleep(float(number))
elif what == "fail" and not gate.exists():
    gate.touch()
    print("no luck", flush=True)
    sys.exit({FAILING_CODE})
elif what == "compute":
    import ray

    ray.init(log_to_driver=False)
    print("Ray says", ray.get(ray.remote(lambda: 6 * 7).remote()))
"""


class Line(NamedTuple):
    """What a run has told: the submission id that it had, and the host that it was on."""

    attempt: str
    host: str


class Told:
    """The directory that runs tell their lines in."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        directory.chmod(0o777)  # Ray is another user than the one that tests
        self.directory = directory
        (directory / "program.py").write_text(_PROGRAM)

    def entrypoint(self, what: str, gate: str | float = "") -> str:
        """Return an entrypoint that tells its line and then will do what is wanted.

        It can `succeed`, `compute` with Ray and succeed, `wait` until a gate is open, `fail` and open the gate unless
        that is open already, or `sleep` for so many seconds.
        """
        return f"python {PLACE}/program.py {what} {gate or 'none'}"

    def open(self, gate: str) -> None:
        """Let those go on that wait for this gate."""
        (self.directory / gate).touch()

    def lines(self, job: str = "") -> list[Line]:
        """Return the lines of all attempts, or of those of a job, in the order in which they were told."""
        file = self.directory / "lines"
        found = [Line(*line.split()) for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in found if not job or job in (line.attempt, line.attempt.rpartition("-")[0])]

    @property
    def head(self):
        """A head group that can tell."""
        return {
            "rayStartParams": {"num-cpus": "1"},
            "container": {
                "resources": RESOURCES,
                "env": SLOW_START,
                "volumeMounts": [{"name": "told", "mountPath": PLACE}],
            },
            "pod": {
                "volumes": [{"name": "told", "hostPath": {"path": str(self.directory)}}],
                "terminationGracePeriodSeconds": 2,
            },
        }


def head_only(name: str, told: Told):
    """Return a RayCluster of a head that can tell."""
    return cluster(name, workers=0, head=told.head)


def job(name: str, entrypoint: str, told: Told, mode: str = "K8sJobMode", *, workers=(), **spec):
    """Return a RayJob that makes a cluster of its own."""
    described = {"head": told.head, "workers": workers, "rayVersion": "2.52.0"}
    return rayjob(name, cluster=described, entrypoint=entrypoint, submissionMode=mode, **spec)


def job_on(chosen: str, name: str, entrypoint: str, mode: str = "K8sJobMode", **spec):
    """Return a RayJob that runs on a cluster that is there."""
    selector = {"ray.io/cluster": chosen}
    return rayjob(
        name, cluster=False, clusterSelector=selector, entrypoint=entrypoint, submissionMode=mode, **spec
    )


def submit(reef, chosen: str, job_id: str, entrypoint: str):
    """Submit to a cluster as a user does, and let the RayJob in InteractiveMode of the same name know."""
    in_state(reef, job_id, "Waiting")
    reef.dashboard("POST", "/api/jobs/", {"entrypoint": entrypoint, "submission_id": job_id}, name=chosen)
    reef.patch("RayJob", job_id, {"spec": {"jobId": job_id}})


def in_state(reef, name: str, *states: str):
    """Wait until a RayJob is in one of these states; returns its status."""

    def found():
        status = reef.status("RayJob", name)
        return status.get("jobDeploymentStatus") in states and status

    return reef.until(found, f"RayJob {name} is {' or '.join(states)}")


def ended(reef, name: str):
    """Wait until a RayJob has ended; returns its status."""
    return in_state(reef, name, *ENDS)


def running(reef, name: str):
    """Wait until Ray runs a RayJob; returns its status."""

    def found():
        status = reef.status("RayJob", name)
        return status.get("jobStatus") == "RUNNING" and status

    return reef.until(found, f"Ray runs RayJob {name}")
