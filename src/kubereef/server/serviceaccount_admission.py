"""Every Pod runs as a service account, and gets its token mounted unless it says no."""

import asyncio
from typing import Any

from kubereef.kinds.resource import Object
from kubereef.server.admission import Attempt
from kubereef.server.tokenrequests import MOUNTED_SECONDS
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire import errors
from kubewire.gotext import quote
from kubewire.names import SUFFIX_LENGTH
from kubewire.sources import Entropy

DEFAULT_ACCOUNT = "default"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME_PREFIX = "kube-api-access-"
_MIRROR = "kubernetes.io/config.mirror"

# How long a Pod waits for the default account, which comes to a new namespace a moment after it.
_PATIENCE = 1.0


async def default_account_arrives(store: Store, attempt: Attempt) -> None:
    """Wait, not for long, for the default account of a namespace that has just been made."""
    if not _is_new_pod(attempt) or _account_name(attempt.obj) != DEFAULT_ACCOUNT:
        return
    key = Key("serviceaccounts", attempt.namespace, DEFAULT_ACCOUNT)
    if store.latest(key) is not None or store.latest(Key("namespaces", "", attempt.namespace)) is None:
        return
    watcher = store.watch("serviceaccounts", store.revision)
    try:
        async with asyncio.timeout(_PATIENCE):
            while store.get(key) is None and await watcher.next():
                pass
    except TimeoutError:
        return  # the Pod is refused with the reason
    finally:
        watcher.close()


class ServiceAccountStep:
    """Gives Pods their account, its image pull secrets and a volume with its token."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def __call__(self, store: Store, attempt: Attempt) -> list[str]:
        if not _is_new_pod(attempt):
            return []
        spec = attempt.obj.setdefault("spec", {})
        name = _account_name(attempt.obj)
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._account(store, attempt, name)
        if _mounts_token(spec, account):
            self._mount(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]
        return []

    def _account(self, store: Store, attempt: Attempt, name: str) -> Object:
        record = store.latest(Key("serviceaccounts", attempt.namespace, name))
        if record is None:
            because = (
                f"error looking up service account {attempt.namespace}/{name}:"
                f" serviceaccount {quote(name)} not found"
            )
            raise errors.forbidden("pods", attempt.name, because)
        return record.object()

    def _mount(self, spec: Object) -> None:
        volumes: list[Any] = spec.setdefault("volumes", [])
        given = [volume["name"] for volume in volumes if volume.get("name", "").startswith(_VOLUME_PREFIX)]
        name = given[0] if given else self._free_name({volume.get("name") for volume in volumes})
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        is_needed = False
        for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
            mounts = container.get("volumeMounts") or []
            if any(one.get("mountPath") == MOUNT_PATH for one in mounts):
                continue
            container["volumeMounts"] = [*mounts, dict(mount)]
            is_needed = True
        if is_needed and not given:
            volumes.append({"name": name, "projected": _token_projection()})
        if not volumes:
            del spec["volumes"]

    def _free_name(self, taken: set[str]) -> str:
        while (name := _VOLUME_PREFIX + self._entropy.suffix(SUFFIX_LENGTH)) in taken:
            pass
        return name


def _is_new_pod(attempt: Attempt) -> bool:
    if attempt.operation != "CREATE" or attempt.resource_type.resource != "pods" or attempt.subresource:
        return False
    # A mirror stands for a Pod that the kubelet runs by itself, without the API.
    return _MIRROR not in (attempt.obj["metadata"].get("annotations") or {})


def _account_name(pod: Object) -> str:
    spec = pod.get("spec") or {}
    return spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT


def _mounts_token(spec: Object, account: Object) -> bool:
    for holder in (spec, account):
        wish = holder.get("automountServiceAccountToken")
        if wish is not None:
            return bool(wish)
    return True


def _token_projection() -> Object:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": MOUNTED_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
    }
