"""An operator under its own account can do all that it is for, and has no right that it does not need."""

import json

import pytest

from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer
from eagleray.manifests.access import autoscaler_role
from eagleray.operator.permissions import PERMISSIONS
from eagleray.rayapi.kinds import KINDS
from tests import rights
from tests.eagleray.manifests.clusters import cluster
from tests.packaging.scenarios import SCENARIOS, played
from tests.rights import Judged, Right, rights_in


def permitted(use):
    return rights_in(permission for permission in PERMISSIONS if permission.use == use)


@pytest.mark.case("OP-103")
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_refused_to_an_operator_with_the_roles_of_its_packaging(name):
    assert played(name).refused == []
    assert played(name).used


@pytest.mark.case("OP-104")
def test_no_right_is_given_that_no_scenario_uses():
    used = set().union(*(played(name).used for name in SCENARIOS))
    assert sorted(map(str, permitted("asks") - used)) == []
    assert sorted(map(str, used - permitted("asks"))) == []


@pytest.mark.case("OP-104")
def test_the_rights_that_are_handed_on_are_those_of_autoscalers():
    role = autoscaler_role(cluster())
    given = {
        Right(verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert permitted("hands on") == given


@pytest.mark.case("OP-104")
def test_the_rights_on_owners_are_those_on_kinds_whose_deletion_waits_for_what_they_own():
    plurals = {kind.name: kind.plural for kind in KINDS}
    owners = {
        plurals[owner["kind"]]
        for name in SCENARIOS
        for request in played(name).created
        for owner in json.loads(request.body).get("metadata", {}).get("ownerReferences") or ()
        if owner.get("blockOwnerDeletion")
    }
    # A claim is given to its cluster, and taken from it, after it was made; checks of owners ask for this right then.
    claims = Right("delete", "", "persistentvolumeclaims")
    assert permitted("owns") == {Right("update", "ray.io", f"{plural}/finalizers") for plural in owners} | {
        claims
    }


async def test_a_request_that_no_permission_covers_is_noted_and_passed_on():
    class Anything:
        host = "any"

        async def send(self, request):
            return Answer(200)

    judged = Judged(Anything(), {Right("get", "", "pods")})
    for path in ("/api/v1/namespaces/a/pods/b", "/version", "/api/v1/namespaces/a/secrets/b"):
        assert (await judged.send(Request("GET", path))).status == 200
    noted, rights.uncovered[:] = list(rights.uncovered), []
    assert noted == ["get secrets (GET /api/v1/namespaces/a/secrets/b)"]
