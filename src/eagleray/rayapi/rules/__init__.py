"""The validation rules of the four kinds: pure functions of an object and the configuration.

    >>> problems_of(rayjob, ValidationConfig(parse_gates("RayJobDeletionPolicy=false")))

`RULES` is the registry: for each kind its rules in the order they are checked, metadata first, then spec,
then status. A rule's name is stable and tells where the rule stands in `docs/spec`: `raycluster-4e` is the
fifth condition of row 4, `rayjob-v9` is rule V9.

    RayCluster  m1-m2
                1 2 3a-3c 4a-4i 5 6 7a-7d 8a-8f 9 10 11 12 13a-13d 14 15 16a-16g 17a-17d 18a-18e 19a-19c
                g1 w1-w2 u1-u2
                t1
    RayJob      m1-m2
                v1-v7 l1-l5 r1-r9 v8 v9 v10a-v10c v11 v12a-v12c v13-v18
                s1
    RayService  m1-m3
                v1-v12
    RayCronJob  c1-c6 w1

A `w` warns. `rayjob-v14`, `rayservice-v2` and `raycronjob-c6` judge an object that is described inside
another: what they find keeps the name of the inner rule, such as `raycluster-1`, and has its path in the
outer object. What is wrong with the template of a RayCronJob also begins with `invalid RayJob template`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eagleray.rayapi.problems import Problem
from eagleray.rayapi.rules.raycluster import RAYCLUSTER
from eagleray.rayapi.rules.raycluster.view import Cluster
from eagleray.rayapi.rules.raycronjob import RAYCRONJOB, CronJob
from eagleray.rayapi.rules.rayjob import RAYJOB
from eagleray.rayapi.rules.rayjob.view import Job
from eagleray.rayapi.rules.rayservice import RAYSERVICE, Service
from eagleray.rayapi.rules.rulebook import Rule, Scope, ValidationConfig, broken

__all__ = ["RULES", "Problem", "Rule", "ValidationConfig", "problems_of"]

# A rule reads a view of its own kind's making; who only lists rules need not care which.
RULES: Mapping[str, tuple[Rule[Any], ...]] = {
    "RayCluster": RAYCLUSTER,
    "RayJob": RAYJOB,
    "RayService": RAYSERVICE,
    "RayCronJob": RAYCRONJOB,
}

_CHECKS: Mapping[str, Callable[[dict[str, Any], Scope], Iterable[Problem]]] = {
    "RayCluster": lambda obj, scope: broken(RAYCLUSTER, Cluster(obj, scope), scope),
    "RayJob": lambda obj, scope: broken(RAYJOB, Job(obj, scope), scope),
    "RayService": lambda obj, scope: broken(RAYSERVICE, Service(obj, scope), scope),
    "RayCronJob": lambda obj, scope: broken(RAYCRONJOB, CronJob(obj, scope), scope),
}


def problems_of(
    obj: dict[str, Any], config: ValidationConfig, *, skip: frozenset[str] = frozenset()
) -> list[Problem]:
    """Return everything that is wrong with the object, in rule order; nothing for a kind without rules.

    The object should fit its schema and have its defaults, but anything may be missing or null. Rules that
    `skip` names are left out, in embedded objects too.
    """
    kind = obj.get("kind")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    return list(check(obj, Scope(config, skip))) if check else []
