"""Who owns what after ordinary writes."""

import pytest

from kubereef.simulation import SimulatedCluster
from tests.kubereef.apply.conftest import DEPLOYMENTS, MAPS, PODS, config_map, deployment

C = f"{MAPS}/c"
D = f"{DEPLOYMENTS}/d"


async def entries(reef, url):
    return (await reef.client.get(url))["metadata"].get("managedFields", [])


@pytest.mark.parametrize(
    ("query", "agent", "manager"),
    [
        pytest.param("?fieldManager=me", "kubectl/v1", "me", id="as the request says"),
        pytest.param(
            "", "kube-controller-manager/v1.36 (linux)", "kube-controller-manager", id="by its program"
        ),
        pytest.param("", "", "unknown", id="unknown"),
        pytest.param("", "a\tb/1", "ab", id="without what cannot be printed"),
        pytest.param("", "é" * 100, "é" * 64, id="cut to what fits"),
    ],
)
async def test_a_manager_is_named(reef, query, agent, manager):
    await reef.client.call("POST", MAPS + query, config_map(a="1"), {"user-agent": agent})
    assert list(await reef.owners(C)) == [manager]


async def test_a_creator_owns_its_fields_and_their_defaults_but_no_admission(reef):
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await reef.client.create(PODS, pod)
    spec = (await reef.owners(f"{PODS}/p"))["kubereef"]["f:spec"]
    assert "f:dnsPolicy" in spec
    assert "f:tolerations" not in spec
    assert set(spec["f:containers"]) == {'k:{"name":"c"}'}


async def test_a_write_that_changes_nothing_keeps_entries_and_version(reef):
    await reef.client.create(MAPS, config_map(a="1"))
    before = await reef.client.get(C)
    await reef.clock.sleep(60)
    await reef.client.patch(f"{C}?fieldManager=other", {"data": {"a": "1"}})
    assert await reef.client.get(C) == before


async def test_a_write_that_would_change_nothing_but_its_time_is_none(reef):
    # A name that is given stays, so this leaves the object as it is, whoever claims it.
    claim = {"metadata": {"generateName": "d-"}}
    await reef.client.create(MAPS, config_map(a="1"))
    await reef.client.patch(C, claim)
    before = await reef.client.get(C)
    await reef.clock.sleep(60)
    await reef.client.patch(C, claim)
    assert await reef.client.get(C) == before


async def test_a_later_write_of_the_same_manager_has_a_later_time(reef):
    await reef.client.create(MAPS, config_map(a="1"))
    (first,) = await entries(reef, C)
    await reef.clock.sleep(60)
    await reef.client.patch(C, {"data": {"a": "2"}})
    (second,) = await entries(reef, C)
    assert second["time"] > first["time"]
    assert second["fieldsV1"] == first["fieldsV1"]


@pytest.mark.parametrize(
    "forget", [pytest.param([{}], id="one empty entry"), pytest.param([], id="an empty list")]
)
async def test_ownership_can_be_forgotten_and_comes_back_with_the_next_apply(reef, forget):
    await reef.client.create(MAPS, config_map(a="1"))
    await reef.client.patch(C, {"metadata": {"managedFields": forget}})
    assert await entries(reef, C) == []
    await reef.client.patch(C, {"data": {"b": "1"}})
    assert await entries(reef, C) == []
    await reef.apply(C, config_map(c="1"))
    assert await reef.owners(C) == {
        "alice": {"f:data": {"f:c": {}}},
        "before-first-apply": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }


async def test_an_update_that_leaves_managed_fields_out_keeps_them(reef):
    await reef.apply(C, config_map(a="1"))
    await reef.client.replace(C, config_map(a="1", b="2"))
    assert list(await reef.owners(C)) == ["alice", "kubereef"]


