"""The CRDs of the reference replaced by ours on a real server, and back: what is stored stays, and nothing restarts."""

import functools

import pytest
import yaml

from eagleray.manifests.hashing import recreate_hash
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from tests.conftest import REPOSITORY
from tests.eagleray.golden.samples import read_samples
from tests.eagleray.world import PATHS, raycluster, rayjob
from tests.kubernetes.conftest import DEFINITIONS, kubectl
from tests.kubernetes.etcd import Etcd
from tests.kubernetes.namespaces import Namespace

STORED = "/registry/ray.io/"


def raycronjob(namespace):
    """Return one with a field that only our CRDs know."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCronJob",
        "metadata": {"name": "probe", "namespace": namespace},
        "spec": {"schedule": "@daily", "concurrencyPolicy": "Forbid", "jobTemplate": rayjob()["spec"]},
    }


async def until_schemas_are(namespace, *, ours):
    """Wait until the server works by our CRDs, or by the reference's."""
    url = f"{PATHS['RayCronJob'].format(namespace.name)}?dryRun=All"

    async def are_there():
        seen = await namespace.api.create(url, raycronjob(namespace.name))
        return ("concurrencyPolicy" in seen["spec"]) == ours

    await namespace.until(are_there)


async def replace(namespace, definitions):
    """Replace CRDs as `kubectl replace` does."""
    for definition in definitions:
        url = f"{DEFINITIONS}/{definition['metadata']['name']}"
        version = (await namespace.api.get(url))["metadata"]["resourceVersion"]
        metadata = {**definition["metadata"], "resourceVersion": version}
        await namespace.api.replace(url, {**definition, "metadata": metadata})


@pytest.fixture
async def quiet(namespace):
    """A namespace that no operator looks after."""
    quiet = Namespace(namespace.api, f"{namespace.name}-quiet")
    await quiet.make()
    yield quiet
    await quiet.remove()


@pytest.fixture
def theirs(reference):
    """The reference's CRDs."""
    files = sorted((reference / "crds").glob("*.yaml"))
    return [yaml.load(file.read_text(), Loader=yaml.CSafeLoader) for file in files]


@pytest.fixture
def documents(reference):
    """The Ray objects of the reference's samples, each of another name."""
    found = {}
    for sample in read_samples(reference).values():
        for document in sample.documents:
            name = document["metadata"].get("name")
            if document["kind"] in PATHS and document["apiVersion"] == "ray.io/v1" and name:
                found[document["kind"], name] = document
    return list(found.values())


def hashes(objects):
    """Return the hash that decides about upgrades, of every cluster and of every cluster that is described."""
    specs = {key: obj["spec"] for key, obj in objects.items()}
    return {
        key: recreate_hash(spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec)
        for key, spec in specs.items()
    }


@pytest.mark.case("OP-131")
async def test_replacing_the_references_crds_by_ours_and_back_changes_and_restarts_nothing(
    plane, namespace, quiet, start, audit, theirs, documents
):
    etcd = Etcd(plane)

    async def contents():
        kinds = sorted({document["kind"] for document in documents})
        listed = [(kind, obj) for kind in kinds for obj in await quiet.list(kind)]
        return {(kind, obj["metadata"]["name"]): obj for kind, obj in listed}

    async def is_grown(workers):
        pods = await namespace.pods("live")
        ready = (await namespace.status("RayCluster", "live")).get("readyWorkerReplicas")
        return len(pods) == workers + 1 and ready == workers

    async def live_pods():
        return {pod["metadata"]["uid"] for pod in await namespace.pods("live")}

    await replace(namespace, theirs)
    await until_schemas_are(namespace, ours=False)
    # A cluster that would be made anew if its hash were another one, and an operator that looks after it all the time.
    operator = await start(f"--watch-namespace={namespace.name}")
    live = raycluster("live", namespace=namespace.name, upgradeStrategy={"type": "Recreate"})
    await namespace.create(live)
    await namespace.until(functools.partial(is_grown, 1))
    for document in documents:
        await quiet.create({**document, "metadata": dict(document["metadata"])})
    before = await contents()
    stored = {key: value for key, value in etcd.stored(STORED).items() if f"/{quiet.name}/" in key}
    assert len(before) == len(documents) == len(stored) > 20
    pods, mark = await live_pods(), audit.mark()

    kubectl(plane, "apply", "--server-side", "--force-conflicts", "-k", str(REPOSITORY / "config" / "crd"))
    await until_schemas_are(namespace, ours=True)
    after = await contents()
    assert after == before
    assert hashes(after) == hashes(before)
    assert {key: etcd.stored(STORED)[key] for key in stored} == stored
    await namespace.api.patch(f"{PATHS['RayCluster'].format(namespace.name)}/live", _scaled(2), "json")
    await namespace.until(functools.partial(is_grown, 2))
    assert pods < await live_pods()

    await replace(namespace, theirs)
    await until_schemas_are(namespace, ours=False)
    assert await contents() == before
    assert {key: etcd.stored(STORED)[key] for key in stored} == stored
    pods = await live_pods()
    await namespace.api.patch(f"{PATHS['RayCluster'].format(namespace.name)}/live", _scaled(3), "json")
    await namespace.until(functools.partial(is_grown, 3))
    assert pods < await live_pods()

    assert operator.is_alive
    deleted = [str(one) for one in audit.writes(mark, namespace.name) if one.verb.startswith("delete")]
    assert deleted == []


def _scaled(replicas):
    return [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": replicas}]


@pytest.fixture(autouse=True)
async def _ours_in_the_end(namespace):
    """Leave the plane with our CRDs."""
    yield
    await replace(namespace, map(crd, KINDS))
    await until_schemas_are(namespace, ours=True)
