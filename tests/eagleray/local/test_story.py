"""What a run tells, as a table: from what is there to the lines that are new."""

import pytest

from eagleray.local.story import Picture, facts, is_up, news, stage

HEAD = {"ray.io/node-type": "head", "ray.io/cluster": "c"}
WORKER = {"ray.io/node-type": "worker", "ray.io/cluster": "c", "ray.io/group": "g"}
SUBMITTER = {"batch.kubernetes.io/job-name": "j"}
RUNNING = {"running": {"startedAt": "2030-01-01T00:00:00Z"}}
IMAGE = "rayproject/ray:2.52.0"


def meta(name, **more):
    return {"name": name, "namespace": "default", "uid": f"uid-{name}", **more}


def pod(name="p", labels=None, *, phase="Running", ready=False, state=None, **status):
    conditions = [{"type": "Ready", "status": str(ready)}, *status.pop("conditions", ())]
    containers = [{"name": "ray", "state": state or RUNNING, **status.pop("container", {})}]
    return {
        "metadata": meta(name, labels=labels or {}),
        "spec": {"nodeName": "kubereef", "containers": [{"name": "ray"}]},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": containers if phase != "Pending" or state else [],
            **status,
        },
    }


def job(state="Running", word="", *, spec=None, generation=1, **status):
    return {
        "metadata": meta("j", generation=generation),
        "spec": {"entrypoint": "python j.py", **(spec or {})},
        "status": {
            "jobDeploymentStatus": state,
            "jobStatus": word,
            "jobId": "j-1",
            "rayClusterName": "c",
            **status,
        },
    }


def cluster(state="ready", workers=2, **status):
    return {
        "metadata": meta("c"),
        "status": {"state": state, "desiredWorkerReplicas": workers, **status},
    }


def service(*, ready=True, **applications):
    conditions = [{"type": "Ready", "status": str(ready), "reason": "r"}]
    active = {"rayClusterName": "c", "applicationStatuses": applications}
    return {"metadata": meta("s"), "status": {"conditions": conditions, "activeServiceStatus": active}}


def cron(**more):
    return {"metadata": meta("n"), "spec": {"schedule": "0 2 * * *", **more.pop("spec", {})}, **more}


def event(reason, note, *, about="p", kind="Pod", type_="Normal"):
    regarding = {"kind": kind, "name": about, "uid": f"uid-{about}"}
    return {"reason": reason, "note": note, "type": type_, "regarding": regarding}


def pulling(detail="", about="p", second=None):
    made = event("Pulling", f'Pulling image "{IMAGE}"{f": {detail}" if detail else ""}', about=about)
    at = {} if second is None else {"creationTimestamp": f"2030-01-01T00:00:{second:02d}Z"}
    return {**made, "metadata": at}


def warning(reason, note, **about):
    return event(reason, note, type_="Warning", **about)


def told(picture, **options):
    return [line.text for line in news({}, picture, **options)[1]]


