"""The base of images: what of this machine containers see, read-only, and an /etc of our own.

System directories are bound, not copied: they are large, and their libraries and the linker's cache have to belong
together. /usr/local is not among them; there images put what they bring. Of /etc only what programs cannot do
without is bound: no keys, no passwords, no configuration of services.
"""

import os
from pathlib import Path

import msgspec

from kubereef.node.images.image import Bind, User

_TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_OF_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "share", "include")
_SHARED = (
    "etc/alternatives",
    "etc/ca-certificates",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d",
    "etc/localtime",
    "etc/mime.types",
    "etc/pki/ca-trust/extracted",
    "etc/pki/tls/certs",
    "etc/pki/tls/openssl.cnf",
    "etc/protocols",
    "etc/services",
    "etc/ssl/cert.pem",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/terminfo",
    "usr/local/share/ca-certificates",  # links in /etc/ssl/certs lead there
)
_PROGRAM_DIRECTORIES = ("usr/bin", "usr/sbin", "bin", "sbin")
_FOLDERS = {
    "/dev": 0o755,
    "/etc": 0o755,
    "/home": 0o755,
    "/media": 0o755,
    "/mnt": 0o755,
    "/opt": 0o755,
    "/proc": 0o555,
    "/root": 0o700,
    "/run": 0o755,
    "/srv": 0o755,
    "/sys": 0o555,
    "/tmp": 0o1777,  # noqa: S108 - the image's own
    "/usr/local/bin": 0o755,
    "/usr/local/etc": 0o755,
    "/usr/local/lib": 0o755,
    "/usr/local/sbin": 0o755,
    "/usr/local/share": 0o755,
    "/var/lib": 0o755,
    "/var/log": 0o755,
    "/var/tmp": 0o1777,  # noqa: S108 - the image's own
}
_USERS = """\
root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUPS = "root:x:0:\ndaemon:x:1:\ntty:x:5:\nusers:x:100:\nnogroup:x:65534:\n"
_NSSWITCH = (
    "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n"
)
# A login shell keeps the image's PATH: distributions set their own here, and `ray` would be gone.
_PROFILE = 'if [ -n "${PS1-}" ]; then PS1="\\u@\\h:\\w\\$ "; fi\n'


class Base(msgspec.Struct, frozen=True, tag="base"):
    """A layer that holds no program: folders, small files, links and the places where binds go."""

    folders: dict[str, int]
    files: dict[str, str]
    links: dict[str, str]
    binds: tuple[Bind, ...]
    owned: dict[str, tuple[int, int]]


def host_base(
    user: User, folders: tuple[str, ...] = (), root: Path = Path("/"), brought: tuple[str, ...] = ()
) -> Base:
    """Return the base of an image on this machine for a user, whose home and folders are theirs.

    Programs that are brought in /usr/local/bin are found in /bin as well, since some are called by that path.
    """
    binds, links = _visible(root)
    if brought:
        binds, links = _with_programs(binds, links, brought)
    own = {path: (user.uid, user.gid) for path in (user.home, *folders) if path not in ("/", "/root")}
    links["/var/run"] = "/run"
    files = {
        "/etc/passwd": _with_user(user),
        "/etc/group": _with_group(user),
        "/etc/nsswitch.conf": _NSSWITCH,
        "/etc/profile": _PROFILE,
        "/etc/hosts": "127.0.0.1 localhost\n",
        "/etc/hostname": "",
        "/etc/resolv.conf": "",
    }
    if (root / "usr/lib/os-release").is_file():
        links["/etc/os-release"] = "../usr/lib/os-release"
    return Base({**_FOLDERS, **dict.fromkeys(own, 0o755)}, files, links, binds, own)


def lacking(programs: tuple[str, ...], root: Path = Path("/")) -> tuple[str, ...]:
    """Return the programs that no system directory of this machine has."""
    return tuple(
        name
        for name in programs
        if not any(os.access(root / directory / name, os.X_OK) for directory in _PROGRAM_DIRECTORIES)
    )


def write_base(base: Base, tree: Path) -> None:
    """Make the base's directories and files under `tree`."""
    for path, mode in base.folders.items():
        place = tree / path.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(mode)
    for bind in base.binds:
        place = tree / bind.target.lstrip("/")
        if Path(bind.source).is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
    for path, text in base.files.items():
        (tree / path.lstrip("/")).write_text(text)
    for path, target in base.links.items():
        place = tree / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    if os.geteuid() == 0:
        for path, (uid, gid) in base.owned.items():
            os.chown(tree / path.lstrip("/"), uid, gid)


def _visible(root: Path) -> tuple[tuple[Bind, ...], dict[str, str]]:
    """What of a machine is bound, and which links its layout has instead (/bin is usr/bin on most)."""
    binds: list[Bind] = []
    links: dict[str, str] = {}
    for name in (*_TOP_LEVEL, *(f"usr/{name}" for name in _OF_USR)):
        place = root / name
        if place.is_symlink():
            links[f"/{name}"] = str(place.readlink())
        elif place.is_dir():
            binds.append(Bind(str(place), f"/{name}"))
    # Links are resolved here: what they point to may not be visible inside.
    binds += [Bind(str((root / name).resolve()), f"/{name}") for name in _SHARED if (root / name).exists()]
    return tuple(binds), links


def _with_programs(
    binds: tuple[Bind, ...], links: dict[str, str], names: tuple[str, ...]
) -> tuple[tuple[Bind, ...], dict[str, str]]:
    """Return binds and links with more programs in /bin: it becomes a folder of links to the machine's programs.

    These are bound beside it, so that links among them that lead up a folder still lead to the right place.
    """
    programs = next(bind for bind in binds if bind.target in ("/bin", "/usr/bin"))
    folder = programs.target
    beside = f"{folder.removesuffix('bin')}machine-bin"
    moved = tuple(Bind(bind.source, beside) if bind is programs else bind for bind in binds)
    present = {
        f"{folder}/{entry.name}": f"../machine-bin/{entry.name}" for entry in os.scandir(programs.source)
    }
    added = {f"{folder}/{name}": f"/usr/local/bin/{name}" for name in names}
    return moved, {**links, **present, **added}


def _with_user(user: User) -> str:
    if user.uid == 0:
        return _USERS
    return f"{_USERS}{user.name}:x:{user.uid}:{user.gid}::{user.home}:/bin/bash\n"


def _with_group(user: User) -> str:
    if f":x:{user.gid}:" in _GROUPS:
        return _GROUPS
    return f"{_GROUPS}{user.group}:x:{user.gid}:\n"
