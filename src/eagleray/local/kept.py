"""The kept cluster: where it lives, whether it runs, and how it is started and ended from outside.

    place = place_of("eagleray", "", os.environ)
    kept = await ensure_running(KeepSettings(directory=str(place.directory)))    # Kept.kubeconfig leads to it
    find(place).is_running
    await stop(place)

A process of its own runs it (`eagleray.local.daemon`) and holds a lock on the directory. Its number is noted with the
moment it was started, so that another process with the same number is never taken for it, nor ended.
"""

import asyncio
import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from eagleray.local import contexts
from eagleray.local.contexts import ContextError
from eagleray.local.users import User, give, invoking_user, make_directory
from kubewire.names import dns1123_label
from kubewire.sources import Clock, SystemClock

DEFAULT_NAME: Final = "eagleray"
EXIT_TAKEN: Final = 75
"""How a process ends that found another one at work."""

# The node has a minute to come up, and so has the rest.
_START_SECONDS = 150.0
# Pods have ten seconds, and what is around them a few more.
_STOP_SECONDS = 40.0
_LOOK_EVERY = 0.1
_LAST_WORDS = 4000
_PROC = Path("/proc")
_AFTER_NAME = 19  # of the fields of /proc/<pid>/stat that follow the program's name, when it was started


class KeptError(Exception):
    """What was asked for could not be done; the message says why, and what helps."""


class NotAllowed(KeptError):
    """Only root can do that."""


class Taken(KeptError):
    """Another process runs the cluster, or is about to."""


class Place(NamedTuple):
    """Where a kept cluster lives, and whose it is."""

    name: str
    directory: Path
    user: User

    @property
    def cluster(self) -> Path:
        """Kubereef's own directory: objects, keys, volumes."""
        return self.directory / "cluster"

    @property
    def state_file(self) -> Path:
        return self.directory / "state.json"

    @property
    def port_file(self) -> Path:
        """The port of the last start, which the next one takes again."""
        return self.directory / "port"

    @property
    def log(self) -> Path:
        return self.directory / "eagleray.log"

    @property
    def last_words(self) -> Path:
        """What a detached process prints, from its start on."""
        return self.directory / "output.log"


class KeepSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a kept cluster shall be.

    Port 0 is the one it had before, or any. Without a context file no kubeconfig is told of it.
    """

    name: str = DEFAULT_NAME
    directory: str
    port: int = 0
    cpu_factor: float = 4.0
    outbound: str = ""
    resources: dict[str, str] = {}
    recipes: str = ""
    strict_images: bool = False
    operator_flags: tuple[str, ...] = ()
    context_file: str = ""
    make_current: bool = True


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What the process that runs a cluster tells of itself. The url is empty until it is ready."""

    pid: int
    started: str
    since: str
    version: str
    url: str = ""
    kubeconfig: str = ""
    context_file: str = ""
    images: str = ""
    cpu_factor: float = 0.0


class State(NamedTuple):
    """What is known of a kept cluster. A record without its process is what a crash has left."""

    place: Place
    record: Record | None = None
    is_alive: bool = False

    @property
    def is_running(self) -> bool:
        return self.is_alive and self.record is not None and bool(self.record.url)

    @property
    def is_starting(self) -> bool:
        return self.is_alive and not self.is_running

    @property
    def has_crashed(self) -> bool:
        return self.record is not None and not self.is_alive


class Kept(NamedTuple):
    """A kept cluster that runs; `is_new` if it was started just now."""

    kubeconfig: Path
    url: str
    pid: int
    is_new: bool


def place_of(name: str, data_dir: str, environ: Mapping[str, str]) -> Place:
    """Return where a cluster of this name lives: in the directory given, else with the user's data."""
    if problems := dns1123_label(name):
        raise KeptError(f"--name: {name!r} cannot be the name of a cluster: {problems[0]}")
    user = invoking_user(environ)
    usual = environ.get("XDG_DATA_HOME", "")
    data = Path(usual) if usual.startswith("/") else user.home / ".local" / "share"
    root = Path(data_dir).absolute() if data_dir else data / "eagleray"
    return Place(name, root / name, user)


