"""Batch schedulers in the test world: their kinds as small CRDs, and one that binds Pods as their objects say.

    async with gang_world("volcano") as (world, ray):
        await world.create(raycluster())
        group = await world.get("PodGroup", "ray-c-pg")

A Pod is bound when its gang is complete: as many Pods as the PodGroup that it names wants. One that names no gang is
bound at once, and one that names a PodGroup which does not exist waits, as with the real schedulers.
"""

import asyncio
from contextlib import asynccontextmanager, suppress

from kubereef.controllers.following import follow
from kubereef.simulation import settle
from kubewire import errors
from tests.eagleray.ray import RayOnPods
from tests.eagleray.world import NAMESPACE, World

KINDS = ("RayCluster", "RayJob")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_COUNT = {"type": "integer", "format": "int32"}
_TEXT = {"type": "string"}
_AMOUNTS = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "integer"}, _TEXT], "x-kubernetes-int-or-string": True},
}
_POLICY = {
    "type": "object",
    "properties": {"gang": {"type": "object", "properties": {"minCount": _COUNT}, "required": ["minCount"]}},
}
_FIXED = [{"rule": "self == oldSelf", "message": "field is immutable"}]


def _object(**properties):
    return {"type": "object", "properties": properties}


def _crd(group, version, kind, spec, *, phase=False):
    plural = f"{kind.lower()}s"
    schema = _object(spec=spec, **({"status": _object(phase=_TEXT)} if phase else {}))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


_VOLCANO = _crd(
    "scheduling.volcano.sh",
    "v1beta1",
    "PodGroup",
    _object(
        minMember=_COUNT,
        minResources=_AMOUNTS,
        queue=_TEXT,
        priorityClassName=_TEXT,
        networkTopology=_object(mode=_TEXT, highestTierAllowed=_COUNT),
    ),
    phase=True,
)
_PLUGINS = _crd(
    "scheduling.x-k8s.io", "v1alpha1", "PodGroup", _object(minMember=_COUNT, minResources=_AMOUNTS)
)
_TEMPLATES = {"type": "array", "items": _object(name=_TEXT, schedulingPolicy=_POLICY)}
_WORKLOAD = _crd(
    "scheduling.k8s.io",
    "v1alpha2",
    "Workload",
    {
        **_object(
            controllerRef=_object(apiGroup=_TEXT, kind=_TEXT, name=_TEXT), podGroupTemplates=_TEMPLATES
        ),
        "x-kubernetes-validations": _FIXED,
    },
)
_GANG = _crd(
    "scheduling.k8s.io",
    "v1alpha2",
    "PodGroup",
    {
        **_object(
            podGroupTemplateRef=_object(workload=_object(workloadName=_TEXT, podGroupTemplateName=_TEXT)),
            schedulingPolicy=_POLICY,
        ),
        "x-kubernetes-validations": _FIXED,
    },
)

# The kinds of a scheduler, by the name that it has here; and the flags that ask for it.
INSTALLED = {
    "": (),
    "volcano": (_VOLCANO,),
    "yunikorn": (),
    "scheduler-plugins": (_PLUGINS,),
    "kai-scheduler": (),
    "kubernetes-was": (_WORKLOAD, _GANG),
}
SCHEDULERS = tuple(name for name in INSTALLED if name)
_NAMES = {"scheduler-plugins": "scheduler-plugins-scheduler", "kubernetes-was": "default-scheduler"}


def flags_of(scheduler):
    if scheduler == "kubernetes-was":
        return ("--feature-gates=KubernetesWAS=true",)
    return (f"--batch-scheduler={scheduler}",) if scheduler else ()


