"""Volumes: what a container finds in them, and how they change."""

import base64
import os

import pytest

from kubereef.node.kubelet.atomic import write_files
from kubereef.node.kubelet.hostpaths import HostPathRefused, host_path
from kubereef.node.kubelet.projections import File
from tests.kubereef.node.kubelet.fakes import PODS, Runs, container, pod

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"


def mounted(*volumes, **mount):
    """Return a Pod that mounts each volume at /<its name>."""
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}", **mount} for one in volumes]
    return pod(container(volumeMounts=mounts), volumes=list(volumes))


def mount_at(bench, target, name="app"):
    return next(mount for mount in bench.runtime.spec_of(name).mounts if mount.target == target)


def files_at(bench, target):
    """Return what a program would find: names, content and modes."""
    source = mount_at(bench, target).source
    return {
        str(path.relative_to(source)): path.read_text()
        for path in sorted(source.rglob("*"))
        if path.is_file() and not str(path.relative_to(source)).startswith("..")
    }


async def make_config(bench, **data):
    await bench.client.create(CONFIG_MAPS, {"metadata": {"name": "config"}, "data": data})


async def test_a_config_map_is_a_directory_of_its_keys(bench):
    await make_config(bench, a="1", b="2")
    await bench.create(mounted({"name": "v", "configMap": {"name": "config"}}))
    assert files_at(bench, "/v") == {"a": "1", "b": "2"}
    assert mount_at(bench, "/v").read_only


async def test_items_choose_keys_paths_and_modes(bench):
    await make_config(bench, a="1", b="2")
    items = [{"key": "a", "path": "deep/er", "mode": 0o400}]
    await bench.create(mounted({"name": "v", "configMap": {"name": "config", "items": items}}))
    source = mount_at(bench, "/v").source
    assert (source / "deep/er").read_text() == "1"
    assert (source / "deep/er").stat().st_mode & 0o777 == 0o400
    assert not (source / "a").exists()


async def test_a_changed_config_map_changes_the_files_all_at_once(bench):
    await make_config(bench, a="1", b="2")
    await bench.create(mounted({"name": "v", "configMap": {"name": "config"}}))
    source = mount_at(bench, "/v").source
    before = str((source / "..data").readlink())
    await bench.client.patch(f"{CONFIG_MAPS}/config", {"data": {"a": "new", "b": None, "c": "3"}})
    await bench.pass_time(45)
    assert files_at(bench, "/v") == {"a": "new", "c": "3"}
    assert str((source / "..data").readlink()) != before
    assert not (source / before).exists()
    assert str((source / "a").readlink()) == "..data/a"


async def test_what_has_not_changed_is_not_written_anew(bench):
    await make_config(bench, a="1")
    await bench.create(mounted({"name": "v", "configMap": {"name": "config"}}))
    source = mount_at(bench, "/v").source
    before = str((source / "..data").readlink())
    await bench.pass_time(100)
    assert str((source / "..data").readlink()) == before


async def test_a_missing_config_map_is_waited_for(bench):
    await bench.create(mounted({"name": "v", "configMap": {"name": "config"}}), after=5)
    assert (await bench.container())["state"] == {"waiting": {"reason": "ContainerCreating"}}
    conditions = await bench.conditions()
    assert conditions["PodReadyToStartContainers"]["status"] == "False"
    text = 'MountVolume.SetUp failed for volume "v" : configmap "config" not found'
    assert await bench.events("FailedMount") == [("FailedMount", text)]
    await make_config(bench, a="1")
    await bench.pass_time(10)
    assert (await bench.status())["phase"] == "Running"


async def test_an_optional_config_map_may_be_missing(bench):
    await bench.create(mounted({"name": "v", "configMap": {"name": "config", "optional": True}}))
    assert files_at(bench, "/v") == {}


async def test_a_secret_lies_in_memory_only(bench):
    data = {"key": base64.b64encode(b"secret").decode()}
    await bench.client.create(SECRETS, {"metadata": {"name": "s"}, "data": data})
    await bench.create(mounted({"name": "v", "secret": {"secretName": "s", "defaultMode": 0o440}}))
    source = mount_at(bench, "/v").source
    assert files_at(bench, "/v") == {"key": "secret"}
    assert (source / "key").stat().st_mode & 0o777 == 0o440
    assert source.is_relative_to(bench.directory / "memory")


async def test_the_pod_tells_a_volume_about_itself_also_when_that_changes(bench):
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
        {
            "path": "cpu",
            "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu", "divisor": "1m"},
        },
    ]
    manifest = mounted({"name": "v", "downwardAPI": {"items": items}})
    manifest["metadata"]["labels"] = {"b": "2", "a": "1"}
    await bench.create(manifest)
    assert files_at(bench, "/v") == {"labels": 'a="1"\nb="2"', "name": "pod", "cpu": "8000"}
    await bench.client.patch(f"{PODS}/pod", {"metadata": {"labels": {"b": "3"}}})
    await bench.pass_time(45)
    assert files_at(bench, "/v")["labels"] == 'a="1"\nb="3"'


async def test_a_projected_volume_has_all_its_sources_and_a_token_that_is_renewed(bench):
    await make_config(bench, a="1")
    sources = [
        {"configMap": {"name": "config"}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 600, "audience": "api"}},
    ]
    await bench.create(mounted({"name": "v", "projected": {"sources": sources}}))
    found = files_at(bench, "/v")
    assert (found["a"], found["namespace"]) == ("1", "default")
    first = found["token"]
    assert first.count(".") == 2
    await bench.pass_time(400)
    assert files_at(bench, "/v")["token"] == first
    await bench.pass_time(120)
    assert files_at(bench, "/v")["token"] != first


