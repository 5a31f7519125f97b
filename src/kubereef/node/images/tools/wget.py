"""Fetch a URL as wget does, with the options that probes and scripts use.

    wget [-q] [-S] [-O FILE|-] [-T SECONDS] [-t TRIES] [--header LINE]… [--post-data TEXT] [--method NAME]
         [--spider] [--no-check-certificate] URL…

Ends with wget's codes: 0 all fetched, 2 wrong usage, 3 file not written, 4 network failure, 5 certificate not
trusted, 8 the server answered with an error.
"""

import argparse
import http.client
import shutil
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NoReturn

OK, USAGE, FILE, NETWORK, CERTIFICATE, SERVER = 0, 2, 3, 4, 5, 8
DEFAULT_TRIES = 20
LONGEST_PAUSE = 10


class Arguments(argparse.ArgumentParser):
    """wget ends with 2 on wrong usage, which is argparse's way too, and says so in one line."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"wget: {message}\n")
        sys.exit(USAGE)


def arguments() -> argparse.Namespace:
    parser = Arguments(prog="wget", add_help=True, allow_abbrev=False)
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("-q", "--quiet", "-nv", "--no-verbose", action="store_true")
    parser.add_argument("-S", "--server-response", action="store_true")
    parser.add_argument("-O", "--output-document", metavar="FILE")
    parser.add_argument("-T", "--timeout", type=float, default=900)
    parser.add_argument("-t", "--tries", type=int, default=DEFAULT_TRIES)
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--post-data")
    parser.add_argument("--method")
    parser.add_argument("--spider", action="store_true")
    parser.add_argument("--no-check-certificate", action="store_true")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    urls = [url if "://" in url else f"http://{url}" for url in options.urls]
    for url in urls:
        if not url.lower().startswith(("http://", "https://")):
            say(options, f"{url}: Unsupported scheme.")
            return USAGE
    return max(fetch(url, options) for url in urls)


def fetch(url: str, options: argparse.Namespace) -> int:
    """Fetch one URL, again after network failures, and return the code to end with."""
    tries = options.tries or sys.maxsize  # 0 means without end
    for attempt in range(1, tries + 1):
        try:
            with opener(options).open(request(url, options), timeout=options.timeout) as answer:
                if options.server_response:
                    sys.stderr.write(f"  HTTP/1.1 {answer.status} {answer.reason}\n{answer.headers}")
                if not options.spider:
                    save(answer, url, options)
                return OK
        except urllib.error.HTTPError as refusal:
            say(options, f"ERROR {refusal.code}: {refusal.reason}.")
            return SERVER
        except urllib.error.URLError as failure:
            say(options, f"{url}: {failure.reason}")
            if isinstance(failure.reason, ssl.SSLCertVerificationError):
                return CERTIFICATE
            if isinstance(failure.reason, ConnectionRefusedError):
                return NETWORK  # as wget: nobody listens there, so asking again is useless
        except (OSError, http.client.HTTPException) as failure:
            say(options, f"{url}: {failure}")
        except ValueError as wrong:
            say(options, f"{url}: {wrong}")
            return USAGE
        if attempt < tries:
            time.sleep(min(attempt, LONGEST_PAUSE))  # noqa: TID251 - a program in a container has real time only
    return NETWORK


def request(url: str, options: argparse.Namespace) -> urllib.request.Request:
    data = options.post_data.encode() if options.post_data is not None else None
    method = options.method or ("POST" if data is not None else "HEAD" if options.spider else "GET")
    headers = {"User-Agent": "Wget/1.21 (compatible)", "Accept": "*/*"}
    for line in options.header:
        name, _, value = line.partition(":")
        headers[name.strip()] = value.strip()
    return urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - main lets only http(s) pass


def opener(options: argparse.Namespace) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    if options.no_check_certificate:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))


def save(answer: http.client.HTTPResponse, url: str, options: argparse.Namespace) -> None:
    if options.output_document == "-":
        shutil.copyfileobj(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    name = options.output_document or urllib.parse.urlsplit(url).path.rpartition("/")[2] or "index.html"
    try:
        with Path(name).open("wb") as file:
            shutil.copyfileobj(answer, file)
    except PermissionError as refusal:
        sys.stderr.write(f"{name}: {refusal.strerror}\n")
        sys.exit(FILE)
    say(options, f"'{name}' saved")


def say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
