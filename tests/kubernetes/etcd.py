"""The etcd under an API server, asked behind its back, by the gateway that speaks JSON."""

import json
import urllib.request
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from tests.kubernetes.plane import Plane

_PATIENCE = 60.0


class Etcd:
    """What is really stored."""

    def __init__(self, plane: Plane) -> None:
        arguments = Path(f"/proc/{plane.pid('kube-apiserver')}/cmdline").read_text().split("\0")
        (self._url,) = (one.partition("=")[2] for one in arguments if one.startswith("--etcd-servers="))

    def forget_history(self) -> None:
        """Forget all revisions but the present one."""
        revision = self._ask("/v3/kv/range", key=_text(b"\0"), limit=1)["header"]["revision"]
        self._ask("/v3/kv/compaction", revision=revision, physical=True)

    def stored(self, prefix: str) -> dict[str, tuple[str, bytes]]:
        """Return what is stored under a prefix, byte for byte, with the revision of its last write, by key."""
        key = prefix.encode()
        end = key[:-1] + bytes([key[-1] + 1])
        found = self._ask("/v3/kv/range", key=_text(key), range_end=_text(end)).get("kvs", [])
        return {
            b64decode(one["key"]).decode(): (one["mod_revision"], b64decode(one["value"])) for one in found
        }

    def _ask(self, path: str, **body: object) -> dict[str, Any]:
        request = urllib.request.Request(f"{self._url}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


def _text(key: bytes) -> str:
    return b64encode(key).decode()