@pytest.mark.parametrize(
    ("picture", "want"),
    [
        pytest.param(Picture(), [], id="nothing is there"),
        pytest.param(Picture(pods=[pod(phase="Pending")]), [], id="a Pod that waits its turn is no news"),
        pytest.param(Picture(pods=[pod("h", HEAD)]), ["head h has started"], id="a head starts"),
        pytest.param(
            Picture(pods=[pod("h", HEAD, ready=True), pod("w", WORKER, ready=True)]),
            ["head h has started", "head h is ready", "worker w has started", "worker w is ready"],
            id="Pods become ready",
        ),
        pytest.param(
            Picture(pods=[pod("s", SUBMITTER, ready=True)]),
            ["submitter s has started"],
            id="that a submitter is ready means nothing",
        ),
        pytest.param(
            Picture(
                pods=[
                    pod(
                        "h",
                        HEAD,
                        container={
                            "restartCount": 2,
                            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                        },
                    )
                ]
            ),
            [
                "head h has started",
                "head h: container ray was started again (restart 2): exit code 137, OOMKilled",
            ],
            id="a container that was started again, and why",
        ),
        pytest.param(
            Picture(
                pods=[
                    pod(
                        "w",
                        WORKER,
                        phase="Pending",
                        conditions=[
                            {
                                "type": "PodScheduled",
                                "status": "False",
                                "reason": "Unschedulable",
                                "message": "0/1 nodes are available: 1 Insufficient memory.",
                            }
                        ],
                    )
                ]
            ),
            [
                (
                    "worker w: 0/1 nodes are available: 1 Insufficient memory.; "
                    "ask for less, free or add nodes, or change selectors and tolerations"
                )
            ],
            id="what does not fit the machine",
        ),
        pytest.param(
            Picture(pods=[pod("w", WORKER, phase="Failed", reason="Evicted", message="low on memory")]),
            [
                "worker w has started",
                "worker w: low on memory; its node ran out of something: raise requests to what it needs",
            ],
            id="a Pod that failed, and why",
        ),
        pytest.param(
            Picture(pods=[pod("s", SUBMITTER, phase="Failed", state={"terminated": {"exitCode": 1}})]),
            ["submitter s has started"],
            id="how a submitter ends is told of its job",
        ),
        pytest.param(Picture(clusters=[cluster("")]), [], id="a cluster that is not ready"),
        pytest.param(
            Picture(clusters=[cluster()]),
            ["RayCluster c is ready: 1 head, 2 workers"],
            id="a cluster is ready",
        ),
        pytest.param(
            Picture(clusters=[cluster("suspended")]),
            ["RayCluster c is suspended: nothing of it runs until spec.suspend is false"],
            id="a suspended cluster says what it waits for",
        ),
        pytest.param(
            Picture(jobs=[job(word="RUNNING")]),
            ["RayJob j is submitted as j-1", "RayJob j is RUNNING"],
            id="a job runs",
        ),
        pytest.param(
            Picture(
                jobs=[job("Waiting", spec={"submissionMode": "InteractiveMode"})],
                urls={"default/c": "http://x:1"},
            ),
            [
                (
                    "RayJob j waits for you to submit: ray job submit --address http://x:1 --submission-id ID"
                    ' -- COMMAND, then kubectl patch rayjob j -n default --type merge -p \'{"spec":{"jobId":"ID"}}\''
                )
            ],
            id="a job that is submitted by hand says how",
        ),
        pytest.param(
            Picture(
                passed=[
                    job("Retrying", spec={"backoffLimit": 2}, failed=1, reason="AppFailed", message="boom")
                ],
                jobs=[job("Initializing")],
            ),
            ["RayJob j: attempt 1 of 3 failed (failed: AppFailed: boom) and is retried"],
            id="a retry is told though it has begun already",
        ),
        pytest.param(
            Picture(jobs=[job("Suspended")]),
            ["RayJob j is suspended; it runs when its spec.suspend is false"],
            id="a suspended job",
        ),
        pytest.param(
            Picture(jobs=[job("ValidationFailed", message="spec.x: no")]),
            ["RayJob j is invalid: spec.x: no"],
            id="an invalid job",
        ),
        pytest.param(
            Picture(jobs=[job("Complete", "SUCCEEDED")]), ["RayJob j SUCCEEDED"], id="a job that succeeded"
        ),
        pytest.param(
            Picture(jobs=[job("Failed", "FAILED", reason="AppFailed", message="exit\ncode 1")]),
            ["RayJob j failed: AppFailed: exit code 1"],
            id="a job that failed, in one line",
        ),
        pytest.param(
            Picture(services=[service(ready=False, fruit={"status": "DEPLOYING", "message": "soon"})]),
            ["RayService s: application fruit is DEPLOYING"],
            id="an application deploys",
        ),
        pytest.param(
            Picture(
                services=[service(ready=False, fruit={"status": "DEPLOY_FAILED", "message": "no\nmodule"})]
            ),
            ["RayService s: application fruit is DEPLOY_FAILED: no module"],
            id="an application that fails says why",
        ),
        pytest.param(
            Picture(services=[service(fruit={"status": "RUNNING"})]),
            ["RayService s: application fruit is RUNNING", "RayService s is ready"],
            id="a service is ready",
        ),
        pytest.param(
            Picture(crons=[cron(spec={"timeZone": "Asia/Tokyo"}, status={"lastScheduleTime": "T"})]),
            [
                "RayCronJob n waits for its schedule, 0 2 * * * (Asia/Tokyo)",
                "RayCronJob n has started the run of T",
            ],
            id="a schedule, and its runs",
        ),
        pytest.param(
            Picture(crons=[cron(spec={"suspend": True})]),
            ["RayCronJob n is suspended: it starts nothing"],
            id="a suspended schedule",
        ),
        pytest.param(
            Picture(events=[pulling(), pulling("installing packages (40%)")]),
            [f"image {IMAGE} is being made", f"image {IMAGE}: installing packages (40%)"],
            id="how far an image is",
        ),
        pytest.param(
            Picture(events=[pulling(f"step {second}", second=second) for second in (0, 1, 9, 10, 14, 31)]),
            [f"image {IMAGE}: step {second}" for second in (0, 10, 31)],
            id="of many steps one in ten seconds is told",
        ),
        pytest.param(
            Picture(events=[pulling("a (1%)"), pulling("b (2%)", about="q"), pulling("c (3%)")]),
            [f"image {IMAGE}: a (1%)", f"image {IMAGE}: c (3%)"],
            id="of several Pods that wait for an image one speaks",
        ),
        pytest.param(
            Picture(
                events=[
                    pulling(),
                    event(
                        "Pulled", f'Successfully pulled image "{IMAGE}" in 1m2s (1m2s including waiting). '
                    ),
                ]
            ),
            [f"image {IMAGE} is being made", f"image {IMAGE} is there, after 1m2s"],
            id="an image is there",
        ),
        pytest.param(
            Picture(events=[event("Pulled", f'Container image "{IMAGE}" already present on machine')]),
            [],
            id="an image that was there already is no news",
        ),
        pytest.param(
            Picture(
                events=[
                    warning("ImageDiffers", "another Python", about="p"),
                    warning("ImageDiffers", "another Python", about="q"),
                ]
            ),
            ["Pod p: ImageDiffers: another Python"],
            id="a warning that many Pods share comes once",
        ),
        pytest.param(
            Picture(events=[warning("Unhealthy", "Readiness probe failed")]),
            [],
            id="probes that fail while Ray starts are no news",
        ),
        pytest.param(
            Picture(
                events=[warning("FailedToCreateService", "the quota is used up", about="j", kind="RayJob")]
            ),
            ["RayJob j: FailedToCreateService: the quota is used up"],
            id="a warning about a job",
        ),
        pytest.param(
            Picture(events=[event("CreatedService", "made", about="c", kind="RayCluster")]),
            [],
            id="what went as it should needs no event",
        ),
    ],
)
def test_a_picture_is_told_as(picture, want):
    assert told(picture) == want


