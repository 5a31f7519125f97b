"""RayCluster rules 5 to 10: where the head keeps its state."""

import pytest

from tests.eagleray.rayapi.rules.builders import env, head, mounts, only, raycluster, rules

EMBEDDED = "GCSFaultToleranceEmbeddedStorage=true"
ENABLED = "ray.io/ft-enabled"
NAMESPACE = "ray.io/external-storage-namespace"


def annotated(key, value):
    return {"annotations": {key: value}}


def with_options(container=None, metadata=None, options=None, **head_spec):
    return raycluster(
        metadata=metadata,
        headGroupSpec=head(container, **head_spec),
        gcsFaultToleranceOptions={} if options is None else options,
    )


def rocksdb(container=None, pod_spec=None, **options):
    return with_options(container, options={"backend": "rocksdb", **options}, pod_spec=pod_spec)


@pytest.mark.case("RC-95")
@pytest.mark.parametrize("value", ["true", "false", "no idea"])
def test_annotation_and_options_together_are_rejected_whatever_the_value(value):
    assert rules(with_options(metadata=annotated(ENABLED, value))) == ["raycluster-5"]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(with_options(metadata=annotated(ENABLED, "")), id="an empty annotation is none"),
        pytest.param(with_options(metadata={"annotations": None}), id="null annotations"),
        pytest.param(raycluster(metadata=annotated(ENABLED, "true")), id="the annotation alone"),
        pytest.param(
            raycluster(metadata=annotated(ENABLED, "true"), gcsFaultToleranceOptions=None), id="null options"
        ),
    ],
)
def test_one_way_of_enabling_fault_tolerance_is_fine(obj):
    assert rules(obj) == []


@pytest.mark.parametrize(
    ("annotation", "refused"),
    [(None, True), ("false", True), ("yes", True), ("", True), ("true", False), ("TRUE", False)],
)
def test_a_redis_address_needs_fault_tolerance(annotation, refused):
    metadata = None if annotation is None else annotated(ENABLED, annotation)
    obj = raycluster(metadata=metadata, headGroupSpec=head(env("RAY_REDIS_ADDRESS")))
    assert rules(obj) == (["raycluster-6"] if refused else [])


def test_the_redis_address_is_found_where_it_stands():
    container = {"env": [{"name": "A"}, {"name": "RAY_REDIS_ADDRESS", "valueFrom": {}}]}
    problem = only(raycluster(headGroupSpec=head(container)))
    assert problem.path[-2:] == ("env", 1)


def test_only_the_first_container_is_rays():
    spec = head()
    spec["template"]["spec"]["containers"].append(
        {"name": "other", **env("RAY_REDIS_ADDRESS", "REDIS_USERNAME")}
    )
    assert rules(raycluster(headGroupSpec=spec)) == []


@pytest.mark.parametrize(
    ("obj", "broken"),
    [
        pytest.param(
            with_options(rayStartParams={"redis-password": "x"}), ["7a"], id="password as a parameter"
        ),
        pytest.param(with_options(rayStartParams={"redis-password": ""}), [], id="an empty password is none"),
        pytest.param(with_options(env("REDIS_PASSWORD")), ["7b"], id="password as a variable"),
        pytest.param(with_options(env(REDIS_PASSWORD="")), ["7b"], id="even an empty variable"),
        pytest.param(with_options(env("RAY_REDIS_ADDRESS")), ["7c"], id="address as a variable"),
        pytest.param(
            with_options(metadata=annotated(NAMESPACE, "x")), ["7d"], id="namespace as an annotation"
        ),
        pytest.param(with_options(metadata=annotated(NAMESPACE, "")), [], id="an empty annotation is none"),
        pytest.param(
            with_options(env("RAY_REDIS_ADDRESS", "REDIS_PASSWORD"), annotated(NAMESPACE, "x")),
            ["7b", "7c", "7d"],
            id="all of them in order",
        ),
    ],
)
def test_what_options_replace_is_not_set_beside_them(obj, broken):
    assert rules(obj) == [f"raycluster-{name}" for name in broken]


def test_without_options_the_old_settings_are_fine():
    obj = raycluster(
        metadata={"annotations": {ENABLED: "true", NAMESPACE: "x"}},
        headGroupSpec=head(
            env("RAY_REDIS_ADDRESS", "REDIS_PASSWORD"), rayStartParams={"redis-password": "x"}
        ),
    )
    assert rules(obj) == []


@pytest.mark.case("RC-99")
def test_rocksdb_needs_its_gate():
    problem = only(rocksdb())
    assert problem.rule == "raycluster-8a"
    assert problem.message.endswith(
        "requires the GCSFaultToleranceEmbeddedStorage feature gate to be enabled"
    )
    assert rules(rocksdb(), EMBEDDED) == []


