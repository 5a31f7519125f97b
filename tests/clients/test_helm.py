"""Helm installs, upgrades, rolls back, tests and removes a chart: Helm 3 by patches, Helm 4 by server-side apply."""

from pathlib import Path

import pytest
import yaml

from tests.clients.helm import Helm
from tests.clients.programs import built
from tests.clients.waiting import eventually

CHART = str(Path(__file__).parent / "chart")

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module", params=["v3.21.4", "v4.2.4"])
def program(request):
    return built("helm", request.param)


@pytest.fixture
def helm(program, cluster, namespace, tmp_path):
    return Helm(program, cluster.kubeconfig, tmp_path, namespace)


@pytest.fixture
def installed(helm):
    """A release `sea` of the chart, ready."""
    helm("install", "sea", CHART, "--wait", "--timeout=40s")
    return helm


def revisions(helm):
    return [(one["revision"], one["status"]) for one in helm.read("history", "sea")]


def kinds(manifest):
    return sorted(one["kind"] for one in yaml.safe_load_all(manifest) if one)


def test_template_and_lint_need_no_release(helm):
    assert "0 chart(s) failed" in helm("lint", CHART)
    shown = helm("template", "sea", CHART)
    assert kinds(shown) == [
        *("Boat", "ConfigMap", "Deployment", "Job", "Job", "Job", "Pod", "Secret", "Service"),
    ]
    assert "values don't meet the specifications" in helm(
        "template", "sea", CHART, "--set", "replicas=-1", code=1
    )


def test_install_makes_everything_and_waits_for_it(installed, kubectl):
    deployment = kubectl.read("deployment", "sea")
    assert deployment["status"]["readyReplicas"] == 1
    assert deployment["metadata"]["annotations"]["meta.helm.sh/release-name"] == "sea"
    assert kubectl.read("boats.harbour.example", "sea-first")["spec"] == {"crew": 3, "cargo": "empty"}
    told = kubectl.read("configmap", "sea")["data"]
    assert told["greeting"] == "hello"
    assert told["boats"] == "known", "the chart saw the kind that its own crds/ brought"
    assert told["namespace"] == kubectl.read("namespace", kubectl.namespace)["metadata"]["uid"]
    assert kubectl.read("jobs")["items"] == [], "hooks go when they have succeeded"
    stored = kubectl.read("secrets", "-l", "owner=helm")["items"]
    assert [one["metadata"]["name"] for one in stored] == ["sh.helm.release.v1.sea.v1"]


def test_a_release_is_listed_and_told_of(installed):
    (listed,) = installed.read("list")
    assert (listed["name"], listed["status"], listed["chart"]) == ("sea", "deployed", "harbour-0.1.0")
    assert installed.read("status", "sea")["info"]["status"] == "deployed"
    assert installed.read("get", "values", "sea", "--all")["greeting"] == "hello"
    assert "sea says hello in revision 1." in installed("get", "notes", "sea")
    assert "Deployment" in kinds(installed("get", "manifest", "sea"))
    assert kinds(installed("get", "hooks", "sea")) == ["Job", "Job", "Job", "Pod"]
    assert "sea" in installed("get", "all", "sea")


def test_an_upgrade_changes_adds_and_removes(installed, kubectl):
    installed(
        *("upgrade", "sea", CHART, "--wait", "--timeout=40s"),
        *("--set", "greeting=ahoy", "--set", "replicas=2", "--set", "boats[0].name=second,boats[0].crew=5"),
    )
    assert revisions(installed) == [(1, "superseded"), (2, "deployed")]
    assert kubectl.read("configmap", "sea")["data"]["greeting"] == "ahoy"
    assert [one["metadata"]["name"] for one in kubectl.read("boats.harbour.example")["items"]] == [
        "sea-second"
    ]
    deployment = kubectl.read("deployment", "sea")
    assert deployment["status"]["updatedReplicas"] == deployment["status"]["readyReplicas"] == 2
    assert installed.read("get", "values", "sea")["greeting"] == "ahoy"


