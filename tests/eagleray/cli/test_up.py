"""The commands around a kept cluster, as far as they go without one: what they say, and how they end."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest

from eagleray.cli.main import main
from eagleray.cli.status import lines
from eagleray.cli.tables import size
from eagleray.cli.up import how_to_use
from eagleray.kube.client import Client
from eagleray.kube.retries import Patience
from eagleray.local import imagecache
from eagleray.local.kept import Place, Record, note, started_at
from eagleray.local.overview import ObjectView, Overview, ask, node_view, pod_state, ray_state
from eagleray.local.users import User
from kubereef.node.images import ImageInUse, Present
from kubereef.simulation import run
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import transport_to
from tests.eagleray.rayjob.situations import KINDS, ray_world, reached
from tests.eagleray.world import rayjob, world_of

NOW = datetime(2030, 1, 1, 2, tzinfo=UTC)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where `eagleray … --data-dir` finds its cluster; images are kept aside as well."""
    monkeypatch.setenv("EAGLERAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    directory = tmp_path / "data" / "eagleray"
    directory.mkdir(parents=True)
    return Place("eagleray", directory, User(os.geteuid(), os.getegid(), tmp_path))


@pytest.fixture
def noted(place):
    """A process that stands in for the one that runs the cluster."""
    with subprocess.Popen(["sleep", "100"]) as process:
        # Nobody listens there, so that asking it is over at once.
        note(
            place,
            Record(
                pid=process.pid,
                started=started_at(process.pid),
                since="2030-01-01T00:00:00Z",
                version="9.9",
                url="https://127.0.0.1:1",
                kubeconfig=str(place.cluster / "admin.kubeconfig"),
            ),
        )
        yield process
        process.kill()


def at(place):
    return ("--data-dir", str(place.directory.parent))


# --- up


def test_up_without_root_names_the_command_with_sudo(place, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("sys.argv", ["eagleray", "up", "-d"])
    for words in (("up", "-d"), ("up",)):
        assert main([*words, *at(place)]) == 1
        said = capsys.readouterr().err
        assert "needs root; run it as: sudo --preserve-env=KUBECONFIG,EAGLERAY_CACHE " in said
        assert said.endswith("up -d\n")


@pytest.mark.parametrize("words", [("up",), ("up", "-d")])
def test_up_where_one_runs_says_so(place, noted, capsys, words):
    assert main([*words, *at(place)]) == 0
    assert "the cluster eagleray is up already, at https://127.0.0.1:1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("--name", "../x"), "--name: '../x' cannot be the name of a cluster", id="a name"),
        pytest.param(("--", "--no-such-flag"), "--no-such-flag", id="a flag of the operator"),
    ],
)
def test_up_refuses_what_cannot_be_before_anything_is_started(place, capsys, words, sentence):
    assert main(["up", *at(place), *words]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--listen", "0"),
        ("--listen", "65536"),
        ("--cpu-factor", "0"),
        ("--resource", "gpu"),
        ("--resource", "=1"),
        ("--outbound", "maybe"),
    ],
    ids=" ".join,
)
def test_up_refuses_values_that_are_none(words):
    with pytest.raises(SystemExit) as end:
        main(["up", *words])
    assert end.value.code == 2


@pytest.mark.parametrize(
    ("has_context", "way"),
    [(True, "kubectl --context eagleray get"), (False, "kubectl --kubeconfig /k get")],
    ids=["by its context", "by its own file"],
)
def test_a_user_is_told_how_to_use_it(place, has_context, way):
    shown = how_to_use(place, "/k", has_context=has_context, is_detached=True)
    assert way in shown[0]
    assert shown[-1] == "  eagleray down"


def test_a_cluster_of_another_name_is_ended_by_that_name(place):
    shown = how_to_use(place._replace(name="b"), "/k", has_context=True, is_detached=True)
    assert shown[-2:] == ["  eagleray status --name b", "  eagleray down --name b"]


# --- down


def test_down_of_nothing_says_so(place, capsys):
    assert main(["down", *at(place)]) == 0
    assert "the cluster eagleray does not run" in capsys.readouterr().out


def test_down_ends_it_and_keeps_its_objects(place, noted, capsys):
    assert main(["down", *at(place)]) == 0
    said = capsys.readouterr().out
    assert "has ended: stopped" in said
    assert f"its objects are kept in {place.directory}" in said
    assert noted.wait() != 0


