"""The official Python client against Kubereef over HTTPS, and its informers over a restart."""

import gc
import json
import threading
import time
import warnings
from typing import Any

import pytest

from tests.reef.process import Kubereef

with warnings.catch_warnings():
    # The client's own modules use things that Python has marked for removal.
    warnings.simplefilter("ignore")
    from kubernetes import client, config, dynamic, watch
    from kubernetes.informer import SharedInformer

PATIENCE = 20.0

DEFINITION: Any = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.sea.example"},
    "spec": {
        "group": "sea.example",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


@pytest.fixture(autouse=True)
def forget_sockets():
    """Have the sockets that the client leaves open collected here, before another test is blamed for them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def closed(api):
    """Close a client and its connections, which it keeps open by itself."""
    api.rest_client.pool_manager.clear()
    api.close()


@pytest.fixture(scope="module")
def api(reef):
    api = config.new_client_from_config(str(reef.kubeconfig))
    yield api
    closed(api)


@pytest.fixture
def core(api):
    return client.CoreV1Api(api)


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def eventually(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE:g} s"
        time.sleep(0.05)


def test_objects_are_created_read_changed_and_deleted(core):
    made = core.create_namespaced_config_map("default", config_map("a", k="v"))
    assert made.metadata.uid
    core.patch_namespaced_config_map("a", "default", {"data": {"k": "w"}})
    made.data = {"k": "too late"}
    with pytest.raises(client.ApiException) as refused:
        core.replace_namespaced_config_map("a", "default", made)
    assert refused.value.status == 409
    assert core.read_namespaced_config_map("a", "default").data == {"k": "w"}
    core.delete_namespaced_config_map("a", "default")
    with pytest.raises(client.ApiException) as gone:
        core.read_namespaced_config_map("a", "default")
    assert gone.value.status == 404


def test_a_list_comes_in_pages_and_by_selector(core):
    for number in range(5):
        body = config_map(f"page-{number}")
        body.metadata.labels = {"book": "one"}
        core.create_namespaced_config_map("default", body)
    first = core.list_namespaced_config_map("default", label_selector="book=one", limit=3)
    assert first.metadata.remaining_item_count is None  # with a selector nobody counts the rest
    rest = core.list_namespaced_config_map(
        "default", label_selector="book=one", limit=3, _continue=first.metadata._continue
    )
    assert [item.metadata.name for item in [*first.items, *rest.items]] == [f"page-{n}" for n in range(5)]


def test_a_pod_is_read_back_as_the_type_it_is(core):
    container = client.V1Container(
        name="c", image="img:1", resources=client.V1ResourceRequirements(requests={"cpu": "500m"})
    )
    pod = client.V1Pod(
        metadata=client.V1ObjectMeta(generate_name="p-"), spec=client.V1PodSpec(containers=[container])
    )
    made = core.create_namespaced_pod("default", pod)
    assert made.metadata.name.startswith("p-")
    assert made.spec.containers[0].resources.requests == {"cpu": "500m"}
    assert made.spec.restart_policy == "Always"
    assert made.status.phase == "Pending"


def test_a_refusal_names_its_causes(core):
    pod = client.V1Pod(metadata=client.V1ObjectMeta(name="P"), spec=client.V1PodSpec(containers=[]))
    with pytest.raises(client.ApiException) as refused:
        core.create_namespaced_pod("default", pod)
    assert refused.value.status == 422
    causes = json.loads(refused.value.body or "")["details"]["causes"]
    assert {cause["field"] for cause in causes} == {"metadata.name", "spec.containers"}


def test_a_watch_sees_what_happens_after_a_list(core):
    version = core.list_namespaced_secret("default").metadata.resource_version
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"})
    core.create_namespaced_secret("default", secret)
    core.delete_namespaced_secret("s", "default")
    watcher = watch.Watch()
    seen = []
    for event in watcher.stream(
        core.list_namespaced_secret, "default", resource_version=version, timeout_seconds=int(PATIENCE)
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            watcher.stop()
    assert seen == [("ADDED", "s"), ("DELETED", "s")]


def test_the_dynamic_client_finds_custom_resources(api):
    definitions = client.ApiextensionsV1Api(api)
    definitions.create_custom_resource_definition(DEFINITION)

    def is_established():
        found = definitions.read_custom_resource_definition("boats.sea.example")
        conditions = found.status.conditions if found.status else []
        return any(c.type == "Established" and c.status == "True" for c in conditions or [])

    eventually(is_established, "the definition's becoming established")
    boats = dynamic.DynamicClient(api).resources.get(api_version="sea.example/v1", kind="Boat")
    boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "b"}, "spec": {"crew": 3}}
    assert boats.create(body=boat, namespace="default").spec.crew == 3
    assert [item.metadata.name for item in boats.get(namespace="default").items] == ["b"]
    definitions.delete_custom_resource_definition("boats.sea.example")


def test_an_informer_survives_a_restart_of_the_server(tmp_path):
    with Kubereef(tmp_path, "--no-controllers") as first:
        api = config.new_client_from_config(str(first.kubeconfig))
        core = client.CoreV1Api(api)
        core.create_namespaced_config_map("default", config_map("before"))
        informer = SharedInformer(core.list_namespaced_config_map, namespace="default")
        deleted = threading.Event()
        informer.add_event_handler("DELETED", lambda _: deleted.set())
        informer.start()
        eventually(lambda: informer.cache.get_by_key("default/before"), "the first list")
        port = first.port
        first.kill()
    try:
        with Kubereef(tmp_path, "--no-controllers", port=port):
            core.create_namespaced_config_map("default", config_map("after"))
            eventually(
                lambda: informer.cache.get_by_key("default/after"), "news of what came after the restart"
            )
            core.delete_namespaced_config_map("before", "default")
            assert deleted.wait(PATIENCE)
            assert [m.metadata.name for m in informer.cache.list()] == ["after"]
            informer.stop()
    finally:
        closed(api)
