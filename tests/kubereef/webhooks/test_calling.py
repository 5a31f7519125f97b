"""What becomes of a request whose webhook cannot be asked, or gives an answer that is none."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from kubereef.server.lines import DirectLines
from tests.kubereef.webhooks.asked import CORE, MAPS, Api, a_map, webhook
from tests.kubereef.webhooks.outsider import Answer, Json, Outsider, allow, certificates, deny, patch

NO_KIND = "failed to call webhook: couldn't get version/kind; json parse error: "
IDENTITY = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
INVALID = "received invalid webhook response: "


def text(body: str, status: int = 200, **headers: str) -> Answer:
    return lambda _request: web.Response(text=body, status=status, headers=headers)


def review(response: object, version: str = "v1", kind: str = "AdmissionReview") -> Answer:
    body = {"apiVersion": f"admission.k8s.io/{version}", "kind": kind, "response": response}
    return lambda _request: web.json_response(body)


class Gone(web.StreamResponse):
    """No answer: the connection is closed instead."""

    async def prepare(self, request: web.BaseRequest) -> None:
        assert request.transport is not None
        request.transport.close()

    async def write_eof(self, data: bytes = b"") -> None:
        return None


async def told(api: Api) -> str:
    """Return what is told of the webhook `hook` that failed."""
    refused = await api.refusal("POST", MAPS, a_map())
    opening = 'Internal error occurred: failed calling webhook "hook.example.com": '
    assert (refused.status, refused.body["reason"]) == (500, "InternalError")
    assert refused.message.startswith(opening)
    return refused.message.removeprefix(opening)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(
            text("hello"),
            f"{NO_KIND}json: cannot unmarshal string into Go value of type {IDENTITY}",
            id="a word",
        ),
        pytest.param(text('{"kind"'), f"{NO_KIND}unexpected end of JSON input", id="half an object"),
        pytest.param(
            text(""),
            "failed to call webhook: 0-length response with status code: 200 and content type: text/plain;"
            " charset=utf-8",
            id="nothing",
        ),
        pytest.param(text("{}"), f"{INVALID}webhook response was absent", id="a review without a response"),
        pytest.param(
            review([1]),
            "failed to call webhook: json: cannot unmarshal array into Go struct field AdmissionReview.response of"
            " type v1.AdmissionResponse",
            id="a response that is a list",
        ),
        pytest.param(
            review({"allowed": "yes"}),
            "failed to call webhook: json: cannot unmarshal string into Go struct field"
            " AdmissionResponse.response.allowed of type bool",
            id="a word for yes",
        ),
        pytest.param(
            review({"allowed": True}, kind="Other"),
            'failed to call webhook: no kind "Other" is registered for version "admission.k8s.io/v1" in scheme'
            ' "pkg/runtime/scheme.go:111"',
            id="another kind",
        ),
        pytest.param(
            review({"allowed": True}, "v1beta1"),
            "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
            id="another version than it was asked in",
        ),
        pytest.param(
            lambda request: {"allowed": True, "patchType": "JSONPatch"},
            f"{INVALID}validating webhook may not return response.patchType",
            id="the type of a patch from one who only judges",
        ),
        pytest.param(
            lambda request: {"allowed": True, "patch": patch({"op": "remove", "path": "/data"})},
            f"{INVALID}validating webhook may not return response.patch",
            id="a patch from one who only judges",
        ),
        pytest.param(
            text("boom", 500),
            'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding',
            id="an error of its own",
        ),
        pytest.param(
            text("nope", 404),
            "failed to call webhook: the server could not find the requested resource",
            id="that there is nothing",
        ),
        pytest.param(
            text(json.dumps({"kind": "Status", "apiVersion": "v1", "message": "not you"}), 403),
            "failed to call webhook: not you",
            id="a Status",
        ),
        pytest.param(
            text("", 302, Location="/elsewhere"),
            "failed to call webhook: the server responded with the status code 302 but did not return more information",
            id="a redirect",
        ),
        pytest.param(
            text("", 307, Location="/elsewhere"),
            "failed to call webhook: the server responded with the status code 307 but did not return more information",
            id="a redirect that keeps the body",
        ),
        pytest.param(
            lambda _request: web.Response(body=b"x" * (3 * 1024 * 1024 + 1)),
            "failed to call webhook: the answer is longer than 3145728 bytes",
            id="more than anybody wants to read",
        ),
        pytest.param(
            lambda _request: Gone(),
            'failed to call webhook: Post "URL/hook?timeout=10s": EOF',
            id="none at all",
        ),
    ],
)
async def test_an_answer_that_is_none_fails_the_request(
    api: Api, outsider: Outsider, answer: Answer, problem: str
) -> None:
    outsider.answers["/hook"] = answer
    await api.ask("validating", "/hook")
    assert (await told(api)).replace(outsider.url, "URL") == problem
    assert outsider.paths() == ["/hook"], "nobody follows a redirect, and nobody asks twice"


async def test_an_answer_is_for_the_question_that_was_asked(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = review({"uid": "another", "allowed": True})
    await api.ask("validating", "/hook")
    uid = "expected response.uid="
    problem = await told(api)
    assert problem == f'{INVALID}{uid}"{outsider.asked[0][1]["uid"]}", got "another"'


@pytest.mark.parametrize("kind", ["mutating", "validating"])
@pytest.mark.parametrize("answer", [text("hello"), text("", 500), lambda _request: Gone()])
async def test_a_failure_that_is_ignored_lets_the_request_pass_and_is_logged(
    api: Api, outsider: Outsider, caplog: pytest.LogCaptureFixture, kind: str, answer: Answer
) -> None:
    outsider.answers["/hook"] = answer
    await api.ask(kind, "/hook", failurePolicy="Ignore")
    assert (await api.create(a_map()))["data"] == {"a": "b"}
    assert outsider.paths() == ["/hook"]
    assert 'failed calling webhook "hook.example.com": failed to call webhook: ' in caplog.text


async def test_a_refusal_is_no_failure_to_be_ignored(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = deny(message="no")
    await api.ask("validating", "/hook", failurePolicy="Ignore")
    assert (await api.refusal("POST", MAPS, a_map())).status == 400


async def slow(_request: Json) -> Json:
    await asyncio.sleep(5)
    return {"allowed": True}


@pytest.mark.parametrize(
    ("policy", "is_let_pass"),
    [
        pytest.param("Fail", False, id="fails the request"),
        pytest.param("Ignore", True, id="is passed over where failures are ignored"),
    ],
)
async def test_a_webhook_that_takes_longer_than_its_timeout(
    api: Api, outsider: Outsider, policy: str, is_let_pass: bool
) -> None:
    outsider.answers["/hook"] = slow
    await api.ask("validating", "/hook", failurePolicy=policy, timeoutSeconds=1)
    begun = asyncio.get_running_loop().time()
    if is_let_pass:
        await api.create(a_map())
    else:
        problem = (await told(api)).replace(outsider.url, "URL")
        assert problem == 'failed to call webhook: Post "URL/hook?timeout=1s": context deadline exceeded'
    assert asyncio.get_running_loop().time() - begun < 3


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_the_request_s_own_timeout_ends_it_whoever_is_still_being_asked(
    api: Api, outsider: Outsider, policy: str
) -> None:
    outsider.answers["/hook"] = slow
    await api.ask("mutating", "/hook", failurePolicy=policy, timeoutSeconds=30)
    refused = await api.refusal("POST", f"{MAPS}?timeout=300ms", a_map())
    message = "Timeout: request did not complete within the allotted timeout"
    assert (refused.status, refused.message) == (504, message)


async def test_a_webhook_that_nobody_vouches_for_is_not_asked(
    api: Api, outsider: Outsider, tmp_path: Path
) -> None:
    stranger, _ = certificates(tmp_path, "127.0.0.1")
    client = outsider.client("/hook", caBundle=base64.b64encode(stranger).decode())
    await api.configure("validating", webhook("hook", client))
    unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert (await told(api)).endswith(unknown)
    assert not outsider.asked


async def test_a_webhook_whose_certificate_is_for_another_name_is_not_asked(
    api: Api, outsider: Outsider
) -> None:
    client = outsider.client("/hook", url=f"https://localhost:{outsider.port}/hook")
    await api.configure("validating", webhook("hook", client))
    wrong = "tls: failed to verify certificate: x509: certificate is not valid for localhost"
    assert (await told(api)).endswith(wrong)
    assert not outsider.asked


async def test_a_certificate_has_to_say_its_names_where_names_belong(api: Api, tmp_path: Path) -> None:
    nameless = Outsider(tmp_path, subject="localhost")
    await nameless.start()
    client = nameless.client("/hook", url=f"https://localhost:{nameless.port}/hook")
    await api.configure("validating", webhook("hook", client))
    assert "x509: certificate is not valid for localhost" in await told(api)
    await nameless.stop()


async def test_a_webhook_s_own_certificate_will_do_to_know_it_by(api: Api, outsider: Outsider) -> None:
    bundle = base64.b64encode(outsider.certificate).decode()
    await api.configure("validating", webhook("hook", outsider.client("/hook", caBundle=bundle)))
    await api.create(a_map())
    assert outsider.paths() == ["/hook"]


async def test_a_bundle_that_holds_no_certificate_is_a_failure(api: Api, outsider: Outsider) -> None:
    await api.configure("validating", webhook("hook", outsider.client("/hook", caBundle="aGVsbG8=")))
    because = "unable to load root certificates: unable to parse bytes as PEM block"
    assert await told(api) == f"could not get REST client: {because}"


async def test_a_webhook_that_speaks_no_tls_is_not_asked(api: Api) -> None:
    runner = web.ServerRunner(web.Server(lambda _request: web.Response()))  # type: ignore[arg-type,return-value]  # never asked
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/hook"
    await api.configure("validating", webhook("hook", {"url": url}))
    assert (await told(api)).endswith("http: server gave HTTP response to HTTPS client")
    await runner.cleanup()


async def test_a_port_at_which_nobody_is_refuses_the_connection(api: Api) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        await api.configure("validating", webhook("hook", {"url": f"https://{address}/"}))
        problem = await told(api)
    refused = f"dial tcp {address}: connect: connection refused"
    assert problem == f'failed to call webhook: Post "https://{address}/?timeout=10s": {refused}'


@pytest.mark.parametrize("host", ["a..b", "a" * 300, "x\\y"])
async def test_a_host_that_can_have_no_address_is_a_failure_like_any_other(api: Api, host: str) -> None:
    await api.configure("validating", webhook("hook", {"url": f"https://{host}/"}))
    assert (await told(api)).startswith("failed to call webhook: Post ")


async def test_connections_are_kept_and_a_kept_one_that_was_closed_is_replaced(
    api: Api, outsider: Outsider
) -> None:
    outsider.answers["/hook"] = allow
    await api.ask("validating", "/hook")
    for name in "abc":
        await api.create(a_map(name))
    assert len(outsider.connections) == 1
    # The webhook goes and comes back at the same place: the kept connection leads nowhere.
    await outsider.stop()
    await outsider.start()
    await api.create(a_map("d"))
    assert len(outsider.connections) == 2


async def test_a_webhook_that_closes_a_kept_connection_is_asked_again(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = lambda _request: Gone() if len(outsider.asked) == 2 else {"allowed": True}
    await api.ask("validating", "/hook")
    await api.create(a_map("a"))
    await api.create(a_map("b"))
    assert (len(outsider.asked), len(outsider.connections)) == (3, 2)


class ToOutsider:
    """A passage to the addresses of Pods, all of which lead to the outsider."""

    def __init__(self, outsider: Outsider) -> None:
        self.outsider = outsider
        self.dialled: list[tuple[str, int]] = []

    def covers(self, host: str) -> bool:
        return host.startswith("10.")

    async def dial(self, host: str, port: int) -> socket.socket:
        self.dialled.append((host, port))
        connection = socket.socket()
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.outsider.port))
        return connection


@asynccontextmanager
async def a_service(api: Api, *, is_ready: bool = True, **spec: object) -> AsyncIterator[Json]:
    """Make a Service `hook` in the namespace `outside`, with an endpoint; yield the clientConfig that names it."""
    await api.send("POST", "/api/v1/namespaces", {"metadata": {"name": "outside"}})
    port = {"name": "tls", "port": 8443, "targetPort": 9443}
    within = "/namespaces/outside"
    await api.send(
        "POST",
        f"/api/v1{within}/services",
        {"metadata": {"name": "hook"}, "spec": {"ports": [port], **spec}},
    )
    ends = {
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "ports": [{"name": "tls", "port": 9443}],
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": is_ready}}],
    }
    await api.send("POST", f"/apis/discovery.k8s.io/v1{within}/endpointslices", ends)
    bundle = base64.b64encode(api.outsider.authority).decode()
    service = {"name": "hook", "namespace": "outside", "path": "/hook", "port": 8443}
    yield {"service": service, "caBundle": bundle}


async def test_a_service_stands_for_its_pods_under_its_own_name(
    api: Api, outsider: Outsider, lines: DirectLines
) -> None:
    passage = ToOutsider(outsider)
    lines.passages.append(passage)
    async with a_service(api) as client:
        await api.configure("validating", webhook("hook", client))
        await api.create(a_map())
    assert outsider.paths() == ["/hook"]
    assert passage.dialled == [("10.1.2.3", 9443)]


@pytest.mark.parametrize(
    ("is_ready", "service", "problem"),
    [
        pytest.param(
            False,
            {},
            'Post "https://hook.outside.svc:8443/hook?timeout=10s": no endpoints available for service "hook"',
            id="has no Pod that is ready",
        ),
        pytest.param(
            True,
            {"port": 443},
            'Post "https://hook.outside.svc:443/hook?timeout=10s": no service port 443 found for service "hook"',
            id="has no such port",
        ),
        pytest.param(
            True,
            {"name": "gone"},
            'Post "https://gone.outside.svc:8443/hook?timeout=10s": service "gone" not found',
            id="is not there",
        ),
    ],
)
async def test_a_webhook_cannot_be_asked_whose_service(
    api: Api, is_ready: bool, service: Json, problem: str
) -> None:
    async with a_service(api, is_ready=is_ready) as client:
        client["service"] |= service
        await api.configure("validating", webhook("hook", client))
        assert await told(api) == f"failed to call webhook: {problem}"


async def test_a_service_may_stand_for_a_name_outside_of_the_cluster(api: Api, outsider: Outsider) -> None:
    async with a_service(api, type="ExternalName", externalName="localhost") as client:
        client["service"]["port"] = outsider.port
        await api.configure("validating", webhook("hook", client))
        await api.create(a_map())
    assert outsider.paths() == ["/hook"]


async def test_requests_that_concern_nobody_do_not_wait_for_a_slow_webhook(
    api: Api, outsider: Outsider
) -> None:
    held = asyncio.Event()

    async def wait(_request: Json) -> Json:
        await held.wait()
        return {"allowed": True}

    outsider.answers["/hook"] = wait
    await api.ask("mutating", "/hook")
    waiting = asyncio.create_task(api.create(a_map()))
    await outsider.has_been_asked()
    await api.create({"metadata": {"name": "s"}}, f"{CORE}/secrets")
    await api.send("GET", MAPS)
    assert not waiting.done()
    held.set()
    await waiting
