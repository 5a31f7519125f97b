"""Network namespaces: held open by a descriptor, entered by threads, and sockets that live in one of them.

A socket belongs for life to the namespace of the thread that made it, whoever uses it afterwards. So the event
loop never changes its own namespace: a thread enters the other one, makes the socket there and hands it over.
"""

import asyncio
import ctypes
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

T = TypeVar("T")

NamespaceTarget = Path | str | int
"""Where a namespace is found: a path, or a descriptor. That of a process is at `namespace_of(pid)`."""

_CLONE_NEWNET = 0x40000000
_OWN = "/proc/thread-self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True)


def namespace_of(pid: int) -> Path:
    """Return where the network namespace of a process is found."""
    return Path(f"/proc/{pid}/ns/net")


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def in_own_thread(function: Callable[[], T]) -> T:
    """Return what a function returns in a thread that ends with it, so that whatever it enters is left again."""
    with ThreadPoolExecutor(1, thread_name_prefix="kubereef-once") as thread:
        return thread.submit(function).result()


class Namespace:
    """A network namespace that stays as long as this object is open, whoever else leaves it."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @staticmethod
    def at(target: NamespaceTarget) -> "Namespace":
        """Open the namespace at a path, or take one more hold of an open descriptor."""
        if isinstance(target, int):
            return Namespace(os.dup(target))
        return Namespace(os.open(target, os.O_RDONLY | os.O_CLOEXEC))

    @staticmethod
    def current() -> "Namespace":
        """Open the namespace of the calling thread."""
        return Namespace.at(_OWN)

    @staticmethod
    def new() -> "Namespace":
        """Make an empty namespace, with its loopback link down."""

        def make() -> Namespace:
            _checked(_libc.unshare(_CLONE_NEWNET), "a new network namespace")
            return Namespace.current()

        return in_own_thread(make)

    def enter(self) -> None:
        """Move the calling thread into this namespace, for good. Only for threads that expect it."""
        _checked(_libc.setns(self.fd, _CLONE_NEWNET), "enter a network namespace")

    def close(self) -> None:
        """Let go of the namespace; the kernel ends it once nobody holds it. Safe to call twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NamespaceThreads:
    """Threads that run functions inside any namespace and then go back to where they were made."""

    def __init__(self, name: str, count: int = 1) -> None:
        self._home = Namespace.current()
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=f"kubereef-{name}")

    async def run(self, namespace: Namespace, function: Callable[[], T]) -> T:
        """Return what a blocking function returns when it is called inside a namespace. It may enter others."""

        def inside() -> T:
            namespace.enter()
            try:
                return function()
            finally:
                # A thread that stayed would keep the namespace, and a Pod's link in it, until somebody else needs it.
                self._home.enter()

        return await asyncio.wrap_future(self._threads.submit(inside))

    def close(self) -> None:
        """End the threads once their present work is done. Safe to call twice."""
        self._threads.shutdown(wait=True)
        self._home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Sockets(Protocol):
    """A way to make sockets, in whichever namespace."""

    async def make(self, family: socket.AddressFamily, kind: socket.SocketKind) -> socket.socket:
        """Return a new socket that does not block."""
        ...


class SocketsHere:
    """Makes sockets in the namespace of the event loop's thread."""

    __slots__ = ()

    async def make(self, family: socket.AddressFamily, kind: socket.SocketKind) -> socket.socket:
        return _nonblocking(family, kind)


class SocketsThere:
    """Makes sockets in a namespace other than that of the event loop's thread."""

    __slots__ = ("_namespace", "_threads")

    def __init__(self, threads: NamespaceThreads, namespace: Namespace) -> None:
        self._threads = threads
        self._namespace = namespace

    async def make(self, family: socket.AddressFamily, kind: socket.SocketKind) -> socket.socket:
        return await self._threads.run(self._namespace, lambda: _nonblocking(family, kind))


def _nonblocking(family: socket.AddressFamily, kind: socket.SocketKind) -> socket.socket:
    made = socket.socket(family, kind)
    made.setblocking(False)
    return made


def family_of(address: str) -> socket.AddressFamily:
    """Return the family of a numeric address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET
