"""What we make of the reference's samples is, field by field, what the reference was recorded to make of them."""

from typing import Any, NamedTuple

import pytest

from eagleray.manifests.settings import VERSION
from kubereef.simulation import run
from tests.eagleray.golden.compare import ALLOWED_FILE, differences, judged, read_allowances
from tests.eagleray.golden.normalise import canonical
from tests.eagleray.golden.samples import (
    REFERENCE,
    apply,
    by_folder,
    cases_of,
    golden_world,
    read_samples,
    record,
    until_quiet,
    writes_in,
)

SAMPLES = cases_of(REFERENCE)
# Longer than a submitter's Job waits for a dashboard that nobody answers at.
QUIET = 12
# Past the moment at which a cluster is looked at again although nothing has happened.
RESYNC = 400


@pytest.fixture(scope="module")
def allowances():
    return read_allowances(ALLOWED_FILE.read_text(), version=VERSION)


class Life(NamedTuple):
    """What became of a sample: its recording, and what a second start of the operator wrote."""

    made: dict[str, Any]
    written_after_restart: list[str]


async def _live(samples):
    async with golden_world(samples) as world:
        for sample in samples:
            await apply(world, sample)
        await until_quiet(world, QUIET)
        made = [await record(world, sample) for sample in samples]
        await world.stop_operator()
        world.faults.sent.clear()
        await world.start_operator()
        await until_quiet(world)
        await world.pass_time(RESYNC)
        return {
            sample.name: Life(recorded, writes_in(world, sample.namespace))
            for sample, recorded in zip(samples, made, strict=True)
        }


@pytest.fixture(scope="module")
def samples(reference):
    return read_samples(reference)


@pytest.fixture(scope="module")
def lives(samples):
    """The life of every sample; those of one folder live side by side in one world."""
    lives = [run(_live(together)) for together in by_folder(samples.values())]
    return {name: life for some in lives for name, life in some.items()}


@pytest.fixture(scope="module")
def found(samples, lives):
    """Every difference, by sample."""
    return {
        name: differences(lives[name].made, canonical(sample.recorded)) for name, sample in samples.items()
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_becomes_what_the_reference_makes_of_it(name, found, allowances):
    refused, _ = judged(found[name], allowances)
    assert "\n".join(str(difference) for difference in refused) == ""


def test_every_allowed_difference_is_there(found, allowances):
    everywhere = [difference for some in found.values() for difference in some]
    _, used = judged(everywhere, allowances)
    assert [allowance.reason for allowance in allowances if allowance.reason not in used] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_a_second_start_writes_nothing(name, samples, lives):
    was_rejected = not samples[name].recorded["created"]
    # Why a cluster is not acted on is told again by an operator that was just started; so is that Serve, which does not
    # mind, was handed its configuration again. Nothing else is.
    is_told_again = was_rejected or "with-ray/ray-service." in name
    assert lives[name].written_after_restart == (["create events"] if is_told_again else [])
