"""A head that keeps what it knows in a real Redis: it may die, and what runs goes on."""

import re

import pytest

from tests.ray.reef import cluster

pytestmark = pytest.mark.heavy

PASSWORD = "sesame"
STORAGE = "kept-apart"
# A detached actor on the worker: it outlives the program that made it, and remembers how often it was asked.
ACTOR = """
import ray
ray.init(namespace="test", log_to_driver=False)

@ray.remote(num_cpus=1, max_restarts=0)
class Counter:
    def __init__(self): self.asked = 0
    def ask(self): self.asked += 1; return self.asked, ray.get_runtime_context().get_node_id()

counter = Counter.options(name="counter", get_if_exists=True, lifetime="detached").remote()
print("asked", *ray.get(counter.ask.remote()))
"""


@pytest.fixture(scope="module")
def redis(reef):
    """A Redis of one Pod, behind the Service `redis`; gives the name of the Pod."""
    labels = {"app": "redis"}
    container = {"name": "redis", "image": "redis:7", "args": ["--requirepass", PASSWORD]}
    pod = {"metadata": {"name": "redis", "labels": labels}, "spec": {"containers": [container]}}
    reef.create({"apiVersion": "v1", "kind": "Pod", **pod})
    spec = {"selector": labels, "ports": [{"port": 6379}]}
    reef.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "redis"}, "spec": spec})
    reef.until(lambda: reef.status("Pod", "redis").get("phase") == "Running", "Redis runs")
    return "redis"


def keys(reef, redis):
    """Return the names of what is kept in Redis for the cluster."""
    said = reef.run(redis, "redis-cli", "-a", PASSWORD, "--no-auth-warning", "keys", "*")
    return [line for line in said.splitlines() if STORAGE in line]


@pytest.fixture
def ready(reef, redis):
    """The RayCluster that the tests share, with one worker and a head that leaves tasks to it."""
    if reef.get("RayCluster", "c") is None:
        reef.create(
            cluster(
                workers=1,
                head={"rayStartParams": {"num-cpus": "0"}},
                gcsFaultToleranceOptions={
                    "redisAddress": "redis:6379",
                    "redisPassword": {"value": PASSWORD},
                    "externalStorageNamespace": STORAGE,
                },
            )
        )
    reef.ready(workers=1)


def asked(reef):
    """Ask the actor; returns how often it was, and where it lives."""
    said = reef.run(reef.head(), "python", "-c", ACTOR)
    found = re.search(r"^asked (\d+) (\w+)$", said, re.MULTILINE)
    assert found, said  # Ray may have more to say
    return int(found[1]), found[2]


def workers(reef):
    """Return what would show that a worker was replaced or started again."""
    return [
        (pod["metadata"]["uid"], [one["restartCount"] for one in pod["status"]["containerStatuses"]])
        for pod in reef.pods(node_type="worker")
    ]


def kill_the_gcs(reef):
    """The container ends with it, and is started again in the same Pod."""
    head = reef.head()
    reef.kill_inside(head, "gcs_server")
    reef.until(
        lambda: reef.status("Pod", head)["containerStatuses"][0]["restartCount"] == 1,
        "the head is started again",
    )


def delete_the_head(reef):
    """The operator makes another Pod, with another address."""
    old = reef.head()
    reef.delete("Pod", old, grace=0)
    reef.until(
        lambda: [one["metadata"]["name"] for one in reef.pods(node_type="head")] not in ([], [old]), "a head"
    )


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("kill", [kill_the_gcs, delete_the_head])
def test_workers_and_a_detached_actor_survive_the_head(reef, kill):
    times, node = asked(reef)
    before = workers(reef)
    kill(reef)
    reef.ready(workers=1)
    reef.until(lambda: node in reef.ray_nodes(), "the new head knows the old worker")
    assert asked(reef) == (times + 1, node)
    assert workers(reef) == before


@pytest.mark.usefixtures("ready")
def test_a_deleted_cluster_takes_what_it_kept_in_redis_with_it(reef, redis):
    assert keys(reef, redis)
    reef.delete("RayCluster", "c")
    reef.gone("RayCluster", "c")
    assert keys(reef, redis) == []
    reef.until(lambda: not reef.pods(), "its Pods are gone")
