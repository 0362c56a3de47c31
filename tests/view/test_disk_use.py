"""What a job knows of disks: when they are full, and the answer to ``/api/v1/disk``."""

from typing import Any

import pytest

from streaming.broker.protocol.disk_json import DiskAnswer
from streaming.cluster.usage.disk_answer import answer_of
from streaming.cluster.view.disk_forecasts import AGAIN_MS, FILLING_MS, SOON_MS, DiskHistory, FullTimes
from streaming.cluster.view.disk_use import disk_found, full_times
from streaming.cluster.view.observer import AgentStatus, Observer
from streaming.cluster.view.view import view
from streaming.errors import UsageError
from streaming.pages.api.counts_and_disks import disk_page
from tests.exposition.reading import named
from tests.tables import each_row
from tests.view.rows import new_table
from tests.worlds.growth import HOUR, WEEK, H, grows
from tests.worlds.hosts import agent, broker, log_dir, observer
from tests.worlds.retention import MS, NOW, facts, orders

NAME = "segtail_log_dir_full_timestamp_seconds"


def watching(*dirs: Any) -> AgentStatus:
    return agent("a1", broker(), log_dirs=dirs or (log_dir(free=10_000),))


def full(made: Observer, *rows: Any) -> dict[str, float]:
    found = named(new_table(*rows), NAME, made, now=NOW)
    return {dict(labels)["log_dir"]: value for labels, value in found.items()}


def test_a_log_dir_is_full_when_its_free_bytes_are_written() -> None:
    assert full(observer(watching()), grows()) == {"/d0": pytest.approx(NOW + 10 * H, abs=60)}


def test_what_is_deleted_and_waits_to_be_unlinked_is_as_good_as_free() -> None:
    waiting = log_dir(free=8_000, deleted=1_500, delete=500)
    assert full(observer(watching(waiting)), grows()) == {"/d0": pytest.approx(NOW + 10 * H, abs=60)}


def test_what_retention_frees_is_reckoned_in() -> None:
    assert full(observer(watching()), grows(HOUR)) == {}


def test_log_dirs_of_one_file_system_are_full_together_and_others_are_not() -> None:
    rows = [grows(), grows(partition=1, log_dir="/d1")]
    apart = watching(log_dir(free=10_000, device=1), log_dir("/d1", free=10_000, device=2))
    together = watching(log_dir(free=10_000, device=1), log_dir("/d1", free=10_000, device=1))
    assert full(observer(apart), *rows) == dict.fromkeys(("/d0", "/d1"), pytest.approx(NOW + 10 * H, abs=60))
    assert full(observer(together), *rows) == dict.fromkeys(("/d0", "/d1"), pytest.approx(NOW + 5 * H, abs=60))


def test_of_a_log_dir_that_cannot_be_read_and_of_an_agent_that_is_down_nothing_is_stated() -> None:
    gone = log_dir(up=False, free=-1, capacity=-1)
    assert full(observer(watching(gone)), grows()) == {}
    assert full(observer(agent("a1", broker(), log_dirs=(log_dir(free=10_000),), up=False)), grows()) == {}
    assert full(observer(watching()), orders(None, log_dir="/d0")) == {}


def test_what_others_have_taken_for_an_hour_counts_in_a_forecast() -> None:
    others, seen = DiskHistory(), view(new_table(grows()).snapshot(NOW))
    took = 5_000
    disk_found(seen, [watching(log_dir(free=10_000 + took))], MS - 3_600_000, others)
    found = disk_found(seen, [watching()], MS, others)
    (each,) = answer_of(found, "topic", 10).log_dirs
    assert (each.others_day, each.growth_over_ms) == (24 * took, 86_400_000)
    alone = dict(full_times(disk_found(seen, [watching()], MS)))[1, "/d0"] - NOW
    assert dict(full_times(found))[1, "/d0"] - NOW == pytest.approx(10_000 / (10_000 / alone + took / 3600), rel=0.01)


@each_row(
    ("isr", "end", "lacks"),
    [
        ((1,), 90, {2: 40}),  # of 400 bytes in 100 offsets
        ((1, 2), 90, {}),  # it is in sync: what it lacks comes with what is written
        ((1,), 100, {}),
        ((1,), 0, {2: 400}),
        (None, 90, {}),
    ],
)
def test_what_replicas_out_of_sync_have_still_to_copy_is_known_of_their_log_dirs(
    isr: tuple[int, ...] | None, end: int, lacks: dict[int, int]
) -> None:
    rows = [
        orders(facts((0, 400, 10), replicas=(1, 2), isr=isr), broker=each, agent=f"a{each}", leader=1, log_dir="/d0", log_end_offset=at)
        for each, at in ((1, 100), (2, end))
    ]
    agents = [agent(f"a{each}", broker(each), log_dirs=(log_dir(broker=each, free=10_000),)) for each in (1, 2)]
    found = disk_found(view(new_table(*rows).snapshot(NOW)), agents, MS)
    assert {each.broker: each.lacks for each in found.dirs if each.lacks} == lacks


