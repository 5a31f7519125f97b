"""What a cluster has from its first moment."""

import pytest

from kubereef.cluster import Cluster
from kubereef.server.aggregation import aggregated_rules
from kubereef.server.bootstrap import Entrance
from kubereef.store.store import Store
from kubewire.sources import SeededEntropy

RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def names(client, url):
    return {item["metadata"]["name"] for item in (await client.get(url))["items"]}


async def test_the_first_namespaces_are_there(admin):
    assert await names(admin, "/api/v1/namespaces") == {
        "default",
        "kube-system",
        "kube-public",
        "kube-node-lease",
    }


async def test_the_roles_that_users_rely_on_are_there(admin):
    roles = await names(admin, f"{RBAC}/clusterroles")
    assert {"cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user"} <= roles
    assert {"system:public-info-viewer", "system:node", "system:kube-scheduler"} <= roles
    view = await admin.get(f"{RBAC}/clusterroles/view")
    assert view["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"


async def test_the_system_priority_classes_are_there(admin):
    items = (await admin.get("/apis/scheduling.k8s.io/v1/priorityclasses"))["items"]
    values = {item["metadata"]["name"]: item["value"] for item in items}
    assert values == {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}


async def may(admin, role, verb, resource, namespace="default"):
    """Tell whether a user with one of the default roles in a namespace may do something there."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"kind": "User", "name": role, "apiGroup": "rbac.authorization.k8s.io"}
    url = f"{RBAC}/namespaces/default/rolebindings"
    if role not in await names(admin, url):
        binding = {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}
        await admin.create(url, binding)
    group, _, resource = resource.rpartition(":")
    plural, _, part = resource.partition("/")
    asked = {"namespace": namespace, "verb": verb, "group": group, "resource": plural, "subresource": part}
    body = {"spec": {"user": role, "resourceAttributes": asked}}
    return (await admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", body))["status"][
        "allowed"
    ]


@pytest.mark.parametrize(
    ("verb", "resource", "who"),
    [
        ("list", "pods", {"view", "edit", "admin"}),
        ("get", "pods/log", {"view", "edit", "admin"}),
        ("list", "apps:deployments", {"view", "edit", "admin"}),
        ("get", "batch:jobs", {"view", "edit", "admin"}),
        ("get", "secrets", {"edit", "admin"}),
        ("create", "pods", {"edit", "admin"}),
        ("create", "pods/exec", {"edit", "admin"}),
        ("patch", "apps:deployments/scale", {"edit", "admin"}),
        ("update", "coordination.k8s.io:leases", {"edit", "admin"}),
        ("create", "rbac.authorization.k8s.io:rolebindings", {"admin"}),
        ("create", "authorization.k8s.io:localsubjectaccessreviews", {"admin"}),
        ("delete", "namespaces", set()),
        ("create", "nodes", set()),
        ("create", "resourcequotas", set()),
    ],
)
async def test_view_edit_and_admin_may_what_they_may_in_kubernetes(admin, verb, resource, who):
    allowed = {role for role in ("view", "edit", "admin") if await may(admin, role, verb, resource)}
    assert allowed == who
    assert not await may(admin, "admin", verb, resource, "kube-system")


async def test_the_api_server_has_a_service(admin):
    service = await admin.get("/api/v1/namespaces/default/services/kubernetes")
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    assert service["spec"]["ports"][0]["port"] == 443
    assert service["spec"]["ports"][0]["targetPort"] == 6443


@pytest.mark.parametrize(
    ("address", "endpoints"),
    [
        pytest.param("192.168.7.7", [["192.168.7.7"]], id="an address that others reach"),
        pytest.param("127.0.0.1", [], id="loopback, which no Pod reaches"),
        pytest.param("", [], id="none"),
    ],
)
async def test_its_endpoints_are_where_pods_can_reach_it(clock, address, endpoints):
    cluster = Cluster(Store(), clock=clock, entropy=SeededEntropy(1), service_cidr="10.7.0.0/24")
    await cluster.start(Entrance(address, 8443))
    client = cluster.client()
    service = await client.get("/api/v1/namespaces/default/services/kubernetes")
    assert service["spec"]["clusterIP"] == "10.7.0.1"
    url = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    found = await client.get(url)
    assert [one["addresses"] for one in found.get("endpoints") or []] == endpoints
    assert found["ports"][0]["port"] == 8443
    legacy = await client.get("/api/v1/namespaces/default/endpoints/kubernetes")
    assert bool(legacy.get("subsets")) == bool(endpoints)
    await cluster.stop()


@pytest.fixture
def restart(cluster, clock):
    async def again(entrance=None):
        other = Cluster(cluster.store, clock=clock, entropy=SeededEntropy(2))
        await other.start(entrance)
        return other

    return again


async def test_a_second_start_changes_nothing(cluster, restart):
    before = cluster.store.revision
    await restart()
    assert cluster.store.revision == before


async def test_a_second_start_elsewhere_moves_the_endpoints(restart, admin):
    await restart(Entrance(address="192.168.7.8", port=9443))
    url = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    assert (await admin.get(url))["endpoints"][0]["addresses"] == ["192.168.7.8"]
    service = await admin.get("/api/v1/namespaces/default/services/kubernetes")
    assert service["spec"]["ports"][0]["targetPort"] == 9443
    assert service["spec"]["clusterIP"] == "10.96.0.1"


async def test_what_users_added_to_a_default_role_stays_and_what_they_removed_comes_back(admin, restart):
    url = f"{RBAC}/clusterroles/system:basic-user"
    role = await admin.get(url)
    extra = {"apiGroups": [""], "resources": ["widgets"], "verbs": ["get"]}
    await admin.replace(url, {**role, "rules": [role["rules"][0], extra]})
    await restart()
    assert (await admin.get(url))["rules"] == [role["rules"][0], extra, role["rules"][1]]


async def test_a_default_role_that_does_not_want_updates_is_left_alone(admin, restart):
    url = f"{RBAC}/clusterroles/system:basic-user"
    role = await admin.get(url)
    role["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
    await admin.replace(url, {**role, "rules": role["rules"][:1]})
    await restart()
    assert (await admin.get(url))["rules"] == role["rules"][:1]


async def test_a_deleted_default_comes_back(admin, restart):
    await admin.delete(f"{RBAC}/clusterrolebindings/system:discovery")
    await restart()
    assert "system:discovery" in await names(admin, f"{RBAC}/clusterrolebindings")


def role(name, rules=(), labels=None, selectors=None):
    made = {"metadata": {"name": name, "labels": labels or {}}, "rules": [{"verbs": [one]} for one in rules]}
    if selectors is not None:
        made["aggregationRule"] = {"clusterRoleSelectors": selectors}
    return made


def test_gathered_rules_come_in_the_order_of_names_and_once():
    whole = role("whole", ["own"], selectors=[{"matchLabels": {"to": "whole"}}])
    parts = [
        role("b", ["get", "list"], {"to": "whole"}),
        role("a", ["watch", "get"], {"to": "whole"}),
        role("c", ["delete"], {"to": "other"}),
    ]
    gathered = aggregated_rules(whole, [whole, *parts])
    assert gathered is not None
    assert [one["verbs"] for one in gathered] == [["watch"], ["get"], ["list"]]


def test_a_role_that_gathers_nothing_is_left_alone():
    assert aggregated_rules(role("plain", ["get"]), []) is None
    assert aggregated_rules(role("all", selectors=[{"matchExpressions": [{"bad": 1}]}]), []) == []


def test_a_role_does_not_gather_itself():
    whole = role("whole", ["get"], {"to": "whole"}, [{"matchLabels": {"to": "whole"}}])
    assert aggregated_rules(whole, [whole]) == []
