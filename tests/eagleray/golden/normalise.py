"""What an operator made of a manifest, without what differs from run to run.

A recording is a dict of three lists: `resources` (the manifest's own Ray objects, without their spec), `created` (what
came into being besides) and `events`. Whatever is chance or the server's bookkeeping is dropped or has a placeholder:
`<namespace>`, `<time>`, `<ip>`, `<uid>`, `<uid8>`, `<nodePort>`, `<N bytes>`, `<rand1>` and so on, and `<hash of random
text>` where chance itself is hashed.
"""

import base64
import copy
import re

from eagleray.manifests.submitter import CONTAINER as SUBMITTER
from eagleray.raycluster.podplan import HASH_ANNOTATION

RAY_GROUP = "ray.io/"
BOOKKEEPING = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")

# Who makes objects in any namespace, whatever operator there is.
STOCK_OWNERS = frozenset(
    ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Service")
)
STOCK_KINDS = frozenset(("Endpoints", "EndpointSlice", "Event", "Lease"))
STOCK_NAMES = frozenset((("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")))

# What the status of a RayJob has that only we write.
ADDITIONS = frozenset(("conditions", "submission"))

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
_NUMBERED = re.compile(r"<rand\d+>")
_RANDOM_NAME = re.compile(r"-([a-z0-9]{5})$")


def recording(objects, events, *, namespace, applied):
    """Return the recording of a namespace, given its objects and the operator's events as the API has them.

    `applied` has kind and name of each of the manifest's documents.
    """
    text = _Placeholders(objects, namespace)
    own = [obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) in applied]
    others = [obj for obj in objects if obj not in own and not is_stock(obj)]
    return canonical(
        {
            "resources": [text.of(_own(obj)) for obj in own if obj["apiVersion"].startswith(RAY_GROUP)],
            "created": [text.of(_created(obj)) for obj in others],
            "events": [
                text.of(
                    {
                        "message": event.get("note", ""),
                        "reason": event["reason"],
                        "regarding": event["regarding"]["kind"],
                        "type": event["type"],
                    }
                )
                for event in events
            ],
        }
    )


def canonical(recorded):
    """Return a recording in the one order, with random texts numbered by their first appearance in it."""
    resources = sorted(recorded["resources"], key=_by_kind_and_name)
    created = sorted((_with_sorted_ports(obj) for obj in recorded["created"]), key=_by_kind_and_name)
    numbers: dict[str, int] = {}

    def number(found):
        return f"<rand{numbers.setdefault(found.group(), len(numbers) + 1)}>"

    # What only ours has must not be the first to have a number.
    _mapped(_without_additions([resources, created]), lambda text: _NUMBERED.sub(number, text))
    # The same numbers all over the recording, but an event's text has none.
    resources, created = _mapped([resources, created], lambda text: _NUMBERED.sub(number, text))
    events = _mapped(recorded["events"], lambda text: _NUMBERED.sub("<rand>", text))
    return {"resources": resources, "created": created, "events": _distinct(events)}


def _without_additions(lists):
    return [
        [
            {**obj, "status": {key: value for key, value in obj["status"].items() if key not in ADDITIONS}}
            if obj["kind"] == "RayJob" and "status" in obj
            else obj
            for obj in objects
        ]
        for objects in lists
    ]


def is_stock(obj):
    """Tell whether Kubernetes' own controllers made an object."""
    if obj["kind"] in STOCK_KINDS or (obj["kind"], obj["metadata"]["name"]) in STOCK_NAMES:
        return True
    return any(owner["kind"] in STOCK_OWNERS for owner in obj["metadata"].get("ownerReferences", ()))


def random_texts(objects):
    """Return the parts of names that were drawn by chance."""
    found = []
    for obj in objects:
        metadata = obj["metadata"]
        labels = metadata.get("labels") or {}
        if prefix := metadata.get("generateName"):
            found.append(metadata["name"].removeprefix(prefix))
        if replica := labels.get("ray.io/worker-group-replica-name"):
            found.append(replica.removeprefix(f"{labels['ray.io/group']}-"))
        if obj["kind"] in ("RayCluster", "RayJob") and metadata.get("ownerReferences"):
            found += _RANDOM_NAME.findall(metadata["name"])
        if obj["kind"] == "RayJob":
            found += _RANDOM_NAME.findall((obj.get("status") or {}).get("jobId", ""))
    return [text for text in dict.fromkeys(found) if text]


