"""The runner itself: it must see what differs, or the scenarios show nothing."""

from datetime import UTC, datetime

import pytest

from kubereef import simulation
from tests.kubereef.conformance import paths
from tests.kubereef.conformance.cleaning import clean_up
from tests.kubereef.conformance.comparing import Matcher, compared
from tests.kubereef.conformance.expectations import Expected, disagreements
from tests.kubereef.conformance.judging import Judged, judge
from tests.kubereef.conformance.running import Run
from tests.kubereef.conformance.scenarios import NoValue, Scenario, Step, fill
from tests.kubereef.conformance.transports import Answer, InProcess

NOW = datetime(2030, 1, 1, tzinfo=UTC)
UID, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
CONDITIONS = {"c": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]}


@pytest.mark.parametrize(
    ("document", "path", "found"),
    [
        pytest.param({"a": {"b": 1}}, "a.b", [1], id="keys"),
        pytest.param({"a": [1, 2]}, "a[1]", [2], id="an index"),
        pytest.param({"a": [{"b": 1}, {"b": 2}, {}]}, "a[*].b", [1, 2], id="every item"),
        pytest.param({"a": {"x.y/z": 1}}, "a['x.y/z']", [1], id="a quoted key"),
        pytest.param(CONDITIONS, "c[?type==Old].status", ["False"], id="the item with a value"),
        pytest.param({"a": 1}, "a.b.c", [], id="nothing there"),
    ],
)
def test_a_path_finds(document, path, found):
    assert paths.find(document, path) == found


def test_values_are_set_on_paths_that_are_not_there_yet_and_removed():
    document = {"a": [{"b": 1}]}
    paths.assign(document, "a[1].c", 2)
    paths.assign(document, "x['y.z'][0]", 3)
    paths.remove(document, "a[0].b")
    assert document == {"a": [{}, {"c": 2}], "x": {"y.z": [3]}}


def test_variables_are_filled_in_and_keep_their_type():
    variables = {"n": 5, "base": "/api/${ns}", "ns": "one"}
    assert fill({"${ns}": ["${n}", "at ${base}/${n}", "${repeat:x:3}"]}, variables) == {
        "one": [5, "at /api/one/5", "xxx"]
    }
    with pytest.raises(NoValue, match="nothing"):
        fill("${nothing}", variables)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        pytest.param({"a": 1}, {"a": 2}, id="another value"),
        pytest.param({"a": 1}, {}, id="a missing key"),
        pytest.param({}, {"a": 1}, id="a surplus key"),
        pytest.param([1], [1, 2], id="a surplus item"),
        pytest.param([1, 2], [2, 1], id="another order"),
        pytest.param({"a": "1"}, {"a": 1}, id="a number instead of text"),
        pytest.param({"a": True}, {"a": 1}, id="a number instead of a boolean"),
        pytest.param({"a": None}, {}, id="nothing instead of null"),
        pytest.param({"a": "<uid:1>"}, {"a": "no uid"}, id="a uid that is none"),
        pytest.param(["<uid:1>", "<uid:1>"], [UID, OTHER], id="two uids instead of one"),
        pytest.param(["<uid:1>", "<uid:2>"], [UID, UID], id="one uid instead of two"),
        pytest.param(["<rv:2>", "<rv:1>"], ["5", "6"], id="versions in another order"),
        pytest.param(["<rv:1>", "<rv:1>"], ["5", "6"], id="two versions instead of one"),
        pytest.param(["<rv:4>", "<rv:4+>"], ["5", "4"], id="a list older than what is in it"),
        pytest.param("<time>", "2029-12-01T00:00:00Z", id="a time long ago"),
        pytest.param("<time>", "2030-01-01T00:00:00.123456Z", id="a time with fractions"),
        pytest.param("<time+30s>", "2030-01-01T00:00:00Z", id="now instead of later"),
        pytest.param("in ${ns}", "in other", id="another namespace"),
        pytest.param(
            [{"uid": UID, "creationTimestamp": "<time>"}] * 2,
            [
                {"uid": UID, "creationTimestamp": "2030-01-01T00:00:00Z"},
                {"uid": UID, "creationTimestamp": "2029-12-31T23:59:59Z"},
            ],
            id="a creation time that changes",
        ),
    ],
)
def test_a_difference_is_seen(want, got):
    assert Matcher({"ns": "mine"}).differences(want, got, NOW)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        pytest.param(["<uid:1>", "<uid:2>", "<uid:1>"], [UID, OTHER, UID], id="uids"),
        pytest.param(["<rv:3>", "<rv:1>", "<rv:2+>"], ["9", "4", "17"], id="versions"),
        pytest.param("job-<name:1> in ${ns}", "job-abc12 in mine", id="placeholders within a text"),
        pytest.param({"${ns}/<name:1>": 1}, {"mine/abc12": 1}, id="keys"),
        pytest.param(
            ["<time>", "<microtime>", "<time+30s>"],
            ["2030-01-01T00:00:00Z", "2030-01-01T00:00:00.000000Z", "2030-01-01T00:00:31Z"],
            id="times",
        ),
        pytest.param("<port:1>", 30001, id="a port"),
    ],
)
def test_what_changes_from_run_to_run_is_no_difference(want, got):
    assert Matcher({"ns": "mine"}).differences(want, got, NOW) == []


