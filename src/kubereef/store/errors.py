"""Why the store refuses."""


class StoreError(Exception):
    """The store could not do what was asked; nothing was changed."""


class Conflict(StoreError):
    """The object is not, or no longer, what the writer believed."""


class Compacted(StoreError):
    """The history no longer reaches back to the wanted revision."""

    def __init__(self, wanted: int, oldest: int) -> None:
        super().__init__(f"revision {wanted} is too old; the history begins at {oldest}")
        self.wanted = wanted
        self.oldest = oldest


class FutureRevision(StoreError):
    """The wanted revision has not happened yet."""

    def __init__(self, wanted: int, current: int) -> None:
        super().__init__(f"revision {wanted} is above the current {current}")
        self.wanted = wanted
        self.current = current


class WriteFailed(StoreError):
    """The write did not become durable, for instance because the disk is full."""


class InUse(StoreError):
    """Another process has the data directory."""


class Unusable(StoreError):
    """The data directory holds something that this version cannot read."""
