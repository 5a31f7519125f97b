"""Deployments that ask to be rolled back by their annotation: the plan, and the controller under virtual time."""

import pytest

from kubereef.controllers.deployments import DeploymentController
from kubereef.controllers.replicasets import ReplicaSetController
from kubereef.controllers.rollbacks import ROLLBACK_TO, asked_revision, rolled_back
from kubereef.controllers.rollouts import REVISION, Family
from tests.kubereef.controllers.making import APPS, EVENTS, items, template, workload

DEPLOYMENT = f"{APPS}/deployments/w"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def deployment(annotations, image="i:3"):
    made = workload(image=image)
    made["metadata"]["annotations"] = annotations
    return made


def replica_set(revision, image, **annotations):
    labels = {"app": "a", "pod-template-hash": str(revision)}
    return {
        "metadata": {"name": str(revision), "annotations": {REVISION: str(revision), **annotations}},
        "spec": {"template": template(image, labels)},
    }


FAMILY = Family(replica_set(3, "i:3"), [replica_set(1, "i:1", cause="first"), replica_set(2, "i:2")])


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("2", 2, id="a revision"),
        pytest.param("0", 0, id="the one before"),
        pytest.param("-1", -1, id="one that never was"),
        pytest.param("two", None, id="no number"),
        pytest.param("9" * 30, None, id="a number beyond all numbers"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_which_revision_is_asked_for(text, want):
    assert asked_revision(deployment({ROLLBACK_TO: text})) == want


def test_nothing_is_asked_for_without_the_annotation():
    assert asked_revision(workload()) is None


def test_a_rollback_takes_template_and_annotations_of_the_revision_and_keeps_its_own():
    before = deployment({ROLLBACK_TO: "1", REVISION: "3", APPLIED: "{}", "cause": "third", "mine": "yes"})
    back = rolled_back(before, FAMILY, 1)
    assert (back.is_done, back.reason) == (True, "DeploymentRollback")
    assert back.message == 'Rolled back deployment "w" to revision 1'
    assert back.deployment["spec"]["template"] == template("i:1")
    assert back.deployment["metadata"]["annotations"] == {REVISION: "3", APPLIED: "{}", "cause": "first"}


@pytest.mark.parametrize(
    ("family", "revision", "reason"),
    [
        pytest.param(FAMILY, 9, "DeploymentRollbackRevisionNotFound", id="a revision that there is not"),
        pytest.param(FAMILY, 3, "DeploymentRollbackTemplateUnchanged", id="the present revision"),
        pytest.param(
            Family(FAMILY.new, []), 0, "DeploymentRollbackRevisionNotFound", id="none before the first"
        ),
    ],
)
def test_a_rollback_that_cannot_be_changes_nothing_but_the_question(family, revision, reason):
    before = deployment({ROLLBACK_TO: str(revision), "mine": "yes"})
    back = rolled_back(before, family, revision)
    assert (back.is_done, back.reason) == (False, reason)
    assert back.deployment == deployment({"mine": "yes"})


def test_the_one_before_is_the_second_highest():
    back = rolled_back(deployment({ROLLBACK_TO: "0"}), FAMILY, 0)
    assert back.deployment["spec"]["template"] == template("i:2")


async def test_the_controller_answers_the_annotation_once_and_tells_of_it(simulated_cluster):
    await simulated_cluster.run(ReplicaSetController, DeploymentController)
    client = simulated_cluster.client
    await client.create(f"{APPS}/deployments", workload(replicas=0))
    for image in ("i:2", "i:3"):
        await simulated_cluster.pass_time(2)
        containers = [{"name": "c", "image": image}]
        await client.patch(
            DEPLOYMENT, {"spec": {"template": {"spec": {"containers": containers}}}}, "strategic"
        )
    await simulated_cluster.pass_time(2)
    await client.patch(DEPLOYMENT, {"metadata": {"annotations": {ROLLBACK_TO: "1"}}})
    await simulated_cluster.pass_time(2)
    found = await client.get(DEPLOYMENT)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "i:1"
    assert found["metadata"]["annotations"][REVISION] == "4"
    assert ROLLBACK_TO not in found["metadata"]["annotations"]
    told = [one["message"] for one in await items(client, EVENTS) if one["reason"] == "DeploymentRollback"]
    assert told == ['Rolled back deployment "w" to revision 1']


async def test_a_paused_deployment_is_not_rolled_back(simulated_cluster):
    await simulated_cluster.run(ReplicaSetController, DeploymentController)
    client = simulated_cluster.client
    await client.create(f"{APPS}/deployments", workload(replicas=0, paused=True))
    await client.patch(DEPLOYMENT, {"metadata": {"annotations": {ROLLBACK_TO: "1"}}})
    await simulated_cluster.pass_time(2)
    assert ROLLBACK_TO in (await client.get(DEPLOYMENT))["metadata"]["annotations"]
