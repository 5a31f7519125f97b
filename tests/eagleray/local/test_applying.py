"""Applying manifests: what is created, changed or left, which kinds, and which namespaces."""

import pytest

from eagleray.local.applying import Applier, NotApplied
from kubereef.simulation import run
from tests.eagleray.local.scene import Scene, manifest
from tests.eagleray.world import raycluster, world_of


def config_map(name="c", namespace="", **data):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def gadgets():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def applied(*objects, namespace=""):
    """Return what applying these objects told, and where they are."""

    async def live():
        async with world_of(operator=False) as world:
            applier = Applier(Scene(world).client, world.clock, namespace)
            found = [await applier.apply(manifest(obj, line)) for line, obj in enumerate(objects, 1)]
            return [
                f"{one.title} {one.change} in {one.obj['metadata'].get('namespace', '-')}" for one in found
            ]

    return run(live())


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([config_map()], ["configmap/c created in default"], id="what is new is created"),
        pytest.param(
            [config_map(a="1"), config_map(a="2"), config_map(a="2")],
            [
                "configmap/c created in default",
                "configmap/c configured in default",
                "configmap/c unchanged in default",
            ],
            id="what is there is changed, or is left",
        ),
        pytest.param(
            [raycluster("r")],
            ["raycluster.ray.io/r created in default"],
            id="kinds of groups have their name",
        ),
        pytest.param(
            [gadgets(), {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}],
            [
                "customresourcedefinition.apiextensions.k8s.io/gadgets.example.com created in -",
                "gadget.example.com/g created in default",
            ],
            id="a kind can be used that was defined just before",
        ),
        pytest.param(
            [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "namespace": "odd"}}],
            ["namespace/n created in -"],
            id="what belongs to no namespace gets none",
        ),
    ],
)
def test_changes_are_told_as_kubectl_tells_them(objects, want):
    assert applied(*objects) == want


def test_objects_go_where_they_say_or_where_they_are_sent():
    assert applied(config_map(), namespace="mine") == ["configmap/c created in mine"]
    assert applied(config_map(namespace="theirs")) == ["configmap/c created in theirs"]


def test_a_new_namespace_is_ready_for_pods_when_it_is_used():
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "busybox"}]},
    }
    assert applied(pod, namespace="mine") == ["pod/p created in mine"]


def test_a_generated_name_makes_a_new_object_each_time():
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}
    first, second = applied(obj, obj)
    assert first != second
    assert first.endswith("created in default")


@pytest.mark.parametrize(
    ("objects", "namespace", "problem"),
    [
        pytest.param(
            [config_map(namespace="theirs")],
            "mine",
            "job.yaml:1: ConfigMap/c: it is of namespace theirs, not of mine; leave -n out, or say -n theirs",
            id="an object of another namespace than the one asked for",
        ),
        pytest.param(
            [config_map(), {"apiVersion": "v2", "kind": "Pod", "metadata": {"name": "p"}}],
            "",
            "job.yaml:2: Pod/p: this cluster has no kind Pod in v2; if a CRD defines it, give that first",
            id="a version that is not served",
        ),
        pytest.param(
            [config_map("Bad_Name")],
            "",
            'job.yaml:1: ConfigMap/Bad_Name: ConfigMap "Bad_Name" is invalid',
            id="what the server refuses",
        ),
    ],
)
def test_a_refusal_names_the_place_and_the_way_out(objects, namespace, problem):
    with pytest.raises(NotApplied) as told:
        applied(*objects, namespace=namespace)
    assert str(told.value).startswith(problem)
