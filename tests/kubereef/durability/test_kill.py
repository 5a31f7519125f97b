"""`kill -9` under load: what was acknowledged is there, and nothing else is."""

from tests.kubereef.durability.kills import WRITERS, survive

# A thousand take half an hour: `make test-kills`.
KILLS = 50


async def test_no_acknowledged_write_is_lost_and_no_watch_has_a_gap(tmp_path):
    outcome = await survive(tmp_path, KILLS, seed=20)
    assert outcome.writes > KILLS * WRITERS, "the load was too small to show anything"
    assert outcome.resumed
    assert outcome.told_to_list
