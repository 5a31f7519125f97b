"""Which places of a cluster can be opened from outside."""

import pytest

from eagleray.local.doors import Door, doors_of
from eagleray.local.story import Picture
from tests.eagleray.local.test_story import HEAD, WORKER, meta, pod, service


def head(*, ports=(), **more):
    found = pod("h", HEAD, ready=True, podIP="10.244.0.5", **more)
    found["spec"]["containers"][0]["ports"] = list(ports)
    return found


def front(name="s-serve-svc", address="10.96.0.9", port=8000):
    spec = {"clusterIP": address, "ports": [{"name": "serve", "port": port}]}
    return {"metadata": meta(name), "spec": spec}


DASHBOARD = Door("default/c", "dashboard of RayCluster c", "10.244.0.5", 8265)
SERVE = Door("default/s serve", "RayService s", "10.96.0.9", 8000)


@pytest.mark.parametrize(
    ("picture", "want"),
    [
        pytest.param(Picture(pods=[head()]), [DASHBOARD], id="the dashboard of a head"),
        pytest.param(
            Picture(pods=[head(ports=[{"name": "dashboard", "containerPort": 9000}])]),
            [DASHBOARD._replace(port=9000)],
            id="at another port",
        ),
        pytest.param(Picture(pods=[pod("h", HEAD, podIP="10.244.0.5")]), [], id="a head that is not ready"),
        pytest.param(
            Picture(pods=[pod("w", WORKER, ready=True, podIP="10.244.0.6")]), [], id="workers have none"
        ),
        pytest.param(
            Picture(services=[service()], kube_services=[front()]), [SERVE], id="a service that is ready"
        ),
        pytest.param(
            Picture(services=[service()], kube_services=[front("c-serve-svc", port=8100)]),
            [SERVE._replace(port=8100)],
            id="the front of the active cluster, where each has its own",
        ),
        pytest.param(
            Picture(services=[service(ready=False)], kube_services=[front()]),
            [],
            id="a service that is not ready",
        ),
        pytest.param(
            Picture(services=[service()], kube_services=[front(address="None")]),
            [],
            id="a front without an address",
        ),
        pytest.param(
            Picture(services=[service()], kube_services=[front("other")]), [], id="somebody else's Service"
        ),
    ],
)
def test_what_can_be_opened(picture, want):
    assert list(doors_of(picture)) == want
