"""Jobs that wait, fail or end, and what `eagleray why` says of each: verdict, stages, causes, and what comes next."""

import pytest

from kubereef.node.scripted import Script, Waits
from kubereef.server.requests import User
from kubewire import errors
from tests.eagleray.dashboard.scripted import HANGS, says
from tests.eagleray.rayjob.situations import (
    ended,
    head_pod,
    host,
    ray_says,
    ray_world,
    reached,
    running,
    state_of,
)
from tests.eagleray.why.asking import said, stuck, why
from tests.eagleray.world import rayjob

pytestmark = [pytest.mark.usefixtures("virtual_time"), pytest.mark.case("OP-189")]

HEADS = {"ray.io/node-type": "head"}
SUBMITTERS = {"batch.kubernetes.io/job-name": "j"}


async def test_a_job_that_runs_is_well():
    async with running() as (world, _):
        await world.pass_time(30)
        assert await why(world) == (
            said(
                """
            RayJob default/j is running.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run has taken 30 s so far
            note: Ray job j-xxxxx is RUNNING
            next: nothing until something changes
            """
            ),
            True,
        )


async def test_a_job_that_has_succeeded():
    async with ended(shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=60) as (world, _):
        await world.pass_time(20)
        assert await why(world) == (
            said(
                """
            RayJob default/j is complete: Ray says SUCCEEDED.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run took 2 s
            next: clean up in 40 s
            """
            ),
            True,
        )


async def test_a_job_whose_ray_job_failed():
    async with running() as (world, ray):
        ray.exit_with = 1
        await ray_says(world, "FAILED", "Job entrypoint command failed with exit code 1")
        await reached(world, "Failed")
        assert await stuck(world) == said(
            """
            RayJob default/j has failed: AppFailed.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run took 0 s
            - Job entrypoint command failed with exit code 1; see what it printed: eagleray job logs j
                -n default
            note: a RayJob that has ended does not start again: delete it and create it anew
            next: nothing until something changes
            """
        )


async def test_a_cluster_whose_image_cannot_be_pulled():
    bad = Script(when=HEADS, steps=[Waits(reason="ImagePullBackOff", message="no such image")])
    async with ray_world(scripts=[bad]) as (world, _):
        await world.create(rayjob(activeDeadlineSeconds=600))
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for its cluster.
            stage: cluster has taken 30 s so far
            - RayCluster default/j-xxxxx waits for its head Pod.
            - group headgroup, Pod j-xxxxx-head-xxxxx: container ray: ImagePullBackOff: no such image;
                check the image's name and tag, the registry, and imagePullSecrets
            note: it is ended by the activeDeadlineSeconds at xxxxx, in 570 s
            next: nothing until something changes
            """
        )


async def test_a_cluster_that_may_not_be_made():
    async with ray_world() as (world, _):
        world.faults.refuse("create", "rayclusters.ray.io", errors.Forbidden("exceeded quota: team"))
        await world.create(rayjob())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for its cluster to be made.
            stage: cluster has taken 30 s so far
            - FailedToCreateRayCluster: Failed to create RayCluster default/j-xxxxx: exceeded quota:
                team; raise the ResourceQuota of the namespace, ask for less, or free what others hold
            next: create RayCluster default/j-xxxxx
            """
        )


