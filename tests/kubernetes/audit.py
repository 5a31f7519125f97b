"""What an operator asked of a real API server, by the server's own audit log."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

READS = frozenset(("get", "list", "watch"))


class Asked(NamedTuple):
    """One request that was answered. `what` is a resource such as `pods` or `rayjobs/status`."""

    verb: str
    what: str
    namespace: str
    name: str
    code: int
    body: Any

    def __str__(self) -> str:
        return f"{self.verb} {self.what} {self.namespace}/{self.name}: {self.code}"


# Names by what they are: `users` or `userGroups`.
Whom = Mapping[str, Sequence[str]]


def accounts_in(namespace: str) -> Whom:
    """Return whoever is a service account of a namespace."""
    return {"userGroups": [f"system:serviceaccounts:{namespace}"]}


class Audit:
    """The audit log of a plane: what some ask, with what they send (`Request`) or without it, and of others nothing."""

    def __init__(
        self, directory: Path, whom: Whom, level: Literal["Metadata", "Request"] = "Request"
    ) -> None:
        self._policy = directory / "audit-policy.yaml"
        self._log = directory / "audit.log"
        self._rule: dict[str, Any] = {"level": level, **whom}

    @property
    def flags(self) -> list[str]:
        """What the API server has to be told; writes the policy that it then reads."""
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [self._rule, {"level": "None"}],
        }
        self._policy.write_text(yaml.safe_dump(policy))
        return [f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}"]

    def mark(self) -> int:
        """Return the place that the log has reached, to ask from there on."""
        return self._log.stat().st_size if self._log.exists() else 0

    def since(self, mark: int) -> list[Asked]:
        """Return what was asked since then; a last line that is not complete is left for later."""
        return list(self._since(mark))

    def writes(self, mark: int, namespace: str) -> list[Asked]:
        """Return what was written in a namespace since then, refusals left out."""
        return [
            asked
            for asked in self._since(mark)
            if asked.verb not in READS and asked.namespace == namespace and asked.code < 400
        ]

    def _since(self, mark: int) -> Iterator[Asked]:
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(mark)
            for line in log:
                if line.endswith(b"\n"):
                    yield _asked(json.loads(line))


def _asked(event: dict[str, Any]) -> Asked:
    about = event.get("objectRef") or {}
    what = about.get("resource") or event["requestURI"].partition("?")[0]
    if part := about.get("subresource"):
        what = f"{what}/{part}"
    return Asked(
        event["verb"],
        what,
        about.get("namespace", ""),
        about.get("name", ""),
        (event.get("responseStatus") or {}).get("code", 0),
        event.get("requestObject"),
    )
