"""Security contexts: honoured, or the Pod refused; never run as something weaker."""

import pytest

from kubereef.node.images import Image, User
from kubereef.node.kubelet.problems import ConfigProblem
from kubereef.node.kubelet.security import Accounts, container_identity, read_accounts
from kubereef.node.sandbox.privileges import DEFAULT_CAPABILITIES
from tests.kubereef.node.kubelet.fakes import container, pod

META = {"name": "pod", "namespace": "default", "uid": "u"}
IMAGE = Image("i", "sha256:0", (), user=User("app", 1000, "app", 100, "/home/app"))
ROOT_IMAGE = Image("i", "sha256:0", ())
ACCOUNTS = Accounts({5: 50}, {5: "/home/five"}, {5: "five", 1000: "app"}, {"five": (55,), "app": (66,)})


def identity(of_pod=None, own=None, image=IMAGE):
    manifest = {"metadata": META, "spec": {"securityContext": of_pod or {}}}
    held = DEFAULT_CAPABILITIES | {"NET_ADMIN"}
    return container_identity(manifest, container(securityContext=own or {}), image, ACCOUNTS, held)


@pytest.mark.parametrize(
    ("of_pod", "own", "expected"),
    [
        pytest.param({}, {}, (1000, 100, (66,), "/home/app"), id="the image's user"),
        pytest.param({"runAsUser": 5}, {}, (5, 50, (55,), "/home/five"), id="a user of the image's accounts"),
        pytest.param({"runAsUser": 9}, {}, (9, 0, (), "/"), id="a user nobody knows"),
        pytest.param(
            {"runAsUser": 9}, {"runAsUser": 0}, (0, 0, (), "/root"), id="the container's word counts"
        ),
        pytest.param({"runAsGroup": 7}, {}, (1000, 7, (66,), "/home/app"), id="a group"),
        pytest.param(
            {"supplementalGroups": [1, 2], "fsGroup": 3},
            {},
            (1000, 100, (1, 2, 3, 66), "/home/app"),
            id="further groups",
        ),
        pytest.param(
            {"supplementalGroups": [1], "supplementalGroupsPolicy": "Strict"},
            {},
            (1000, 100, (1,), "/home/app"),
            id="none but the given groups",
        ),
    ],
)
def test_who_a_container_runs_as(of_pod, own, expected):
    found = identity(of_pod, own)
    assert (found.security.uid, found.security.gid, found.security.groups, found.home) == expected


def test_what_a_container_may_do():
    assert identity().security.capabilities == DEFAULT_CAPABILITIES
    assert identity(own={"capabilities": {"drop": ["ALL"]}}).security.capabilities == frozenset()
    assert "NET_ADMIN" in identity(own={"capabilities": {"add": ["NET_ADMIN"]}}).security.capabilities
    assert identity(own={"allowPrivilegeEscalation": False}).security.no_new_privileges
    assert not identity().security.no_new_privileges
    assert identity({"seccompProfile": {"type": "RuntimeDefault"}}).security.seccomp == "RuntimeDefault"
    loose = {"seccompProfile": {"type": "Unconfined"}}
    assert identity({"seccompProfile": {"type": "RuntimeDefault"}}, loose).security.seccomp == "Unconfined"


@pytest.mark.parametrize(
    ("own", "image", "message"),
    [
        pytest.param(
            {"runAsNonRoot": True}, ROOT_IMAGE, "image will run as root", id="the image's user is root"
        ),
        pytest.param(
            {"runAsNonRoot": True, "runAsUser": 0},
            IMAGE,
            "breaks non-root policy",
            id="the given user is root",
        ),
        pytest.param(
            {"capabilities": {"add": ["SYS_TIME"]}},
            IMAGE,
            "does not hold SYS_TIME",
            id="a capability we lack",
        ),
    ],
)
def test_what_is_forbidden_is_not_started(own, image, message):
    with pytest.raises(ConfigProblem, match=message):
        identity(own=own, image=image)


