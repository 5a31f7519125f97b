"""A webhook where operators have theirs: in a Pod behind a Service, known by a certificate for the Service's name."""

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.kubereef.node.machine.realnode import NodeReef, Refused, require_node, until
from tests.kubereef.webhooks.asked import CORE, MAPS, REGISTRATION, a_map, webhook
from tests.kubereef.webhooks.outsider import certificates

SERVER = """
import base64, http.server, json, ssl
PATCH = base64.b64encode(b'[{"op": "add", "path": "/data/seen", "value": "yes"}]').decode()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        uid, host = review["request"]["uid"], self.headers["Host"]
        review["response"] = {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": PATCH, "warnings": [host]}
        del review["request"]
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("", 9443), Handler)
tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain("/tls/webhook.crt", "/tls/webhook.key")
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.fixture
def reef(tmp_path: Path) -> Any:
    require_node(tmp_path)
    with NodeReef(tmp_path / "reef") as reef:
        yield reef


def test_a_webhook_in_a_pod_is_asked_through_its_service(reef: NodeReef, tmp_path: Path) -> None:
    authority, _ = certificates(tmp_path, "hook.default.svc")
    files = {name: (tmp_path / name).read_text() for name in ("webhook.crt", "webhook.key")}
    reef.send("POST", f"{CORE}/secrets", {"metadata": {"name": "tls"}, "stringData": files})
    ports = [{"port": 443, "targetPort": 9443}]
    service = {"metadata": {"name": "hook"}, "spec": {"selector": {"app": "hook"}, "ports": ports}}
    reef.send("POST", f"{CORE}/services", service)
    client = {
        "service": {"name": "hook", "namespace": "default", "path": "/mutate"},
        "caBundle": base64.b64encode(authority).decode(),
    }
    configuration = {"metadata": {"name": "hook"}, "webhooks": [webhook("hook", client, timeoutSeconds=5)]}
    reef.send("POST", f"{REGISTRATION}/mutatingwebhookconfigurations", configuration)
    with pytest.raises(Refused, match='no endpoints available for service \\\\"hook'):
        reef.send("POST", MAPS, a_map("early"))
    reef.run(
        "hook",
        "python3",
        "-c",
        SERVER,
        container={"image": "python:3.11", "volumeMounts": [{"name": "tls", "mountPath": "/tls"}]},
        volumes=[{"name": "tls", "secret": {"secretName": "tls"}}],
    )
    made = until(lambda: _created(reef))
    assert made["data"] == {"a": "b", "seen": "yes"}


def _created(reef: NodeReef) -> Any:
    """Make a config map, if the webhook is there to be asked about it."""
    try:
        return reef.send("POST", MAPS, a_map("late"))
    except Refused:
        return None
