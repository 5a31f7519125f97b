"""Where the requests of a RayService would go, looked at after every single write of an operator."""

from datetime import timedelta

from kubewire.times import parse_time
from tests.eagleray.ray import host_of

WHOLE = 100
SERVICES = ("s-head-svc", "s-serve-svc")
# A cluster that is not used any more goes this long after it is due: an operator that starts anew, a refusal.
SLACK = timedelta(seconds=60)


class Traffic:
    """Notes in `wrong` whatever must not be so at any moment of the life of the service `s`.

    Requests come in by the Services, or by the weights of the route. `clusters` are the uids of all clusters that there
    have ever been.
    """

    def __init__(self, world, namespace="default"):
        self._world = world
        self._namespace = namespace
        self._weights = {}
        self._targets = {}
        self.clusters = set()
        self.wrong = []

    def look(self, write):
        """Look at everything, after a write that has just been answered."""
        clusters = {found["metadata"]["name"]: found for found in self._objects("rayclusters.ray.io")}
        service = next(self._objects("rayservices.ray.io"), None)
        self.clusters |= {found["metadata"]["uid"] for found in clusters.values()}
        found = [
            *self._shared_wrongly(),
            *self._led_astray(),
            *(self._cut_off(clusters) if service is not None and not _is_ending(service) else ()),
            *(self._left_over(clusters, service) if service is not None else ()),
        ]
        self.wrong += [f"after {write}: {what}" for what in found]

    def _shared_wrongly(self):
        """Yield what is wrong with the weights of the route, now and compared with before."""
        weights = self._routed()
        if weights and sum(weights.values()) != WHOLE:
            yield f"the weights are {weights}"
        for name, weight in weights.items():
            if weight > self._weights.get(name, 0) and not self._serves(name):
                yield f"{name} gets more traffic, and does not serve"
            if weight > self._capacity(name):
                yield f"{name} gets {weight} % of the traffic, and has capacity for {self._capacity(name)} %"
        self._weights = weights

    def _led_astray(self):
        """Yield which Service leads to another cluster since it was looked at last, which does not serve."""
        targets = self._selected()
        for name, cluster in targets.items():
            if cluster != self._targets.get(name) and not self._serves(cluster):
                yield f"{name} leads to {cluster}, which does not serve"
        self._targets = targets

    def _cut_off(self, clusters):
        """Yield which cluster goes although requests are led to it."""
        used = {name for name, weight in self._weights.items() if weight} | set(self._targets.values())
        for name in sorted(used):
            if name not in clusters or clusters[name]["metadata"].get("deletionTimestamp"):
                yield f"{name} is gone, and requests are led to it"

    def _left_over(self, clusters, service):
        """Yield which clusters are still there although they should have been deleted."""
        for name, found in clusters.items():
            due = (found["metadata"].get("annotations") or {}).get("eagleray.io/delete-at")
            is_going = found["metadata"].get("deletionTimestamp") or name in sides_of(service)
            if due and not is_going and self._world.clock.now() > parse_time(due) + SLACK:
                yield f"{name} was to be deleted at {due}"

    # --- seeing

    def _objects(self, resource):
        records = self._world.simulated.store.records(resource, self._namespace)
        return (record.object() for record in list(records))

    def _routed(self):
        routes = list(self._objects("httproutes.gateway.networking.k8s.io"))
        backends = routes[0]["spec"]["rules"][0]["backendRefs"] if routes else ()
        return {one["name"].removesuffix("-serve-svc"): one["weight"] for one in backends}

    def _selected(self):
        services = {found["metadata"]["name"]: found for found in self._objects("services")}
        return {
            name: services[name]["spec"]["selector"]["ray.io/cluster"]
            for name in SERVICES
            if name in services
        }

    def _head(self, cluster):
        return self._world.dashboards.heads.get(host_of(cluster, self._namespace))

    def _serves(self, cluster):
        head = self._head(cluster)
        applications = head._served().values() if head is not None else ()
        return bool(applications) and all(app["status"] == "RUNNING" for app in applications)

    def _capacity(self, cluster):
        """Return what Serve on a cluster was told; one that has no head has nothing to tell."""
        head = self._head(cluster)
        return WHOLE if head is None or head.target_capacity is None else head.target_capacity


def sides_of(service):
    """Return the names of the active and of the pending cluster, those that there are."""
    status = service.get("status") or {}
    sides = [status.get(side) or {} for side in ("activeServiceStatus", "pendingServiceStatus")]
    return [side["rayClusterName"] for side in sides if side.get("rayClusterName")]


def _is_ending(service):
    """Whether a service goes, or is to have no clusters."""
    conditions = (service.get("status") or {}).get("conditions") or ()
    is_suspending = any(one["type"] == "Suspending" and one["status"] == "True" for one in conditions)
    return bool(service["metadata"].get("deletionTimestamp")) or is_suspending
