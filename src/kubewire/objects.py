"""Objects as plain values: mappings, lists, texts, numbers, booleans and nothing."""


def copied(value: object) -> object:
    """Return a value that shares no mapping and no list with the given one; tuples become lists."""
    if isinstance(value, dict):
        return {key: copied(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [copied(item) for item in value]
    return value
