"""Questions that make no sense: parameters, headers, methods, paths, and who says that they ask."""

import base64
from random import Random
from urllib.parse import quote

from tests.kubereef.hostile.aims import JSON, Aim, Attack
from tests.kubereef.hostile.values import NUMBERS, STRINGS, anything, as_json

_FORGED = (
    "e30", "bnVsbA", "W10", "MQ", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9",
    "eyJydiI6OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5LCJzdGFydCI6ImEvYiJ9", "eyJydiI6MS41LCJzdGFydCI6W119",
    "eyJydiI6bnVsbCwic3RhcnQiOiIifQ", "eyJydiI6MCwic3RhcnQiOiIvLy8ifQ", "eyJydiI6dHJ1ZSwic3RhcnQiOiIifQ",
    "eyJydiI6MWU0MDAsInN0YXJ0IjoiIn0", "____", "====", "a", "é", "A" * 5000,
    base64.urlsafe_b64encode(b"[" * 20_000).decode(),
)  # fmt: skip
_SELECTORS = (
    "a", "!a", "a=b", "a==b", "a!=b", "a in (b,c)", "a in ()", "a notin", "a in (", "a=b,", ",", "==",
    "a=b=c", "a>1",
    "a<9999999999999999999999", "a>x", "(", ")", "!", "!!", "metadata.name=", "metadata.name!=a",
    "metadata.name",
    "status.phase=Running", "spec.nodeName=a,spec.nodeName=b", "unknown=1", "a\\,b=c", "metadata.name=\\",
    "a" * 3000,
    "x" * 300 + "=1", "a in (" + ",".join(map(str, range(2000))) + ")", ",".join("a!=b" for _ in range(500)),
)  # fmt: skip
_FLAGS = ("", "true", "false", "1", "0", "2", "TRUE", "t", "yes", "null")
_ACCEPTED = (
    "", "*/*", "application/*", "text/html", "application/cbor", "application/vnd.kubernetes.protobuf", "a",
    ",", ";;;",
    "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v9",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;v=v1",
    "application/json;as=Nothing", "application/json;=;=;as", "application/yaml",
    "application/json;q=nan, */*;q=-1",
    "application/yaml;as=Table", "application/json;stream=watch",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=x",
    ",".join(["text/x"] * 2000), "application/json;" + "a=b;" * 3000,
)  # fmt: skip
_MEDIA = (
    "", "application/json", "APPLICATION/JSON", "application/json;charset=utf-7",
    "application/json; charset=", "text/plain",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=", "a/b", "/", ";",
    "application/yaml", "*/*",
    "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;stream=watch", "x" * 5000,
)  # fmt: skip
_METHODS = (
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "LIST",
    "WATCH",
    "A" * 100,
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
)
_PATHS = (
    "/", "//", "/api", "/api/", "/api//v1", "/api/v1/", "/api/v2", "/api/v1/pods/",
    "/api/v1/namespaces//pods", "/apis", "/apis/",
    "/apis/x", "/apis/apps", "/apis/apps/v1", "/apis/apps/v9/deployments", "/apis/apps/v1/nothings",
    "/apis/apps/v1/deployments/a",
    "/api/v1/namespaces/default/pods/a/b/c/d", "/api/v1/namespaces/default/pods/a/exec",
    "/api/v1/pods/a/status",
    "/api/v1/watch/pods", "/api/v1/watch/namespaces/default/pods/a", "/api/v1/proxy/nodes/a",
    "/api/v1/namespaces/%2e%2e/pods",
    "/api/v1/namespaces/default/pods/%00", "/api/v1/namespaces/default/pods/%ff",
    "/api/v1/namespaces/default/pods/%", "/..",
    "/api/v1/namespaces/default/pods/%2f", "/api/v1/namespaces/a%20b/configmaps",
    "/api/v1/namespaces/%F0%9F%92%A9/configmaps",
    "/version", "/version/", "/openapi/v2", "/openapi/v3/", "/openapi/v3/apis/x",
    "/openapi/v3/api/v1?hash=0", "/metrics", "/logs",
    "/healthz/x", "/livez?verbose", "/readyz?exclude=a&exclude=b", "/debug/pprof",
    "/.well-known/openid-configuration", "/openid/v1/jwks",
    "/api/v1/componentstatuses", "/api/v1/namespaces/default/services/http:a:b/proxy/x",
    "/api/v1/nodes/a:b:c/proxy/",
    "/api/v1/namespaces/default/services/https:/proxy", "/api/v1/namespaces/default/pods/:80/proxy/..%2f..",
    "/a" * 3000,
    "/api/v1/namespaces/default/pods/" + "a" * 5000, "/api/v1/namespaces/default/pods?",
    "/api/v1/namespaces/default/pods?&=&&a",
    "/api/v1/namespaces/default/configmaps?" + "&".join(f"a{n}=1" for n in range(1100)),
    "/api/v1/pods?" + "%zz&%=%",
    "https://example.com/api/v1/pods", "/api/v1/namespaces/default/pods#fragment", "/api/v1;a=b/pods", "*",
)  # fmt: skip


