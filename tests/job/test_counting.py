"""What a run of the query has counted, as its driver follows it and as the process that plans reads it."""

from pathlib import Path

import pyarrow as pa
import pytest

from streaming.common.log_key import LogKey
from streaming.common.log_positions import KnownEnd
from streaming.spark.job import counting as counting_module
from streaming.spark.job.counting import Counting
from streaming.spark.source.counted_file import Arrived, Counted, read_counted
from tests.view.rows import departed, log, place, recalled, removed, states

FIRST, SECOND, OF_OTHER = LogKey(1, "orders", 0, ""), LogKey(1, "orders", 1, ""), LogKey(2, "orders", 0, "")


def arrived(agent: str, seq: int, journal: str = "r.1") -> dict[str, object]:
    return place("arrived", "", -1, broker=-1, agent=agent, topic_id=journal, log_end_offset=seq)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "counted"


def said(path: Path) -> Counted:
    found = read_counted(path)
    assert found is not None
    return found


def test_it_says_how_far_each_log_is_counted_and_what_has_arrived_of_each_agent(path: Path) -> None:
    counting = Counting(path, 0)
    first = log("orders", 0, log_end_offset=5, log_epoch=2)
    counting.take(states(first, log("orders", 1, log_end_offset=0), log("orders", 0, broker=2, log_end_offset=7), arrived("a", 3)))
    assert said(path).ends([1]) == {FIRST: KnownEnd(5, 2), SECOND: KnownEnd(0, -1)}
    assert said(path).ends([1, 2, 3]) == {FIRST: KnownEnd(5, 2), SECOND: KnownEnd(0, -1), OF_OTHER: KnownEnd(7, -1)}
    assert (said(path).arrived, said(path).brokers) == ({"a": Arrived("r.1", 3)}, {1, 2})
    counting.take(states(log("orders", 0, log_end_offset=4, log_epoch=3), arrived("b", 8), arrived("a", 1, "r.2")))
    assert said(path).ends([1])[FIRST] == KnownEnd(4, 3)
    assert said(path).arrived == {"a": Arrived("r.2", 1), "b": Arrived("r.1", 8)}, "an agent that has begun anew begins with less"


def test_a_log_that_has_left_is_not_among_them_until_it_comes_back(path: Path) -> None:
    counting = Counting(path, 0)
    counting.take(states(log("orders", 0, log_end_offset=5), log("orders", 1, log_end_offset=6)))
    counting.take(states(departed("orders", 0, log_end_offset=5), removed("orders", 1)))
    assert (said(path).ends([1]), said(path).brokers) == ({}, {1})
    counting.take(states(log("orders", 1, log_end_offset=9), log("bills", 0, log_end_offset=2), removed("never", 3)))
    assert said(path).ends([1]) == {SECOND: KnownEnd(9, -1), LogKey(1, "bills", 0, ""): KnownEnd(2, -1)}


def test_a_log_without_an_end_has_no_position(path: Path) -> None:
    counting = Counting(path, 0)
    counting.take(states(log("orders", 0, log_end_offset=-1), log("orders", 1, log_end_offset=5, log_epoch=-7)))
    assert said(path).ends([1]) == {SECOND: KnownEnd(5, -1)}


def test_many_logs_and_one_that_comes_twice_in_a_micro_batch(path: Path) -> None:
    counting = Counting(path, 0)
    counting.take(states(*(log("many", number, log_end_offset=number) for number in range(3000)), log("many", 7, log_end_offset=70)))
    counting.take(states(*(removed("many", number) for number in range(0, 3000, 2))))
    ends = said(path).ends([1])
    assert {key.partition: end.next_offset for key, end in ends.items()} == {
        number: 70 if number == 7 else number for number in range(1, 3000, 2)
    }


def test_a_run_with_an_earlier_state_says_nothing_before_all_of_it_is_recalled(path: Path) -> None:
    counting = Counting(path, 2)
    counting.take(states(log("orders", 0, log_end_offset=5), arrived("a", 3)))
    counting.keep()
    assert read_counted(path) is None
    counting.take(states(log("orders", 0, log_end_offset=5), recalled(1)))
    assert read_counted(path) is None
    counting.take(states(log("orders", 1, log_end_offset=6), recalled(0)))
    assert set(said(path).ends([1])) == {FIRST, SECOND}
    assert said(path).arrived == {"a": Arrived("r.1", 3)}


def test_what_an_earlier_run_has_counted_is_forgotten_whoever_brings_it_late(path: Path) -> None:
    """It may be beyond the states that the next one begins with: what lies between would never be counted."""
    earlier = Counting(path, 0)
    earlier.take(states(log("orders", 0, log_end_offset=9)))
    earlier.end()
    now = Counting(path, 1)
    assert not path.exists()
    earlier.take(states(log("orders", 0, log_end_offset=10)))
    earlier.keep()
    assert not path.exists()
    now.take(states(log("orders", 0, log_end_offset=5), recalled(0)))
    assert said(path).ends([1]) == {FIRST: KnownEnd(5, -1)}


def test_a_file_that_cannot_be_written_is_none_rather_than_an_old_one_and_comes_back(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counting = Counting(path, 0)
    counting.take(states(log("orders", 0, log_end_offset=5)))
    with monkeypatch.context() as broken:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        broken.setattr(counting_module, "write_counted", full)
        counting.take(states(log("orders", 0, log_end_offset=6)))
        assert (counting.failed, read_counted(path)) == (True, None)
        assert "what is counted cannot be written, nothing is planned without" in caplog.messages
    counting.keep()
    assert (counting.failed, said(path).ends([1])) == (False, {FIRST: KnownEnd(6, -1)})


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_removed_and_written_anew(path: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    counting = Counting(path, 0)
    counting.take(states(log("orders", 0, log_end_offset=5)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert read_counted(path) is None
    assert "what the job has counted cannot be read" in caplog.messages
    assert not path.exists()
    counting.keep()
    assert path.read_bytes() == whole


def test_a_file_that_lacks_logs_is_damaged(path: Path) -> None:
    counting = Counting(path, 0)
    counting.take(states(log("orders", 0, log_end_offset=5)))
    reader = pa.ipc.open_stream(path.read_bytes())
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, reader.schema).close()
    path.write_bytes(sink.getvalue().to_pybytes())
    assert read_counted(path) is None
