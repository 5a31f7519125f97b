"""Ray heads that exist only in this process: job tables, sessions, Serve applications, faults, and a ledger.

A test makes a network, puts heads into it, and gives the network to the operator as its carrier:

    heads = ScriptedDashboards(clock)
    head = heads.start("raysubmit-head-svc.default.svc.cluster.local:8265")
    dashboard = Dashboard(address, heads)

    head.set_status("job-1", "SUCCEEDED")           # what Ray says from now on
    heads.fault(host, HANGS)                        # what goes wrong with every request from now on
    heads.fault(host, ANSWER_LOST, times=1)         # or only with the next one
    heads.restart(host)                             # a new head: another session, and an empty job table
    assert heads.ledger.executions("job-1") == 1    # over all heads that there have ever been

The ledger belongs to the network, not to a head: it counts how often an entrypoint was started, whoever started it and
whatever became of the head, so that a test can hold the operator to "at most once".
"""

import asyncio
from collections import Counter, defaultdict
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from eagleray.dashboard.carriers import ConnectTimedOut, TooLong, headers_of
from eagleray.kube.transport import Answer, AnswerLost, NotSent

TERMINAL = {"STOPPED", "SUCCEEDED", "FAILED"}


class Fault(NamedTuple):
    """What goes wrong with a request: before it arrives, or with its answer."""

    name: str
    seconds: float = 0.0
    answer: Answer | None = None


REFUSES = Fault("refuses")  # nobody listens: the request certainly does not arrive
CONNECT_HANGS = Fault("connect hangs")  # the connection is never made; likewise
HANGS = Fault("hangs")  # the connection is made, the request is never read
ANSWER_LOST = Fault("answer lost")  # it is done, and the line breaks before the answer
ANSWER_HANGS = Fault("answer hangs")  # it is done, and the answer never comes
WRONG_JSON = Fault("says", answer=Answer(200, b'{"status": "RUNN'))
WRONG_SHAPE = Fault("says", answer=Answer(200, b'{"status": {"is": ["running"]}}'))
NO_SUCH_PAGE = Fault("says", answer=Answer(404, b"404: Not Found"))
SERVER_ERROR = Fault(
    "says", answer=Answer(500, b"Traceback (most recent call last):\nRuntimeError: GCS is away\n")
)


def slow(seconds):
    """Answer, but only after so many seconds."""
    return Fault("slow", seconds)


def late(seconds):
    """Do it after so many seconds, whether or not anybody still waits for the answer."""
    return Fault("late", seconds)


def says(status, body=b""):
    """Give this answer in place of the head's; nothing is done."""
    return Fault("says", answer=Answer(status, body))


class Ledger:
    """What was ever executed, on whichever head."""

    def __init__(self):
        self.started = []  # (submission id, session), in order

    def executions(self, submission_id):
        """Return how often the entrypoint of a submission was started."""
        return sum(started == submission_id for started, _ in self.started)

    @property
    def repeated(self):
        """The submissions that were executed more than once."""
        counts = Counter(submission_id for submission_id, _ in self.started)
        return sorted(submission_id for submission_id, count in counts.items() if count > 1)


