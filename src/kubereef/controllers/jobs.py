"""Jobs: Pods until enough have succeeded or too many have failed."""

from kubereef.controllers import jobplan, pods
from kubereef.controllers.batches import for_each, slow_start
from kubereef.controllers.caches import Key
from kubereef.controllers.claiming import Claims, selector_of
from kubereef.controllers.conditions import is_true
from kubereef.controllers.jobindexes import New, with_index
from kubereef.controllers.jobplan import TRACKING, Backoff, Verdict
from kubereef.controllers.resources import JOBS, PODS
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.owners import controller_of

_CONTROLLER = "job-controller"
_MANAGER = "kubernetes.io/job-controller"


class JobController(Controller):
    """Runs Jobs."""

    name = _CONTROLLER

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.jobs = self.watch(JOBS)
        self.claims = Claims(self.hands, self.jobs, world.caches.of(PODS), TRACKING)
        self.pods = self.watch(PODS, self.claims.owners_of)
        self._backoffs: dict[str, Backoff] = {}
        self.jobs.listen(self._forget)

    def _forget(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is None:
            self._backoffs.pop(old["metadata"]["uid"], None)

    async def sync(self, key: Key) -> float | None:
        job = self.jobs.get(key)
        if job is None or jobplan.is_finished(job):
            return None
        if (job["spec"].get("managedBy") or _MANAGER) != _MANAGER:
            return None
        if pods.is_deleting(job):
            await for_each(self.claims.of(job), self._stop_tracking)
            return None
        await self.claims.settle(job)
        return await self._run(job)

    async def _run(self, job: Object) -> float | None:
        """Bring the Pods closer to what the Job wants, then write down how things stand."""
        of_job = self.claims.of(job)
        now = self.clock.now()
        backoff = self._backoffs.setdefault(job["metadata"]["uid"], Backoff())
        backoff.learn(job, of_job)
        counted = jobplan.tally(job, of_job)
        verdict = jobplan.failure_or_earlier_verdict(job, counted, of_job, now)
        steps = jobplan.steps(job, counted, verdict, backoff.pause(now), now)
        indexes = iter(steps.indexes)
        try:
            await for_each(steps.end, lambda pod: self._delete(job, pod))
            await for_each(steps.withdraw, lambda pod: self._withdraw(job, pod))
            await slow_start(steps.create, lambda: self._create(job, next(indexes, None)))
        finally:
            # Even if not all of it could be done, what is known is written down.
            await self._write_down(job, verdict)
        waits = [steps.wait, jobplan.seconds_to_deadline(self.jobs.get(Key.of(job)) or job, now)]
        return min((wait for wait in waits if wait is not None), default=None)

    async def _write_down(self, job: Object, verdict: Verdict | None) -> None:
        """Write the status; then take the finalizer off the Pods that it lists."""
        of_job = self.claims.of(job)
        counted = jobplan.tally(job, of_job, verdict)
        if verdict is None:
            verdict = jobplan.final_verdict(job, counted)
        status = jobplan.next_status(job, counted, of_job, verdict, self.clock.now())
        before = job.get("status") or {}
        if status != before:
            await self.hands.replace_status(JOBS, job, status)
            await self._tell(job, before, status)
        listed = {*counted.uncounted_succeeded, *counted.uncounted_failed, *counted.settled}
        await for_each([pod for pod in of_job if pod["metadata"]["uid"] in listed], self._stop_tracking)

    async def _tell(self, job: Object, before: Object, after: Object) -> None:
        """Tell users what has become different."""
        old, new = before.get("conditions") or [], after.get("conditions") or []
        if is_true(new, "Suspended") and not is_true(old, "Suspended"):
            await self.events.normal(JOBS, job, "Suspended", "Job suspended")
        if is_true(old, "Suspended") and not is_true(new, "Suspended"):
            await self.events.normal(JOBS, job, "Resumed", "Job resumed")
        if is_true(new, "Complete"):
            await self.events.normal(JOBS, job, "Completed", "Job completed")
        for failed in new:
            if failed["type"] == "Failed" and failed["status"] == "True":
                await self.events.warning(JOBS, job, failed["reason"], failed["message"])

    # --- Pods

    async def _create(self, job: Object, index: New | None) -> None:
        pod = new_pod(job) if index is None else with_index(new_pod(job), job, index)
        try:
            pod = await self.hands.create(PODS, pod)
        except errors.ApiError as refusal:
            if refusal.is_of_a_going_namespace:
                return
            await self.events.warning(JOBS, job, "FailedCreate", f"Error creating: {refusal}")
            raise
        await self.events.normal(JOBS, job, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")

    async def _withdraw(self, job: Object, pod: Object) -> None:
        """Delete a Pod without counting it: it stops being tracked first."""
        await self._stop_tracking(pod)
        await self._delete(job, pod)

    async def _delete(self, job: Object, pod: Object) -> None:
        name = pod["metadata"]["name"]
        try:
            await self.hands.delete(PODS, pod)
        except errors.ApiError as refusal:
            await self.events.warning(JOBS, job, "FailedDelete", f"Error deleting: {refusal}")
            raise
        await self.events.normal(JOBS, job, "SuccessfulDelete", f"Deleted pod: {name}")

    async def _stop_tracking(self, pod: Object) -> None:
        current = self.pods.get(Key.of(pod))
        if current is not None and jobplan.is_tracked(current):
            await stop_tracking(self, current)


class OrphanedPodsController(Controller):
    """Lets go of Pods that wait to be counted by a Job which is not there any more."""

    name = _CONTROLLER

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.jobs = world.caches.of(JOBS)
        self.pods = self.watch(PODS, lambda pod: [Key.of(pod)] if jobplan.is_tracked(pod) else [])
        self.jobs.listen(self._job_changed)

    def _job_changed(self, old: Object | None, new: Object | None) -> None:
        """Look at the Pods of a Job that has gone or ended."""
        job = new or old
        if job is None or (new is not None and not jobplan.is_finished(new)):
            return
        for pod in self.pods.owned_by(job["metadata"]["uid"]):
            self.queue.add(Key.of(pod))

    async def sync(self, key: Key) -> None:
        pod = self.pods.get(key)
        if pod is None or not jobplan.is_tracked(pod) or self._is_awaited(pod):
            return
        await stop_tracking(self, pod)

    def _is_awaited(self, pod: Object) -> bool:
        """Tell whether a Job counts the Pod, or will adopt it to count it."""
        namespace = pod["metadata"].get("namespace", "")
        controller = controller_of(pod)
        if controller is None:
            labels = pod["metadata"].get("labels")
            jobs = self.jobs.in_namespace(namespace)
            return any(selector_of(job).matches(labels) and not pods.is_deleting(job) for job in jobs)
        if controller["kind"] != JOBS.kind:
            return False
        job = self.jobs.get((namespace, controller["name"]))
        return (
            job is not None and job["metadata"]["uid"] == controller["uid"] and not jobplan.is_finished(job)
        )


def new_pod(job: Object) -> Object:
    """Return the Pod that a Job's template asks for."""
    template = job["spec"].get("template") or {}
    meta = template.get("metadata") or {}
    metadata: Object = {
        "generateName": f"{job['metadata']['name']}-",
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [JOBS.reference_to(job)],
        "finalizers": [*(meta.get("finalizers") or ()), TRACKING],
    }
    for field in ("labels", "annotations"):
        if meta.get(field):
            metadata[field] = meta[field]
    return {"metadata": metadata, "spec": template.get("spec") or {}}


async def stop_tracking(controller: Controller, pod: Object) -> None:
    """Take the finalizer off a Pod that has been counted, or never will be; one that is gone needs no change."""
    left = [one for one in pod["metadata"].get("finalizers") or () if one != TRACKING]
    metadata = {"resourceVersion": pod["metadata"]["resourceVersion"], "finalizers": left or None}
    try:
        await controller.hands.patch(PODS, pod, {"metadata": metadata})
    except errors.NotFound:
        controller.world.caches.saw_deleted(PODS, pod)
