"""Check that each acceptance case of docs/spec is shown by a test or not yet due: `python -m scripts.cases`.

Three texts have to agree: the cases in docs/spec/*.md (`- **RC-12** given → expected`), the ids that tests
name with `@pytest.mark.case("RC-12")`, and docs/spec/not-yet-due.txt, which lists the cases whose code is
still to come and only ever shrinks. The ids of validation rules in docs/spec have to agree with the registry
in `eagleray.rayapi.rules`.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

REPOSITORY = Path(__file__).parents[1]
SPEC = "docs/spec"
NOT_YET_DUE = "docs/spec/not-yet-due.txt"

_CASE_ID = re.compile(r"(?:RC|RJ|RS|CJ|OP)-[1-9][0-9]*")
_CASE_LINE = re.compile(rf"- \*\*({_CASE_ID.pattern})\*\* \S")
_RULE_ID = re.compile(r"`((?:raycluster|rayjob|rayservice|raycronjob)-[a-z]?[0-9]+[a-z]?)`")


class Case(NamedTuple):
    """One acceptance case and the line of the specification that states it."""

    id: str
    place: str


class Mention(NamedTuple):
    """A test, or a table of one, that says it shows a case."""

    id: str
    place: str


class Marks(NamedTuple):
    """The case marks of a test file, and what keeps some of them from being read."""

    mentions: list[Mention]
    problems: list[str]


class Earlier(NamedTuple):
    """What an earlier commit held: its cases and those it listed as not yet due."""

    revision: str
    cases: frozenset[str]
    waiting: frozenset[str]


def natural_order(case_id: str) -> tuple[str, int]:
    """The key that sorts RC-9 before RC-10."""
    prefix, _, number = case_id.partition("-")
    return prefix, int(number)


# --- the specification


def cases_in(text: str, name: str) -> Iterator[Case]:
    """The cases that a page states, one line each."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _CASE_LINE.match(line):
            yield Case(found[1], f"{name}:{number}")


def rule_ids_in(text: str) -> frozenset[str]:
    """The validation rules that a page names, written as `raycluster-4a` in backticks."""
    return frozenset(_RULE_ID.findall(text))


# --- the tests


def marks_in(source: str, name: str) -> Marks:
    """The ids that `pytest.mark.case(…)` names in a test file: decorators, parameters, `pytestmark`."""
    marks = Marks([], [])
    called: set[ast.expr] = set()
    pending: list[tuple[ast.AST, str]] = [(ast.parse(source, name), name)]
    while pending:
        node, place = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            place = f"{place}::{node.name}"
        if isinstance(node, ast.Call) and _is_case_mark(node.func):
            called.add(node.func)
            _read_call(node, place, marks)
        elif _is_case_mark(node) and node not in called:
            marks.problems.append(
                f"{place}: pytest.mark.case is not called here; give it its ids where it stands"
            )
        # Reversed, because the stack hands out the last child first and reports should follow the file.
        pending.extend((child, place) for child in reversed(list(ast.iter_child_nodes(node))))
    return marks


