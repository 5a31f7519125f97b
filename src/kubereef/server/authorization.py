"""Whether somebody may do something, and the words of a refusal."""

from kubereef.server.rbac import DENIED, Decision, RoleBook
from kubereef.server.requests import MASTERS, User
from kubereef.server.routing import Target
from kubewire import errors
from kubewire.gotext import quote

# Whoever watches over the server needs no rights for these.
_ALWAYS_OPEN = frozenset(("/healthz", "/livez", "/readyz"))

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Authorizer:
    """Decides by group and path first, then by roles."""

    def __init__(self, roles: RoleBook) -> None:
        self.roles = roles

    def decide(self, user: User, target: Target) -> Decision:
        if MASTERS in user.groups or (not target.is_resource and target.path in _ALWAYS_OPEN):
            return ALLOWED
        return self.roles.decide(user, target)

    def require(self, user: User, target: Target) -> None:
        """Raise Forbidden unless the user may do what the target says."""
        decision = self.decide(user, target)
        if not decision.allowed:
            raise refusal(user, target, decision.reason)


ALLOWED = DENIED._replace(allowed=True)


def refusal(user: User, target: Target, reason: str = "") -> errors.Forbidden:
    """Return the answer to somebody who may not do what they ask."""
    because = _sentence(user, target).translate(_HTML)
    if reason:
        because += f": {reason}"
    return errors.forbidden(target.plural, target.name, because, group=target.group)


def _sentence(user: User, target: Target) -> str:
    who = f"User {quote(user.name)} cannot {target.verb}"
    if not target.is_resource:
        return f"{who} path {quote(target.path)}"
    resource = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
    what = f"{who} resource {quote(resource)} in API group {quote(target.group)}"
    if target.namespace:
        return f"{what} in the namespace {quote(target.namespace)}"
    return f"{what} at the cluster scope"
