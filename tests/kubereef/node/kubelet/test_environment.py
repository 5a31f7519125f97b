"""A container's environment and command, from everywhere they can come from."""

import base64

import pytest

from kubereef.node.images import Image
from kubereef.node.kubelet.environment import (
    PodFacts,
    container_environment,
    expand,
    field_value,
    named_objects,
    resource_value,
    service_variables,
)
from kubereef.node.kubelet.making import container_command
from kubereef.node.kubelet.problems import ConfigProblem
from tests.kubereef.node.kubelet.fakes import container, pod

FACTS = PodFacts(
    "node-1", ("192.168.1.10", "fd00::1"), ("10.0.0.5", "fd00::5"), {"cpu": "8", "memory": "16Gi"}
)
POD = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "u-1",
        "labels": {"app": "web", "tier": "front"},
        "annotations": {"example.org/note": 'a "quoted" note'},
    },
    "spec": {"serviceAccountName": "clerk", "containers": [container()]},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("$(A)-$(B)", "1-2", id="names are replaced"),
        pytest.param("$(NOPE)", "$(NOPE)", id="unknown names stay"),
        pytest.param("$$(A)", "$(A)", id="two dollars are one"),
        pytest.param("$$$(A)", "$1", id="two dollars and a name"),
        pytest.param("$A ${A} $", "$A ${A} $", id="what a shell would replace stays"),
        pytest.param("$(A", "$(A", id="an open bracket"),
    ],
)
def test_names_in_brackets_are_expanded(text, expected):
    assert expand(text, {"A": "1", "B": "2"}) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "web-0"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['tier']", "front"),
        ("metadata.labels['none']", ""),
        ("metadata.labels", 'app="web"\ntier="front"'),
        ("metadata.annotations", 'example.org/note="a \\"quoted\\" note"'),
        ("spec.nodeName", "node-1"),
        ("spec.serviceAccountName", "clerk"),
        ("status.hostIP", "192.168.1.10"),
        ("status.hostIPs", "192.168.1.10,fd00::1"),
        ("status.podIP", "10.0.0.5"),
        ("status.podIPs", "10.0.0.5,fd00::5"),
    ],
)
def test_fields_of_the_pod(path, expected):
    assert field_value(POD, path, FACTS) == expected


@pytest.mark.parametrize(
    ("resources", "reference", "expected"),
    [
        pytest.param(
            {"limits": {"cpu": "1500m"}}, {"resource": "limits.cpu"}, "2", id="cores are rounded up"
        ),
        pytest.param(
            {"limits": {"cpu": "1500m"}},
            {"resource": "limits.cpu", "divisor": "1m"},
            "1500",
            id="thousandths",
        ),
        pytest.param(
            {"limits": {"memory": "1Gi"}},
            {"resource": "limits.memory", "divisor": "1Mi"},
            "1024",
            id="mebibytes",
        ),
        pytest.param({}, {"resource": "limits.cpu"}, "8", id="without a limit it is the node's"),
        pytest.param({}, {"resource": "requests.cpu"}, "0", id="without a request it is nothing"),
        pytest.param(
            {"limits": {"cpu": "1"}}, {"resource": "limits.cpu", "divisor": "0"}, "1", id="no divisor is one"
        ),
    ],
)
def test_resources_of_the_container(resources, reference, expected):
    assert resource_value(POD, reference, container(resources=resources), FACTS) == expected


OBJECTS = {
    ("ConfigMap", "config"): {"data": {"color": "blue", "a=b": "never"}},
    ("Secret", "secret"): {"data": {"password": base64.b64encode(b"hush").decode()}},
}


def environment(*env, services=None, **fields):
    return container_environment(POD, container(env=list(env), **fields), OBJECTS, FACTS, services or {})


