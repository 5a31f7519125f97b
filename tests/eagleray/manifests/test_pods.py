"""Head and worker Pods."""

import pytest

from eagleray.manifests.pods import Place, head_pod, worker_pod
from eagleray.manifests.settings import Settings, switched
from eagleray.runtime.environment import read_environment
from tests.eagleray.manifests.clusters import cluster

PLAIN = Settings(version="v")
FROM_SERVICE = {"labels": {"ray.io/originated-from-crd": "RayService"}}


def head(settings=PLAIN, **options):
    return head_pod(cluster(**options), "abcde", settings)


def worker(settings=PLAIN, group=None, place=None, **options):
    built = cluster(workers=[group or {}], **options)
    return worker_pod(built, built.workers[0], "abcde", place, settings)


def ray(pod):
    return pod["spec"]["containers"][0]


def value(container, name):
    return next((entry.get("value") for entry in container["env"] if entry["name"] == name), None)


@pytest.mark.case("RC-22")
def test_pods_live_in_the_namespace_of_their_cluster():
    pod = head(head={"template_metadata": {"namespace": "elsewhere"}})
    assert pod["metadata"]["namespace"] == "ns"


@pytest.mark.case("RC-80")
def test_names_are_cut_and_completed():
    long = {"name": "x" * 64}
    assert head(metadata=long)["metadata"]["generateName"] == "x" * 50 + "-head-"
    assert head(metadata=long)["metadata"]["name"] == "x" * 50 + "-head-abcde"
    fixed = head(Settings(deterministic_head_name=True), metadata=long)["metadata"]
    assert fixed["name"] == "x" * 50 + "-head"
    assert "generateName" not in fixed
    assert worker(metadata={"name": "C"})["metadata"]["name"] == "c-small-worker-abcde"


def test_a_template_may_name_the_head_but_not_a_worker():
    named = {"template_metadata": {"name": "mine"}}
    assert head(head=named)["metadata"]["name"] == "mine"
    assert worker(group=named)["metadata"]["name"] == "c-small-worker-abcde"


@pytest.mark.case("RC-79")
def test_the_users_labels_win_over_defaults_but_not_over_what_tells_whose_a_pod_is():
    settings = Settings(pod_labels={"team": "ours", "more": "1"}, pod_annotations={"note": "n"})
    pod = head(settings, head={"template_metadata": {"labels": {"team": "theirs", "ray.io/group": "other"}}})
    labels = pod["metadata"]["labels"]
    assert (labels["team"], labels["more"], labels["ray.io/group"]) == ("theirs", "1", "headgroup")
    assert pod["metadata"]["annotations"]["note"] == "n"


def test_an_indexed_worker_carries_its_place():
    labels = worker(group={"numOfHosts": 2}, place=Place(1, "small-xyzab", 1))["metadata"]["labels"]
    assert labels["ray.io/worker-group-replica-index"] == "1"
    assert labels["ray.io/worker-group-replica-name"] == "small-xyzab"
    assert labels["ray.io/replica-host-index"] == "1"
    single = worker(place=Place(3))["metadata"]["labels"]
    assert single["ray.io/worker-group-replica-index"] == "3"
    assert "ray.io/worker-group-replica-name" not in single


@pytest.mark.case("RC-69")
def test_an_overwritten_command_stays_and_the_start_command_is_told():
    pod = head(
        metadata={"annotations": {"ray.io/overwrite-container-cmd": "TRUE"}},
        head={"container": {"command": ["sleep"], "args": ["1"]}},
    )
    assert (ray(pod)["command"], ray(pod)["args"]) == (["sleep"], ["1"])
    assert value(ray(pod), "KUBERAY_GEN_RAY_START_CMD").startswith("ray start --head ")
    assert pod["metadata"]["annotations"]["ray.io/overwrite-container-cmd"] == "true"


def test_what_the_user_runs_comes_first():
    args = ray(head(head={"container": {"command": ["echo"], "args": ["hi"]}}))["args"]
    assert args[0].startswith(
        " echo  hi  && ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; ray start --head "
    )


def test_a_user_who_starts_ray_is_left_alone():
    container = ray(head(head={"container": {"args": ["ray start --head"]}}))
    assert container["args"] == ["ray start --head"]
    assert "command" not in container


