"""kubectl against Kubereef over HTTPS: what people type all day."""

import json

import pytest

from tests.reef.kubelet import make_ready

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "one"}},
    "spec": {"containers": [{"name": "c", "image": "img:1"}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]},
        },
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.sea.example"},
    "spec": {
        "group": "sea.example",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "shortNames": ["bt"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.crew", "statusReplicasPath": ".status.crew"},
                },
                "additionalPrinterColumns": [{"name": "Crew", "type": "integer", "jsonPath": ".spec.crew"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "description": "What the boat should be.",
                                "properties": {
                                    "crew": {
                                        "type": "integer",
                                        "default": 2,
                                        "maximum": 9,
                                        "description": "How many sail it.",
                                    }
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
BOAT = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "b"}, "spec": {}}


def rows(table):
    return [line.split() for line in table.splitlines() if line.strip()]


def test_get_shows_tables_names_and_parts(kubectl):
    kubectl("create", "-f", "-", given=POD)
    assert rows(kubectl("get", "pods"))[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert rows(kubectl("get", "pods"))[1][:4] == ["p", "0/1", "Pending", "0"]
    assert "NOMINATED NODE" in kubectl("get", "pods", "-o", "wide")
    assert kubectl("get", "pods", "-A", "-l", "app=one", "-o", "name") == "pod/p\n"
    assert kubectl("get", "pods", "--field-selector", "status.phase=Pending", "-o", "name") == "pod/p\n"
    assert kubectl("get", "pod", "p", "-o", "jsonpath={.spec.containers[0].image}") == "img:1"
    assert "not found" in kubectl("get", "pod", "nobody", code=1)
    assert "the server doesn't have a resource type" in kubectl("get", "submarines", code=1)


def test_get_pages_through_long_lists(kubectl):
    for number in range(7):
        kubectl("create", "-f", "-", given={**CONFIG, "metadata": {"name": f"c{number}"}})
    names = kubectl("get", "cm", "--chunk-size=3", "-o", "name").split()
    assert set(names) >= {f"configmap/c{number}" for number in range(7)}


def test_describe_tells_about_a_pod_and_its_events(kubectl):
    kubectl("create", "-f", "-", given=POD)
    uid = kubectl.read("pod", "p")["metadata"]["uid"]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "p.1"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": kubectl.namespace, "uid": uid},
        "reason": "Sunk",
        "message": "the ship went down",
        "type": "Warning",
    }
    kubectl("create", "-f", "-", given=event)
    told = kubectl("describe", "pod", "p")
    assert ["Image:", "img:1"] in rows(told)
    assert "the ship went down" in told


@pytest.mark.parametrize(
    ("path", "told"),
    [
        pytest.param("pods", "spec	<PodSpec>", id="a kind"),
        pytest.param("pod.spec.containers.resources", "limits	<map[string]", id="a field deep inside"),
        pytest.param(
            "deployments.spec.strategy", "rollingUpdate	<RollingUpdateDeployment>", id="another group"
        ),
        pytest.param("jobs.spec", "backoffLimit	<integer>", id="a number"),
    ],
)
def test_explain_knows_the_fields(kubectl, path, told):
    assert told in kubectl("explain", path)


def test_explain_refuses_a_field_that_is_none(kubectl):
    assert 'field "sails" does not exist' in kubectl("explain", "pods.sails", code=1)


def test_apply_creates_changes_and_removes_fields(kubectl):
    assert kubectl("apply", "-f", "-", given=CONFIG) == "configmap/conf created\n"
    assert kubectl("apply", "-f", "-", given=CONFIG) == "configmap/conf unchanged\n"
    # Somebody else's field stays; one that the manifest no longer has goes.
    kubectl("patch", "cm", "conf", "-p", '{"data":{"other":"x"}}')
    assert kubectl("apply", "-f", "-", given={**CONFIG, "data": {"a": "3"}}) == "configmap/conf configured\n"
    assert kubectl.read("cm", "conf")["data"] == {"a": "3", "other": "x"}


def test_a_list_is_applied_item_by_item(kubectl):
    second = {**CONFIG, "metadata": {"name": "second"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [CONFIG, second]}
    assert kubectl("apply", "-f", "-", given=listed) == "configmap/conf created\nconfigmap/second created\n"


def test_apply_refuses_a_misspelled_field(kubectl):
    assert 'unknown field "dota"' in kubectl("apply", "-f", "-", given={**CONFIG, "dota": {}}, code=1)


def test_diff_shows_what_apply_would_change(kubectl):
    kubectl("apply", "-f", "-", given=CONFIG)
    assert kubectl("diff", "-f", "-", given=CONFIG) == ""
    told = kubectl("diff", "-f", "-", given={**CONFIG, "data": {"a": "9", "b": "2"}}, code=1)
    assert '-  a: "1"' in told
    assert '+  a: "9"' in told
    assert kubectl.read("cm", "conf")["data"]["a"] == "1"


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param(
            "strategic", {"spec": {"containers": [{"name": "c", "image": "img:2"}]}}, id="strategic"
        ),
        pytest.param(
            "json", [{"op": "replace", "path": "/spec/containers/0/image", "value": "img:2"}], id="JSON"
        ),
    ],
)
def test_a_patch_changes_an_image_and_nothing_else(kubectl, kind, patch):
    kubectl("create", "-f", "-", given=POD)
    before = kubectl.read("pod", "p")["spec"]
    kubectl("patch", "pod", "p", "--type", kind, "-p", json.dumps(patch))
    before["containers"][0]["image"] = "img:2"
    assert kubectl.read("pod", "p")["spec"] == before


def test_a_merge_patch_sets_and_removes(kubectl):
    kubectl("create", "-f", "-", given=CONFIG)
    kubectl("patch", "cm", "conf", "--type", "merge", "-p", '{"data":{"a":null,"c":"3"}}')
    assert kubectl.read("cm", "conf")["data"] == {"b": "2", "c": "3"}


def test_a_refused_patch_says_why(kubectl):
    kubectl("create", "-f", "-", given=POD)
    told = kubectl("patch", "pod", "p", "-p", '{"spec":{"nodeName":"elsewhere"}}', code=1)
    assert "pod updates may not change fields other than" in told


def test_replace_of_an_old_version_is_a_conflict(kubectl):
    kubectl("create", "-f", "-", given=CONFIG)
    old = kubectl.read("cm", "conf")
    kubectl("label", "cm", "conf", "x=y")
    assert "the object has been modified" in kubectl("replace", "-f", "-", given=old, code=1)


def test_label_and_annotate_set_change_and_remove(kubectl):
    kubectl("create", "-f", "-", given=CONFIG)
    kubectl("label", "cm", "conf", "tier=front")
    assert "already has a value" in kubectl("label", "cm", "conf", "tier=back", code=1)
    kubectl("label", "cm", "conf", "tier=back", "--overwrite")
    kubectl("annotate", "cm", "conf", "note=a text")
    found = kubectl.read("cm", "conf")["metadata"]
    assert found["labels"] == {"tier": "back"}
    assert found["annotations"] == {"note": "a text"}
    kubectl("label", "cm", "conf", "tier-")
    assert "labels" not in kubectl.read("cm", "conf")["metadata"]


def test_wait_ends_when_a_condition_comes_and_when_an_object_goes(kubectl):
    kubectl("create", "-f", "-", given=POD)
    assert "timed out" in kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=200ms", code=1)
    waiting = kubectl.start("wait", "--for=condition=Ready", "pod/p", "--timeout=20s")
    make_ready(kubectl, "app=one", 1)
    assert waiting.communicate(timeout=20)[0] == "pod/p condition met\n"
    gone = kubectl.start("wait", "--for=delete", "pod/p", "--timeout=20s")
    kubectl("delete", "pod", "p", "--force")
    gone.communicate(timeout=20)
    assert gone.returncode == 0


def test_delete_waits_for_finalizers(kubectl):
    held = {**CONFIG, "metadata": {"name": "held", "finalizers": ["sea.example/anchor"]}}
    kubectl("create", "-f", "-", given=held)
    deleting = kubectl.start("delete", "cm", "held", "--wait")
    kubectl("wait", "cm/held", "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=10s")
    assert deleting.poll() is None
    kubectl("patch", "cm", "held", "-p", '{"metadata":{"finalizers":null}}')
    assert deleting.communicate(timeout=20)[0].startswith('configmap "held" deleted')
    assert deleting.returncode == 0


def test_a_namespace_is_deleted_with_all_that_is_in_it(kubectl):
    kubectl("create", "namespace", "short-lived")
    kubectl("create", "configmap", "c", "-n", "short-lived")
    kubectl("delete", "namespace", "short-lived", "--wait", "--timeout=20s")
    assert "not found" in kubectl("get", "namespace", "short-lived", code=1)


def test_can_i_follows_the_roles(kubectl):
    robot = f"--as=system:serviceaccount:{kubectl.namespace}:robot"
    kubectl("create", "serviceaccount", "robot")
    assert kubectl("auth", "can-i", "list", "pods") == "yes\n"
    assert "no" in kubectl("auth", "can-i", "list", "pods", robot, code=1)
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot")
    assert kubectl("auth", "can-i", "list", "pods", robot) == "yes\n"
    assert "no" in kubectl("auth", "can-i", "delete", "pods", robot, code=1)
    assert "is forbidden" in kubectl("get", "secrets", robot, code=1)


def events(stream):
    """Yield type and data of the events that `get --watch` prints, until it ends."""
    decoder, text = json.JSONDecoder(), ""
    for line in stream:
        text = (text + line).lstrip()
        try:
            event, end = decoder.raw_decode(text)
        except ValueError:
            continue  # only a part of it has come yet
        text = text[end:]
        yield event["type"], event["object"]["data"]["a"]


def test_get_with_watch_shows_changes_as_they_come(kubectl):
    kubectl("create", "-f", "-", given=CONFIG)
    watching = kubectl.start(
        *("get", "cm", "conf", "--watch", "--output-watch-events", "-o", "json", "--request-timeout=20s")
    )
    seen = events(watching.stdout)
    assert next(seen) == ("ADDED", "1")
    kubectl("patch", "cm", "conf", "-p", '{"data":{"a":"5"}}')
    assert next(seen) == ("MODIFIED", "5")
    kubectl("delete", "cm", "conf")
    assert next(seen) == ("DELETED", "5")
    watching.kill()
    watching.communicate()


def test_a_deployment_rolls_out_scales_and_rolls_back(kubectl):
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    make_ready(kubectl, "app=web", 2)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    kubectl("scale", "deployment", "web", "--replicas=3")
    make_ready(kubectl, "app=web", 3)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert rows(kubectl("get", "deployment", "web"))[1][1:4] == ["3/3", "3", "3"]
    kubectl("set", "image", "deployment/web", "c=img:2")
    assert (
        "waiting for deployment"
        in kubectl("rollout", "status", "deployment/web", "--timeout=500ms", code=1).lower()
    )
    assert rows(kubectl("rollout", "history", "deployment/web"))[-1][0] == "2"
    kubectl("rollout", "undo", "deployment/web")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert kubectl.read("deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "img:1"


def test_a_custom_resource_is_as_good_as_a_built_in_one(kubectl):
    kubectl("apply", "-f", "-", given=DEFINITION)
    kubectl("wait", "--for=condition=Established", "crd/boats.sea.example", "--timeout=10s")
    kubectl("apply", "-f", "-", given=BOAT)
    assert rows(kubectl("get", "bt"))[:2] == [["NAME", "CREW"], ["b", "2"]]
    assert "How many sail it." in kubectl("explain", "boats.spec.crew")
    kubectl("scale", "boat", "b", "--replicas=5")
    assert kubectl.read("boat", "b")["spec"] == {"crew": 5}
    told = kubectl("patch", "boat", "b", "--type=merge", "-p", '{"spec":{"crew":10}}', code=1)
    assert "spec.crew in body should be less than or equal to 9" in told
    kubectl("delete", "crd", "boats.sea.example", "--wait", "--timeout=20s")
    assert "boats.sea.example" not in kubectl("api-resources", "-o", "name").split()
