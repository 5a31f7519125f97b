"""Ray in the test world: heads answer when their Pods run, and submitters do what their command says.

    ray = RayOnPods(world, lasts=20)
    async with ray:
        await world.create(rayjob())

A head is another session whenever its container starts anew, and has then forgotten its jobs, unless it is told to
keep them as one with external storage does. Submitters, in Pods of their own or beside Ray, replay the generated
command on every start: they wait for the head, ask for the job, check the session, submit, and follow the log.
"""

import asyncio
import json
import re
from datetime import datetime

from eagleray.kube.transport import Answer
from kubereef.controllers.following import follow
from kubewire import errors
from kubewire.times import format_time

SUBMITTER = "ray-job-submitter"
PODS = "/api/v1/pods"

_SESSION_CHECK = re.compile(r'" (?P<address>\S+) "(?P<session>[^"]*)" (?P<requested>\d+) \|\|')
_SESSION_TIME = re.compile(r"session_([0-9_-]{26})")


class RayOnPods:
    """Follows the world's Pods and lets Ray live in them. Jobs last and end as told, unless a test sets their status.

    A head takes requests for Serve at the address of its Pod. An application runs `deploys` seconds after it was put,
    or ends as `application_faults` says, as (status, message) by name.

    `submitter_faults` are taken one by one by starting submitters: "dies before", "dies after" (the submission). A
    cluster that asks for a `token` has heads that do. With `held`, submitters do not end though they are done; with
    `let_go`, they stop to follow and end well; `exit_with` is how they end when their job has.
    """

    def __init__(
        self,
        world,
        *,
        lasts=20.0,
        ends="SUCCEEDED",
        keeps_jobs=False,
        health_delay=0.0,
        submitter_faults=(),
        token="",
        deploys=2.0,
        application_faults=None,
    ):
        self.world = world
        self.dashboards = world.dashboards
        self.lasts = lasts
        self.ends = ends
        self.keeps_jobs = keeps_jobs
        self.health_delay = health_delay
        self.token = token
        self.deploys = deploys
        self.application_faults = application_faults or {}
        self.takes_traffic = True  # the Serve proxies of heads that start from now on
        self.submitter_faults = list(submitter_faults)
        self.held = False
        self.let_go = False
        self.exit_with = 0
        self.exit_codes = []
        self._heads = {}  # Pod uid and restart count of the head that answers at a host
        self._proxies = {}  # where the Serve proxy of that head answers
        self._jobs = {}  # what heads with external storage keep, by host
        self._applications = {}  # likewise
        self._sessions = {}  # likewise
        self._submitters = {}
        self._following = None

    async def __aenter__(self):
        self._following = asyncio.create_task(follow(self.world.api, PODS, self), name="ray on pods")
        return self

    async def __aexit__(self, *_why):
        tasks = [self._following, *self._submitters.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def ledger(self):
        return self.dashboards.ledger

    # --- what the watch tells (see following.Sink)

    def replace(self, objects, revision):
        for pod in objects:
            self._seen(pod)

    def apply(self, kind, obj, revision):
        if kind == "DELETED":
            self._gone(obj)
        else:
            self._seen(obj)

    def reached(self, revision):
        pass

    # --- heads

    def _seen(self, pod):
        labels = pod["metadata"].get("labels") or {}
        if labels.get("ray.io/node-type") == "head":
            self._head_seen(pod, labels["ray.io/cluster"])
        statuses = {one["name"]: one for one in (pod.get("status") or {}).get("containerStatuses") or ()}
        status = statuses.get(SUBMITTER)
        if status is not None and "running" in (status.get("state") or {}):
            start = (pod["metadata"]["uid"], status.get("restartCount", 0))
            if start not in self._submitters:
                self._submitters[start] = asyncio.create_task(self._submit(pod), name=f"submitter {start}")

    def _head_seen(self, pod, cluster):
        host = host_of(cluster, pod["metadata"]["namespace"])
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        ray = next((one for one in statuses if one["name"] != SUBMITTER), None)
        if ray is None or "running" not in (ray.get("state") or {}):
            self._stop(host, pod["metadata"]["uid"])
            return
        start = (pod["metadata"]["uid"], ray.get("restartCount", 0))
        if self._heads.get(host) != start:
            self._heads[host] = start
            head = self.dashboards.start(
                host,
                lasts=self.lasts,
                ends=self.ends,
                session=self._session_at(host),
                token=self.token,
                deploys=self.deploys,
            )
            head.application_faults = self.application_faults
            head.takes_traffic = self.takes_traffic
            if self.keeps_jobs:
                head.jobs = self._jobs.setdefault(host, head.jobs)
                head.applications = self._applications.setdefault(host, head.applications)
            self._proxies[host] = proxy_of(pod)
            self.dashboards.proxies[proxy_of(pod)] = ServeProxy(head)

    def _session_at(self, host):
        """Return the session of a head that starts; one with external storage goes on with that of its predecessor."""
        begins = f"session_{self.world.clock.now():%Y-%m-%d_%H-%M-%S_%f}_1"
        return self._sessions.setdefault(host, begins) if self.keeps_jobs else begins

    def _gone(self, pod):
        labels = pod["metadata"].get("labels") or {}
        if labels.get("ray.io/node-type") == "head":
            self._stop(
                host_of(labels["ray.io/cluster"], pod["metadata"]["namespace"]), pod["metadata"]["uid"]
            )
        for start in [start for start in self._submitters if start[0] == pod["metadata"]["uid"]]:
            self._submitters.pop(start).cancel()

    def _stop(self, host, uid):
        if self._heads.get(host, ("",))[0] == uid:
            del self._heads[host]
            self.dashboards.kill(host)
            del self.dashboards.proxies[self._proxies.pop(host)]

    # --- submitters

    async def _submit(self, pod):
        container = next(one for one in pod["spec"]["containers"] if one["name"] == SUBMITTER)
        environment = {one["name"]: one.get("value", "") for one in container["env"]}
        job_id = environment["RAY_JOB_SUBMISSION_ID"]
        labels = pod["metadata"]["labels"]
        if labels.get("ray.io/node-type") == "head":
            host = host_of(labels["ray.io/cluster"], pod["metadata"]["namespace"])
        else:
            host = environment["RAY_DASHBOARD_ADDRESS"]
        fault = self.submitter_faults.pop(0) if self.submitter_faults else ""
        if container.get("command") == ["/submitter"]:
            code = await self._run_light(container, host, job_id, fault)
        else:
            code = await self._run(container["args"][0], host, job_id, fault)
        while self.held:  # noqa: ASYNC110 - it hangs until a test lets it go
            await asyncio.sleep(1)
        self.exit_codes.append(code)
        await self._end(pod, container, code)

    async def _run(self, command, host, job_id, fault):
        """Return the exit code of the generated command."""
        while host not in self.dashboards.heads:  # noqa: ASYNC110 - the command polls
            await asyncio.sleep(2)
        await asyncio.sleep(self.health_delay)
        head = self.dashboards.heads.get(host)
        if head is None or fault == "dies before":
            return 1
        checks = "ray job status" in command
        if not checks or job_id not in head.jobs:
            if checks and _is_other_head(command, head.session):
                return 86
            try:
                head.submit(job_id, command.partition(" -- ")[2].partition(" ;")[0])
            except ValueError:
                return 1
        if fault == "dies after":
            return 1
        return await self._follow(host, head, job_id, waits_for_result=not checks)

    async def _run_light(self, container, host, job_id, fault):
        """Return the exit code of the reference's small submitter, which is used as it is."""
        arguments = container.get("args") or []
        if "--entrypoint-resources" in arguments:
            try:
                json.loads(arguments[arguments.index("--entrypoint-resources") + 1])
            except ValueError:
                return 1
        head = self.dashboards.heads.get(host)
        if head is None:
            return 1
        if job_id not in head.jobs:
            head.submit(job_id, " ".join(arguments))
        return 1 if fault == "dies after" else await self._follow(host, head, job_id, waits_for_result=False)

    async def _follow(self, host, head, job_id, *, waits_for_result):
        while self.dashboards.heads.get(host) is head:
            if self.let_go:
                return 0
            if job_id not in head.jobs:
                return 1
            status = head._shown(job_id)["status"]
            if status in ("STOPPED", "SUCCEEDED", "FAILED"):
                return 1 if waits_for_result and status != "SUCCEEDED" else self.exit_with
            await asyncio.sleep(1)
        return 1  # the line to the head is broken

    async def _end(self, pod, container, code):
        """Tell the end of the submitter as a kubelet does; its Pod ends with it unless Ray runs there, too.

        A container with a restart policy of its own is started again.
        """
        url = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        try:
            current = await self.world.api.get(url)
        except errors.NotFound:
            return
        if current["metadata"]["uid"] != pod["metadata"]["uid"]:
            return
        status = current["status"]
        ended = {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "finishedAt": format_time(self.world.clock.now()),
        }
        for one in status["containerStatuses"]:
            if one["name"] != SUBMITTER:
                continue
            if code != 0 and container.get("restartPolicy") == "OnFailure":
                started = {"startedAt": ended["finishedAt"]}
                count = one.get("restartCount", 0) + 1
                one |= {
                    "lastState": {"terminated": ended},
                    "state": {"running": started},
                    "restartCount": count,
                }
            else:
                one |= {"state": {"terminated": ended}, "ready": False}
        if len(status["containerStatuses"]) == 1:
            status["phase"] = "Succeeded" if code == 0 else "Failed"
        await self.world.api.patch(f"{url}/status", {"status": status})


class ServeProxy:
    """The Serve proxy of a head, which is there as long as Serve has something to run. It asks for no token."""

    def __init__(self, head):
        self._head = head

    def handle(self, method, path, headers, body):
        is_healthy = self._head.takes_traffic and self._head.applications and path == "/-/healthz"
        return Answer(200, b"success") if is_healthy else Answer(503, b"DRAINING")


def proxy_of(pod):
    """Return where the Serve proxy of a head answers."""
    ports = pod["spec"]["containers"][0].get("ports") or ()
    port = next((one["containerPort"] for one in ports if one.get("name") == "serve"), 8000)
    return f"{pod['status']['podIP']}:{port}"


def host_of(cluster, namespace="default"):
    """Return where the dashboard of a cluster with plain names answers."""
    return f"{cluster}-head-svc.{namespace}.svc.cluster.local:8265"


def _is_other_head(command, session):
    """Answer as the session check of the command does."""
    found = _SESSION_CHECK.search(command)
    if found is None:
        return False
    if found["session"]:
        return session != found["session"]
    if not session:
        return False  # nothing to compare
    begun = _SESSION_TIME.match(session)
    assert begun, session
    moment = datetime.strptime(begun[1] + " +0000", "%Y-%m-%d_%H-%M-%S_%f %z")
    return moment.timestamp() > float(found["requested"])
