"""How many Pods a gang has and what it asks for, whichever scheduler wants to know."""

import pytest

from eagleray.manifests.rayjob import RayJob
from eagleray.schedulers.gangs import NOBODY, gang_of, submitter_demand
from tests.eagleray.manifests.clusters import cluster
from tests.eagleray.schedulers.standins import asking
from tests.eagleray.world import rayjob

HEAD = asking(cpu="1", memory="1Gi")


def gang(*groups, at_least=False):
    workers = [{"groupName": f"g{number}", **group} for number, group in enumerate(groups)]
    return gang_of(cluster(head=HEAD, workers=workers), at_least=at_least)


@pytest.mark.case("OP-136")
@pytest.mark.parametrize(
    ("group", "members", "cpu"),
    [
        pytest.param({"replicas": 3}, 4, "4", id="what a group asks for"),
        pytest.param({"replicas": 9, "maxReplicas": 2}, 3, "3", id="but no more than its most"),
        pytest.param({"replicas": 0, "minReplicas": 2}, 3, "3", id="and no less than its least"),
        pytest.param(
            {"replicas": None, "minReplicas": 2}, 3, "3", id="which is also what an unset number means"
        ),
        pytest.param({"replicas": 2, "numOfHosts": 4}, 9, "9", id="times the hosts of a replica"),
        pytest.param({"replicas": 3, "suspend": True}, 1, "1", id="and nothing of a group that is suspended"),
    ],
)
def test_a_gang_is_the_head_and_the_wanted_workers(group, members, cpu):
    found = gang({**group, **asking(cpu="1")})
    assert (found.members, str(found.demand["cpu"])) == (members, cpu)


@pytest.mark.parametrize(
    ("group", "members", "cpu"),
    [
        pytest.param({"replicas": 5, "minReplicas": 2}, 3, "3", id="replicas do not count"),
        pytest.param({"minReplicas": 2, "numOfHosts": 3}, 7, "7", id="hosts do"),
        pytest.param({"minReplicas": 2, "suspend": True}, 1, "1", id="a suspended group does not"),
    ],
)
def test_under_autoscaling_only_the_least_number_of_workers_counts(group, members, cpu):
    found = gang({**group, **asking(cpu="1")}, at_least=True)
    assert (found.members, str(found.demand["cpu"])) == (members, cpu)


@pytest.mark.case("OP-136")
def test_a_pod_asks_for_the_requests_of_its_containers_or_else_their_limits():
    containers = [
        {"name": "ray", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "2", "memory": "1Gi"}}},
        {"name": "beside", "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "512Mi"}}},
    ]
    first = [{"name": "init", "resources": {"requests": {"cpu": "64"}}}]
    found = gang_of(cluster(head={"pod": {"containers": containers, "initContainers": first}}, workers=[]))
    assert found.written() == {
        "minMember": 1,
        "minResources": {"cpu": "500m", "memory": "1536Mi", "nvidia.com/gpu": "1"},
    }


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        pytest.param({"minMember": 2, "minResources": {"cpu": "2000m", "memory": "1Gi"}}, {}, id="nothing"),
        pytest.param(
            {"minMember": 3, "minResources": {"cpu": "2", "memory": "1Gi"}}, {"minMember": 2}, id="members"
        ),
        pytest.param(
            {"minMember": 2, "minResources": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}},
            {"minResources": {"nvidia.com/gpu": None}},
            id="a resource that nobody asks for any more",
        ),
        pytest.param(
            {}, {"minMember": 2, "minResources": {"cpu": "2", "memory": "1Gi"}}, id="all of it at first"
        ),
    ],
)
def test_a_pod_group_is_changed_only_where_it_says_something_else(spec, change):
    assert gang({"replicas": 1, **asking(cpu="1")}).changes({"queue": "q", **spec}) == change


def test_a_gang_of_nobody_asks_for_nothing():
    spec = {"minMember": 2, "minResources": {"cpu": "2"}}
    assert NOBODY.changes(spec) == {"minMember": 0, "minResources": None}
    assert NOBODY.changes({"minMember": 0}) == {}


@pytest.mark.parametrize(
    ("job", "cpu"),
    [
        pytest.param({}, "500m", id="by default"),
        pytest.param({"submissionMode": "SidecarMode"}, "500m", id="beside Ray"),
        pytest.param({"submissionMode": "HTTPMode"}, None, id="none where the operator submits"),
        pytest.param({"submissionMode": "InteractiveMode"}, None, id="none where a user does"),
        pytest.param(
            {"submitterPodTemplate": {"spec": {"containers": [asking(cpu="3")["container"]]}}},
            "3",
            id="as the user describes it",
        ),
    ],
)
def test_a_submitter_asks_for(job, cpu):
    demand = submitter_demand(RayJob(rayjob(**job)))
    assert (str(demand["cpu"]) if demand else None) == cpu
