"""Our own examples of what another operator leaves, in the form of the recordings."""

from pathlib import Path

import yaml

from tests.eagleray.golden.samples import Sample

EXAMPLES = {file.stem: file for file in sorted((Path(__file__).parent / "left").glob("*.yaml"))}


def example(name):
    """Return one of our own examples of what another operator leaves."""
    left = yaml.safe_load(EXAMPLES[name].read_text())
    manifest = left.pop("manifest")
    applied = [
        {"kind": obj["kind"], "name": obj["metadata"]["name"], "result": "created"} for obj in manifest
    ]
    return Sample(name, manifest, {**left, "applied": applied})


def recreating(sample):
    """Return a sample whose clusters are to be recreated when their spec changes."""
    documents = [
        {**obj, "spec": {**obj["spec"], "upgradeStrategy": {"type": "Recreate"}}}
        if obj["kind"] == "RayCluster"
        else obj
        for obj in sample.documents
    ]
    return Sample(sample.name, documents, sample.recorded)