def test_only_what_a_step_names_is_compared():
    answer = Answer(200, "application/json", ["b", "a"], {"x": {"y": 1}, "list": [{"n": 2}, {"n": 1}]}, NOW)
    head = {"status": 200, "contentType": "application/json", "warnings": ["a", "b"]}
    assert compared({"compare": "status"}, answer, {}) == {"status": 200}
    fields = {"x.y": 1, "none": "<absent>", "list[*].n": [1, 2]}
    assert compared({"fields": list(fields), "unordered": True}, answer, {}) == {**head, "fields": fields}
    assert compared({"ignore": ["x.y", "none"]}, answer, {})["body"] == {
        "x": {},
        "list": [{"n": 2}, {"n": 1}],
    }


STEPS = [Judged("1. a", 200, []), Judged("2. b", 200, ["data: unexpected"])]


@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        pytest.param(Expected(False, frozenset()), "2. b", id="a difference that is not listed"),
        pytest.param(
            Expected(False, frozenset(("1. a", "2. b"))),
            "1. a: does not differ",
            id="a listed one that is none",
        ),
    ],
)
def test_what_is_not_as_expected_fails(expectation, problem):
    (found,) = disagreements(STEPS, expectation)
    assert found.startswith(problem)


def test_a_later_topic_fails_once_it_is_done_and_when_the_server_breaks():
    later = Expected(True, frozenset())
    assert disagreements(STEPS, later) == []
    assert disagreements(STEPS[:1], later)
    assert disagreements([*STEPS, Judged("3. c", 500, ["status"])], later)


def test_polls_watches_and_saved_values_work_together():
    """A little scenario of our own, whose recorded answers are wrong in one place."""
    created = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    steps: list[Step] = [
        {
            "watch": "${cm}",
            "count": 1,
            "fields": ["events[*].type"],
            "while": [
                {"request": "POST ${cm}", "use": "cm", "save": {"uid": "metadata.uid"}, "compare": "status"}
            ],
        },
        {"poll": "GET ${cm}/a", "until": {"metadata.uid": "${uid}"}, "fields": ["data"]},
        {"poll": "GET ${cm}/b", "untilStatus": 200, "compare": "status"},
    ]
    json_answer = {"status": 200, "contentType": "application/json", "warnings": []}
    answers = [
        {"step": "POST ${cm}", "status": 201},
        {"step": "watch ${cm}", **json_answer, "fields": {"events[*].type": ["ADDED"]}},
        {"step": "GET ${cm}/a", **json_answer, "fields": {"data": {"not": "so"}}},
        {"step": "GET ${cm}/b", "status": 200},
    ]
    paths_of_maps = {"cm": "/api/v1/namespaces/${ns}/configmaps"}
    scenario = Scenario("server/own", "", steps, answers, paths_of_maps, {"cm": created}, [], ["ns"])

    async def story():
        cluster = simulation.SimulatedCluster()
        await cluster.start()
        run = Run(InProcess(cluster.server), scenario)
        judged = judge(scenario, run, await run())
        await cluster.stop()
        return judged

    first, second, third, fourth = (step.differences for step in simulation.run(story()))
    assert first == second == []
    assert third == ['fields.data: expected {"not": "so"}, got "<absent>"']
    assert fourth[0] == "waited 30 s in vain: the status is 404, not 200"


def test_what_a_run_has_made_is_taken_away_whatever_holds_it():
    """On a server that has no controllers, where nobody else would end a namespace."""
    held = {"metadata": {"name": "held-${id}", "finalizers": ["example.com/x"]}}
    steps: list[Step] = [
        {"request": "POST /api/v1/nodes", "body": held, "compare": "status"},
        {"request": "POST ${cm}", "body": {"metadata": {"name": "a"}}, "compare": "status"},
        {"request": "POST ${cm}?dryRun=All", "body": {"metadata": {"name": "b"}}, "compare": "status"},
    ]
    variables = {"cm": "/api/v1/namespaces/${ns}/configmaps"}
    scenario = Scenario("server/own", "", steps, [], variables, {}, [], ["ns"])

    async def story():
        cluster = simulation.SimulatedCluster()
        await cluster.start()
        transport = InProcess(cluster.server)
        run = Run(transport, scenario, identity="other")
        await run()
        made = list(run.created)
        await clean_up(run, transport)
        gone = [(await transport.send("GET", path, [], None, as_admin=True)).status for path in made]
        await cluster.stop()
        return made, gone

    made, gone = simulation.run(story())
    namespace = "/api/v1/namespaces/tother-a"
    assert made == [namespace, "/api/v1/nodes/held-other", f"{namespace}/configmaps/a"]
    assert gone == [404, 404, 404]


def test_a_token_may_be_made_later_than_the_account_whose_uid_it_has():
    uid = "11111111-1111-4111-8111-111111111111"
    matcher = Matcher({})
    for kind, born in (("ServiceAccount", "2029-12-31T23:59:59Z"), ("TokenRequest", "2030-01-01T00:00:00Z")):
        want = {"body": {"kind": kind, "metadata": {"uid": uid, "creationTimestamp": "<time>"}}}
        got = {"body": {"kind": kind, "metadata": {"uid": uid, "creationTimestamp": born}}}
        assert matcher.differences(want, got, NOW) == []
