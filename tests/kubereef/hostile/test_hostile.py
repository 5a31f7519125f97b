"""Requests that no good client sends: none is answered by a fault of the server's, and what it accepts can be read."""

import asyncio
import json
import re
from itertools import islice
from pathlib import Path

import pytest

from tests.kubereef.hostile.aims import Aim
from tests.kubereef.hostile.attacks import attacks
from tests.kubereef.hostile.campaign import (
    ATTACKERS,
    MAX_GROWTH,
    attack_in_process,
    attack_over_https,
    complaints,
)
from tests.kubereef.hostile.inprocess import InProcess
from tests.kubereef.hostile.surface import surface_of

# Another seed every day: `make test-hostile`.
SEED = 1


async def surface():
    place = InProcess()
    await place.cluster.start()
    found = await surface_of(place.get)
    await place.cluster.stop()
    return found


async def test_a_seed_decides_what_is_sent():
    offered = await surface()
    first, second, other = (list(islice(attacks(offered, seed, 0), 500)) for seed in (1, 1, 2))
    assert first == second
    assert first != other


def fields_below(schemas, roots):
    """Return every field that an object of some definitions can have, at any depth."""
    seen, waiting = set(), set(roots)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        told = re.findall(r'"#/components/schemas/([^"]*)"', json.dumps(schemas[name]))
        waiting |= set(told) - seen
    return {f"{name}.{field}" for name in seen for field in schemas[name].get("properties", ())}


async def test_ten_thousand_requests_put_a_value_of_the_wrong_type_into_every_field(monkeypatch):
    offered = await surface()
    hit = set()

    def position(aim, original=Aim.position):
        found = original(aim)
        hit.add(found.field)
        return found

    monkeypatch.setattr(Aim, "position", position)
    for number in range(ATTACKERS):
        for _ in islice(attacks(offered, SEED, number), 10_000 // ATTACKERS):
            pass
    bodies = [one.definition for one in (*offered.creations, *offered.replacements)]
    assert fields_below(offered.schemas, bodies) - hit == set()


async def test_two_thousand_hostile_requests_in_process(caplog):
    tally = await attack_in_process(2000, SEED)
    assert not tally.findings, "\n".join(map(str, tally.findings))
    assert tally.accepted > 100, "too few writes were accepted to show that they can be read"
    assert complaints(caplog.text) == []


@pytest.mark.heavy
def test_ten_thousand_hostile_requests_over_https(tmp_path: Path):
    outcome = asyncio.run(attack_over_https(tmp_path, 10_000, SEED))
    assert not outcome.tally.findings, "\n".join(map(str, outcome.tally.findings))
    assert complaints(outcome.log) == []
    assert outcome.tally.accepted > 500, "too few writes were accepted to show that they can be read"
    assert outcome.growth < MAX_GROWTH