async def test_a_dashboard_that_hangs():
    async with running() as (world, _):
        world.dashboards.fault(await host(world), HANGS)
        await world.pass_time(60)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for Ray's dashboard.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run has taken 60 s so far
            - Ray's dashboard at j-xxxxx-head-svc.default.svc.cluster.local:8265: GET
                j-xxxxx-head-svc.default.svc.cluster.local:8265/api/jobs/j-xxxxx: no answer in 2 s
            note: it is ended by the status-check timeout at xxxxx, in 244 s
            next: nothing until something changes
            """
        )


async def test_a_submitter_that_finds_another_head():
    async with running() as (world, _):
        await world.kill_operator()
        world.dashboards.restart(await host(world), session="session_2030-01-01_00-10-00_000000_1")
        await world.pass_time(120)
        await world.start_operator()
        await reached(world, "Failed")
        assert await stuck(world) == said(
            """
            RayJob default/j has failed: JobLost.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run was given up after 120 s
            - Ray job j-xxxxx was lost with its head: it was submitted in session session_xxxxx, and
                session session_xxxxx answers now; let heads keep their jobs (gcsFaultToleranceOptions),
                or let a lost job run again on another cluster (spec.backoffLimit)
            - submitter Pod j-xxxxx (3 have failed): it found another head than the one that the job was
                meant for, and submitted nothing; see eagleray job logs j -n default
            note: a RayJob that has ended does not start again: delete it and create it anew
            next: nothing until something changes
            """
        )


async def test_a_submitter_that_cannot_start():
    bad = Script(when=SUBMITTERS, steps=[Waits(reason="ErrImagePull", message="no such image")])
    async with ray_world(scripts=[bad]) as (world, _):
        await world.create(rayjob())
        await world.pass_time(60)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for Ray to have the job.
            stage: cluster took 0 s
            stage: submission has taken 60 s so far
            - job j-xxxxx has not reached Ray yet
            - submitter Pod j-xxxxx: container ray-job-submitter: ErrImagePull: no such image; check the
                image's name and tag, the registry, and imagePullSecrets
            next: nothing until something changes
            """
        )


async def test_a_submitter_that_fails_again_and_again():
    async with ray_world(submitter_faults=["dies before"] * 3) as (world, _):
        await world.create(rayjob())
        await reached(world, "Running")
        await world.pass_time(15)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for Ray to have the job.
            stage: cluster took 0 s
            stage: submission has taken 15 s so far
            - job j-xxxxx has not reached Ray yet
            - submitter Pod j-xxxxx (2 have failed): container ray-job-submitter ended with exit code 1
                (Error); see eagleray job logs j -n default
            next: nothing until something changes
            """
        )
        await reached(world, "Failed")
        assert await stuck(world) == said(
            """
            RayJob default/j has failed: SubmissionFailed.
            stage: cluster took 0 s
            stage: submission was given up after 31 s
            - Job submission has failed. Reason: BackoffLimitExceeded. Message: Job has reached the
                specified backoff limit; see what the submitter printed: eagleray job logs j -n default
            - submitter Pod j-xxxxx (3 have failed): container ray-job-submitter ended with exit code 1
                (Error); see eagleray job logs j -n default
            note: a RayJob that has ended does not start again: delete it and create it anew
            next: nothing until something changes
            """
        )


async def test_a_submitter_that_may_not_be_made():
    async with ray_world() as (world, _):
        world.faults.refuse("create", "jobs.batch", errors.Forbidden("jobs.batch is forbidden"))
        await world.create(rayjob())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayJob default/j waits to be submitted.
            stage: cluster took 0 s
            stage: submission has taken 30 s so far
            - FailedToCreateRayJobSubmitter: Failed to create new Kubernetes Job default/j: jobs.batch
                is forbidden; an admission policy or missing rights refuse it: change the template, the
                policy or the rights
            next: create Job default/j
            """
        )


async def test_what_failed_before_a_suspension_is_no_cause_after_it():
    async with ray_world() as (world, _):
        world.faults.refuse("create", "jobs.batch")
        await world.create(rayjob(shutdownAfterJobFinishes=True))
        await world.pass_time(10)
        assert any("FailedToCreateRayJobSubmitter" in line for line in await stuck(world))
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await reached(world, "Suspended")
        world.faults.refuse("create", "rayclusters.ray.io")
        await world.patch("RayJob", "j", {"spec": {"suspend": False}})
        await world.pass_time(10)
        causes = [line for line in await stuck(world) if line.startswith("- ")]
        assert [cause.partition(":")[0] for cause in causes] == ["- FailedToCreateRayCluster"]


