"""Definitions of custom resources that are hostile to whoever reads them, and objects of those that were accepted."""

from random import Random
from typing import Any

from tests.kubereef.hostile.aims import JSON, Aim, Attack
from tests.kubereef.hostile.bodies import mutate
from tests.kubereef.hostile.values import STRINGS, anything, as_json, nested

_DEFINITION = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
_RULES = (
    "", "true", "self", "self.a", "self.a == 'x'", "1/0 == 1", "self.a.matches('(a+)+$')",
    "self.a.matches('[')", "(" * 300,
    "self.all(x, self.all(y, self.all(z, true)))", "'" + "a" * 5000 + "' == self.a", "!" * 500 + "true",
    "a.b.c", "oldSelf == self",
    "[1,2,3].map(x, [1,2,3].map(y, [1,2,3].map(z, x*y*z))).size() > 0", "9223372036854775807 + 1 > 0",
    "self.a.size() < 1e400",
    "'%s'.format([self])", "self.a.find('(x*)*y') == ''", "quantity('1e999999999').isInteger()",
    "duration('999999999999h') > duration('1s')",
    "timestamp('0000-00-00T00:00:00Z') < now",
    "self.a.replace('', 'xxxxxxxx').replace('', 'xxxxxxxx').size() > 0", "\0", "\ud800", "true //",
    "self.b.map(x, self.b.map(y, x + y)).size() > 0", "url('http://[').getHost() == ''",
    "self.b.sum() > 9223372036854775807",
    "optional.of(self).hasValue()", "has(self.a) && has(self['b'])", "self.a in self.b ? true : false",
    "true" + " || true" * 2000,
)  # fmt: skip
_PATTERNS = (
    "(a+)+$",
    "[",
    "a{1000000}",
    "(a{1,1000}){1,1000}",
    "(?=a)",
    "\\1",
    "(?P<a>.)",
    "\\p{L}*",
    ".*" * 500,
    "(" * 2000,
    "[^\\x00-\\x7f]",
)

_JSON_PATHS = (
    ".spec.a", ".spec[", ".spec..a", ".spec.b[*].x", "{.a}", "." * 500, ".spec.a[?(@.b==1)]", "",
)  # fmt: skip


def hostile_definition(aim: Aim) -> Attack:
    random = aim.random
    operation = next(one for one in aim.surface.creations if one.definition == _DEFINITION)
    body = aim.named(operation, aim.surface.example(operation))
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"a": _schema(random), "b": _schema(random)}}
        },
    }
    spec = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    if random.random() < 0.6:
        spec["x-kubernetes-validations"] = [_rule(random) for _ in range(random.choice((1, 1, 3)))]
    if random.random() < 0.4:
        _odd_version(body["spec"], random)
    if random.random() < 0.3:
        mutate(body["spec"], random)
    method, path = "POST", operation.path
    if random.random() < 0.3:
        method, path = "PUT", f"{operation.path}/{body['metadata']['name']}"
    return Attack("definitions", method, path, (("Content-Type", JSON),), as_json(body, random))


