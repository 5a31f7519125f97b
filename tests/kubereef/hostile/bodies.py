"""Bodies that are no object, no object of their kind, or an odd one."""

import gzip
from collections.abc import Callable
from random import Random
from typing import Any

from tests.kubereef.hostile.aims import JSON, Aim, Attack
from tests.kubereef.hostile.surface import Operation
from tests.kubereef.hostile.values import anything, as_json, nested, of_right_type, of_wrong_type


def wrong_type(aim: Aim) -> Attack:
    """Put a value of another type at the next position of the schemas."""
    position = aim.position()
    value = of_wrong_type(position.schema.get("type"), aim.random)
    return _write("wrong type", aim, position.operation, aim.surface.with_value(position, value))


def strange_value(aim: Aim) -> Attack:
    """Put strange values of the right type at some positions of one kind."""
    random = aim.random
    position = random.choice(aim.surface.positions)
    value = of_right_type(position.schema.get("type"), random)
    return _write("strange value", aim, position.operation, aim.surface.with_value(position, value))


def mutated(aim: Aim) -> Attack:
    """Change a good object at places of its own."""
    random = aim.random
    operations = [*aim.surface.creations, *aim.surface.replacements]
    operation = random.choice(operations)
    body = aim.named(operation, aim.surface.example(operation))
    for _ in range(random.choice((1, 1, 2, 4))):
        mutate(body, random)
    return _write("mutated object", aim, operation, body)


def strange_metadata(aim: Aim) -> Attack:
    """Give a good object metadata that nobody has."""
    random = aim.random
    operation = random.choice(aim.surface.creations)
    body = aim.named(operation, aim.surface.example(operation))
    field = random.choice(list(_METADATA))
    body.setdefault("metadata", {})[field] = _METADATA[field](random)
    return _write("strange metadata", aim, operation, body)


def good(aim: Aim) -> Attack:
    """Send an object as it should be: the others need something to be hostile to."""
    operation = aim.random.choice(aim.surface.creations)
    body = aim.named(
        operation, aim.surface.example(operation), "" if aim.random.random() < 0.5 else aim.standing()
    )
    return _write("good object", aim, operation, body)


def broken_text(aim: Aim) -> Attack:
    """Send what is no text of the language that it says it is in."""
    random = aim.random
    operation = random.choice([*aim.surface.creations, *aim.surface.replacements])
    whole = as_json(aim.named(operation, aim.surface.example(operation)), random)
    media_type, body = random.choice(_BREAKS)(whole, random)
    return _sent("broken text", aim, operation, body, media_type)


def compressed(aim: Aim) -> Attack:
    """Send a body compressed, which is not offered; one in four would be a thousand times as long."""
    random = aim.random
    operation = random.choice(aim.surface.creations)
    whole = as_json(aim.named(operation, aim.surface.example(operation)))
    if random.random() < 0.25:
        whole = whole[:-1] + b" " * 3_000_000 + b"}"
    body = gzip.compress(whole, 1, mtime=0)
    coding = random.choice(("gzip", "deflate", "br", "zstd", "gzip, gzip", "identity", "x", ""))
    attack = _sent("compressed", aim, operation, body, JSON)
    return attack._replace(headers=(*attack.headers, ("Content-Encoding", coding)))


def mutate(container: Any, random: Random) -> None:
    """Change one place somewhere inside a value."""
    while True:
        steps = list(container if isinstance(container, dict) else range(len(container)))
        if not steps:
            if isinstance(container, dict):
                container["more"] = anything(random)
            else:
                container.append(anything(random))
            return
        step = random.choice(steps)
        if isinstance(container[step], dict | list) and random.random() < 0.8:
            container = container[step]
            continue
        match random.randrange(5):
            case 0 if isinstance(container, dict):
                del container[step]
            case 1 if isinstance(container, dict):
                container[random.choice(("more", "$patch", "", "\0", "x" * 300, "Name"))] = anything(random)
            case 1 | 2 if isinstance(container, list):
                container.append(container[step])
            case _:
                container[step] = anything(random)
        return


def _write(family: str, aim: Aim, operation: Operation, body: dict[str, Any]) -> Attack:
    aim.named(operation, body)
    return _sent(family, aim, operation, as_json(body, aim.random), JSON, _name_in(body))


def _sent(
    family: str, aim: Aim, operation: Operation, body: bytes, media_type: str, name: str = ""
) -> Attack:
    return Attack(family, operation.method, aim.path(operation, name), (("Content-Type", media_type),), body)


