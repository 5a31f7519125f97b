"""What a RayService has made for it: clusters, Services, and the way in during incremental upgrades."""

import copy
import json
from typing import Any

import pytest
import yaml

from eagleray.manifests.cluster import Cluster
from eagleray.manifests.gateway import (
    Backend,
    is_open,
    is_routed,
    is_same_gateway,
    is_same_route,
    service_gateway,
    service_route,
    weights,
)
from eagleray.manifests.hashing import service_hash
from eagleray.manifests.rayservice import (
    RayService,
    cluster_serve_service,
    serve_port,
    service_cluster,
    service_head_service,
    service_serve_service,
)
from eagleray.manifests.services import NoServePort
from eagleray.manifests.settings import Settings
from kubewire.yamltext import load_all
from tests.eagleray.manifests.clusters import cluster, stored
from tests.eagleray.manifests.test_recorded_objects import differences

SETTINGS = Settings(version="v")
SERVE_PORTS = [
    {"name": "serve", "containerPort": 8000},
    {"name": "serve-grpc", "containerPort": 9000},
    {"name": "server", "containerPort": 1234},
    {"name": "dashboard", "containerPort": 8265},
]


def service(name="s", *, metadata=None, config=None, **spec):
    """Return a RayService; `config` are arguments of `cluster` for the cluster that it describes."""
    return RayService(
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayService",
            "metadata": {"name": name, "namespace": "ns", "uid": "su", **(metadata or {})},
            "spec": {"rayClusterConfig": cluster(**(config or {})).spec, **spec},
        }
    )


def head_with(ports, **more):
    return {"head": {"container": {"ports": ports}, **more}}


def made(owner, name="s-abcde"):
    """Return the cluster of a service as it was stored."""
    return Cluster(
        {**service_cluster(owner, name, "v"), "metadata": {"name": name, "namespace": "ns", "uid": "cu"}}
    )


# --- the cluster


def test_a_cluster_carries_what_its_service_has_and_what_it_is_compared_by():
    owner = service(
        metadata={"labels": {"team": "a"}, "annotations": {"note": "b"}},
        config={"workers": [{}, {"groupName": "b"}]},
    )
    built = service_cluster(owner, "s-abcde", "eagleray-1")
    assert built["metadata"] == {
        "name": "s-abcde",
        "namespace": "ns",
        "labels": {
            "team": "a",
            "ray.io/originated-from-cr-name": "s",
            "ray.io/originated-from-crd": "RayService",
        },
        "annotations": {
            "note": "b",
            "ray.io/hash-without-replicas-and-workers-to-delete": service_hash(owner.cluster_config),
            "ray.io/num-worker-groups": "2",
            "ray.io/kuberay-version": "eagleray-1",
        },
        "ownerReferences": [
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayService",
                "name": "s",
                "uid": "su",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert built["spec"] == owner.cluster_config


def test_a_cluster_that_grows_step_by_step_begins_with_the_fewest_workers():
    owner = service(config={"workers": [{"replicas": 3, "minReplicas": 1}]})
    built = service_cluster(owner, "s-abcde", "v", at_least_workers=True)
    assert "replicas" not in built["spec"]["workerGroupSpecs"][0]
    assert owner.cluster_config["workerGroupSpecs"][0]["replicas"] == 3, "the service itself is left alone"
    stamped = built["metadata"]["annotations"]["ray.io/hash-without-replicas-and-workers-to-delete"]
    assert stamped == service_hash(owner.cluster_config)


# --- the head Service


def test_the_head_service_leads_to_the_head_under_the_services_name():
    owner = service(config=head_with(SERVE_PORTS))
    built = service_head_service(owner, made(owner), SETTINGS)
    assert built["metadata"]["name"] == "s-head-svc"
    assert built["metadata"]["labels"] == {
        "ray.io/originated-from-cr-name": "s",
        "ray.io/originated-from-crd": "RayService",
        "ray.io/node-type": "head",
        "ray.io/identifier": "s-head",
    }
    assert built["spec"]["selector"]["ray.io/cluster"] == "s-abcde"
    assert built["spec"]["clusterIP"] == "None"
    assert [port["name"] for port in built["spec"]["ports"]] == [
        "dashboard",
        "metrics",
        "serve",
        "serve-grpc",
        "server",
    ]


def test_the_head_service_follows_a_label_that_the_head_overrides():
    owner = service(config={"head": {"template_metadata": {"labels": {"app.kubernetes.io/name": "mine"}}}})
    built = service_head_service(owner, made(owner), SETTINGS)
    assert built["spec"]["selector"]["app.kubernetes.io/name"] == "mine"


def test_the_head_service_has_annotations_of_a_users_head_service_only():
    given = {"metadata": {"annotations": {"a": "1"}}}
    owner = service(config={"head": {"headService": given}, "headServiceAnnotations": {"b": "2"}})
    assert service_head_service(owner, made(owner), SETTINGS)["metadata"]["annotations"] == {"a": "1"}


def test_the_longest_name_makes_services_of_its_full_length():
    owner = service("n" * 47)
    built = made(owner, f"{owner.name}-abcde")
    assert service_head_service(owner, built, SETTINGS)["metadata"]["name"] == f"{'n' * 47}-head-svc"
    assert service_serve_service(owner, built)["metadata"]["name"] == f"{'n' * 47}-serve-svc"
    assert cluster_serve_service(built)["metadata"]["name"] == f"{'n' * 47}-abcde-serve-svc"


# --- the serve Service


def test_the_serve_service_has_the_ports_for_serve_and_selects_who_serves():
    owner = service(config=head_with(SERVE_PORTS, serviceType="NodePort"))
    built = service_serve_service(owner, made(owner))
    assert built["spec"] == {
        "type": "NodePort",
        "selector": {"ray.io/cluster": "s-abcde", "ray.io/serve": "true"},
        "ports": [{"name": "serve", "port": 8000}, {"name": "serve-grpc", "port": 9000}],
    }
    assert built["metadata"]["labels"] == {
        "ray.io/originated-from-cr-name": "s",
        "ray.io/originated-from-crd": "RayService",
        "ray.io/serve": "s-serve",
    }
    assert built["metadata"]["ownerReferences"][0]["kind"] == "RayService"


def test_a_head_without_any_port_is_served_on_the_default_one():
    owner = service()
    assert service_serve_service(owner, made(owner))["spec"]["ports"] == [{"name": "serve", "port": 8000}]


NO_SERVE = head_with([{"name": "server", "containerPort": 1}])


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda owner: service_serve_service(owner, made(owner)), id="for the service"),
        pytest.param(lambda owner: cluster_serve_service(made(owner)), id="for a cluster"),
    ],
)
def test_without_a_port_for_serve_there_is_no_serve_service(build):
    with pytest.raises(NoServePort, match="no port named serve"):
        build(service(config=NO_SERVE))


