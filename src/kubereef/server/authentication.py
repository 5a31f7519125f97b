"""Who asks: by client certificate, by token, or nobody in particular."""

from kubereef.server.accounts import API_AUDIENCES, AccountTokens, Verified
from kubereef.server.requests import ANONYMOUS, Request, User
from kubereef.server.tokens import BadToken, StaticTokens
from kubewire import errors


class Authenticator:
    """Finds the user of a request. A token that is none is refused; without any the caller is anonymous."""

    def __init__(self, static: StaticTokens, accounts: AccountTokens) -> None:
        self._static = static
        self._accounts = accounts

    def user(self, request: Request) -> User:
        """Return who asks; what the transport knows, such as a client certificate, comes first."""
        if request.user is not None:
            return request.user
        token = bearer_token(request.headers.get("authorization", ""))
        if not token:
            return ANONYMOUS
        try:
            return self.verify(token).user
        except BadToken:
            raise errors.unauthorized() from None

    def verify(self, token: str, audiences: tuple[str, ...] = API_AUDIENCES) -> Verified:
        """Return whom a token stands for, or raise BadToken."""
        user = None if self._accounts.knows(token) else self._static.user(token)
        if user is None:
            return self._accounts.verify(token, audiences)
        common = tuple(audience for audience in audiences if audience in API_AUDIENCES)
        if not common:
            raise BadToken("the token is for another audience")
        return Verified(user, common)


def bearer_token(header: str) -> str:
    """Return the token of an Authorization header, or nothing if it carries none."""
    scheme, _, rest = header.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""
