"""What a real API server has stored is left as it is: the answers of kube-apiserver 1.36 hold nothing to change."""

import json
import re
from pathlib import Path

import pytest

from kubewire import builtin, gotypes

ANSWERS = Path(__file__).parents[2] / "data" / "conformance"

DEFINITIONS = {
    (kind["group"], kind["version"], kind["kind"]): name
    for name, definition in builtin.definitions().items()
    for kind in definition.get("x-kubernetes-group-version-kind", ())
}

# Tests compare by these what changes from run to run; an object needs a value that fits the field.
REAL_VALUES = (
    (re.compile(r"<time(\+\d+s)?>"), "2026-01-01T00:00:00Z"),
    (re.compile(r"<microtime>"), "2026-01-01T00:00:00.123456Z"),
)


def filled_in(value):
    if isinstance(value, dict):
        return {filled_in(key): filled_in(item) for key, item in value.items()}
    if isinstance(value, list):
        return [filled_in(item) for item in value]
    if not isinstance(value, str):
        return value
    if port := re.fullmatch(r"<port:(\d+)>", value):
        return 30000 + int(port[1])
    for placeholder, real in REAL_VALUES:
        value = placeholder.sub(real, value)
    return value


def stored_objects(value):
    """Yield every object of a built-in kind within an answer, with its definition."""
    if isinstance(value, list):
        for item in value:
            yield from stored_objects(item)
    elif isinstance(value, dict):
        group, _, version = str(value.get("apiVersion", "")).rpartition("/")
        definition = DEFINITIONS.get((group, version, value.get("kind")), "")
        # The captured answers leave a few fields of a TokenRequest out, and a Status is no stored object.
        left_out = value.get("kind") in ("Status", "TokenRequest")
        if gotypes.is_known(definition) and "metadata" in value and not left_out:
            yield definition, value
        else:
            for item in value.values():
                yield from stored_objects(item)


def captured(path):
    for step in json.loads(path.read_text())["steps"]:
        if step.get("status", 200) in (200, 201):
            yield from stored_objects(filled_in([step.get("body"), step.get("events")]))


@pytest.mark.parametrize(
    "path", sorted(ANSWERS.glob("*/*.answers.json")), ids=lambda path: path.parent.name + "/" + path.stem
)
def test_reading_a_stored_object_changes_nothing(path):
    for definition, obj in captured(path):
        before = json.dumps(obj, sort_keys=True)
        assert gotypes.read(definition, obj) == []
        assert json.dumps(obj, sort_keys=True) == before


def test_the_answers_hold_enough_objects_to_mean_something():
    found = [pair for path in ANSWERS.glob("*/*.answers.json") for pair in captured(path)]
    assert len(found) > 150
    assert len({definition for definition, _ in found}) > 15
