"""Acts on Pods that have a path of their own: a scheduler binds them to nodes, and whoever drains a node evicts them.

Resizing and ephemeral containers need nothing of this: they are parts of a Pod that are written as such.
"""

from typing import Any

from kubereef.kinds.behaviours.pods import set_condition
from kubereef.kinds.resource import Behaviour, Object, ResourceType
from kubereef.server.budgets import spend_budget
from kubereef.server.calls import Call
from kubereef.server.core import Server
from kubereef.server.deleting import check_preconditions, delete_record
from kubereef.server.incoming import incoming_object
from kubereef.server.options import DeleteOptions, WriteOptions
from kubereef.server.requests import Response, json_response
from kubereef.server.topology import topology_labels
from kubereef.server.webhooks.admitting import admitted, unasked
from kubereef.server.writing import check_namespace, missing
from kubereef.store.records import Key, Record
from kubewire import errors, fielderrors, gotypes
from kubewire.gotext import quote
from kubewire.times import format_time


def offer(server: Server) -> None:
    """Have a server answer the acts on Pods."""
    server.subresources[("pods", "binding")] = bind
    server.subresources[("pods", "eviction")] = evict
    server.acts["bindings"] = bind


def _act(group: str, kind: str, definition: str) -> ResourceType:
    """Return what is sent to a path of a Pod: an object that says what to do and is not kept."""
    return ResourceType(
        group=group,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        namespaced=True,
        verbs=frozenset(("create",)),
        behaviour=Behaviour(read=lambda obj: gotypes.read(definition, obj)),
    )


_BINDING = _act("", "Binding", "io.k8s.api.core.v1.Binding")
_EVICTION = _act("policy", "Eviction", "io.k8s.api.policy.v1.Eviction")


async def bind(call: Call) -> Response:
    """Put a Pod onto a node, once and for all."""
    options = WriteOptions.of(call.request, "CreateOptions")
    binding, _ = incoming_object(call.request, _BINDING, options.validation)
    check_namespace(call, binding)
    name = binding["metadata"].get("name", "")
    if call.target.name and call.target.name != name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    if not name:
        raise errors.bad_request("Name parameter required.")
    _check_target(binding["target"])
    await admitted(call, _BINDING, binding, name=name, dry_run=options.dry_run)
    record, pod = _pod(call, name)
    _check_version(binding["metadata"], pod)
    if reason := _unbindable(pod):
        raise errors.conflict("pods/binding", name, f"pod {name} {reason}")
    pod["spec"]["nodeName"] = binding["target"]["name"]
    pod.get("status", {}).pop("nominatedNodeName", None)
    near = topology_labels(call.store, binding["target"]["name"]) if binding["target"].get("kind") else {}
    added = {
        "annotations": binding["metadata"].get("annotations") or {},
        "labels": {**(binding["metadata"].get("labels") or {}), **near},
    }
    for field, entries in added.items():
        if entries:
            pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **entries}
    now = format_time(call.around.clock.now())
    set_condition(pod, {"type": "PodScheduled", "status": "True"}, now)
    if not options.dry_run:
        await call.store.put(record.key, pod, record).done()
    return _done()


async def evict(call: Call) -> Response:
    """Delete a Pod on behalf of whoever needs its node, if it can be spared, and say so in its conditions."""
    options = WriteOptions.of(call.request, "CreateOptions")
    eviction, _ = incoming_object(call.request, _EVICTION, options.validation)
    check_namespace(call, eviction)
    name = call.target.name
    if eviction["metadata"].get("name", "") != name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    await admitted(call, _EVICTION, eviction, dry_run=options.dry_run)
    how = _delete_options(eviction.get("deleteOptions") or {}, options)
    record, pod = _pod(call, name)
    check_preconditions(_pods(call), pod, how)
    spend_budget(call.store, pod, call.around.clock.now(), dry_run=how.dry_run)
    if not how.dry_run:
        evicted = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        set_condition(pod, evicted, format_time(call.around.clock.now()))
        record = call.store.put(record.key, pod, record).record
    await delete_record(unasked(call), record, how)
    return _done()


def _delete_options(given: Object, options: WriteOptions) -> DeleteOptions:
    preconditions: Object = given.get("preconditions") or {}
    return DeleteOptions(
        options.dry_run or bool(given.get("dryRun")),
        given.get("gracePeriodSeconds"),
        given.get("propagationPolicy", ""),
        given.get("orphanDependents"),
        preconditions.get("uid", ""),
        preconditions.get("resourceVersion", ""),
    )


def _check_target(target: Object) -> None:
    problems = []
    if target.get("kind") not in (None, "", "Node"):
        at = ("target", "kind")
        problems.append(fielderrors.not_supported(at, target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        problems.append(fielderrors.required(("target", "name")))
    if problems:
        # The one validation whose refusal is not of the usual form.
        listed = ", ".join(map(str, problems))
        raise errors.ApiError(listed if len(problems) == 1 else f"[{listed}]")


def _unbindable(pod: Object) -> str:
    """Return why a Pod cannot be put onto a node; nothing if it can."""
    spec = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return "is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f"is already assigned to node {quote(spec['nodeName'])}"
    return "has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


def _check_version(wanted: Object, pod: Object) -> None:
    """Refuse a binding that is meant for another Pod of the name, or for this one as it was before."""
    for field, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        given, present = wanted.get(field), pod["metadata"][field]
        if given and given != present:
            because = (
                f"Precondition failed: {title} in precondition: {given}, {title} in object meta: {present}"
            )
            raise errors.conflict("pods", pod["metadata"]["name"], because)


def _pod(call: Call, name: str) -> tuple[Record, Object]:
    record = call.store.latest(Key("pods", call.namespace, name))
    if record is None:
        raise missing(_pods(call), name)
    return record, record.object()


def _pods(call: Call) -> ResourceType:
    found = call.around.registry.find("", "v1", "pods")
    assert found is not None, "Pods are built in"
    return found


def _done() -> Response:
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    return json_response(201, {**status, "status": "Success", "code": 201})
