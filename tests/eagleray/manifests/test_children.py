"""Services, rights, ways in, and the cleanup Job."""

import pytest

from eagleray.manifests.access import auth_secret, autoscaler_binding, needs_auth_secret
from eagleray.manifests.ingress import head_ingress, head_route
from eagleray.manifests.naming import checked_label, checked_name, checked_route_name
from eagleray.manifests.redis_cleanup import redis_cleanup_job
from eagleray.manifests.services import NoServePort, head_service, headless_service, serve_service
from eagleray.manifests.settings import Settings, switched
from eagleray.runtime.environment import read_environment
from tests.eagleray.manifests.clusters import cluster

PLAIN = Settings()


def ports(service):
    return {port["name"]: port["port"] for port in service["spec"]["ports"]}


@pytest.mark.case("RC-81")
def test_long_names_keep_their_end_and_begin_with_a_letter():
    long = "72fbcc7e-a661-4b18e-ca41-e903-fc3ae634b18e-lazer090scholar-director-s"
    assert checked_name(long) == "rca41-e903-fc3ae634b18e-lazer090scholar-director-s"
    assert checked_name("1a") == "ra"
    assert checked_label("-a") == "ra"
    assert checked_label("1" * 70) == "1" * 63


@pytest.mark.case("RC-82")
def test_route_names_leave_room_for_the_namespace():
    made = checked_route_name("cv-traffic-training-202402090958", "development-namespace")
    assert made == "cv-traffic-training-2024020909"
    assert checked_route_name("abc", "n" * 63) == "a"


@pytest.mark.case("RC-84")
def test_the_head_service_is_headless_unless_told_otherwise():
    spec = head_service(cluster(), PLAIN)["spec"]
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    told = head_service(
        cluster(), switched(read_environment({"ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": "TRUE"})[0])
    )["spec"]
    assert "clusterIP" not in told
    typed = head_service(cluster(head={"serviceType": "NodePort"}), PLAIN)["spec"]
    assert typed["type"] == "NodePort"
    assert "clusterIP" not in typed


def test_a_head_without_ports_has_the_usual_ones():
    usual = {"client": 10001, "dashboard": 8265, "gcs-server": 6379, "metrics": 8080, "serve": 8000}
    assert ports(head_service(cluster(), PLAIN)) == usual


@pytest.mark.case("RC-85")
def test_declared_ports_are_served_with_the_metrics_beside_them():
    declared = {"container": {"ports": [{"name": "random", "containerPort": 1234}, {"containerPort": 5}]}}
    made = ports(head_service(cluster(head=declared), PLAIN))
    assert made == {"5-port": 5, "metrics": 8080, "random": 1234}