@pytest.mark.parametrize("backend", ["redis", "", None])
def test_redis_needs_no_gate(backend):
    assert rules(with_options(options={"backend": backend})) == []


@pytest.mark.parametrize(
    ("option", "value", "refused"),
    [
        ("redisAddress", "redis:6379", True),
        ("redisAddress", "", False),
        ("redisAddress", None, False),
        ("redisUsername", {"value": "x"}, True),
        ("redisUsername", {}, True),
        ("redisUsername", None, False),
        ("redisPassword", {"valueFrom": {}}, True),
        ("redisPassword", None, False),
        ("externalStorageNamespace", "x", True),
        ("externalStorageNamespace", "", False),
    ],
)
def test_rocksdb_has_no_redis_options(option, value, refused):
    assert rules(rocksdb(**{option: value}), EMBEDDED) == (["raycluster-8b"] if refused else [])
    assert rules(with_options(options={option: value})) == []


@pytest.mark.parametrize(
    ("storage", "refused"),
    [
        ({"claimName": "c"}, False),
        ({"claimName": "c", "subPath": "x", "deletionPolicy": "Retain"}, False),
        ({"claimName": "c", "size": "1Gi"}, True),
        ({"claimName": "c", "storageClassName": "fast"}, True),
        ({"claimName": "c", "storageClassName": ""}, True),
        ({"claimName": "c", "accessModes": ["ReadWriteOnce"]}, True),
        ({"claimName": "c", "accessModes": []}, False),
        ({"claimName": "c", "size": None}, False),
        ({"claimName": "", "size": "1Gi"}, False),
        ({"size": "1Gi", "storageClassName": "fast"}, False),
        (None, False),
    ],
)
def test_an_existing_claim_is_not_described(storage, refused):
    assert rules(rocksdb(storage=storage), EMBEDDED) == (["raycluster-8c"] if refused else [])


@pytest.mark.parametrize(
    ("obj", "broken"),
    [
        pytest.param(rocksdb(env("RAY_gcs_storage")), ["8d"], id="the storage variable"),
        pytest.param(rocksdb(env("RAY_gcs_storage_path")), ["8d"], id="the path variable"),
        pytest.param(rocksdb(env("RAY_GCS_STORAGE")), [], id="variables have a case"),
        pytest.param(rocksdb(mounts(("x", "/data/gcs"))), ["8e"], id="a mount at the path"),
        pytest.param(rocksdb(mounts(("gcs-storage", "/x"))), ["8e"], id="a mount of the name"),
        pytest.param(rocksdb(mounts(("x", "/data"), ("y", "/data/gcs2"))), [], id="mounts beside the path"),
        pytest.param(
            rocksdb(pod_spec={"volumes": [{"name": "gcs-storage"}]}), ["8f"], id="a volume of the name"
        ),
        pytest.param(rocksdb(pod_spec={"volumes": [{"name": "gcs"}]}), [], id="another volume"),
        pytest.param(rocksdb(pod_spec={"volumes": None}), [], id="null volumes"),
    ],
)
def test_rocksdb_leaves_the_storage_to_the_operator(obj, broken):
    assert rules(obj, EMBEDDED) == [f"raycluster-{name}" for name in broken]


def test_with_redis_the_embedded_storage_names_are_free():
    container = env("RAY_gcs_storage") | mounts(("gcs-storage", "/data/gcs"))
    assert rules(with_options(container, pod_spec={"volumes": [{"name": "gcs-storage"}]})) == []


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"storage": {}}, True),
        ({"storage": {"size": "1Gi"}, "backend": "redis"}, True),
        ({"storage": {"size": "1Gi"}, "backend": ""}, True),
        ({"storage": None}, False),
        ({}, False),
    ],
)
def test_redis_has_no_storage(options, refused):
    assert rules(with_options(options=options)) == (["raycluster-9"] if refused else [])


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        (head(rayStartParams={"redis-username": "x"}), True),
        (head(rayStartParams={"redis-username": ""}), False),
        (head(env("REDIS_USERNAME")), True),
        (head(env(REDIS_USERNAME="")), True),
        (head(env("redis_username")), False),
    ],
    ids=["parameter", "empty parameter", "variable", "empty variable", "another variable"],
)
@pytest.mark.parametrize("options", [None, {}], ids=["without options", "with options"])
def test_a_redis_user_name_is_an_option_only(spec, refused, options):
    obj = raycluster(headGroupSpec=spec, gcsFaultToleranceOptions=options)
    assert rules(obj) == (["raycluster-10"] if refused else [])
