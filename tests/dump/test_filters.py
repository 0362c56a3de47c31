"""What is left when something is asked for: the same as choosing from the whole dump, wherever the indexes lead."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.terminal.dump.request import Filters
from tests.builders import NOW, abort, batch, commit
from tests.dump.running import LOGS, dumped, findings_at, rows
from tests.dump.writing import batch_positions, damage, log_of, segment_name

PAY = LOGS / "transactions" / "pay-0"
TRUNCATED = LOGS / "truncation" / "tr-0"
OFFSETS = st.none() | st.integers(0, 300)


def is_wanted(filters: Filters) -> Callable[[dict[str, Any]], bool]:
    def wanted(row: dict[str, Any]) -> bool:
        return (
            (filters.from_offset is None or row["last_offset"] >= filters.from_offset)
            and (filters.to_offset is None or row["base_offset"] <= filters.to_offset)
            and (filters.from_time is None or row["max_timestamp"] >= filters.from_time)
            and (filters.producer_id is None or row["producer_id"] == filters.producer_id)
            and (not filters.transactional or row["transactional"])
        )

    return wanted


def times_of(directory: Path) -> st.SearchStrategy[int | None]:
    times = sorted({row["max_timestamp"] for row in rows(directory)})
    return st.none() | st.sampled_from(times) | st.integers(times[0] - 1, times[-1] + 1)


@pytest.mark.parametrize("directory", [PAY, TRUNCATED], ids=lambda path: path.name)
@pytest.mark.parametrize("verify", [False, True], ids=["looked up", "read whole"])
@given(data=st.data())
def test_batches_are_those_of_the_whole_dump(directory: Path, verify: bool, data: st.DataObject) -> None:
    filters = Filters(
        from_offset=data.draw(OFFSETS),
        to_offset=data.draw(OFFSETS),
        from_time=data.draw(times_of(directory)),
        producer_id=data.draw(st.none() | st.integers(0, 5)),
        transactional=data.draw(st.booleans()),
    )
    whole = dumped(directory, format="json", verify=verify).rows
    found = dumped(directory, format="json", verify=verify, filters=filters).rows
    assert found == [row for row in whole if is_wanted(filters)(row)]


@given(from_offset=OFFSETS, to_offset=OFFSETS, from_time=times_of(PAY))
def test_records_are_those_of_the_whole_dump(from_offset: int | None, to_offset: int | None, from_time: int | None) -> None:
    filters = Filters(from_offset=from_offset, to_offset=to_offset, from_time=from_time)
    wanted = [
        row
        for row in rows(PAY, records=True)
        if (from_offset is None or row["offset"] >= from_offset)
        and (to_offset is None or row["offset"] <= to_offset)
        and (from_time is None or row["timestamp"] >= from_time)
    ]
    assert rows(PAY, records=True, filters=filters) == wanted


def test_an_offset_is_looked_up_and_what_lies_before_it_is_not_read(tmp_path: Path) -> None:
    directory = log_of(tmp_path, [batch(2) for _ in range(50)])
    damage(directory / segment_name(), 8, b"\0\0\0\1")  # the length of the first batch: whoever reads it finds it
    assert findings_at(dumped(directory)) == [(segment_name(), 0)]
    assert [row["base_offset"] for row in rows(directory, filters=Filters(from_offset=90))] == [90, 92, 94, 96, 98]


def test_a_time_is_looked_up_and_what_lies_before_it_is_not_read(tmp_path: Path) -> None:
    directory = log_of(tmp_path, [batch(1, timestamp=NOW + 10 * n) for n in range(50)])
    damage(directory / segment_name(), 8, b"\0\0\0\1")
    found = rows(directory, filters=Filters(from_time=NOW + 455))
    assert [row["max_timestamp"] - NOW for row in found] == [460, 470, 480, 490]


def test_segments_that_hold_nothing_wanted_are_not_opened(tmp_path: Path) -> None:
    directory = log_of(tmp_path, [batch(5)], [batch(5)], [batch(5)])
    for base_offset in (0, 10):
        damage(directory / segment_name(base_offset), 8, b"\0\0\0\1")
    assert [row["base_offset"] for row in rows(directory, filters=Filters(from_offset=7, to_offset=8))] == [5]


@pytest.mark.parametrize("extension", ["index", "timeindex"])
@pytest.mark.parametrize("lie", [b"\xff" * 400, b"\0" * 400, bytes(range(100)) * 4], ids=["ones", "zeros", "anything"])
def test_an_index_that_lies_costs_time_and_nothing_else(tmp_path: Path, extension: str, lie: bytes) -> None:
    directory = log_of(tmp_path, [batch(2, timestamp=NOW + 10 * n) for n in range(50)])
    index = (directory / segment_name()).with_suffix(f".{extension}")
    index.write_bytes(lie)
    assert [row["base_offset"] for row in rows(directory, filters=Filters(from_offset=97))] == [96, 98]
    assert [row["base_offset"] for row in rows(directory, filters=Filters(from_time=NOW + 480))] == [96, 98]


def test_an_index_that_is_ahead_of_its_offset_is_not_believed(tmp_path: Path) -> None:
    directory = log_of(tmp_path, [batch(2) for _ in range(50)])
    last = batch_positions(directory / segment_name())[-1]
    (directory / segment_name()).with_suffix(".index").write_bytes((1).to_bytes(4, "big") + last.to_bytes(4, "big"))
    assert len(rows(directory, filters=Filters(from_offset=10))) == 45


def test_markers_are_transactional(tmp_path: Path) -> None:
    data = batch(2, producer=7, transactional=True)
    directory = log_of(tmp_path, [batch(3), data, commit(7), batch(1), batch(1, producer=8, transactional=True), abort(8)])
    found = rows(directory, filters=Filters(transactional=True))
    assert [(row["base_offset"], row["control"]) for row in found] == [(3, False), (5, True), (7, False), (8, True)]
    assert [row["base_offset"] for row in rows(directory, filters=Filters(producer_id=7))] == [3, 5]
