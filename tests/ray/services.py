"""A RayService with real Ray Serve whose answers tell which cluster and which code gave them.

served = Served(reef)
served.make()
served.alone()
served.replace_cluster()
"""

import json
from itertools import count

from tests.eagleray.world import rayservice
from tests.ray.reef import SLOW_START

# Each answer takes a moment, so that at any time some requests are under way.
APP = """
import asyncio, os
from ray import serve

@serve.deployment(max_ongoing_requests=200, ray_actor_options={"num_cpus": 0.1})
class Teller:
    async def __call__(self, request):
        await asyncio.sleep(0.2)
        return f"{os.environ['CLUSTER']} {os.environ['CODE']}"

app = Teller.bind()
"""
PLACE = "/home/ray/app"
KEPT = 20  # seconds that a replaced cluster is kept, which is longer than connections and answers last
SERVE = "http://s-serve-svc:8000/"
GATEWAY = "http://s-gateway-kubereef/"
INTERVAL, STEP = 3, 25  # between moves of requests in seconds, and how many move at a time in percent
PAUSES = INTERVAL * (100 // STEP - 1)  # seconds at least from the first such move to the last
STEP_BY_STEP = {
    "type": "NewClusterWithIncrementalUpgrade",
    "clusterUpgradeOptions": {
        "gatewayClassName": "kubereef",
        "maxSurgePercent": 50,
        "stepSizePercent": STEP,
        "intervalSeconds": INTERVAL,
    },
}


class Served:
    """A RayService `s` and what is seen of it; `cluster` and `code` are what the answers that are wanted begin and
    end with."""

    def __init__(self, reef) -> None:
        self._reef = reef
        self._numbers = count(1)
        self.cluster = self.code = "none"

    @property
    def answer(self) -> str:
        """What is answered once all is as it is wanted."""
        return f"{self.cluster} {self.code}"

    # --- changing

    def make(self):
        self.cluster, self.code = self._name("cluster"), self._name("code")
        self._reef.create({"kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"teller.py": APP}})
        made = rayservice(serveConfigV2=_configuration(self.code), rayClusterDeletionDelaySeconds=KEPT)
        made["spec"]["rayClusterConfig"] = _described(self.cluster)
        self._reef.create(made)

    def change(self, **spec):
        self._reef.patch("RayService", "s", {"spec": spec})

    def replace_code(self):
        """Ask for other code on the same cluster."""
        self.code = self._name("code")
        self.change(serveConfigV2=_configuration(self.code))

    def replace_cluster(self, name=""):
        """Ask for another cluster, or for one that was there before."""
        self.cluster = name or self._name("cluster")
        self.change(rayClusterConfig=_described(self.cluster))

    def _name(self, what):
        return f"{what}-{next(self._numbers)}"

    # --- looking

    @property
    def status(self):
        return self._reef.status("RayService", "s")

    @property
    def active(self):
        """The RayCluster that serves."""
        return self.status["activeServiceStatus"]["rayClusterName"]

    @property
    def pending(self):
        """The RayCluster that is to take over, if any."""
        return (self.status.get("pendingServiceStatus") or {}).get("rayClusterName", "")

    def is_true(self, condition):
        conditions = self.status.get("conditions", ())
        return any(one["type"] == condition and one["status"] == "True" for one in conditions)

    def is_open(self):
        """Tell whether requests go through its Gateway."""
        gateway = self._reef.status("Gateway", "s-gateway")
        (parent,) = self._reef.status("HTTPRoute", "s-httproute").get("parents") or [{}]
        conditions = [*gateway.get("conditions", ()), *parent.get("conditions", ())]
        true = {one["type"] for one in conditions if one["status"] == "True"}
        return true >= {"Accepted", "Programmed", "ResolvedRefs"}

    # --- waiting

    def settled(self):
        """Wait until all is seen to, and serves, in one cluster."""

        def is_settled():
            found = self._reef.get("RayService", "s")
            is_seen_to = self.status.get("observedGeneration") == found["metadata"]["generation"]
            is_one = not self.pending and not self.is_true("UpgradeInProgress")
            return is_seen_to and is_one and self.is_true("Ready")

        self._reef.until(is_settled, "the RayService has settled")

    def alone(self):
        """Wait until replaced clusters are gone with all their Pods too, as when their deletion delay is over."""
        self.settled()
        self._reef.until(lambda: len(self._reef.list("RayCluster")) == 1, "one RayCluster is left")
        others = f"ray.io/cluster,ray.io/cluster!={self.active}"
        self._reef.until(lambda: not self._reef.list("Pod", others), "no other Pods are left")


def _described(cluster):
    """Return the spec of a RayCluster whose applications call it by a name."""
    container = {
        "resources": {"requests": {"cpu": "500m", "memory": "3Gi"}, "limits": {"memory": "3Gi"}},
        "env": [
            *SLOW_START,
            {"name": "PYTHONPATH", "value": PLACE},
            {"name": "CLUSTER", "value": cluster},
        ],
        "ports": [{"name": "dashboard", "containerPort": 8265}, {"name": "serve", "containerPort": 8000}],
        "volumeMounts": [{"name": "app", "mountPath": PLACE}],
    }
    pod = {"volumes": [{"name": "app", "configMap": {"name": "app"}}], "terminationGracePeriodSeconds": 5}
    head = {"rayStartParams": {"num-cpus": "1"}, "container": container, "pod": pod}
    made = {"head": head, "workers": [], "rayVersion": "2.52.0", "enableInTreeAutoscaling": True}
    return rayservice(cluster=made)["spec"]["rayClusterConfig"]


def _configuration(code):
    """Return a configuration whose application says which code it is; other code needs other replicas."""
    application = {
        "name": "app",
        "import_path": "teller:app",
        "route_prefix": "/",
        "runtime_env": {"env_vars": {"CODE": code}},
    }
    return json.dumps({"applications": [application]})