def test_a_users_serve_service_without_ports_does_not_help_a_head_without_one():
    owner = service(config=NO_SERVE, serveService={"spec": {}})
    with pytest.raises(NoServePort):
        service_serve_service(owner, made(owner))


CUSTOM: dict[str, Any] = {
    "metadata": {
        "name": "mine",
        "namespace": "elsewhere",
        "annotations": {"a": "1"},
        "labels": {"mine": "yes", "ray.io/serve": "no"},
    },
    "spec": {
        "type": "LoadBalancer",
        "selector": {"app": "other"},
        "externalTrafficPolicy": "Local",
        "ports": [
            {"name": "serve", "port": 12345, "targetPort": 8000, "appProtocol": "http"},
            {"name": "extra", "port": 1},
        ],
    },
}


def test_a_users_serve_service_is_kept_but_for_whom_it_selects():
    owner = service(config=head_with(SERVE_PORTS), serveService=CUSTOM)
    before = copy.deepcopy(owner.obj)
    built = service_serve_service(owner, made(owner))
    metadata, spec = built["metadata"], built["spec"]
    assert (metadata["name"], metadata["namespace"], metadata["annotations"]) == ("mine", "ns", {"a": "1"})
    assert metadata["labels"]["mine"] == "yes"
    assert metadata["labels"]["ray.io/serve"] == "s-serve"
    assert (spec["type"], spec["externalTrafficPolicy"]) == ("LoadBalancer", "Local")
    assert spec["selector"] == {"ray.io/cluster": "s-abcde", "ray.io/serve": "true"}
    assert spec["ports"] == [CUSTOM["spec"]["ports"][0], {"name": "serve-grpc", "port": 9000}]
    assert owner.obj == before


def test_a_users_ports_are_kept_as_given_where_the_head_has_none_for_serve():
    owner = service(config=NO_SERVE, serveService=CUSTOM)
    assert service_serve_service(owner, made(owner))["spec"]["ports"] == CUSTOM["spec"]["ports"]


