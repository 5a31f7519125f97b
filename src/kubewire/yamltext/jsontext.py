"""JSON, which is mostly YAML but may hold tabs and escapes that YAML refuses."""

from kubewire.yamltext.events import MAX_DEPTH, Document, Position, YamlError


def looks_like_json(text: str) -> bool:
    """Tell whether the text begins as a JSON object does."""
    return text.lstrip()[:1] == "{"


def json_document(text: str) -> Document | None:
    """Return the one JSON object that the text is, or None where the YAML reader should answer."""
    import json  # only JSON input pays for it

    repeated = False

    def pairs(entries: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeated
        found = dict(entries)
        repeated = repeated or len(found) != len(entries)
        return found

    def refuse(constant: str) -> object:
        raise YamlError(f"{constant} is not JSON; use a finite number")

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)
    except json.JSONDecodeError:
        return None
    except RecursionError:
        raise YamlError(f"nested more than {MAX_DEPTH} deep") from None
    if repeated:
        return None  # the YAML reader says which key, and where
    if _deeper_than(value, MAX_DEPTH):
        raise YamlError(f"nested more than {MAX_DEPTH} deep")
    start = len(text) - len(text.lstrip())
    return Document(value, Position(text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)))


def _deeper_than(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        inner: list[object] = []
        for holder in level:
            if isinstance(holder, dict):
                inner.extend(holder.values())
            elif isinstance(holder, list):
                inner.extend(holder)
        if not inner:
            return False
        level = inner
    return True