@pytest.mark.case("RC-70")
def test_a_login_shell_is_used_everywhere():
    settings = switched(read_environment({"ENABLE_LOGIN_SHELL": "True"})[0])
    scaled = head(settings, enableInTreeAutoscaling=True)
    made = worker(settings)
    shells = [c["command"] for c in (*scaled["spec"]["containers"], *made["spec"]["containers"])]
    shells.append(made["spec"]["initContainers"][0]["command"])
    assert shells == [["/bin/bash", "-cl", "--"]] * 4


@pytest.mark.case("RC-71")
def test_shared_memory_is_sized_by_the_memory_and_left_out_for_another_plasma_directory():
    sized = head(head={"container": {"resources": {"requests": {"memory": "1Gi"}}}})["spec"]["volumes"]
    assert sized == [{"name": "shared-mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]
    assert "volumes" not in head(head={"rayStartParams": {"plasma-directory": ""}})["spec"]


def test_a_path_that_is_mounted_already_is_left_alone():
    mount = {"name": "mine", "mountPath": "/dev/shm"}
    pod = head(head={"container": {"volumeMounts": [mount]}})
    assert ray(pod)["volumeMounts"] == [mount]


@pytest.mark.case("RC-72")
def test_addresses_follow_the_port():
    assert value(ray(head()), "RAY_ADDRESS") == "127.0.0.1:6379"
    assert value(ray(worker()), "RAY_ADDRESS") == "c-head-svc.ns.svc.cluster.local:6379"
    other = {"rayStartParams": {"port": "9999"}}
    assert value(ray(head(head=other)), "RAY_ADDRESS") == "127.0.0.1:9999"
    assert value(ray(worker(head=other)), "RAY_ADDRESS") == "c-head-svc.ns.svc.cluster.local:9999"


@pytest.mark.case("RC-73")
@pytest.mark.parametrize(
    ("options", "told", "restart"),
    [
        pytest.param({}, None, None, id="no version says nothing to Ray"),
        pytest.param({"version": "v1"}, "false", None, id="version 1"),
        pytest.param({"version": "v2"}, "true", "Never", id="version 2 never restarts"),
    ],
)
def test_the_autoscaler_runs_beside_the_head(options, told, restart):
    pod = head(enableInTreeAutoscaling=True, autoscalerOptions=options)
    assert [container["name"] for container in pod["spec"]["containers"]] == ["ray", "autoscaler"]
    assert value(ray(pod), "RAY_enable_autoscaler_v2") == told
    assert pod["spec"].get("restartPolicy") == restart


@pytest.mark.case("RC-74")
def test_the_service_account_of_an_autoscaling_head():
    assert head(enableInTreeAutoscaling=True)["spec"]["serviceAccountName"] == "c"
    long = head(metadata={"name": "a" * 150 + "b" * 50}, enableInTreeAutoscaling=True)
    assert long["spec"]["serviceAccountName"] == "b" * 50
    own = head(head={"pod": {"serviceAccountName": "u" * 60}}, enableInTreeAutoscaling=True)
    assert own["spec"]["serviceAccountName"] == "u" * 60


@pytest.mark.case("RC-75")
def test_pods_of_a_service_tell_whether_they_serve():
    assert head(metadata=FROM_SERVICE)["metadata"]["labels"]["ray.io/serve"] == "false"
    pod = worker(metadata=FROM_SERVICE, rayVersion="2.53.0")
    assert pod["metadata"]["labels"]["ray.io/serve"] == "true"
    probe = ray(pod)["readinessProbe"]
    assert probe["failureThreshold"] == 1
    assert probe["exec"]["command"][2].endswith(
        "wget --tries 1 -T 10 -q -O- http://localhost:8000/-/healthz | grep success"
    )


@pytest.mark.case("RC-76")
def test_probes_ask_the_newest_endpoint_that_ray_has():
    assert ray(head(rayVersion="2.53.0"))["livenessProbe"]["httpGet"] == {
        "path": "/api/healthz",
        "port": 52365,
    }
    for version in ("2.52.0", ""):
        assert "gcs_healthz" in ray(head(rayVersion=version))["livenessProbe"]["exec"]["command"][2]
    own = {"httpGet": {"port": 1}}
    assert ray(head(head={"container": {"livenessProbe": own}}))["livenessProbe"] == own
    odd = head(head={"rayStartParams": {"dashboard-port": "http"}})
    assert "localhost:8265/api/gcs_healthz" in ray(odd)["livenessProbe"]["exec"]["command"][2]
    assert "livenessProbe" not in ray(
        head(switched(read_environment({"ENABLE_PROBES_INJECTION": "False"})[0]))
    )


def test_readiness_can_be_asked_for_from_the_start_on():
    often = switched(read_environment({"EAGLERAY_READINESS_PERIOD_SECONDS": "2"})[0])
    usual, sooner = ray(head()), ray(head(often))
    times = {"initialDelaySeconds": 2, "periodSeconds": 2, "failureThreshold": 23}
    assert sooner["readinessProbe"] == {**usual["readinessProbe"], **times}, (
        "it is given up after 45 s, as before"
    )
    assert sooner["livenessProbe"] == usual["livenessProbe"]
    own = {"httpGet": {"port": 1}}
    assert ray(head(often, head={"container": {"readinessProbe": own}}))["readinessProbe"] == own


@pytest.mark.case("RC-77")
def test_workers_of_a_fault_tolerant_cluster_wait_longer_for_the_head():
    tolerant = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}
    name = "RAY_gcs_rpc_server_reconnect_timeout_s"
    assert value(ray(worker(**tolerant)), name) == "600"
    assert value(ray(head(**tolerant)), name) is None
    assert value(ray(worker()), name) is None


def test_a_fault_tolerant_head_knows_its_storage():
    options = {"redisAddress": "redis:6379", "redisPassword": {"value": "secret"}}
    pod = head(gcsFaultToleranceOptions=options)
    assert value(ray(pod), "RAY_external_storage_namespace") == "u-1"
    assert value(ray(pod), "RAY_REDIS_ADDRESS") == "redis:6379"
    assert value(ray(pod), "REDIS_PASSWORD") == "secret"
    assert " --redis-password=$REDIS_PASSWORD " in ray(pod)["args"][0]
    assert pod["metadata"]["annotations"]["ray.io/external-storage-namespace"] == "u-1"


@pytest.mark.case("RC-78")
def test_kubernetes_tokens_are_mounted_where_they_are_asked_for():
    pod = worker(authOptions={"mode": "token", "enableK8sTokenAuth": True})
    mount = {"name": "ray-token", "mountPath": "/var/run/secrets/ray.io/serviceaccount", "readOnly": True}
    for container in (ray(pod), pod["spec"]["initContainers"][0]):
        assert value(container, "RAY_ENABLE_K8S_TOKEN_AUTH") == "true"
        assert mount in container["volumeMounts"]
        assert value(container, "RAY_AUTH_TOKEN") is None
    assert "ray-token" in [volume["name"] for volume in pod["spec"]["volumes"]]


def test_an_own_token_comes_from_the_clusters_secret_or_the_users():
    def reference(options):
        env = ray(head(authOptions={"mode": "token", **options}))["env"]
        return next(entry["valueFrom"]["secretKeyRef"] for entry in env if entry["name"] == "RAY_AUTH_TOKEN")

    assert reference({}) == {"name": "c", "key": "auth_token"}
    assert reference({"secretName": "mine"}) == {"name": "mine", "key": "auth_token"}


def test_the_wait_for_the_head_can_be_left_out():
    assert worker()["spec"]["initContainers"][-1]["name"] == "wait-gcs-ready"
    assert (
        "initContainers"
        not in worker(switched(read_environment({"ENABLE_INIT_CONTAINER_INJECTION": "false"})[0]))["spec"]
    )


def test_configured_sidecars_and_variables_are_added_behind_the_users():
    settings = Settings(
        head_sidecars=({"name": "logs"},),
        container_env=({"name": "A", "value": "ours"}, {"name": "B", "value": "b"}),
    )
    pod = head(settings, head={"container": {"env": [{"name": "A", "value": "theirs"}]}})
    assert [container["name"] for container in pod["spec"]["containers"]] == ["ray", "logs"]
    assert (value(ray(pod), "A"), value(ray(pod), "B")) == ("theirs", "b")


def test_building_changes_nothing_of_the_cluster():
    built = cluster(workers=[{}], enableInTreeAutoscaling=True)
    before = repr(built.obj)
    head_pod(built, "a", PLAIN)
    worker_pod(built, built.workers[0], "a", None, PLAIN)
    assert repr(built.obj) == before
