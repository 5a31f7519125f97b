"""`kubectl apply --server-side` against Kubereef: ownership as people meet it."""

import json

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}}


def applied(kubectl, *flags, code=0, data=None):
    given = {**CONFIG, "data": data or CONFIG["data"]}
    return kubectl("apply", "--server-side", *flags, "-f", "-", given=given, code=code)


def managers(kubectl):
    shown = kubectl("get", "configmap", "conf", "-o", "json", "--show-managed-fields")
    return {entry["manager"]: entry for entry in json.loads(shown)["metadata"]["managedFields"]}


def test_apply_creates_and_owns_what_it_says(kubectl):
    assert applied(kubectl) == "configmap/conf serverside-applied\n"
    assert managers(kubectl)["kubectl"]["fieldsV1"] == {"f:data": {"f:a": {}, "f:b": {}}}


def test_applying_the_same_again_changes_nothing(kubectl):
    applied(kubectl)
    before = kubectl.read("configmap", "conf")["metadata"]["resourceVersion"]
    applied(kubectl)
    assert kubectl.read("configmap", "conf")["metadata"]["resourceVersion"] == before


def test_a_dropped_field_goes(kubectl):
    applied(kubectl)
    applied(kubectl, data={"a": "1"})
    assert kubectl.read("configmap", "conf")["data"] == {"a": "1"}


def test_a_conflict_names_the_owner_and_is_won_by_force(kubectl):
    applied(kubectl, "--field-manager", "alice")
    told = applied(kubectl, "--field-manager", "bob", data={"a": "9"}, code=1)
    assert 'conflict with "alice": .data.a' in told
    applied(kubectl, "--field-manager", "bob", "--force-conflicts", data={"a": "9"})
    assert kubectl.read("configmap", "conf")["data"] == {"a": "9", "b": "2"}


def test_what_kubectl_applied_by_itself_passes_to_the_server_without_conflicts(kubectl):
    kubectl("apply", "-f", "-", given=CONFIG)
    applied(kubectl, data={"a": "9", "b": "2"})
    obj = kubectl.read("configmap", "conf")
    assert obj["data"] == {"a": "9", "b": "2"}
    assert '"a":"9"' in obj["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]


def test_diff_shows_what_a_server_side_apply_would_change(kubectl):
    applied(kubectl)
    given = {**CONFIG, "data": {"a": "1", "b": "3"}}
    shown = kubectl("diff", "--server-side", "-f", "-", given=given, code=1)
    assert '-  b: "2"' in shown
    assert '+  b: "3"' in shown


def test_a_dry_run_changes_nothing(kubectl):
    applied(kubectl, "--dry-run=server")
    assert "NotFound" in kubectl("get", "configmap", "conf", code=1)


def test_scaling_takes_the_size_from_whoever_applied_it(kubectl):
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "img:1"}]},
            },
        },
    }
    kubectl("apply", "--server-side", "-f", "-", given=deployment)
    kubectl("scale", "deployment", "web", "--replicas=2")
    told = kubectl("apply", "--server-side", "-f", "-", given=deployment, code=1)
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in told
