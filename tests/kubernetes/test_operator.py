"""`eagleray operator` on a real control plane, as its ServiceAccount and with exactly its rights."""

from tests.eagleray.world import raycluster, rayjob, rayservice
from tests.kubernetes.audit import READS
from tests.kubernetes.namespaces import Namespace

KINDS = ("RayCluster", "RayJob", "RayService", "RayCronJob")


def raycronjob(name, schedule):
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": rayjob(cluster={"workers": []})["spec"]},
    }


LIVES = (
    raycluster("plain", workers=[{"replicas": 2}]),
    raycluster("autoscaling", enableInTreeAutoscaling=True),
    raycluster("token", authOptions={"mode": "token"}, rayVersion="2.52.0"),
    raycluster("ingress", head={"enableIngress": True}),
    raycluster("redis", gcsFaultToleranceOptions={"redisAddress": "redis:6379"}),
    rayjob("submitted", submissionMode="K8sJobMode", shutdownAfterJobFinishes=True),
    rayjob("sidecar", submissionMode="SidecarMode"),
    rayjob("http", submissionMode="HTTPMode"),
    rayservice("served"),
    raycronjob("cron", "@every 5s"),
)


async def test_objects_of_all_kinds_live_and_end_and_nothing_is_refused(namespace, start, audit):
    mark = audit.mark()
    operator = await start("--enable-metrics", leads=True)
    for obj in LIVES:
        await namespace.create({**obj, "metadata": {**obj["metadata"], "namespace": namespace.name}})
    for obj in LIVES:
        name = obj["metadata"]["name"]
        if obj["kind"] == "RayCluster":
            await namespace.ready(name)
        elif obj["kind"] == "RayJob":
            await namespace.reaches("RayJob", name, "jobDeploymentStatus", "Complete")
        elif obj["kind"] == "RayService":
            await namespace.reaches("RayService", name, "serviceStatus", "Running")
    await namespace.until(lambda: namespace.list("RayJob", "ray.io/cronjob-name=cron"))
    for obj in LIVES:
        await namespace.delete(obj["kind"], obj["metadata"]["name"])

    async def is_empty():
        return not [obj for kind in KINDS for obj in await namespace.list(kind)]

    await namespace.until(is_empty)
    assert operator.terminate() == 0
    asked = [one for one in audit.since(mark) if one.namespace in ("", namespace.name)]
    assert len([one for one in asked if one.verb not in READS]) > 50
    assert [str(one) for one in asked if one.code in (401, 403)] == []


async def test_a_namespace_that_is_deleted_goes_with_all_that_an_operator_holds_there(namespace, start):
    going = Namespace(namespace.api, f"{namespace.name}-going")
    await going.make()
    await start(f"--watch-namespace={going.name}")
    held = (
        raycluster("c", gcsFaultToleranceOptions={"redisAddress": "redis:6379"}),
        rayjob("j", submissionMode="HTTPMode"),
        rayservice("s"),
    )
    for obj in held:
        await going.create({**obj, "metadata": {**obj["metadata"], "namespace": going.name}})
    await going.ready("c")
    await going.reaches("RayJob", "j", "jobDeploymentStatus", "Complete")
    await going.reaches("RayService", "s", "serviceStatus", "Running")
    for obj in held:
        assert (await going.get(obj["kind"], obj["metadata"]["name"]))["metadata"]["finalizers"]
    await going.api.delete(f"/api/v1/namespaces/{going.name}")
    await namespace.until(going.is_gone)