def of(kind, name, key, **more):
    return {"name": "X", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": key, **more}}}


def test_later_variables_see_earlier_ones_and_services():
    env = environment(
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(C)$(WEB_SERVICE_HOST)"},
        {"name": "C", "value": "3"},
        services={"WEB_SERVICE_HOST": "10.96.0.1"},
    )
    assert env == {"WEB_SERVICE_HOST": "10.96.0.1", "A": "1", "B": "1$(C)10.96.0.1", "C": "3"}


def test_own_variables_win_over_whole_objects_and_both_over_services():
    sources = [{"configMapRef": {"name": "config"}}, {"prefix": "S_", "secretRef": {"name": "secret"}}]
    env = environment({"name": "color", "value": "red"}, envFrom=sources, services={"S_password": "none"})
    assert env == {"color": "red", "S_password": "hush"}


def test_values_do_not_see_what_comes_from_whole_objects():
    env = environment({"name": "A", "value": "$(color)"}, envFrom=[{"configMapRef": {"name": "config"}}])
    assert env == {"color": "blue", "A": "$(color)"}


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        pytest.param(of("configMap", "config", "color"), {"X": "blue"}, id="of a ConfigMap"),
        pytest.param(of("secret", "secret", "password"), {"X": "hush"}, id="of a Secret"),
        pytest.param(of("secret", "secret", "none", optional=True), {}, id="an optional key"),
        pytest.param(of("configMap", "none", "key", optional=True), {}, id="an optional object"),
    ],
)
def test_values_of_objects(variable, expected):
    assert environment(variable) == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            {"env": [of("secret", "none", "key")]}, 'secret "none" not found', id="a missing Secret"
        ),
        pytest.param(
            {"env": [of("configMap", "config", "none")]},
            "couldn't find key none in ConfigMap shop/config",
            id="a missing key",
        ),
        pytest.param(
            {"envFrom": [{"configMapRef": {"name": "none"}}]},
            'configmap "none" not found',
            id="a missing whole",
        ),
    ],
)
def test_what_is_missing_is_named(fields, message):
    with pytest.raises(ConfigProblem) as problem:
        container_environment(POD, container(**fields), OBJECTS, FACTS, {})
    assert str(problem.value) == message


def test_the_objects_to_fetch_are_those_that_are_named():
    fields = {"env": [of("secret", "s", "k"), {"name": "A"}], "envFrom": [{"configMapRef": {"name": "c"}}]}
    assert named_objects(container(**fields)) == {("Secret", "s"), ("ConfigMap", "c")}


def service(name, address, *ports):
    return {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": list(ports)}}


def test_services_are_told_of_in_variables():
    services = [
        service("my-web", "10.96.0.7", {"port": 80}, {"name": "admin-ui", "port": 81}),
        service("headless", "None", {"port": 80}),
    ]
    assert service_variables(services) == {
        "MY_WEB_SERVICE_HOST": "10.96.0.7",
        "MY_WEB_SERVICE_PORT": "80",
        "MY_WEB_SERVICE_PORT_ADMIN_UI": "81",
        "MY_WEB_PORT": "tcp://10.96.0.7:80",
        "MY_WEB_PORT_80_TCP": "tcp://10.96.0.7:80",
        "MY_WEB_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_PORT_80_TCP_PORT": "80",
        "MY_WEB_PORT_80_TCP_ADDR": "10.96.0.7",
        "MY_WEB_PORT_81_TCP": "tcp://10.96.0.7:81",
        "MY_WEB_PORT_81_TCP_PROTO": "tcp",
        "MY_WEB_PORT_81_TCP_PORT": "81",
        "MY_WEB_PORT_81_TCP_ADDR": "10.96.0.7",
    }


@pytest.mark.parametrize(
    ("fields", "argv"),
    [
        pytest.param({}, ("entry", "default"), id="the image's own"),
        pytest.param({"args": ["$(A)"]}, ("entry", "1"), id="arguments replace the image's"),
        pytest.param({"command": ["run"]}, ("run",), id="a command drops the image's arguments too"),
        pytest.param(
            {"command": ["run", "$(A)"], "args": ["$(B)"]}, ("run", "1", "$(B)"), id="both are expanded"
        ),
    ],
)
def test_the_command_of_a_container(fields, argv):
    image = Image("i", "sha256:0", (), entrypoint=("entry",), command=("default",))
    assert container_command(container(**fields), image, {"A": "1"}) == argv


async def test_a_missing_object_keeps_the_container_waiting_until_it_is_there(bench):
    await bench.create(pod(container(envFrom=[{"configMapRef": {"name": "late"}}])))
    waiting = (await bench.container())["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": 'configmap "late" not found'}
    assert ("Failed", 'Error: configmap "late" not found') in await bench.events()
    body = {"metadata": {"name": "late"}, "data": {"A": "1"}}
    await bench.client.create("/api/v1/namespaces/default/configmaps", body)
    await bench.pass_time(11)
    assert (await bench.status())["phase"] == "Running"
    env = bench.runtime.spec_of("app").command.env
    assert (env["A"], env["FROM_IMAGE"], env["HOSTNAME"], env["HOME"]) == ("1", "yes", "pod", "/home/app")
    assert env["KUBERNETES_SERVICE_HOST"]
