"""Which references have recipes, which are refused and how, and recipes that users add."""

import re
from pathlib import Path

import pytest

from kubereef.node.images import BadRecipe, parse_reference
from kubereef.node.images.errors import NoRecipe
from kubereef.node.images.recipes import asked_python, read_catalogue, read_recipes

REPOSITORY = Path(__file__).parents[4]


def find(name, folder=None):
    return read_catalogue(folder).find(parse_reference(name))


@pytest.mark.parametrize(
    "name", ["rayproject/ray:2.52.0", "docker.io/rayproject/ray:2.52.0", "rayproject/ray:2.52.0-cpu"]
)
def test_a_ray_release_is_a_python_with_that_ray(name):
    recipe = find(name)
    assert recipe.python is not None
    assert "ray[default,serve]==2.52.0" in recipe.python.packages
    assert (recipe.user.name, recipe.user.uid, recipe.user.gid, recipe.user.home) == (
        "ray",
        1000,
        100,
        "/home/ray",
    )
    assert asked_python(recipe) == ""


def test_a_dashboard_of_ray_may_take_its_time_on_a_machine_that_is_shared():
    assert int(find("rayproject/ray:2.52.0").env["RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT"]) > 30


@pytest.mark.parametrize(
    ("name", "python"),
    [
        ("rayproject/ray:2.52.0-py310", "3.10"),
        ("rayproject/ray:2.52.0-py39-cpu", "3.9"),
        ("python:3.12-slim", "3.12"),
        ("python:3.12.4-bookworm", "3.12"),
        ("python", ""),
    ],
)
def test_a_tag_may_ask_for_a_python(name, python):
    assert asked_python(find(name)) == python


@pytest.mark.parametrize(
    "name", ["redis", "redis:7.4.0", "redis:7-alpine", "busybox", "busybox:1.36", "python:3.11"]
)
def test_common_images_have_recipes(name):
    assert find(name).command


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        pytest.param("rayproject/ray:2.52.0-gpu", "use the plain tag", id="a GPU image"),
        pytest.param("rayproject/ray:2.52.0-py311-cu121", "use the plain tag", id="a CUDA image"),
        pytest.param("rayproject/ray:nightly", "name a release", id="nightly"),
        pytest.param("rayproject/ray:nightly-py311", "name a release", id="nightly for a Python"),
        pytest.param("rayproject/ray", "name a release", id="no tag"),
        pytest.param("rayproject/ray:two", "VERSION", id="a tag that never was"),
        pytest.param("rayproject/ray-ml:2.9.0", "use rayproject/ray", id="ray-ml"),
        pytest.param("python:3.11-alpine", "python:3.11-slim", id="Python on Alpine"),
        pytest.param("fluent/fluent-bit:3.2.2", "write a recipe", id="a program that no package brings"),
        pytest.param("nginx", "add a recipe for it", id="an image nobody thought of"),
        pytest.param("quay.io/rayproject/ray:2.52.0", "add a recipe for it", id="another registry"),
    ],
)
def test_what_cannot_be_had_names_the_way_out(name, way_out):
    with pytest.raises(NoRecipe, match=re.escape(way_out)) as refusal:
        find(name)
    assert refusal.value.reason == "ErrImagePull"


def test_every_image_of_the_reference_samples_has_a_recipe_or_a_refusal(reference):
    names = set()
    for sample in (reference / "samples").rglob("*.yaml"):
        names |= set(re.findall(r"""^\s*(?:- )?image: *["']?([^\s"'#]+)""", sample.read_text(), re.MULTILINE))
    assert "rayproject/ray:2.52.0" in names
    refused = set()
    for name in names:
        try:
            find(name)
        except NoRecipe:
            refused.add(name.partition(":")[0])
    assert refused <= {"fluent/fluent-bit", "my-repo/my-custom-autoscaler-image"}


def test_recipes_of_a_folder_come_first(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        'recipes: [{image: rayproject/ray, tag: "nightly.*", same-as: "rayproject/ray:2.60.0"}]'
    )
    recipe = find("rayproject/ray:nightly", tmp_path)
    assert recipe.python is not None
    assert "ray[default,serve]==2.60.0" in recipe.python.packages


def test_named_groups_of_the_tag_are_variables(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "recipes:\n- image: team/app\n  tag: 'v(?P<number>\\d+)'\n  env: {NUMBER: '{number}', TAG: '{tag}'}\n"
    )
    assert find("team/app:v12", tmp_path).env == {"NUMBER": "12", "TAG": "v12"}
    with pytest.raises(NoRecipe):
        find("team/app:v12-x", tmp_path)


def test_a_directory_is_read_from_where_the_recipe_is(tmp_path):
    (tmp_path / "mine.yaml").write_text("recipes: [{image: team/app, directory: roots/app, base: none}]")
    assert find("team/app", tmp_path).directory == str(tmp_path / "roots/app")


def test_the_recipes_that_the_manual_shows_are_right(tmp_path):
    manual = (REPOSITORY / "docs" / "kubereef.md").read_text()
    (shown,) = (block for block in re.findall(r"```yaml\n(.*?)```", manual, re.DOTALL) if "recipes:" in block)
    (tmp_path / "mine.yaml").write_text(shown)
    catalogue = read_catalogue(tmp_path)
    nightly = catalogue.find(parse_reference("rayproject/ray:nightly-py311"))
    assert nightly.python is not None
    assert "ray[default,serve]==2.52.0" in nightly.python.packages
    app = catalogue.find(parse_reference("registry.example.com/team/app:1.2"))
    assert app.python is not None
    assert app.python.packages == ("team-app==1.2",)
    assert catalogue.find(parse_reference("registry.example.com/team/tools")).directory == "/srv/tools-root"


def test_recipes_that_lead_in_a_circle_are_refused(tmp_path):
    (tmp_path / "mine.yaml").write_text("recipes: [{image: a, same-as: b}, {image: b, same-as: a}]")
    with pytest.raises(NoRecipe, match="without an end"):
        find("a", tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("recipes: [{image: a, tga: x}]", "tga", id="an unknown field"),
        pytest.param("recipes: [{image: A B}]", "image", id="a name that is none"),
        pytest.param("recipes: [{image: a, tag: '('}]", "regular expression", id="a tag that is no pattern"),
        pytest.param(
            "recipes: [{image: a, env: {X: '{version}'}}]", r"\(\?P<version>", id="an unknown variable"
        ),
        pytest.param("recipes: [{image: a, workdir: x}]", "absolute path", id="a relative path"),
        pytest.param(
            "recipes: [{image: a, folders: [/x/../../y]}]", "absolute path", id="a path that climbs"
        ),
        pytest.param(
            "recipes: [{image: a, folders: [/usr/lib/x]}]", "hidden by the machine", id="a hidden path"
        ),
        pytest.param("recipes: [{image: a, needs: much}]", "needs", id="a quantity that is none"),
        pytest.param("recipes: {", "line", id="broken YAML"),
        pytest.param("[]", "object", id="another shape"),
    ],
)
def test_a_wrong_recipe_file_names_file_and_field(tmp_path, text, why):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(BadRecipe, match=why) as wrong:
        read_recipes(file)
    assert str(wrong.value).startswith(str(file))