def test_a_cluster_has_a_serve_service_of_its_own_whatever_the_user_wants():
    owner = service(config=head_with(SERVE_PORTS), serveService=CUSTOM)
    built = cluster_serve_service(made(owner))
    assert built["metadata"]["name"] == "s-abcde-serve-svc"
    assert built["metadata"]["labels"]["ray.io/originated-from-cr-name"] == "s-abcde"
    assert built["metadata"]["labels"]["ray.io/serve"] == "s-abcde-serve"
    assert built["metadata"]["ownerReferences"][0] == {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "s-abcde",
        "uid": "cu",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert built["spec"]["ports"] == [{"name": "serve", "port": 8000}, {"name": "serve-grpc", "port": 9000}]


@pytest.mark.parametrize(
    ("ports", "want"),
    [
        pytest.param([{"name": "serve", "containerPort": 9000}], 9000, id="the head's port named serve"),
        pytest.param([{"name": "server", "containerPort": 9000}], 8000, id="8000 without one"),
    ],
)
def test_serve_listens_on(ports, want):
    assert serve_port(made(service(config=head_with(ports)))) == want


# --- the way in

INCREMENTAL = {
    "type": "NewClusterWithIncrementalUpgrade",
    "clusterUpgradeOptions": {"gatewayClassName": "g", "stepSizePercent": 10, "intervalSeconds": 5},
}
SHARED = (Backend("s-a", 8000, 90), Backend("s-b", 9000, 10))


def test_the_gateway_listens_for_http_in_the_users_class():
    built = service_gateway(service(upgradeStrategy=INCREMENTAL))
    assert built["metadata"]["name"] == "s-gateway"
    assert built["spec"] == {
        "gatewayClassName": "g",
        "listeners": [{"name": "http", "protocol": "HTTP", "port": 80}],
    }


def test_the_route_shares_all_requests_out():
    owner = service(upgradeStrategy=INCREMENTAL)
    built = service_route(owner, SHARED)
    assert built["metadata"]["name"] == "s-httproute"
    assert built["spec"]["parentRefs"] == [{"name": "s-gateway", "namespace": "ns"}]
    (rule,) = built["spec"]["rules"]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
    assert rule["backendRefs"] == [
        {"name": "s-a-serve-svc", "namespace": "ns", "port": 8000, "weight": 90},
        {"name": "s-b-serve-svc", "namespace": "ns", "port": 9000, "weight": 10},
    ]
    assert weights(built, "ns") == {"s-a-serve-svc": 90, "s-b-serve-svc": 10}
    assert weights(built, "elsewhere") == {}
    assert weights(None, "ns") == {}


def defaulted(route):
    """Return a route with what an API server fills in."""
    route = json.loads(json.dumps(route))
    group = "gateway.networking.k8s.io"
    route["spec"]["parentRefs"] = [
        {"group": group, "kind": "Gateway", **parent} for parent in route["spec"]["parentRefs"]
    ]
    for rule in route["spec"]["rules"]:
        rule["backendRefs"] = [{"group": "", "kind": "Service", **ref} for ref in rule["backendRefs"]]
    return route


def changed(path, value):
    def change(route):
        route = json.loads(json.dumps(route))
        *steps, last = path
        at = route["spec"]
        for step in steps:
            at = at[step]
        at[last] = value
        return route

    return change


@pytest.mark.parametrize(
    ("change", "same"),
    [
        pytest.param(defaulted, True, id="defaults of the API server are no difference"),
        pytest.param(changed(("hostnames",), ["a.example"]), False, id="a host name is"),
        pytest.param(changed(("parentRefs", 0, "name"), "other"), False, id="another Gateway is"),
        pytest.param(changed(("rules", 0, "matches"), [{"path": {"value": "/x"}}]), False, id="a match is"),
        pytest.param(changed(("rules", 0, "filters"), [{"type": "URLRewrite"}]), False, id="a filter is"),
        pytest.param(changed(("rules", 0, "backendRefs", 0, "weight"), 80), False, id="a weight is"),
        pytest.param(changed(("rules", 0, "backendRefs", 0, "port"), 1), False, id="a port is"),
        pytest.param(changed(("rules", 0, "backendRefs", 0, "name"), "x"), False, id="a backend is"),
    ],
)
def test_a_route_is_compared_by_what_we_care_for(change, same):
    wanted = service_route(service(upgradeStrategy=INCREMENTAL), SHARED)
    assert is_same_route(change(wanted), wanted) is same


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        pytest.param(("addresses",), [{"value": "10.0.0.1"}], True, id="an address is no difference"),
        pytest.param(
            ("listeners", 0, "allowedRoutes"), {"namespaces": {"from": "Same"}}, True, id="a default neither"
        ),
        pytest.param(("gatewayClassName",), "h", False, id="another class is"),
        pytest.param(("listeners", 0, "port"), 81, False, id="another port is"),
    ],
)
def test_a_gateway_is_compared_by_what_we_care_for(path, value, same):
    wanted = service_gateway(service(upgradeStrategy=INCREMENTAL))
    assert is_same_gateway(changed(path, value)(wanted), wanted) is same


