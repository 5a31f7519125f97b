"""RayCronJob: a RayJob created on a schedule."""

from eagleray.rayapi.declarations import rayjob
from eagleray.rayapi.declarations.common import OBJECT_REFERENCE, conditions, moment
from eagleray.rayapi.declare import (
    BOOLEAN,
    INT32,
    INT64,
    NON_EMPTY_STRING,
    STRING,
    Column,
    Version,
    choice,
    field,
    list_of,
    struct,
)

SPEC = struct(
    "RayCronJobSpec",
    "What to run, when to run it, and how many runs to keep.",
    field(
        "jobTemplate",
        rayjob.SPEC,
        "The spec of every RayJob that is created: the bare spec, without a `metadata` or `spec` around it. "
        "Changes reach later runs only.",
        required=True,
    ),
    field(
        "schedule",
        STRING,
        "When to run, in the five fields of cron: minute, hour, day of month, month, day of week. Names "
        "(`JAN`, `MON`), ranges, steps and lists work, and so do `@hourly`, `@daily`, `@weekly`, `@monthly`, "
        "`@yearly` and `@every 90m`. Time zones go into `timeZone`, never into this text.",
        required=True,
    ),
    field(
        "suspend",
        BOOLEAN,
        "Create no further RayJobs. Those that run go on.",
        pointer=True,
    ),
    field(
        "timeZone",
        NON_EMPTY_STRING,
        "IANA name of the zone in which `schedule` is read, such as `Europe/Berlin`. When unset, the zone of "
        "the operator's process, usually UTC.",
        pointer=True,
    ),
    field(
        "concurrencyPolicy",
        choice("Allow", "Forbid", "Replace"),
        "What happens when a run is due while an earlier one goes on: `Allow`, also when unset, runs both; "
        "`Forbid` skips the new one; `Replace` deletes the earlier one first.",
    ),
    field(
        "startingDeadlineSeconds",
        INT64,
        "How late, in seconds, a missed run may still start; older ones are skipped. When unset, the latest "
        "missed run is made up however late it is. Earlier missed runs are never made up.",
        pointer=True,
    ),
    field(
        "successfulJobsHistoryLimit",
        INT32,
        "How many succeeded RayJobs to keep; older ones are deleted with all they own. When unset, all of "
        "them; 0 keeps none.",
        pointer=True,
    ),
    field(
        "failedJobsHistoryLimit",
        INT32,
        "How many failed RayJobs to keep; older ones are deleted with all they own. When unset, all of them; "
        "0 keeps none.",
        pointer=True,
    ),
)

STATUS = struct(
    "RayCronJobStatus",
    "What the schedule has led to. Written by the operator alone.",
    moment("lastScheduleTime", "The time, by the schedule, of the latest run that was started."),
    field(
        "active", list_of(OBJECT_REFERENCE, atomic=True), "The RayJobs of this schedule that have not ended."
    ),
    conditions(
        "What is true of the schedule, one entry per type, with the reason why runs are skipped or refused "
        "if they are."
    ),
)

V1 = Version(
    "RayCronJob",
    "v1",
    "Creates a RayJob at the times of a cron schedule.",
    SPEC,
    STATUS,
    (
        Column("schedule", ".spec.schedule"),
        Column("timezone", ".spec.timeZone"),
        Column("last schedule", ".status.lastScheduleTime", "date"),
        Column("age", ".metadata.creationTimestamp", "date"),
        Column("suspend", ".spec.suspend", "boolean"),
    ),
)
