"""What may be asked of a Job, and what may change about one that is there."""

import copy

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, label_selector, named
from kubereef.kinds.behaviours.podspec_validation.specs import template_problems
from kubereef.kinds.columns import at
from kubereef.kinds.resource import Object
from kubewire import fielderrors, names
from kubewire.fielderrors import OMITTED, Verbatim
from kubewire.gotext import quote
from kubewire.paths import FieldPath, Key
from kubewire.selectors import LabelSelector, SelectorError

_TEMPLATE = ("spec", "template")
_MOST_PARALLEL = 100_000
_MOST_RULES = 20
_MOST_EXIT_CODES = 255
_MOST_CONDITIONS = 20
_LONGEST_MANAGER = 63
_LONGEST_INDEX = 20
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
# What may still change about the template of a Job that has no Pods, because it is suspended.
_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


def job_problems(job: Object) -> Problems:
    """Yield what is wrong with a Job."""
    spec = job["spec"]
    yield from _own_labels(job)
    yield from _pod_names(job)
    yield from checks.numbers_not_negative(("spec",), spec, *_NUMBERS)
    yield from _mode(spec)
    yield from _manager(spec)
    if spec.get("podFailurePolicy") is not None:
        yield from _failure_policy(spec)
    if spec.get("successPolicy") is not None:
        yield from _success_policy(spec)
    policy = spec.get("podReplacementPolicy")
    allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    if policy is not None and policy not in allowed:
        yield fielderrors.not_supported(("spec", "podReplacementPolicy"), policy, allowed)
    yield from template_problems(spec["template"], _TEMPLATE)
    yield from _restart_policy(spec)
    yield from _selector(spec)


