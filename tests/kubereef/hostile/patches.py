"""Patches in all four languages that make no sense, or too much of it."""

import json
from random import Random
from typing import Any

from tests.kubereef.hostile.aims import Aim, Attack
from tests.kubereef.hostile.bodies import mutate
from tests.kubereef.hostile.surface import Operation
from tests.kubereef.hostile.values import STRINGS, anything, as_json, of_wrong_type

_JSON_PATCH = "application/json-patch+json"
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"

_POINTERS = (
    "", "/", "/metadata", "/metadata/name", "/metadata/labels", "/metadata/labels/-", "/metadata/managedFields",
    "/metadata/managedFields/0", "/metadata/resourceVersion", "/metadata/finalizers/-", "/spec", "/spec/-",
    "/spec/containers/0", "/spec/containers/-", "/spec/containers/00", "/spec/containers/-1", "/spec/containers/9" * 3,
    "/spec/containers/18446744073709551616", "/kind", "/apiVersion", "/data/a~1b", "/data/~", "/data/~2", "no slash",
    "/status/phase", "/" + "a/" * 600, "/metadata/ownerReferences", "/metadata/annotations/²",
)  # fmt: skip


def json_patch(aim: Aim) -> Attack:
    random = aim.random
    operations = [_step(random) for _ in range(random.choice((0, 1, 1, 2, 5)))]
    if random.random() < 0.04:
        # Each copy doubles what there is.
        operations = [{"op": "copy", "from": "/metadata", "path": f"/metadata/x{n}"} for n in range(40)]
    if random.random() < 0.02:
        operations = [{"op": "test", "path": "/metadata", "value": {}}] * 20_000
    value: Any = random.choice((operations, operations, operations, operations, anything(random)))
    return _patch("JSON patch", aim, _JSON_PATCH, as_json(value, random))


def merge_patch(aim: Aim) -> Attack:
    return _patch("merge patch", aim, _MERGE, as_json(_fragment(aim), aim.random))


def strategic_patch(aim: Aim) -> Attack:
    random = aim.random
    value = _fragment(aim)
    if isinstance(value, dict) and random.random() < 0.6:
        place = random.choice([value, *[one for one in value.values() if isinstance(one, dict)]])
        place.update(random.choice(_directives(random)))
    return _patch("strategic patch", aim, _STRATEGIC, as_json(value, random))


def apply_patch(aim: Aim) -> Attack:
    """Apply a configuration that is odd, or says odd things of who manages what."""
    random = aim.random
    operation = random.choice(aim.surface.patches)
    value = _whole(aim, operation)
    if isinstance(value, dict):
        for _ in range(random.randrange(3)):
            mutate(value, random)
    manager = random.choice(
        ("hostile", "hostile", "kubectl", "", "x" * 129, "%00", "%ff", "a%20b", "%F0%9F%92%A9")
    )
    query = [f"fieldManager={manager}", f"force={random.choice(('true', 'false', '', '2', 'TRUE'))}"]
    if random.random() < 0.2:
        query = query[1:]
    return Attack(
        "apply",
        "PATCH",
        f"{aim.path(operation)}?{'&'.join(query)}",
        (("Content-Type", _APPLY),),
        as_json(value, random) if random.random() < 0.8 else _block(value),
    )


def broken_patch(aim: Aim) -> Attack:
    """Send what is no text in the language of the patch, or no language of patches."""
    random = aim.random
    media_type = random.choice(
        (_JSON_PATCH, _MERGE, _STRATEGIC, _APPLY, "application/json", "application/json-patch+yaml", "", "text/plain",
         "application/apply-patch+cbor", "application/merge-patch+json; charset=\0x", "APPLICATION/MERGE-PATCH+JSON")
    )  # fmt: skip
    body = random.choice(
        (
            b"",
            b"null",
            b"[]",
            b"{}",
            b"[",
            b'"a"',
            b"1",
            b"\xff",
            b"a: b",
            b"- a",
            b"[null]",
            b"[[]]",
            b"{" * 2000,
        )
    )
    return _patch("broken patch", aim, media_type.replace("\0", ""), body)


def _patch(family: str, aim: Aim, media_type: str, body: bytes) -> Attack:
    operation = aim.random.choice(aim.surface.patches)
    query = aim.random.choice(("", "", "", "?fieldValidation=Strict", "?fieldManager=hostile", "?dryRun=All"))
    return Attack(family, "PATCH", aim.path(operation) + query, (("Content-Type", media_type),), body)


def _step(random: Random) -> Any:
    step: dict[str, Any] = {
        "op": random.choice(("add", "add", "remove", "replace", "copy", "move", "test", "", "ADD", None)),
        "path": random.choice(_POINTERS),
        "value": anything(random),
        "from": random.choice(_POINTERS),
    }
    if random.random() < 0.2:
        step[random.choice(list(step))] = anything(random)
    if random.random() < 0.2:
        del step[random.choice(list(step))]
    return step if random.random() < 0.97 else anything(random)


def _fragment(aim: Aim) -> Any:
    """Return a patch: something at a position of the schemas, or anything at all."""
    random = aim.random
    position = random.choice(aim.surface.positions)
    match random.randrange(6):
        case 0:
            return anything(random)
        case 1:
            return {
                "metadata": {random.choice(("labels", "annotations", "finalizers", "name")): anything(random)}
            }
        case 2:
            value = of_wrong_type(position.schema.get("type"), random)
        case _:
            value = anything(random)
    for step in reversed(position.path):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def _whole(aim: Aim, operation: Operation) -> Any:
    similar = [one for one in aim.surface.creations if one.kind == operation.kind]
    if not similar or aim.random.random() < 0.1:
        return anything(aim.random)
    value = aim.surface.example(similar[0])
    path = operation.path.split("/")
    version = "v1" if path[1] == "api" else "/".join(path[2:4])
    return {"apiVersion": version, "kind": operation.kind, **value}


def _directives(random: Random) -> list[dict[str, Any]]:
    return [
        {"$patch": random.choice(("replace", "delete", "merge", "", "nonsense", None, 1))},
        {"$retainKeys": random.choice((["a"], [], "a", [1], None, {}))},
        {
            "$setElementOrder/containers": random.choice(
                ([{"name": "main"}], [{}], "a", [[]], [{"name": 1}], None)
            )
        },
        {"$setElementOrder/finalizers": random.choice((["a", "a"], [None], "a", {}))},
        {"$deleteFromPrimitiveList/finalizers": random.choice((["a"], "a", [{}], None))},
        {f"$setElementOrder/{random.choice(STRINGS)}": []},
        {"$unknown": {}},
    ]


def _block(value: object) -> bytes:
    """Return a mapping as YAML whose values are JSON, which YAML can read."""
    if not isinstance(value, dict):
        return json.dumps(value).encode()
    return "\n".join(f"{json.dumps(key)}: {json.dumps(held)}" for key, held in value.items()).encode()
