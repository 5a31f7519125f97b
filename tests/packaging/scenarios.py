"""What operators do, one scenario for each thing that their roles are for, under their own account.

`played()` plays all of them under virtual time and says what each has used, and what it was refused.
"""

from functools import cache
from typing import Any, NamedTuple

from eagleray.kube.client import Client
from eagleray.kube.resources import Key
from eagleray.webhooks.certificates import SECRET_NAME, KeptSecret
from eagleray.webhooks.trust import Configuration
from kubereef.simulation import run
from kubewire.certificates import Issuer
from kubewire.sources import SeededEntropy
from tests.eagleray.operator.test_variables import ROUTES
from tests.eagleray.raycluster.test_cases_storage import GATE as STORAGE
from tests.eagleray.raycluster.test_cases_storage import stored
from tests.eagleray.raycronjob.situations import raycronjob, wait_until
from tests.eagleray.rayjob import situations as jobs
from tests.eagleray.rayservice import situations as services
from tests.eagleray.schedulers.standins import CRDS, gang_world
from tests.eagleray.world import raycluster, rayjob, rayservice, world_of
from tests.packaging.account import NAMESPACE, AccountTransport, documents, install_roles, operate

GANG = {"labels": {"ray.io/gang-scheduling-enabled": "true"}}


class Played(NamedTuple):
    """What a scenario has used, what it was refused, and what its operator has made."""

    used: set[Any]
    refused: list[str]
    created: list[Any]


async def clusters(old=False):
    """Clusters with everything that is made for them; a group that is suspended, a Pod on a lost node."""
    head = {"enableIngress": True}
    async with world_of(operator=False) as world:
        account = await operate(world, old=old)
        await world.create(
            raycluster(
                head=head,
                workers=[{"replicas": 3}],
                enableInTreeAutoscaling=True,
                authOptions={"mode": "token"},
                rayVersion="2.52.0",
            )
        )
        await world.ready()
        cluster = await world.get("RayCluster", "c")
        cluster["spec"]["headGroupSpec"]["ingressOptions"] = {"host": "ray.example.com"}
        await world.patch_spec("c", cluster["spec"])
        (worker, *_) = await world.workers()
        await world.set_group(
            "c", scaleStrategy={"workersToDelete": [worker["metadata"]["name"]]}, replicas=2
        )
        await world.pass_time(10)
        for pod in await world.pods():
            held = {"metadata": {"finalizers": ["example.com/hold"]}}
            await world.patch("Pod", pod["metadata"]["name"], held)
        await world.patch_spec("c", {"suspend": True})
        await world.pass_time(400)
        await world.create(raycluster("kept", gcsFaultToleranceOptions={"redisAddress": "redis:6379"}))
        await world.ready("kept")
        await world.delete("RayCluster", "kept")
        await world.pass_time(60)
        return account, world


async def clusters_on_an_old_server():
    """The same where watches cannot begin with what there is."""
    return await clusters(old=True)


async def routes():
    """The way in on OpenShift."""
    async with world_of(operator=False) as world:
        await world.api.create(CRDS, ROUTES)
        await world.pass_time(1)
        account = await operate(world, old=True)
        await world.create(raycluster(head={"enableIngress": True}))
        await world.ready()
        await world.stop_operator()
        return account, world


async def job_runs():
    """Jobs: one is retried, one goes without a submitter, one loses its head, one is suspended and deleted."""
    async with jobs.ray_world(operator=False, lasts=5, ends="FAILED") as (world, ray):
        account = await operate(world, old=True)
        await world.create(rayjob(backoffLimit=1, shutdownAfterJobFinishes=True))
        await jobs.reached(world, "Failed")
        ray.ends = "SUCCEEDED"
        await world.create(rayjob("http", submissionMode="HTTPMode"))
        await jobs.reached(world, "Complete", name="http")
        ray.lasts = None
        await world.create(rayjob("lost"))
        await jobs.reported(world, "RUNNING", name="lost")
        await world.delete("Pod", (await jobs.head_pod(world, "lost"))["metadata"]["name"])
        await jobs.reached(world, "Failed", name="lost")
        await world.create(rayjob("held", shutdownAfterJobFinishes=True))
        await jobs.reported(world, "RUNNING", name="held")
        await world.patch("RayJob", "held", {"spec": {"suspend": True}})
        await jobs.reached(world, "Suspended", name="held")
        await world.delete("RayJob", "held")
        await world.pass_time(60)
        return account, world


async def service_runs():
    """A service that is changed in place, upgraded, suspended and deleted."""
    async with services.serve_world(operator=False) as (world, _):
        account = await operate(world, old=True)
        await world.create(rayservice())
        await services.is_ready(world)
        await world.pass_time(services.ROUND)
        spec = (await world.get("RayService", "s"))["spec"]
        spec["rayClusterConfig"]["workerGroupSpecs"].append(
            {**spec["rayClusterConfig"]["workerGroupSpecs"][0], "groupName": "more"}
        )
        await world.patch("RayService", "s", {"spec": spec})
        await world.pass_time(30)
        await services.set_image(world, "2.53.0")
        await world.pass_time(120)
        await services.change(world, suspend=True)
        await world.pass_time(60)
        await services.change(world, suspend=False)
        await services.is_ready(world)
        await world.delete("RayService", "s")
        await world.pass_time(60)
        return account, world


