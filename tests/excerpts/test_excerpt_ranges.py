"""Ranges of excerpts: the same sums as the watcher's, and the transactions in them."""

from pathlib import Path

import pytest

from streaming.broker.disk.locate import find_offset, window
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.excerpts.excerpt_scan import ranges_of
from streaming.broker.excerpts.excerpt_transactions import UNKNOWN, end_transactions, open_at
from streaming.broker.journal.range_values import decode_steps
from streaming.broker.protocol.consumer_messages import EVERYTHING_SELECTED
from streaming.broker.watcher.bootstrap import Past
from streaming.common.event_row import Event
from streaming.common.rows import StartSource
from streaming.common.start_from import StartFrom
from streaming.rules.transaction_fold import NO_TRANSACTIONS
from streaming.simulator.batch_writer import Batch, Codec
from streaming.simulator.log import PartitionLog
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.excerpts.drained import drained, list_excerpts
from tests.frozen import unpack


def ranges(*log_dirs: Path, excerpt_bytes: int = 1 << 20) -> list[Event]:
    dirs = open_log_dirs(log_dirs)
    found = []
    for excerpt in list_excerpts(dirs, EVERYTHING_SELECTED, StartFrom.EARLIEST, excerpt_bytes):
        events, unread = drained(ranges_of(dirs, excerpt))
        assert unread is None
        found += events
    return found


def data(producer: int, *, records: int = 1, sequence: int = 0) -> Batch:
    return batch(records, producer=producer, sequence=sequence, transactional=True)


def test_a_range_for_each_leader_epoch_with_its_sums(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(3, codec=Codec.ZSTD), batch(1))
    log.append(batch(2), leader_epoch=1)
    first, second = ranges(log.directory.parent)
    sizes = [entry.size for entry in log.active.entries]
    assert (first.base_offset, first.next_offset, first.start_position, first.end_position) == (0, 4, 0, sum(sizes[:2]))
    assert (second.base_offset, second.next_offset, second.start_position, second.end_position) == (4, 6, sum(sizes[:2]), sum(sizes))
    assert (first.log_epoch, second.log_epoch, first.leads) == (0, 1, -1)
    assert (first.bytes, first.batches, first.records) == (sum(sizes[:2]), 2, 4)
    assert first.codec_bytes == (sizes[1], 0, 0, 0, sizes[0])
    assert (first.max_timestamp, second.max_timestamp) == (NOW + 2, NOW + 1)
    assert first.transactions is None
    assert first.seen_at == -1


@pytest.mark.parametrize("excerpt_bytes", [500, 5000, 1 << 30])
def test_sums_do_not_depend_on_where_segments_are_cut(tmp_path: Path, excerpt_bytes: int) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    whole, cut = ranges(*cluster.log_dirs, excerpt_bytes=1 << 40), ranges(*cluster.log_dirs, excerpt_bytes=excerpt_bytes)

    def sums(events: list[Event]) -> dict[object, list[int]]:
        found: dict[object, list[int]] = {}
        for each in events:
            row = found.setdefault(each.log, [0, 0, 0, 0])
            for item, value in enumerate((each.bytes, each.batches, each.records, *each.codec_bytes[:1])):
                row[item] += value
        return found

    assert sums(whole) == sums(cut)
    assert len(whole) <= len(cut)


def transactions(log: PartitionLog, excerpt_bytes: int = 200) -> tuple[list[dict[str, int]], list[tuple[int, int]]]:
    opened = NO_TRANSACTIONS
    rows = []
    for event in ranges(log.directory.parent, excerpt_bytes=excerpt_bytes):
        opened, ended = end_transactions(opened, decode_steps(event.transactions))
        rows += [{name: int(each[name]) for name in ended.dtype.names} for each in ended]
    return rows, list(zip(opened["producer_id"].tolist(), opened["bytes"].tolist(), strict=True))


