"""What came past its retention is said where Kafka deletes it for that, and nothing is said of what only passes by."""

from dataclasses import replace
from typing import Any

import pytest

from streaming.cluster.view.late_arrivals import CATCHES_UP_MS, LateArrivals, worst
from streaming.cluster.view.view import view
from streaming.rules.expired_arrivals import DAY_MS, RUN_MS, LateLooks
from tests.tables import each_row
from tests.view.rows import log, new_table
from tests.worlds.retention import BELOW, COMPACT, HOUR, MS, NOW, facts, orders

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
DUE = facts((0, 500, 9600), configs=HOUR)
"""A segment whose newest record is 9,600 s old, of a topic that keeps records for an hour."""

STAMPS = {
    LateLooks.REPLAY: (MS - 30 * DAY_MS, MS - 29 * DAY_MS),
    LateLooks.CLOCK: (MS - 30 * DAY_MS, MS - 30 * DAY_MS + MINUTE_MS),
    LateLooks.OLD: (MS - 30 * DAY_MS, MS - 40 * DAY_MS),
    LateLooks.NO_TIME: (0, 1),
    LateLooks.SECONDS: (NOW, NOW + 60),
}
"""The timestamps of the first and of the last batch of a run that took a minute, by what it looks like."""


def run(looks: LateLooks, ago_ms: int = 0, **more: int) -> dict[str, Any]:
    """The columns of a log whose last batch of a run came so long ago."""
    first, last = STAMPS[looks]
    return {
        "expired_since_ms": MS - ago_ms - MINUTE_MS,
        "expired_since_timestamp": first,
        "expired_before": 3,
        "expired_ms": MS - ago_ms,
        "expired_timestamp": last,
        "expired_offset": 20,
        "share_expired_records": 10,
    } | more


def late(*rows: dict[str, Any], after_ms: int = 0) -> tuple[LateArrivals, ...]:
    return view(new_table(*rows).snapshot((MS + after_ms) / 1000)).late


def found(packed: bytes | None = DUE, looks: LateLooks = LateLooks.CLOCK, ago_ms: int = 0, **more: Any) -> tuple[LateArrivals, ...]:
    return late(orders(packed, **run(looks, ago_ms), **more))


def test_it_is_reported_since_when_how_late_and_how_many_of_this_run() -> None:
    (one,) = found(ago_ms=1000)
    known = one.topic, one.since_ms, one.last_ms, one.delay_ms, one.limit_ms, one.records, one.looks, one.deleted
    last_ms = MS - 1000
    assert known == ("orders", last_ms - MINUTE_MS, last_ms, last_ms - STAMPS[LateLooks.CLOCK][1], HOUR_MS, 7, LateLooks.CLOCK, False)


def test_a_replay_that_still_catches_up_says_nothing() -> None:
    """A batch that is on time may come next, into the same segment, which then stays."""
    assert found(looks=LateLooks.REPLAY) == ()
    assert found(looks=LateLooks.REPLAY, ago_ms=CATCHES_UP_MS - 1) == ()
    (one,) = found(looks=LateLooks.REPLAY, ago_ms=CATCHES_UP_MS)
    assert (one.looks, one.records) == (LateLooks.REPLAY, 7)


def test_it_is_reported_though_nothing_more_comes_once_the_replay_has_ended() -> None:
    row = orders(DUE, **run(LateLooks.REPLAY))
    assert [len(late(row, after_ms=after)) for after in (0, CATCHES_UP_MS - 1, CATCHES_UP_MS, RUN_MS - 1, RUN_MS)] == [0, 0, 1, 1, 0]


@pytest.mark.parametrize("looks", sorted({*LateLooks} - {LateLooks.REPLAY}))
def test_whatever_else_it_looks_like_it_is_reported_at_once(looks: LateLooks) -> None:
    (one,) = found(looks=looks)
    assert one.looks is looks


def test_one_log_that_passes_by_does_not_silence_another() -> None:
    rows = [orders(DUE, partition=number, **run(looks)) for number, looks in enumerate([LateLooks.REPLAY, LateLooks.CLOCK])]
    assert [each.looks for each in late(*rows)] == [LateLooks.CLOCK]


def test_it_is_reported_for_an_hour() -> None:
    assert [len(found(ago_ms=ago)) for ago in (0, RUN_MS - 1, RUN_MS)] == [1, 1, 0]


@each_row(
    ("packed", "more", "deleted"),
    [
        pytest.param(DUE, {}, [False], id="its segment is due"),
        pytest.param(facts((0, 500, 10), configs=HOUR), {}, [], id="something newer is in the same segment"),
        pytest.param(facts((0, 500, 9600), (21, 300, 10), configs=HOUR), {}, [False], id="something newer is in the next one"),
        pytest.param(facts((0, 500, 9600), (20, 300, 10), configs=HOUR), {}, [], id="it is the first in a segment that stays"),
        pytest.param(facts((0, 500, 10), (10, 300, 9600), configs=HOUR), {}, [], id="it is behind a segment that stays"),
        pytest.param(facts((21, 500, 10), configs=HOUR), {"log_start_offset": 21}, [True], id="it was deleted"),
        pytest.param(facts((20, 500, 10), configs=HOUR), {"log_start_offset": 20}, [], id="all before it was deleted"),
        pytest.param(DUE, {"leader": 2, "leader_epoch": 5}, [], id="another broker leads"),
        pytest.param(DUE, {"expired_ms": -1}, [], id="nothing was late"),
        pytest.param(None, {}, [], id="nothing is known of its segments"),
        pytest.param(facts((0, 500, 9600), configs=BELOW), {}, [False], id="the broker's own limits are known"),
        pytest.param(facts((0, 500, 9600_000), configs='{"topic":{}}'), {}, [], id="the broker may set another one"),
        pytest.param(facts((0, 500, 9600_000), configs="{}"), {}, [], id="the limit is assumed"),
        pytest.param(facts((21, 500, 10), configs="{}"), {"log_start_offset": 21}, [], id="likewise, and it was deleted"),
        pytest.param(facts((0, 500, 9600), configs=COMPACT), {}, [], id="nothing is deleted for its age"),
        pytest.param(facts((0, 500, 9600), configs='{"topic":{"retention.ms":"-1"}}'), {}, [], id="it is kept for ever"),
    ],
)
def test_it_is_reported_where_it_is_known_that_it_goes(packed: bytes | None, more: dict[str, Any], deleted: list[bool]) -> None:
    row = orders(packed, **run(LateLooks.CLOCK) | more)
    assert [each.deleted for each in late(row)] == deleted


def test_records_of_which_it_is_not_known_how_many_came_before_are_all_of_them() -> None:
    (one,) = late(orders(DUE, **run(LateLooks.CLOCK, expired_before=-1)))
    assert one.records == 10


def test_the_worst_is_the_one_that_is_furthest_past_its_own_limit() -> None:
    (one,) = found()
    older, stricter = replace(one, delay_ms=9 * DAY_MS, limit_ms=8 * DAY_MS), replace(one, delay_ms=3 * DAY_MS, limit_ms=DAY_MS)
    assert worst([older, stricter, one][:2]) is stricter


def test_a_log_without_anything_late_is_none_of_them() -> None:
    assert late(log(leader=1, leader_epoch=0, facts=DUE)) == ()