class _Placeholders:
    """Puts placeholders into the objects of a namespace."""

    def __init__(self, objects, namespace):
        self._namespace = re.compile(rf"\b{re.escape(namespace)}\b")
        self._addresses = frozenset(_addresses(objects)) - {""}
        self._ports = frozenset(
            str(port["nodePort"])
            for obj in objects
            if obj["kind"] == "Service"
            for port in obj["spec"].get("ports", ())
            if port.get("nodePort")
        )
        names = {text: f"<rand{number}>" for number, text in enumerate(random_texts(objects), 1)}
        self._random = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names) or "(?!)")
        self._names = names
        uids = [obj["metadata"].get("uid", "")[:8] for obj in objects]
        self._short = re.compile("|".join(rf"\b{uid}\b" for uid in uids if uid) or "(?!)")

    def of(self, obj):
        result = _mapped(obj, self._text)
        endpoints = (result.get("status") or {}).get("endpoints") or {}
        for name, port in endpoints.items():
            endpoints[name] = "<nodePort>" if port in self._ports else port
        return result

    def _text(self, text):
        if text in self._addresses:
            return "<ip>"
        if _TIME.fullmatch(text):
            return "<time>"
        text = _TOKEN_VOLUME.sub("kube-api-access-<rand>", self._namespace.sub("<namespace>", text))
        text = self._short.sub("<uid8>", _UID.sub("<uid>", text))
        return self._random.sub(lambda found: self._names[found.group()], text)


def _addresses(objects):
    for obj in objects:
        status = obj.get("status") or {}
        yield from (status.get(field, "") for field in ("podIP", "hostIP"))
        if obj["kind"] == "Service":
            yield from (address for address in obj["spec"].get("clusterIPs", ()) if address != "None")


def _own(obj):
    status = _without_snapshots(obj["kind"], obj.get("status") or {})
    head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**head, "metadata": _metadata(obj), "status": status}


def _created(obj):
    result = {**copy.deepcopy(obj), "metadata": _metadata(obj)}
    if obj["apiVersion"].startswith(RAY_GROUP):
        result["status"] = _without_snapshots(obj["kind"], obj.get("status") or {})
    else:
        result.pop("status", None)
    spec = result.get("spec") or {}
    spec.pop("nodeName", None)
    spec.pop("volumeName", None)
    if obj["kind"] == "Service":
        for port in spec.get("ports", ()):
            if "nodePort" in port:
                port["nodePort"] = "<nodePort>"
    if obj["kind"] == "Pod" and any(one["name"] == SUBMITTER for one in spec.get("containers", ())):
        # The command of a submitter, which is hashed with the rest, has the random id of its job.
        annotations = result["metadata"].get("annotations") or {}
        if HASH_ANNOTATION in annotations:
            annotations[HASH_ANNOTATION] = "<hash of random text>"
    if obj["kind"] == "Secret":
        data = obj.get("data") or {}
        result["data"] = {key: f"<{len(base64.b64decode(value))} bytes>" for key, value in data.items()}
    return result


def _without_snapshots(kind, status):
    """Return a status whose copies of a RayCluster's status, which depend on the moment, are left out."""
    if kind not in ("RayJob", "RayService"):
        return copy.deepcopy(status)
    return {
        key: "<snapshot>"
        if key == "rayClusterStatus"
        else _without_snapshots(kind, value)
        if isinstance(value, dict)
        else copy.deepcopy(value)
        for key, value in status.items()
    }


def _metadata(obj):
    metadata = {key: value for key, value in obj["metadata"].items() if key not in BOOKKEEPING}
    if owners := metadata.get("ownerReferences"):
        metadata["ownerReferences"] = [
            {key: value for key, value in owner.items() if key != "uid"} for owner in owners
        ]
    return copy.deepcopy(metadata)


def _with_sorted_ports(obj):
    if obj["kind"] != "Service":
        return obj
    ports = sorted(obj["spec"].get("ports", ()), key=lambda port: port.get("name", ""))
    return {**obj, "spec": {**obj["spec"], "ports": ports}}


def _by_kind_and_name(obj):
    """Order Pods by group and place in it: their names are chance."""
    labels = obj["metadata"].get("labels") or {}
    place = (
        labels.get("ray.io/group", ""),
        labels.get("ray.io/worker-group-replica-index", ""),
        labels.get("ray.io/replica-host-index", ""),
    )
    return obj["kind"], place, _NUMBERED.sub("", obj["metadata"]["name"])


def _distinct(events):
    known = {tuple(sorted(event.items())): event for event in events}
    return [known[key] for key in sorted(known)]


def _mapped(value, change):
    """Return a copy in which each text has been changed; keys are walked in order."""
    if isinstance(value, dict):
        return {key: _mapped(value[key], change) for key in sorted(value)}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value) if isinstance(value, str) else value