async def test_a_job_of_somebody_else_in_the_place_of_the_submitter():
    async with ray_world() as (world, _):
        pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"template": {"spec": pod}},
        }
        await world.create(job)
        await world.create(rayjob())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayJob default/j waits to be submitted.
            stage: cluster took 0 s
            stage: submission has taken 30 s so far
            - Job default/j has the name that the submitter needs and belongs to nobody; delete or
                rename it, or give the RayJob another name
            - FailedToCreateRayJobSubmitter: Failed to create new Kubernetes Job default/j: Operation
                cannot be fulfilled on jobs.batch "j": an object of this name exists, which nobody
                controls; delete or rename one of them
            next: create Job default/j
            """
        )


async def test_a_job_that_a_user_has_to_submit():
    async with ray_world() as (world, _):
        await world.create(rayjob(submissionMode="InteractiveMode", preRunningDeadlineSeconds=100))
        await reached(world, "Waiting")
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for a job to be submitted by hand.
            stage: cluster took 0 s
            stage: submission has taken 10 s so far
            - submit a job to RayCluster default/j-xxxxx and write its id into spec.jobId: kubectl patch
                rayjob j -n default --type merge -p '{"spec":{"jobId":"ID"}}'
            note: it is ended by the preRunningDeadlineSeconds at xxxxx, in 90 s
            next: nothing until something changes
            """
        )


async def test_an_id_that_ray_does_not_know():
    async with ray_world() as (world, _):
        await world.create(rayjob(submissionMode="InteractiveMode", jobId="typo"))
        await reached(world, "Running")
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for Ray to have the job.
            stage: cluster took 0 s
            stage: submission has taken 10 s so far
            - RayCluster j-xxxxx knows no job typo yet
            next: nothing until something changes
            """
        )


async def test_a_chosen_cluster_that_is_not_there():
    async with ray_world() as (world, _):
        await world.create(rayjob(cluster=False, clusterSelector={"ray.io/cluster": "mine"}))
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for a cluster that is not there.
            stage: cluster has taken 10 s so far
            - spec.clusterSelector names RayCluster default/mine, which does not exist; create it, or
                name another one in a new RayJob
            next: nothing until something changes
            """
        )


async def test_a_job_that_was_lost_with_its_head():
    async with running(mode="HTTPMode") as (world, _):
        await world.delete("Pod", (await head_pod(world))["metadata"]["name"])
        await reached(world, "Failed")
        assert await stuck(world) == said(
            """
            RayJob default/j has failed: JobLost.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run was given up after 3 s
            - Ray job j-xxxxx was lost with its head: it was submitted in session session_xxxxx, and
                session session_xxxxx answers now; let heads keep their jobs (gcsFaultToleranceOptions),
                or let a lost job run again on another cluster (spec.backoffLimit)
            note: a RayJob that has ended does not start again: delete it and create it anew
            next: nothing until something changes
            """
        )


async def test_a_deadline_that_has_passed():
    async with running(activeDeadlineSeconds=30) as (world, _):
        await reached(world, "Failed")
        assert await stuck(world) == said(
            """
            RayJob default/j has failed: DeadlineExceeded.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run was given up after 30 s
            - The RayJob has passed the activeDeadlineSeconds. StartTime: 2030-01-01 00:00:01 +0000 UTC.
                ActiveDeadlineSeconds: 30; raise spec.activeDeadlineSeconds, which counts from the start
                of the attempt, its cluster included
            note: a RayJob that has ended does not start again: delete it and create it anew
            next: nothing until something changes
            """
        )


