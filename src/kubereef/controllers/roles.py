"""Keeps up to date the cluster roles that are made of others, such as admin, edit and view."""

from kubereef.controllers.caches import Key
from kubereef.controllers.resources import Resource
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object
from kubereef.server.aggregation import aggregated_rules

CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)


class RoleAggregation(Controller):
    """Writes the gathered rules into the roles that gather them."""

    name = "clusterrole-aggregation-controller"
    workers = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._roles = world.caches.of(CLUSTER_ROLES)
        self.watch(CLUSTER_ROLES, self._affected)

    async def sync(self, key: Key) -> float | None:
        role = self._roles.get(key)
        if role is None:
            return None
        rules = aggregated_rules(role, list(self._roles))
        if rules is not None and rules != (role.get("rules") or []):
            await self.hands.replace(CLUSTER_ROLES, {**role, "rules": rules})
        return None

    def _affected(self, _changed: Object) -> list[Key]:
        """Return all roles that gather others: a changed label may add to one and take from another."""
        return [Key.of(role) for role in self._roles if role.get("aggregationRule")]
