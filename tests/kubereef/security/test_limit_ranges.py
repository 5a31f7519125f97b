"""Limit ranges: what they fill in, and what they refuse in which words."""

import pytest

from kubewire import errors

CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"
CLAIMS = f"{CORE}/persistentvolumeclaims"
ANNOTATION = "kubernetes.io/limit-ranger"


@pytest.fixture
async def limit(admin):
    await admin.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})

    async def make(*limits, name="l"):
        await admin.create(f"{CORE}/limitranges", {"metadata": {"name": name}, "spec": {"limits": limits}})

    return make


def container(name="c", requests=None, limits=None):
    resources = {
        field: found for field, found in (("requests", requests), ("limits", limits)) if found is not None
    }
    return {"name": name, "image": "x:1", "resources": resources}


def pod(*containers, name="p", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": containers or [container()], **spec}}


def claim(size):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": "v"}, "spec": spec}


async def test_containers_get_what_they_leave_out_and_the_pod_says_so(admin, limit):
    await limit(
        {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1", "memory": "1Gi"}}
    )
    wish = pod(
        container("a"), container("b", {"cpu": "500m"}), initContainers=[container("i", {}, {"cpu": "1"})]
    )
    made = await admin.create(PODS, wish)
    assert [one["resources"] for one in made["spec"]["containers"]] == [
        {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}},
        {"limits": {"cpu": "2"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
    ]
    # A limit is a request, too, before anybody looks at defaults.
    assert made["spec"]["initContainers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert made["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu, memory request for container a; cpu limit for container a; "
        "memory request for container b; cpu limit for container b; memory request for init container i"
    )
    assert made["status"]["qosClass"] == "Burstable"


async def test_a_pod_that_states_everything_is_left_alone(admin, limit):
    await limit({"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}})
    made = await admin.create(PODS, pod(container(requests={"cpu": "1"}, limits={"cpu": "1"})))
    assert ANNOTATION not in (made["metadata"].get("annotations") or {})


LEAST = {"type": "Container", "min": {"cpu": "100m"}}
MOST = {"type": "Container", "max": {"cpu": "1"}}
RATIO = {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}
OF_POD = {"type": "Pod", "min": {"cpu": "500m"}, "max": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("limits", "containers", "because"),
    [
        pytest.param(
            [LEAST],
            [container(requests={"cpu": "50m"})],
            "minimum cpu usage per Container is 100m, but request is 50m",
            id="too small a request",
        ),
        pytest.param(
            [MOST],
            [container(requests={"cpu": "1"}, limits={"cpu": "1500m"})],
            "maximum cpu usage per Container is 1, but limit is 1500m",
            id="too large a limit",
        ),
        pytest.param(
            [RATIO],
            [container(requests={"cpu": "100m"}, limits={"cpu": "350m"})],
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.500000",
            id="too wide a ratio",
        ),
        pytest.param(
            [RATIO],
            [container(requests={"cpu": "100m"})],
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            id="a ratio to no limit",
        ),
        pytest.param(
            [RATIO],
            [container()],
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="a ratio to no request",
        ),
        pytest.param(
            [OF_POD],
            [
                container("a", {"cpu": "700m"}, {"cpu": "700m"}),
                container("b", {"cpu": "600m"}, {"cpu": "600m"}),
            ],
            "maximum cpu usage per Pod is 1, but limit is 1300m",
            id="too much together",
        ),
        pytest.param(
            [OF_POD],
            [
                container("a", {"cpu": "100m"}, {"cpu": "200m"}),
                container("b", {"cpu": "200m"}, {"cpu": "200m"}),
            ],
            "minimum cpu usage per Pod is 500m, but request is 300m",
            id="too little together",
        ),
        pytest.param(
            [OF_POD],
            [container()],
            "[minimum cpu usage per Pod is 500m.  No request is specified,"
            " maximum cpu usage per Pod is 1.  No limit is specified]",
            id="nothing stated for the Pod",
        ),
        pytest.param(
            [RATIO],
            [container("a"), container("b")],
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="the same twice is said once",
        ),
    ],
)
async def test_a_pod_outside_of_its_limits_is_refused(admin, limit, limits, containers, because):
    await limit(*limits)
    with pytest.raises(errors.Forbidden) as refused:
        await admin.create(PODS, pod(*containers))
    assert refused.value.message == f'pods "p" is forbidden: {because}'


async def test_all_limit_ranges_of_the_namespace_hold_and_no_other_ones(admin, limit):
    await limit(MOST, name="a")
    await limit({"type": "Pod", "max": {"cpu": "1"}}, name="b")
    await admin.create("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    elsewhere = "/api/v1/namespaces/elsewhere"
    await admin.create(f"{elsewhere}/serviceaccounts", {"metadata": {"name": "default"}})
    two = [container("a", limits={"cpu": "1"}), container("b", limits={"cpu": "1"})]
    with pytest.raises(errors.Forbidden, match="per Pod is 1, but limit is 2"):
        await admin.create(PODS, pod(*two))
    assert await admin.create(f"{elsewhere}/pods", pod(*two))


async def test_a_resize_is_held_to_limits_and_another_update_is_not(admin, limit):
    await admin.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    await limit(MOST)
    small = container(requests={"cpu": "1"}, limits={"cpu": "1"})
    await admin.create(PODS, pod(small, nodeName="n"))
    larger = {
        "spec": {
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}}]
        }
    }
    with pytest.raises(errors.Forbidden, match="maximum cpu usage per Container is 1, but limit is 2"):
        await admin.patch(f"{PODS}/p/resize", larger, "strategic")
    await admin.patch(f"{CORE}/limitranges/l", {"spec": {"limits": [{"type": "Pod", "min": {"cpu": "3"}}]}})
    assert await admin.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})


@pytest.mark.parametrize(
    ("size", "because"),
    [
        pytest.param(
            "2Gi",
            "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi",
            id="too large",
        ),
        pytest.param(
            "1", "minimum storage usage per PersistentVolumeClaim is 1Ki, but request is 1", id="too small"
        ),
    ],
)
async def test_a_claim_outside_of_its_limits_is_refused(admin, limit, size, because):
    await limit({"type": "PersistentVolumeClaim", "min": {"storage": "1Ki"}, "max": {"storage": "1Gi"}})
    with pytest.raises(errors.Forbidden) as refused:
        await admin.create(CLAIMS, claim(size))
    assert refused.value.message == f'persistentvolumeclaims "v" is forbidden: {because}'
    assert await admin.create(CLAIMS, claim("500Mi"))
