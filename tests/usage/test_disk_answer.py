"""The answer about disks, from facts about log dirs: what it sums, what it leaves out, and what it says when something is full."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streaming.broker.protocol.disk_json import DiskAnswer, LeftoverFiles, LogDirUse
from streaming.cluster.usage.disk_answer import ADVICE, MOST_UNREAD, DiskContents, answer_of, findings, full_phrase, is_full_within
from streaming.cluster.usage.reckoning import DAY_MS, parse_trial, trying
from streaming.cluster.view.disk_use import disk_found
from streaming.cluster.view.view import view
from streaming.common.catalog import UNREADABLE
from streaming.common.units import TimeWords
from tests.view.rows import new_table
from tests.worlds.growth import WEEK, grows
from tests.worlds.hosts import agent, broker, log_dir
from tests.worlds.retention import MS, NOW, facts, orders

COMPACTED = '{"topic":{"cleanup.policy":"compact","segment.ms":"3600000"}}'
HOUR_MS = 3_600_000


def found_of(*rows: Any, dirs: tuple[Any, ...] = (log_dir(free=10_000),)) -> DiskContents:
    return disk_found(view(new_table(*rows).snapshot(NOW)), [agent("a1", broker(), log_dirs=dirs)], MS)


def with_facts(found: DiskContents, **values: Any) -> DiskContents:
    """The same with other facts about the first log dir."""
    return replace(found, dirs=[replace(found.dirs[0], **values), *found.dirs[1:]])


def only(found: DiskContents) -> LogDirUse:
    (one,) = answer_of(found, "dir", 10).log_dirs
    return one


def test_file_systems_are_numbered_and_log_dirs_of_one_have_the_same_number() -> None:
    dirs = (log_dir("/a", device=7), log_dir("/b", device=9), log_dir("/c", device=7))
    assert [each.file_system for each in answer_of(found_of(dirs=dirs), "dir", 10).log_dirs] == [0, 1, 0]


def test_nothing_grows_in_an_empty_log_dir_and_without_a_list_of_segments_it_is_not_known() -> None:
    assert only(found_of()).outlook == "never"
    assert (only(found_of(grows())).outlook, only(found_of(grows())).growth_unknown) == ("full", 0)
    unknown = only(found_of(orders(facts((0, 0, 0), configs=COMPACTED), log_dir="/d0")))
    assert (unknown.outlook, unknown.full_ms, unknown.growth_day, unknown.growth_unknown) == ("unknown", -1, -1, 1)


def test_of_a_log_dir_that_holds_the_metadata_log_alone_it_is_known_that_nothing_grows() -> None:
    metadata = found_of(orders(facts((0, 0, 0)), log_dir="/d0", topic="__cluster_metadata"))
    assert (only(metadata).outlook, only(metadata).replicas) == ("never", 0)


def test_a_log_of_which_it_is_not_known_what_retention_frees_frees_nothing() -> None:
    segments = (0, 500, 8 * 24 * 3600), (50, 300, 10), (100, 0, 0)
    known = orders(facts(*segments, configs=WEEK), log_dir="/d0")
    replicated = facts(*segments, configs=WEEK, replicas=(1, 2), isr=(1, 2))
    unknown = orders(replicated, log_dir="/d0", partition=1, high_watermark=UNREADABLE)
    assert (only(found_of(known)).frees_now, only(found_of(unknown)).frees_now) == (500, 0)
    assert only(found_of(known, unknown)).frees_now == 500


@pytest.mark.parametrize("oldest", [300, 49 * 3600])
def test_what_is_freed_next_is_among_what_is_free_in_a_day_though_growth_is_slow_or_not_known(oldest: int) -> None:
    """Limited by bytes, 2,500 too few for the first of two closed segments to go; it is watched to grow by 25 bytes a second."""
    configs = '{"topic":{"retention.ms":"-1","retention.bytes":"4000","segment.bytes":"1000"}}'
    listed = facts((0, 1000, oldest), (10, 1000, 60), (20, 500, 0), configs=configs, oldest_timestamp=MS - oldest * 1000)
    found = found_of(orders(listed, log_dir="/d0"))
    watched = replace(found, logs=replace(found.logs, watched=np.array([25.0])))
    one = only(watched)
    assert MS < one.next_ms <= MS + DAY_MS
    assert one.frees_day >= 1000


def test_space_is_freed_at_the_latest_time_though_a_reader_may_lose_at_the_earliest() -> None:
    """One segment that grows: if nobody appends any more it goes after an hour, else an hour after it is rolled, which is in a week."""
    found = found_of(orders(facts((0, 1000, 0), configs='{"topic":{"retention.ms":"3600000"}}'), log_dir="/d0"))
    growing, still = (only(replace(found, logs=replace(found.logs, watched=np.array([rate])))) for rate in (25.0, 0.0))
    assert still.next_ms < MS + 2 * HOUR_MS
    assert growing.next_ms > MS + 7 * DAY_MS


def test_only_so_many_unread_files_are_named_and_all_are_counted() -> None:
    unread = {f"/d0/{number}": "no" for number in range(MOST_UNREAD + 1)}
    one = only(with_facts(found_of(grows()), unread=unread))
    assert (one.unread, one.unread_of) == (MOST_UNREAD + 1, [f"/d0/{number}: no" for number in range(MOST_UNREAD)])


def test_leftovers_and_rows_come_the_largest_first_and_a_limit_cuts_rows() -> None:
    left = [LeftoverFiles(path=f"/d0/{taken}", kind="stray", taken=taken, since_ms=0) for taken in (1, 3, 2)]
    answer = answer_of(replace(found_of(grows(), grows(topic="a", partition=1)), leftovers=left), "partition", 1)
    assert [each.taken for each in answer.leftovers] == [3, 2, 1]
    assert (len(answer.rows), answer.total, answer.rows[0].topic) == (1, 2, "a")


def test_a_policy_by_assumed_limits_is_marked() -> None:
    rows = answer_of(found_of(grows(configs="{}"), grows(topic="sure")), "topic", 10).rows
    assert {row.topic: (row.policy, row.limits_assumed) for row in rows} == {"orders": ("delete", True), "sure": ("delete", False)}


def test_free_space_that_is_not_known_is_a_doubt_and_none_is_not() -> None:
    found = found_of(grows())
    assert (answer_of(with_facts(found, free=0), "dir", 1).doubts, only(with_facts(found, free=0)).outlook) == ([], "full")
    lacks = with_facts(found, free=-1)
    assert (answer_of(lacks, "dir", 1).doubts, only(lacks).outlook) == (["the free space of /d0 is not known"], "unknown")


def test_a_log_dir_that_is_down_takes_no_part_in_the_forecast_of_its_file_system() -> None:
    rows = (grows(), grows(partition=1, log_dir="/d1"))
    together = found_of(*rows, dirs=(log_dir(free=10_000, device=1), log_dir("/d1", free=10_000, device=1)))
    down = replace(together, dirs=[together.dirs[0], replace(together.dirs[1], up=False, problem="gone")])
    first, second = answer_of(down, "dir", 10).log_dirs
    assert (second.up, second.problem, second.outlook) == (False, "gone", "unknown")
    assert first.full_ms == pytest.approx(only(found_of(grows())).full_ms, abs=60_000)
    assert answer_of(down, "dir", 10).doubts == ["log dir /d1 cannot be read: gone"]


def test_compacted_logs_may_grow_until_they_are_cleaned() -> None:
    one = only(found_of(grows(configs=COMPACTED)))
    assert (one.outlook, one.full_ms) == ("never", -1)
    assert one.full_uncleaned_ms == pytest.approx(MS + 10 * HOUR_MS, abs=60_000)


def test_what_is_deleted_counts_as_free_once_it_is_unlinked_a_minute_later() -> None:
    """A byte in 3.6 s: 10 bytes last for 36 s, 20 for 72 s."""

    def full_ms(free: int, waiting: int) -> int:
        return only(with_facts(found_of(grows()), free=free, waiting=waiting)).full_ms

    assert full_ms(10, 1000) == full_ms(10, 0)
    assert full_ms(20, 1000) - full_ms(20, 0) == pytest.approx(HOUR_MS, abs=60_000)


def use(**values: Any) -> LogDirUse:
    return LogDirUse(**{"broker": 1, "log_dir": "/d", "outlook": "full", "full_ms": MS + DAY_MS, **values})


def test_a_log_dir_is_full_within_a_time_up_to_its_last_millisecond() -> None:
    assert [is_full_within(use(), MS, within) for within in (DAY_MS - 1, DAY_MS)] == [False, True]
    assert not is_full_within(use(outlook="unknown", full_ms=-1), MS, DAY_MS)


def test_full_is_full_and_what_will_be_is_stated_with_its_time() -> None:
    assert [full_phrase(MS + later, TimeWords(MS)) for later in (-1, 0)] == ["full", "full"]
    assert full_phrase(MS + HOUR_MS, TimeWords(MS)) == "full in 1h (2023-11-14T23:13:20Z)"
    assert full_phrase(MS + HOUR_MS + 59_999, TimeWords(MS)) == full_phrase(MS + HOUR_MS, TimeWords(MS)), "a mean shows no second"
    assert full_phrase(MS + 30_000, TimeWords(MS)) == "full in 30s (2023-11-14T22:13:50Z)"
    assert full_phrase(MS + 118_000, TimeWords(MS)) == "full in 1m 50s (2023-11-14T22:15:10Z)", "a minute more is half of what is left"
    assert full_phrase(MS + 599_000, TimeWords(MS)) == "full in 9m 50s (2023-11-14T22:23:10Z)"
    assert full_phrase(MS + 659_000, TimeWords(MS)) == "full in 10m (2023-11-14T22:23:20Z)"
    assert full_phrase(MS + 26 * HOUR_MS - 1, TimeWords(MS)).startswith("full in 1d 1h (")


def test_what_is_full_soon_is_stated_first_and_then_what_lies_there_for_nothing() -> None:
    left = [LeftoverFiles(path=f"/d/{kind}", kind=kind, taken=1 << 20, since_ms=0) for kind in reversed(ADVICE)]
    answer = DiskAnswer(
        at_ms=MS, by="topic", total=0, matched=0, log_dirs=[use(), use(log_dir="/later", full_ms=MS + 2 * DAY_MS)], rows=[], leftovers=left
    )
    found = [each.what for each in findings(answer, DAY_MS)]
    assert found[0] == "/d is full in 1d (2023-11-15T22:13:20Z)"
    assert found[1:4] == [
        "stray_only: 1.0 MiB in 1 place with perhaps the only copy of live topics' records: /d/stray_only",
        "unnamed: 1 log without partition.metadata: /d/unnamed",
        "stray_unknown: 1.0 MiB in 1 place that no broker serves: /d/stray_unknown",
    ]
    others = {kind: f"1.0 MiB in 1 place that should be gone: /d/{kind}" for kind in [*ADVICE][3:]}
    others["deleted_open"] = "1.0 MiB of deleted files of log dirs that a process holds open: /d/deleted_open"
    assert found[4:] == [f"{kind}: {words}" for kind, words in others.items()]


def test_a_trial_without_a_pattern_is_for_all_topics_but_kafkas_own() -> None:
    names = ("orders", "__consumer_offsets", "__cluster_metadata", "__mine", "_schemas")
    assert [name for name in names if parse_trial("retention.ms=1h").concerns(name)] == ["orders", "_schemas"]
    assert [name for name in names if parse_trial("__*:retention.ms=1h").concerns(name)] == list(names[1:4])


def test_of_several_trials_for_one_name_the_last_one_counts() -> None:
    of = trying([parse_trial(text) for text in ("retention.ms=1h", "orders:retention.ms=2h", "retention.bytes=1KiB")])
    assert {each.name: each.value for each in of("orders").settings} == {"retention.ms": str(2 * HOUR_MS), "retention.bytes": "1024"}
    assert {each.name: each.value for each in of("other").settings} == {"retention.ms": str(HOUR_MS), "retention.bytes": "1024"}


@pytest.mark.parametrize("text", ["moving HERE", "future"])
def test_kinds_are_filtered_by_the_words_of_the_table_and_by_those_of_json(text: str) -> None:
    disk = with_facts(found_of(), kinds={"future": (5, 5), "segment": (7, 7)})
    assert [row.kind for row in answer_of(disk, "kind", 10, text=text).rows] == ["future"]
