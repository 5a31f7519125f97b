"""The four Ray kinds with all their versions, and how to find one."""

from eagleray.rayapi.declarations import raycluster, raycronjob, rayjob, rayservice, v1alpha1
from eagleray.rayapi.declare import Kind, Struct, Version, structs_below

KINDS = (
    Kind("RayCluster", (raycluster.V1, v1alpha1.RAY_CLUSTER)),
    Kind("RayJob", (rayjob.V1, v1alpha1.RAY_JOB)),
    Kind("RayService", (rayservice.V1, v1alpha1.RAY_SERVICE)),
    Kind("RayCronJob", (raycronjob.V1,)),
)

_VERSIONS = {(version.api_version, version.kind): version for kind in KINDS for version in kind.versions}

_STRUCTS = {
    declared.definition: declared
    for version in _VERSIONS.values()
    for declared in structs_below(version.spec, version.status)
}


def kind_for(api_version: str, kind: str) -> Version | None:
    """Return the declaration for an object's `apiVersion` and `kind`; nothing if it is not one of Ray's."""
    return _VERSIONS.get((api_version, kind))


def kind_named(name: str) -> Kind | None:
    """Return the kind that a user calls by this name: singular or plural, in any case."""
    wanted = name.lower()
    return next((kind for kind in KINDS if wanted in (kind.singular, kind.plural)), None)


def struct_for(definition: str) -> Struct | None:
    """Return the declared struct that references call by this name, or nothing if it is not one of Ray's."""
    return _STRUCTS.get(definition)
