"""URLs: `isURL(self) && url(self).getScheme() == 'https'`. Only absolute URLs and absolute paths are URLs here."""

from kubewire.cel.cost import traversal
from kubewire.cel.errors import EvaluationError
from kubewire.cel.library import function, method
from kubewire.cel.types import URL
from kubewire.cel.values import held_by

_SCHEME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\"")
_USER = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:~!$&'()*+,;=%@")
# What stays as it is in a path; everything else is written as percent and two digits.
_PATH_SAFE = "/-_.~!$&'()*+,;=:@%"


class Url:
    """A URL in its parts."""

    __slots__ = ("host", "path", "query", "scheme", "text", "user")

    def __init__(self, text: str, *, whole: bool = False) -> None:
        """Take a URL apart; with `whole` a fragment is left where it stands, as in the target of a request."""
        self.text = text
        scheme, rest = _split_scheme(text if whole else text.partition("#")[0])
        self.scheme = scheme.lower()
        rest, _, self.query = rest.partition("?")
        self.host = self.user = ""
        if rest.startswith("//") and (self.scheme or not rest.startswith("///")):
            authority, slash, path = rest[2:].partition("/")
            self.user, _, self.host = authority.rpartition("@")
            rest = slash + path
        self.path = rest if rest.startswith("/") or not self.scheme else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def hostname(self) -> str:
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        return self.host.rpartition("]")[2].partition(":")[2]


held_by(URL, Url)


def _split_scheme(text: str) -> tuple[str, str]:
    """Return the scheme, empty when there is none, and the rest."""
    scheme, colon, rest = text.partition(":")
    if not colon or not scheme or not _SCHEME.issuperset(scheme) or not scheme[0].isalpha():
        return "", text
    return scheme, rest


def _problem(text: str) -> str | None:
    """Return why a text is no URL, or None."""
    if not text:
        return "empty url"
    if any(character < " " or character == "\x7f" for character in text):
        return "invalid control character in URL"
    url = Url(text, whole=True)
    if not url.scheme and not text.startswith("/") and text != "*":
        return "missing protocol scheme" if text.startswith(":") else "invalid URI for request"
    if not _USER.issuperset(url.user):
        return "net/url: invalid userinfo"
    return _authority_problem(url) or _escape_problem(url.path)


def _authority_problem(url: Url) -> str | None:
    host = url.host
    bracketed = host.startswith("[")
    if bracketed and "]" not in host:
        return "missing ']' in host"
    port = host.rpartition("]")[2] if bracketed else ":" + host.rpartition(":")[2] if ":" in host else ""
    if port and (port[0] != ":" or not all(digit in "0123456789" for digit in port[1:])):
        return f'invalid port "{port}" after host'
    if not bracketed and any(character not in _HOST and character.isascii() for character in host):
        return "invalid character in host name"
    return None if bracketed or host.count(":") <= 1 else "invalid port after host"


def _escape_problem(path: str) -> str | None:
    at = path.find("%")
    while at >= 0:
        code = path[at + 1 : at + 3]
        if len(code) < 2 or not _HEXADECIMAL.issuperset(code):
            return f'invalid URL escape "%{code}"'
        at = path.find("%", at + 1)
    return None


@function("isURL", "string -> bool")
def is_url(text: str) -> bool:
    return _problem(text) is None


@function("url", "string -> url", cost=traversal)
def url_of(text: str) -> Url:
    if problem := _problem(text):
        raise EvaluationError(f'URL parse error during conversion from string: parse "{text}": {problem}')
    return Url(text)


@method("getScheme", "url -> string")
def scheme_of(url: Url) -> str:
    return url.scheme


@method("getHost", "url -> string")
def host_of(url: Url) -> str:
    return url.host


@method("getHostname", "url -> string")
def hostname_of(url: Url) -> str:
    return url.hostname


@method("getPort", "url -> string")
def port_of(url: Url) -> str:
    return url.port


@method("getEscapedPath", "url -> string")
def path_of(url: Url) -> str:
    from urllib.parse import quote  # a rule that only asks for the scheme does not need it

    return quote(url.path, safe=_PATH_SAFE)


@method("getQuery", "url -> map(string, list(string))")
def query_of(url: Url) -> dict[str, list[str]]:
    """Return the values of each name in the query; what is not well formed in it is left out."""
    from urllib.parse import unquote_plus  # a rule that only asks for the scheme does not need it

    values: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if pair and ";" not in pair and _escape_problem(pair) is None:
            name, _, value = pair.partition("=")
            values.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return values
