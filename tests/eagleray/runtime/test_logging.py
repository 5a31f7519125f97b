"""The log: encoders, levels, files, and what never stands in it."""

import io
import json
import logging
from datetime import UTC, datetime, timedelta

import pytest

from eagleray.runtime.logfiles import Bounds, RotatingFile
from eagleray.runtime.logging import Logs, about, encoded_time, fields
from eagleray.runtime.options import read_options
from kubewire.sources import ManualClock

MOMENT = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC).timestamp()


@pytest.fixture
def logger():
    logger = logging.getLogger("test.operator")
    logger.propagate = False
    yield logger
    logger.propagate = True


def lines_of(logger, arguments, speak):
    """What stands on stderr after an operator with these flags has spoken."""
    stream = io.StringIO()
    with Logs.open(read_options(arguments, {}).log, ManualClock(), stream, logger):
        speak(logger)
    return stream.getvalue().splitlines()


def greet(logger):
    logger.info("hello %s", "world", extra=fields(step="pods"))


def fail(logger):
    try:
        raise KeyError("oops")
    except KeyError:
        logger.exception("it broke")


@pytest.mark.case("OP-80")
def test_lines_are_json_with_time_level_message_and_fields(logger):
    def speak(logger):
        with about(RayCluster={"name": "c", "namespace": "default"}, reconcileID="id"):
            greet(logger)

    (line,) = lines_of(logger, [], speak)
    found = json.loads(line)
    assert datetime.fromisoformat(found.pop("ts")).tzinfo is UTC
    assert found == {
        "level": "info",
        "logger": "test.operator",
        "msg": "hello world",
        "RayCluster": {"name": "c", "namespace": "default"},
        "reconcileID": "id",
        "step": "pods",
    }


def test_what_lines_are_about_ends_with_its_block(logger):
    def speak(logger):
        with about(a=1), about(b=2):
            logger.info("inside")
        logger.info("outside")

    inside, outside = map(json.loads, lines_of(logger, [], speak))
    assert (inside["a"], inside["b"]) == (1, 2)
    assert not {"a", "b"} & outside.keys()


@pytest.mark.case("OP-11")
def test_the_same_lines_go_to_the_file_and_to_stderr(logger, tmp_path):
    path = tmp_path / "new" / "x.log"
    lines = lines_of(logger, [f"--log-file-path={path}"], greet)
    assert lines == path.read_text().splitlines()
    assert len(lines) == 1


@pytest.mark.case("OP-12")
@pytest.mark.parametrize(
    ("flag", "on_stderr", "in_file"),
    [
        ("--log-file-encoder=console", "json", "console"),
        ("--log-stdout-encoder=console", "console", "json"),
    ],
)
def test_each_place_has_its_encoder(logger, tmp_path, flag, on_stderr, in_file):
    path = tmp_path / "x.log"
    lines = lines_of(logger, [flag, f"--log-file-path={path}"], greet)
    for encoder, line in ((on_stderr, lines[0]), (in_file, path.read_text().rstrip("\n"))):
        if encoder == "json":
            assert json.loads(line)["msg"] == "hello world"
        else:
            assert line.split("\t")[0] == "info"
            assert line.split("\t")[2:] == ["test.operator", "hello world", '{"step":"pods"}']


def test_a_console_line_stays_one_line(logger):
    (line,) = lines_of(logger, ["--log-stdout-encoder=console"], lambda logger: logger.info("a\nb"))
    assert line.endswith("a\\nb")


def speak_at_all_levels(logger):
    for level in ("debug", "info", "warning", "error"):
        getattr(logger, level)(level)


@pytest.mark.case("OP-35")
@pytest.mark.parametrize(
    ("arguments", "levels"),
    [
        pytest.param([], ["info", "warn", "error"], id="info is the default"),
        pytest.param(["--zap-log-level=debug"], ["debug", "info", "warn", "error"], id="debug"),
        pytest.param(["--zap-log-level=2"], ["debug", "info", "warn", "error"], id="a verbosity"),
        pytest.param(["--zap-devel"], ["debug", "info", "warn", "error"], id="development"),
        pytest.param(["--zap-log-level=error"], ["error"], id="error"),
        pytest.param(["--zap-log-level=panic"], [], id="panic"),
    ],
)
def test_levels(logger, arguments, levels):
    lines = lines_of(logger, arguments, speak_at_all_levels)
    assert [json.loads(line)["level"] for line in lines] == levels


@pytest.mark.case("OP-35")
@pytest.mark.parametrize(
    ("arguments", "has_stack"),
    [([], True), (["--zap-stacktrace-level=panic"], False), (["--zap-stacktrace-level=info"], True)],
)
def test_stack_traces(logger, arguments, has_stack):
    (line,) = map(json.loads, lines_of(logger, arguments, fail))
    assert ("stacktrace" in line) is has_stack
    assert line["error"] == "'oops'"
    if has_stack:
        assert "KeyError" in line["stacktrace"]


def test_a_stack_trace_follows_a_console_line(logger):
    lines = lines_of(logger, ["--log-stdout-encoder=console"], fail)
    assert lines[1].startswith("Traceback")


