"""For whom a command works: under sudo it is the user who typed it, and files in their home stay theirs."""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class User(NamedTuple):
    """A user, with the home in which their files are."""

    uid: int
    gid: int
    home: Path


def invoking_user(environ: Mapping[str, str]) -> User:
    """Return who typed the command: whoever called sudo, else whoever this process runs as."""
    uid = environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and uid.isdecimal() and int(uid) != 0:
        try:
            entry = pwd.getpwuid(int(uid))
        except KeyError:
            pass  # a user of another machine's making has no home here, so root's own is used
        else:
            return User(entry.pw_uid, entry.pw_gid, Path(entry.pw_dir))
    home = environ.get("HOME") or pwd.getpwuid(os.geteuid()).pw_dir
    return User(os.geteuid(), os.getegid(), Path(home))


def give(path: Path, user: User) -> None:
    """Make a file its user's; without root it is that already."""
    if os.geteuid() == 0:
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def make_directory(path: Path, user: User, mode: int = 0o755) -> None:
    """Make a directory and all above it that are missing; they belong to the user."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=mode if one == path else 0o755, exist_ok=True)
        give(one, user)