async def incremental_upgrade():
    """A service whose traffic moves step by step, with another class of Gateway, until it is suspended."""
    async with services.serve_world(gateways=True, operator=False) as (world, _):
        account = await operate(world, old=True)
        await world.create(services.incremental())
        await services.is_ready(world)
        await services.change(world, upgradeStrategy={"clusterUpgradeOptions": {"gatewayClassName": "other"}})
        await world.pass_time(services.ROUND)
        await services.set_image(world, "2.53.0")
        await world.pass_time(200)
        await services.change(world, suspend=True)
        await world.pass_time(60)
        return account, world


async def schedules():
    """A schedule of which a run replaces the one before."""
    async with world_of(kinds=("RayCluster", "RayJob", "RayCronJob"), operator=False) as world:
        account = await operate(world, old=True)
        await world.create(raycronjob(concurrencyPolicy="Replace"))
        await wait_until(world, "00:11")
        return account, world


async def _gang(scheduler, component):
    async with gang_world(scheduler, operator=False) as (world, _):
        account = await operate(world, component, old=True)
        await world.create(raycluster(metadata=GANG))
        await world.ready()
        if scheduler == "kubernetes-was":
            # As the scheduler that guards its PodGroups does.
            guarded = {"metadata": {"finalizers": ["scheduling.k8s.io/podgroup-protection"]}}
            await world.api.patch(f"{world.url('PodGroup')}/c-cluster", guarded)
        await world.set_group("c", replicas=3)
        await world.pass_time(60)
        return account, world


async def volcano():
    return await _gang("volcano", "volcano")


async def scheduler_plugins():
    return await _gang("scheduler-plugins", "scheduler-plugins")


async def kubernetes_was():
    return await _gang("kubernetes-was", "kubernetes-was")


async def embedded_storage():
    """A claim that is made, and then kept though its cluster goes."""
    async with world_of(operator=False, flags=STORAGE) as world:
        account = await operate(world, "embedded-storage", old=True)
        await world.create(stored())
        await world.pass_time(10)
        cluster = await world.get("RayCluster", "c")
        options = {**cluster["spec"]["gcsFaultToleranceOptions"], "storage": {"deletionPolicy": "Retain"}}
        await world.patch_spec("c", {"gcsFaultToleranceOptions": options})
        await world.pass_time(30)
        return account, world


async def proxied():
    """Jobs and services whose Ray is reached through the API server alone."""
    flags = ("--use-kubernetes-proxy",)
    async with services.serve_world(operator=False, flags=flags) as (world, _):
        world.carrier = None
        account = await operate(world, "proxy")
        await world.create(rayservice())
        await services.is_ready(world)
        service = account
    async with jobs.ray_world(operator=False, flags=flags, lasts=5) as (world, _):
        world.carrier = None
        account = await operate(world, "proxy")
        await world.create(rayjob(submissionMode="HTTPMode"))
        await jobs.reached(world, "Complete")
        account.used |= service.used
        account.refused += service.refused
        return account, world


async def leader_election():
    """Two lives of an operator that hold the Lease one after the other."""
    flags = ("--enable-leader-election=true", f"--leader-election-namespace={NAMESPACE}")
    async with world_of(operator=False, flags=flags) as world:
        account = await operate(world)
        await world.pass_time(20)
        assert await world.stop_operator() == 0
        await world.start_operator()
        await world.create(raycluster())
        await world.ready()
        await world.stop_operator()
        return account, world


async def webhooks():
    """The certificate of the webhooks: made, trusted, and made anew for another name."""
    async with world_of(operator=False) as world:
        await install_roles(world.api, "webhooks")
        (configuration,) = (
            one for one in documents("components/webhooks") if one["kind"] == "ValidatingWebhookConfiguration"
        )
        place = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        await world.api.create(place, configuration)
        account = AccountTransport(world)
        client = Client(account, world.clock, SeededEntropy(1))
        issuer = Issuer(world.clock, SeededEntropy(2))
        trust = Configuration(client, configuration["metadata"]["name"], Key(NAMESPACE, "webhook-service"))
        for names in (("one",), ("one", "two")):
            serving = await KeptSecret(client, Key(NAMESPACE, SECRET_NAME), names, issuer).current()
            assert await trust.trust(serving.authority) == ""
        return account, world


SCENARIOS = {
    play.__name__.replace("_", " "): play
    for play in (
        clusters,
        clusters_on_an_old_server,
        routes,
        job_runs,
        service_runs,
        incremental_upgrade,
        schedules,
        volcano,
        scheduler_plugins,
        kubernetes_was,
        embedded_storage,
        proxied,
        leader_election,
        webhooks,
    )
}


@cache
def played(name):
    """Play a scenario once."""
    account, world = run(SCENARIOS[name]())
    created = [request for request in world.faults.sent if request.verb == "create"]
    return Played(account.used, account.refused, created)
