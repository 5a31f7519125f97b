"""Dashboards behind the API server's proxy."""

import msgspec
import pytest

from eagleray.dashboard.carriers import ProxyCarrier
from eagleray.dashboard.client import PROXIED, Dashboard
from eagleray.dashboard.errors import Malformed, NotThere, Refused, Unreachable
from eagleray.dashboard.requests import Submission
from eagleray.dashboard.tokens import Token
from eagleray.kube.transport import Answer, AnswerLost, LocalTransport, NotSent, Reply
from tests.eagleray.dashboard.places import place


def status(code, reason, message):
    """Return an answer of the API server itself."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return Answer(code, msgspec.json.encode({**body, "message": message}))


class ApiServer:
    """An API server with one head behind it."""

    def __init__(self, head=None):
        self.head = head
        self.requests = []
        self.says = None

    async def __call__(self, request):
        self.requests.append(request)
        if isinstance(self.says, Exception):
            raise self.says
        if self.says is not None:
            return self.says if isinstance(self.says, Reply) else Reply(self.says)
        prefix = "/api/v1/namespaces/default/services/demo-head-svc:dashboard/proxy"
        assert request.path.startswith(prefix)
        return Reply(
            self.head.handle(
                request.method, request.path.removeprefix(prefix), dict(request.headers), request.body
            )
        )


@pytest.fixture
def server(heads):
    return ApiServer(heads.start(place().host, token="sesame"))


@pytest.fixture
def dashboard(server):
    class Tokens:
        async def current(self, address):
            return Token("sesame")

        def refused(self, address, token):
            return False

    return Dashboard(place(), ProxyCarrier(LocalTransport(server)), Tokens(), PROXIED)


async def test_requests_go_to_the_services_proxy_with_rays_token(heads, server, dashboard):
    await dashboard.submit(Submission("x", "job-1"))
    assert (await dashboard.info("job-1")).status == "RUNNING"
    assert heads.ledger.executions("job-1") == 1
    assert ("x-ray-authorization", "Bearer sesame") in server.requests[0].headers
    assert any(
        name == "user-agent" and value.startswith("eagleray-") for name, value in server.requests[0].headers
    )


async def test_a_query_is_passed_on(server, dashboard):
    await dashboard.serve_details()
    assert server.requests[0].query == (("api_type", "declarative"),)


async def test_rays_own_refusals_come_through(dashboard):
    with pytest.raises(NotThere):
        await dashboard.info("nothing")


@pytest.mark.parametrize(
    ("answer", "not_done"),
    [
        pytest.param(
            status(404, "NotFound", 'services "demo-head-svc" not found'),
            True,
            id="a missing Service is no missing job",
        ),
        pytest.param(
            status(404, "NotFound", "the job does not exist, says somebody else"),
            True,
            id="whatever the API server says in whatever words",
        ),
        pytest.param(
            status(403, "Forbidden", "services/proxy is forbidden"), True, id="we may not use the proxy"
        ),
        pytest.param(
            status(503, "ServiceUnavailable", 'no endpoints available for service "demo-head-svc"'),
            True,
            id="no head",
        ),
        pytest.param(
            status(
                503,
                "ServiceUnavailable",
                "error trying to reach service: dial tcp 10.0.0.7:8265: i/o timeout",
            ),
            True,
            id="a head that cannot be connected to",
        ),
        pytest.param(
            status(503, "ServiceUnavailable", "error trying to reach service: EOF"),
            False,
            id="a head that broke off",
        ),
        pytest.param(status(504, "Timeout", "timed out"), False, id="an API server that gave up"),
        pytest.param(NotSent("refused"), True, id="an API server that nobody can reach"),
        pytest.param(AnswerLost("reset"), False, id="an API server that broke off"),
    ],
)
async def test_what_the_api_server_says_itself_means_that_the_dashboard_is_unreachable(
    server, dashboard, answer, not_done
):
    server.says = answer
    with pytest.raises(Unreachable) as caught:
        await dashboard.submit(Submission("x", "job-1"))
    assert caught.value.certainly_not_done is not_done


@pytest.mark.parametrize(
    "body", [b'{"kind": "Error"}', b"oops", b"[" * 10_000], ids=["json", "text", "hostile"]
)
async def test_other_errors_are_rays_own(server, dashboard, body):
    server.says = Answer(500, body)
    with pytest.raises(Refused):
        await dashboard.info("job-1")


@pytest.mark.parametrize("code", [200, 500])
async def test_an_answer_without_end_is_not_waited_for(server, dashboard, code):
    async def chunks():
        while True:
            yield b"x" * 2**20

    server.says = Reply(Answer(code), chunks())
    with pytest.raises(Malformed, match="more than"):
        await dashboard.info("job-1")


async def test_an_answer_that_is_whole_but_too_long_is_malformed(server, dashboard):
    server.says = Answer(500, b"x" * (5 * 2**20))
    with pytest.raises(Malformed, match="more than"):
        await dashboard.info("job-1")


def test_through_the_api_server_there_is_more_time():
    assert PROXIED.read == 10
