"""The check that ties acceptance cases, tests and the list of cases not yet due together."""

import subprocess

import pytest

from scripts.cases import (
    Case,
    Earlier,
    Mention,
    case_problems,
    cases_in,
    main,
    marks_in,
    natural_order,
    read_earlier,
    rule_ids_in,
    rule_problems,
    waiting_in,
)

SPEC = """\
# Widgets
Rule `raycluster-m1` refuses long names.

- **RC-1** a widget → spins
- **RC-2** a broken widget → stops
"""
TEST = """\
import pytest

@pytest.mark.case("RC-1")
def test_a_widget_spins():
    pass
"""
RULES = frozenset({"raycluster-m1"})


@pytest.fixture
def checkout(tmp_path):
    """A checkout with two cases, of which the first has a test and the second is not yet due."""
    (tmp_path / "docs/spec").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs/spec/widgets.md").write_text(SPEC)
    (tmp_path / "docs/spec/not-yet-due.txt").write_text("# with the widget controller\nRC-2\n")
    (tmp_path / "tests/test_widgets.py").write_text(TEST)
    return tmp_path


def places(*ids):
    return [Case(case_id, f"page.md:{number}") for number, case_id in enumerate(ids, start=1)]


def waiting(*ids):
    return waiting_in("\n".join(ids))


def test_a_case_is_a_list_line_that_opens_with_its_id():
    text = "- **RC-7** given → expected\nsee **RC-8** there\n- **RC-9**\n- **XX-1** a → b\n* **RC-10** a → b"
    assert list(cases_in(text, "page.md")) == [Case("RC-7", "page.md:1")]


def test_rule_ids_are_read_from_backticks():
    text = "`raycluster-4a`, `rayjob-v10b`, raycluster-1, `raycluster-controller`, `my-raycluster-1`"
    assert rule_ids_in(text) == {"raycluster-4a", "rayjob-v10b"}


def test_ids_sort_by_number():
    assert sorted(["RC-10", "RC-9", "CJ-30"], key=natural_order) == ["CJ-30", "RC-9", "RC-10"]


@pytest.mark.parametrize(
    ("source", "want"),
    [
        pytest.param(
            '@pytest.mark.case("RC-1", "RC-2")\ndef test_a(): ...',
            [Mention("RC-1", "t.py::test_a"), Mention("RC-2", "t.py::test_a")],
            id="a decorator names several",
        ),
        pytest.param(
            '@pytest.mark.case("RC-1")\nasync def test_a(): ...',
            [Mention("RC-1", "t.py::test_a")],
            id="an asynchronous test",
        ),
        pytest.param(
            'class TestA:\n    @pytest.mark.case("RC-1")\n    def test_a(self): ...',
            [Mention("RC-1", "t.py::TestA::test_a")],
            id="a test in a class",
        ),
        pytest.param(
            '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.case("RC-1"), id="one")])\n'
            "def test_a(x): ...",
            [Mention("RC-1", "t.py::test_a")],
            id="one parameter of a table",
        ),
        pytest.param(
            '@pytest.mark.parametrize("x", [pytest.param(1, marks=[mark.slow, pytest.mark.case("RC-1")])])\n'
            "def test_a(x): ...",
            [Mention("RC-1", "t.py::test_a")],
            id="among other marks",
        ),
        pytest.param('pytestmark = pytest.mark.case("RC-1")', [Mention("RC-1", "t.py")], id="a whole module"),
        pytest.param(
            'T = [pytest.param(marks=mark.case("RC-1"))]', [Mention("RC-1", "t.py")], id="a table apart"
        ),
        pytest.param("TEXT = '@pytest.mark.case(\"RC-1\")'", [], id="text in a string names nothing"),
        pytest.param('# @pytest.mark.case("RC-1")', [], id="a comment names nothing"),
        pytest.param('switch.case("RC-1")', [], id="another function called case names nothing"),
    ],
)
def test_marks_are_found(source, want):
    assert marks_in(source, "t.py") == (want, [])


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        pytest.param("@pytest.mark.case(CASE)\ndef test_a(): ...", "is not a plain string", id="a variable"),
        pytest.param(
            "@pytest.mark.case(*CASES)\ndef test_a(): ...", "is not a plain string", id="an unpacked list"
        ),
        pytest.param("@pytest.mark.case()\ndef test_a(): ...", "names no case", id="no id"),
        pytest.param("case = pytest.mark.case", "is not called here", id="an alias"),
        pytest.param("@pytest.mark.case\ndef test_a(): ...", "is not called here", id="a bare decorator"),
    ],
)
def test_a_mark_that_cannot_be_read_is_reported(source, complaint):
    mentions, [problem] = marks_in(source, "t.py")
    assert mentions == []
    assert problem.startswith("t.py")
    assert complaint in problem


