"""What a log's own files show of its transactions at an offset in the middle of it."""

import os
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.broker.disk.locate import find_offset, window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.watcher.bootstrap import Past, Replay
from streaming.common.rows import StartSource, Step
from streaming.simulator.batch_writer import Batch
from streaming.simulator.log import PartitionLog
from streaming.simulator.segment_writer import LogConfig
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.scratch import scratch
from tests.simulated import write_part

LIMIT = 100


def data(producer: int, *, records: int = 1, timestamp: int = NOW, sequence: int = 0) -> Batch:
    return batch(records, producer=producer, timestamp=timestamp, transactional=True, sequence=sequence)


def past(log: PartitionLog, offset: int | None = None) -> Past:
    """The state of a log at an offset, by default at its end, replayed in one piece."""
    segments, buffer = list_segments(log.directory), window()
    end = find_offset(segments, None, buffer).next_offset if offset is None else offset
    replay = Replay(log.directory, segments, end, producers_limit=LIMIT, buffer=buffer)
    replay.advance(segments, end)
    return replay.past()


def opened(past: Past) -> list[tuple[int, int]]:
    return sorted(zip(past.opened["producer_id"].tolist(), past.opened["first_offset"].tolist(), strict=True))


def at(path: Path, time_ms: int) -> None:
    os.utime(path, ns=(time_ms * 1_000_000,) * 2)


def test_from_the_snapshot_at_the_offset_nothing_has_to_be_replayed(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7, records=2, timestamp=NOW - 5000), data(8), commit(8, epoch=0))
    log.roll()
    log.append(data(9))
    at(list_segments(log.directory)[0].path, NOW - 1000)
    found = past(log, 4)
    assert (found.begins, found.next_offset, found.cold, found.whole, found.doubts) == (4, 4, False, True, ())
    (step,) = found.ongoing
    reported = ("step", "source", "producer_id", "first_offset", "next_offset", "bytes_before", "start_ms")
    assert {name: int(step[name]) for name in reported} == {
        "step": Step.ONGOING,
        "source": StartSource.RECORDED,
        "producer_id": 7,
        "first_offset": 0,
        "next_offset": 2,
        "bytes_before": -1,
        "start_ms": NOW - 5000,
    }
    assert found.producers.active == 2


def test_a_transaction_whose_data_is_deleted_is_still_seen(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7, timestamp=NOW + 10**9))
    log.roll()
    log.append(batch(1))
    snapshot = log.directory / f"{1:020}.snapshot"
    at(snapshot, NOW + 30)
    log.delete_records(1)
    log.delete_old_segments(NOW)
    found = past(log)
    (step,) = found.ongoing
    assert (int(step["source"]), int(step["start_ms"]), int(step["last_ms"])) == (StartSource.SNAPSHOT, NOW + 30, NOW + 30)
    assert not found.cold


def test_a_transaction_whose_data_is_deleted_is_seen_in_a_later_snapshot_alone(tmp_path: Path) -> None:
    """A start leaves the snapshot at the end of a log alone, if DeleteRecords has left one segment."""
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7, records=2), data(8), data(9), batch(1))
    log.roll()
    log.append(commit(8, epoch=0), data(9), data(10))
    log.roll()
    first, second = (log.directory / f"{offset:020}.snapshot" for offset in (5, 8))
    first.unlink()
    log.delete_records(5)
    log.config = LogConfig(retention_ms=-1)
    log.delete_old_segments(NOW)
    at(second, NOW + 30)
    found = past(log, 5)
    assert (found.begins, found.cold, opened(found)) == (5, True, [(7, 0), (9, 3)])
    assert found.ongoing["next_offset"].tolist() == [2, 5]
    assert found.ongoing["source"].tolist() == [StartSource.SNAPSHOT] * 2
    assert opened(past(log, 8)) == [(7, 0), (9, 3), (10, 7)]
    second.write_bytes(b"x")
    assert opened(past(log, 5)) == []


def test_without_a_snapshot_at_its_first_offset_a_log_is_cold(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders", base_offset=50)
    log.append(data(7), data(8))
    found = past(log)
    assert (found.cold, found.whole, opened(found)) == (True, True, [(7, 50), (8, 51)])
    assert not past(partition(log_dir(tmp_path, "d1"), "orders")).cold


def test_a_damaged_snapshot_is_named_and_an_older_one_stands_in(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7))
    log.roll()
    log.append(data(8))
    log.roll()
    log.append(data(9))
    newest = log.directory / f"{2:020}.snapshot"
    newest.write_bytes(newest.read_bytes()[:-1])
    found = past(log)
    assert (found.begins, opened(found), found.whole) == (1, [(7, 0), (8, 1), (9, 2)], True)
    (doubt,) = found.doubts
    assert str(newest) in doubt
    older = log.directory / f"{1:020}.snapshot"
    older.write_bytes(b"\x00\x01garbage that is long enough")
    found = past(log)
    assert (found.begins, opened(found), len(found.doubts)) == (0, [(7, 0), (8, 1), (9, 2)], 2)


