"""Pulling an image: policies, one build for all who want it, cancellation, and errors with the way out."""

import asyncio
import threading
from datetime import timedelta

import pytest

from kubereef.node.images import ImageError, ImageInUse, Progress, Settings, cache_directory, recipe_directory
from kubereef.node.images import store as store_module
from kubereef.node.images.errors import BuildCancelled, BuildFailed, InvalidImageName, NeverPull, NoRecipe
from kubereef.node.images.host import Base
from kubereef.node.images.layers import PythonLayer, ToolsLayer, build_layer
from kubereef.node.images.planning import plan_image
from kubereef.node.images.recipes import read_catalogue
from kubereef.node.images.references import parse_reference
from tests.kubereef.node.images.making import images_with
from tests.kubereef.node.images.rooted import require_roots, run_in

APP = "recipes: [{image: app, env: {COLOUR: red}, command: [sh]}]"


@pytest.fixture
async def images(tmp_path):
    opened = images_with(tmp_path, APP)
    yield opened
    await opened.close()


@pytest.fixture
def gate(monkeypatch):
    """Builds stop at a gate that the test opens; counts how many there were."""

    class Gate:
        opened = threading.Event()
        builds = 0

    real = build_layer

    def slow(layer, tree, scratch, control):
        Gate.builds += 1
        while not Gate.opened.is_set():
            control.tell("building", "behind the gate")
            control.wait()
        real(layer, tree, scratch, control)

    monkeypatch.setattr(store_module, "build_layer", slow)
    yield Gate
    Gate.opened.set()


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - threads and files change it, which set no asyncio.Event
            await asyncio.sleep(0.01)


async def test_an_image_is_layers_on_disk_and_how_to_run_in_them(images):
    image = await images.pull("app")
    assert image.reference == "docker.io/library/app:latest"
    assert image.id == f"docker.io/library/app@{image.digest}"
    assert (image.layers[-1] / "etc/passwd").is_file()
    assert (image.env, image.command, image.workdir) == ({"COLOUR": "red"}, ("sh",), "/")
    assert "/usr/bin" in {bind.target for bind in image.binds}


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        pytest.param("no such name", InvalidImageName, "InvalidImageName", id="what is no name"),
        pytest.param("nginx:1.27", NoRecipe, "ErrImagePull", id="what has no recipe"),
        pytest.param("app@sha256:" + "0" * 64, NoRecipe, "ErrImagePull", id="a registry's digest"),
    ],
)
async def test_what_cannot_be_pulled_has_kubernetes_reason(images, name, error, reason):
    with pytest.raises(error) as refusal:
        await images.pull(name)
    assert refusal.value.reason == reason


async def test_a_wrong_recipe_file_is_shown_with_its_name(tmp_path):
    images = images_with(tmp_path, "recipes: [{image: app, colour: red}]")
    with pytest.raises(ImageError, match=r"test\.yaml.*colour"):
        await images.pull("app")
    await images.close()


async def test_never_takes_only_what_is_present(images):
    with pytest.raises(NeverPull, match="not present with pull policy of Never") as refusal:
        await images.pull("app", "Never")
    assert refusal.value.reason == "ErrImageNeverPull"
    pulled = await images.pull("app")
    assert (await images.pull("app", "Never")).digest == pulled.digest


async def test_if_not_present_keeps_what_was_pulled_and_always_looks_again(images, tmp_path):
    first = await images.pull("app")
    (tmp_path / "recipes/test.yaml").write_text(APP.replace("red", "blue"))
    assert (await images.pull("app", "IfNotPresent")).env == first.env
    assert (await images.pull("app", "Always")).env == {"COLOUR": "blue"}
    assert (await images.pull("app", "IfNotPresent")).env == {"COLOUR": "blue"}


async def test_always_makes_nothing_that_is_there(images, gate):
    gate.opened.set()
    await images.pull("app", "Always")
    await images.pull("app", "Always")
    assert gate.builds == 1


async def test_many_who_want_an_image_share_one_build_and_its_progress(images, gate):
    heard: list[list[Progress]] = [[], [], []]
    pulls = [asyncio.create_task(images.pull("app", "IfNotPresent", each.append)) for each in heard[:2]]
    await until(lambda: heard[0] and heard[0][-1].stage == "building")
    pulls.append(asyncio.create_task(images.pull("app", "IfNotPresent", heard[2].append)))
    await until(lambda: heard[2])
    gate.opened.set()
    made = await asyncio.gather(*pulls)
    assert gate.builds == 1
    assert len({image.digest for image in made}) == 1
    assert all("building" in {progress.stage for progress in each} for each in heard)