def test_everything_agrees():
    assert case_problems(places("RC-1", "RC-2"), [Mention("RC-1", "t.py::test_a")], waiting("RC-2")) == []


@pytest.mark.parametrize(
    ("cases", "mentions", "listed", "complaint"),
    [
        pytest.param(["RC-1"], [], [], "page.md:1: no test shows RC-1", id="a case without a test"),
        pytest.param(
            [],
            ["RC-9"],
            [],
            "t.py::test_a: names RC-9, which docs/spec does not state",
            id="a test of an unknown case",
        ),
        pytest.param(
            ["RC-1"],
            ["RC-1"],
            ["RC-1"],
            "not-yet-due.txt:1: RC-1 is shown by t.py::test_a; remove the line",
            id="a listed case that has a test",
        ),
        pytest.param(
            [],
            [],
            ["RC-9"],
            "not-yet-due.txt:1: docs/spec states no case RC-9",
            id="a listed case that does not exist",
        ),
        pytest.param(
            ["RC-1", "RC-1"],
            ["RC-1"],
            [],
            "page.md:2: RC-1 is already the id of page.md:1",
            id="an id given twice",
        ),
        pytest.param(
            ["RC-9", "RC-10"], [], ["RC-10", "RC-9"], "RC-9 belongs before RC-10", id="a list out of order"
        ),
        pytest.param(["RC-1"], [], ["RC-1", "RC-1"], "RC-1 is listed twice", id="a line repeated"),
        pytest.param(["RC-1"], ["RC-1"], ["rc1"], "'rc1' is not a case id", id="a line that is no id"),
    ],
)
def test_a_disagreement_is_one_clear_line(cases, mentions, listed, complaint):
    problems = case_problems(places(*cases), [Mention(i, "t.py::test_a") for i in mentions], waiting(*listed))
    assert complaint in "\n".join(problems)


def test_marks_come_in_the_order_of_the_file():
    source = "".join(f'@pytest.mark.case("RC-{n}")\ndef test_{n}(): ...\n' for n in (3, 1, 2))
    assert [mention.id for mention in marks_in(source, "t.py").mentions] == ["RC-3", "RC-1", "RC-2"]


def test_an_id_given_twice_is_missed_once():
    problems = case_problems(places("RC-1", "RC-1"), [], [])
    assert ["no test shows" in problem for problem in problems] == [True, False]


def test_a_listed_case_stays_listed():
    before = Earlier("HEAD", frozenset({"RC-1"}), frozenset({"RC-1"}))
    assert case_problems(places("RC-1"), [], waiting("RC-1"), [before]) == []


def test_a_new_case_may_join_the_list():
    before = Earlier("HEAD", frozenset({"RC-1"}), frozenset({"RC-1"}))
    assert case_problems(places("RC-1", "RC-2"), [], waiting("RC-1", "RC-2"), [before]) == []


def test_a_case_that_was_shown_may_not_return_to_the_list():
    before = Earlier("HEAD", frozenset({"RC-1"}), frozenset())
    [problem] = case_problems(places("RC-1"), [], waiting("RC-1"), [before])
    assert "RC-1 was not waiting at HEAD; the list only shrinks" in problem


