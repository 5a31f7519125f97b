"""What the node promises of Pods, sentence by sentence: see the tables beside this file."""

import time

import pytest

from kubereef.node.sandbox import probe
from tests.kubereef.node.pods.conftest import TABLES
from tests.kubereef.node.pods.table import read_table

pytestmark = pytest.mark.heavy

ENTRIES = [entry for name in TABLES for entry in read_table(name)]


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.sentence) for entry in ENTRIES])
def test_a_pod_becomes_what_it_should(pods, entry, tmp_path):
    if entry.needs and not probe(tmp_path).has(entry.needs):
        pytest.skip(f"{entry.needs}: {probe(tmp_path).missing()[entry.needs]}")
    if refusal := pods.refused[entry.name]:
        pytest.fail(f"the API server refuses it: {refusal}", pytrace=False)
    while entry.name not in pods.done:
        if time.monotonic() > pods.deadline:
            pytest.fail("\n".join(pods.found[entry.name]), pytrace=False)
        time.sleep(0.05)
