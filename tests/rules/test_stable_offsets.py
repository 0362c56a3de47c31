"""High watermark and last stable offset."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.catalog import UNREADABLE
from streaming.rules.partition_values import Copies, Sizes, Stable, Undecided, high_watermarks, stable_offsets
from tests.tables import each_row


class Copy(NamedTuple):
    broker: int
    end_offset: int
    checkpoint: int = -1
    leads: bool = False
    in_sync: bool = False
    isr: int = -1
    log_start: int = 0
    silent: bool = False
    partition: int = 0
    stands: bool = False
    fenced: bool = False


class Transaction(NamedTuple):
    first_offset: int
    marker_offset: int = -1
    bytes_at: int = -1
    replica: int = 0


def columns(copies: Sequence[Copy]) -> Copies:
    flags = ("leads", "in_sync", "stands", "fenced", "silent")
    return Copies(
        **{name: np.array([getattr(one, name) for one in copies], np.bool_ if name in flags else np.int64) for name in Copy._fields}
    )


def marks(*copies: Copy, assume_replicated: bool = False) -> list[int]:
    found: list[int] = high_watermarks(columns(copies), assume_replicated=assume_replicated).tolist()
    return found


def stable(
    copies: Sequence[Copy], high_watermark: Sequence[int], transactions: Sequence[Transaction] = (), appended: int = 0, log: int = -1
) -> Stable:
    undecided = Undecided(**{name: np.array([getattr(one, name) for one in transactions], np.int64) for name in Transaction._fields})
    sizes = Sizes(appended=np.full(len(copies), appended), log=np.full(len(copies), log))
    return stable_offsets(columns(copies), np.array(high_watermark), undecided, sizes)


LEADER = Copy(1, 100, 80, leads=True, in_sync=True, isr=3)


@each_row(
    ("expected", "copies"),
    [
        pytest.param(100, [LEADER._replace(isr=1)], id="in sync alone: its end"),
        pytest.param(100, [LEADER._replace(isr=1, checkpoint=-1)], id="in sync alone and new: its end"),
        pytest.param(80, [LEADER._replace(isr=1, stands=True)], id="in sync alone below min ISR: the checkpoint"),
        pytest.param(
            80, [LEADER._replace(isr=2, stands=True), Copy(2, 90, in_sync=True, isr=2, stands=True)], id="below min ISR: the checkpoint"
        ),
        pytest.param(-1, [LEADER._replace(isr=1, stands=True, checkpoint=-1)], id="below min ISR without an entry: not known"),
        pytest.param(
            95, [LEADER._replace(isr=2), Copy(2, 98, in_sync=True, isr=2), Copy(3, 95, isr=2)], id="one that may be about to join holds it"
        ),
        pytest.param(
            98, [LEADER._replace(isr=2), Copy(2, 98, in_sync=True, isr=2), Copy(3, 95, isr=2, fenced=True)], id="no fenced one can join"
        ),
        pytest.param(-1, [LEADER._replace(checkpoint=UNREADABLE)], id="a checkpoint that cannot be read: not known"),
        pytest.param(100, [LEADER._replace(isr=1, checkpoint=UNREADABLE)], id="a checkpoint that cannot be read, in sync alone: its end"),
        pytest.param(
            -1, [LEADER._replace(checkpoint=UNREADABLE), Copy(2, 90, 70, in_sync=True, isr=3)], id="that of the leader is asked, no other"
        ),
        pytest.param(-1, [Copy(2, 90, UNREADABLE)], id="no metadata, a checkpoint that cannot be read: not known"),
        pytest.param(90, [LEADER, Copy(2, 90, in_sync=True, isr=3), Copy(3, 95, in_sync=True, isr=3)], id="what all in sync hold"),
        pytest.param(80, [LEADER, Copy(2, 70, in_sync=True, isr=3), Copy(3, 95, in_sync=True, isr=3)], id="the checkpoint is further"),
        pytest.param(80, [LEADER, Copy(2, 90, in_sync=True, isr=3)], id="one in sync is not observed: the checkpoint"),
        pytest.param(80, [LEADER, Copy(2, 90, in_sync=True, isr=3), Copy(2, 90, in_sync=True, isr=3)], id="a copy of a disk is no replica"),
        pytest.param(
            80, [LEADER, Copy(2, 90, in_sync=True, isr=3), Copy(3, 95, in_sync=True, isr=3, silent=True)], id="a silent one is not observed"
        ),
        pytest.param(
            98, [LEADER._replace(isr=2), Copy(2, 98, in_sync=True, isr=2), Copy(3, 5, isr=2)], id="what is not in sync holds nothing"
        ),
        pytest.param(-1, [LEADER._replace(checkpoint=-1)], id="no entry: not known"),
        pytest.param(100, [Copy(1, 100, in_sync=True, isr=1)], id="no entry, in sync alone, and nobody leads: its end"),
        pytest.param(
            95,
            [LEADER._replace(isr=2, checkpoint=-1), Copy(2, 98, in_sync=True, isr=2), Copy(3, 95, isr=2)],
            id="no entry: any that is not in sync may be about to join",
        ),
        pytest.param(100, [LEADER._replace(checkpoint=130)], id="never ahead of what was read"),
        pytest.param(60, [Copy(2, 90, 60, in_sync=True, isr=2)], id="the leader is not observed: its own checkpoint"),
        pytest.param(70, [Copy(2, 90, 70, in_sync=True, isr=3), LEADER._replace(checkpoint=60)], id="never below its own checkpoint"),
        pytest.param(60, [Copy(2, 90, 60)], id="no metadata: its own checkpoint"),
        pytest.param(-1, [Copy(2, 90)], id="no metadata, no entry: not known"),
    ],
)
def test_the_high_watermark(expected: int, copies: list[Copy]) -> None:
    assert marks(*copies)[0] == expected


def test_without_metadata_the_end_may_be_assumed_to_be_replicated() -> None:
    assert marks(Copy(2, 90, 60), LEADER._replace(partition=1), assume_replicated=True) == [90, 80]


def test_a_follower_shows_the_mark_of_its_partition_as_far_as_its_own_log_goes() -> None:
    copies = [LEADER._replace(isr=2), Copy(2, 90, 10, in_sync=True, isr=2), Copy(3, 5, 5, isr=2), LEADER._replace(partition=1, isr=1)]
    assert marks(*copies) == [90, 90, 5, 100]


def test_nothing_observed_is_nothing_asked() -> None:
    assert marks() == []


@each_row(
    ("expected", "transactions"),
    [
        pytest.param(100, [], id="nothing undecided: the high watermark"),
        pytest.param(40, [Transaction(70), Transaction(40)], id="the oldest open one"),
        pytest.param(50, [Transaction(50, marker_offset=100)], id="closed, its marker not replicated yet"),
        pytest.param(100, [Transaction(50, marker_offset=99)], id="closed and replicated"),
        pytest.param(100, [Transaction(100)], id="begins at the high watermark"),
        pytest.param(10, [Transaction(4)], id="its first batch is deleted: the log start"),
        pytest.param(100, [Transaction(40, replica=1)], id="of another replica"),
    ],
)
def test_the_last_stable_offset(expected: int, transactions: list[Transaction]) -> None:
    found = stable([Copy(1, 120, log_start=10), Copy(2, 120, log_start=10)], [100, 100], transactions)
    assert (found.last_stable_offset[0], found.lag[0]) == (expected, 100 - expected)


@each_row(
    ("expected", "high_watermark", "transaction", "log"),
    [
        pytest.param(4000, 100, Transaction(60, bytes_at=6000), -1, id="counted since its first batch"),
        pytest.param(2000, 80, Transaction(60, bytes_at=6000), -1, id="the part of it that is replicated, by offsets"),
        pytest.param(2000, 100, Transaction(60), 5000, id="it began before anything was read: by offsets"),
        pytest.param(1000, 80, Transaction(60), 5000, id="the part that is replicated of it"),
        pytest.param(-1, 100, Transaction(60), -1, id="nothing to estimate by"),
        pytest.param(0, 60, Transaction(60), -1, id="nothing in between"),
    ],
)
def test_bytes_between_them(expected: int, high_watermark: int, transaction: Transaction, log: int) -> None:
    assert stable([Copy(1, 100)], [high_watermark], [transaction], appended=10_000, log=log).lag_bytes.tolist() == [expected]


copies = st.builds(
    Copy,
    st.integers(1, 3),
    st.integers(50, 100),
    st.integers(-1, 110),
    st.booleans(),
    st.booleans(),
    st.integers(-1, 3),
    st.integers(0, 50),
    st.booleans(),
    st.integers(0, 3),
)


@given(st.lists(copies, max_size=8), st.booleans())
def test_each_partition_for_itself_and_each_mark_inside_its_log(drawn: list[Copy], assume_replicated: bool) -> None:
    drawn = [one._replace(isr=next(other.isr for other in drawn if other.partition == one.partition)) for one in drawn]
    found = marks(*drawn, assume_replicated=assume_replicated)
    assert all(mark == -1 or one.log_start <= mark <= one.end_offset for one, mark in zip(drawn, found, strict=True))
    for number in {one.partition for one in drawn}:
        alone = [one._replace(partition=0) for one in drawn if one.partition == number]
        expected = [mark for one, mark in zip(drawn, found, strict=True) if one.partition == number]
        assert marks(*alone, assume_replicated=assume_replicated) == expected


@given(
    st.lists(st.builds(Transaction, st.integers(0, 100), st.sampled_from([-1, 60, 90, 100]), st.just(-1), st.integers(0, 2)), max_size=8),
    st.tuples(*[st.integers(10, 100)] * 3),
)
def test_the_last_stable_offset_is_the_one_of_a_plain_look(transactions: list[Transaction], high_watermark: tuple[int, int, int]) -> None:
    found = stable([Copy(broker, 100, log_start=10) for broker in range(3)], high_watermark, transactions)
    for replica, mark in enumerate(high_watermark):
        holding = [t.first_offset for t in transactions if t.replica == replica and (t.marker_offset < 0 or t.marker_offset >= mark)]
        first = min(holding, default=mark)
        assert found.last_stable_offset[replica] == (max(10, first) if first < mark else mark)