def parameters(aim: Aim) -> Attack:
    """Ask for a list, a watch or an object with parameters that do not go together."""
    random = aim.random
    operation = random.choice([*aim.surface.lists, *aim.surface.lists, *aim.surface.operations])
    names = [*aim.surface.parameters, "pretty", "orphanDependents", "unknown", "includeObject"]
    chosen = random.sample(names, random.randrange(1, 5))
    pairs = [f"{name}={quote(parameter(name, random), safe='')}" for name in chosen]
    if random.random() < 0.1:
        pairs += pairs[:1]
    target = f"{aim.path(operation)}?{'&'.join(pairs)}"
    body = b"" if operation.method == "GET" else as_json({}) if random.random() < 0.5 else b""
    headers = (("Content-Type", JSON),) if body else ()
    return _sparing(aim, Attack("parameters", operation.method, target, headers, body))


def parameter(name: str, random: Random) -> str:
    """Return a value for a query parameter, often one of those that it is fond of."""
    fond = {
        "continue": _FORGED,
        "fieldSelector": _SELECTORS,
        "labelSelector": _SELECTORS,
        "dryRun": ("All", "all", "", "None", "All,All"),
        "fieldValidation": ("Strict", "Ignore", "strict", "x"),
        "propagationPolicy": ("Foreground", "Background", "Orphan", "orphan", "x", ""),
        "resourceVersionMatch": ("Exact", "NotOlderThan", "exact", "x", ""),
        "includeObject": ("None", "Metadata", "Object", "x", "none"),
        "resourceVersion": (
            "0",
            "1",
            "-1",
            "00",
            "99999999999",
            "18446744073709551616",
            "abc",
            "²",
            "1.5",
            " 1",
            "9" * 5000,
        ),
        "timeoutSeconds": ("0", "1", "-1", "9" * 18, "9" * 30, "1.5", "x", "-999999999999999999"),
    }
    flags = ("watch", "allowWatchBookmarks", "sendInitialEvents", "pretty", "orphanDependents", "force")
    if random.random() < 0.15:
        return _safe(random.choice(STRINGS))
    if name in fond:
        return random.choice(fond[name])
    if name in flags:
        return random.choice(_FLAGS)
    return str(random.choice((*NUMBERS, "", "x", "1", "2")))


def headers(aim: Aim) -> Attack:
    """Ask for forms that are not to be had, or send one that is not what the header says."""
    random = aim.random
    operation = random.choice(aim.surface.operations)
    sent = [("Accept", random.choice(_ACCEPTED))]
    body = b""
    if operation.method in ("POST", "PUT", "DELETE"):
        sent.append(("Content-Type", random.choice(_MEDIA)))
        definite = operation if operation.definition else None
        body = as_json(aim.named(operation, aim.surface.example(operation)) if definite else {})
    if random.random() < 0.2:
        sent.append(
            (
                random.choice(("X-Odd", "If-None-Match", "Accept-Encoding", "User-Agent", "Range", "Cookie")),
                "\xff" * 20,
            )
        )
    return _sparing(aim, Attack("headers", operation.method, aim.path(operation), tuple(sent), body))


