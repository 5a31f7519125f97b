"""kubectl rollout and kubectl wait on Deployments whose Pods run."""

import pytest

from tests.clients.waiting import eventually

pytestmark = pytest.mark.heavy

REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"


def deployment(**spec):
    labels = {"app": "web"}
    pod = {"containers": [{"name": "c", "image": "image:1"}], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def web(kubectl):
    """A Deployment with three revisions, image:1 to image:3."""
    kubectl("apply", "-f", "-", given=deployment())
    rolled_out(kubectl)
    for tag in (2, 3):
        kubectl("set", "image", "deployment/web", f"c=image:{tag}")
        kubectl("annotate", "deployment/web", "--overwrite", f"kubernetes.io/change-cause=image {tag}")
        rolled_out(kubectl)
    return kubectl


def rolled_out(kubectl):
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=25s")


def image(kubectl):
    return kubectl.read("deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"]


def history(kubectl):
    lines = kubectl("rollout", "history", "deployment/web").splitlines()[2:]
    return [tuple(line.split(maxsplit=1)) for line in lines if line]


def replica_sets(kubectl):
    """Return the ReplicaSets by their revision."""
    found = kubectl.read("replicasets", "-l", "app=web")["items"]
    return {one["metadata"]["annotations"][REVISION]: one for one in found}


def test_each_template_has_a_revision_a_hash_and_a_replica_set(web):
    sets = replica_sets(web)
    assert sorted(sets) == ["1", "2", "3"]
    hashes = {one["metadata"]["labels"][HASH] for one in sets.values()}
    assert len(hashes) == 3
    for one in sets.values():
        digest = one["metadata"]["labels"][HASH]
        assert one["metadata"]["name"] == f"web-{digest}"
        assert one["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: digest}
    assert {number: one["spec"]["replicas"] for number, one in sets.items()} == {"1": 0, "2": 0, "3": 2}
    assert web.read("deployment", "web")["metadata"]["annotations"][REVISION] == "3"


def test_the_history_shows_revisions_and_their_causes(web):
    assert history(web) == [("1", "<none>"), ("2", "image 2"), ("3", "image 3")]
    assert "image:2" in web("rollout", "history", "deployment/web", "--revision=2")
    told = web("rollout", "history", "deployment/web", "--revision=9", code=1)
    assert "unable to find the specified revision" in told


def test_undo_goes_back_to_the_revision_before(web):
    web("rollout", "undo", "deployment/web")
    rolled_out(web)
    assert image(web) == "image:2"
    assert [number for number, _ in history(web)] == ["1", "3", "4"]
    sets = replica_sets(web)
    assert sets["4"]["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "2"


def test_undo_goes_back_to_any_revision(web):
    web("rollout", "undo", "deployment/web", "--to-revision=1")
    rolled_out(web)
    assert image(web) == "image:1"
    assert [number for number, _ in history(web)] == ["2", "3", "4"]
    web("rollout", "undo", "deployment/web", "--to-revision=9", code=1)
    assert "skipped rollback" in web("rollout", "undo", "deployment/web", "--to-revision=4")


@pytest.mark.parametrize(
    ("asked", "want", "reason"),
    [
        pytest.param("1", "image:1", "DeploymentRollback", id="to a revision"),
        pytest.param("0", "image:2", "DeploymentRollback", id="to the one before"),
        pytest.param("3", "image:3", "DeploymentRollbackTemplateUnchanged", id="to what it is"),
        pytest.param("9", "image:3", "DeploymentRollbackRevisionNotFound", id="to none that there is"),
    ],
)
def test_the_controller_rolls_back_when_the_annotation_asks_for_it(web, asked, want, reason):
    web("annotate", "deployment/web", f"deprecated.deployment.rollback.to={asked}")
    eventually(lambda: "deprecated.deployment.rollback.to" not in annotations(web))
    rolled_out(web)
    assert image(web) == want
    eventually(lambda: reason in {one["reason"] for one in web.read("events")["items"]})


def annotations(kubectl):
    return kubectl.read("deployment", "web")["metadata"]["annotations"]


def test_a_pause_holds_a_rollout_back_until_it_is_resumed(web):
    web("rollout", "pause", "deployment/web")
    web("set", "image", "deployment/web", "c=image:4")
    web("wait", "deployment/web", "--for=condition=Progressing=Unknown", "--timeout=20s")
    web("scale", "deployment/web", "--replicas=3")
    web("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=20s")
    assert sorted(replica_sets(web)) == ["1", "2", "3"]
    assert "cannot rollback a paused deployment" in web("rollout", "undo", "deployment/web", code=1)
    web("rollout", "resume", "deployment/web")
    rolled_out(web)
    assert sorted(replica_sets(web)) == ["1", "2", "3", "4"]


def test_a_restart_replaces_every_pod(web):
    before = {one["metadata"]["uid"] for one in web.read("pods")["items"]}
    web("rollout", "restart", "deployment/web")
    rolled_out(web)
    ready = [one for one in web.read("pods")["items"] if not one["metadata"].get("deletionTimestamp")]
    assert len(ready) == 2
    assert before.isdisjoint(one["metadata"]["uid"] for one in ready)
    assert history(web)[-1][0] == "4"


def test_a_rollout_that_hangs_is_told_by_its_status(kubectl):
    hanging = deployment(progressDeadlineSeconds=2)
    hanging["spec"]["template"]["metadata"]["labels"]["life"] = "hangs"
    kubectl("apply", "-f", "-", given=hanging)
    assert "exceeded its progress deadline" in kubectl(
        "rollout", "status", "deployment/web", "--timeout=20s", code=1
    )


def test_a_new_deployment_adopts_the_replica_sets_of_an_old_one(web):
    before = {one["metadata"]["uid"] for one in web.read("pods")["items"]}
    web("delete", "deployment", "web", "--cascade=orphan")
    eventually(lambda: not any(one["metadata"].get("ownerReferences") for one in replica_sets(web).values()))
    again = deployment()
    again["spec"]["template"]["spec"]["containers"][0]["image"] = "image:3"
    web("apply", "-f", "-", given=again)
    rolled_out(web)
    uid = web.read("deployment", "web")["metadata"]["uid"]
    sets = replica_sets(web)
    assert sorted(sets) == ["1", "2", "3"]
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in sets.values()} == {uid}
    assert {one["metadata"]["uid"] for one in web.read("pods")["items"]} == before


@pytest.mark.parametrize(
    "what",
    [
        pytest.param("condition=Available", id="a condition"),
        pytest.param("condition=Available=True", id="a condition's value"),
        pytest.param("jsonpath={.status.readyReplicas}=2", id="a value"),
        pytest.param("jsonpath={.status.conditions}", id="that there is one"),
    ],
)
def test_wait_ends_when_it_holds(kubectl, what):
    kubectl("apply", "-f", "-", given=deployment())
    assert "condition met" in kubectl("wait", "deployment/web", f"--for={what}", "--timeout=20s")


def test_wait_ends_when_an_object_comes(kubectl):
    waiting = kubectl.start("wait", "deployment/web", "--for=create", "--timeout=20s")
    kubectl("apply", "-f", "-", given=deployment())
    said, complaints = waiting.communicate(timeout=25)
    assert "condition met" in said, complaints


def test_wait_ends_when_an_object_goes_and_gives_up_in_time(web):
    assert "timed out" in web("wait", "deployment/web", "--for=delete", "--timeout=300ms", code=1)
    web("delete", "deployment", "web", "--wait=false")
    web("wait", "deployment/web", "--for=delete", "--timeout=20s")
    web("wait", "pod", "--all", "--for=delete", "--timeout=20s")