def test_down_with_purge_removes_everything(place, noted, capsys):
    assert main(["down", "--purge", *at(place)]) == 0
    assert f"removed {place.directory}" in capsys.readouterr().out
    assert not place.directory.parent.exists()


def test_down_with_images_empties_the_cache(place, tmp_path, capsys):
    (tmp_path / "cache" / "images").mkdir(parents=True)
    assert main(["down", "--purge", "--images", *at(place)]) == 0
    assert f"removed 0 images from {tmp_path / 'cache'}" in capsys.readouterr().out


def test_images_go_only_with_everything_else(place, capsys):
    assert main(["down", "--images", *at(place)]) == 2
    assert "--images goes with --purge" in capsys.readouterr().err


# --- status


def test_status_of_nothing_ends_with_3(place, capsys):
    assert main(["status", *at(place)]) == 3
    assert capsys.readouterr().out.startswith("eagleray: not running\n")


def test_status_of_a_crash_names_the_ways_out(place, noted, capsys):
    noted.kill()
    noted.wait()
    assert main(["status", *at(place)]) == 3
    said = capsys.readouterr().out
    assert "not running; its process ended without a word" in said
    assert "eagleray up starts it again" in said


def test_status_of_a_running_one_ends_with_0_though_it_does_not_answer(place, noted, capsys):
    assert main(["status", *at(place)]) == 0
    said = capsys.readouterr().out
    assert f"as process {noted.pid}, version 9.9" in said
    assert "not known: what runs in it: " in said


def test_status_for_programs(place, noted, capsys):
    main(["status", "-o", "json", *at(place)])
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["pid"], told["url"]) == ("running", noted.pid, "https://127.0.0.1:1")


def test_a_directory_that_is_not_ours_is_told_as_not_known(place, noted, monkeypatch, capsys):
    def refuse(_directory):
        raise PermissionError(13, "Permission denied", "cluster")

    monkeypatch.setattr("eagleray.local.overview.disk_size", refuse)
    assert main(["status", *at(place)]) == 0
    assert f"not known: the size of {place.directory}: it takes root" in capsys.readouterr().out


def test_what_runs_in_a_cluster_is_shown():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            await world.create(rayjob("train", submissionMode="HTTPMode"))
            await reached(world, "Running", name="train")
            return await overview_of(world)

    found = run(live())
    shown = "\n".join(lines(found, NOW))
    (job,) = [one for one in found.ray_objects if one.kind == "RayJob"]
    assert (job.name, job.state.split()[0]) == ("train", "Running")
    assert [one.state for one in found.ray_objects if one.kind == "RayCluster"] == ["ready"]
    assert {one.state for one in found.pods} == {"Running"}
    assert found.node.allocated["pods"] == str(len(found.pods))
    assert "Node " in shown
    assert "4 times the processors there are" in shown


def test_a_cluster_with_nothing_in_it():
    async def live():
        async with world_of(kinds=(*KINDS, "RayService", "RayCronJob")) as world:
            return await overview_of(world)

    shown = "\n".join(lines(run(live()), NOW))
    assert "Pods: none" in shown
    assert "Ray objects: none" in shown


async def overview_of(world):
    for kind in ("RayService", "RayCronJob"):
        if kind not in world.kinds:
            await world.place.install(kind)
    client = Client(
        transport_to(world.simulated.server),
        world.clock,
        SeededEntropy("s"),
        patience=Patience(total=5, tries=2),
    )
    found = Overview(name="eagleray", state="running", directory="/d", log="/l", since="2030-01-01T00:00:00Z")
    await ask(found, client, 4.0)
    return found


def test_what_pods_ask_for_is_counted_unless_they_have_ended():
    def pod(phase, cpu, node="n"):
        container = {"name": "a", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
        return {
            "metadata": {"name": "p"},
            "spec": {"nodeName": node, "containers": [container]},
            "status": {"phase": phase},
        }

    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "10"}}}
    pods = [pod("Running", "1500m"), pod("Pending", "1"), pod("Succeeded", "4"), pod("Pending", "2", node="")]
    view = node_view(node, pods, 4.0)
    assert view.allocated == {"cpu": "2500m", "memory": "2Gi", "pods": "2"}


