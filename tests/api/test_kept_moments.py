"""How everything was when something had changed: kept, bounded, and found by its time."""

from streaming.pages.api.kept_moments import MOST_MOMENTS, KeptMoments
from tests.api.looks import fine, judged
from tests.worlds.incidents import stuck
from tests.worlds.problems import MINUTE, NOW_MS


def test_the_last_moment_that_is_not_later_is_as_it_was() -> None:
    kept = KeptMoments()
    kept.keep(judged(fine(), NOW_MS, url="https://ops"))
    kept.keep(judged(stuck(0), NOW_MS + MINUTE))
    assert kept.at(NOW_MS - 1) is None
    before, after = kept.at(NOW_MS + MINUTE - 1), kept.at(NOW_MS + 9 * MINUTE)
    assert before is not None
    assert after is not None
    assert (before.status.at_ms, before.status.severity, before.status.url, before.problems.rows) == (NOW_MS, "", "https://ops", [])
    assert (after.status.at_ms, after.status.critical) == (NOW_MS + MINUTE, 1)
    assert [each.kind for each in after.problems.rows] == ["transaction_stuck"]


def test_only_the_newest_are_kept() -> None:
    kept = KeptMoments()
    for number in range(MOST_MOMENTS + 2):
        kept.keep(judged(fine(), NOW_MS + number))
    assert kept.at(NOW_MS + 1) is None
    found = kept.at(NOW_MS + 2)
    assert found is not None
    assert found.status.at_ms == NOW_MS + 2


def test_the_next_job_has_them_too() -> None:
    before, after = KeptMoments(), KeptMoments()
    before.keep(judged(stuck(0), NOW_MS))
    after.keep(judged(fine(), NOW_MS + MINUTE))
    after.recall(before.kept())
    assert [each and each.status.critical for each in (after.at(NOW_MS - 1), after.at(NOW_MS), after.at(NOW_MS + MINUTE))] == [None, 1, 0]