def test_a_forecast_is_made_once_a_minute_and_anew_when_the_clock_is_set_back() -> None:
    made: list[int] = []
    times = FullTimes()

    def make() -> dict[tuple[int, str], float]:
        made.append(1)
        return {(1, "/d0"): float(len(made) + SOON_MS)}

    def made_at(*looks: int, filling: bool = False) -> list[float]:
        return [times.of(make, now, filling=filling)[1, "/d0"] - SOON_MS for now in looks]

    assert made_at(1000, 1000 + AGAIN_MS - 1, 1000 + AGAIN_MS, 500) == [1, 1, 2, 3]
    assert made_at(500 + FILLING_MS - 1, 500 + FILLING_MS, filling=True) == [3, 4]
    soon = SOON_MS * 1000
    assert made_at(soon, soon + FILLING_MS - 1, soon + FILLING_MS) == [5, 5, 6], "what is foretold comes"


def test_the_answer_has_the_sums_of_topics_and_of_what_agents_distinguish() -> None:
    table = new_table(grows(), grows(topic="stock", log_dir="/elsewhere"))
    found = disk_found(view(table.snapshot(NOW)), [watching()], MS)
    answer = answer_of(found, "topic", 10)
    (each,) = answer.log_dirs
    assert [(row.topic, row.taken, row.growth_day) for row in answer.rows] == [("orders", 49_000, pytest.approx(24_000, rel=0.05))]
    assert each.taken == 49_000 + 1 + 2 + 3 + 4 + 5 + 6
    assert (each.apparent, each.outlook) == (-1, "full")
    assert dict(full_times(found)) == {(1, "/d0"): each.full_ms / 1000}
    assert {kind.kind for kind in each.kinds} == {"segment", "index", "deleted", "delete", "stray", "future", "checkpoint"}
    assert answer.doubts == []


def test_the_metadata_log_is_in_the_rows_and_changes_no_forecast() -> None:
    metadata = grows(topic="__cluster_metadata")
    alone, both = (disk_found(view(new_table(*rows).snapshot(NOW)), [watching()], MS) for rows in ((grows(),), (grows(), metadata)))
    rows = {row.topic: row for row in answer_of(both, "topic", 10).rows}
    assert [(each.taken, each.segments, each.growth_day) for each in rows.values()][1:] == [(49_000, 49_000, rows["orders"].growth_day)]
    assert (rows["__cluster_metadata"].taken, rows["__cluster_metadata"].segments, rows["__cluster_metadata"].growth_day) == (49_000, 0, -1)
    assert dict(full_times(both)) == dict(full_times(alone))
    (each,) = answer_of(both, "topic", 10).log_dirs
    assert (each.replicas, each.taken) == (1, 49_000 + 1 + 2 + 3 + 4 + 5 + 6)


@each_row("query", ["by=size", "limit=0", "limit=1001", "limit=many", "limit=", "sort=taken", "by=%ff", "&".join(["by=dir"] * 1001)])
def test_a_query_that_is_not_understood_is_refused_with_a_sentence(query: str) -> None:
    with pytest.raises(UsageError):
        disk_page(disk_found(view(new_table(grows()).snapshot(NOW)), [watching()], MS), query, 1000)


def test_a_query_chooses_rows_and_what_is_sent_is_read_again() -> None:
    disks = disk_found(view(new_table(grows(), grows(topic="stock")).snapshot(NOW)), [watching()], MS)
    answer = disk_page(disks, "by=partition&limit=1", 1000)
    assert (len(answer.rows), answer.total, answer.rows[0].log_dir) == (1, 2, "/d0")
    assert DiskAnswer.decode(answer.encode()) == answer
    assert disk_page(disks, "", 1000).by == "topic"


def test_the_log_dirs_of_an_agent_that_is_down_are_named_and_nothing_is_stated_of_them() -> None:
    down = agent("a2", broker(2), log_dirs=(log_dir("/d9", 2, free=5),), up=False)
    answer = disk_page(disk_found(view(new_table(grows()).snapshot(NOW)), [watching(), down], MS), "", 1000)
    assert [(each.log_dir, each.up, each.problem) for each in answer.log_dirs] == [
        ("/d0", True, ""),
        ("/d9", False, "agent a2 does not answer"),
    ]
    assert answer.doubts == ["log dir /d9 cannot be read: agent a2 does not answer"]


SIZED = '{"topic":{"retention.ms":"604800000","retention.bytes":"60000","segment.ms":"3600000"}}'
CHECK_MS, UNLINK_MS = 300_000, 60_000


@each_row("configs", [WEEK, HOUR, SIZED])
def test_the_next_space_is_free_after_the_next_deletion_that_the_list_of_partitions_shows(configs: str) -> None:
    seen = view(new_table(grows(configs)).snapshot(NOW))
    (row,) = answer_of(disk_found(seen, [watching()], MS), "partition", 10).rows
    next_ms = int(seen.logs["next_deletion_ms"][0])
    assert next_ms > 0
    assert row.next_ms == max(next_ms, MS) + CHECK_MS + UNLINK_MS
    assert bool(seen.logs["next_deletion_by_size"][0]) == (configs == SIZED)


def test_a_broker_without_a_process_frees_nothing_until_it_is_started() -> None:
    table = new_table(grows(), grows(topic="stock"))
    table.set_context(away=frozenset({1}))
    seen = view(table.snapshot(NOW))
    for by, count in (("partition", 2), ("topic", 2), ("dir", 1)):
        answer = answer_of(disk_found(seen, [watching()], MS), by, 10)
        assert [(each.next_ms, each.next_start_of) for each in answer.rows] == [(-1, 1)] * count
    assert (answer.log_dirs[0].next_ms, answer.log_dirs[0].next_start_of) == (-1, 1)
