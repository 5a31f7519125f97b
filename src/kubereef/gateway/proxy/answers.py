"""What a client is answered: an answer of a backend as it is passed on, or one of the proxy's own."""

from http import HTTPStatus

from kubereef.gateway.proxy.heads import (
    Framing,
    Headers,
    RequestHead,
    ResponseHead,
    end_to_end,
    values,
    write_response,
)


class Refusal(Exception):
    """An answer of the proxy's own, since no backend gives one."""

    def __init__(self, status: int, message: str, headers: Headers | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or []


class Broken(Exception):
    """An answer broke off after its beginning had been passed on: there is nothing left to say to the client."""


def refusal(problem: Refusal, *, has_body: bool, keeps: bool) -> bytes:
    """Return the whole answer for a refusal; one to HEAD has no body."""
    content = f"{problem}\n".encode()
    headers = [
        *problem.headers,
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(content))),
    ]
    if not keeps:
        headers.append(("Connection", "close"))
    head = write_response(problem.status, reason_of(problem.status), headers)
    return head + content if has_body else head


def reason_of(status: int) -> str:
    """Return the words that go with a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def keeps_framing(head: RequestHead, answer: ResponseHead) -> bool:
    """Tell whether the client can find the end of an answer without the connection's end."""
    return head.is_modern or answer.body.framing in (Framing.NONE, Framing.LENGTH)


def response_headers(head: RequestHead, answer: ResponseHead, headers: Headers, *, keeps: bool) -> Headers:
    """Return the headers with which an answer goes to the client; `headers` are those that were passed on."""
    framing = answer.body.framing
    if framing is Framing.LENGTH:
        headers.append(("Content-Length", str(answer.body.length)))
    elif framing is Framing.NONE:
        headers += _empty(head, answer)
    elif head.is_modern:
        headers.append(("Transfer-Encoding", "chunked"))
    if not keeps:
        headers.append(("Connection", "close"))
    elif not head.is_modern:
        headers.append(("Connection", "keep-alive"))
    return headers


def _empty(head: RequestHead, answer: ResponseHead) -> Headers:
    """Return what is said of the length of an answer without a body: that of the body which it would have had."""
    if answer.status < 200 or answer.status == 204:
        return []
    told = values(answer.headers, "content-length")
    if head.method == "HEAD" or answer.status == 304:
        return [("Content-Length", told[0])] if len(told) == 1 and told[0].isdigit() else []
    return [("Content-Length", "0")]


def upgraded_headers(answer: ResponseHead) -> Headers:
    """Return the headers of an answer that changes the protocol."""
    protocol = next(iter(values(answer.headers, "upgrade")), "")
    return [*end_to_end(answer.headers), ("Connection", "Upgrade"), ("Upgrade", protocol)]