def _own_labels(job: Object) -> Problems:
    """Yield what somebody chose although the server does: the selector, and the labels that it finds Pods by."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    labels = spec["template"]["metadata"].get("labels") or {}
    here = (*_TEMPLATE, "metadata", "labels")
    expected = {"controller-uid": uid, "job-name": name}
    expected |= {f"batch.kubernetes.io/{key}": value for key, value in tuple(expected.items())}
    for key, value in expected.items():
        if key not in labels:
            yield fielderrors.required((*here, Key(key)), f"must be '{value}'")
        elif labels[key] != value:
            yield fielderrors.invalid((*here, Key(key)), labels, f"must be '{value}'")
    chosen = spec["selector"].get("matchLabels") or {}
    own = ({"controller-uid": uid}, {"batch.kubernetes.io/controller-uid": uid})
    if chosen not in own or spec["selector"].get("matchExpressions"):
        yield fielderrors.invalid(("spec", "selector"), spec["selector"], "`selector` not auto-generated")


def _pod_names(job: Object) -> Problems:
    """Yield that Pods of an indexed Job would have names that cannot be."""
    spec, name = job["spec"], job["metadata"].get("name", "")
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        longest = f"{name}-{completions - 1}"
        if names.dns1123_label(longest):
            detail = f"will not able to create pod with invalid DNS label: {longest}"
            yield fielderrors.invalid(("metadata", "name"), name, detail)


def _mode(spec: Object) -> Problems:
    mode = spec.get("completionMode")
    per_index, most_failed = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    if most_failed is not None and per_index is None:
        yield fielderrors.required(("spec", "backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    if mode not in ("NonIndexed", "Indexed"):
        yield fielderrors.not_supported(("spec", "completionMode"), mode, ("NonIndexed", "Indexed"))
    elif mode == "NonIndexed":
        yield from _needs_indexes(spec)
    else:
        yield from _indexed(spec)


def _needs_indexes(spec: Object) -> Problems:
    for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(field) is not None:
            yield fielderrors.invalid(("spec", field), spec[field], "requires indexed completion mode")


def _indexed(spec: Object) -> Problems:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    if completions is None:
        yield fielderrors.required(("spec", "completions"), "when completion mode is Indexed")
    if parallelism > _MOST_PARALLEL:
        detail = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
        yield fielderrors.invalid(("spec", "parallelism"), parallelism, detail)
    most_failed = spec.get("maxFailedIndexes")
    if most_failed is not None and completions is not None and most_failed > completions:
        detail = "must be less than or equal to completions"
        yield fielderrors.invalid(("spec", "maxFailedIndexes"), most_failed, detail)


def _manager(spec: Object) -> Problems:
    manager = spec.get("managedBy")
    if manager is None:
        return
    here = ("spec", "managedBy")
    domain, slash, rest = manager.partition("/")
    if not slash or not domain or not rest:
        yield fielderrors.invalid(here, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from named(here, domain, names.dns1123_subdomain)
    if len(manager) > _LONGEST_MANAGER:
        yield fielderrors.too_long(here, _LONGEST_MANAGER)


def _restart_policy(spec: Object) -> Problems:
    here = (*_TEMPLATE, "spec", "restartPolicy")
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy == "Always":
        yield fielderrors.required(here, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield fielderrors.not_supported(here, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield fielderrors.invalid(here, policy, detail)


def _selector(spec: Object) -> Problems:
    selector = spec.get("selector")
    if selector is None:
        yield fielderrors.required(("spec", "selector"))
    yield from label_selector(("spec", "selector"), selector)
    labels = spec["template"]["metadata"].get("labels")
    try:
        fits = selector is not None and LabelSelector.of(selector).matches(labels)
    except SelectorError:
        return  # it has been refused above
    if not fits:
        here = (*_TEMPLATE, "metadata", "labels")
        yield fielderrors.invalid(here, labels, "`selector` does not match template `labels`")


def _failure_policy(spec: Object) -> Problems:
    here = ("spec", "podFailurePolicy", "rules")
    rules = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > _MOST_RULES:
        yield fielderrors.too_many(here, len(rules), _MOST_RULES)
    pod = spec["template"]["spec"]
    containers = {
        one.get("name") for field in ("containers", "initContainers") for one in pod.get(field) or ()
    }
    for index, rule in enumerate(rules):
        yield from _failure_rule((*here, index), rule, containers, spec)


def _failure_rule(here: FieldPath, rule: Object, containers: set[str], spec: Object) -> Problems:
    action, codes, conditions = rule.get("action"), rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if not action:
        yield fielderrors.required((*here, "action"), f"valid values: {_listing(_ACTIONS)}")
    elif action not in _ACTIONS:
        yield fielderrors.not_supported((*here, "action"), action, _ACTIONS)
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield fielderrors.invalid((*here, "action"), action, "requires the backoffLimitPerIndex to be set")
    if codes is not None:
        yield from _exit_codes((*here, "onExitCodes"), codes, containers)
    if len(conditions) > _MOST_CONDITIONS:
        yield fielderrors.too_many((*here, "onPodConditions"), len(conditions), _MOST_CONDITIONS)
    for index, condition in enumerate(conditions):
        at_condition = (*here, "onPodConditions", index)
        yield from named((*at_condition, "type"), condition.get("type", ""), names.qualified_name)
        if condition.get("status") not in ("True", "False", "Unknown"):
            supported = ("False", "True", "Unknown")
            yield fielderrors.not_supported((*at_condition, "status"), condition.get("status", ""), supported)
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield fielderrors.invalid(here, OMITTED, detail)
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        yield fielderrors.invalid(here, OMITTED, detail)


def _exit_codes(here: FieldPath, codes: Object, containers: set[str]) -> Problems:
    operator, values = codes.get("operator"), codes.get("values") or []
    if not operator:
        yield fielderrors.required((*here, "operator"), f"valid values: {_listing(_OPERATORS)}")
    elif operator not in _OPERATORS:
        yield fielderrors.not_supported((*here, "operator"), operator, _OPERATORS)
    if codes.get("containerName") is not None and codes["containerName"] not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield fielderrors.invalid((*here, "containerName"), codes["containerName"], detail)
    if not values:
        yield fielderrors.invalid((*here, "values"), values, "at least one value is required")
    elif len(values) > _MOST_EXIT_CODES:
        yield fielderrors.too_many((*here, "values"), len(values), _MOST_EXIT_CODES)
    for index, value in enumerate(values[:_MOST_EXIT_CODES]):
        if operator == "In" and value == 0:
            yield fielderrors.invalid((*here, "values", index), value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield fielderrors.duplicate((*here, "values", index), value)
    if values != sorted(values):
        yield fielderrors.invalid((*here, "values"), values, "must be ordered")


def _success_policy(spec: Object) -> Problems:
    here = ("spec", "successPolicy")
    if spec.get("completionMode") != "Indexed":
        yield fielderrors.invalid(here, _shown_policy(spec), "requires indexed completion mode")
        return
    rules = spec["successPolicy"].get("rules") or []
    if not rules:
        yield fielderrors.required(
            (*here, "rules"), "at least one rules must be specified when the successPolicy is specified"
        )
    if len(rules) > _MOST_RULES:
        yield fielderrors.too_many((*here, "rules"), len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        at_rule = (*here, "rules", index)
        count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            detail = "at least one of succeededCount or succeededIndexes must be specified"
            yield fielderrors.required(at_rule, detail)
        if count is not None and count < 0:
            detail = "must be greater than or equal to 0"
            yield fielderrors.invalid((*at_rule, "succeededCount"), count, detail)
        yield from _succeeded_indexes(at_rule, rule, spec.get("completions") or 0)
        if count is not None and count > (spec.get("completions") or 0):
            detail = f"must be less than or equal to {spec.get('completions')} (the number of specified completions)"
            yield fielderrors.invalid((*at_rule, "succeededCount"), count, detail)


def _shown_policy(spec: Object) -> Verbatim:
    fields = (("SucceededIndexes", "succeededIndexes"), ("SucceededCount", "succeededCount"))
    rules = (
        checks.go_struct(*((name, rule.get(field)) for name, field in fields))
        for rule in spec["successPolicy"].get("rules") or ()
    )
    return Verbatim(f'{{"Rules":[{",".join(rules)}]}}')


def _succeeded_indexes(here: FieldPath, rule: Object, completions: int) -> Problems:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None:
        return
    try:
        total = _index_count(indexes, completions)
    except ValueError as bad:
        detail = f"error parsing succeededIndexes: {bad}"
        yield fielderrors.invalid((*here, "succeededIndexes"), indexes, detail)
        return
    if count is not None and count > total:
        detail = (
            f"must be less than or equal to {total}"
            " (the number of indexes in the specified succeededIndexes field)"
        )
        yield fielderrors.invalid((*here, "succeededCount"), count, detail)


def _index_count(text: str, completions: int) -> int:
    """Return how many indexes a text such as `0,2-4` names; ValueError says why it names none."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        ends = interval.split("-")
        if len(ends) > 2:
            raise ValueError(
                f"the fragment {quote(interval)} violates the requirement that an index interval can have"
                " at most two parts separated by '-'"
            )
        numbers = [_index(end, completions) for end in ends]
        if len(numbers) > 1 and numbers[0] >= numbers[1]:
            raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
        if last >= numbers[0]:
            raise ValueError(f"non-increasing order, previous: {last}, current: {numbers[0]}")
        last = numbers[-1]
        total += last - numbers[0] + 1
    return total


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < _LONGEST_INDEX):
        raise ValueError(f"cannot convert string to integer for index: {quote(text)}")
    if int(text) >= completions:
        raise ValueError(f"too large index: {quote(text)}")
    return int(text)


