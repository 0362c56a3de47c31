"""What a range says of transactions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import StartSource, Step
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.transaction_steps import NO_STEPS, AppendTimes, Steps, steps_from, steps_of
from streaming.simulator.batch_writer import Batch, MarkerKind, Record, control_key
from tests.builders import NOW, abort, batch, commit
from tests.formats.segments import Content, written
from tests.tables import each_row

SEEN = AppendTimes.seen(NOW + 77, NOW + 77)


def data(producer: int, *, epoch: int = 0, records: int = 1, timestamp: int = NOW) -> Batch:
    return batch(records, producer=producer, epoch=epoch, timestamp=timestamp, transactional=True)


def headers(content: Content) -> Batches:
    return read_headers(content.buffer, np.array(content.positions, np.int64))


def reported(batches: Sequence[Batch], times: AppendTimes = SEEN, *, singly: bool = False, base_offset: int = 0) -> Steps:
    content = written(batches, base_offset=base_offset)
    return steps_of(headers(content), content.buffer, times, singly=singly)


def summary(steps: Steps) -> list[tuple[Step, int, int, int]]:
    """Kind, producer and offsets of each step."""
    return [
        (Step(step), producer, first, following)
        for step, producer, first, following in zip(
            *(steps[name].tolist() for name in ("step", "producer_id", "first_offset", "next_offset")), strict=True
        )
    ]


def test_ordinary_batches_say_nothing() -> None:
    assert reported([batch(3), batch(1, producer=7)]) is NO_STEPS
    assert reported([]) is NO_STEPS


def test_what_one_producer_wrote_between_its_markers_is_one_row() -> None:
    steps = reported(
        [data(7), batch(2), data(8, records=3), data(7, records=2), commit(7), data(7, epoch=1), abort(8), data(8)], base_offset=100
    )
    assert summary(steps) == [
        (Step.DATA, 7, 100, 108),
        (Step.DATA, 8, 103, 106),
        (Step.COMMIT, 7, 108, 109),
        (Step.DATA, 7, 109, 110),
        (Step.ABORT, 8, 110, 111),
        (Step.DATA, 8, 111, 112),
    ]
    content = written([data(7), batch(2), data(8, records=3), data(7, records=2)])
    sizes = [entry.size for entry in content.entries]
    assert steps["bytes"][:2].tolist() == [sizes[0] + sizes[3], sizes[2]]
    assert steps["bytes_before"][:2].tolist() == [0, sizes[0] + sizes[1]]


def test_reported_singly_every_batch_is_a_row() -> None:
    steps = reported([data(7), batch(2), data(7, records=2), commit(7)], singly=True)
    assert summary(steps) == [(Step.DATA, 7, 0, 1), (Step.DATA, 7, 3, 5), (Step.COMMIT, 7, 5, 6)]


def test_the_epoch_of_a_row_is_that_of_its_last_batch_and_of_a_marker_its_own() -> None:
    steps = reported([data(7, epoch=3), data(7, epoch=4), commit(7, epoch=5)])
    assert steps["producer_epoch"].tolist() == [4, 5]


def test_seen_as_it_was_appended_the_agents_clock_counts() -> None:
    steps = reported([data(7, timestamp=5), commit(7, timestamp=6)])
    assert steps["source"].tolist() == [StartSource.SEEN, 0]
    assert steps["start_ms"].tolist() == steps["last_ms"].tolist() == [NOW + 77, NOW + 77]


def test_found_on_disk_the_clients_clock_counts_between_the_times_of_the_files() -> None:
    times = AppendTimes.recorded(NOW - 10, NOW + 10)
    batches = [data(7, records=3), data(8, timestamp=5), data(9, timestamp=NOW + 10**9), commit(7, timestamp=NOW + 4)]
    steps = reported(batches, times)
    assert steps["source"].tolist() == [StartSource.RECORDED] * 3 + [0]
    assert steps["start_ms"].tolist() == [NOW, NOW - 10, NOW + 10, NOW + 4]
    assert steps["last_ms"].tolist() == [NOW + 2, NOW - 10, NOW + 10, NOW + 4]


@each_row(
    ("change", "start"),
    [
        pytest.param({"log_append_time": NOW + 3}, NOW + 3, id="the broker's time of append stands in the largest timestamp alone"),
        pytest.param({"delete_horizon": NOW + 9}, NOW + 4, id="a delete horizon stands in the place of the base timestamp"),
        pytest.param({"records": (), "last_offset_delta": 0, "max_timestamp": NOW + 6}, NOW + 6, id="emptied by compaction"),
        pytest.param({"records": (Record(value=b"", timestamp=-1),)}, NOW + 10, id="no timestamp at all: younger rather than older"),
    ],
)
def test_where_the_beginning_of_a_batch_has_no_time_of_its_own(change: dict[str, object], start: int) -> None:
    one = replace(data(7, timestamp=NOW + 4), **change)
    assert reported([one], AppendTimes.recorded(NOW - 10, NOW + 10))["start_ms"].tolist() == [start]


def test_markers_of_an_unusual_shape_are_read_exactly() -> None:
    horizon = replace(commit(7), delete_horizon=NOW - 86_400_000)
    later_version = replace(abort(8), records=(Record(b"\x00\x01\x00\x00", b"\x00\x00\x00\x00\x00\x01", NOW),))
    more_to_say = replace(commit(9), records=(Record(control_key(MarkerKind.COMMIT), bytes(8), NOW),))
    steps = reported([horizon, later_version, more_to_say, abort(7)])
    assert steps["step"].tolist() == [Step.COMMIT, Step.ABORT, Step.COMMIT, Step.ABORT]


def test_what_ends_nothing_is_passed_over() -> None:
    emptied = replace(commit(7), records=(), last_offset_delta=0, max_timestamp=NOW)
    of_another_type = replace(commit(7), records=(Record(b"\x00\x00\x00\x63", b"", NOW),))
    of_the_quorum = replace(commit(-1), transactional=False, records=(Record(control_key(MarkerKind.LEADER_CHANGE), b"\x00\x00", NOW),))
    outside = batch(1, producer=7)
    assert len(reported([emptied, of_another_type, of_the_quorum, outside])) == 0


def test_an_emptied_data_batch_still_belongs_to_its_transaction() -> None:
    emptied = replace(data(7), records=(), last_offset_delta=4, max_timestamp=NOW)
    assert summary(reported([emptied, data(7)])) == [(Step.DATA, 7, 0, 6)]


@pytest.mark.parametrize("value", [None, b"\x00"])
def test_a_marker_that_is_not_understood_is_an_error_with_its_position(value: bytes | None) -> None:
    first = data(7)
    damaged = replace(commit(7), records=(Record(control_key(MarkerKind.COMMIT), value, NOW),))
    size = written([first]).entries[0].size
    with pytest.raises(FormatError, match=f"marker of a transaction: .* at position {size}"):
        reported([first, damaged])


def test_of_a_data_batch_the_header_alone_is_enough() -> None:
    content = written([data(7, records=50)])
    steps = steps_of(headers(content), content.buffer[:61], SEEN)
    assert summary(steps) == [(Step.DATA, 7, 0, 50)]


producers = st.sampled_from([3, 4, 5, 70_000, 2**40])
transactional = st.one_of(
    st.builds(data, producers, epoch=st.integers(0, 3), records=st.integers(1, 3), timestamp=st.integers(NOW - 99, NOW + 99)),
    st.builds(commit, producers, timestamp=st.integers(NOW - 99, NOW + 99)),
    st.builds(abort, producers, epoch=st.integers(0, 3)),
    st.builds(batch, st.integers(1, 3)),
)
logs = st.lists(transactional, max_size=25)


@given(logs, st.data())
def test_cut_at_any_batch_the_rest_is_reported_as_if_nothing_had_been_before(batches: list[Batch], draw: st.DataObject) -> None:
    content = written(batches)
    every = headers(content)
    cut = draw.draw(st.integers(0, len(every)))
    offset = int(every.base_offset[cut]) if cut < len(every) else content.next_offset
    steps = steps_of(every, content.buffer, SEEN, singly=True)
    rest = steps_of(every.take(slice(cut, None)), content.buffer, SEEN, singly=True)
    assert steps_from(steps, offset, int(every.size[:cut].sum())).tolist() == rest.tolist()


@given(st.lists(transactional, max_size=16), st.booleans())
def test_a_handful_of_batches_says_the_same_as_among_many(batches: list[Batch], singly: bool) -> None:
    times = AppendTimes.recorded(NOW - 50, NOW + 50)
    alone, among_many = (reported(some, times, singly=singly) for some in (batches, [*batches, *[batch()] * 20]))
    assert alone.tolist() == among_many.tolist()