async def test_pruning_while_an_image_is_made_takes_none_of_its_layers(tmp_path, monkeypatch):
    images = images_with(tmp_path, "recipes: [{image: app, python: {prefix: /opt/python}}]")
    built = []

    def quick(layer, tree, scratch, control):
        built.append(type(layer))
        images._store.prune()

    monkeypatch.setattr(store_module, "build_layer", quick)
    await images.pull("app")
    assert built == [PythonLayer, Base]
    await images.close()


async def test_two_processes_build_once(tmp_path, gate):
    both = [images_with(tmp_path, APP), images_with(tmp_path, APP)]
    pulls = [asyncio.create_task(images.pull("app")) for images in both]
    await until(lambda: gate.builds == 1)
    await asyncio.sleep(0.2)
    gate.opened.set()
    await asyncio.gather(*pulls)
    assert gate.builds == 1
    for images in both:
        await images.close()


async def test_a_build_goes_on_while_anybody_waits_for_it(images, gate):
    first, second = (asyncio.create_task(images.pull("app")) for _ in range(2))
    await until(lambda: gate.builds)
    first.cancel()
    await asyncio.sleep(0.2)
    gate.opened.set()
    assert (await second).layers
    assert gate.builds == 1


async def test_the_last_to_give_up_ends_the_build_and_the_next_starts_anew(images, gate, tmp_path):
    pull = asyncio.create_task(images.pull("app"))
    await until(lambda: gate.builds)
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    await until(lambda: not list((tmp_path / "images/unfinished").iterdir()))
    gate.opened.set()
    assert (await images.pull("app")).layers
    assert gate.builds == 2


async def test_images_are_made_in_parallel_up_to_a_limit(tmp_path, gate):
    recipes = [{"image": name, "env": {"A": name}, "folders": [f"/{name}"]} for name in ("a", "b", "c")]
    images = images_with(tmp_path, f"recipes: {recipes}", builds_at_once=2)
    pulls = [asyncio.create_task(images.pull(name)) for name in ("a", "b", "c")]
    await until(lambda: gate.builds == 2)
    await asyncio.sleep(0.2)
    assert gate.builds == 2
    gate.opened.set()
    await asyncio.gather(*pulls)
    assert gate.builds == 3
    await images.close()


async def test_an_image_that_is_there_does_not_wait_for_builds(tmp_path, gate):
    images = images_with(tmp_path, "recipes: [{image: a}, {image: b, folders: [/b]}]", builds_at_once=1)
    gate.opened.set()
    await images.pull("a")
    gate.opened.clear()
    pull = asyncio.create_task(images.pull("b"))
    await until(lambda: gate.builds == 2)
    async with asyncio.timeout(2):
        await images.pull("a")
    gate.opened.set()
    await pull
    await images.close()


async def test_a_build_that_takes_too_long_fails_with_its_limit(tmp_path, gate):
    images = images_with(tmp_path, APP, build_timeout=0.2)
    with pytest.raises(BuildFailed, match=r"0\.2 s"):
        await images.pull("app")
    await images.close()


async def test_closing_ends_builds(images, gate):
    pull = asyncio.create_task(images.pull("app"))
    await until(lambda: gate.builds)
    await images.close()
    with pytest.raises(BuildCancelled):
        await pull


async def test_an_image_is_held_until_each_pull_is_released(images):
    image = await images.pull("app")
    await images.pull("app")
    images.release(image)
    with pytest.raises(ImageInUse):
        await images.remove("app")
    assert await images.prune(max_age=timedelta(0), max_bytes=0) == 0
    images.release(image)
    assert await images.remove("app") > 0
    assert (await images.list(), await images.usage()) == ([], 0)
    with pytest.raises(ValueError, match="not held"):
        images.release(image)


async def test_pulls_and_prunes_at_once_never_take_an_image_away(images):
    async def use():
        for _ in range(10):
            image = await images.pull("app", "Always")
            assert all(layer.is_dir() for layer in image.layers)
            images.release(image)

    async def prune():
        for _ in range(20):
            await images.prune(max_bytes=0)

    await asyncio.gather(use(), use(), prune())