async def test_a_suspended_job():
    async with running(suspend=False, shutdownAfterJobFinishes=True) as (world, _):
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await reached(world, "Suspended")
        assert await stuck(world) == said(
            """
            RayJob default/j is suspended.
            - spec.suspend is true; set it to false to have it run
            next: nothing until something changes
            """
        )
        await world.patch("RayJob", "j", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}}})
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            RayJob default/j is suspended.
            - Kueue holds it in queue team until there is room: see its Workload (kubectl get workloads
                -n default); do not set spec.suspend by hand
            next: nothing until something changes
            """
        )


async def test_a_retry_that_a_finalizer_holds_up():
    async with running(backoffLimit=2, mode="HTTPMode") as (world, _):
        cluster = (await world.list("RayCluster"))[0]["metadata"]["name"]
        await world.patch("RayCluster", cluster, {"metadata": {"finalizers": ["example.com/hold"]}})
        await ray_says(world, "FAILED", "out of luck")
        await reached(world, "Retrying")
        await world.pass_time(60)
        assert await stuck(world) == said(
            """
            RayJob default/j is retried once its cluster and its submitter are gone.
            - attempt 1 of 3 failed: AppFailed: out of luck
            - RayCluster default/j-xxxxx is being deleted.
            - Pods that are not gone yet: j-xxxxx-head-xxxxx, j-xxxxx-small-group-worker-xxxxx
            - finalizers that others have to remove: example.com/hold
            next: nothing until something changes
            """
        )


async def test_a_suspension_that_a_finalizer_holds_up():
    async with running(shutdownAfterJobFinishes=True) as (world, _):
        await world.patch("Job", "j", {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await world.pass_time(60)
        assert await state_of(world) == "Suspending"
        assert await stuck(world) == said(
            """
            RayJob default/j is suspended once its cluster and its submitter are gone.
            - Job default/j is not gone yet, held by example.com/hold
            next: nothing until something changes
            """
        )


async def test_a_cluster_that_may_not_be_deleted():
    async with running(mode="HTTPMode", backoffLimit=1) as (world, _):
        world.faults.refuse("delete", "rayclusters.ray.io", errors.Forbidden("a policy says no: forbidden"))
        await ray_says(world, "FAILED", "out of luck")
        await reached(world, "Retrying")
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayJob default/j is retried once its cluster and its submitter are gone.
            - attempt 1 of 2 failed: AppFailed: out of luck
            - FailedToDeleteRayCluster: Failed to delete cluster default/j-xxxxx: a policy says no:
                forbidden; an admission policy or missing rights refuse it: change the template, the
                policy or the rights
            next: delete RayCluster default/j-xxxxx (Deleted cluster default/j-xxxxx)
            """
        )


async def test_a_job_that_was_stopped():
    async with running() as (world, _):
        await ray_says(world, "STOPPED", "Job was intentionally stopped.")
        await reached(world, "Complete")
        assert await stuck(world) == said(
            """
            RayJob default/j is complete: Ray says STOPPED.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run took 0 s
            note: Job was intentionally stopped.
            next: nothing until something changes
            """
        )


async def test_a_cluster_that_was_not_ready_in_time():
    bad = Script(when=HEADS, steps=[Waits(reason="ImagePullBackOff", message="no such image")])
    async with ray_world(scripts=[bad]) as (world, _):
        await world.create(rayjob(preRunningDeadlineSeconds=20))
        await reached(world, "Failed")
        assert await stuck(world) == said(
            """
            RayJob default/j has failed: PreRunningDeadlineExceeded.
            stage: cluster was given up after 20 s
            - The RayJob has passed the preRunningDeadlineSeconds. StartTime: 2030-01-01 00:00:01 +0000
                UTC. PreRunningDeadlineSeconds: 20; raise spec.preRunningDeadlineSeconds, or mend what
                kept its cluster
            - RayCluster default/j-xxxxx waits for its head Pod.
            - group headgroup, Pod j-xxxxx-head-xxxxx: container ray: ImagePullBackOff: no such image;
                check the image's name and tag, the registry, and imagePullSecrets
            note: a RayJob that has ended does not start again: delete it and create it anew
            next: nothing until something changes
            """
        )


async def test_a_dashboard_that_was_asked_in_vain_for_too_long():
    async with running() as (world, _):
        world.dashboards.fault(await host(world), HANGS)
        await reached(world, "Failed")
        assert await stuck(world) == said(
            """
            RayJob default/j has failed: JobStatusCheckTimeoutExceeded.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run was given up after 304 s
            - Job status checks have been failing since 2030-01-01 00:00:05; exceeded timeout of 300s;
                see whether the head runs and its dashboard can be reached from the operator; how long
                it is asked in vain is RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS of the operator
            note: a RayJob that has ended does not start again: delete it and create it anew
            next: nothing until something changes
            """
        )


