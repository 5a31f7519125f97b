"""The rules of a RayCronJob."""

from collections.abc import Iterable

from eagleray.rayapi.problems import Problem, at, quoted
from eagleray.rayapi.rules.naming import name_of, too_long
from eagleray.rayapi.rules.rayjob import described_job
from eagleray.rayapi.rules.reading import Object, is_set, mapping, text
from eagleray.rayapi.rules.rulebook import Finding, Findings, Rule, Rulebook, Scope
from kubewire.names import dns1035_label
from kubewire.paths import FieldPath

LONGEST_NAME = 36

_SCHEDULE: FieldPath = ("spec", "schedule")
_ZONE: FieldPath = ("spec", "timeZone")


class CronJob:
    """A RayCronJob as its rules read it."""

    __slots__ = ("obj", "schedule", "scope", "spec", "zone")

    def __init__(self, obj: Object, scope: Scope) -> None:
        self.obj = obj
        self.scope = scope
        self.spec = mapping(obj, "spec")
        self.schedule = text(self.spec, "schedule")
        self.zone = text(self.spec, "timeZone")


_RULES: Rulebook[CronJob] = Rulebook("RayCronJob")


@_RULES.rule("raycronjob-c1")
def name_length(cron: CronJob) -> Findings:
    """The name has at most 36 characters."""
    return too_long("RayCronJob", name_of(cron.obj), LONGEST_NAME)


@_RULES.rule("raycronjob-c2")
def zone_in_schedule(cron: CronJob) -> Findings:
    """The schedule carries no time zone."""
    if "TZ" in cron.schedule:
        yield Finding(_SCHEDULE, "cannot use TZ or CRON_TZ in schedule", "use timeZone instead")


@_RULES.rule("raycronjob-c3")
def schedule_unreadable(cron: CronJob) -> Findings:
    """The schedule is a cron expression."""
    # A zone in the schedule has been spoken of; a missing schedule is the schema's business.
    if "TZ" in cron.schedule or not is_set(cron.spec, "schedule"):
        return
    from eagleray.cron import InvalidSchedule, parse  # only a RayCronJob pays for it

    try:
        parse(cron.schedule, None)
    except InvalidSchedule as bad:
        complaint, way_out = _parted(str(bad), "write five fields, such as `*/15 * * * *`, or `@hourly`")
        yield Finding(_SCHEDULE, f"invalid cron schedule: {complaint}", way_out)


@_RULES.rule("raycronjob-c4")
def zone_empty(cron: CronJob) -> Findings:
    """timeZone, if it is there, is not empty."""
    if is_set(cron.spec, "timeZone") and not cron.zone:
        yield Finding(_ZONE, "must not be empty", "name a zone such as Europe/Berlin, or remove it")


@_RULES.rule("raycronjob-c5")
def zone_unknown(cron: CronJob) -> Findings:
    """timeZone is a zone of the time zone database."""
    if not cron.zone:
        return
    from eagleray.cron import UnknownZone, check_zone  # only a RayCronJob with a zone pays for it

    try:
        check_zone(cron.zone)
    except UnknownZone as bad:
        _, way_out = _parted(str(bad), "use an IANA name such as Europe/Berlin or UTC")
        yield Finding(_ZONE, f"invalid time zone {quoted(cron.zone)}", way_out)


@_RULES.embedding("raycronjob-c6")
def job_template(cron: CronJob) -> Iterable[Problem]:
    """The job that the template describes keeps the rules of a RayJob."""
    for problem in described_job(mapping(cron.spec, "jobTemplate"), cron.scope):
        placed = at(("spec", "jobTemplate"), problem)
        if placed.severity == "error":
            placed = placed._replace(message=f"invalid RayJob template: {placed.message}")
        yield placed


@_RULES.rule("raycronjob-w1", severity="warning")
def name_form(cron: CronJob) -> Findings:
    """The name is a DNS-1035 label, else every RayJob that is made of it will be refused."""
    name = name_of(cron.obj)
    if name.value and len(name.value) <= LONGEST_NAME and dns1035_label(name.value):
        yield Finding(
            name.path,
            f"{quoted(name.value)} is not a DNS-1035 label, so each RayJob named after it will be refused",
            "use lower-case letters, digits and '-', with a letter first and no '-' at the end",
        )


def _parted(error: str, otherwise: str) -> tuple[str, str]:
    """Return complaint and way out of an error about a schedule, which ends with the way out if any."""
    complaint, semicolon, way_out = error.rpartition("; ")
    if not semicolon or way_out.endswith('"'):
        return error, otherwise  # no way out, and perhaps a semicolon in what the user wrote
    return complaint, way_out


RAYCRONJOB: tuple[Rule[CronJob], ...] = tuple(_RULES.rules)
