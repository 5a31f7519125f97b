"""The manifests of config/, as kubectl builds them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from eagleray.rayapi.kinds import KINDS
from tests.packaging.helm import Rendered

CONFIG = Path(__file__).parents[2] / "config"
PATIENCE = 60.0


class Kustomize:
    """Builds folders of config/ from a copy in which the definitions are stubs: the real ones take seconds."""

    def __init__(self, directory):
        self.config = directory / "config"
        shutil.copytree(CONFIG, self.config, ignore=shutil.ignore_patterns("ray.io_*.yaml"))
        for kind in KINDS:
            stub = {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{kind.plural}.ray.io"},
            }
            (self.config / "crd" / f"ray.io_{kind.plural}.yaml").write_text(json.dumps(stub))
        self._built = {}

    def __call__(self, folder):
        """Return the objects of a folder, of config/ unless it is a whole path."""
        if folder not in self._built:
            command = ("kubectl", "kustomize", self.config / folder)
            run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            assert run.returncode == 0, run.stderr
            self._built[folder] = run.stdout
        return Rendered(yaml.load_all(self._built[folder], yaml.CSafeLoader))


def kustomize(directory):
    """Return what builds manifests; without kubectl the test is skipped, but not in CI."""
    if shutil.which("kubectl") is None:
        assert not os.environ.get("CI"), "kubectl is not on the PATH, and CI has to have it"
        pytest.skip("kubectl is not on the PATH")
    return Kustomize(directory)
