"""Acting as somebody else, for those who may."""

from collections.abc import Iterable
from urllib.parse import unquote

from kubereef.server.authorization import Authorizer
from kubereef.server.requests import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, Request, User
from kubereef.server.routing import Target, target_of
from kubewire import errors
from kubewire.gotext import quote

_USER = "impersonate-user"
_GROUP = "impersonate-group"
_UID = "impersonate-uid"
_EXTRA = "impersonate-extra-"
_ACCOUNT_PREFIX = "system:serviceaccount:"
_NODE_PREFIX = "system:node:"


def effective_user(request: Request, user: User, authorizer: Authorizer) -> User:
    """Return the user that a request wants to act as, if the one who asks may; otherwise the one who asks."""
    wanted = _wanted(request)
    if wanted is None:
        return user
    if not wanted.name:
        raise errors.bad_request(f"requested {_go_syntax(wanted)} without impersonating a user name")
    refused: errors.Forbidden | None = None
    for targets in (*_constrained(request, wanted), _targets(wanted)):
        try:
            for target in targets:
                authorizer.require(user, target)
        except errors.Forbidden as refusal:
            refused = refused or refusal
            continue
        return wanted._replace(groups=tuple(_groups(wanted)))
    assert refused is not None  # the last way has at least the name to ask for
    raise refused


def _constrained(request: Request, wanted: User) -> Iterable[list[Target]]:
    """Yield what allows to act as a user for one action only: that action, and each part of the user."""
    is_only_named = not (wanted.groups or wanted.uid or wanted.extra)
    account = _account(wanted.name)[1]
    if wanted.name.startswith(_NODE_PREFIX):
        mode = "arbitrary-node" if is_only_named else ""
    elif account:
        mode = "serviceaccount" if is_only_named else ""
    else:
        mode = "user-info"
    if mode:
        asked = target_of(request)
        asked = asked._replace(verb=f"impersonate-on:{mode}:{asked.verb}")
        yield [asked, *(_in_mode(target, mode) for target in _targets(wanted))]


def _in_mode(target: Target, mode: str) -> Target:
    narrowed = target._replace(verb=f"impersonate:{mode}", group="authentication.k8s.io")
    if mode == "arbitrary-node":
        narrowed = narrowed._replace(plural="nodes", name=target.name.removeprefix(_NODE_PREFIX))
    return narrowed


def _wanted(request: Request) -> User | None:
    """Return the user described by the headers, as far as they go."""
    headers = request.headers
    if not any(name.startswith("impersonate-") for name in headers):
        return None
    extra = {
        unquote(name.removeprefix(_EXTRA)): tuple(request.header_values(name))
        for name in headers
        if name.startswith(_EXTRA)
    }
    groups = tuple(request.header_values(_GROUP))
    name, uid = headers.get(_USER, ""), headers.get(_UID, "")
    if not (name or groups or uid or extra):
        return None
    return User(name, groups, uid, extra)


def _targets(wanted: User) -> Iterable[Target]:
    """Yield everything that the one who asks must be allowed to impersonate."""
    namespace, account = _account(wanted.name)
    if account:
        yield _target("serviceaccounts", account, namespace=namespace)
    else:
        yield _target("users", wanted.name)
    for group in wanted.groups:
        yield _target("groups", group)
    if wanted.uid:
        yield _target("uids", wanted.uid, group="authentication.k8s.io")
    for key, values in wanted.extra.items():
        for value in values:
            yield _target("userextras", value, group="authentication.k8s.io", subresource=key)


def _target(plural: str, name: str, *, group: str = "", namespace: str = "", subresource: str = "") -> Target:
    return Target(
        "impersonate",
        "",
        group=group,
        version="v1",
        namespace=namespace,
        plural=plural,
        name=name,
        subresource=subresource,
        is_resource=True,
    )


def _groups(wanted: User) -> Iterable[str]:
    """Yield the groups of the user acted as: those asked for, and those that everybody of its kind is in."""
    groups = wanted.groups
    namespace, account = _account(wanted.name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    yield from groups
    if wanted.name == ANONYMOUS.name:
        if UNAUTHENTICATED not in groups:
            yield UNAUTHENTICATED
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        yield AUTHENTICATED


def _account(name: str) -> tuple[str, str]:
    """Return namespace and name of a service account's user name; two empty texts for any other."""
    namespace, _, account = name.removeprefix(_ACCOUNT_PREFIX).partition(":")
    if not name.startswith(_ACCOUNT_PREFIX) or not namespace or not account or ":" in account:
        return "", ""
    return namespace, account


def _go_syntax(user: User) -> str:
    """Return the user as Go prints it for debugging, which is what the API server shows."""
    extra = ", ".join(f"{quote(key)}:{_go_list(values)}" for key, values in sorted(user.extra.items()))
    shown = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return (
        f"&user.DefaultInfo{{Name:{quote(user.name)}, UID:{quote(user.uid)}, "
        f"Groups:{_go_list(user.groups)}, Extra:{shown}}}"
    )


def _go_list(values: tuple[str, ...]) -> str:
    return f"[]string{{{', '.join(map(quote, values))}}}" if values else "[]string(nil)"
