"""Runs a scenario: fills in what earlier steps brought, sends, waits where it says so, and notes every answer."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.kubereef.conformance import paths
from tests.kubereef.conformance.scenarios import NoValue, Scenario, Step, definition, fill
from tests.kubereef.conformance.transports import USER_AGENT, Answer, Stream, Transport, header_list

PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

# How often to ask, and how long at most, where a scenario does not say.
_POLL_EVERY = 0.1
_POLL_TIMEOUT = 30.0
_WATCH_TIMEOUT = 10.0
_WATCH_QUIET = 0.3


class Result(NamedTuple):
    """One step as it went: its answer, or why there is none."""

    step: Step
    answer: Answer | None
    problem: str


class Run:
    """One scenario against one server. `patience` bounds every wait, for a server that is still being built.

    Names in a scenario are made with `identity`, so that one server can have several of them after each other. What
    a run makes is noted in `created`.
    """

    def __init__(
        self, transport: Transport, scenario: Scenario, patience: float = 60.0, identity: str = "qkzxwv"
    ) -> None:
        self._transport = transport
        self._scenario = scenario
        self._patience = patience
        self.own = {"id": identity, "ns": f"t{identity}-a", "ns2": f"t{identity}-b"}
        self.created: list[str] = []
        self.variables: dict[str, Any] = {**self.own, **scenario.variables}
        self.results: list[Result] = []

    async def __call__(self) -> list[Result]:
        """Run all steps and return how they went."""
        for name in self._scenario.definitions:
            await self._install(name)
        for variable in self._scenario.namespaces:
            await self._make_namespace(self.own[variable])
        await self._run(self._scenario.steps)
        return self.results

    async def _install(self, name: str) -> None:
        made = definition(name)
        await self._create(DEFINITIONS, made)
        group, plural = made["spec"]["group"], made["spec"]["names"]["plural"]
        for version in made["spec"]["versions"]:
            url = f"/apis/{group}/{version['name']}/{plural}?limit=1"
            await self._poll({"poll": f"GET {url}", "untilStatus": 200})

    async def _make_namespace(self, name: str) -> None:
        await self._create("/api/v1/namespaces", {"metadata": {"name": name}})
        # Pods need the account; without controllers nobody else makes it, and with them both may try.
        account = json.dumps({"metadata": {"name": "default"}}).encode()
        await self._send("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {}, account)

    async def _create(self, url: str, obj: dict[str, Any]) -> None:
        made = await self._send("POST", url, {}, json.dumps(obj).encode())
        if made.status != 201:
            raise AssertionError(f"the server refused what the scenario needs: {made.body}")
        self.created.append(f"{url}/{obj['metadata']['name']}")

    async def _run(self, steps: list[Step]) -> None:
        for step in steps:
            answer, problem = None, ""
            try:
                if "watch" in step:
                    answer = await self._watch(step)
                elif "poll" in step:
                    answer, problem = await self._poll(step)
                else:
                    answer = await self._request(step["request"], step)
                    if "pause" in step:
                        await self._transport.clock.sleep(step["pause"])
                self._save(step, answer)
            except NoValue as missing:
                problem = str(missing)
            self.results.append(Result(step, answer, problem))

    async def _request(self, line: str, step: Step) -> Answer:
        method, url = self._fill(line).split(" ", 1)
        url = self._with_query(url, step.get("query", {}))
        answer = await self._send(method, url, step, self._body(step))
        self._note(method, url, answer)
        return answer

    def _note(self, method: str, url: str, answer: Answer) -> None:
        """Remember what a request has created."""
        made = answer.body.get("metadata") if isinstance(answer.body, dict) else None
        if answer.status != 201 or "dryRun" in url or not made or not made.get("uid") or not made.get("name"):
            return
        path = url.partition("?")[0]
        self.created.append(f"{path}/{made['name']}" if method == "POST" else path)

    async def _send(self, method: str, url: str, step: Step, body: bytes | None) -> Answer:
        as_admin, headers = self._headers(method, step, has_body=body is not None)
        return await self._transport.send(method, url, headers, body, as_admin=as_admin)

    async def _poll(self, step: Step) -> tuple[Answer, str]:
        """Ask until the answer is as it should be; return the last one, and what it still lacked."""
        clock = self._transport.clock
        patience = min(step.get("timeout", _POLL_TIMEOUT), self._patience)
        deadline = clock.monotonic() + patience
        while True:
            answer = await self._request(step["poll"], step)
            lack = self._lack(step, answer)
            if not lack or clock.monotonic() > deadline:
                return answer, lack and f"waited {patience:g} s in vain: {lack}"
            await clock.sleep(step.get("every", _POLL_EVERY))

    def _lack(self, step: Step, answer: Answer) -> str:
        wanted_status = step.get("untilStatus", answer.status)
        if answer.status != wanted_status:
            return f"the status is {answer.status}, not {wanted_status}"
        for path, wanted in self._fill(step.get("until", {})).items():
            values = paths.find(answer.body, path)
            if not _is_as(wanted, values):
                return f"{path} is {values!r:.200}, not {wanted!r}"
        return ""

    async def _watch(self, step: Step) -> Answer:
        """Open a watch, run the steps inside it, and wait for the events, then a little for more than should come."""
        clock = self._transport.clock
        url = self._with_query(self._fill(step["watch"]), {"watch": "true", **step.get("query", {})})
        as_admin, headers = self._headers("GET", step, has_body=False)
        async with self._transport.watch(url, headers, as_admin=as_admin) as stream:
            await self._run(step.get("while", []))
            deadline = clock.monotonic() + min(step.get("timeout", _WATCH_TIMEOUT), self._patience)
            while len(_events(step, stream)) < step.get("count", 0) and not stream.ended:
                if clock.monotonic() > deadline:
                    break
                await clock.sleep(0.01)
            if not stream.ended:
                await clock.sleep(step.get("quiet", _WATCH_QUIET))
            body = {"events": _events(step, stream)}
        return Answer(stream.status, stream.content_type, stream.warnings, body, clock.now())

    def _save(self, step: Step, answer: Answer) -> None:
        for name, path in step.get("save", {}).items():
            if values := paths.find(answer.body, self._fill(path)):
                self.variables[name] = values[0]

    def _headers(self, method: str, step: Step, *, has_body: bool) -> tuple[bool, list[tuple[str, str]]]:
        """Return whether the administrator asks, and the headers to send."""
        headers: dict[str, Any] = {"User-Agent": USER_AGENT, "Accept": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = PATCHES[step.get("patch", "merge")]
        elif has_body:
            headers["Content-Type"] = "application/json"
        user = self._fill(step.get("as", {}))
        as_admin = user != "anonymous" and "token" not in user
        if user != "anonymous":
            headers |= dict(_identity(user))
        headers |= self._fill(step.get("headers", {}))
        return as_admin, header_list(headers)

    def _body(self, step: Step) -> bytes | None:
        """Return `text` as it is, `body` as JSON, or a copy of the object that `use` names, with changes."""
        if "text" in step:
            return str(self._fill(step["text"])).encode()
        if "use" in step:
            document = json.loads(json.dumps(self._scenario.objects[step["use"]]))
            for path, new in step.get("set", {}).items():
                paths.assign(document, path, new)
            for path in step.get("unset", []):
                paths.remove(document, path)
            return json.dumps(self._fill(document)).encode()
        return json.dumps(self._fill(step["body"])).encode() if "body" in step else None

    def _with_query(self, url: str, query: dict[str, Any]) -> str:
        if not query:
            return url
        return url + ("&" if "?" in url else "?") + urlencode(self._fill(query), doseq=True)

    def _fill(self, value: Any) -> Any:
        return fill(value, self.variables)


def _is_as(wanted: Any, values: list[Any]) -> bool:
    if isinstance(wanted, dict) and "count" in wanted:
        return bool(len(values) == wanted["count"])
    if isinstance(wanted, dict) and "exists" in wanted:
        return bool(values) is wanted["exists"]
    if isinstance(wanted, dict) and "all" in wanted:
        return bool(values) and all(value == wanted["all"] for value in values)
    return wanted in values


def _identity(user: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if "token" in user:
        yield "Authorization", f"Bearer {user['token']}"
    if "impersonate" in user:
        yield "Impersonate-User", user["impersonate"]
        yield "Impersonate-Group", user.get("groups", [])
        for key, value in user.get("extra", {}).items():
            yield f"Impersonate-Extra-{key}", value


def _events(step: Step, stream: Stream) -> list[Any]:
    """Return the events so far, without bookmarks that came at the server's pleasure unless the step keeps them."""
    if step.get("bookmarks") == "keep":
        return list(stream.events)
    return [event for event in stream.events if not _is_periodic_bookmark(event)]


def _is_periodic_bookmark(event: Any) -> bool:
    ends_initial = paths.find(event, "object.metadata.annotations['k8s.io/initial-events-end']")
    return event.get("type") == "BOOKMARK" and not ends_initial
