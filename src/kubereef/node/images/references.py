"""Image references as Docker reads them: `[registry/]repository[:tag][@digest]`."""

import re
from typing import NamedTuple

DEFAULT_REGISTRY = "docker.io"
DEFAULT_TAG = "latest"

_OFFICIAL = "library/"  # where Docker Hub keeps images whose name has no owner
_MAX_NAME = 255
_MAX_TEXT = 1024  # a name, a tag of 128 and the longest digest fit with room to spare

_REGISTRY = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9-]+)*|\[[0-9a-fA-F:]+\])(?::\d{1,5})?"
)
_PART = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,256}")
_HEX_LENGTH = {"sha256": 64, "sha384": 96, "sha512": 128}


class InvalidReference(ValueError):
    """The text is no image reference; the message says what is wrong with it."""


class Reference(NamedTuple):
    """An image reference with everything that was left out filled in."""

    registry: str
    repository: str  # with `library/` where Docker Hub has it
    tag: str  # "latest" when neither tag nor digest was given, "" when only a digest was
    digest: str  # "" when none was given

    @property
    def familiar(self) -> str:
        """The repository as people write it: no `docker.io/`, no `library/`."""
        if self.registry != DEFAULT_REGISTRY:
            return f"{self.registry}/{self.repository}"
        return self.repository.removeprefix(_OFFICIAL)

    def __str__(self) -> str:
        """The whole reference, such as `docker.io/library/redis:7.4.0`."""
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"


def parse_reference(text: str) -> Reference:
    """Return the reference that a text means; raise InvalidReference when it means none."""
    if not text:
        raise InvalidReference("the image name is empty")
    if len(text) > _MAX_TEXT:
        raise InvalidReference(f"longer than {_MAX_TEXT} characters")
    rest, _, digest = text.partition("@")
    if "@" in text:
        _check_digest(digest)
    name, tag = _split_tag(rest)
    registry, repository = _split_registry(name)
    if not repository or not all(_PART.fullmatch(part) for part in repository.split("/")):
        raise InvalidReference(_why_not(repository))
    if len(registry) + 1 + len(repository) > _MAX_NAME:
        raise InvalidReference(f"the name is longer than {_MAX_NAME} characters")
    return Reference(registry, repository, tag or ("" if digest else DEFAULT_TAG), digest)


def _split_tag(rest: str) -> tuple[str, str]:
    # A colon before the last slash belongs to the registry's port.
    colon = rest.rfind(":")
    if colon <= rest.rfind("/"):
        return rest, ""
    tag = rest[colon + 1 :]
    if not _TAG.fullmatch(tag):
        raise InvalidReference(f"{tag!r} is no tag: letters, digits, '_', '.' and '-', at most 128 of them")
    return rest[:colon], tag


def _split_registry(name: str) -> tuple[str, str]:
    first, slash, remainder = name.partition("/")
    # Docker's own rule: only these make the first part a host name rather than an owner.
    is_host = bool(slash) and (first == "localhost" or "." in first or ":" in first or first != first.lower())
    registry, repository = (first, remainder) if is_host else (DEFAULT_REGISTRY, name)
    if not _REGISTRY.fullmatch(registry):
        raise InvalidReference(f"{registry!r} is no registry: expected a host name, with a port if need be")
    if registry == f"index.{DEFAULT_REGISTRY}":
        registry = DEFAULT_REGISTRY
    if registry == DEFAULT_REGISTRY and repository and "/" not in repository:
        repository = _OFFICIAL + repository
    return registry, repository


def _check_digest(digest: str) -> None:
    if not _DIGEST.fullmatch(digest):
        raise InvalidReference(f"{digest!r} is no digest: expected sha256: and 64 hexadecimal digits")
    algorithm, _, value = digest.partition(":")
    wanted = _HEX_LENGTH.get(algorithm, len(value))
    if len(value) != wanted or value != value.lower():
        raise InvalidReference(f"a {algorithm} digest has {wanted} hexadecimal digits in lower case")


def _why_not(repository: str) -> str:
    if repository != repository.lower():
        return f"repository name must be lowercase: {repository!r}"
    return (
        f"{repository!r} is no repository name: lower-case letters and digits, joined by '.', '_', '-' or '/'"
    )
