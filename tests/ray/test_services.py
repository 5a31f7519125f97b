"""RayServices with real Ray Serve and clients that never stop asking, while everything under them is replaced."""

import time

import pytest

from tests.ray.load import MOST_AGE, PER_SECOND, Load
from tests.ray.services import GATEWAY, KEPT, SERVE, STEP_BY_STEP, Served

pytestmark = pytest.mark.heavy

ENOUGH = 60 * PER_SECOND  # requests across each upgrade


@pytest.fixture(scope="module")
def shared(reef):
    return Served(reef)


@pytest.fixture
def served(reef, shared):
    """The service in one cluster and with the plain strategy, whatever a test before has left of it."""
    if reef.get("RayService", "s") is None:
        shared.make()
    shared.change(upgradeStrategy=None, rayClusterDeletionDelaySeconds=KEPT)
    shared.alone()
    return shared


@pytest.fixture
def stepwise(reef, served):
    """The service with the strategy that moves requests step by step, and its Gateway open."""
    served.change(upgradeStrategy=STEP_BY_STEP)
    served.settled()
    reef.until(served.is_open, "the Gateway is open")
    return served


@pytest.fixture
def load(reef, tmp_path, capsys):
    """Makes loads; what became of their requests is printed at the end."""
    made = []

    def to(url, what):
        made.append((Load(reef, tmp_path, url), what))
        return made[-1][0]

    yield to
    with capsys.disabled():
        for one, what in made:
            print(f"\n{one.told(what)}", end=" ")


def test_a_service_answers_at_its_serve_service(served, load):
    with load(SERVE, "at rest") as asking:
        asking.reach(5 * PER_SECOND)
    assert asking.failures == []
    assert set(asking.answers()) == {served.answer}


def test_other_code_answers_on_the_same_cluster_and_no_request_fails(reef, served, load):
    cluster, before = served.active, served.answer
    with load(SERVE, "serveConfigV2 changed in place") as asking:
        asking.reach(PER_SECOND)
        served.replace_code()
        reef.until(lambda: only_the_new_one_answers(served, asking), "the other code answers")
        changed = time.time()
        asking.reach(20 * PER_SECOND)
    assert asking.failures == []
    assert set(asking.answers()) == {before, served.answer}
    assert set(asking.answers(changed)) == {served.answer}
    assert served.active == cluster


def test_a_new_cluster_takes_over_at_once_and_no_request_fails(reef, served, load):
    cluster, before = served.active, served.answer
    with load(SERVE, "NewCluster") as asking:
        asking.reach(PER_SECOND)
        served.replace_cluster()
        reef.until(lambda: served.active != cluster, "the new cluster is the active one")
        promoted = time.time()
        served.alone()
        asking.reach(ENOUGH)
    assert asking.failures == []
    assert set(asking.answers()) == {before, served.answer}
    assert set(asking.answers(promoted + MOST_AGE)) == {served.answer}


def test_without_a_deletion_delay_some_requests_do_fail(served, load):
    """The same with a cluster that is deleted under the requests that it has: the measure bites."""
    served.change(rayClusterDeletionDelaySeconds=0)
    with load(SERVE, "NewCluster without a deletion delay") as asking:
        asking.reach(PER_SECOND)
        served.replace_cluster()
        served.alone()
        asking.reach(len(asking.requests) + PER_SECOND)
    assert asking.failures != []
    assert set(asking.answers()) >= {served.answer}


def test_a_new_cluster_takes_over_step_by_step_and_no_request_fails(reef, stepwise, load):
    cluster, before = stepwise.active, stepwise.answer
    with load(GATEWAY, "NewClusterWithIncrementalUpgrade") as asking:
        asking.reach(PER_SECOND)
        stepwise.replace_cluster()
        reef.until(lambda: both_answer(asking, before, stepwise.answer), "both clusters answer")
        reef.until(lambda: stepwise.active != cluster, "the new cluster is the active one")
        promoted = time.time()
        stepwise.alone()
        asking.reach(ENOUGH)
    assert asking.failures == []
    first = min(one.at for one in asking.requests if one.said == stepwise.answer)
    assert set(asking.answers(first)) == {before, stepwise.answer}, "both answered at the same time"
    assert set(asking.answers(promoted)) == {stepwise.answer}


def test_an_upgrade_is_rolled_back_in_the_middle_and_no_request_fails(reef, stepwise, load):
    cluster, name, before = stepwise.active, stepwise.cluster, stepwise.answer
    with load(GATEWAY, "rolled back in the middle") as asking:
        asking.reach(PER_SECOND)
        stepwise.replace_cluster()
        reef.until(lambda: both_answer(asking, before, stepwise.answer), "both clusters answer")
        stepwise.replace_cluster(name)
        reef.until(lambda: stepwise.is_true("RollbackInProgress"), "it is being rolled back")
        stepwise.settled()
        settled = time.time()
        stepwise.alone()
        asking.reach(ENOUGH)
    assert asking.failures == []
    assert stepwise.active == cluster
    assert set(asking.answers(settled)) == {before}


def test_a_service_whose_head_is_lost_answers_again_by_itself(reef, served, load):
    """Without fault tolerance of the GCS, so that what Serve knew is gone with the head."""
    cluster, head = served.active, reef.head(served.active)
    with load(SERVE, "a lost head") as asking:
        asking.reach(PER_SECOND)
        reef.delete("Pod", head, grace=0)
        reef.until(lambda: asking.failures, "nobody answers")
        reef.until(lambda: only_the_new_one_answers(served, asking), "it answers again")
        again = time.time()
        asking.reach(len(asking.requests) + 5 * PER_SECOND)
    assert [one for one in asking.failures if one.at > again] == []
    assert served.active == cluster
    assert reef.head(cluster) != head


def both_answer(asking, *answers):
    """Tell whether each of two clusters has given a good number of answers."""
    given = asking.answers()
    return min(given[one] for one in answers) > PER_SECOND / 2


def only_the_new_one_answers(served, asking):
    """Tell whether the latest requests got the answer that is wanted, all of them."""
    latest = [one for one in asking.requests if one.at > time.time() - 2]
    return bool(latest) and all(one.said == served.answer for one in latest)
