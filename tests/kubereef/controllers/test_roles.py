"""Cluster roles that are made of others follow them."""

import pytest

from kubereef.controllers.roles import RoleAggregation
from kubereef.simulation import settle

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
TO_VIEW = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
WIDGETS = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(RoleAggregation)
    return simulated_cluster.client


async def rules_of(client, name):
    await settle()
    return (await client.get(f"{ROLES}/{name}"))["rules"]


def part(**changes):
    return {"metadata": {"name": "widgets", "labels": TO_VIEW}, "rules": [WIDGETS], **changes}


async def test_a_new_part_reaches_view_and_through_it_edit_and_admin(client):
    await client.create(ROLES, part())
    for name in ("view", "edit", "admin"):
        assert WIDGETS in await rules_of(client, name)


async def test_a_part_that_goes_takes_its_rules_along(client):
    before = await rules_of(client, "admin")
    await client.create(ROLES, part())
    assert await rules_of(client, "admin") != before
    await client.delete(f"{ROLES}/widgets")
    assert await rules_of(client, "admin") == before


async def test_a_part_that_loses_its_label_loses_its_place(client):
    await client.create(ROLES, part())
    await client.patch(f"{ROLES}/widgets", {"metadata": {"labels": {next(iter(TO_VIEW)): None}}})
    assert WIDGETS not in await rules_of(client, "view")


async def test_rules_written_into_a_gathering_role_do_not_stay(client):
    before = await rules_of(client, "view")
    await client.patch(f"{ROLES}/view", {"rules": [WIDGETS]})
    assert await rules_of(client, "view") == before


async def test_what_happened_while_the_controller_was_away_is_made_up_for(client, simulated_cluster):
    await simulated_cluster.stop_controllers()
    await client.create(ROLES, part())
    assert WIDGETS not in await rules_of(client, "view")
    await simulated_cluster.restart_controllers()
    assert WIDGETS in await rules_of(client, "view")


async def test_nothing_is_written_when_nothing_changes(client, simulated_cluster):
    await settle()
    before = simulated_cluster.store.revision
    await client.create(ROLES, {"metadata": {"name": "apart"}, "rules": [WIDGETS]})
    await settle()
    assert simulated_cluster.store.revision == before + 1
