"""The resources that are served, and how to find one."""

from collections.abc import Callable, Iterator

from kubereef.kinds.resource import ResourceType


class Registry:
    """Resources by group, version and plural. Custom ones come and go while the server runs."""

    def __init__(self, types: "tuple[ResourceType, ...] | list[ResourceType]" = ()) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        self._listeners: list[Callable[[], None]] = []
        for resource_type in types:
            self.add(resource_type)

    def add(self, resource_type: ResourceType) -> None:
        """Serve a resource from now on, in place of an older one of the same names."""
        self._types[(resource_type.group, resource_type.version, resource_type.plural)] = resource_type
        self._changed()

    def remove(self, group: str, version: str, plural: str) -> None:
        """Serve a resource no longer."""
        if self._types.pop((group, version, plural), None) is not None:
            self._changed()

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        return self._types.get((group, version, plural))

    def of_kind(self, group: str, version: str, kind: str) -> ResourceType | None:
        """Return the resource whose objects have this kind."""
        for found in self._types.values():
            if (found.group, found.version, found.kind) == (group, version, kind):
                return found
        return None

    def versions_of(self, resource: str) -> list[ResourceType]:
        """Return every served version of a resource such as `deployments.apps`."""
        return [found for found in self._types.values() if found.resource == resource]

    def is_builtin(self, group: str, version: str) -> bool:
        """Tell whether a group version is the server's own, and not made by definitions of custom resources."""
        return any(not found.custom for (g, v, _), found in self._types.items() if (g, v) == (group, version))

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(tuple(self._types.values()))

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a function called after every change, so that what is derived can be made anew.

        What is returned ends this.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _changed(self) -> None:
        for listener in tuple(self._listeners):
            listener()
