"""Kubernetes' own gang scheduling with a real scheduler: a cluster starts as a whole, or not at all."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from kubereef.node.scripted import NodeShape
from tests.conftest import REPOSITORY
from tests.eagleray.world import raycluster
from tests.kubernetes.accounts import Account
from tests.kubernetes.conftest import SYSTEM, kubectl
from tests.kubernetes.land import Land, client_of
from tests.kubernetes.namespaces import Namespace
from tests.kubernetes.operators import Operator
from tests.kubernetes.plane import Plane

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
FLAGS = {
    "kube-apiserver": [GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
    "kube-controller-manager": [GATES],
    "kube-scheduler": [GATES],
}
SMALL = NodeShape("small", capacity={"cpu": "8", "memory": "32Gi", "pods": "100"})
LARGE = NodeShape("large", capacity={"cpu": "64", "memory": "256Gi", "pods": "100"})
GANG = {"ray.io/gang-scheduling-enabled": "true"}
POD_GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups"
# As long as a scheduler that does not wait for the others takes, several times.
A_WHILE = 5.0


@pytest.fixture(scope="module")
def gangs(binaries):
    """A plane that schedules gangs, and an operator that asks for it, with the rights that this takes."""
    with tempfile.TemporaryDirectory(prefix="gang-") as made_directory:
        directory = Path(made_directory)
        with (
            Land(directory, [SMALL]) as land,
            Plane(directory, binaries, FLAGS) as plane,
            land.on(plane),
        ):
            kubectl(plane, "create", "-k", str(REPOSITORY / "config" / "crd"))
            account = Account(plane, SYSTEM, "components/kubernetes-was/role.yaml")
            token = directory / "token"
            token.write_text(land.run(_installed(plane, account)))
            log = directory / "operator.log"
            flags = ("--feature-gates=KubernetesWAS=true", "--enable-leader-election=false")
            operator = Operator(account.kubeconfig(token), log, *flags)
            try:
                operator.until_ready()
                yield plane, land
            finally:
                operator.kill()


async def _installed(plane, account):
    api = client_of(plane)
    try:
        await account.install(api)
        return await account.token(api)
    finally:
        await api.close()


@pytest.fixture
async def namespace(gangs):
    plane, _ = gangs
    api = client_of(plane)
    namespace = Namespace(api, "gang")
    await namespace.make()
    yield namespace
    await namespace.remove()
    await api.close()


def cluster(name, largest, labels):
    """Return a cluster of three Pods, of which one asks for so many CPUs."""

    def asking(cpu):
        return {"container": {"resources": {"requests": {"cpu": cpu}}}}

    workers = [{"groupName": "usual", **asking("1")}, {"groupName": "largest", **asking(largest)}]
    return raycluster(
        name, namespace="gang", head=asking("1"), workers=workers, metadata={"labels": dict(labels)}
    )


async def bound(namespace, name):
    """Return the node types of the Pods that have a node."""
    pods = [pod for pod in await namespace.pods(name) if pod["spec"].get("nodeName")]
    return sorted(pod["metadata"]["labels"]["ray.io/node-type"] for pod in pods)


@pytest.mark.case("OP-161")
async def test_no_pod_of_a_cluster_is_bound_as_long_as_one_worker_has_no_place(gangs, namespace):
    _, land = gangs
    await namespace.create(cluster("gang", "32", GANG))
    await namespace.create(cluster("loose", "32", {}))

    async def are_there():
        return len(await namespace.pods("gang")) == 3 and await bound(namespace, "loose") == [
            "head",
            "worker",
        ]

    await namespace.until(are_there)
    await asyncio.sleep(A_WHILE)
    assert await bound(namespace, "gang") == []
    (group,) = (await namespace.api.get(POD_GROUPS.format("gang")))["items"]
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    land.join(LARGE)
    await namespace.ready("gang")
    assert await bound(namespace, "gang") == ["head", "worker", "worker"]
