"""The conditions of webhooks: CEL over a request and its objects that says whether a webhook is to be asked."""

from functools import lru_cache
from typing import TYPE_CHECKING

from kubewire.cel import (
    BOOL,
    DYN,
    STRING,
    CompileError,
    ListType,
    MapType,
    PlainObjectType,
    compile_expression,
)

if TYPE_CHECKING:
    from kubewire.cel import Expression

_KIND = PlainObjectType("kubernetes.GroupVersionKind", {"group": STRING, "version": STRING, "kind": STRING})
_RESOURCE = PlainObjectType(
    "kubernetes.GroupVersionResource", {"group": STRING, "version": STRING, "resource": STRING}
)
_USER = PlainObjectType(
    "kubernetes.UserInfo",
    {
        "username": STRING,
        "uid": STRING,
        "groups": ListType(STRING),
        "extra": MapType(STRING, ListType(STRING)),
    },
)
_REQUEST = PlainObjectType(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)

# `namespaceObject` is known, and always null, as with Kubernetes.
VARIABLES = {"object": DYN, "oldObject": DYN, "request": _REQUEST, "namespaceObject": DYN}


@lru_cache(256)
def condition(expression: str) -> "Expression":
    """Return the compiled expression; raises CompileError when it cannot work. Only a bool is a condition."""
    return compile_expression(expression, VARIABLES)


def problem_of(expression: str) -> str:
    """Return why an expression is no condition, in the API server's words; nothing if it is one."""
    try:
        found = condition(expression).result_type
    except CompileError as bad:
        return f"compilation failed: {bad}"
    return "" if found == BOOL else f"must evaluate to bool but got {found}"