def settings_place(settings: KeepSettings) -> Place:
    """Return the place that settings name."""
    return Place(settings.name, Path(settings.directory), invoking_user(os.environ))


# --- the process that runs it


def find(place: Place) -> State:
    """Return whether a cluster runs, by what its process has noted and by whether that very process still lives."""
    try:
        record = msgspec.json.decode(place.state_file.read_bytes(), type=Record)
    except FileNotFoundError:
        return State(place)
    except PermissionError as refused:
        raise NotAllowed(f"{place.state_file} is not readable for you") from refused
    except (msgspec.DecodeError, OSError) as bad:
        raise KeptError(f"{place.state_file} cannot be read: {bad}; remove it if no cluster runs") from bad
    return State(place, record, record.started == started_at(record.pid))


def started_at(pid: int) -> str:
    """Return which start of the machine and which moment of it a process is from; empty if there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else f"{boot}/{fields[_AFTER_NAME]}"


def note(place: Place, record: Record) -> None:
    """Tell others of this process, in one step."""
    draft = place.state_file.with_suffix(".new")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    give(draft, place.user)
    draft.replace(place.state_file)


@contextmanager
def held(place: Place) -> Iterator[None]:
    """Be the only process that runs or removes a cluster; raises Taken if there is one already."""
    make_directory(place.directory, place.user, 0o700)
    handle = os.open(place.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken(f"another process runs the cluster {place.name}, or is about to start it") from None
        yield
    finally:
        os.close(handle)


# --- from outside


async def ensure_running(
    settings: KeepSettings, clock: Clock | None = None, say: Callable[[str], None] | None = None
) -> Kept:
    """Return the kept cluster; if none runs, one is started as a process of its own, and waited for.

    Raises KeptError with the last words of a process that did not come up.
    """
    clock = clock or SystemClock()
    place = settings_place(settings)
    state = find(place)
    if state.is_running and state.record is not None:
        return _kept(state.record, is_new=False)
    require_root()
    child = None
    if not state.is_starting:
        if say is not None:
            say(f"starting the cluster {place.name} in {place.directory}")
        child = _start(settings, place)
    elif say is not None:
        say(f"another process starts the cluster {place.name}; waiting for it")
    return await _until_ready(place, child, clock)


def require_root() -> None:
    """Raise NotAllowed unless this process may run a node."""
    if os.geteuid() != 0:
        raise NotAllowed("Pods run in namespaces of their own, which needs root")


def _start(settings: KeepSettings, place: Place) -> int:
    """Start the process that runs a cluster, with no tie to this one; returns its number."""
    make_directory(place.directory, place.user, 0o700)
    place.last_words.unlink(missing_ok=True)
    output = str(place.last_words)
    told = msgspec.json.encode(settings).decode()
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "eagleray.local.daemon", told],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
    )


async def _until_ready(place: Place, child: int | None, clock: Clock) -> Kept:
    deadline = clock.monotonic() + _START_SECONDS
    while clock.monotonic() < deadline:
        state = find(place)
        if state.is_running and state.record is not None:
            return _kept(state.record, is_new=child is not None and state.record.pid == child)
        if child is not None and (code := _ended(child)) is not None:
            if code != EXIT_TAKEN:
                raise KeptError(f"the cluster {place.name} did not come up: {_said(place)}")
            child = None  # another process was faster, and is waited for
        elif child is None and not state.is_alive and not _is_held(place):
            raise KeptError(f"the cluster {place.name} did not come up; see {place.log}")
        await clock.sleep(_LOOK_EVERY)
    if child is not None:
        os.kill(child, signal.SIGTERM)
    raise KeptError(
        f"the cluster {place.name} was not ready in {_START_SECONDS:g} s: {_said(place)} (see {place.log})"
    )


def _is_held(place: Place) -> bool:
    try:
        with held(place):
            return False
    except Taken:
        return True


def _ended(child: int) -> int | None:
    """Return how a process that was started here has ended; None if it has not."""
    pid, status = os.waitpid(child, os.WNOHANG)
    return None if pid == 0 else os.waitstatus_to_exitcode(status)


def _said(place: Place) -> str:
    with suppress(FileNotFoundError):
        text = place.last_words.read_bytes()[-_LAST_WORDS:].decode(errors="replace").strip()
        if text:
            return text.splitlines()[-1].removeprefix("eagleray up: ")
    return f"it said nothing; see {place.log}"


def _kept(record: Record, *, is_new: bool) -> Kept:
    return Kept(Path(record.kubeconfig), record.url, record.pid, is_new)


async def stop(place: Place, clock: Clock | None = None, seconds: float = _STOP_SECONDS) -> str:
    """End a cluster and take away what it has told others; returns what was done, empty if it did not run.

    Exactly the noted process is asked to end; if it does not in time, it is killed, and all its Pods with it.
    """
    clock = clock or SystemClock()
    state = find(place)
    record = state.record
    if record is None:
        return ""
    done = "it had crashed"
    if state.is_alive:
        done = await _end(record, clock, seconds)
    _forget(place, record)
    if done != "stopped":
        await asyncio.to_thread(_sweep)
    return done


async def _end(record: Record, clock: Clock, seconds: float) -> str:
    """End a process; a handle on it, not its number, is what is signalled."""
    try:
        handle = os.pidfd_open(record.pid)
    except ProcessLookupError:
        return "stopped"
    try:
        if started_at(record.pid) != record.started:  # it ended just now, and its number is another's
            return "stopped"
        for number, done in (
            (signal.SIGTERM, "stopped"),
            (signal.SIGKILL, "killed, as it did not end in time"),
        ):
            signal.pidfd_send_signal(handle, number)
            if await _has_ended(handle, clock, seconds):
                return done
    except ProcessLookupError:
        return "stopped"
    except PermissionError as refused:
        raise NotAllowed(f"process {record.pid} is another user's") from refused
    finally:
        os.close(handle)
    raise KeptError(f"process {record.pid} does not end, though it was killed")


async def _has_ended(handle: int, clock: Clock, seconds: float) -> bool:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, ended.set)  # a handle is readable once its process has ended
    waits = asyncio.create_task(ended.wait())
    gives_up = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((waits, gives_up), return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(handle)
        waits.cancel()
        gives_up.cancel()
    return ended.is_set()


def forget_context(place: Place, record: Record) -> str:
    """Take a cluster's context out of the kubeconfig it was put into; returns what kept it there, if anything."""
    if not record.context_file:
        return ""
    try:
        contexts.remove(Path(record.context_file), place.name, str(place.directory), place.user)
    except ContextError as bad:
        return str(bad)
    return ""


