"""Pods through the server: what is worked out on creation, what an update may change, what selects them."""

import time

import pytest

from kubewire import errors
from tests.kubereef.kinds.pods.manifests import PODS, changed, pod, with_container


async def test_a_gated_pod_says_what_it_waits_for(client):
    made = await client.create(PODS, pod(schedulingGates=[{"name": "g"}]))
    (condition,) = made["status"]["conditions"]
    assert condition["reason"] == "SchedulingGated"
    assert condition["lastTransitionTime"] == made["metadata"]["creationTimestamp"]


async def test_the_labels_of_a_pod_become_part_of_the_selectors_that_ask_for_them(client):
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {},
        "matchLabelKeys": ["hash", "absent"],
    }
    obj = pod(topologySpreadConstraints=[spread])
    obj["metadata"]["labels"] = {"hash": "1"}
    made = await client.create(PODS, obj)
    assert made["spec"]["topologySpreadConstraints"][0]["labelSelector"] == {
        "matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}]
    }


async def test_an_apparmor_annotation_becomes_the_field_and_is_warned_about(client):
    obj = pod()
    key = "container.apparmor.security.beta.kubernetes.io/c"
    obj["metadata"]["annotations"] = {key: "unconfined"}
    response = await client.send("POST", PODS, obj)
    assert b'"appArmorProfile":{"type":"Unconfined"}' in response.body
    assert any(key in text for name, text in response.headers if name == "Warning")


async def test_what_may_not_change_is_shown_line_by_line(client):
    made = await client.create(PODS, pod())
    with pytest.raises(errors.Invalid) as refused:
        await client.replace(f"{PODS}/p", changed(made, "spec", "containers", 0, "command", to=["<new>"]))
    (cause,) = refused.value.causes
    assert cause.field == "spec"
    assert cause.message.endswith(
        "(allow it to be set to 1 if it was previously negative)\n"
        "@@ -5,7 +5,9 @@\n"
        "   {\n"
        '    "Name": "c",\n'
        '    "Image": "x:1",\n'
        '-   "Command": null,\n'
        '+   "Command": [\n'
        '+    "\\u003cnew\\u003e"\n'
        "+   ],\n"
        '    "Args": null,\n'
        '    "WorkingDir": "",\n'
        '    "Ports": null,\n'
    )


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("spec.nodeName=n", ["b"]),
        ("spec.nodeName=", ["a"]),
        ("spec.hostNetwork=true", ["b"]),
        ("spec.hostNetwork=false", ["a"]),
        ("spec.restartPolicy=Never", ["a"]),
        ("spec.schedulerName=mine", ["a"]),
        ("spec.serviceAccountName=robot", ["b"]),
        ("status.phase=Running", ["b"]),
        ("status.podIP=10.0.0.1", ["b"]),
        ("status.nominatedNodeName=m", ["a"]),
    ],
)
async def test_pods_are_selected_by_their_fields(client, selector, found):
    await client.create(PODS, pod("a", restartPolicy="Never", schedulerName="mine"))
    await client.create(PODS, pod("b", nodeName="n", hostNetwork=True, serviceAccountName="robot"))
    await client.patch(f"{PODS}/a/status", {"status": {"nominatedNodeName": "m"}})
    await client.patch(f"{PODS}/b/status", {"status": {"phase": "Running", "podIP": "10.0.0.1"}})
    listed = await client.get(f"{PODS}?fieldSelector={selector.replace('=', '%3D')}")
    assert [item["metadata"]["name"] for item in listed["items"]] == found


MANY = 20_000


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(with_container(ports=[{"containerPort": 80} for _ in range(MANY)]), id="ports"),
        pytest.param(
            with_container(
                volumeMounts=[{"name": "v", "mountPath": f"/{number}"} for number in range(MANY)],
                volumeDevices=[{"name": "w", "devicePath": f"/{number}"} for number in range(MANY)],
            ),
            id="mounts and devices",
        ),
        pytest.param(
            pod(
                topologySpreadConstraints=[
                    {"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": "DoNotSchedule"}
                    for number in range(MANY)
                ]
            ),
            id="spread constraints",
        ),
        pytest.param(
            pod(
                volumes=[
                    {
                        "name": "v",
                        "configMap": {
                            "name": "m",
                            "items": [{"key": "k", "path": f"p{number}"} for number in range(MANY)],
                        },
                    }
                ]
            ),
            id="files of a volume",
        ),
        pytest.param(
            with_container(resources={"claims": [{"name": f"c{number}"} for number in range(MANY)]}),
            id="claims",
        ),
        pytest.param(with_container(image="a-" * 1_000_000), id="a name of an image without an end"),
        pytest.param(
            pod(
                volumes=[
                    {"name": "v", "iscsi": {"targetPortal": "p", "iqn": "iqn.2001-01.a:" * 100_000, "lun": 0}}
                ]
            ),
            id="a name of a disk without an end",
        ),
    ],
)
async def test_a_huge_pod_is_answered_soon(client, obj):
    began = time.process_time()
    response = await client.send("POST", PODS, obj)
    assert response.status in (201, 422)
    assert time.process_time() - began < 5


async def test_huge_pods_are_not_compared_line_by_line(client):
    made = await client.create(PODS, with_container(args=[str(number) for number in range(MANY)]))
    with pytest.raises(errors.Invalid, match="the specs are too long to be compared here"):
        await client.replace(f"{PODS}/p", changed(made, "spec", "containers", 0, "args", to=[]))


async def test_tolerations_without_number_are_compared_soon(client):
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(MANY)]
    made = await client.create(PODS, pod(tolerations=tolerations))
    began = time.process_time()
    await client.replace(f"{PODS}/p", changed(made, "spec", "tolerations", to=list(reversed(tolerations))))
    assert time.process_time() - began < 5