def said(**states):
    return [{"type": kind, "status": status} for kind, status in states.items()]


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        pytest.param(said(Accepted="True", Programmed="True"), True, id="accepted and programmed"),
        pytest.param(said(Accepted="True", Programmed="False"), False, id="not programmed"),
        pytest.param(said(Programmed="True"), False, id="not accepted"),
        pytest.param([], False, id="nobody has looked at it"),
    ],
)
def test_a_gateway_is_open(conditions, want):
    assert is_open({"status": {"conditions": conditions}}) is want
    assert is_open(None) is False


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        pytest.param(said(Accepted="True", ResolvedRefs="True"), True, id="accepted and resolved"),
        pytest.param(said(Accepted="True", ResolvedRefs="False"), False, id="not resolved"),
        pytest.param([], False, id="nobody has looked at it"),
    ],
)
def test_a_route_is_taken_on(conditions, want):
    assert is_routed({"status": {"parents": [{"conditions": conditions}]}}) is want
    assert is_routed(None) is False


# --- against the reference's records


@pytest.fixture(scope="module")
def recordings(reference):
    """Every RayService sample with what the reference made of it when Ray answered."""
    found = []
    for file in sorted((reference / "golden" / "with-ray").glob("ray-service.*.yaml")):
        created = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)["created"]
        for document in load_all((reference / "samples" / file.name).read_text()):
            sample: Any = document.value
            if sample and sample.get("kind") == "RayService":
                sample["metadata"] |= {"namespace": "<namespace>", "uid": "<uid>"}
                found.append((file.name, RayService(stored(sample)), created))
    return found


def test_everything_is_built_as_the_reference_was_recorded_to(recordings):
    wrong, compared = {}, set()
    settings = Settings(version="nightly")
    for file, owner, created in recordings:
        (recorded,) = (obj for obj in created if obj["kind"] == "RayCluster")
        name = recorded["metadata"]["name"]
        built = service_cluster(owner, name, "nightly")
        whole = Cluster({**built, "metadata": {**built["metadata"], "uid": "<uid>"}})
        ours = [built, service_head_service(owner, whole, settings)]
        if owner.upgrade_type:
            ours += [
                cluster_serve_service(whole),
                service_gateway(owner),
                service_route(owner, [Backend(name, serve_port(whole), 100)]),
            ]
        else:
            ours.append(service_serve_service(owner, whole))
        theirs = {(obj["kind"], obj["metadata"]["name"]): obj for obj in created}
        for obj in ours:
            key = obj["kind"], obj["metadata"]["name"]
            compared.add(obj["kind"])
            if found := _differences(obj, theirs[key]):
                wrong[f"{file} {key}"] = found
    assert wrong == {}
    assert compared == {"RayCluster", "Service", "Gateway", "HTTPRoute"}
    assert len(recordings) == 5


def _differences(ours, recorded):
    ours, recorded = copy.deepcopy(ours), copy.deepcopy(recorded)
    recorded.pop("status", None)
    recorded["metadata"].pop("finalizers", None)  # the cluster's own controller adds it
    for obj in (ours, recorded):
        for owner in obj["metadata"]["ownerReferences"]:
            owner.pop("uid", None)
    if ours["kind"] in ("Gateway", "HTTPRoute"):
        # What their schemas fill in is checked by the comparison that the controller itself uses.
        same = is_same_gateway if ours["kind"] == "Gateway" else is_same_route
        found = [] if same(ours, recorded) else ["spec differs"]
        return found + differences(ours["metadata"], recorded["metadata"])
    # The reference's language writes structs out that are empty.
    return [line for line in differences(ours, recorded) if not line.endswith("only recorded, {}")]