async def test_a_directory_of_the_users_own_is_the_root(tmp_path):
    root = tmp_path / "recipes/roots/app"
    root.mkdir(parents=True)
    images = images_with(tmp_path, "recipes: [{image: app, directory: roots/app, base: none}]")
    image = await images.pull("app")
    assert (image.layers, image.binds) == ((root,), ())
    images.release(image)
    await images.remove("app")
    assert root.is_dir()
    await images.close()


async def test_a_directory_that_is_missing_is_named(tmp_path):
    images = images_with(tmp_path, "recipes: [{image: app, directory: gone, base: none}]")
    with pytest.raises(NoRecipe, match="gone"):
        await images.pull("app")
    await images.close()


def plan(name, **options):
    reference = parse_reference(name)
    return plan_image(reference, read_catalogue().find(reference), **options)


def test_another_python_than_asked_for_is_a_warning():
    made = plan("python:3.2")
    assert "asks for Python 3.2; this machine has" in made.record.warnings[0]
    with pytest.raises(NoRecipe, match=r"install python3\.2"):
        plan("python:3.2", strict=True)


def test_tools_that_the_machine_lacks_are_brought(tmp_path):
    (tmp_path / "usr/bin").mkdir(parents=True)
    for name in ("bash", "sh"):
        (tmp_path / "usr/bin" / name).touch(0o755)
    ray = plan("rayproject/ray:2.52.0", root=tmp_path)
    assert [type(layer) for layer in ray.layers] == [PythonLayer, ToolsLayer, Base]
    tools = ray.layers[1]
    assert (sorted(tools.programs), tools.interpreter) == (
        ["curl", "wget"],
        "/home/ray/anaconda3/bin/python3",
    )
    busybox = plan("busybox", root=tmp_path)
    assert [type(layer) for layer in busybox.layers] == [ToolsLayer, PythonLayer, Base]


def test_a_machine_without_a_shell_is_told_what_to_install(tmp_path):
    with pytest.raises(NoRecipe, match="lacks sh, which"):
        plan("rayproject/ray:2.52.0", root=tmp_path)


def test_a_machine_without_bash_gets_one_that_its_own_shell_runs(tmp_path):
    (tmp_path / "usr/bin").mkdir(parents=True)
    for name in ("sh", "wget", "curl"):
        (tmp_path / "usr/bin" / name).touch(0o755)
    _, tools, base = plan("rayproject/ray:2.52.0", root=tmp_path).layers
    assert list(tools.programs) == ["bash"]
    assert base.links["/usr/bin/bash"] == "/usr/local/bin/bash"
    assert base.links["/usr/bin/sh"] == "../machine-bin/sh"
    assert "/usr/bin" not in [bind.target for bind in base.binds]


def test_a_program_that_the_machine_has_is_not_brought_from_a_wheel(tmp_path):
    (tmp_path / "usr/bin").mkdir(parents=True)
    assert len(plan("redis:7", root=tmp_path).layers) == 2
    for name in ("redis-server", "redis-cli"):
        (tmp_path / "usr/bin" / name).touch(0o755)
    assert [type(layer) for layer in plan("redis:7", root=tmp_path).layers] == [Base]


async def test_a_program_runs_with_an_image_as_its_root_and_sees_nothing_else(images):
    require_roots()
    image = await images.pull("app")
    run = ["bash", "-lc", "ls / /home /root; cat /etc/passwd; touch /usr/bin/x 2>&1 || true; echo $COLOUR"]
    output = await asyncio.to_thread(run_in, image, run)
    assert "Read-only file system" in output
    assert output.endswith("red\n")
    assert "work" not in output.split()


@pytest.mark.parametrize(
    ("variables", "want"),
    [
        ({"EAGLERAY_CACHE": "/a"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/eagleray"),
        ({"HOME": "/c"}, "/c/.cache/eagleray"),
    ],
)
def test_the_cache_is_where_the_user_wants_it(monkeypatch, variables, want):
    for name in ("EAGLERAY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(cache_directory()) == want


@pytest.mark.parametrize(
    ("variables", "want"),
    [
        ({"EAGLERAY_RECIPES": "/a"}, "/a"),
        ({"XDG_CONFIG_HOME": "/b"}, "/b/eagleray/recipes"),
        ({"HOME": "/c"}, "/c/.config/eagleray/recipes"),
    ],
)
def test_recipes_are_where_the_user_wants_them(monkeypatch, variables, want):
    for name in ("EAGLERAY_RECIPES", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(recipe_directory()) == want


def test_settings_have_bounds_by_default():
    assert Settings().builds_at_once > 0
    assert Settings().build_timeout > 0
