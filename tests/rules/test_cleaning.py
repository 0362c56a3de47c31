import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.catalog import UNREADABLE
from streaming.common.rows import TIME_UNKNOWN
from streaming.rules.cleaning import UNCLEANABLE, CompactionRule
from streaming.rules.retention_rule import LogFacts, SegmentColumns
from tests.rules.logs import TIMES, any_log, log_facts


def naive(log: LogFacts, now: int) -> tuple[int, float]:
    """Dirty bytes and ratio as `LogCleanerManager.cleanableOffsets` and `LogToClean` come to them, on plain lists."""
    bases, sizes = log.segments["base_offset"].tolist(), log.segments["size"].tolist()
    largest = [s["largest_timestamp"] if s["largest_timestamp"] >= 0 else s["modified_ms"] for s in log.segments]
    active = len(bases) - 1

    def values(start: int, end: int) -> list[int]:
        """`LogSegments.values`: from the segment that holds ``start`` to before the one that begins at or behind ``end``."""
        if start == end:
            return []
        floor = max((i for i in range(len(bases)) if bases[i] <= start), default=0)
        return [i for i in range(floor, len(bases)) if bases[i] < end]

    def closed_from(offset: int) -> list[int]:
        return [] if offset > bases[active] else values(offset, bases[active])

    first_dirty = log.cleaner_checkpoint
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    bounds = [log.high_watermark if log.last_stable_offset < 0 else log.last_stable_offset, bases[active]]
    lag = log.limits.min_compaction_lag_ms
    if lag > 0:
        bounds += [bases[i] for i in closed_from(first_dirty) if largest[i] > now - lag][:1]
    uncleanable = max(first_dirty, min(bounds))
    held = bases[(closed_from(uncleanable) or [active])[0]]
    clean = sum(sizes[i] for i in range(len(bases)) if bases[i] < first_dirty)
    dirty = sum(sizes[i] for i in values(min(first_dirty, held), held))
    return dirty, dirty / (clean + dirty) if clean + dirty else -1.0


@given(st.lists(any_log(("compact", "compact,delete", "delete")), max_size=5), TIMES)
def test_dirty_is_what_kafkas_own_cleaner_would_find(logs, now):
    found = CompactionRule(SegmentColumns(logs)).at(now)
    expected = [naive(log, now) if log.limits.compacts else (-1, -1.0) for log in logs]
    assert found.dirty_bytes.tolist() == [dirty for dirty, _ in expected]
    assert all(math.isclose(mine, ratio) for mine, (_, ratio) in zip(found.dirty_ratio.tolist(), expected, strict=True))


@given(any_log(("compact",)), TIMES)
def test_no_closed_segment_is_dirty_and_uncleanable_at_once(log, now):
    found = CompactionRule(SegmentColumns([log])).at(now)
    assert found.dirty_bytes[0] + found.uncleanable[:, 0].sum() <= log.segments["size"][:-1].sum()


SEGMENTS = [(0, 10, 100, 0), (10, 20, 200, 0), (20, 40, 300, 0), (30, 80, 400, 0), (40, 160, 500, 0)]


def at(now: int, **given: object) -> dict[str, float]:
    found = CompactionRule(SegmentColumns([log_facts(SEGMENTS, cleanup_policy="compact", **given)])).at(now)
    reasons = {name: int(row[0]) for name, row in zip(UNCLEANABLE, found.uncleanable, strict=True)}
    return {"dirty": int(found.dirty_bytes[0]), "ratio": float(found.dirty_ratio[0]), **reasons}


def test_everything_closed_is_dirty_where_nothing_was_cleaned():
    assert at(1000) == {"dirty": 150, "ratio": 1.0, "open_transaction": 0, "compaction_lag": 0, "moving": 0}


def test_what_lies_before_the_checkpoint_is_clean():
    assert at(1000, cleaner_checkpoint=20) == {"dirty": 120, "ratio": 0.8, "open_transaction": 0, "compaction_lag": 0, "moving": 0}


def test_an_open_transaction_keeps_its_segment_and_all_behind_it():
    assert at(1000, last_stable_offset=25) == {"dirty": 30, "ratio": 1.0, "open_transaction": 120, "compaction_lag": 0, "moving": 0}


def test_replication_that_is_behind_is_no_open_transaction():
    assert at(1000, last_stable_offset=25, high_watermark=25)["open_transaction"] == 0


def test_segments_younger_than_the_lag_wait_up_to_the_open_transaction():
    assert at(250, last_stable_offset=35, min_compaction_lag_ms=100) == {
        "dirty": 10,
        "ratio": 1.0,
        "open_transaction": 80,
        "compaction_lag": 60,
        "moving": 0,
    }


THREE = [(0, 100, 10, 10), (10, 100, 20, 20), (20, 10, 30, 30)]


def limit(now: int, **given: object) -> float:
    log = log_facts(THREE, **{"cleanup_policy": "compact", **given})
    return float(CompactionRule(SegmentColumns([log])).at(now).dirty_limit[0])


def test_the_cleaner_sets_to_work_above_the_topics_own_ratio():
    assert (limit(50), limit(50, min_cleanable_dirty_ratio=0.05)) == (0.5, 0.05)
    assert limit(50, cleanup_policy="delete") == -1


def test_nothing_may_wait_for_longer_than_the_greatest_lag():
    assert [limit(now, max_compaction_lag_ms=25) for now in (35, 36)] == [0.5, 0]
    assert [limit(now, max_compaction_lag_ms=25, cleaner_checkpoint=10) for now in (45, 46)] == [0.5, 0]  # the first is clean
    assert limit(1000, max_compaction_lag_ms=25, cleaner_checkpoint=20) == 0.5  # nothing closed is dirty
    assert limit(1000, max_compaction_lag_ms=25, min_compaction_lag_ms=995) == 0.5  # nor may be compacted yet


def test_where_the_high_watermark_or_the_cleaners_checkpoint_is_not_known_nothing_is_stated():
    for unknown in ({"high_watermark": -1}, {"cleaner_checkpoint": UNREADABLE}):
        found = CompactionRule(SegmentColumns([log_facts(THREE, cleanup_policy="compact", **unknown)])).at(50)
        assert (found.dirty_bytes[0], found.dirty_ratio[0], found.dirty_limit[0], found.uncleanable[0][0]) == (-1, -1, -1, -1)


def test_a_segment_of_unknown_time_leaves_it_unknown_only_where_its_age_counts():
    segments = [(0, 100, TIME_UNKNOWN, 10), *THREE[1:]]
    for lag, dirty in ((0, 200), (5, -1)):
        found = CompactionRule(SegmentColumns([log_facts(segments, cleanup_policy="compact", min_compaction_lag_ms=lag)])).at(50)
        assert (found.dirty_bytes[0], found.dirty_ratio[0] >= 0) == (dirty, dirty >= 0)


@given(any_log(("compact", "compact,delete")), TIMES)
def test_what_is_dirty_of_a_log_that_moves_may_not_be_cleaned(log, now):
    still, moving = (CompactionRule(SegmentColumns([replace(log, moving=each)])).at(now) for each in (False, True))
    assert (moving.dirty_bytes[0] > 0, moving.dirty_ratio[0] > 0, moving.long_dirty_ratio[0] > 0) == (False, False, False)
    assert moving.uncleanable[:, 0].tolist() == [*still.uncleanable[:2, 0].tolist(), still.dirty_bytes[0]]