def _is_case_mark(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "case":
        return False
    owner = node.value
    return (isinstance(owner, ast.Attribute) and owner.attr == "mark") or (
        isinstance(owner, ast.Name) and owner.id == "mark"
    )


def _read_call(call: ast.Call, place: str, marks: Marks) -> None:
    if not call.args:
        marks.problems.append(f"{place}: pytest.mark.case() names no case")
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            marks.mentions.append(Mention(argument.value, place))
        else:
            text = ast.unparse(argument)
            marks.problems.append(
                f"{place}: pytest.mark.case({text}) is not a plain string, so nobody can find it"
            )


# --- the list of cases that are not yet due


def waiting_in(text: str) -> list[Case]:
    """The ids a not-yet-due list holds; `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [Case(line, f"{NOT_YET_DUE}:{number}") for number, line in enumerate(lines, start=1) if line]


def _list_problems(waiting: Sequence[Case]) -> Iterator[str]:
    malformed = [entry for entry in waiting if not _CASE_ID.fullmatch(entry.id)]
    if malformed:
        yield from (f"{entry.place}: {entry.id!r} is not a case id" for entry in malformed)
        return
    for before, after in pairwise(waiting):
        if before.id == after.id:
            yield f"{after.place}: {after.id} is listed twice"
        elif natural_order(before.id) > natural_order(after.id):
            yield f"{after.place}: {after.id} belongs before {before.id}; keep the list sorted"


# --- the comparison


def case_problems(
    cases: Sequence[Case],
    mentions: Iterable[Mention],
    waiting: Sequence[Case],
    earlier: Iterable[Earlier] = (),
) -> list[str]:
    """Everything on which specification, tests and list disagree, one line each; empty when they agree."""
    shown: dict[str, list[str]] = defaultdict(list)
    for mention in mentions:
        shown[mention.id].append(mention.place)
    listed = {entry.id for entry in waiting}
    first: dict[str, str] = {}
    problems: list[str] = []
    for case in cases:
        if case.id in first:
            problems.append(
                f"{case.place}: {case.id} is already the id of {first[case.id]}; ids are given once"
            )
            continue
        first[case.id] = case.place
        if case.id not in shown and case.id not in listed:
            problems.append(
                f'{case.place}: no test shows {case.id}; mark one with @pytest.mark.case("{case.id}"),'
                f" or list a new case in {NOT_YET_DUE} until its code lands"
            )
    for case_id, places in shown.items():
        if case_id not in first:
            problems.extend(f"{place}: names {case_id}, which {SPEC} does not state" for place in places)
    problems.extend(_list_problems(waiting))
    for entry in waiting:
        if entry.id in shown:
            problems.append(f"{entry.place}: {entry.id} is shown by {shown[entry.id][0]}; remove the line")
        elif entry.id not in first:
            problems.append(f"{entry.place}: {SPEC} states no case {entry.id}; remove the line")
    for past in earlier:
        problems.extend(
            f"{entry.place}: {entry.id} was not waiting at {past.revision};"
            " the list only shrinks, so show the case again"
            for entry in waiting
            if entry.id in past.cases and entry.id not in past.waiting
        )
    return problems


def rule_problems(documented: Collection[str], registered: Collection[str]) -> list[str]:
    """The validation rules that only the specification or only the code knows."""
    silent = [
        f"{SPEC} does not name the validation rule {rule}" for rule in sorted({*registered} - {*documented})
    ]
    idle = [f"{SPEC} names {rule}, which no code checks" for rule in sorted({*documented} - {*registered})]
    return silent + idle


# --- reading a checkout


def read_spec(root: Path) -> dict[str, str]:
    """The pages of the specification by their path in the checkout."""
    return {
        page.relative_to(root).as_posix(): page.read_text("utf-8")
        for page in sorted((root / SPEC).glob("*.md"))
    }


def read_marks(root: Path) -> Marks:
    """The case marks of all tests."""
    marks = Marks([], [])
    for file in sorted((root / "tests").rglob("*.py")):
        found = marks_in(file.read_text("utf-8"), file.relative_to(root).as_posix())
        marks.mentions.extend(found.mentions)
        marks.problems.extend(found.problems)
    return marks


def read_earlier(root: Path, revision: str) -> Earlier | None:
    """The cases and the list at a commit; None without git, that commit, or a list in it."""
    waiting = _git(root, "show", f"{revision}:./{NOT_YET_DUE}")
    names = _git(root, "ls-tree", "--name-only", revision, f"{SPEC}/")
    if waiting is None or names is None:
        return None
    pages = (_git(root, "show", f"{revision}:./{name}") or "" for name in names.split())
    cases = frozenset(case.id for page in pages for case in cases_in(page, ""))
    return Earlier(revision, cases, frozenset(entry.id for entry in waiting_in(waiting)))


def _git(root: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(["git", "-C", root, *arguments], capture_output=True, check=False, timeout=30)
    except FileNotFoundError:  # no git on this machine: there is no earlier commit to compare with
        return None
    return answer.stdout.decode() if answer.returncode == 0 else None


def registered_rules() -> frozenset[str]:
    """The ids of all validation rules in the code."""
    from eagleray.rayapi.rules import RULES  # only the check needs the package

    return frozenset(rule.id for rules in RULES.values() for rule in rules)


# --- the command


def main(
    arguments: Sequence[str] | None = None, root: Path = REPOSITORY, rules: Collection[str] | None = None
) -> int:
    """Report the disagreements, or one line that sums up the agreement; the exit code says which."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.cases", description="Acceptance cases and their tests."
    )
    parser.add_argument("--list", action="store_true", help="print every case with the tests that show it")
    options = parser.parse_args(arguments)

    pages = read_spec(root)
    cases = [case for name, text in pages.items() for case in cases_in(text, name)]
    marks = read_marks(root)
    waiting = waiting_in((root / NOT_YET_DUE).read_text("utf-8"))
    if options.list:
        _print_list(cases, marks.mentions)
        return 0

    # HEAD guards a change before it is committed, HEAD^ the commit that has just been made.
    past = [found for revision in ("HEAD", "HEAD^") if (found := read_earlier(root, revision))]
    documented = frozenset(rule for text in pages.values() for rule in rule_ids_in(text))
    problems = [
        *marks.problems,
        *case_problems(cases, marks.mentions, waiting, past),
        *rule_problems(documented, registered_rules() if rules is None else rules),
    ]
    if problems:
        print(f"cases: {len(problems)} problem{'s' if len(problems) > 1 else ''}")
        print(*(f"  {problem}" for problem in problems), sep="\n")
        return 1
    print(f"cases: {len(cases) - len(waiting)} shown, {len(waiting)} not yet due")
    return 0


def _print_list(cases: Iterable[Case], mentions: Iterable[Mention]) -> None:
    tests: Mapping[str, list[str]] = defaultdict(list)
    for mention in mentions:
        tests[mention.id].append(mention.place)
    for case in sorted(cases, key=lambda case: natural_order(case.id)):
        print(f"{case.id:<8}{', '.join(dict.fromkeys(tests[case.id])) or 'not yet due'}")


if __name__ == "__main__":
    sys.exit(main())
