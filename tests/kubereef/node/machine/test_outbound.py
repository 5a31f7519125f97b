"""How Pods of a whole node reach the world, which is a server of this machine, or do not."""

import http.server
import socket
import threading

import pytest

from tests.kubereef.node.machine.realnode import NodeReef, require_node
from tests.kubereef.node.network.inside import abilities

ASK = """
import os, sys, urllib.request
print(sorted(name for name in os.environ if name.endswith("_proxy")))
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
except OSError as refusal:
    print("no way")
"""
TOLD = "['http_proxy', 'https_proxy', 'no_proxy']"


@pytest.fixture
def outside():
    """The address of a server that runs on the machine, outside of the node."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # nothing is sent: it only tells which address would be used
        except OSError:
            pytest.skip("this machine has no address besides loopback")
        address = asking.getsockname()[0]

    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer((address, 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{address}:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize(
    ("way", "said"),
    [
        pytest.param("redirect", "[]\nhello\n", id="without noticing"),
        pytest.param("proxy", f"{TOLD}\nhello\n", id="through a proxy that they are told of"),
        pytest.param("off", "[]\nno way\n", id="not at all"),
    ],
)
def test_pods_get_out(tmp_path, outside, way, said):
    require_node(tmp_path)
    if way == "redirect" and (why := abilities().get("redirect")):
        pytest.skip(f"this kernel cannot redirect: {why}")
    with NodeReef(tmp_path, "--in-memory", "--outbound", way) as reef:
        found = reef.result("asks", "python3", "-c", ASK, outside, container={"image": "python:3.11"})
        assert found == said
        assert reef.stop() == ""
