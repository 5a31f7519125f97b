"""Rolling a Deployment back: what becomes of one that asks for it by its annotation, as pure functions.

kubectl writes an older template itself. The annotation is the older way, in which the controller looks the template up.
"""

from typing import NamedTuple

from kubereef.controllers.deploymentplan import OWN_ANNOTATIONS, has_template_of, without_hash
from kubereef.controllers.rollouts import REVISION, Family, annotated
from kubereef.kinds.resource import Object

ROLLBACK_TO = "deprecated.deployment.rollback.to"


class Rollback(NamedTuple):
    """A Deployment that asks for nothing any more, and what is to be told of it."""

    deployment: Object
    is_done: bool
    reason: str
    message: str


def asked_revision(deployment: Object) -> int | None:
    """Return the revision to go back to, 0 for the one before; None if nothing, or no number, is asked for."""
    text = (deployment["metadata"].get("annotations") or {}).get(ROLLBACK_TO, "")
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def rolled_back(deployment: Object, family: Family, revision: int) -> Rollback:
    """Return a Deployment with the template and annotations of a revision, if there is one that differs."""
    name = deployment["metadata"]["name"]
    settled = _settled(deployment)
    revision = revision or _revision_before(family)
    if not revision:
        return Rollback(settled, False, "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
    found = next((one for one in family.all if annotated(one, REVISION) == revision), None)
    if found is None:
        message = "Unable to find the revision to rollback to."
        return Rollback(settled, False, "DeploymentRollbackRevisionNotFound", message)
    if has_template_of(deployment, found):
        message = f'The rollback revision contains the same template as current deployment "{name}"'
        return Rollback(settled, False, "DeploymentRollbackTemplateUnchanged", message)
    given = settled["metadata"]["annotations"]
    annotations = {
        **{key: value for key, value in given.items() if key in OWN_ANNOTATIONS},
        **{
            key: value
            for key, value in (found["metadata"].get("annotations") or {}).items()
            if key not in OWN_ANNOTATIONS
        },
    }
    back = {
        **settled,
        "metadata": {**settled["metadata"], "annotations": annotations},
        "spec": {**settled["spec"], "template": without_hash(found["spec"]["template"])},
    }
    return Rollback(
        back, True, "DeploymentRollback", f'Rolled back deployment "{name}" to revision {revision}'
    )


def _settled(deployment: Object) -> Object:
    """Return a Deployment without the question."""
    meta = deployment["metadata"]
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != ROLLBACK_TO}
    return {**deployment, "metadata": {**meta, "annotations": annotations}}


def _revision_before(family: Family) -> int:
    """Return the second highest revision; 0 if there is none."""
    revisions = sorted({annotated(one, REVISION) or 0 for one in family.all}, reverse=True)
    return revisions[1] if len(revisions) > 1 else 0
