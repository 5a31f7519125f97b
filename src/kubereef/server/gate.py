"""The gatekeeper of a real cluster: everybody shows who they are, and may do what their roles say."""

from kubereef.server.authentication import Authenticator
from kubereef.server.authorization import Authorizer
from kubereef.server.impersonation import effective_user
from kubereef.server.requests import Request, User
from kubereef.server.routing import Target


class Gate:
    """Authentication, impersonation and authorisation, one after the other."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self.authenticator = authenticator
        self.authorizer = authorizer

    def authenticate(self, request: Request) -> User:
        return effective_user(request, self.authenticator.user(request), self.authorizer)

    def authorize(self, user: User, target: Target) -> None:
        self.authorizer.require(user, target)