def _listing(values: tuple[str, ...]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def update_problems(new: Object, old: Object) -> Problems:
    """Yield what changed about a Job that may not."""
    spec, before = new["spec"], old["spec"]
    yield from _completions(spec, before)
    yield from checks.unchanged(("spec", "selector"), spec.get("selector"), before.get("selector"))
    yield from _template(new, old)
    if spec.get("completionMode") == "NonIndexed":
        yield from _needs_indexes(spec)  # a second time: an update has these looked at on their own as well
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from checks.unchanged(("spec", field), spec.get(field), before.get(field))


def _completions(spec: Object, before: Object) -> Problems:
    completions = spec.get("completions")
    if completions == before.get("completions"):
        return
    # An indexed Job may grow and shrink if all its Pods run side by side.
    if before.get("completionMode") != "Indexed":
        yield fielderrors.invalid(("spec", "completions"), completions, checks.IMMUTABLE)
    elif completions is not None and completions != spec.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        yield fielderrors.invalid(("spec", "completions"), completions, detail)


def _template(new: Object, old: Object) -> Problems:
    template, before = new["spec"]["template"], copy.deepcopy(old["spec"]["template"])
    if _has_no_pods(old):
        _take_over_placement(before, template)
    yield from checks.unchanged(_TEMPLATE, template, before)


def _has_no_pods(job: Object) -> bool:
    """Tell whether a Job is suspended and none of its Pods runs, so that their place can still be chosen."""
    if not job["spec"].get("suspend") or at(job, "status", "active"):
        return False
    conditions = at(job, "status", "conditions") or ()
    suspended = any(one.get("type") == "Suspended" and one.get("status") == "True" for one in conditions)
    return suspended or at(job, "status", "startTime") is None


def _take_over_placement(template: Object, wanted: Object) -> None:
    """Give a template what another says about where its Pods run and what they may use."""
    for holder, source, fields in (
        (template["metadata"], wanted["metadata"], ("labels", "annotations")),
        (template["spec"], wanted["spec"], _PLACEMENT),
    ):
        for field in fields:
            if field in source:
                holder[field] = source[field]
            else:
                holder.pop(field, None)
    for field in ("containers", "initContainers"):
        given = {one.get("name"): one for one in wanted["spec"].get(field) or ()}
        for container in template["spec"].get(field) or ():
            same = given.get(container.get("name"))
            if same is not None and "resources" in same:
                container["resources"] = same["resources"]