@pytest.mark.case("OP-36")
def test_the_encoder_flag_of_zap_has_no_effect(logger):
    (line,) = lines_of(logger, ["--zap-encoder=console"], greet)
    assert json.loads(line)["msg"] == "hello world"


@pytest.mark.parametrize(
    ("encoding", "want"),
    [
        ("iso8601", "2030-01-02T03:04:05.678Z"),
        ("rfc3339", "2030-01-02T03:04:05Z"),
        ("rfc3339nano", "2030-01-02T03:04:05.678901Z"),
        ("epoch", MOMENT),
        ("millis", MOMENT * 1e3),
        ("nano", round(MOMENT * 1e9)),
    ],
)
def test_times(encoding, want):
    assert encoded_time(MOMENT, encoding) == want


@pytest.mark.case("OP-35")
def test_the_time_encoding_is_that_of_the_flag(logger):
    (line,) = lines_of(logger, ["--zap-time-encoding=epoch"], greet)
    assert isinstance(json.loads(line)["ts"], float)


def test_a_closed_log_leaves_the_logger_as_it_was(logger):
    before = (logger.level, list(logger.handlers))
    lines_of(logger, ["--zap-log-level=debug"], greet)
    assert (logger.level, logger.handlers) == before


@pytest.mark.parametrize("encoder", ["json", "console"])
def test_secrets_are_never_logged(logger, encoder):
    def speak(logger):
        with about(token="hunter2"):
            logger.info("to redis://:hunter2@host with Authorization: Bearer hunter2hunter2")
        try:
            raise ValueError("password=hunter2")
        except ValueError:
            logger.exception("x", extra=fields(env={"REDIS_PASSWORD": "hunter2", "deep": ["token: hunter2"]}))

    text = "\n".join(lines_of(logger, [f"--log-stdout-encoder={encoder}"], speak))
    assert "hunter2" not in text
    assert text.count("[redacted]") >= 6


def rotating(path, clock, **bounds):
    handler = RotatingFile(path, clock, Bounds(**{"size": 100, "backups": 3, **bounds}))
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler


def write(handler, text):
    handler.emit(logging.LogRecord("x", logging.INFO, "", 0, text, (), None))


@pytest.mark.case("OP-81")
def test_a_full_file_is_put_aside_and_the_oldest_go(tmp_path):
    clock = ManualClock()
    handler = rotating(tmp_path / "x.log", clock)
    for number in range(6):
        write(handler, f"{number}" * 60)
        clock.advance(1)
    handler.close()
    assert (tmp_path / "x.log").read_text() == "5" * 60 + "\n"
    assert [path.name for path in handler.backups()] == [
        "x-2030-01-01T00-00-05.000.log",
        "x-2030-01-01T00-00-04.000.log",
        "x-2030-01-01T00-00-03.000.log",
    ]
    assert handler.backups()[0].read_text() == "4" * 60 + "\n"


@pytest.mark.case("OP-81")
def test_files_older_than_30_days_go(tmp_path):
    clock = ManualClock()
    handler = rotating(tmp_path / "x.log", clock)
    write(handler, "a" * 60)
    write(handler, "b" * 60)
    assert len(handler.backups()) == 1
    clock.advance(timedelta(days=30, seconds=1).total_seconds())
    write(handler, "c" * 60)
    handler.close()
    assert [path.read_text()[0] for path in handler.backups()] == ["b"]


@pytest.mark.case("OP-81")
def test_the_bounds_of_the_log_file():
    assert Bounds() == Bounds(size=500 * 1024**2, backups=10, age=timedelta(days=30))


def test_a_restart_goes_on_with_the_file_and_counts_what_is_in_it(tmp_path):
    path = tmp_path / "x.log"
    path.write_text("a" * 90 + "\n")
    handler = rotating(path, ManualClock())
    write(handler, "b" * 20)
    handler.close()
    assert path.read_text() == "b" * 20 + "\n"
    assert len(handler.backups()) == 1


def test_two_files_put_aside_at_one_moment_have_two_names(tmp_path):
    handler = rotating(tmp_path / "x.log", ManualClock())
    for letter in "abc":
        write(handler, letter * 60)
    handler.close()
    assert [path.read_text()[0] for path in handler.backups()] == ["b", "a"]


def test_files_of_others_are_left_alone(tmp_path):
    for name in ("x-notes.log", "x-2030-01-01T00-00-00.000.txt", "y-2030-01-01T00-00-00.000.log"):
        (tmp_path / name).touch()
    handler = rotating(tmp_path / "x.log", ManualClock(), backups=0)
    for letter in "ab":
        write(handler, letter * 60)
    handler.close()
    assert len(list(tmp_path.iterdir())) == 4


def test_debug_lines_stay_out_of_the_file(logger, tmp_path):
    path = tmp_path / "x.log"
    lines = lines_of(logger, ["--zap-log-level=debug", f"--log-file-path={path}"], speak_at_all_levels)
    assert len(lines) == 4
    assert len(path.read_text().splitlines()) == 3
