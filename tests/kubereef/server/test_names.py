"""Whose name a new object gets."""

import pytest

from kubewire import errors

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_name_that_a_client_chose_is_never_replaced_by_a_generated_one(simulated_cluster):
    client = simulated_cluster.client
    named = {"metadata": {"name": "c-head-abcde", "generateName": "c-head-"}}
    await client.create(CONFIG_MAPS, named)
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIG_MAPS, named)
    found = (await client.get(CONFIG_MAPS))["items"]
    assert [obj["metadata"]["name"] for obj in found if "generateName" in obj["metadata"]] == ["c-head-abcde"]
