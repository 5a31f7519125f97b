"""kubectl explain and kubectl's checks, by both descriptions that a server gives of itself."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

BOATS = Path(__file__).parent / "chart" / "crds" / "boats.yaml"


@pytest.fixture
def boats(kubectl):
    kubectl("apply", "-f", str(BOATS))
    kubectl("wait", "crd/boats.harbour.example", "--for=condition=Established", "--timeout=20s")
    return kubectl


@pytest.mark.parametrize("output", ["plaintext", "plaintext-openapiv2"])
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        pytest.param(("deployments.spec.strategy",), "rollingUpdate", id="a built-in kind"),
        pytest.param(("deploy", "--api-version=apps/v1"), "VERSION:", id="a version that is named"),
        pytest.param(("pods.spec.containers", "--recursive"), "readinessProbe", id="everything below"),
        pytest.param(("boats.spec.flags",), "colour", id="a custom kind"),
    ],
)
def test_explain_reads_either_description(boats, asked, told, output):
    assert told in boats("explain", *asked, f"--output={output}")


def test_a_version_that_is_not_served_is_not_explained(kubectl):
    assert "couldn't find resource" in kubectl("explain", "deployments", "--api-version=apps/v9", code=1)


def test_unknown_fields_are_found_by_the_server(boats):
    wrong = {
        "apiVersion": "harbour.example/v1",
        "kind": "Boat",
        "metadata": {"name": "b"},
        "spec": {"crew": 1},
    }
    wrong["spec"] = {"crew": 1, "sails": 2}
    told = boats("create", "--validate=strict", "-f", "-", given=wrong, code=1)
    assert 'unknown field "spec.sails"' in told


def test_a_difference_is_shown_before_it_is_applied_by_the_server(boats):
    boat = {
        "apiVersion": "harbour.example/v1",
        "kind": "Boat",
        "metadata": {"name": "b"},
        "spec": {"crew": 1},
    }
    boats("apply", "--server-side", "-f", "-", given=boat)
    boat["spec"] = {"crew": 2}
    shown = boats("diff", "--server-side", "-f", "-", given=boat, code=1)
    assert "-  crew: 1" in shown
    assert "+  crew: 2" in shown