@pytest.mark.case("RC-86")
def test_the_selector_follows_the_labels_of_the_head():
    template = {"template_metadata": {"labels": {"app.kubernetes.io/name": "testname"}}}
    selector = head_service(cluster(head=template), PLAIN)["spec"]["selector"]
    assert selector == {
        "ray.io/cluster": "c",
        "ray.io/node-type": "head",
        "ray.io/identifier": "c-head",
        "app.kubernetes.io/name": "testname",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    group = {"labels": {"ray.io/identifier": "other", "ray.io/cluster": "not-this"}}
    followed = head_service(cluster(head=group), PLAIN)["spec"]["selector"]
    assert (followed["ray.io/identifier"], followed["ray.io/cluster"]) == ("other", "c")


@pytest.mark.case("RC-87")
def test_a_users_head_service_is_completed():
    given = {
        "metadata": {
            "name": "mine",
            "namespace": "elsewhere",
            "annotations": {"a": "1", "b": "1"},
            "labels": {"l": "1"},
        },
        "spec": {"type": "LoadBalancer", "selector": {"x": "y"}, "ports": [{"name": "metrics", "port": 1}]},
    }
    service = head_service(cluster(head={"headService": given}, headServiceAnnotations={"b": "2"}), PLAIN)
    assert service["metadata"]["name"] == "mine"
    assert service["metadata"]["namespace"] == "ns"
    assert service["metadata"]["annotations"] == {"a": "1", "b": "2"}
    assert service["metadata"]["labels"]["l"] == "1"
    assert service["spec"]["type"] == "LoadBalancer"
    assert "x" not in service["spec"]["selector"]
    assert "clusterIP" not in service["spec"]
    names = [port["name"] for port in service["spec"]["ports"]]
    assert names == ["metrics", "client", "dashboard", "gcs-server", "serve"]
    assert service["spec"]["ports"][0]["port"] == 1


def test_only_workers_of_several_hosts_need_names_of_their_own():
    assert headless_service(cluster(workers=[{}])) is None
    service = headless_service(cluster(workers=[{"numOfHosts": 2}]))
    assert service is not None
    assert service["metadata"]["name"] == "c-headless"
    assert service["spec"]["clusterIP"] == "None"


def test_a_serve_service_has_the_serve_ports():
    asked = {"annotations": {"ray.io/enable-serve-service": "true"}}
    declared = [
        {"name": name, "containerPort": at} for at, name in enumerate(("serve", "serve-grpc", "server"), 1)
    ]
    service = serve_service(cluster(metadata=asked, head={"container": {"ports": declared}}))
    assert service is not None
    assert ports(service) == {"serve": 1, "serve-grpc": 2}
    with pytest.raises(NoServePort, match="no port named serve"):
        serve_service(cluster(metadata=asked, head={"container": {"ports": declared[2:]}}))
    assert serve_service(cluster()) is None


def test_an_ingress_leads_to_the_dashboard():
    annotated = {"annotations": {"kubernetes.io/ingress.class": "nginx", "a": "1"}}
    options = {"host": "ray.example", "path": "/c", "tls": [{"hosts": ["ray.example"]}]}
    ingress = head_ingress(cluster(metadata=annotated, head={"ingressOptions": options}))
    assert ingress["metadata"]["name"] == "c-head-ingress"
    assert ingress["metadata"]["annotations"] == {"a": "1"}
    assert ingress["spec"]["ingressClassName"] == "nginx"
    assert ingress["spec"]["tls"] == options["tls"]
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] == "ray.example"
    (path,) = rule["http"]["paths"]
    assert (path["path"], path["pathType"]) == ("/c", "Prefix")
    assert path["backend"]["service"] == {"name": "c-head-svc", "port": {"number": 8265}}


def test_a_route_leads_to_the_dashboard_too():
    route = head_route(cluster())
    assert route["spec"]["to"] == {"kind": "Service", "name": "c-head-svc", "weight": 100}
    assert route["spec"]["port"] == {"targetPort": "dashboard"}


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        pytest.param(None, False, id="no authentication"),
        pytest.param({}, True, id="on without a mode"),
        pytest.param({"mode": "token"}, True, id="tokens"),
        pytest.param({"mode": "disabled"}, False, id="off"),
        pytest.param({"mode": "token", "enableK8sTokenAuth": True}, False, id="Kubernetes' tokens"),
        pytest.param({"mode": "token", "secretName": "mine"}, False, id="a token of the user's"),
    ],
)
def test_a_token_is_made_only_where_nobody_brings_one(options, needed):
    built = cluster(**({} if options is None else {"authOptions": options}))
    assert needs_auth_secret(built) is needed


def test_the_tokens_secret():
    secret = auth_secret(cluster(), "token")
    assert secret["metadata"]["labels"] == {"ray.io/cluster": "c"}
    assert secret["stringData"] == {"auth_token": "token"}


def test_the_binding_names_the_users_account_unclipped():
    built = cluster(head={"pod": {"serviceAccountName": "u" * 60}})
    assert autoscaler_binding(built)["subjects"][0]["name"] == "u" * 60


def test_the_cleanup_job_is_a_head_that_cleans_up():
    built = cluster(
        gcsFaultToleranceOptions={"redisAddress": "redis:6379"},
        enableInTreeAutoscaling=True,
        metadata={"name": "n" * 53},
    )
    job = redis_cleanup_job(built, PLAIN)
    assert job["metadata"]["name"] == ("n" * 53 + "-redis-cleanup")[-63:]
    assert (job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) == (0, 300)
    pod = job["spec"]["template"]
    assert pod["metadata"]["labels"]["ray.io/node-type"] == "redis-cleanup"
    (container,) = pod["spec"]["containers"]
    assert "livenessProbe" not in container
    assert container["resources"]["limits"] == {"cpu": "200m", "memory": "256Mi"}
    assert pod["spec"]["restartPolicy"] == "Never"
    assert "cleanup_redis_storage" in container["args"][0]
    assert {"name": "RAY_redis_db_connect_retries", "value": "120"} in container["env"]
    compile(container["args"][0].partition("python -c '")[2].rstrip("'"), "script", "exec")