class ScriptedHead:
    """One start of a Ray head: its session, its job table and its Serve applications.

    `lasts` seconds after its submission a job ends with the status `ends`; without `lasts` it stays as a test sets it.
    Likewise an application runs `deploys` seconds after it was put, unless `application_faults` has another end for
    it, as (status, message) by name.
    """

    def __init__(
        self,
        clock,
        ledger,
        *,
        session,
        ray_version="2.52.0",
        token="",
        lasts=None,
        ends="SUCCEEDED",
        deploys=None,
    ):
        self.clock = clock
        self.ledger = ledger
        self.session = session
        self.ray_version = ray_version
        self.token = token
        self.lasts = lasts
        self.ends = ends
        self.jobs = {}
        self.packages = {}
        self.applications = {}
        self.target_capacity = None
        self.serve_configurations = []
        self.deploys = deploys
        self.application_faults = {}
        self.takes_traffic = True
        self.flapping = defaultdict(list)

    # --- what a test does to it

    def submit(self, submission_id, entrypoint="python job.py", **details):
        """Start a job as whoever submits it here does; an id that is taken is a ValueError."""
        if submission_id in self.jobs:
            raise ValueError(
                f"Job with submission_id {submission_id} already exists. Please use a different submission_id."
            )
        self.ledger.started.append((submission_id, self.session))
        self.jobs[submission_id] = {
            "type": "SUBMISSION",
            "submission_id": submission_id,
            "job_id": f"{len(self.jobs) + 1:02d}000000",
            "status": "RUNNING",
            "message": "Job is currently running.",
            "error_type": None,
            "start_time": self._milliseconds(),
            "end_time": 0,
            "entrypoint": entrypoint,
            "metadata": {},
            "runtime_env": {},
            **details,
        }

    def set_status(self, submission_id, status, message="", **details):
        """Have Ray say this about a job from now on; the status of an end comes with its time."""
        job = self.jobs[submission_id]
        end_time = self._milliseconds() if status in TERMINAL else 0
        job.update(status=status, message=message, end_time=end_time, **details)

    def flap(self, submission_id, *statuses):
        """Have the next answers about a job say these, one after the other, whatever is true."""
        self.flapping[submission_id] += statuses

    def forget_jobs(self):
        """Lose the job table; what runs goes on running."""
        self.jobs.clear()

    def set_application(self, name, status, message="", **deployments):
        """Have Serve say this about an application; deployments are given as name=status."""
        self.applications[name] = {
            "name": name,
            "status": status,
            "message": message,
            "deployments": {
                of: {"name": of, "status": state, "message": ""} for of, state in deployments.items()
            },
        }

    # --- what it answers

    def handle(self, method, path, headers, body):
        """Return the answer to a request, as Ray's dashboard gives it. It is done by then."""
        if self.token:
            shown = headers.get("x-ray-authorization", "")
            if not shown:
                return Answer(401, b"Unauthorized: Missing authentication token")
            if shown != f"Bearer {self.token}":
                return Answer(403, b"Forbidden: Invalid authentication token")
        match (method, *path.strip("/").split("/")):
            case ("GET", "api", "version"):
                return _says(
                    version="4", ray_version=self.ray_version, ray_commit="0", session_name=self.session
                )
            case ("GET", "api", "jobs"):
                return Answer(200, msgspec.json.encode([self._shown(job_id) for job_id in self.jobs]))
            case ("POST", "api", "jobs"):
                return self._submit(msgspec.json.decode(body))
            case (_, "api", "jobs", job_id, *rest):
                return self._job(method, unquote(job_id), rest)
            case ("GET", "api", "packages", "gcs", name):
                known = unquote(name) in self.packages
                return Answer(200) if known else Answer(404, f"Package gcs://{name} does not exist".encode())
            case ("PUT", "api", "packages", "gcs", name):
                self.packages[unquote(name)] = body
                return Answer(200)
            case ("GET", "api", "serve", "applications"):
                return _says(applications=self._served(), target_capacity=self.target_capacity)
            case ("PUT", "api", "serve", "applications"):
                return self._put_serve(msgspec.json.decode(body))
            case ("GET", "-", "healthz"):
                return Answer(200, b"success") if self.takes_traffic else Answer(503, b"DRAINING")
        return Answer(404, b"404: Not Found")

    def _job(self, method, job_id, rest):
        if job_id not in self.jobs:
            return Answer(404, f"Job {job_id} does not exist".encode())
        job = self._shown(job_id)
        match (method, *rest):
            case ("GET",):
                return _says(**job)
            case ("GET", "logs"):
                return _says(logs=job.get("logs", ""))
            case ("POST", "stop"):
                has_ended = job["status"] in TERMINAL
                if not has_ended:
                    self.set_status(job_id, "STOPPED", "Job was intentionally stopped.")
                return _says(stopped=not has_ended)
            case ("DELETE",):
                if job["status"] not in TERMINAL:
                    return Answer(500, b"RuntimeError: a job that has not ended cannot be deleted")
                del self.jobs[job_id]
                return _says(deleted=True)
        return Answer(404, b"404: Not Found")

    def _submit(self, wanted):
        submission_id = wanted.get("submission_id") or f"raysubmit_{len(self.ledger.started)}"
        details = {name: wanted[name] for name in ("metadata", "runtime_env") if name in wanted}
        try:
            self.submit(submission_id, wanted["entrypoint"], **details)
        except ValueError as taken:
            return Answer(500, f"Traceback (most recent call last):\nValueError: {taken}\n.".encode())
        return _says(job_id=submission_id, submission_id=submission_id)

    def _put_serve(self, configuration):
        self.serve_configurations.append(configuration)
        self.target_capacity = configuration.get("target_capacity")
        wanted = {app.get("name", "default") for app in configuration.get("applications", ())}
        kept = {name: app for name, app in self.applications.items() if name in wanted}
        self.applications.clear()
        for app in configuration.get("applications", ()):
            name = app.get("name", "default")
            if name in kept and kept[name].get("deployed_app_config", app) == app:
                self.applications[name] = kept[name]
            else:
                self.set_application(name, "DEPLOYING")
                self.applications[name]["put_at"] = self.clock.monotonic()
            self.applications[name]["deployed_app_config"] = app
        return Answer(200)

    def _served(self):
        """Return what Serve says about its applications now."""
        for name, app in self.applications.items():
            if self.deploys is None or app["status"] != "DEPLOYING":
                continue
            if self.clock.monotonic() >= app.get("put_at", 0.0) + self.deploys:
                status, message = self.application_faults.get(name, ("RUNNING", ""))
                app.update(status=status, message=message)
        return self.applications

    def _shown(self, job_id):
        """Return what Ray says about a job now."""
        job = self.jobs[job_id]
        if self.lasts is not None and job["status"] not in TERMINAL:
            ends_at = job["start_time"] + round(self.lasts * 1000)
            if self._milliseconds() >= ends_at:
                job.update(status=self.ends, message="", end_time=ends_at)
        if self.flapping[job_id]:
            return {**job, "status": self.flapping[job_id].pop(0)}
        return job

    def _milliseconds(self):
        return round(self.clock.now().timestamp() * 1000)