def _forget(place: Place, record: Record) -> None:
    """Take away what a process that has gone may have left."""
    problem = forget_context(place, record)
    place.state_file.unlink(missing_ok=True)
    if problem:
        raise KeptError(f"the cluster {place.name} has ended, but its context is left: {problem}")


def _sweep() -> None:
    from kubereef.node.machine.leftovers import sweep_cgroups  # only root needs it, after a crash

    if os.geteuid() == 0:
        sweep_cgroups()


def purge(place: Place) -> int | None:
    """Remove everything that a stopped cluster has kept; returns how many bytes that were, None if nothing was kept."""
    if not place.directory.exists():
        return None
    try:
        size = disk_size(place.directory)
        with held(place):
            shutil.rmtree(place.directory)
    except PermissionError as refused:
        raise NotAllowed(f"{refused.filename} is not yours") from refused
    with suppress(OSError):  # other clusters live there
        place.directory.parent.rmdir()
    return size


def disk_size(directory: Path) -> int:
    """Return the bytes that a directory takes on disk; raises PermissionError where it cannot be looked into."""
    blocks = 0

    def refuse(problem: OSError) -> None:
        if not isinstance(problem, FileNotFoundError):  # what is removed meanwhile counts no more
            raise problem

    for folder, _, files in os.walk(directory, onerror=refuse):
        for name in files:
            with suppress(FileNotFoundError):
                blocks += (Path(folder) / name).lstat().st_blocks
    return blocks * 512
