"""The operator under its own service account, with exactly the roles of config/, in the test world.

    async with world_of(operator=False) as world:
        account = await operate(world)

starts an operator that is nobody but its service account. What it asks for is kept, and so is what it is refused.
"""

import json
import re
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from eagleray.kube.requests import Request
from eagleray.kube.transport import AnswerLost, Stream, nothing
from eagleray.local.inprocess import transport_to
from kubereef.server.requests import AUTHENTICATED, User
from kubewire import errors
from tests.eagleray.kube.local import status
from tests.rights import right_of

REPOSITORY = Path(__file__).parents[2]
NAMESPACE = "default"
ACCOUNT = User(
    f"system:serviceaccount:{NAMESPACE}:kuberay-operator",
    ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", AUTHENTICATED),
)
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PLACES = {
    "Role": f"{_RBAC}/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{NAMESPACE}/rolebindings",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
}
_PROXIED = re.compile(
    r"/api/v1/namespaces/(?P<namespace>[^/]+)/(?P<kind>services|pods)/(?P<name>[^/:]+):(?P<port>[^/]+)/proxy(?P<rest>.*)"
)


def documents(folder):
    """Return the objects of a folder of config/."""
    files = sorted((REPOSITORY / "config" / folder).glob("*.yaml"))
    texts = [file.read_text() for file in files if file.name != "kustomization.yaml"]
    return [obj for text in texts for obj in yaml.load_all(text, yaml.CSafeLoader)]


async def install_roles(api, *components):
    """Create the roles of the operator and their bindings, as config/ has them."""
    for folder in ("rbac", *(f"components/{name}" for name in components)):
        for obj in documents(folder):
            if place := _PLACES.get(obj["kind"]):
                await api.create(place, obj)


async def operate(world, *components, old=False):
    """Start the operator of a world under its account; returns the transport that knows what it asked for."""
    await install_roles(world.api, *components)
    account = AccountTransport(world, old=old)
    world.faults.inner = account
    await world.start_operator()
    return account


class AccountTransport:
    """Speaks as the operator's account; keeps what was asked for and what was refused, and loses some answers.

    The answer to the first creation of each kind is lost, so that the operator looks whose the object is. Watches that
    begin with what there is are refused as an `old` server does. What goes through the API server's proxy is answered
    by the world's Ray, if the account may go there.
    """

    host = "simulated"

    def __init__(self, world, *, old=False):
        self._world = world
        self._inner = transport_to(world.simulated.server, ACCOUNT)
        self._old = old
        self._lost = set()
        self.used = set()
        self.refused = []

    def _note(self, request):
        right = right_of(request)
        if right is not None:
            self.used.add(right)
        return right

    def _judged(self, request, answer):
        if answer.status == 403:
            self.refused.append(f"{request.method} {request.path}: {answer.body.decode()}")
        return answer

    async def send(self, request):
        right = self._note(request)
        answer = self._judged(request, await self._inner.send(request))
        if request.verb == "create" and answer.is_success and right not in self._lost:
            self._lost.add(right)
            raise AnswerLost("cut off")
        return answer

    @asynccontextmanager
    async def stream(self, request):
        self._note(request)
        if self._old and ("sendInitialEvents", "true") in request.query:
            yield Stream(status(errors.BadRequest("sendInitialEvents is forbidden")), nothing())
        elif proxied := _PROXIED.fullmatch(request.path):
            yield Stream(self._judged(request, await self._proxied(request, proxied)), nothing())
        else:
            async with self._inner.stream(request) as (answer, chunks):
                yield Stream(self._judged(request, answer), chunks)

    async def _proxied(self, request, place):
        verb, _, what = right_of(request)
        if not await self._may(verb, what):
            return status(errors.Forbidden(f"{verb} {what}"))
        if place["kind"] == "services":
            host = f"{place['name']}.{place['namespace']}.svc.cluster.local:8265"
        else:
            pod = await self._world.get("Pod", place["name"], place["namespace"])
            host = f"{pod['status']['podIP']}:{place['port']}"
        dashboards = self._world.dashboards
        return await dashboards._answer(host, request._replace(path=place["rest"]), dict(request.headers), 1)

    async def _may(self, verb, what):
        """Ask the server whether the account may do something."""
        resource, _, part = what.partition("/")
        asked = {"verb": verb, "resource": resource, "subresource": part, "namespace": NAMESPACE}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        headers = (("content-type", "application/json"),)
        answer = await self._inner.send(Request("POST", path, (), headers, json.dumps(review).encode()))
        return json.loads(answer.body)["status"]["allowed"]

    async def close(self):
        """Nothing is held."""
