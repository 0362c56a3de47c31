"""A single look: what it reads, in which order, how fast, and that it leaves nothing behind."""

from collections.abc import Callable, Collection, Iterable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streaming.broker.disk.logdirs import Partition, open_log_dirs
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.protocol.listing_json import TransactionRow
from streaming.broker.watcher.registry import EVERYTHING, Scope
from streaming.common.settings import Settings
from streaming.kafka.scan.walk import walk
from streaming.rules.transaction_verdicts import GRACE_MS
from streaming.simulator.batch_writer import end_transaction
from streaming.terminal.offline.offline_agent import OfflineAgent
from streaming.terminal.offline.single_reading import SingleReading
from tests.builders import NOW, batch, log_dir, partition
from tests.clocks import Clock
from tests.formats.dumped import columns
from tests.formats.segments import written
from tests.frozen import Frozen, unpack
from tests.offline.lists import kept, opened

SETTINGS = Settings()


@pytest.fixture
def cluster(tmp_path: Path) -> Frozen:
    return unpack("transactions_v2", tmp_path)


def looked(
    paths: list[Path], settings: Settings = SETTINGS, scope: Callable[..., Scope] = lambda *_: EVERYTHING
) -> tuple[list[tuple[str, int, int]], Clock]:
    """Topic, partition and end of every log that is seen, and the clock by which it was looked."""
    clock = Clock(NOW / 1000)
    with SingleReading(open_log_dirs(paths), settings, scope, NOW, clock=clock, sleep=clock.sleep) as reading:
        seen, snapshot = reading.see()
        logs = seen.logs.columns
        names = [snapshot.topic_names[topic] for topic in logs["topic"].tolist()]
        return list(zip(names, logs["partition"].tolist(), logs["log_end_offset"].tolist(), strict=True)), clock


def everything_below(path: Path) -> dict[Path, tuple[int, int]]:
    return {each: (each.stat().st_size, each.stat().st_mtime_ns) for each in path.rglob("*")}


def test_nothing_is_written(cluster: Frozen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    before = everything_below(tmp_path)
    opened(cluster.log_dirs, SETTINGS, cluster.frozen_ms)
    kept(cluster.log_dirs, SETTINGS, cluster.frozen_ms)
    assert everything_below(tmp_path) == before


@pytest.fixture
def many_segments(tmp_path: Path) -> Path:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    for _ in range(5):
        log.append(*(batch(5, value_bytes=1000) for _ in range(20)))
        log.roll()
    log.append(batch(3, value_bytes=1000))
    log.close()
    return disk.path


def test_no_closed_segment_is_walked(many_segments: Path) -> None:
    rows: list[pa.Table] = []
    begin = OfflineAgent.begin

    def kept(self: OfflineAgent) -> pa.Table:
        rows.append(begin(self))
        return rows[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OfflineAgent, "begin", kept)
        assert looked([many_segments])[0] == [("t", 0, 503)]
    assert sum(rows[0]["bytes"].to_pylist()) == list_segments(many_segments / "t-0")[-1].size


def test_reading_keeps_to_its_rate_and_else_nobody_waits(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    for number in range(4):
        partition(disk, "t", number).append(batch(100, value_bytes=1000))
    size = list_segments(disk.path / "t-0")[-1].size
    found, clock = looked([disk.path])
    assert clock.slept == []
    again, slow = looked([disk.path], Settings(read_rate=size))
    assert again == found
    assert 3 <= sum(slow.slept) <= 5  # four times as much as may be read in a second


def test_half_a_batch_at_the_end_of_a_preallocated_log_is_waited_for_as_long_as_a_write_may_take(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t", preallocate=True)
    log.append(batch(3))
    log.close()
    segment = list_segments(disk.path / "t-0")[-1].path
    data = segment.read_bytes()
    end = len(data.rstrip(b"\0"))
    segment.write_bytes(data[:end] + b"\xff" * 80 + data[end + 80 :])
    found, clock = looked([disk.path])
    assert found == [("t", 0, 3)]
    assert 0.5 <= sum(clock.slept) < 2


def test_only_what_is_wanted_is_looked_at(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    for topic in ("a", "b"):
        partition(disk, topic).append(batch(3))

    def wants(one: Partition) -> bool:
        return one.topic == "b"

    assert looked([disk.path], scope=lambda *_: Scope(wants=wants))[0] == [("b", 0, 3)]


def ended(cluster: Frozen, *, rolled: bool) -> Callable[[], None]:
    """Writes the marker of the oldest transaction that hangs, in a segment of its own if that is ``rolled``."""
    (directory,) = (path for each in cluster.log_dirs for path in each.glob("ghost-1"))
    segment = list_segments(directory)[-1].path
    end = int(columns(segment.read_bytes()).last_offset[-1]) + 1
    marker = end_transaction(committed=False, producer_id=724078, producer_epoch=5, coordinator_epoch=1, timestamp=cluster.frozen_ms)

    def end_it() -> None:
        data = written([marker], base_offset=end).data
        with (directory / f"{end:020}.log" if rolled else segment).open("ab") as log:
            log.write(data)

    return end_it


def unended(cluster: Frozen, before_again: Callable[[], None], at: int, monkeypatch: pytest.MonkeyPatch) -> list[TransactionRow]:
    """What is open if something happens before logs are read on for this time."""
    again, calls = OfflineAgent.again, count()

    def later(self: OfflineAgent, directories: Collection[Path]) -> Any:
        if next(calls) == at:
            before_again()
        return again(self, directories)

    monkeypatch.setattr(OfflineAgent, "again", later)
    rows = opened(cluster.log_dirs, SETTINGS, cluster.frozen_ms + GRACE_MS).transactions
    assert next(calls) == 2, "everything is read on, and then the logs of what seems to be nobody's"
    monkeypatch.undo()
    return rows


def hanging(rows: Iterable[TransactionRow]) -> list[tuple[str, int]]:
    return sorted((one.topic, one.partition) for one in rows if one.verdict == "hanging")


@pytest.mark.parametrize("rolled", [False, True])
def test_what_ends_after_the_coordinators_were_read_does_not_hang(
    cluster: Frozen, monkeypatch: pytest.MonkeyPatch, *, rolled: bool
) -> None:
    assert hanging(unended(cluster, lambda: None, 0, monkeypatch)) == [("ghost", 0), ("ghost", 1), ("ghost", 2)]
    assert hanging(unended(cluster, ended(cluster, rolled=rolled), 1, monkeypatch)) == [("ghost", 0), ("ghost", 2)]


@pytest.mark.parametrize("at", range(2))
def test_what_begins_after_the_coordinators_were_read_is_not_known_to_be_nobodys(
    cluster: Frozen, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """A producer that goes from one transaction to the next has one open whenever a log is read, whatever its records are stamped."""

    def begin() -> None:
        (directory,) = (path for each in cluster.log_dirs for path in each.glob("ghost-1"))
        segment = list_segments(directory)[-1].path
        data = segment.read_bytes()
        end = int(columns(data[: walk(np.frombuffer(data, np.uint8), 0, len(data)).end]).last_offset[-1]) + 1
        with segment.open("ab") as log:
            log.write(written([batch(1, producer=55, transactional=True, timestamp=cluster.frozen_ms - GRACE_MS)], base_offset=end).data)

    rows = unended(cluster, begin, at, monkeypatch)
    assert [one.verdict for one in rows if one.producer_id == 55] == ["unknown"]
    assert hanging(rows) == [("ghost", 0), ("ghost", 1), ("ghost", 2)]