def test_more_is_told_to_who_asks_for_it():
    picture = Picture(
        pods=[pod("h", HEAD)],
        events=[event("Pulled", f'Container image "{IMAGE}" already present on machine')],
    )
    assert told(picture, verbose=True) == [
        f"image {IMAGE} is there already",
        "head h is placed on kubereef",
        "head h has started",
    ]


def test_nothing_is_told_twice_while_it_is_there():
    picture = Picture(pods=[pod("h", HEAD)], jobs=[job(word="RUNNING")])
    known, first = news({}, picture)
    known, second = news(known, picture)
    assert (len(first), second) == (3, [])
    known, third = news(known, picture._replace(jobs=[job("Retrying", failed=1)]))
    known, fourth = news(known, picture)
    assert (len(third), fourth) == (1, []), "what a job says again later is no news either"


def test_what_is_gone_is_forgotten():
    known, _ = news({}, Picture(pods=[pod(f"p{number}") for number in range(100)]))
    known, _ = news(known, Picture())
    assert known == {}


def test_a_long_message_is_one_line_of_a_readable_length():
    (text,) = told(Picture(jobs=[job("ValidationFailed", message="word\n" * 1000)]))
    assert "\n" not in text
    assert len(text) == 400


@pytest.mark.parametrize(
    ("picture", "want"),
    [
        pytest.param(
            Picture(pods=[pod(phase="Pending")], events=[pulling("unpacking (70%)")]),
            f"image {IMAGE}: unpacking (70%)",
            id="an image is being made",
        ),
        pytest.param(
            Picture(
                jobs=[job("Initializing")],
                pods=[pod("p", HEAD, phase="Pending", state={"waiting": {}}), pod("w", WORKER, ready=True)],
                events=[pulling(), event("Pulled", f'Successfully pulled image "{IMAGE}" in 1s (1s …).')],
            ),
            "RayCluster c starts: 1 of 2 Pods ready",
            id="the image is there, the cluster starts",
        ),
        pytest.param(Picture(jobs=[job(word="")]), "RayJob j is being submitted", id="a job is submitted"),
        pytest.param(Picture(jobs=[job(word="RUNNING")]), "RayJob j is RUNNING", id="a job runs"),
        pytest.param(
            Picture(jobs=[job("Complete"), job(word="PENDING")]),
            "1 of 2 jobs have ended; RayJob j is PENDING",
            id="one of two jobs has ended",
        ),
        pytest.param(
            Picture(clusters=[cluster("")], pods=[pod("h", HEAD)]),
            "RayCluster c starts: 0 of 1 Pods ready",
            id="a cluster starts",
        ),
        pytest.param(
            Picture(services=[service(ready=False)]), "RayService s is coming up", id="a service starts"
        ),
        pytest.param(Picture(clusters=[cluster()]), "up; Ctrl-C ends it", id="all is up"),
    ],
)
def test_the_stage_is(picture, want):
    assert stage(picture) == want


@pytest.mark.parametrize(
    ("picture", "want"),
    [
        pytest.param(Picture(clusters=[cluster()], services=[service()]), True, id="all are ready"),
        pytest.param(Picture(clusters=[cluster("")]), False, id="a cluster is not"),
        pytest.param(Picture(services=[service(ready=False)]), False, id="a service is not"),
        pytest.param(
            Picture(clusters=[{"metadata": meta("of-a-job")}]),
            True,
            id="clusters of jobs come and go as they like",
        ),
    ],
)
def test_it_is_up(picture, want):
    assert is_up(picture, {"uid-c", "uid-s"}) is want


def test_facts_of_one_object_differ_in_their_words():
    found = list(facts(Picture(pods=[pod("h", HEAD, ready=True)], clusters=[cluster()])))
    assert len({(fact.about, fact.word) for fact in found}) == len(found) == 3
