"""Jobs: Pods that run until enough of them succeeded. The labels by which a Job knows its Pods are the server's."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.job_status import status_problems
from kubereef.kinds.behaviours.job_validation import job_problems, update_problems
from kubereef.kinds.behaviours.podspec_defaults import template_defaults
from kubereef.kinds.behaviours.podspec_validation.warnings import template_warnings
from kubereef.kinds.columns import AGE, NAME, SELECTOR, at, containers_and_images, duration
from kubereef.kinds.resource import Behaviour, Column, Object, TableMoment
from kubewire import names
from kubewire.times import parse_time

_MOST_FAILURES = 2**31 - 1
_UID_LABEL = "batch.kubernetes.io/controller-uid"
_NAME_LABEL = "batch.kubernetes.io/job-name"
# What a condition that holds makes of the status column, the first that does.
_STATUS_WORDS = ("Complete", "Failed", "", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _defaults(job: Object) -> None:
    spec = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    policy = spec.get("podFailurePolicy")
    for field, value in (
        ("parallelism", 1),
        ("backoffLimit", _MOST_FAILURES if per_index else 6),
        ("completionMode", "NonIndexed"),
        ("suspend", False),
        ("manualSelector", False),
        ("podReplacementPolicy", "TerminatingOrFailed" if policy is None else "Failed"),
    ):
        if spec.get(field) is None:
            spec[field] = value
    for rule in (policy or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition["status"] = condition.get("status") or "True"
    template_defaults(spec["template"])


_LONGEST_LABEL = 63


def _prepare_create(job: Object) -> None:
    metadata, spec = job["metadata"], job["spec"]
    template = spec["template"]["metadata"]
    if not spec["manualSelector"]:
        uid, name = metadata["uid"], metadata.get("name", "")
        own = {"controller-uid": uid, "job-name": name, _UID_LABEL: uid, _NAME_LABEL: name}
        # What the writer gave instead is left alone, and refused if it is something else.
        template["labels"] = {**own, **(template.get("labels") or {})}
        selector = spec.get("selector") or {}
        selector["matchLabels"] = {_UID_LABEL: uid, **(selector.get("matchLabels") or {})}
        spec["selector"] = selector
    # What cannot be a label is refused in the template, and not a second time here.
    is_short = len(metadata.get("name", "")) <= _LONGEST_LABEL
    if not metadata.get("labels") and template.get("labels") and is_short:
        metadata["labels"] = dict(template["labels"])


def _is_true(job: Object, kind: str) -> bool:
    conditions = at(job, "status", "conditions") or ()
    return any(one.get("type") == kind and one.get("status") == "True" for one in conditions)


def _status_cell(job: Object) -> str:
    for word in _STATUS_WORDS:
        if not word and job["metadata"].get("deletionTimestamp"):
            return "Terminating"
        if word and _is_true(job, word):
            return word
    return "Running"


def _completions_cell(job: Object) -> str:
    done, wanted = at(job, "status", "succeeded") or 0, at(job, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(job, "spec", "parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration_cell(job: Object, moment: TableMoment) -> str:
    start, end = at(job, "status", "startTime"), at(job, "status", "completionTime")
    if not start:
        return ""
    finished = parse_time(end).timestamp() if end else moment.now
    return duration(finished - parse_time(start).timestamp())


def _warnings(job: Object) -> list[str]:
    found = []
    if unfit := names.dns1123_label(job["metadata"].get("name", "")):
        found.append(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior;"
            f" a DNS label is recommended: [{' '.join(unfit)}]"
        )
    found += template_warnings(job["spec"]["template"], ("spec", "template"))
    completions, parallelism = job["spec"].get("completions") or 0, job["spec"].get("parallelism") or 0
    if job["spec"]["completionMode"] == "Indexed" and completions > 100_000 and parallelism > 10_000:
        found.append(
            "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4,"
            " Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    return found


def _update_warnings(new: Object, old: Object) -> list[str]:
    return [] if new["spec"] == old.get("spec") else _warnings(new)


JOBS = Behaviour(
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_status=checks.beside_spec,
    validate=checks.listed(job_problems),
    validate_update=checks.listed(update_problems),
    validate_status=checks.listed(status_problems),
    warnings=_warnings,
    update_warnings=_update_warnings,
    counts_generations=True,
    default_propagation="Orphan",
    selectable={"status.successful": lambda job: str(at(job, "status", "succeeded") or 0)},
    columns=(
        NAME,
        Column("Status", lambda job, _: _status_cell(job)),
        Column("Completions", lambda job, _: _completions_cell(job)),
        Column("Duration", _duration_cell),
        AGE,
        *containers_and_images("spec", "template"),
        SELECTOR,
    ),
)