def _name_in(body: dict[str, Any]) -> str:
    """Return the name of an object if a path can have it, so that most writes get as far as they can."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and name.isascii() and len(name) < 300 else ""


def _texts(random: Random) -> list[Any]:
    return [anything(random) for _ in range(random.randrange(1, 4))]


def _owners(random: Random) -> list[dict[str, Any]]:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0-0-0-0", "controller": True}
    return [{**owner, random.choice(list(owner)): anything(random)} for _ in range(random.randrange(1, 4))]


def _managers(random: Random) -> list[dict[str, Any]]:
    manager: dict[str, Any] = {
        "manager": "somebody",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}},
    }
    absurd: Any = random.choice(
        (
            {"f:spec": nested(random.choice((10, 90, 400)))},
            {'k:{"name":': {}},
            {'k:{"name":"a"}': {".": {}}, "v:1": {}, "i:-1": {}, "f:": {}},
            {"x:y": {}, "": {}, ".": {".": {}}},
            {"f:data": {f"f:{number}": {} for number in range(500)}},
            {"v:{": {}, "k:[]": {}, "i:99999999999999999999": {}},
            [],
            "text",
            None,
        )
    )
    return [
        {**manager, "fieldsV1": absurd},
        {**manager, random.choice(list(manager)): anything(random)},
    ][: random.randrange(1, 3)]


_METADATA: dict[str, Callable[[Random], Any]] = {
    "name": anything,
    "generateName": anything,
    "namespace": anything,
    "uid": anything,
    "resourceVersion": anything,
    "creationTimestamp": anything,
    "deletionTimestamp": anything,
    "deletionGracePeriodSeconds": anything,
    "generation": anything,
    "selfLink": anything,
    "labels": lambda random: {str(anything(random)): anything(random)},
    "annotations": lambda random: {str(anything(random)): anything(random), "big": "x" * 100_000},
    "finalizers": _texts,
    "ownerReferences": _owners,
    "managedFields": _managers,
}


def _cut(whole: bytes, random: Random) -> tuple[str, bytes]:
    return JSON, whole[: random.randrange(len(whole))]


def _flipped(whole: bytes, random: Random) -> tuple[str, bytes]:
    damaged = bytearray(whole)
    for _ in range(random.randrange(1, 8)):
        damaged[random.randrange(len(damaged))] = random.randrange(256)
    return JSON, bytes(damaged)


def _odd_json(whole: bytes, random: Random) -> tuple[str, bytes]:
    value = random.choice(
        (
            b"NaN", b"-Infinity", b"1e999", b"-", b"01", b"1" * 5000, b"0." + b"1" * 5000, b"1e99999999999",
            b'"\\ud800"',
            b'"\\ud800\\u0041"', b'"\\x41"', b'"\x00"', b'"\xff\xfe"', b"'a'", b"{,}", b"[1,]", b"// no\n1",
            b"\xef\xbb\xbf1",
            b"[" * 100_000, b'{"a":' * 100_000, b"[" * 499 + b"]" * 499, b"[" * 990 + b"]" * 990, b"{" * 50,
            b"nul",
        )
    )  # fmt: skip
    frame = random.choice(
        (b"%b", b'{"metadata":{"name":"a","annotations":{"a":%b}}}', b'{"spec":%b}', b'{"x":%b}')
    )
    return JSON, frame.replace(b"%b", value)


def _repeated(whole: bytes, random: Random) -> tuple[str, bytes]:
    return JSON, b'{"metadata":{"name":"a"},"kind":"\\u0000",' * random.choice((1, 3)) + whole[1:]


def _odd_yaml(whole: bytes, random: Random) -> tuple[str, bytes]:
    doubling = b"a: &a [x,x]\n" + b"".join(
        b"%c: &%c [*%c,*%c]\n" % (98 + step, 98 + step, 97 + step, 97 + step) for step in range(24)
    )
    text = random.choice(
        (
            b"", b"---\n---\n", b"a: b: c", b"\t- a", b"- &a [*a]", b"a: *b",
            b"!!python/object/apply:os.system [id]",
            b"? {a: b}\n: c", b"%YAML 9.9\n--- a", b"a: !!binary '*'", b"a: |\n" + b" x\n" * 5000, b"\x00",
            b"\xff\xfe",
            b"[" * 5000, b"a: " * 500, b"{a: 0o777, b: 0x1F, c: 1_000, d: .inf, e: ~, f: 2026-01-01}",
            b"<<: {a: b}",
            doubling, whole.replace(b'"', b"'"), b"a: 1\na: 2", b"!!set {a, b}", b"1: 2\ntrue: 3\nnull: 4",
        )
    )  # fmt: skip
    return random.choice(("application/yaml", "application/yaml; charset=latin-9")), text


def _odd_protobuf(whole: bytes, random: Random) -> tuple[str, bytes]:
    identity = b"\x0a\x02v1\x12" + random.choice(
        (b"\x03Pod", b"\x09ConfigMap", b"\x04\xff\xfe\xfd\xfc", b"\xff\xff\xff\x7fX")
    )
    inside = random.choice(
        (
            random.randbytes(random.randrange(60)), b"\x0a" * 200, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x80" * 30, b"\x0b\x0c" * 20, b"\x0a\x03\x0a\x01\xff", b"\x12\x04\x0a\x02\x0a\x00", b"\x00\x00",
        )
    )  # fmt: skip
    length = random.choice((len(inside), len(inside) + 1, 127, 0))
    head = b"\x0a" + bytes([len(identity) % 128]) + identity + b"\x12" + bytes([length % 128])
    magic = random.choice((b"k8s\x00", b"k8s\x00", b"k8s\x00", b"k8s", b""))
    return "application/vnd.kubernetes.protobuf", magic + head + inside


def _cbor(whole: bytes, random: Random) -> tuple[str, bytes]:
    return random.choice(("application/cbor", "application/cbor-seq")), random.choice(
        (
            b"\xd9\xd9\xf7\xa0",
            b"\x9f" * 1000,
            b"\xbb" + b"\xff" * 8,
            b"\x5b\x7f" + b"\xff" * 7,
            b"\xc1\xfb\x7f\xf0" + b"\0" * 6,
        )
    )


_BREAKS = (
    _cut,
    _cut,
    _flipped,
    _flipped,
    _odd_json,
    _odd_json,
    _odd_json,
    _repeated,
    _odd_yaml,
    _odd_yaml,
    _odd_protobuf,
    _cbor,
)