def test_damage_in_the_log_ends_what_can_be_reported(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders", index_interval_bytes=1)
    log.append(data(7), data(8), data(9))
    log.roll()
    log.append(data(5))
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()
    segment = list_segments(log.directory)[0].path
    content = bytearray(segment.read_bytes())
    second = log.segments[0].entries[0].size
    content[second + 16] = 9  # the magic byte of the second batch
    segment.write_bytes(content)
    found = past(log)
    assert (found.whole, found.next_offset, opened(found)) == (False, 1, [(7, 0)])
    assert str(log.directory) in found.doubts[0]


def test_a_torn_batch_at_the_end_is_no_damage(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7))
    write_part(log, data(8), size=70)
    found = past(log)
    assert (found.whole, found.next_offset, opened(found)) == (True, 1, [(7, 0)])


KINDS = st.one_of(
    st.tuples(st.just("data"), st.integers(1, 4)),
    st.tuples(st.sampled_from(["commit", "abort"]), st.integers(1, 4)),
    st.tuples(st.just("plain"), st.integers(1, 3)),
    st.tuples(st.just("roll"), st.just(0)),
)


@settings(max_examples=40)
@given(st.lists(KINDS, min_size=1, max_size=40), st.data())
def test_at_every_offset_it_is_what_a_look_at_the_whole_log_shows(actions: list[tuple[str, int]], draw: st.DataObject) -> None:
    with scratch() as cursor:
        log = partition(log_dir(Path(cursor)), "orders", index_interval_bytes=draw.draw(st.sampled_from([1, 200])))
        now_open: dict[int, int] = {}
        seen = set[int]()
        reported = {0: {}}
        for action, number in actions:
            offset = log.log_end_offset
            if action == "roll":
                if log.active.size:
                    log.roll()
                continue
            if action == "data":
                log.append(data(number, records=2))
                seen.add(number)
                now_open.setdefault(number, offset)
            elif action == "plain":
                log.append(batch(number))
            else:
                log.append((commit if action == "commit" else abort)(number, epoch=0))
                seen.add(number)
                now_open.pop(number, None)
            reported[log.log_end_offset] = dict(now_open)
        for snapshot in draw.draw(st.sets(st.sampled_from(sorted(log.directory.glob("*.snapshot")) or [log.directory / "none"]))):
            snapshot.write_bytes(b"")
        offset = draw.draw(st.sampled_from(sorted(reported)))
        assert opened(past(log, offset)) == sorted(reported[offset].items())
        found = past(log)
        assert opened(found) == sorted(now_open.items())
        assert (found.next_offset, found.whole) == (log.log_end_offset, True)
        assert (found.producers.active, {*found.opened["bytes_at"].tolist()}) == (len(seen), {-1} if now_open else set())
        assert np.isin(found.ongoing["source"], [StartSource.RECORDED]).all()
        in_steps = in_pieces(log, offset, draw)
        whole = past(log, offset)
        assert in_steps.ongoing.tobytes() == whole.ongoing.tobytes()
        assert in_steps.producers.entries.tobytes() == whole.producers.entries.tobytes()
        assert (in_steps.next_offset, in_steps.whole, in_steps.doubts) == (whole.next_offset, whole.whole, whole.doubts)


def in_pieces(log: PartitionLog, offset: int, draw: st.DataObject) -> Past:
    """The same by a replay with budgets and ends of all kinds, through a small window, from one listing to the next."""
    segments = list_segments(log.directory)
    boundaries = sorted({0, offset, *(entry.last_offset + 1 for segment in log.segments for entry in segment.entries)})
    ends = [end for end in boundaries if end <= offset]
    buffer = window()[: draw.draw(st.sampled_from([200, 500, 8 << 20]))]
    replay = Replay(log.directory, segments, offset, producers_limit=LIMIT, buffer=buffer)
    end = draw.draw(st.sampled_from([end for end in ends if end >= replay.begins] or [offset]))
    while not replay.advance(list_segments(log.directory), end, draw.draw(st.integers(1, 2000))) or end < offset:
        end = draw.draw(st.sampled_from([later for later in ends if later >= end]))
    return replay.past()