def methods_and_paths(aim: Aim) -> Attack:
    random = aim.random
    if random.random() < 0.6:
        path = random.choice(_PATHS)
        method = random.choice(("GET", "GET", "POST", *_METHODS))
        if method == "DELETE":
            method = "GET"  # these paths are not the attacker's own
    else:
        operation = random.choice([one for one in aim.surface.operations if "proxy" not in one.path])
        method = random.choice(_METHODS)
        path = aim.path(operation)
    body = random.choice((b"", b"{}", b"[]"))
    return _sparing(aim, Attack("methods and paths", method, path, (("Content-Type", JSON),), body))


def strange_callers(aim: Aim) -> Attack:
    """Ask in the name of nobody, or of somebody with a strange name."""
    random = aim.random
    operation = random.choice(aim.surface.lists)
    name = quote(_safe(random.choice(STRINGS)), safe=" :/*.%").strip()[:4000]
    who: tuple[tuple[str, str], ...] = random.choice(
        (
            (("Authorization", f"Bearer {name}"),),
            (("Authorization", name),),
            (("Authorization", "Basic " + name),),
            (("Authorization", "Bearer " + "a.b.c"),),
            (("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30."),),
            (("Authorization", "Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6MX0.bnVsbA.AAAA"),),
            (("Impersonate-User", name),),
            (("Impersonate-Group", name),),
            (
                ("Impersonate-User", name),
                ("Impersonate-Group", "system:masters"),
                ("Impersonate-Group", name),
            ),
            (("Impersonate-User", "a"), ("Impersonate-Uid", name)),
            (
                ("Impersonate-User", "a"),
                (f"Impersonate-Extra-{'%zz' if random.random() < 0.5 else 'a%00'}", name),
            ),
            (("Impersonate-User", "system:serviceaccount::"),),
            (("Impersonate-User", f"system:serviceaccount:{name}"),),
        )
    )
    return Attack("strange callers", "GET", aim.path(operation), who)


def deletions(aim: Aim) -> Attack:
    """Delete with options that contradict each other or are none."""
    random = aim.random
    operation = random.choice(aim.surface.deletions)
    options = {
        "kind": random.choice(("DeleteOptions", "DeleteOptions", "Pod", anything(random))),
        "apiVersion": random.choice(("v1", "v1", "policy/v1", anything(random))),
        "gracePeriodSeconds": random.choice((0, 1, -1, anything(random))),
        "propagationPolicy": random.choice(("Orphan", "Foreground", anything(random))),
        "orphanDependents": anything(random),
        "preconditions": random.choice(
            ({"uid": anything(random)}, {"resourceVersion": anything(random)}, anything(random))
        ),
        "dryRun": random.choice((["All"], anything(random))),
    }
    chosen = {name: options[name] for name in random.sample(list(options), random.randrange(0, 4))}
    path = aim.path(operation)
    if operation.kind == "Namespace":
        path = f"/api/v1/namespaces/{aim.name()}"
    return Attack(
        "deletions", "DELETE", path, (("Content-Type", JSON),), as_json(chosen, random) if chosen else b""
    )


def _sparing(aim: Aim, attack: Attack) -> Attack:
    """Make a deletion a dry run where it is about the attacker's own namespace, or about what all of them share."""
    if attack.method != "DELETE" or f"/{aim.namespace}/" in attack.path:
        return attack
    # Without a body, since the parameters do not count beside one.
    separator = "&" if "?" in attack.target else "?"
    return attack._replace(target=f"{attack.target}{separator}dryRun=All", body=b"")


def _safe(text: str) -> str:
    """Return a text that UTF-8 can have; the halves of characters are for bodies."""
    return text.encode(errors="replace").decode()
