"""An image as the rest of the node sees it: directories to stack, and what to run in them."""

from pathlib import Path

import msgspec


class Bind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path of the host, file or directory, that containers see read-only at `target`."""

    source: str
    target: str


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user that an image's processes run as unless the Pod says otherwise."""

    name: str = "root"
    uid: int = 0
    group: str = "root"
    gid: int = 0
    home: str = "/root"


class Image(msgspec.Struct, frozen=True):
    """An image on disk, ready to be a container's root file system.

    `layers` are directories for an overlay, the first wins, and none is ever written to. `binds` go on top of
    them; their targets exist in the layers. Env, user, workdir, entrypoint and command are what an image's
    configuration says, and a container's own fields win over them as always.
    """

    reference: str  # as the Pod gave it, completed: docker.io/rayproject/ray:2.52.0
    digest: str  # sha256:…, of what the image was made from
    layers: tuple[Path, ...]
    binds: tuple[Bind, ...] = ()
    env: dict[str, str] = {}
    user: User = User()
    workdir: str = "/"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    warnings: tuple[
        str, ...
    ] = ()  # for events on the Pod: in what this image differs from what was asked for
    size: int = 0  # bytes on disk, layers shared with other images included

    @property
    def id(self) -> str:
        """What a container status shows as imageID."""
        name = self.reference.partition("@")[0]
        colon = name.rfind(":")
        return f"{name[:colon] if colon > name.rfind('/') else name}@{self.digest}"
