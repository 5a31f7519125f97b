"""Helm, as functions."""

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

CHARTS = Path(__file__).parents[2] / "charts"
OPERATOR = CHARTS / "eagleray-operator"
RAY_CLUSTER = CHARTS / "ray-cluster"
KUBERNETES = "1.36"
# The definitions are large, and a machine may be busy.
PATIENCE = 300.0


class Refused(Exception):
    """Helm says no; the message is what it says."""


class Rendered(list[Any]):
    """The objects of a chart."""

    def one(self, kind, name=None, namespace=None):
        """Return the only object of a kind, name and namespace."""
        (found,) = (
            obj
            for obj in self
            if obj["kind"] == kind
            and name in (None, obj["metadata"]["name"])
            and namespace in (None, obj["metadata"].get("namespace"))
        )
        return found

    def names(self, kind):
        """Return the objects of a kind, as namespace/name."""
        found = [obj["metadata"] for obj in self if obj["kind"] == kind]
        return sorted(f"{one.get('namespace', '')}/{one['name']}" for one in found)

    @property
    def container(self):
        """The operator's container."""
        (container,) = self.one("Deployment")["spec"]["template"]["spec"]["containers"]
        return container


class Helm:
    """Runs helm, and says what it refuses."""

    def __init__(self, program):
        self._program = str(program)
        self._rendered = {}

    def __call__(self, *arguments, given=None):
        run = subprocess.run(
            [self._program, *map(str, arguments)],
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if run.returncode:
            raise Refused(run.stderr)
        return run.stdout

    def render(self, chart, values=None, *, release="r", namespace="rays", crds=False):
        """Return the objects of a chart; without its CRDs unless they are asked for."""
        values = dict(values or {})
        if chart == OPERATOR:
            values.setdefault("crds", {"install": crds})
        key = (chart, json.dumps(values), release, namespace)
        if key not in self._rendered:
            self._rendered[key] = self(
                *("template", release, chart, "--namespace", namespace, "--kube-version", KUBERNETES),
                *("--values", "-"),
                given=values,
            )
        return Rendered(obj for obj in yaml.load_all(self._rendered[key], yaml.CSafeLoader) if obj)