class ScriptedDashboards:
    """A network of scripted heads by host, which is also the carrier that reaches them.

    It remembers every request (`requests`: host, method, path), and how many were under way at once, in all
    (`most_at_once`) and at one host (`most_at_one_host`).
    """

    def __init__(self, clock):
        self.clock = clock
        self.ledger = Ledger()
        self.heads = {}
        self.proxies = {}  # whatever else answers at some host
        self.requests = []
        self.most_at_once = 0
        self.most_at_one_host = 0
        self._under_way: Counter[str] = Counter()
        self._sessions = 0
        self._standing = {}
        self._next = defaultdict(list)
        self._late = set()

    # --- what a test does to it

    def start(self, host, **options):
        """Put a new head at a host, in place of the one before it, and return it."""
        self._sessions += 1
        options.setdefault("session", f"session_{self._sessions}")
        self.heads[host] = ScriptedHead(self.clock, self.ledger, **options)
        return self.heads[host]

    def restart(self, host, *, keeps_jobs=False, **options):
        """Replace a head by a new one of another session; only one with external storage knows the old jobs."""
        old = self.heads[host]
        new = self.start(host, token=old.token, lasts=old.lasts, ends=old.ends, **options)
        if keeps_jobs:
            new.jobs = old.jobs
        return new

    def kill(self, host):
        """Take a head away: connections are refused."""
        del self.heads[host]

    def fault(self, host, fault, *, times=None):
        """Have this go wrong with all requests to a host, or with so many of the next ones."""
        if times is None:
            self._standing[host] = fault
        else:
            self._next[host] += [fault] * times

    def heal(self, host):
        """Let everything go well again."""
        self._standing.pop(host, None)
        self._next.pop(host, None)

    def asked(self, host=None, method=None):
        """Return the paths of the requests so far, of one host and method if given."""
        return [path for at, by, path in self.requests if host in (None, at) and method in (None, by)]

    # --- the carrier

    async def send(self, address, request, token, *, connect_seconds, longest):
        host = address.host
        self.requests.append((host, request.method, request.path))
        self._under_way[host] += 1
        self.most_at_once = max(self.most_at_once, self._under_way.total())
        self.most_at_one_host = max(self.most_at_one_host, self._under_way[host])
        try:
            answer = await self._answer(host, request, dict(headers_of(request, token)), connect_seconds)
        finally:
            self._under_way[host] -= 1
        if len(answer.body) > longest:
            raise TooLong(f"the answer has more than {longest} bytes")
        return answer

    async def close(self):
        """Nothing is held."""

    async def _answer(self, host, request, headers, connect_seconds):
        fault = self._next[host].pop(0) if self._next[host] else self._standing.get(host)
        await asyncio.sleep(0.001)  # a network takes some time
        if fault == CONNECT_HANGS:
            await asyncio.sleep(connect_seconds)
            raise ConnectTimedOut(f"{host}: connection timed out")
        if fault == HANGS:
            await asyncio.Event().wait()
        if fault is not None and fault.name == "slow":
            await asyncio.sleep(fault.seconds)
        if fault == REFUSES or not (host in self.heads or host in self.proxies):
            raise NotSent(f"{host}: connection refused")
        if fault is not None and fault.name == "late":
            doing = asyncio.ensure_future(self._do_later(fault.seconds, host, request, headers))
            self._late.add(doing)
            doing.add_done_callback(self._late.discard)
            return await asyncio.shield(doing)
        if fault is not None and fault.answer is not None:
            return fault.answer
        answer = self._at(host).handle(request.method, request.path, headers, request.body)
        if fault == ANSWER_LOST:
            raise AnswerLost(f"{host}: connection reset")
        if fault == ANSWER_HANGS:
            await asyncio.Event().wait()
        return answer

    async def _do_later(self, seconds, host, request, headers):
        await asyncio.sleep(seconds)
        return self._at(host).handle(request.method, request.path, headers, request.body)

    def _at(self, host):
        return self.heads[host] if host in self.heads else self.proxies[host]


def _says(**values):
    return Answer(200, msgspec.json.encode(values))