async def test_managed_fields_may_be_written(reef):
    await reef.apply(C, config_map(a="1", b="1"))
    obj = await reef.client.get(C)
    obj["metadata"]["managedFields"][0]["fieldsV1"] = {"f:data": {"f:b": {}}}
    await reef.client.replace(C, obj)
    assert await reef.owners(C) == {"alice": {"f:data": {"f:b": {}}}}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"operation": "Guess"}, id="an unknown operation"),
        pytest.param({"fieldsV1": {"f:data": {"nonsense": {}}}}, id="no field path"),
        pytest.param({"apiVersion": ""}, id="no version"),
    ],
)
async def test_managed_fields_that_make_no_sense_are_not_taken_over(reef, bad):
    await reef.apply(C, config_map(a="1"))
    obj = await reef.client.get(C)
    obj["metadata"]["managedFields"][0].update(bad)
    await reef.client.replace(C, obj)
    assert await reef.owners(C) == {"alice": {"f:data": {"f:a": {}}}}


async def test_managed_fields_are_not_written_through_a_part(reef):
    await reef.client.create(DEPLOYMENTS, deployment())
    before = await reef.owners(D)
    await reef.client.patch(f"{D}/status", {"metadata": {"managedFields": [{}]}})
    assert await reef.owners(D) == before


async def test_a_status_has_entries_of_its_own(reef):
    await reef.client.create(DEPLOYMENTS, deployment())
    await reef.client.patch(f"{D}/status", {"status": {"replicas": 1}})
    found = [(entry.get("subresource"), list(entry["fieldsV1"])) for entry in await entries(reef, D)]
    assert found == [(None, ["f:spec"]), ("status", ["f:status"])]


async def test_writing_a_status_owns_no_labels_where_it_cannot_change_them(reef):
    await reef.client.create(DEPLOYMENTS, deployment())
    await reef.client.patch(f"{D}/status?fieldManager=ctl", {"metadata": {"labels": {"a": "b"}}})
    assert "ctl" not in await reef.owners(D)


async def test_scaling_takes_the_size_from_its_owner(reef):
    await reef.apply(D, deployment(replicas=1))
    await reef.client.patch(f"{D}/scale?fieldManager=hpa", {"spec": {"replicas": 3}})
    applied, scaled = await entries(reef, D)
    assert "f:replicas" not in applied["fieldsV1"]["f:spec"]
    assert scaled == {
        "manager": "hpa",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
        "subresource": "scale",
    }


async def test_scaling_to_the_present_size_changes_no_owner(reef):
    await reef.apply(D, deployment(replicas=1))
    before = await reef.client.get(D)
    await reef.client.patch(f"{D}/scale?fieldManager=hpa", {"spec": {"replicas": 1}})
    assert await reef.client.get(D) == before


async def test_a_scale_can_be_applied(reef):
    await reef.apply(D, deployment(replicas=1))
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d"},
        "spec": {"replicas": 4},
    }
    refused = await reef.answer(f"{D}/scale", scale, "hpa")
    assert refused.status == 409
    assert b'conflict with \\"alice\\": .spec.replicas' in refused.body
    assert (await reef.apply(f"{D}/scale", scale, "hpa", force="true"))["spec"] == {"replicas": 4}
    assert (await reef.owners(D))["hpa"] == {"f:spec": {"f:replicas": {}}}


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"metadata": None, "spec": {"replicas": 2}}, id="no metadata"),
        pytest.param({"spec": None}, id="no spec"),
        pytest.param({"spec": "big"}, id="no object"),
        pytest.param({"spec": {"replicas": "2"}}, id="no number"),
    ],
)
async def test_a_scale_that_makes_no_sense_breaks_nothing(reef, patch):
    await reef.apply(D, deployment(replicas=1))
    answer = await reef.client.send(
        "PATCH", f"{D}/scale", patch, {"content-type": "application/merge-patch+json"}
    )
    assert answer.status in (200, 400, 422)


async def test_a_cluster_that_does_not_track_owners_still_knows_appliers(simulated_cluster):
    client = simulated_cluster.client
    await client.create(MAPS, config_map(a="1"))
    assert "managedFields" not in (await client.get(C))["metadata"]
    headers = {"content-type": "application/apply-patch+yaml"}
    obj = await client.call("PATCH", f"{C}?fieldManager=alice", config_map(b="1"), headers)
    assert [entry["manager"] for entry in obj["metadata"]["managedFields"]] == ["alice", "before-first-apply"]


def test_a_simulation_tracks_owners_only_if_asked():
    assert not SimulatedCluster().server.around.tracks
    assert SimulatedCluster(tracks_owners=True).server.around.tracks