async def test_a_token_belongs_to_the_one_user_of_the_pod(bench):
    sources = [{"serviceAccountToken": {"path": "token"}}]
    manifest = mounted({"name": "v", "projected": {"sources": sources}})
    manifest["spec"]["securityContext"] = {"runAsUser": os.getuid()}
    await bench.create(manifest)
    found = (mount_at(bench, "/v").source / "token").stat()
    assert (found.st_mode & 0o777, found.st_uid) == (0o600, os.getuid())


async def test_an_empty_dir_is_shared_and_goes_with_the_pod(bench):
    await bench.create(mounted({"name": "v", "emptyDir": {}}))
    source = mount_at(bench, "/v").source
    assert source.stat().st_mode & 0o777 == 0o777
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(1)
    assert not source.exists()


async def test_a_pod_that_fills_its_empty_dir_above_the_limit_is_evicted(bench):
    await bench.create(mounted({"name": "v", "emptyDir": {"sizeLimit": "64Ki"}}))
    (mount_at(bench, "/v").source / "big").write_bytes(b"x" * 200_000)
    await bench.pass_time(12)
    status = await bench.status()
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == 'Usage of EmptyDir volume "v" exceeds the limit "64Ki". '


async def test_an_evicted_pod_gets_a_second_however_long_its_grace(bench):
    manifest = mounted({"name": "v", "emptyDir": {"sizeLimit": "64Ki"}})
    manifest["spec"]["terminationGracePeriodSeconds"] = 600
    bench.runtime.programs["app"] = [Runs(code=None)]
    await bench.create(manifest)
    (mount_at(bench, "/v").source / "big").write_bytes(b"x" * 200_000)
    await bench.pass_time(14)
    assert (await bench.status())["phase"] == "Failed"


async def test_a_change_of_a_pods_annotations_brings_the_newest_config_map_at_once(bench):
    await make_config(bench, a="1")
    await bench.create(mounted({"name": "v", "configMap": {"name": "config"}}))
    await bench.client.patch(f"{CONFIG_MAPS}/config", {"data": {"a": "2"}})
    await bench.pass_time(2)
    assert files_at(bench, "/v")["a"] == "1"
    await bench.client.patch(f"{PODS}/pod", {"metadata": {"annotations": {"touched": "now"}}})
    await bench.pass_time(1)
    assert files_at(bench, "/v")["a"] == "2"


async def test_a_claim_leads_to_its_volume(bench, tmp_path):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    }
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    await bench.client.create(claims, {"metadata": {"name": "data"}, "spec": {**spec, "volumeName": "pv"}})
    await bench.create(mounted({"name": "v", "persistentVolumeClaim": {"claimName": "data"}}))
    text = 'MountVolume.SetUp failed for volume "v" : PVC default/data is not bound'
    assert ("FailedMount", text) in await bench.events()
    volume = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": str(tmp_path / "pv"), "type": "DirectoryOrCreate"},
    }
    await bench.client.create("/api/v1/persistentvolumes", {"metadata": {"name": "pv"}, "spec": volume})
    await bench.client.patch(f"{claims}/data/status", {"status": {"phase": "Bound"}})
    await bench.pass_time(10)
    assert mount_at(bench, "/v").source == tmp_path / "pv"


@pytest.mark.parametrize(
    ("kind", "made", "refused"),
    [
        pytest.param("DirectoryOrCreate", None, "", id="a directory is made"),
        pytest.param("FileOrCreate", None, "", id="a file is made"),
        pytest.param("Directory", None, "is not a directory", id="a missing directory"),
        pytest.param("File", "directory", "is not a file", id="a directory for a file"),
        pytest.param("Directory", "file", "is not a directory", id="a file for a directory"),
        pytest.param("Socket", "file", "is not a socket", id="a file for a socket"),
        pytest.param("CharDevice", "file", "is not a character device", id="a file for a device"),
        pytest.param("", None, "", id="no type makes what is missing"),
    ],
)
def test_a_host_path_is_of_its_type(tmp_path, kind, made, refused):
    place = tmp_path / "it"
    if made == "file":
        place.touch()
    elif made == "directory":
        place.mkdir()
    if not refused:
        assert host_path(str(place), kind) == place
        assert place.exists()
        return
    with pytest.raises(HostPathRefused, match=refused):
        host_path(str(place), kind)


def test_the_directory_of_all_devices_is_not_given_away():
    with pytest.raises(HostPathRefused, match="name the device itself"):
        host_path("/dev", "")
    assert str(host_path("/dev/null", "CharDevice")) == "/dev/null"


async def test_sub_paths_may_name_variables(bench):
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": "$(POD)/logs"}
    variable = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    await bench.create(
        pod(container(volumeMounts=[mount], env=[variable]), volumes=[{"name": "v", "emptyDir": {}}])
    )
    assert mount_at(bench, "/v").sub_path == "pod/logs"


async def test_a_sub_path_with_an_unknown_variable_keeps_the_container_from_starting(bench):
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": "$(NOPE)"}
    await bench.create(pod(container(volumeMounts=[mount]), volumes=[{"name": "v", "emptyDir": {}}]))
    waiting = (await bench.container())["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "NOPE" in waiting["message"]


async def test_a_volume_of_an_unknown_kind_is_refused_in_words(bench):
    await bench.create(mounted({"name": "v", "nfs": {"server": "a", "path": "/"}}))
    text = 'MountVolume.SetUp failed for volume "v" : this node has no volumes of the kind nfs'
    assert ("FailedMount", text) in await bench.events()


def test_a_path_cannot_lead_out_of_its_volume(tmp_path):
    with pytest.raises(ValueError, match="leads out"):
        write_files(tmp_path / "v", {"../x": File(b"")}, "one")
    assert not (tmp_path / "x").exists()
