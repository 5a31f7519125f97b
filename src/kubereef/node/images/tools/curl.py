"""Ask a URL as curl does, with the options that probes and scripts use.

    curl [-s] [-S] [-f] [-L] [-i] [-I] [-k] [-o FILE] [-X METHOD] [-H LINE]… [-d DATA|@FILE]… [-u USER:PASSWORD]
         [-A AGENT] [-w FORMAT] [-m SECONDS] [--connect-timeout SECONDS] [--retry N] URL…

Ends with curl's codes: 0 answered, 1 not http(s), 2 wrong usage, 3 malformed URL, 6 unknown host, 7 cannot connect,
22 an error status with -f, 23 file not written, 28 too slow, 52 empty answer, 56 connection broken,
60 certificate not trusted.
"""

import argparse
import base64
import http.client
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

UNSUPPORTED, USAGE, MALFORMED, NO_HOST, NO_CONNECTION, ERROR_STATUS, NOT_WRITTEN = 1, 2, 3, 6, 7, 22, 23
TOO_SLOW, EMPTY, BROKEN, UNTRUSTED = 28, 52, 56, 60
RETRIED = frozenset({NO_HOST, TOO_SLOW, EMPTY, BROKEN})


class Arguments(argparse.ArgumentParser):
    """Says in one line what is wrong with the options, and ends as curl does."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"curl: {message}\n")
        sys.exit(USAGE)


class Stay(urllib.request.HTTPRedirectHandler):
    """Without -L a redirect is an answer like any other."""

    def redirect_request(self, *_arguments: object) -> None:
        return None


class Failure(Exception):
    """A transfer that did not work, with curl's code for it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def arguments() -> argparse.Namespace:
    parser = Arguments(prog="curl", allow_abbrev=False)
    parser.add_argument("urls", nargs="+", metavar="URL")
    for short, long in (
        ("-s", "--silent"), ("-S", "--show-error"), ("-f", "--fail"), ("-L", "--location"), ("-i", "--include"),
        ("-I", "--head"), ("-k", "--insecure"), ("-v", "--verbose"), ("-g", "--globoff"),
    ):  # fmt: skip
        parser.add_argument(short, long, action="store_true")
    parser.add_argument("-o", "--output", metavar="FILE")
    parser.add_argument("-X", "--request", metavar="METHOD")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-d", "--data", "--data-raw", "--data-binary", action="append", default=[])
    parser.add_argument("-u", "--user")
    parser.add_argument("-A", "--user-agent", default="curl/8.0 (compatible)")
    parser.add_argument("-w", "--write-out", default="")
    parser.add_argument("-m", "--max-time", type=float)
    parser.add_argument("--connect-timeout", type=float)
    parser.add_argument("--retry", type=int, default=0)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    result = 0
    for url in options.urls:
        result = ask(url if "://" in url else f"http://{url}", options)
    return result


def ask(url: str, options: argparse.Namespace) -> int:
    """Ask one URL, again after passing failures if that was wanted, and return the code to end with."""
    if not url.lower().startswith(("http://", "https://")):
        sys.stderr.write(f"curl: ({UNSUPPORTED}) Protocol not supported: {url}\n")
        return UNSUPPORTED
    for attempt in range(options.retry + 1):
        try:
            return transfer(url, options)
        except Failure as failure:
            if failure.code in RETRIED and attempt < options.retry:
                time.sleep(min(2**attempt, 60))  # noqa: TID251 - a program in a container has real time only
                continue
            if not options.silent or options.show_error:
                sys.stderr.write(f"curl: ({failure.code}) {failure}\n")
            return failure.code
    return 0


def transfer(url: str, options: argparse.Namespace) -> int:
    began = time.monotonic()  # noqa: TID251 - a program in a container has real time only
    timeout = options.max_time or options.connect_timeout
    try:
        answer = opener(options).open(request(url, options), timeout=timeout)
    except urllib.error.HTTPError as refusal:
        answer = refusal
    except (urllib.error.URLError, OSError, http.client.HTTPException, ValueError) as failure:
        raise as_curl_says(getattr(failure, "reason", failure)) from failure
    with answer:
        if options.fail and answer.status >= 400:
            raise Failure(ERROR_STATUS, f"The requested URL returned error: {answer.status}")
        receive(answer, options, began + (options.max_time or float("inf")))
    report = options.write_out.replace("%{http_code}", str(answer.status)).replace(
        "%{response_code}", str(answer.status)
    )
    sys.stdout.write(report.replace("\\n", "\n"))
    return 0


def receive(answer: http.client.HTTPResponse, options: argparse.Namespace, deadline: float) -> None:
    with sink(options) as out:
        if options.include or options.head:
            out.write(f"HTTP/1.1 {answer.status} {answer.reason}\r\n{answer.headers}".encode())
        try:
            while chunk := answer.read1(65536):
                out.write(chunk)
                if time.monotonic() > deadline:  # noqa: TID251 - a program in a container has real time only
                    raise Failure(TOO_SLOW, f"Operation timed out after {options.max_time:g} s")
        except (OSError, http.client.HTTPException) as failure:
            raise as_curl_says(failure) from failure


@contextmanager
def sink(options: argparse.Namespace) -> Iterator[BinaryIO]:
    """Where the answer goes: a file, or standard output."""
    if options.output in (None, "-"):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = Path(options.output).open("wb")  # noqa: SIM115 - closed below, where its own errors do not belong
    except OSError as refusal:
        raise Failure(NOT_WRITTEN, f"{options.output}: {refusal.strerror}") from refusal
    with file:
        yield file


def opener(options: argparse.Namespace) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    if options.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if not options.location:
        handlers.append(Stay())
    return urllib.request.build_opener(*handlers)


def request(url: str, options: argparse.Namespace) -> urllib.request.Request:
    data = "&".join(map(body_part, options.data)).encode() if options.data else None
    method = options.request or ("HEAD" if options.head else "POST" if data is not None else "GET")
    headers = {"User-Agent": options.user_agent, "Accept": "*/*"}
    if options.user:
        headers["Authorization"] = "Basic " + base64.b64encode(options.user.encode()).decode()
    for line in options.header:
        name, _, value = line.partition(":")
        headers[name.strip()] = value.strip()
    return urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - `ask` lets only http(s) pass


def body_part(text: str) -> str:
    if not text.startswith("@"):
        return text
    if text == "@-":
        return sys.stdin.read()
    return Path(text[1:]).read_text()


def as_curl_says(cause: object) -> Failure:
    """The code and the words that curl has for a failure."""
    match cause:
        case socket.gaierror():
            return Failure(NO_HOST, f"Could not resolve host: {cause.strerror}")
        case TimeoutError():
            return Failure(TOO_SLOW, "Operation timed out")
        case ssl.SSLCertVerificationError():
            return Failure(UNTRUSTED, f"SSL certificate problem: {cause.verify_message}")
        case http.client.RemoteDisconnected():
            return Failure(EMPTY, "Empty reply from server")
        case ConnectionRefusedError():
            return Failure(NO_CONNECTION, "Failed to connect: Connection refused")
        case ConnectionError() | http.client.HTTPException():
            return Failure(BROKEN, f"Recv failure: {cause}")
        case ValueError() | str():
            return Failure(MALFORMED, f"URL rejected: {cause}")
        case _:
            return Failure(NO_CONNECTION, f"Failed to connect: {cause}")


if __name__ == "__main__":
    sys.exit(main())
