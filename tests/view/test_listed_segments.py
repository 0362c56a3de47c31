"""The segments that pages and rounds share are made again as soon as something of them is another."""

from typing import Any

from streaming.cluster.view.listed_segments import Listed
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from tests.view.rows import log, new_table, states
from tests.worlds.retention import HOUR, NOW, facts

SEGMENTS = ((0, 500, 3000), (50, 300, 10))
ACTIVE = {"active_segment": 50, "active_position": 300, "active_max_timestamp_ms": 10}


def listed(table: Table, seconds: float) -> Listed:
    return view(table.snapshot(NOW + seconds)).retention.listed


def put(table: Table, **values: Any) -> None:
    given = {"leader": 1, "leader_epoch": 0, "log_end_offset": 100, "facts": facts(*SEGMENTS, configs=HOUR), **ACTIVE}
    table.apply(states(log("orders", **{**given, **values})))


def test_a_page_of_the_same_logs_takes_what_was_made_before() -> None:
    table = new_table()
    put(table)
    put(table, partition=1)
    first = listed(table, 0)
    assert len(first.items) == 2
    assert listed(table, 5) is first
    assert listed(table, 50) is first


def test_whatever_of_a_log_is_another_is_seen() -> None:
    table = new_table()
    changes: list[dict[str, Any]] = [
        {"log_end_offset": 101, "active_position": 400},
        {"log_end_offset": 101, "active_position": 400, "active_max_timestamp_ms": 20},
        {"log_end_offset": 120, "active_segment": 101, "active_position": 50},
        {"log_start_offset": 60},
        {"oldest_timestamp": 77, "facts": facts(*SEGMENTS, configs=HOUR, oldest_timestamp=77)},
        {"facts": facts(*SEGMENTS, configs='{"topic":{"retention.ms":"5"}}')},
        {"facts": facts(SEGMENTS[1], configs=HOUR)},
    ]
    for number, change in enumerate(changes):
        for partition in range(3):
            put(table, partition=partition)
        before = listed(table, number)
        put(table, partition=1, **change)
        after = listed(table, number)
        assert after is not before, change
        new = new_table()
        for partition in range(3):
            put(new, partition=partition)
        put(new, partition=1, **change)
        made = listed(new, number)
        assert after.limits == made.limits
        for name in ("base", "size", "largest", "log_start", "log_end", "high_watermark", "last_stable", "oldest_record"):
            assert getattr(after.logs, name).tolist() == getattr(made.logs, name).tolist(), (change, name)
