"""From a recipe to what has to be on disk: layers to make and the image that they are."""

from pathlib import Path
from typing import NamedTuple

from kubereef.node.images.errors import NoRecipe
from kubereef.node.images.host import host_base, lacking
from kubereef.node.images.image import Bind
from kubereef.node.images.layers import Layer, PythonLayer, ToolsLayer, WheelLayer, layer_key
from kubereef.node.images.pythons import find_python
from kubereef.node.images.recipes import Recipe, asked_python
from kubereef.node.images.references import Reference
from kubereef.node.images.store import Record
from kubewire.quantity import Quantity

TOOLS = {file.stem: file for file in sorted(Path(__file__).with_name("tools").glob("[a-z]*.py"))}

_CALLED_BY_PATH = ("bash",)  # as /bin/bash, by scripts and by who starts Ray
_TOOLS_PYTHON = "/opt/python"  # for tools in images that bring no Python of their own


class Plan(NamedTuple):
    """An image that can be made: its layers, and what will be stored about it."""

    layers: tuple[Layer, ...]  # those to make; directories that a recipe names are only in the record
    record: Record
    needs: int  # bytes of free disk to start with


def plan_image(reference: Reference, recipe: Recipe, strict: bool = False, root: Path = Path("/")) -> Plan:
    """Return how to make an image on this machine; raise NoRecipe when it cannot be. Looks, and changes nothing."""
    layers: list[Layer] = []
    warnings = [recipe.warning] if recipe.warning else []
    if recipe.directory and not Path(recipe.directory).is_dir():
        raise NoRecipe(
            f"{recipe.directory}, which the recipe for {reference.familiar} names, is no directory"
        )
    if recipe.wheel is not None and _is_missing(recipe, root):
        layers.append(WheelLayer(recipe.wheel.package, recipe.wheel.files))
    interpreter = ""
    if recipe.python is not None:
        layer, warning = _python_layer(reference, recipe, strict)
        layers.append(layer)
        warnings += [warning] if warning else []
        interpreter = f"{layer.prefix}/bin/python3"
    layers += _tools(recipe, interpreter, root)
    binds: tuple[Bind, ...] = ()
    if recipe.base == "host":
        by_path = tuple(name for name in recipe.tools if name in _CALLED_BY_PATH)
        base = host_base(recipe.user, recipe.folders, root, lacking(by_path, root))
        layers.append(base)
        binds = base.binds
    directory = (str(Path(recipe.directory).resolve()),) if recipe.directory else ()
    if not directory and not layers:
        raise NoRecipe(
            f"the recipe for {reference.familiar} makes an empty image; give it a directory or a base"
        )
    record = Record(
        reference=str(reference),
        layers=(*directory, *map(layer_key, layers)),
        binds=binds,
        env=recipe.env,
        user=recipe.user,
        workdir=recipe.workdir,
        entrypoint=recipe.entrypoint,
        command=recipe.command,
        warnings=tuple(warnings),
    )
    return Plan(tuple(layers), record, Quantity.parse(recipe.needs).value())


def _is_missing(recipe: Recipe, root: Path) -> bool:
    """Whether the wheel's programs have to be brought: the machine's own are as good, if it has all of them."""
    assert recipe.wheel is not None
    names = tuple(path.rpartition("/")[2] for path in recipe.wheel.files.values())
    return recipe.base == "none" or bool(lacking(names, root))


def _python_layer(reference: Reference, recipe: Recipe, strict: bool) -> tuple[PythonLayer, str]:
    assert recipe.python is not None
    asked = asked_python(recipe)
    python = find_python(asked)
    warning = ""
    if asked and python.minor != asked:
        warning = (
            f"{reference.familiar}:{reference.tag} asks for Python {asked}; this machine has {python.version}"
        )
        if strict:
            raise NoRecipe(f"{warning}; install python{asked}, or allow another Python (images are strict)")
        warning += ", which is used instead"
    part = recipe.python
    user = recipe.user
    layer = PythonLayer(
        python,
        prefix=part.prefix,
        packages=part.packages,
        constraints=part.constraints,
        imports=part.imports,
        owner=(user.uid, user.gid),
        home=user.home,
    )
    return layer, warning


def _tools(recipe: Recipe, interpreter: str, root: Path) -> list[Layer]:
    wanted = lacking(recipe.tools, root) if recipe.base == "host" else recipe.tools
    if not wanted:
        return []
    if "bash" in wanted:
        wanted += lacking(("sh",), root)  # which does its work
    if unknown := sorted(set(wanted) - set(TOOLS)):
        raise NoRecipe(f"this machine lacks {', '.join(unknown)}, which {recipe.image} needs; install it")
    programs = {name: TOOLS[name].read_text() for name in wanted}
    if interpreter:
        return [ToolsLayer(interpreter, programs)]
    return [ToolsLayer(f"{_TOOLS_PYTHON}/bin/python3", programs), PythonLayer(find_python(), _TOOLS_PYTHON)]
