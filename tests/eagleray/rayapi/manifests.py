"""Hypothesis strategies for Ray objects: built from the schemas, and made from our examples by small changes."""

import copy
from pathlib import Path

from hypothesis import strategies as st

from eagleray.rayapi.kinds import KINDS
from eagleray.rayapi.schemas import definition, openapi_of
from kubewire.yamltext import load_all

EXAMPLES = [
    document.value
    for file in sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
    for document in load_all(file.read_text())
    if isinstance(document.value, dict) and document.value["apiVersion"].startswith("ray.io/")
]

VERSIONS = [version for kind in KINDS for version in kind.versions]

_TEXTS = st.sampled_from(
    ["", "a", "small", "ray.io/cluster", "v2", "2.52.0", "Never", "token", "1Gi", "*/5 * * * *"]
) | st.text(max_size=8)
_NUMBERS = st.sampled_from([0, 1, -1, 5, 2**31 - 1]) | st.integers(-(2**31), 2**31 - 1)
ANYTHING = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)


def values_of(node, depth=0):
    """Values that a schema node allows, apart from its CEL rules; optional fields come and go."""
    while "$ref" in node:
        node = definition(node["$ref"].removeprefix("#/definitions/"))
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if node.get("x-kubernetes-int-or-string"):
        return st.sampled_from([1, "1", "500m", "2Gi"])
    return _BUILDERS.get(node.get("type"), _free)(node, depth)


def _free(node, depth):
    return ANYTHING


def _text(node, depth):
    if node.get("format") == "date-time":
        return st.just("2026-01-02T03:04:05Z")
    if "pattern" in node:
        return st.just("Reason")
    return _TEXTS.filter(lambda text: len(text) >= node.get("minLength", 0))


def _integer(node, depth):
    return _NUMBERS.filter(lambda number: number >= node.get("minimum", number))


def _array(node, depth):
    items = values_of(node["items"], depth + 1)
    least = node.get("minItems", 0)
    # Lists with keys must not repeat one, so they have at most one entry here.
    return st.lists(items, min_size=least, max_size=max(least, 1 if "x-kubernetes-list-type" in node else 2))


def _mapping(node, depth):
    properties, required = node.get("properties", {}), sorted(node.get("required", ()))
    if not properties:
        extra = node.get("additionalProperties")
        values = values_of(extra, depth + 1) if isinstance(extra, dict) else ANYTHING
        return st.dictionaries(_TEXTS.filter(bool), values, max_size=2)
    must = {name: values_of(properties[name], depth + 1) for name in required}
    optional = sorted(set(properties) - set(required))
    if depth > 6 or not optional:
        return st.fixed_dictionaries(must)

    def chosen(names):
        may = {name: values_of(properties[name], depth + 1) for name in names}
        return st.fixed_dictionaries({**must, **may})

    return st.lists(st.sampled_from(optional), max_size=3, unique=True).flatmap(chosen)


_BUILDERS = {
    "string": _text,
    "integer": _integer,
    "number": lambda node, depth: st.floats(0, 100),
    "boolean": lambda node, depth: st.booleans(),
    "array": _array,
    "object": _mapping,
}


@st.composite
def built_objects(draw):
    """Objects made from nothing but a schema; most break some rule."""
    version = draw(st.sampled_from(VERSIONS))
    obj = draw(values_of({**openapi_of(version), "required": ["spec"]}))
    return {**obj, "apiVersion": version.api_version, "kind": version.kind, "metadata": {"name": "built"}}


@st.composite
def harmless_changes(draw):
    """Our examples with changes that leave them valid."""
    obj = copy.deepcopy(draw(st.sampled_from(EXAMPLES)))
    words = st.text(alphabet="abcdefghij", min_size=1, max_size=8)
    obj["metadata"]["labels"] = draw(st.dictionaries(words, words, max_size=3))
    obj["metadata"]["annotations"] = draw(st.dictionaries(words, st.text(max_size=10), max_size=3))
    obj["metadata"]["name"] = draw(words)
    for group in _groups(obj):
        group["maxReplicas"] = draw(st.integers(5, 20))
        group["minReplicas"] = draw(st.integers(0, 3))
        group["replicas"] = draw(st.integers(3, 5))
        group["template"]["spec"]["containers"][0]["env"] = [
            {"name": draw(words).upper(), "value": draw(_TEXTS)}
        ]
    return obj


@st.composite
def damaged_objects(draw):
    """Our examples with one value removed or replaced by anything."""
    obj = copy.deepcopy(draw(st.sampled_from(EXAMPLES)))
    holder, key = draw(st.sampled_from(list(_places(obj))))
    if draw(st.booleans()):
        holder[key] = draw(ANYTHING)
    else:
        del holder[key]
    return obj


def _groups(obj):
    spec = obj["spec"]
    cluster = spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec
    return cluster.get("workerGroupSpecs", [])


def _places(value):
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(entries):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)
