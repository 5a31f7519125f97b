"""A definition that makes no sense is refused, with every reason and its place."""

import pytest

from kubereef.kinds.behaviours.definitions.internal import printed_versions
from kubewire import errors
from tests.kubereef.custom.examples import DEFINITIONS, definition, version

LABEL = "a DNS-1035 label must consist of"


def _with(change):
    made = definition()
    change(made["spec"])
    return made


def _column(**column):
    return _with(lambda spec: spec["versions"][0].update(additionalPrinterColumns=[column]))


def _scale(**paths):
    return _with(lambda spec: spec["versions"][0].update(subresources={"scale": paths}))


@pytest.mark.parametrize(
    ("wrong", "problems"),
    [
        pytest.param(
            definition(group="nodots"),
            ['spec.group: Invalid value: "nodots": should be a domain with at least one dot'],
            id="a group without a dot",
        ),
        pytest.param(
            _with(lambda spec: spec.update(scope="Galaxy")),
            ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
            id="a scope that does not exist",
        ),
        pytest.param(
            _with(lambda spec: spec["names"].update(listKind="Box")),
            ['spec.names.listKind: Invalid value: "Box": kind and listKind may not be the same'],
            id="a list that cannot be told from its items",
        ),
        pytest.param(
            _with(lambda spec: spec["versions"][0].pop("schema")),
            ["spec.versions[0].schema.openAPIV3Schema: Required value"],
            id="no schema",
        ),
        pytest.param(
            _with(lambda spec: spec["versions"][0].update(deprecationWarning="old")),
            [
                'spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'
            ],
            id="a warning of a version that is not deprecated",
        ),
        pytest.param(
            _column(name="X", type="color", jsonPath="spec"),
            [
                (
                    'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path'
                    " starting with ."
                ),
                (
                    'spec.additionalPrinterColumns[0].type: Invalid value: "color": must be one of'
                    " boolean,date,integer,number,string"
                ),
            ],
            id="a column of no type",
        ),
        pytest.param(
            _scale(specReplicasPath=".status.x", statusReplicasPath=".spec.y"),
            [
                (
                    'spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under'
                    " .spec"
                ),
                (
                    'spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.y": should be a json path under'
                    " .status"
                ),
            ],
            id="a scale that is in the wrong place",
        ),
        pytest.param(
            _with(lambda spec: spec["versions"][0].update(selectableFields=[{"jsonPath": ".spec"}])),
            [
                (
                    'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string,'
                    " boolean or integer. Enum string fields and strings with formats are allowed."
                )
            ],
            id="a selectable field that is an object",
        ),
        pytest.param(
            _with(
                lambda spec: spec["versions"][0].update(
                    selectableFields=[{"jsonPath": ".spec.a"}],
                    schema={
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"a": {"$ref": "#/definitions/x"}}}
                            },
                        }
                    },
                )
            ),
            [
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].$ref: Forbidden: $ref is not supported"
            ],
            id="a selectable field of a schema that refers to another",
        ),
        pytest.param(
            _with(lambda spec: spec.update(conversion={"strategy": "Webhook"})),
            [
                "spec.conversion.conversionReviewVersions: Required value",
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            ],
            id="a conversion by nobody",
        ),
        pytest.param(
            definition(group="x.k8s.io"),
            [
                (
                    "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have"
                    ' approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
                )
            ],
            id="a protected group without approval",
        ),
        pytest.param(
            _with(
                lambda spec: spec["versions"][0].update(
                    subresources={"status": {}},
                    schema={"openAPIV3Schema": {"type": "object", "nullable": True}},
                )
            ),
            [
                "spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root",
            ],
            id="a root that may be null",
        ),
    ],
)
async def test_a_definition_is_refused(client, wrong, problems):
    with pytest.raises(errors.Invalid) as refused:
        await client.create(DEFINITIONS, wrong)
    found = [f"{cause.field}: {cause.message}" for cause in refused.value.causes]
    for problem in problems:
        assert problem in found


async def test_beside_a_status_of_its_own_a_root_may_not_say_what_would_concern_the_status(client):
    wanted = _with(
        lambda spec: spec["versions"][0].update(
            subresources={"status": {}},
            schema={"openAPIV3Schema": {"type": "object", "maxProperties": 5}},
        )
    )
    with pytest.raises(errors.Invalid) as refused:
        await client.create(DEFINITIONS, wanted)
    (cause,) = refused.value.causes
    assert cause.field == "spec.validation.openAPIV3Schema"
    assert '"MaxProperties":5' in cause.message
    assert cause.message.endswith(
        "fields are allowed at the root of the schema if the status subresource is enabled"
    )


async def test_different_schemas_are_judged_where_they_stand(client):
    bad = version("v2", storage=False, spec={"type": "nonsense"})
    with pytest.raises(errors.Invalid) as refused:
        await client.create(DEFINITIONS, definition(version(), bad))
    fields = {cause.field for cause in refused.value.causes}
    assert fields == {"spec.versions[1].schema.openAPIV3Schema.properties[spec].type"}


async def test_the_versions_that_messages_show_have_go_names_and_leave_out_what_all_have_in_common():
    shown = printed_versions({"versions": [version(), version("v2", storage=False, spec={"type": "object"})]})
    assert shown.startswith('[{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,')
    assert '"Schema":{"OpenAPIV3Schema":{"ID":"","Schema":"","Ref":null,' in shown
    assert '"Rule":"self == oldSelf","Message":"color is immutable","MessageExpression":""' in shown
    assert '"Schema":null' in printed_versions({"versions": [version()]})


async def test_conversion_by_webhook_is_refused_where_it_would_be_needed(client):
    hook = {"clientConfig": {"url": "https://localhost/convert"}, "conversionReviewVersions": ["v1"]}
    several = definition(version(), version("v2", storage=False, spec={"type": "object"}))
    several["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
    with pytest.raises(errors.Invalid, match="only by None"):
        await client.create(DEFINITIONS, several)
    single = definition(version())
    single["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
    assert (await client.create(DEFINITIONS, single))["metadata"]["name"] == "boxes.example.com"


async def test_a_format_that_nobody_knows_is_warned_of_once(client):
    odd = {"type": "object", "properties": {"a": {"type": "string", "format": "zip"}}}
    response = await client.send("POST", DEFINITIONS, definition(version(spec=odd)))
    assert dict(response.headers)["Warning"] == '299 - "unrecognized format \\"zip\\""'
    patch = {"metadata": {"labels": {"a": "b"}}}
    headers = {"content-type": "application/merge-patch+json"}
    again = await client.send("PATCH", f"{DEFINITIONS}/boxes.example.com", patch, headers)
    assert again.status == 200
    assert "Warning" not in dict(again.headers)