def test_rules_of_text_and_code_are_compared_both_ways():
    assert rule_problems({"raycluster-1", "raycluster-2"}, {"raycluster-2", "raycluster-3"}) == [
        "docs/spec does not name the validation rule raycluster-3",
        "docs/spec names raycluster-1, which no code checks",
    ]


def test_the_command_sums_up_in_one_line(checkout, capsys):
    assert main([], checkout, RULES) == 0
    assert capsys.readouterr().out == "cases: 1 shown, 1 not yet due\n"


def test_the_command_lists_what_is_wrong_and_fails(checkout, capsys):
    (checkout / "docs/spec/not-yet-due.txt").write_text("")
    assert main([], checkout, {*RULES, "raycluster-m2"}) == 1
    out = capsys.readouterr().out
    assert out.startswith("cases: 2 problems\n")
    assert "docs/spec/widgets.md:5: no test shows RC-2" in out
    assert "does not name the validation rule raycluster-m2" in out


def test_a_mark_that_cannot_be_read_fails_the_command(checkout, capsys):
    (checkout / "tests/test_more.py").write_text("import pytest\nalias = pytest.mark.case\n")
    assert main([], checkout, RULES) == 1
    assert "tests/test_more.py: pytest.mark.case is not called here" in capsys.readouterr().out


def test_the_list_option_prints_cases_with_their_tests(checkout, capsys):
    assert main(["--list"], checkout) == 0
    assert capsys.readouterr().out.splitlines() == [
        "RC-1    tests/test_widgets.py::test_a_widget_spins",
        "RC-2    not yet due",
    ]


def test_the_list_option_names_a_test_of_two_marks_once(checkout, capsys):
    (checkout / "tests/test_widgets.py").write_text(TEST.replace('"RC-1"', '"RC-1", "RC-1"'))
    assert main(["--list"], checkout) == 0
    assert capsys.readouterr().out.startswith("RC-1    tests/test_widgets.py::test_a_widget_spins\n")


def test_a_folder_outside_git_has_no_earlier_commit(checkout, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(checkout.parent))
    assert read_earlier(checkout, "HEAD") is None


def test_a_machine_without_git_has_no_earlier_commit(checkout, monkeypatch):
    monkeypatch.setenv("PATH", str(checkout))
    assert read_earlier(checkout, "HEAD") is None


@pytest.fixture
def committed(checkout, monkeypatch):
    """Commit the checkout and go on committing by calling the fixture's value."""
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(variable, raising=False)
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com", "-c", "commit.gpgsign=false"]

    def git(*arguments):
        subprocess.run(["git", "-C", checkout, *identity, *arguments], check=True, capture_output=True)

    def commit():
        git("add", ".")
        git("-c", "core.hooksPath=/dev/null", "commit", "-m", "A change")

    git("init")
    commit()
    return commit


@pytest.fixture
def hidden_test(checkout, committed):
    """A checkout whose only test has gone and whose case went back to the list, not yet committed."""
    (checkout / "tests/test_widgets.py").write_text("")
    (checkout / "docs/spec/not-yet-due.txt").write_text("RC-1\nRC-2\n")
    return checkout


def test_cases_and_list_of_a_commit_are_read(checkout, committed):
    assert read_earlier(checkout, "HEAD") == Earlier("HEAD", frozenset({"RC-1", "RC-2"}), frozenset({"RC-2"}))
    assert read_earlier(checkout, "HEAD^") is None


def test_a_longer_list_is_refused_before_it_is_committed(hidden_test, capsys):
    assert main([], hidden_test, RULES) == 1
    assert "RC-1 was not waiting at HEAD;" in capsys.readouterr().out


def test_a_longer_list_is_refused_after_it_was_committed(hidden_test, committed, capsys):
    committed()
    assert main([], hidden_test, RULES) == 1
    assert "RC-1 was not waiting at HEAD^;" in capsys.readouterr().out
