"""Regular expressions in rules: `matches`, `find` and `findAll`."""

from kubewire.cel.cost import Run, match_price
from kubewire.cel.library import function, method
from kubewire.cel.regex import pattern_of


@function("matches", "string, string -> bool", cost=match_price, with_run=True)
@method("matches", "string, string -> bool", cost=match_price, with_run=True)
def matches(run: Run, text: str, pattern: str) -> bool:
    """Tell whether a pattern matches anywhere in a text."""
    return pattern_of(pattern).search(text, run.work)


@method("find", "string, string -> string", cost=match_price, with_run=True)
def find(run: Run, text: str, pattern: str) -> str:
    """Return the first match, or an empty string."""
    found = pattern_of(pattern).find(text, 0, run.work)
    return text[found[0] : found[1]] if found else ""


def _all_price(text: str, pattern: str, _: int = -1) -> int:
    return match_price(text, pattern)


@method(
    "findAll",
    "string, string -> list(string)",
    "string, string, int -> list(string)",
    cost=_all_price,
    with_run=True,
)
def find_all(run: Run, text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the matches from left to right, at most `limit` of them; an empty one next to another is left out."""
    compiled = pattern_of(pattern)
    result: list[str] = []
    at, last_end = 0, -1
    while at <= len(text) and (limit < 0 or len(result) < limit):
        found = compiled.find(text, at, run.work)
        if found is None:
            break
        begin, end = found
        if end > begin or begin != last_end:
            result.append(text[begin:end])
        last_end = end
        at = end if end > begin else end + 1
    return result