class GangWorld(World):
    """A world in which a batch scheduler is installed."""

    def __init__(self, scheduler, **options):
        flags = (*flags_of(scheduler), *options.pop("flags", ()))
        super().__init__(flags=flags, **{"kinds": KINDS, **options})
        self.scheduler = scheduler
        self._urls = {
            one["spec"]["names"]["kind"]: (
                f"/apis/{one['spec']['group']}/{one['spec']['versions'][0]['name']}"
                f"/namespaces/{{}}/{one['spec']['names']['plural']}"
            )
            for one in INSTALLED[scheduler]
        }

    async def install(self):
        for definition in INSTALLED[self.scheduler]:
            await self.api.create(CRDS, definition)
        await settle()
        await self.pass_time(1)

    def url(self, kind, namespace=NAMESPACE):
        return self._urls[kind].format(namespace)

    async def get(self, kind, name, namespace=NAMESPACE):
        if kind not in self._urls:
            return await super().get(kind, name, namespace)
        try:
            return await self.api.get(f"{self.url(kind, namespace)}/{name}")
        except errors.NotFound:
            return None

    async def list(self, kind, labels="", namespace=NAMESPACE):
        if kind not in self._urls:
            return await super().list(kind, labels, namespace)
        return (await self.api.get(self.url(kind, namespace)))["items"]

    async def create_foreign(self, kind, name, spec):
        """Create an object of the scheduler that nobody owns."""
        version = self.url(kind).removeprefix("/apis/").partition("/namespaces")[0]
        obj = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        return await self.api.create(self.url(kind), obj)

    async def made(self):
        """Return the objects of the scheduler, by kind and name."""
        return {(kind, obj["metadata"]["name"]): obj for kind in self._urls for obj in await self.list(kind)}

    @property
    def extra_kinds(self):
        return tuple(self._urls)


class BatchScheduler:
    """Binds the Pods that name the scheduler of a world, whole gangs at a time."""

    def __init__(self, world):
        self.world = world
        self._name = _NAMES.get(world.scheduler, world.scheduler)
        self._waiting = {}
        self._members = {}
        self._news = asyncio.Event()
        self._tasks = []

    async def __aenter__(self):
        if self._name != "default-scheduler":  # which is Kubereef's own, and knows no gangs
            self._tasks = [
                asyncio.create_task(follow(self.world.api, "/api/v1/pods", self), name="following"),
                asyncio.create_task(self._bind_gangs(), name="binding"),
            ]
            await settle()
        return self

    async def __aexit__(self, *_why):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def replace(self, objects, revision):
        for pod in objects:
            self._seen(pod)

    def apply(self, kind, obj, revision):
        if kind == "DELETED":
            uid = obj["metadata"]["uid"]
            self._waiting.pop(uid, None)
            self._members.pop(uid, None)
        else:
            self._seen(obj)

    def reached(self, revision):
        pass

    def _seen(self, pod):
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("schedulerName") != self._name:
            return
        self._members[uid] = self._gang(pod)
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            self._waiting.pop(uid, None)
        else:
            self._waiting[uid] = pod
            self._news.set()

    def _gang(self, pod):
        metadata = pod["metadata"]
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        name = annotations.get("scheduling.k8s.io/group-name") or labels.get("scheduling.x-k8s.io/pod-group")
        return (metadata["namespace"], name) if name else None

    async def _bind_gangs(self):
        while True:
            await self._news.wait()
            self._news.clear()
            for uid, pod in list(self._waiting.items()):
                if await self._is_complete(self._members.get(uid)):
                    await self._bind(pod)
            if self._waiting:  # their gang may become complete by a change of their PodGroup
                asyncio.get_running_loop().call_later(1, self._news.set)

    async def _is_complete(self, gang):
        if gang is None:
            return True
        group = await self.world.get("PodGroup", gang[1], gang[0])
        return group is not None and list(self._members.values()).count(gang) >= group["spec"]["minMember"]

    async def _bind(self, pod):
        metadata = pod["metadata"]
        binding = {
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "target": {"kind": "Node", "name": next(iter(self.world.nodes._nodes))},
        }
        url = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
        with suppress(errors.NotFound, errors.Conflict):  # gone, or bound already
            await self.world.api.create(url, binding)
        self._waiting.pop(metadata["uid"], None)


@asynccontextmanager
async def gang_world(scheduler, *, operator=True, install=True, lasts=20.0, ends="SUCCEEDED", **options):
    """Give a world with a batch scheduler and the operator in it, and the Ray that lives there."""
    world = GangWorld(scheduler, **options)
    await world.start(operator=False)
    try:
        if install:
            await world.install()
        async with BatchScheduler(world), RayOnPods(world, lasts=lasts, ends=ends) as ray:
            if operator:
                await world.start_operator()
            yield world, ray
    finally:
        await world.stop()


def asking(**requests):
    """Return a container that asks for this much; as part of a group of `raycluster`."""
    return {"container": {"resources": {"requests": requests}}}


async def marks(world, cluster="c"):
    """Return the Pods of a cluster by group."""
    return {pod["metadata"]["labels"]["ray.io/group"]: pod for pod in await world.pods(cluster)}