def test_a_row_for_each_marker(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7, records=2), data(8), data(7, sequence=2))
    log.append(commit(9, timestamp=NOW + 5), commit(7, timestamp=NOW + 6), data(9), abort(8, timestamp=NOW + 7))
    sizes = [entry.size for entry in log.active.entries]
    for excerpt_bytes in (1, 200, 1 << 20):
        rows, opened = transactions(log, excerpt_bytes)
        named = ("producer_id", "committed", "first_offset", "next_offset", "marker_offset", "bytes")
        assert [tuple(row[name] for name in named) for row in rows] == [
            (9, 1, -1, -1, 4, 0),
            (7, 1, 0, 4, 5, sizes[0] + sizes[2]),
            (8, 0, 2, 3, 7, sizes[1]),
        ]
        assert [row["source"] for row in rows] == [0, StartSource.RECORDED, StartSource.RECORDED]
        assert opened == [(9, sizes[5])]


def open_there(log: PartitionLog, offset: int | None = None) -> Past:
    segments, buffer = list_segments(log.directory), window()
    at = find_offset(segments, offset, buffer).next_offset
    return open_at(log.directory, segments, at, buffer)


def test_what_is_open_in_the_middle_has_all_its_bytes(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7, records=2), data(8), batch(3), commit(8, epoch=0), data(9))
    log.roll()
    log.append(data(7, sequence=2), data(8))
    sizes = [entry.size for segment in log.segments for entry in segment.entries]
    found = open_there(log)
    assert not found.cold
    assert dict(zip(found.opened["producer_id"].tolist(), found.opened["bytes"].tolist(), strict=True)) == {
        7: sizes[0] + sizes[5],
        9: sizes[4],
        8: sizes[6],
    }
    assert open_there(log, 3).opened["bytes"].tolist() == [sizes[0], sizes[1]]


def test_bytes_of_deleted_data_are_not_known_and_stay_so(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7))
    log.roll()
    log.append(data(7, sequence=1), batch(1))
    log.roll()
    log.append(batch(1))
    log.segments[0].path("log").unlink()
    found = open_there(log)
    assert found.opened["bytes"].tolist() == [UNKNOWN]
    log.append(data(7, sequence=2), commit(7, epoch=0))
    steps = decode_steps(ranges(log.directory.parent)[-1].transactions)
    after, ended = end_transactions(found.opened, steps)
    assert (len(after), ended["bytes"].tolist(), ended["first_offset"].tolist()) == (0, [UNKNOWN], [0])


def test_a_marker_that_is_not_understood_ends_what_is_read(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(data(7), commit(7, epoch=0), data(8))
    position = log.active.positions[1]
    with log.active.path("log").open("r+b") as file:
        file.seek(position + 61)
        file.write(b"\xff" * 17)
    dirs = open_log_dirs([log.directory.parent])
    (excerpt,) = list_excerpts(dirs, EVERYTHING_SELECTED, StartFrom.EARLIEST, 1 << 20)
    events, unread = drained(ranges_of(dirs, excerpt))
    assert [(each.base_offset, each.next_offset) for each in events] == [(0, 1)]
    assert unread is not None
    assert (unread.position, unread.bytes, unread.next_offset) == (position, log.active.size - position, 1)
    assert "marker" in unread.reason


def test_real_transactions_end_as_the_broker_counted(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    counted = {of: (int(commits), int(aborts)) for _, of, _, _, commits, aborts, _ in cluster.of("replica")}
    opened, found = {}, {}
    for event in ranges(*cluster.log_dirs, excerpt_bytes=3000):
        key = f"{event.topic}-{event.partition}"
        opened[key], ended = end_transactions(opened.get(key, NO_TRANSACTIONS), decode_steps(event.transactions))
        commits, aborts = found.get(key, (0, 0))
        found[key] = (commits + int((ended["committed"] == 1).sum()), aborts + int((ended["committed"] == 0).sum()))
    compared = {key: each for key, each in counted.items() if not key.startswith("__")}
    assert any(sum(each) for each in compared.values())
    assert {key: found.get(key, (0, 0)) for key in compared} == compared
