"""`eagleray validate`: tells what is wrong with Ray manifests, and where, without a cluster."""

import sys
from typing import TYPE_CHECKING, NamedTuple

from eagleray.gates import GateError, parse_gates
from eagleray.local.manifests import objects_in, read_source
from eagleray.rayapi.rules import ValidationConfig
from eagleray.rayapi.validate import NotRay, validate_object
from kubewire.paths import FieldPath, show
from kubewire.yamltext import Document, Position, YamlError, decode, load_all, locate

if TYPE_CHECKING:
    import argparse

EXIT_VALID = 0
EXIT_PROBLEMS = 1
EXIT_UNREADABLE = 2


class Finding(NamedTuple):
    """One line of the report."""

    file: str
    position: Position
    severity: str  # error, warning or note
    message: str
    rule: str = ""
    path: FieldPath = ()
    way_out: str = ""
    subject: str = ""  # kind/name of the object, where there is one

    def text(self) -> str:
        where = f"{self.file}:{self.position.line}:{self.position.column}"
        what = f"{show(self.path)}: {self.message}" if self.path else self.message
        way_out = f"; {self.way_out}" if self.way_out else ""
        rule = f" [{self.rule}]" if self.rule else ""
        return _printable(f"{where}: {self.severity}: {what}{way_out}{rule}")

    def record(self) -> dict[str, object]:
        return {
            "file": self.file,
            "line": self.position.line,
            "column": self.position.column,
            "severity": self.severity,
            "object": self.subject,
            "rule": self.rule,
            "path": show(self.path),
            "message": self.message,
            "wayOut": self.way_out,
        }


class Report:
    """What was found in all sources."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.valid = 0
        self.invalid = 0
        self.passed_over = 0
        self.unreadable = 0

    @property
    def exit_status(self) -> int:
        if self.unreadable:
            return EXIT_UNREADABLE
        return EXIT_PROBLEMS if any(found.severity == "error" for found in self.findings) else EXIT_VALID

    def text(self) -> str:
        parts = [f"{self.valid} valid", f"{self.invalid} with problems"]
        if self.passed_over:
            parts.append(f"{self.passed_over} of other kinds passed over")
        if self.unreadable:
            parts.append(f"{self.unreadable} could not be read")
        return "\n".join([*(finding.text() for finding in self.findings), ", ".join(parts)])

    def json(self) -> str:
        import json

        fields = {
            "valid": self.valid,
            "invalid": self.invalid,
            "passedOver": self.passed_over,
            "unreadable": self.unreadable,
            "findings": [finding.record() for finding in self.findings],
        }
        return json.dumps(fields, indent=2)

    def cannot_read(self, name: str, why: str, position: Position) -> None:
        self.findings.append(Finding(name, position, "error", why))
        self.unreadable += 1


def configure(parser: "argparse.ArgumentParser") -> None:
    source_help = "a manifest, a folder to search for manifests, or - for standard input"
    parser.add_argument("sources", nargs="+", metavar="FILE", help=source_help)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="form of the report")
    gates_help = "feature gates of the operator that will run the objects"
    parser.add_argument("--feature-gates", default="", metavar="A=true,B=false", help=gates_help)
    parser.epilog = "Exit status: 0 all valid, 1 problems found, 2 something could not be read."


def run(arguments: "argparse.Namespace") -> int:
    try:
        gates = parse_gates(arguments.feature_gates)
    except GateError as bad:
        print(f"eagleray validate: --feature-gates: {bad}", file=sys.stderr)
        return EXIT_UNREADABLE
    for gate in gates.unimplemented():
        print(f"eagleray validate: note: Eagleray's own operator does not have {gate} yet", file=sys.stderr)
    report = Report()
    for source in arguments.sources:
        for name, content in read_source(source):
            if isinstance(content, str):
                report.cannot_read(name, content, Position(1, 1))
            else:
                check(report, name, content, ValidationConfig(gates))
    print(report.text() if arguments.output == "text" else report.json())
    return report.exit_status


def check(report: Report, name: str, raw: bytes, config: ValidationConfig) -> None:
    """Add to the report what is wrong in the text of one file."""
    try:
        text = decode(raw)
        for index, document in enumerate(load_all(text)):
            _check_document(report, name, text, index, document, config)
    except YamlError as bad:
        report.cannot_read(name, bad.message, Position(bad.line, bad.column))


def _check_document(
    report: Report, name: str, text: str, index: int, document: Document, config: ValidationConfig
) -> None:
    for twice in document.duplicates:
        message = f"given twice, first in line {twice.first.line}"
        report.findings.append(
            Finding(name, twice.again, "error", message, "duplicate-key", twice.path, "keep one of them")
        )
    for prefix, obj in objects_in(document.value):
        subject = _subject(obj)
        try:
            verdict = validate_object(obj, config)
        except NotRay:
            # An object that is the whole document needs no second reading of the text to be found.
            place = locate(text, index, [prefix])[0] if prefix else document.position
            message = f"{subject} is not a Ray kind; passed over"
            report.findings.append(Finding(name, place, "note", message, subject=subject))
            report.passed_over += 1
            continue
        if document.duplicates or any(problem.severity == "error" for problem in verdict.problems):
            report.invalid += 1
        else:
            report.valid += 1
        if not verdict.problems:
            continue
        paths = [(*prefix, *problem.path) for problem in verdict.problems]
        start, *places = locate(text, index, [prefix, *paths])
        for path, place, problem in zip(paths, places, verdict.problems, strict=True):
            report.findings.append(
                Finding(
                    name,
                    place,
                    problem.severity,
                    problem.message,
                    problem.rule,
                    path,
                    problem.way_out,
                    subject,
                )
            )
        if not verdict.rules_checked:
            message = "the rules of the controllers were not checked; correct the errors above first"
            report.findings.append(Finding(name, start, "note", message, subject=subject))


def _subject(obj: object) -> str:
    if not isinstance(obj, dict):
        return ""
    metadata = obj.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else None
    return f"{obj.get('kind')}/{name}" if name else str(obj.get("kind", ""))


def _printable(line: str) -> str:
    """Return the line without characters that would steer a terminal; manifests may come from anywhere."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)
