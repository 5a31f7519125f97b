"""Values that programs trip over."""

import json
from random import Random
from typing import Any

# Texts that look like something else, name what must not be named, or are none that anybody expects.
STRINGS = (
    "", " ", "\0", "a\0b", "\n", "\t", "\r\n", "\x7f", "\x1b[2J", "\ud800", "\udfff\ud800", "\ufeff",
    "\uffff", "\u202e",
    "é", "e\u0301", "ß", "İ", "ﬀ", "\U0001d54f", "👩‍👩‍👧‍👦", "²", "٣", "\uff11", "Ⅷ", "a" * 63, "a" * 64, "a" * 253,
    "a" * 254, "a." * 130,
    "x" * 20_000, "-a", "a-", ".", "..", "../../etc/passwd", "/", "//", "a/b", "a/b/c", "%2e%2e", "%00", "A",
    "_", "*",
    "null", "true", "~", "0", "-0", "00", "+1", " 1", "1 ", "1_000", "0x10", "0b1", "1e3", "1E400", "1e-400",
    "9" * 400,
    "NaN", "Infinity", "-inf", "1.", ".5", "1Ki", "1.5Gi", "1e9999999999", "9" * 30 + "Ei", "-1Ki", "1mm",
    "0.0000000001",
    "100%", "-5%", "101%", "1h", "1h" * 200, "-1ns", "9223372036854775808ns", "PT1H", "2026-02-30T00:00:00Z",
    "0000-00-00T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "9999-12-31T23:59:59+23:59",
    "99999-01-01T00:00:00Z", "2026-01-01T00:00:00.123456789123Z", "2026-01-01", "::1", "::ffff:1.2.3.4",
    "256.0.0.1",
    "010.0.0.1", "0.0.0.0", "10.0.0.0/33", "fe80::1%eth0", "1.2.3.4:80", "http://[::1", "*.example.com", "a..b",
    "$(HOME)", "$$(A)", "{{ .x }}", "${x}", "'; DROP TABLE objects; --", "(a+)+$", "[", "(?<x>", "\\",
    "\\u0000", '"', "{",
    "kube-system", "default", "system:masters", "system:", "k8s.io/x", "kubernetes.io/x",
    "node.kubernetes.io/not-ready",
    "foregroundDeletion", "orphan", "kubernetes", "v1", "apps/v1", "Pod", "YQ", "====", "a=b,c", "in (a)",
    "* * * * *",
)  # fmt: skip

NUMBERS: tuple[int | float, ...] = (
    0, -0.0, 1, -1, 2, 65535, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63),
    -(2**63) - 1, 2**64 - 1, 2**64, 10**30, 10**400, 0.1, 1.5, -1.5, 1e-320, 1e15, 1e16, 1e21, 1e308, 253402300800,
)  # fmt: skip


def nested(depth: int, *, in_list: bool = False) -> Any:
    """Return a value so deep."""
    value: Any = "bottom"
    for _ in range(depth):
        value = [value] if in_list else {"a": value}
    return value


def anything(random: Random) -> Any:
    """Return a value that hardly any field is meant to have."""
    match random.randrange(10):
        case 0 | 1 | 2 | 3:
            return random.choice(STRINGS)
        case 4 | 5 | 6:
            return random.choice(NUMBERS)
        case 7:
            return random.choice((None, True, False, [], {}, [None], [[]], [{}], {"": ""}, {"a": None}))
        case 8:
            return nested(random.choice((3, 30, 300)), in_list=random.random() < 0.5)
    return random.choice(
        (
            [random.choice(STRINGS) for _ in range(random.randrange(1, 6))],
            {random.choice(STRINGS): random.choice(STRINGS) for _ in range(3)},
            ["same"] * 50,
            [{"name": "same"}] * 3,
            {f"key-{number}": number for number in range(200)},
            {"$patch": "replace"},
            {"$ref": "#"},
        )
    )


def of_wrong_type(kind: str | None, random: Random) -> Any:
    """Return a value that is not of a type of JSON schemas; of one without a type, any that is neither."""
    choices: dict[str, tuple[Any, ...]] = {
        "string": (0, 1.5, True, [], {}, ["a"], {"a": "b"}),
        "integer": ("1", "", 1.5, 1e300, True, [], {}, 2**64, "²"),
        "number": ("1", True, [], {}, "NaN"),
        "boolean": ("true", 0, 1, [], {}, ""),
        "array": ({}, "a", 1, True, {"0": "a"}),
        "object": ([], "a", 1, True, [{}]),
    }
    return random.choice(choices.get(kind or "", ({}, [], True, 1.5, [{}])))


def of_right_type(kind: str | None, random: Random) -> Any:
    """Return a strange value that a field of some type might just take."""
    if kind == "string":
        return random.choice(STRINGS)
    if kind in ("integer", "number"):
        return random.choice(NUMBERS)
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "array":
        return [anything(random) for _ in range(random.randrange(4))]
    if kind == "object":
        return {random.choice(STRINGS): anything(random) for _ in range(random.randrange(4))}
    return random.choice((*STRINGS, *NUMBERS))


def as_json(value: object, random: Random | None = None) -> bytes:
    """Return a value as JSON text; half of a character, which UTF-8 cannot have, as its escape."""
    in_ascii = random is None or random.random() < 0.5
    return json.dumps(value, ensure_ascii=in_ascii).encode(errors="surrogatepass")
