"""What a job has seen of groups, and its next start over the same checkpoint goes on with."""

import pytest

from streaming.broker.protocol.history_json import KeptGroups
from streaming.cluster.view.recalled import RECALLED_MS
from tests.consumers.group_world import GroupJob, held_back, restarted, world

_TIMES = ("unmoved_ms", "stopped_since_ms", "stopped_earlier", "held_since_ms", "lost_ms", "losing_since_ms")


def known(job: GroupJob) -> dict[str, int]:
    """The times that rounds know of the only commit, and what it has lost of late."""
    last = job.board.last
    assert last is not None
    lately = last.progress.lost_lately
    times = {name: int(getattr(last.progress, name)[0]) for name in _TIMES}
    return times | {"records": int(lately.records[0]), "offsets": int(lately.offsets[0]), "last": int(lately.last_ms[0])}


@pytest.mark.parametrize(
    "script", ["2@990 +15 +700", "2@990 end=2 +15 end=12 +15 +700", "2 +15 start=6 +15", "2 +15 start=6 +15 start=7 +4000"]
)
def test_a_group_that_stands_or_loses_records_does_so_since_before(script: str) -> None:
    before = world(script)
    assert known(restarted(before)) == known(before)


def test_a_group_that_is_held_up_is_so_since_before() -> None:
    before = held_back(4, "4@990 +15 +700")
    assert known(before)["held_since_ms"] > 0
    assert known(restarted(before)) == known(before)


def test_what_has_gone_on_meanwhile_stands_no_more() -> None:
    after = restarted(world("2@990 +15 +700"), "10@1500 +15")
    assert (known(after)["stopped_since_ms"], known(after)["unmoved_ms"]) == (-1, 1_500_000)


def test_losses_before_and_after_the_start_add_up() -> None:
    after = restarted(world("2 +15 start=6 +15"), "8 +15 start=9 end=12 +15")
    assert known(after)["records"] + known(after)["offsets"] == 5


def test_what_was_kept_of_a_commit_that_does_not_come_again_is_forgotten() -> None:
    kept = world("2@990 +15 +700").rounds.kept()
    other = world("+15")
    other.rounds.recall(kept)
    other.round()
    other.round(RECALLED_MS / 1000)
    assert other.rounds.kept() == kept
    other.round(1)
    assert other.rounds.kept() == KeptGroups()