def test_a_user_other_than_root_may_be_asked_for():
    assert identity({"runAsNonRoot": True}).security.uid == 1000


@pytest.mark.parametrize(
    ("spec", "reason", "place"),
    [
        ({"hostPID": True}, "SecurityContextNotSupported", "spec.hostPID"),
        ({"hostIPC": True}, "SecurityContextNotSupported", "spec.hostIPC"),
        ({"hostUsers": False}, "SecurityContextNotSupported", "spec.hostUsers"),
        (
            {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"}}},
            "SecurityContextNotSupported",
            "spec.securityContext.seccompProfile",
        ),
        (
            {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}},
            "AppArmor",
            "spec.securityContext.appArmorProfile",
        ),
        (
            {"securityContext": {"seLinuxOptions": {"level": "s0"}}},
            "SecurityContextNotSupported",
            "spec.securityContext.seLinuxOptions",
        ),
        (
            {"securityContext": {"sysctls": [{"name": "kernel.panic", "value": "1"}]}},
            "SysctlForbidden",
            "sysctl 'kernel.panic'",
        ),
        (
            {"containers": [container(securityContext={"privileged": True})]},
            "SecurityContextNotSupported",
            "spec.containers[0].securityContext.privileged",
        ),
        (
            {"initContainers": [container("i", securityContext={"privileged": True})]},
            "SecurityContextNotSupported",
            "spec.initContainers[0].securityContext.privileged",
        ),
        (
            {"containers": [container(livenessProbe={"grpc": {"port": 1}})]},
            "ProbeNotSupported",
            "spec.containers[0].livenessProbe.grpc",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_pod_that_cannot_be_honoured_fails_with_the_reason(bench, spec, reason, place):
    await bench.create(pod(**spec))
    status = await bench.status()
    assert (status["phase"], status["reason"]) == ("Failed", reason)
    assert place in status["message"]
    assert bench.runtime.started == []
    assert [told for told, _ in await bench.events()] == [reason]


async def test_a_port_of_the_node_that_is_not_opened_is_told(bench):
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]
    await bench.create(pod(container(ports=ports)))
    text = (
        "spec.containers[0].ports[0].hostPort: this node opens no port 8080 for a Pod; "
        "use a Service of type NodePort, or hostNetwork"
    )
    assert await bench.events("HostPortNotServed") == [("HostPortNotServed", text)]
    assert (await bench.status())["phase"] == "Running"


async def test_a_pod_in_the_nodes_network_has_its_ports_there(bench):
    await bench.create(pod(container(ports=[{"containerPort": 80}]), hostNetwork=True))
    assert await bench.events("HostPortNotServed") == []


async def test_an_ephemeral_container_that_cannot_be_honoured_is_not_started(bench):
    await bench.create(pod())
    extra = {"spec": {"ephemeralContainers": [container("debug", securityContext={"privileged": True})]}}
    await bench.client.patch("/api/v1/namespaces/default/pods/pod/ephemeralcontainers", extra, "strategic")
    await bench.pass_time(5)
    assert bench.runtime.order == ["app"]
    assert (await bench.container("debug"))["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert (await bench.status())["phase"] == "Running"


def test_accounts_are_read_from_the_first_layer_that_has_them(tmp_path):
    for layer, name in (("upper", "first"), ("lower", "second")):
        (tmp_path / layer / "etc").mkdir(parents=True)
        (tmp_path / layer / "etc/passwd").write_text(f"{name}:x:7:8::/home/{name}:/bin/sh\nbroken\n")
    (tmp_path / "lower/etc/group").write_text("wheel:x:10:first,other\nnone:x:11:\n")
    found = read_accounts([tmp_path / "upper", tmp_path / "lower"])
    assert (found.primary, found.homes, found.further) == (
        {7: 8},
        {7: "/home/first"},
        {"first": (10,), "other": (10,)},
    )