def test_an_upgrade_leaves_alone_what_others_have_added(installed, kubectl):
    kubectl(
        "patch", "deployment", "sea", "--type=merge", "-p", '{"spec":{"template":{"spec":{"hostname":"x"}}}}'
    )
    kubectl("label", "configmap", "sea", "mine=yes")
    installed("upgrade", "sea", CHART, "--set", "greeting=ahoy", "--wait", "--timeout=40s")
    assert kubectl.read("deployment", "sea")["spec"]["template"]["spec"]["hostname"] == "x"
    assert kubectl.read("configmap", "sea")["metadata"]["labels"]["mine"] == "yes"


def test_a_rollback_brings_an_older_revision_back(installed, kubectl):
    installed("upgrade", "sea", CHART, "--set", "greeting=ahoy,replicas=2", "--wait", "--timeout=40s")
    installed("rollback", "sea", "1", "--wait", "--timeout=40s")
    assert revisions(installed) == [(1, "superseded"), (2, "superseded"), (3, "deployed")]
    assert kubectl.read("configmap", "sea")["data"]["greeting"] == "hello"
    assert kubectl.read("deployment", "sea")["spec"]["replicas"] == 1


def test_an_upgrade_that_does_not_get_ready_is_taken_back(installed, kubectl, program):
    careful = "--atomic" if "v3" in program.parent.name else "--rollback-on-failure"
    told = installed(
        *("upgrade", "sea", CHART, careful, "--wait", "--timeout=4s"),
        *("--set", "greeting=ahoy,life=hangs"),
        code=1,
    )
    assert "rolled back" in told or "rollback" in told
    assert revisions(installed) == [(1, "superseded"), (2, "failed"), (3, "deployed")]
    assert kubectl.read("configmap", "sea")["data"]["greeting"] == "hello"
    eventually(lambda: kubectl.read("deployment", "sea")["status"].get("updatedReplicas") == 1)


def test_a_hook_that_fails_stops_an_upgrade(installed, kubectl):
    told = installed(
        *("upgrade", "sea", CHART, "--timeout=20s", "--set", "greeting=ahoy,beforeUpgrade=fails"), code=1
    )
    assert "pre-upgrade hooks failed" in told
    assert revisions(installed) == [(1, "deployed"), (2, "failed")]
    assert kubectl.read("configmap", "sea")["data"]["greeting"] == "hello"
    assert kubectl.read("job", "sea-pre-upgrade")["status"]["failed"] == 1, (
        "a failed hook stays to be looked at"
    )


def test_a_dry_run_of_an_upgrade_changes_nothing(installed, kubectl):
    shown = installed("upgrade", "sea", CHART, "--dry-run=server", "--set", "greeting=ahoy")
    assert 'greeting: "ahoy"' in shown
    assert kubectl.read("configmap", "sea")["data"]["greeting"] == "hello"
    assert revisions(installed) == [(1, "deployed")]


def test_tests_of_a_chart_run_as_pods(installed, kubectl):
    told = installed("test", "sea", "--timeout=20s")
    assert "Succeeded" in told
    assert kubectl.read("pod", "sea-greets")["status"]["phase"] == "Succeeded"


def test_upgrade_installs_what_is_not_there(helm, kubectl):
    helm("upgrade", "--install", "sea", CHART, "--wait", "--timeout=40s", "--set", "greeting=ahoy")
    assert kubectl.read("configmap", "sea")["data"]["greeting"] == "ahoy"
    helm("uninstall", "sea", "--wait", "--timeout=40s")


def test_a_second_release_of_a_name_is_refused(installed):
    assert "name that is still in use" in installed("install", "sea", CHART, code=1)


def test_an_object_of_somebody_else_is_not_taken_over(helm, kubectl):
    kubectl("create", "configmap", "sea")
    told = helm("install", "sea", CHART, code=1)
    assert "invalid ownership metadata" in told or "conflict" in told


def test_uninstall_removes_everything_but_definitions(installed, kubectl):
    installed("uninstall", "sea", "--wait", "--timeout=40s", "--keep-history")
    for kind in ("configmap/sea", "secret/sea", "service/sea", "deployment/sea", "boat/sea-first"):
        assert "NotFound" in kubectl("get", kind, code=1)
    assert revisions(installed) == [(1, "uninstalled")]
    assert kubectl.read("crd", "boats.harbour.example")
    eventually(lambda: not kubectl.read("pods", "-l", "app.kubernetes.io/instance=sea")["items"])
    installed("uninstall", "sea")
