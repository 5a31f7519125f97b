"""Who besides the operator may do what: people with the roles for them, and the holder of the Lease."""

import pytest

from eagleray.kube.client import Client
from eagleray.kube.resources import LEASES
from eagleray.local.inprocess import transport_to
from eagleray.rayapi.kinds import KINDS
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.world import world_of
from tests.packaging.account import ACCOUNT, NAMESPACE, documents, install_roles, operate

pytestmark = pytest.mark.usefixtures("virtual_time")

READ = {"get", "list", "watch"}
WRITE = {"create", "update", "patch", "delete"}
EVERYTHING = READ | WRITE | {"deletecollection"}
ALLOWED = {"viewer": READ, "editor": READ | WRITE, "admin": EVERYTHING}


async def bind(world, role):
    """Give a role to a user of the same name, in one namespace; returns the user."""
    place = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
    await world.api.create(
        place,
        {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role}],
        },
    )
    return role


async def may(world, user, verb, resource, part=""):
    asked = {
        "verb": verb,
        "group": "ray.io",
        "resource": resource,
        "subresource": part,
        "namespace": NAMESPACE,
    }
    review = {"spec": {"user": user, "resourceAttributes": asked}}
    answer = await world.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return answer["status"]["allowed"]


async def allowed(world, user, resource):
    return {verb for verb in EVERYTHING if await may(world, user, verb, resource)}


@pytest.mark.case("OP-106")
async def test_viewers_read_editors_also_write_and_admins_also_delete_many_at_once():
    async with world_of(operator=False) as world:
        await install_roles(world.api)
        for kind in KINDS:
            for name, verbs in ALLOWED.items():
                user = await bind(world, f"{kind.name.lower()}-{name}-role")
                assert await allowed(world, user, kind.plural) == verbs
                assert await may(world, user, "get", kind.plural, "status")
                assert not await may(world, user, "patch", kind.plural, "status")
                others = [other.plural for other in KINDS if other is not kind]
                assert not any([await may(world, user, "get", other) for other in others])


@pytest.mark.case("OP-106")
async def test_who_may_view_edit_or_administer_a_namespace_may_do_so_with_the_kinds_of_ray():
    async with world_of(operator=False) as world:
        await install_roles(world.api)
        await world.pass_time(5)
        standard = {"view": "viewer", "edit": "editor", "admin": "admin"}
        for role, name in standard.items():
            user = await bind(world, role)
            for kind in KINDS:
                assert await allowed(world, user, kind.plural) == ALLOWED[name]


@pytest.mark.case("OP-105")
async def test_the_lease_is_held_in_the_namespace_of_the_operator_and_nowhere_else():
    async with world_of(operator=False) as world:
        await install_roles(world.api)
        await world.api.create("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        client = Client(transport_to(world.simulated.server, ACCOUNT), world.clock, SeededEntropy(1))
        made = await client.create(
            LEASES, {"metadata": {"name": "other", "namespace": NAMESPACE}, "spec": {}}
        )
        with pytest.raises(errors.Forbidden):
            await client.replace(LEASES, made)
        with pytest.raises(errors.Forbidden):
            await client.list(LEASES)
        for namespace in ("elsewhere", "kube-system"):
            with pytest.raises(errors.Forbidden):
                await client.create(LEASES, {"metadata": {"name": "any", "namespace": namespace}, "spec": {}})


@pytest.mark.case("OP-105")
async def test_two_replicas_with_the_role_hand_the_lease_over():
    flags = ("--enable-leader-election=true", f"--leader-election-namespace={NAMESPACE}")
    async with world_of(operator=False, flags=flags) as world:
        account = await operate(world)
        await world.pass_time(5)
        first = (await world.get("Lease", "ray-operator-leader"))["spec"]["holderIdentity"]
        await world.kill_operator()
        await world.start_operator()
        await world.pass_time(30)
        second = (await world.get("Lease", "ray-operator-leader"))["spec"]["holderIdentity"]
        assert first != second
        assert account.refused == []


def test_the_role_of_the_leader_is_about_leases_alone():
    (role,) = (one for one in documents("rbac") if one["kind"] == "Role")
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {"leases"}
