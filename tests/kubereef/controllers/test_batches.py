"""Many similar requests."""

import pytest

from kubereef.controllers.batches import for_each, slow_start
from kubewire import errors


async def test_a_slow_start_does_it_as_often_as_asked():
    done = []

    async def act():
        done.append(1)

    await slow_start(100, act)
    assert len(done) == 100


@pytest.mark.parametrize(("works", "tried"), [(0, 1), (1, 3), (3, 7)])
async def test_a_slow_start_stops_after_the_batch_that_failed(works, tried):
    done = 0

    async def act():
        nonlocal done
        done += 1
        if done > works:
            raise errors.forbidden("pods", "", "the quota is used up")

    with pytest.raises(errors.Forbidden):
        await slow_start(100, act)
    assert done == tried


async def test_each_thing_is_tried_and_the_first_failure_told():
    tried = []

    async def act(number):
        tried.append(number)
        if number in (3, 150):
            raise ValueError(number)

    with pytest.raises(ValueError, match="3"):
        await for_each(range(200), act)
    assert tried == list(range(200))
