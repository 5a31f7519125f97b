"""A RayCluster as its rules read it."""

from eagleray.rayapi.problems import quoted
from eagleray.rayapi.rules.reading import Object, is_true, mapping, mappings, named, text
from eagleray.rayapi.rules.rulebook import Rulebook, Scope
from eagleray.rayapi.versions import parse_version
from kubewire.paths import FieldPath

FT_ENABLED_ANNOTATION = "ray.io/ft-enabled"
ORIGIN_LABEL = "ray.io/originated-from-crd"
AUTOSCALER_V2_VARIABLE = "RAY_enable_autoscaler_v2"


class Group:
    """The head or a worker group, and where in the cluster it stands."""

    __slots__ = ("containers", "env", "mounts", "name", "path", "pod", "spec", "start_params", "title")

    def __init__(self, spec: Object, path: FieldPath, title: str) -> None:
        self.spec = spec
        self.path = path
        self.title = title
        self.name = text(spec, "groupName")
        self.start_params = mapping(spec, "rayStartParams")
        self.pod = mapping(spec, "template", "spec")
        self.containers = mappings(self.pod, "containers")
        # Ray runs in the first container, always.
        ray: Object = self.containers[0] if self.containers else {}
        self.env = mappings(ray, "env")
        self.mounts = mappings(ray, "volumeMounts")

    def at(self, *steps: str | int) -> FieldPath:
        return (*self.path, *steps)

    def at_pod(self, *steps: str | int) -> FieldPath:
        return (*self.path, "template", "spec", *steps)

    def at_ray_container(self, *steps: str | int) -> FieldPath:
        return self.at_pod("containers", 0, *steps)

    def variable(self, name: str) -> FieldPath | None:
        """Return where the Ray container's environment has the variable, if it does."""
        position = named(self.env, name)
        return None if position is None else self.at_ray_container("env", position)


class Cluster:
    """A RayCluster; also one that a RayJob or RayService describes, which then is its `origin`."""

    __slots__ = (
        "annotations",
        "autoscaler",
        "autoscaling",
        "fault_tolerance",
        "groups",
        "head",
        "obj",
        "origin",
        "ray_numbers",
        "ray_version",
        "scope",
        "spec",
        "v2",
        "v2_by_variable",
    )

    def __init__(self, obj: Object, scope: Scope) -> None:
        self.obj = obj
        self.scope = scope
        self.annotations = mapping(obj, "metadata", "annotations")
        self.origin = text(mapping(obj, "metadata", "labels"), ORIGIN_LABEL)
        self.spec = mapping(obj, "spec")
        self.head = Group(mapping(self.spec, "headGroupSpec"), ("spec", "headGroupSpec"), "the head group")
        self.groups = [
            Group(spec, ("spec", "workerGroupSpecs", i), f"worker group {quoted(text(spec, 'groupName'))}")
            for i, spec in enumerate(mappings(self.spec, "workerGroupSpecs"))
        ]
        self.ray_version = text(self.spec, "rayVersion")
        self.ray_numbers = parse_version(self.ray_version)
        self.autoscaling = is_true(self.spec, "enableInTreeAutoscaling")
        self.autoscaler = mapping(self.spec, "autoscalerOptions")
        # The head's environment may switch autoscaler v2 on too; other spellings of true do not.
        switch = named(self.head.env, AUTOSCALER_V2_VARIABLE)
        self.v2_by_variable = switch is not None and self.head.env[switch].get("value") in ("1", "true")
        self.v2 = self.autoscaler.get("version") == "v2" or self.v2_by_variable
        options = self.spec.get("gcsFaultToleranceOptions")
        self.fault_tolerance: Object | None = options if isinstance(options, dict) else None

    def lacks_ray(self, minimum: str) -> str | None:
        """Return why the cluster's Ray is not known to be at least `minimum`, or None if it is."""
        if not self.ray_version:
            return "rayVersion is not set"
        if self.ray_numbers is None:
            return f"rayVersion {quoted(self.ray_version)} is not a version"
        needed = parse_version(minimum)
        assert needed is not None
        return None if self.ray_numbers >= needed else f"rayVersion is {quoted(self.ray_version)}"


def rulebook() -> Rulebook[Cluster]:
    return Rulebook("RayCluster")