def custom_object(aim: Aim) -> Attack:
    """Send something to a kind that a hostile definition may have made."""
    random = aim.random
    number = random.randrange(3)
    path = f"/apis/{aim.prefix}.example.com/v1/namespaces/{aim.namespace}/things-{number}"
    body: dict[str, Any] = {
        "apiVersion": f"{aim.prefix}.example.com/v1",
        "kind": f"Things{number}",
        "metadata": {"name": aim.name()},
        "spec": {"a": anything(random), "b": anything(random)},
    }
    match random.randrange(4):
        case 0:
            return Attack(
                "custom objects", "GET", path, (("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),)
            )
        case 1:
            query = "?fieldManager=hostile&force=true"
            media = (("Content-Type", "application/apply-patch+yaml"),)
            return Attack(
                "custom objects", "PATCH", f"{path}/{body['metadata']['name']}{query}", media, as_json(body)
            )
    return Attack("custom objects", "POST", path, (("Content-Type", JSON),), as_json(body, random))


def _schema(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": random.choice(
            ("string", "string", "array", "object", "integer", "number", "boolean", "null", "", "x")
        )
    }
    if found["type"] == "array":
        found["items"] = random.choice(
            ({"type": "string"}, {"type": "array", "items": {"type": "object"}}, {}, [{}])
        )
    for _ in range(random.randrange(3)):
        keywords = _keywords(random)
        field = random.choice(list(keywords))
        found[field] = keywords[field]
    return found


def _keywords(random: Random) -> dict[str, Any]:
    """Return a value for each keyword that a schema may have."""
    return {
        "pattern": random.choice(_PATTERNS),
        "format": random.choice(("int32", "date-time", "byte", "cidr", "x", "", "uuid", "duration")),
        "enum": random.choice(([], [None], [1, 1], ["a"] * 500, [{}], [nested(50)])),
        "default": anything(random),
        "maximum": random.choice((1e308, -1, 10**30, "1")),
        "multipleOf": random.choice((0, -1, 1e-320, 1)),
        "maxLength": random.choice((-1, 0, 2**63, 2**64, 1.5)),
        "maxItems": random.choice((-1, 0, 2**63, 10**9)),
        "uniqueItems": True,
        "nullable": True,
        "x-kubernetes-list-type": random.choice(("map", "set", "atomic", "x", "")),
        "x-kubernetes-list-map-keys": random.choice(([], ["a"], ["a", "a"], [""], [1])),
        "x-kubernetes-map-type": random.choice(("granular", "atomic", "x")),
        "x-kubernetes-int-or-string": True,
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": random.choice((True, False, None)),
        "x-kubernetes-validations": [_rule(random)],
        "additionalProperties": random.choice((True, False, {}, {"type": "string"})),
        "properties": random.choice(
            ({"a": {"type": "string"}}, {"": {}}, {random.choice(STRINGS): {"type": "string"}})
        ),
        "required": random.choice((["a"], ["a", "a"], [""], [None])),
        "allOf": [nested(20)],
        "oneOf": [{"required": ["a"]}] * 100,
        "not": {"type": "string"},
        "$ref": "#/definitions/x",
        "minLength": 10**12,
    }


def _rule(random: Random) -> Any:
    rule: dict[str, Any] = {
        "rule": random.choice(_RULES),
        "message": random.choice(("no", "", "\n", "x" * 3000)),
    }
    if random.random() < 0.3:
        rule["messageExpression"] = random.choice(("'a' + self.a", "1", "", "self", "'x'.replace('', 'xx')"))
    if random.random() < 0.3:
        rule["fieldPath"] = random.choice((".a", "a", ".a[0]", ".['a']", "", ".\0"))
    if random.random() < 0.3:
        rule[random.choice(("reason", "optionalOldSelf", "unknown"))] = anything(random)
    return rule


def _odd_version(spec: dict[str, Any], random: Random) -> None:
    version = spec["versions"][0]
    match random.randrange(7):
        case 0:
            spec["versions"].append({**version, "name": random.choice(("v1", "v2", "V2", "v" * 70, ""))})
        case 1:
            version["additionalPrinterColumns"] = [
                {
                    "name": random.choice(STRINGS),
                    "type": random.choice(("string", "date", "integer", "x")),
                    "jsonPath": random.choice(_JSON_PATHS),
                }
            ]
        case 2:
            version["subresources"] = random.choice(
                (
                    {"status": {}},
                    {"scale": {}},
                    {"status": None},
                    {"scale": {"specReplicasPath": ".spec.a[0]", "statusReplicasPath": "x"}},
                )
            )
        case 3:
            version["selectableFields"] = [
                {"jsonPath": random.choice((".spec.a", ".spec.b", "", ".x", "["))}
            ] * random.randrange(1, 10)
        case 4:
            spec["conversion"] = random.choice(
                (
                    {"strategy": "Webhook"},
                    {"strategy": "None"},
                    {"strategy": "x"},
                    {},
                    {"strategy": "Webhook", "webhook": {}},
                )
            )
        case 5:
            spec["names"]["shortNames"] = [random.choice(STRINGS) for _ in range(3)]
        case _:
            version[random.choice(("served", "storage"))] = False