async def test_a_dashboard_that_answers_with_errors():
    async with ray_world() as (world, _):
        await world.create(rayjob(submissionMode="HTTPMode"))
        await reached(world, "Running")
        world.dashboards.fault(await host(world), says(500, b"RuntimeError: no agent"), times=1000)
        await world.pass_time(20)
        assert await stuck(world) == said(
            """
            RayJob default/j waits for Ray's dashboard.
            stage: cluster took 0 s
            stage: submission has taken 20 s so far
            - Ray's dashboard at j-xxxxx-head-svc.default.svc.cluster.local:8265: GetJobInfo fail: GET
                j-xxxxx-head-svc.default.svc.cluster.local:8265/api/jobs/j-xxxxx: 500: RuntimeError: no
                agent
            note: it is ended by the status-check timeout at xxxxx, in 280 s
            next: nothing until something changes
            """
        )


async def test_a_deletion_that_others_hold_up():
    async with ended() as (world, _):
        await world.patch("RayJob", "j", {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.delete("RayJob", "j")
        await world.pass_time(60)
        assert await stuck(world) == said(
            """
            RayJob default/j is being deleted.
            - finalizers that others have to remove: example.com/hold
            """
        )


async def test_an_invalid_job():
    async with ray_world() as (world, _):
        await world.create(rayjob(backoffLimit=-1))
        await world.pass_time(5)
        assert await state_of(world) == "ValidationFailed"
        assert await stuck(world) == said(
            """
            RayJob default/j is invalid: nothing is done for it.
            - spec.backoffLimit: -1 is negative; use 0 or more
            """
        )


async def test_a_job_that_is_being_deleted_while_ray_does_not_answer():
    async with running() as (world, _):
        world.dashboards.fault(await host(world), HANGS)
        await world.delete("RayJob", "j")
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayJob default/j is being deleted.
            - Ray is asked to stop job j-xxxxx; whatever comes of it, it is let go at the latest in 20 s
            """
        )


async def test_a_job_that_no_operator_has_seen():
    async with ray_world(operator=False) as (world, _):
        await world.create(rayjob())
        assert await stuck(world) == said(
            """
            RayJob default/j waits for an operator.
            - generation 1 has not been looked at, and nobody holds a Lease ray-operator-leader: start
                the operator (eagleray operator)
            """
        )


async def test_a_job_of_another_manager():
    async with ray_world() as (world, _):
        await world.create(rayjob(managedBy="kueue.x-k8s.io/multikueue"))
        assert await stuck(world) == said(
            """
            RayJob default/j is managed by kueue.x-k8s.io/multikueue.
            - spec.managedBy is kueue.x-k8s.io/multikueue: its cluster and its status are up to that
                controller alone
            """
        )


async def test_what_a_user_may_not_read_is_said():
    async with running() as (world, _):
        about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
        rules = [{"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": ["get"]}]
        await world.create({**about, "kind": "Role", "rules": rules})
        binding = {
            "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
        }
        await world.create({**about, "kind": "RoleBinding", **binding})
        shown, is_ready = await why(world, user=User("ann"))
        assert is_ready
        assert shown == said(
            """
            RayJob default/j is running.
            stage: cluster took 0 s
            stage: submission took 0 s
            stage: run has taken 0 s so far
            note: Ray job j-xxxxx is RUNNING
            note: pods were not looked at: pods is forbidden: User "ann" cannot list resource "pods" in
                API group "" in the namespace "default"
            note: rayclusters were not looked at: rayclusters.ray.io "j-xxxxx" is forbidden: User "ann"
                cannot get resource "rayclusters" in API group "ray.io" in the namespace "default"
            note: jobs were not looked at: jobs.batch "j" is forbidden: User "ann" cannot get resource
                "jobs" in API group "batch" in the namespace "default"
            note: services were not looked at: services "j-head-svc" is forbidden: User "ann" cannot get
                resource "services" in API group "" in the namespace "default"
            note: events were not looked at: events.events.k8s.io is forbidden: User "ann" cannot list
                resource "events" in API group "events.k8s.io" in the namespace "default"
            """
        )
        with pytest.raises(errors.Forbidden):
            await why(world, user=User("bob"))
