"""The small pages: the list of paths, the version, the metrics, and the keys of the token issuer."""

import platform
from collections.abc import Callable, Iterable
from typing import Any

from kubereef.server.calls import Surroundings
from kubereef.server.core import Server, not_allowed
from kubereef.server.requests import Request, Response, User, json_response
from kubereef.server.routing import Target
from kubereef.server.tokens import ISSUER, Signer
from kubewire.gotext import quote

MAJOR, MINOR = "1", "36"
GIT_VERSION = "v1.36.3+kubereef"

_ALWAYS = (
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openid/v1/jwks",
    "/readyz",
    "/version",
)
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Metric = tuple[str, str, str, Iterable[tuple[dict[str, str], int]]]


class FrontPages:
    """Answers the pages that say something about the server itself."""

    def __init__(self, server: Server, signer: Signer) -> None:
        self._server = server
        self._around: Surroundings = server.around
        self._signer = signer
        self._pages: dict[str, Callable[[], Response]] = {
            "/": self._paths,
            "/version": self._version,
            "/metrics": self._metrics,
            "/.well-known/openid-configuration": self._issuer,
            "/openid/v1/jwks": self._keys,
        }

    def page(self, request: Request, target: Target, _user: User) -> Response | None:
        answer = self._pages.get(target.path.rstrip("/") or "/")
        if answer is None:
            return None
        if request.method not in ("GET", "HEAD"):
            raise not_allowed()
        return answer()

    def _paths(self) -> Response:
        paths = set(_ALWAYS)
        for resource_type in self._around.registry:
            if resource_type.group:
                paths.add(f"/apis/{resource_type.group}")
                paths.add(f"/apis/{resource_type.api_version}")
        return json_response(200, {"paths": sorted(paths)})

    def _version(self) -> Response:
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        return json_response(
            200,
            {
                "major": MAJOR,
                "minor": MINOR,
                "emulationMajor": MAJOR,
                "emulationMinor": MINOR,
                "minCompatibilityMajor": MAJOR,
                "minCompatibilityMinor": str(int(MINOR) - 1),
                "gitVersion": GIT_VERSION,
                "gitCommit": "",
                "gitTreeState": "clean",
                "buildDate": "1970-01-01T00:00:00Z",
                "goVersion": f"python{platform.python_version()}",
                "compiler": platform.python_implementation(),
                "platform": f"{platform.system().lower()}/{machine}",
            },
        )

    def _metrics(self) -> Response:
        store = self._around.store
        answered = sorted(self._server.answered.items())
        metrics: list[Metric] = [
            (
                "apiserver_request_total",
                "counter",
                "Requests that were answered, by verb and HTTP code.",
                [({"verb": verb.upper(), "code": str(code)}, count) for (verb, code), count in answered],
            ),
            (
                "apiserver_resource_objects",
                "gauge",
                "Stored objects by resource.",
                [({"resource": resource}, store.count(resource)) for resource in sorted(store.resources())],
            ),
            (
                "kubereef_store_revision",
                "gauge",
                "The newest resource version.",
                [({}, store.revision)],
            ),
            (
                "kubereef_store_compacted_revision",
                "gauge",
                "The oldest resource version from which a watch can go on.",
                [({}, store.history.compacted)],
            ),
            (
                "kubereef_store_watchers",
                "gauge",
                "Those who hear of changes: watches of clients and parts of the server.",
                [({}, store.watcher_count)],
            ),
        ]
        text = "".join(map(_metric_text, metrics))
        return Response(200, text.encode(), _METRICS_TYPE)

    def _issuer(self) -> Response:
        document: dict[str, Any] = {
            "issuer": ISSUER,
            "jwks_uri": f"{ISSUER}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
        return json_response(200, document)

    def _keys(self) -> Response:
        return json_response(200, self._signer.public_keys())._replace(
            content_type="application/jwk-set+json"
        )


def _metric_text(metric: Metric) -> str:
    name, kind, text, values = metric
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in values:
        shown = ",".join(f"{key}={quote(label)}" for key, label in labels.items())
        lines.append(f"{name}{{{shown}}} {value}" if shown else f"{name} {value}")
    return "\n".join(lines) + "\n"
