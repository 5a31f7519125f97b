"""Kubeconfig files in all their forms: lists of them merged, contexts, and every way to say who one is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from eagleray.kube.access import (
    Access,
    ConfigError,
    Credentials,
    Fixed,
    Impersonation,
    UserCredentials,
)
from eagleray.kube.execplugin import ExecCredentials, Plugin
from eagleray.kube.incluster import in_cluster, is_in_cluster
from eagleray.kube.sections import Section
from kubewire.sources import Clock

_PROXIES = ("http", "https")


def find_access(
    environ: Mapping[str, str], clock: Clock, *, kubeconfig: str = "", context: str = ""
) -> Access:
    """Return the way to a cluster: by the file given, by `$KUBECONFIG`, by being in a Pod, by `~/.kube/config`."""
    if kubeconfig:
        return load([Path(kubeconfig)], environ, clock, context=context, all_needed=True)
    if listed := environ.get("KUBECONFIG", ""):
        files = [Path(path) for path in listed.split(":") if path]
        return load(files, environ, clock, context=context)
    if is_in_cluster(environ):
        return in_cluster(environ, clock)
    usual = Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config"
    if usual.is_file():
        return load([usual], environ, clock, context=context)
    raise ConfigError(
        f"no cluster to speak to: this is no Pod, KUBECONFIG is not set, and there is no {usual};"
        " name a file with --kubeconfig"
    )


def load(
    files: Sequence[Path],
    environ: Mapping[str, str],
    clock: Clock,
    *,
    context: str = "",
    all_needed: bool = False,
) -> Access:
    """Return what a context of these files says; without a name, the current one.

    The first file that has a value or an entry wins, as a whole. A file that does not exist is passed over, unless
    all are needed; one of them must be there.
    """
    present = [file for file in files if all_needed or file.exists()]
    if not present:
        raise ConfigError(f"none of these files exists: {', '.join(map(str, files))}")
    kubeconfig = _Merged([Section.read(file) for file in present])
    chosen = kubeconfig.context(context)
    cluster = kubeconfig.entry("clusters", "cluster", chosen, "cluster")
    user = kubeconfig.entry("users", "user", chosen, "user") if chosen.has("user") else None
    return _access(cluster, user, environ, clock)._replace(namespace=chosen.text("namespace", "default"))


class _Merged:
    """Several files read as one."""

    def __init__(self, files: Sequence[Section]) -> None:
        self._files = files

    def context(self, name: str) -> Section:
        """Return a context, the current one if none is named."""
        known = self._named("contexts")
        name = name or next(
            (file.text("current-context") for file in self._files if file.has("current-context")), ""
        )
        there_are = f"there are: {', '.join(known) or 'none'}"
        if not name:
            raise ConfigError(f"{self}: current-context is not set; set it or name a context, {there_are}")
        if name not in known:
            raise ConfigError(f"{self}: there is no context {name!r}; {there_are}")
        return known[name].section("context")

    def entry(self, many: str, one: str, chosen: Section, field: str) -> Section:
        """Return the entry that a field of the context names."""
        name = chosen.needed(field)
        known = self._named(many)
        if name not in known:
            raise chosen.wrong(field, f"{many} has no {name!r}; there are: {', '.join(known) or 'none'}")
        return known[name].section(one)

    def _named(self, field: str) -> dict[str, Section]:
        found: dict[str, Section] = {}
        for file in self._files:
            for entry in file.sections(field):
                found.setdefault(entry.needed("name"), entry)
        return found

    def __str__(self) -> str:
        return ", ".join(str(file.file) for file in self._files)


def _access(cluster: Section, user: Section | None, environ: Mapping[str, str], clock: Clock) -> Access:
    server = cluster.needed("server").rstrip("/")
    if urlsplit(server).scheme not in ("http", "https") or not urlsplit(server).hostname:
        raise cluster.wrong("server", f"{server!r} is no address; write https://host:port")
    insecure = cluster.flag("insecure-skip-tls-verify")
    authority = cluster.source("certificate-authority", clock)
    if insecure and authority is not None:
        raise cluster.wrong(
            "insecure-skip-tls-verify",
            "stands beside a certificate-authority; it would never be asked, drop one",
        )
    proxy = cluster.text("proxy-url")
    if proxy and urlsplit(proxy).scheme not in _PROXIES:
        raise cluster.wrong("proxy-url", f"only {' and '.join(_PROXIES)} proxies are supported")
    return Access(
        server,
        _credentials(user, cluster, environ, clock) if user is not None else UserCredentials(),
        authority,
        insecure,
        cluster.text("tls-server-name"),
        proxy,
        impersonation=_impersonation(user) if user is not None else Impersonation(),
    )


def _credentials(user: Section, cluster: Section, environ: Mapping[str, str], clock: Clock) -> Credentials:
    ways = [
        way
        for way, fields in {
            "a token": ("tokenFile", "token"),
            "a password": ("username", "password"),
            "an exec plugin": ("exec",),
        }.items()
        if any(user.has(field) for field in fields)
    ]
    if len(ways) > 1:
        field = "exec" if user.has("exec") else "username"
        raise user.wrong(
            field, f"stands beside other ways to say who one is ({' and '.join(ways)}); keep one"
        )
    if user.has("auth-provider"):
        raise user.wrong("auth-provider", "is no longer supported by Kubernetes; use an exec plugin")
    certificate, key = user.source("client-certificate", clock), user.source("client-key", clock)
    if (certificate is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise user.wrong(missing, "is missing; a certificate and its key belong together")
    pair = (certificate, key) if certificate is not None and key is not None else None
    if user.has("exec"):
        return ExecCredentials(Plugin.of(user.section("exec"), cluster), environ, clock)
    if user.has("username") or user.has("password"):
        return UserCredentials(password=(user.needed("username"), user.text("password")), pair=pair)
    if user.has("tokenFile"):
        return UserCredentials(token=user.source("tokenFile", clock), pair=pair)
    if user.has("token"):
        return UserCredentials(token=Fixed(user.text("token").encode()), pair=pair)
    return UserCredentials(pair=pair)


def _impersonation(user: Section) -> Impersonation:
    extra = user.section("as-user-extra")
    found = Impersonation(
        user.text("as"),
        user.text("as-uid"),
        user.texts("as-groups"),
        {name: extra.texts(name) for name in extra.names()},
    )
    if not found.user and found != Impersonation():
        raise user.wrong(
            "as", "is missing; whoever acts with another's uid, groups or extra needs a user name too"
        )
    return found
