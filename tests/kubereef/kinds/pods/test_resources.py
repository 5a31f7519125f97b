"""What containers need together, and the quality of service of a Pod."""

import pytest

from kubereef.kinds.behaviours.pod_resources import aggregated, quality_of_service


def container(limits=None, requests=None, **more):
    sides = {"limits": limits, "requests": requests}
    return {"resources": {side: amounts for side, amounts in sides.items() if amounts}, **more}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "quality"),
    [
        pytest.param({"containers": [container()]}, "BestEffort", id="nothing is asked for"),
        pytest.param({"containers": [container(BOTH, BOTH)]}, "Guaranteed", id="limits are requests"),
        pytest.param(
            {"containers": [container(BOTH, {"cpu": "1", "memory": "1024Mi"})]},
            "Guaranteed",
            id="in other words",
        ),
        pytest.param(
            {"containers": [container({"cpu": "1"}, {"cpu": "1"})]}, "Burstable", id="only one resource"
        ),
        pytest.param(
            {"containers": [container(BOTH, BOTH), container()]}, "Burstable", id="only one container"
        ),
        pytest.param(
            {"containers": [container(None, {"cpu": "0"})]}, "BestEffort", id="nothing of something"
        ),
        pytest.param(
            {"containers": [container(None, {"nvidia.com/gpu": "1"})]}, "BestEffort", id="another resource"
        ),
        pytest.param(
            {"containers": [container(BOTH, BOTH)], "initContainers": [container()]},
            "Burstable",
            id="init containers count",
        ),
        pytest.param(
            {"containers": [container()], "resources": {"limits": BOTH, "requests": BOTH}},
            "Guaranteed",
            id="the Pod as a whole decides",
        ),
    ],
)
def test_quality_of_service(spec, quality):
    assert quality_of_service(spec) == quality


def test_init_containers_need_what_they_need_before_the_others_start():
    spec = {
        "containers": [container(requests={"cpu": "1"}), container(requests={"cpu": "2", "memory": "1Gi"})],
        "initContainers": [
            container(requests={"cpu": "500m"}, restartPolicy="Always"),
            container(requests={"cpu": "4"}),
        ],
    }
    # The sidecar runs beside the init container after it: 4.5, which is more than 1 + 2 + 0.5.
    assert {name: str(amount) for name, amount in aggregated(spec, "requests").items()} == {
        "cpu": "4500m",
        "memory": "1Gi",
    }
