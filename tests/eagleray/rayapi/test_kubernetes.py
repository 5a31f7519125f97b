"""Kubernetes' types as they stand in a CRD."""

import pytest

from eagleray.rayapi import kubernetes
from eagleray.rayapi.kubernetes import definition, published

CORE = "io.k8s.api.core.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


@pytest.mark.parametrize(
    ("name", "field", "fact"),
    [
        pytest.param(
            "ContainerPort", "protocol", {"default": "TCP"}, id="a port's protocol, part of its key"
        ),
        pytest.param("ServicePort", "protocol", {"default": "TCP"}, id="a Service port's protocol"),
        pytest.param("LocalObjectReference", "name", {"default": ""}, id="the name of a reference"),
        pytest.param("SecretKeySelector", "name", {"default": ""}, id="the Secret of a key"),
        pytest.param("GRPCAction", "service", {"default": ""}, id="the service a gRPC probe asks for"),
        pytest.param("FileKeySelector", "optional", {"default": False}, id="whether a file may be missing"),
        pytest.param("ConfigMapKeySelector", "name", {"default": ""}, id="the ConfigMap of a key"),
        pytest.param("ConfigMapEnvSource", "name", {"default": ""}, id="the ConfigMap of an environment"),
        pytest.param("SecretEnvSource", "name", {"default": ""}, id="the Secret of an environment"),
        pytest.param("ConfigMapProjection", "name", {"default": ""}, id="a projected ConfigMap"),
        pytest.param("SecretProjection", "name", {"default": ""}, id="a projected Secret"),
        pytest.param("ConfigMapVolumeSource", "name", {"default": ""}, id="the ConfigMap of a volume"),
        pytest.param(
            "AzureDiskVolumeSource", "fsType", {"default": "ext4"}, id="the file system of an Azure disk"
        ),
        pytest.param("AzureDiskVolumeSource", "readOnly", {"default": False}, id="writing to an Azure disk"),
        pytest.param(
            "ISCSIVolumeSource", "iscsiInterface", {"default": "default"}, id="the interface of iSCSI"
        ),
        pytest.param("RBDVolumeSource", "keyring", {"default": "/etc/ceph/keyring"}, id="the keyring of RBD"),
        pytest.param("RBDVolumeSource", "pool", {"default": "rbd"}, id="the pool of RBD"),
        pytest.param("RBDVolumeSource", "user", {"default": "admin"}, id="the user of RBD"),
        pytest.param("ScaleIOVolumeSource", "fsType", {"default": "xfs"}, id="the file system of ScaleIO"),
        pytest.param(
            "ScaleIOVolumeSource", "storageMode", {"default": "ThinProvisioned"}, id="the mode of ScaleIO"
        ),
    ],
)
def test_a_crd_knows_the_default_of(name, field, fact):
    node = definition(CORE + name)["properties"][field]
    assert node == {**published(CORE + name)["properties"][field], **fact}


def test_a_condition_has_the_bounds_that_the_api_server_checks():
    properties = definition(META + "Condition")["properties"]
    assert properties["status"]["enum"] == ["True", "False", "Unknown"]
    assert properties["reason"]["minLength"] == 1
    assert properties["type"]["maxLength"] == 316
    assert properties["message"]["maxLength"] == 32768
    assert properties["observedGeneration"]["minimum"] == 0


def test_a_quantity_may_be_a_number_and_a_port_may_be_a_name():
    quantity = definition("io.k8s.apimachinery.pkg.api.resource.Quantity")
    port = definition("io.k8s.apimachinery.pkg.util.intstr.IntOrString")
    assert quantity["x-kubernetes-int-or-string"] is True
    assert "pattern" in quantity
    assert port == {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def test_embedded_metadata_has_only_the_fields_of_a_template():
    properties = definition(META + "ObjectMeta")["properties"]
    assert sorted(properties) == ["annotations", "finalizers", "labels", "name", "namespace"]


@pytest.mark.parametrize(
    "name",
    [
        "ConfigMapEnvSource",
        "SecretEnvSource",
        "ConfigMapProjection",
        "SecretProjection",
        "ConfigMapVolumeSource",
        "SecretKeySelector",
    ],
)
def test_a_reference_with_an_embedded_name_is_replaced_as_a_whole(name):
    assert definition(CORE + name)["x-kubernetes-map-type"] == "atomic"


def test_other_types_are_merged_field_by_field():
    assert "x-kubernetes-map-type" not in definition(CORE + "EnvVar")


def test_required_fields_are_sorted():
    assert definition(CORE + "ISCSIVolumeSource")["required"] == ["iqn", "lun", "targetPortal"]
    assert definition(CORE + "PortStatus")["required"] == ["error", "port", "protocol"]


@pytest.mark.parametrize(
    "name", [CORE + "PodSpec", CORE + "Container", CORE + "Service", CORE + "SeccompProfile"]
)
def test_keys_that_a_crd_may_not_carry_are_gone(name):
    text = str(definition(name))
    for key in ("patch-strategy", "patch-merge-key", "group-version-kind", "unions"):
        assert f"x-kubernetes-{key}" not in text


def test_lists_keep_their_keys():
    containers = definition(CORE + "PodSpec")["properties"]["containers"]
    assert containers["x-kubernetes-list-type"] == "map"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


def test_what_is_published_stays_as_it_is():
    before = str(published(CORE + "ContainerPort"))
    definition(CORE + "ContainerPort")
    assert str(published(CORE + "ContainerPort")) == before
    assert "default" not in before


def test_nothing_is_added_that_is_published_already():
    for name, fields in kubernetes._ADDED.items():
        properties = published(name)["properties"]
        for field, facts in fields.items():
            assert not set(facts) & set(properties[field]), f"{name}.{field}"
    for name in kubernetes._ATOMIC:
        assert "x-kubernetes-map-type" not in published(name)


def test_an_unknown_name_is_an_error():
    with pytest.raises(KeyError):
        definition(CORE + "Nothing")
