"""What a submitter is told, by its arguments and its environment: where to go, as whom, and with which job. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from eagleray.dashboard.address import Address
from eagleray.dashboard.requests import Submission
from eagleray.manifests.submitter import REQUESTED_AT_VARIABLE, SESSION_VARIABLE
from eagleray.runtime.flags import parse_flags
from eagleray.runtime.optionkinds import NUMBER, TEXT, Kind, OptionError

ADDRESS: Final = "RAY_DASHBOARD_ADDRESS"
SUBMISSION_ID: Final = "RAY_JOB_SUBMISSION_ID"

USAGE: Final = f"""\
usage: eagleray-submitter [--FLAG=VALUE ...] [--] ENTRYPOINT [ARGUMENT ...]

Hands a job to Ray, shows what it prints, and ends as it does.

  --runtime-env-json       the runtime environment, as JSON
  --metadata-json          metadata of the job, as JSON
  --entrypoint-num-cpus    CPUs that the entrypoint takes
  --entrypoint-num-gpus    GPUs that the entrypoint takes
  --entrypoint-resources   other resources that it takes, as JSON

{ADDRESS} is where Ray's dashboard is, {SUBMISSION_ID} the id of the job, and RAY_AUTH_TOKEN,
if the dashboard asks for one, the token."""

_FLAGS: Final[Mapping[str, Kind]] = {
    "runtime-env-json": TEXT,
    "metadata-json": TEXT,
    "entrypoint-resources": TEXT,
    "entrypoint-num-cpus": NUMBER,
    "entrypoint-num-gpus": NUMBER,
}
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?")
_SESSION_TIME: Final = re.compile(r"session_([0-9]{4}(?:-[0-9]{2}){2}_[0-9]{2}(?:-[0-9]{2}){2}_[0-9]{6})")


class Wrong(ValueError):
    """A command line or an environment that cannot be followed; the message names the place."""


class Head(NamedTuple):
    """The head that an attempt was meant for, as far as that is known."""

    session: str = ""
    requested_at: float | None = None

    def is_another(self, session: str) -> bool:
        """Whether the head with this session certainly is another one: the name of a session tells when it began."""
        if self.session:
            return session != self.session
        began = _SESSION_TIME.match(session)
        if began is None or self.requested_at is None:
            return False
        try:
            moment = datetime.strptime(began[1], "%Y-%m-%d_%H-%M-%S_%f").replace(tzinfo=UTC)
        except ValueError:
            return False
        return moment.timestamp() > self.requested_at


class Order(NamedTuple):
    """What to do."""

    address: Address
    tls: bool
    head: Head
    submission: Submission


def read_order(arguments: Sequence[str], variables: Mapping[str, str]) -> Order:
    """Return what arguments and environment ask for together; Wrong if they cannot be followed."""
    flags, words = _parted(arguments)
    try:
        given = parse_flags(flags, _FLAGS)
    except OptionError as bad:
        raise Wrong(str(bad)) from bad
    entrypoint = " ".join(words).strip()
    if not entrypoint:
        raise Wrong("there is no entrypoint; write it behind the flags, as in -- python job.py")
    address, tls = _address(_needed(variables, ADDRESS))
    submission = Submission(
        entrypoint,
        _needed(variables, SUBMISSION_ID),
        runtime_env=_json(given, "runtime-env-json", dict[str, Any]),
        metadata=_json(given, "metadata-json", dict[str, str]),
        num_cpus=_amount(given, "entrypoint-num-cpus"),
        num_gpus=_amount(given, "entrypoint-num-gpus"),
        resources=_json(given, "entrypoint-resources", dict[str, float]),
    )
    return Order(address, tls, _head(variables), submission)


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the flags, and the entrypoint behind them; every flag has a value, after `=` or as the next argument."""
    position = 0
    while position < len(arguments) and arguments[position].startswith("-"):
        if arguments[position] == "--":
            return list(arguments[:position]), list(arguments[position + 1 :])
        position += 1 if "=" in arguments[position] else 2
    return list(arguments[:position]), list(arguments[position:])


def _needed(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name, "").strip()
    if not value:
        raise Wrong(f"{name} is not set; an operator sets it in the containers of submitters")
    return value


def _address(text: str) -> tuple[Address, bool]:
    """Return where the dashboard is, and whether it is spoken to over TLS."""
    scheme, separator, host = text.rpartition("://")
    host = host.removesuffix("/")
    if not _HOST.fullmatch(host) or scheme not in ("", "http", "https") or (separator and not scheme):
        raise Wrong(f"{ADDRESS}: {text[:300]!r} is no address; write host:port, or https://host")
    return Address("", host, ""), scheme == "https"


def _json(given: Mapping[str, object], name: str, kind: type[dict[str, Any]]) -> dict[str, Any] | None:
    text = given.get(name)
    if not isinstance(text, str) or not text:
        return None
    try:
        decoded: dict[str, Any] = msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as bad:
        raise Wrong(f"--{name}: {bad}") from bad
    return decoded


def _amount(given: Mapping[str, object], name: str) -> float:
    value = given.get(name, 0.0)
    if not isinstance(value, int | float) or value < 0:
        raise Wrong(f"--{name}: {value} is too small; the least is 0")
    return float(value)


def _head(variables: Mapping[str, str]) -> Head:
    moment = variables.get(REQUESTED_AT_VARIABLE, "")
    if moment and not (moment.isascii() and moment.isdecimal() and len(moment) < 12):
        raise Wrong(f"{REQUESTED_AT_VARIABLE}: {moment[:40]!r} is no number of seconds")
    return Head(variables.get(SESSION_VARIABLE, ""), float(moment) if moment else None)
