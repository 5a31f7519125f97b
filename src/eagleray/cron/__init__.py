"""The language of RayCronJob schedules: five cron fields, `@hourly` and its kin, `@every 90s`.

    weekdays = parse("0 9 * * MON-FRI", "Asia/Taipei")
    weekdays.next(now)  # the next nine o'clock of a working day in Taipei, in UTC

It reads what the standard parser of robfig/cron v3 reads, so a schedule means here what it means to KubeRay.
Reading one is cheap: the time zone database is opened when the first time is asked for.
"""

from eagleray.cron.errors import InvalidSchedule, UnknownZone
from eagleray.cron.parser import parse, schedule_text
from eagleray.cron.schedule import Schedule
from eagleray.cron.zones import check_zone

__all__ = ["InvalidSchedule", "Schedule", "UnknownZone", "check_zone", "parse", "schedule_text"]
