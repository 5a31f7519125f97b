"""What Kubernetes finds wrong with Pods and with templates of them, field by field and in its words."""

from kubereef.kinds.behaviours.podspec_validation.resizing import keep_only_sizes, resize_problems
from kubereef.kinds.behaviours.podspec_validation.specs import new_pod_problems, template_problems
from kubereef.kinds.behaviours.podspec_validation.statuses import status_problems
from kubereef.kinds.behaviours.podspec_validation.updates import ephemeral_problems, update_problems

__all__ = [
    "ephemeral_problems",
    "keep_only_sizes",
    "new_pod_problems",
    "resize_problems",
    "status_problems",
    "template_problems",
    "update_problems",
]