def test_a_node_that_does_not_enforce_limits_says_so():
    conditions = [
        {"type": "Ready", "status": "True"},
        {"type": "DiskPressure", "status": "False", "message": "fine"},
        {"type": "LimitsEnforced", "status": "False", "message": "cgroups cannot be written"},
    ]
    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "8"}, "conditions": conditions}}
    found = Overview(name="e", state="running", directory="/d", log="/l", since="2030-01-01T00:00:00Z")
    found.node = node_view(node, [], 4.0)
    shown = list(lines(found, NOW))
    assert "  LimitsEnforced=False: cgroups cannot be written" in shown
    assert "Node n: ready" in shown
    assert not any("DiskPressure" in line for line in shown)


@pytest.mark.parametrize(
    ("pod", "word"),
    [
        pytest.param({"phase": "Running"}, "Running", id="its phase"),
        pytest.param({}, "Pending", id="nothing yet"),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, "Evicted", id="its reason"),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
            "ErrImagePull",
            id="what holds a container back",
        ),
    ],
)
def test_how_a_pod_is_in_a_word(pod, word):
    assert pod_state({"metadata": {}, "status": pod}) == word
    assert pod_state({"metadata": {"deletionTimestamp": "x"}, "status": pod}) == "Terminating"


@pytest.mark.parametrize(
    ("kind", "obj", "word"),
    [
        ("RayCluster", {"status": {"state": "ready"}}, "ready"),
        ("RayJob", {"status": {"jobDeploymentStatus": "Running", "jobStatus": "PENDING"}}, "Running PENDING"),
        ("RayJob", {}, "New"),
        ("RayService", {"status": {"serviceStatus": "Running"}}, "Running"),
        ("RayCronJob", {"spec": {"suspend": True}}, "suspended"),
    ],
)
def test_how_a_ray_object_is_in_a_word(kind, obj, word):
    assert ray_state(kind, {"metadata": {}, **obj}) == word


def test_images_are_shown_with_their_sizes(place, monkeypatch, capsys):
    monkeypatch.setattr(
        "eagleray.local.overview.images", lambda _cache: [Present(("sha256:0", "busybox:1"), 20_480)]
    )
    main(["status", *at(place)])
    assert "  busybox:1   20 KiB" in capsys.readouterr().out


def test_whoever_cannot_look_into_the_cache_is_told_by_the_node():
    node = {"metadata": {"name": "n"}, "status": {"images": [{"names": ["sha256:0", "a:1"], "sizeBytes": 5}]}}
    found = Overview(name="e", state="running", directory="/d", log="/l")

    class Told:
        async def list(self, resource):
            return [node] if resource.plural == "nodes" else []

    asyncio.run(ask(found, cast("Client", Told()), 4.0))
    assert found.images is not None
    assert [(one.reference, one.bytes) for one in found.images] == [("a:1", 5)]


def test_images_that_a_container_uses_stay(tmp_path, monkeypatch):
    class Stored:
        def __init__(self, _folder, _clock):
            pass

        def list(self):
            return [SimpleNamespace(reference="used"), SimpleNamespace(reference="idle")]

        def remove(self, reference):
            if reference == "used":
                raise ImageInUse("used is used by a container; end it first")
            return 7

        def prune(self):
            return 1

    (tmp_path / "images").mkdir()
    monkeypatch.setattr(imagecache, "Store", Stored)
    assert imagecache.remove_images(tmp_path) == (tmp_path, 1, 8, ("used",))


def test_long_lists_are_cut():
    found = Overview(name="e", state="running", directory="/d", log="/l", since="2030-01-01T00:00:00Z")
    found.pods = (ObjectView("Pod", "d", "p", "Running", "2030-01-01T00:00:00Z"),) * 60
    assert "  and 10 more" in list(lines(found, NOW))


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (20_480, "20 KiB"), (1_600_000, "1.5 MiB"), (5 * 2**40, "5120 GiB")],
)
def test_sizes_are_shown_in_a_unit_that_fits(number, shown):
    assert size(number) == shown


@pytest.mark.parametrize("command", ["up", "down", "status", "job"])
def test_the_help_of_a_command_starts_nothing_and_imports_no_cluster(command):
    program = (
        f"import sys; from eagleray.cli.main import main\ntry: main([{command!r}, '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'aiohttp', 'cryptography', 'kubereef.cluster', 'kubereef.server'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"
