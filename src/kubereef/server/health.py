"""/healthz, /livez and /readyz: whether the server is alive and whether it should be sent requests."""

from collections.abc import Callable, Mapping

from kubereef.server.requests import Request, Response, User, text_response
from kubereef.server.routing import Target

# A check returns what is wrong, or nothing.
Check = Callable[[], str]


class Health:
    """The pages about health. Only `readyz` looks at the checks that tell a healthy server from a ready one."""

    def __init__(self, live: Mapping[str, Check], ready: Mapping[str, Check]) -> None:
        live = {"ping": lambda: "", **live}
        self._pages = {"healthz": live, "livez": live, "readyz": {**live, **ready}}

    def page(self, request: Request, target: Target, _user: User) -> Response | None:
        """Answer a path below one of the pages: the page itself or a single check."""
        name, _, single = target.path.strip("/").partition("/")
        checks = self._pages.get(name)
        if checks is None:
            return None
        if request.method not in ("GET", "HEAD"):
            return text_response(405, "405: Method Not Allowed")
        if single:
            if single not in checks:
                return None
            checks = {single: checks[single]}
        excluded = set(request.query.get("exclude", ()))
        lines = []
        failed = False
        for check_name, check in checks.items():
            if check_name in excluded:
                lines.append(f"[+]{check_name} excluded: ok")
                continue
            problem = check()
            failed = failed or bool(problem)
            lines.append(f"[-]{check_name} failed: {problem}" if problem else f"[+]{check_name} ok")
        lines += [
            f'warn: some health checks cannot be excluded: no matches for "{unknown}"'
            for unknown in sorted(excluded - set(checks))
        ]
        if failed:
            return text_response(500, "\n".join([*lines, f"{name} check failed"]) + "\n")
        if "verbose" in request.query:
            return text_response(200, "\n".join([*lines, f"{name} check passed"]) + "\n")
        return text_response(200, "ok")
