"""The rows of excerpts: every whole and sound batch once, and a word on what is none."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.excerpts.excerpt_scan import batches_of
from streaming.broker.excerpts.excerpt_walk import Unread
from streaming.broker.protocol.consumer_messages import EVERYTHING_SELECTED
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.common.rows import BATCHES
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, GoneError
from streaming.simulator.batch_writer import Codec
from streaming.simulator.log import PartitionLog
from tests.builders import NOW, batch, commit, log_dir, partition
from tests.commands import run_command
from tests.excerpts.drained import drained, list_excerpts
from tests.frozen import unpack
from tests.simulated import write_part

MIB = 1 << 20


def excerpts(log: PartitionLog, excerpt_bytes: int = MIB) -> list[Excerpt]:
    return list_excerpts(open_log_dirs([log.directory.parent]), EVERYTHING_SELECTED, StartFrom.EARLIEST, excerpt_bytes)


def read(log: PartitionLog, excerpt: Excerpt) -> tuple[list[dict[str, object]], Unread | None]:
    batches, unread = drained(batches_of(open_log_dirs([log.directory.parent]), excerpt))
    assert all(each.schema == BATCHES for each in batches)
    return [row for each in batches for row in each.to_pylist()], unread


def test_a_row_for_each_batch(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(3, codec=Codec.ZSTD))
    log.append(batch(2, producer=7, epoch=3, sequence=5, transactional=True), commit(7), leader_epoch=4)
    (excerpt,) = excerpts(log)
    rows, unread = read(log, excerpt)
    assert unread is None
    assert [(row["base_offset"], row["last_offset"], row["records"], row["codec"]) for row in rows] == [
        (0, 2, 3, "zstd"),
        (3, 4, 2, "none"),
        (5, 5, 1, "none"),
    ]
    assert [row["position"] for row in rows] == log.active.positions
    assert (rows[1]["producer_id"], rows[1]["producer_epoch"], rows[1]["base_sequence"], rows[1]["leader_epoch"]) == (7, 3, 5, 4)
    assert [(row["transactional"], row["control"]) for row in rows] == [(False, False), (True, False), (True, True)]
    assert rows[0]["max_timestamp"].timestamp() * 1000 == NOW + 2  # type: ignore[attr-defined]


def test_bounds(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(2), batch(2))
    log.append(batch(2), batch(2), leader_epoch=1)
    (whole,) = excerpts(log)
    second = log.active.positions[1]
    for expected, bounds in (
        ([0, 2, 4, 6], {}),
        ([2, 4, 6], {"begin": second}),
        ([4, 6], {"begin": second + 1}),
        ([0], {"end": second}),
        ([0, 2], {"end": second + 1}),
        ([4], {"from_offset": 3, "until_offset": 5}),
        ([0, 2], {"until_epoch": 0}),
        ([], {"begin": 1 << 40, "end": 1 << 41}),
    ):
        rows, unread = read(log, replace(whole, **bounds))
        assert ([row["base_offset"] for row in rows], unread) == (expected, None), bounds


def test_an_incomplete_last_batch_is_not_there_yet(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(2))
    write_part(log, batch(2), size=80)
    (excerpt,) = excerpts(log)
    rows, unread = read(log, excerpt)
    assert ([row["base_offset"] for row in rows], unread) == ([0], None)


def test_in_a_closed_segment_it_is_missing(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(2), batch(2))
    log.roll()
    log.append(batch(2))
    first = log.segments[0]
    os.truncate(first.path("log"), first.positions[1] + 70)
    rows, unread = read(log, excerpts(log)[0])
    assert [row["base_offset"] for row in rows] == [0]
    assert unread == Unread(first.positions[1], 70, 2, "the segment ends inside a batch although the log goes on after it")


def test_behind_damage_reading_goes_on_where_the_index_leads_to_a_batch(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders", index_interval_bytes=0)
    for _ in range(30):
        log.append(batch(1))
    positions = log.active.positions
    with log.active.path("log").open("r+b") as file:
        file.seek(positions[3] + 16)
        file.write(b"\x09")
    found = excerpts(log, excerpt_bytes=positions[10])
    rows, unread = read(log, found[0])
    assert [row["base_offset"] for row in rows] == [0, 1, 2]
    assert unread is not None
    assert (unread.position, unread.bytes, unread.next_offset) == (positions[3], positions[10] - positions[3], 3)
    assert "magic" in unread.reason
    later = [row["base_offset"] for excerpt in found[1:] for row in read(log, excerpt)[0]]
    assert later == list(range(10, 30))


def test_without_an_index_everything_behind_damage_is_missing_once(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders", index_interval_bytes=1 << 20)
    for _ in range(30):
        log.append(batch(1))
    with log.active.path("log").open("r+b") as file:
        file.seek(log.active.positions[3] + 16)
        file.write(b"\x09")
    missing = [read(log, excerpt)[1] for excerpt in excerpts(log, excerpt_bytes=1000)]
    assert sum(each.bytes for each in missing if each is not None) == log.active.size - log.active.positions[3]


def test_what_is_gone_is_another_error_than_what_cannot_be_read(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(1))
    (excerpt,) = excerpts(log)
    for gone in (replace(excerpt, segment=5), replace(excerpt, topic="others"), replace(excerpt, topic_id="x" * 22)):
        with pytest.raises(GoneError) as error:
            read(log, gone)
        assert error.value.reason == "gone"
    for invalid in (
        replace(excerpt, topic="../orders"),
        replace(excerpt, topic="/etc"),
        replace(excerpt, log_dir="/etc"),
        replace(excerpt, begin=-1),
        replace(excerpt, partition=-1),
    ):
        with pytest.raises(AgentError) as refused:
            read(log, invalid)
        assert not isinstance(refused.value, GoneError)


@pytest.mark.parametrize("name", ["transactions_v2", "kafka_3_9"])
def test_as_many_records_as_segtail_count_has(tmp_path: Path, name: str) -> None:
    cluster = unpack(name, tmp_path)
    done = run_command("count", "--log-dirs", ",".join(map(str, cluster.log_dirs)), "--by", "partition", "--format", "json")
    counted = {
        (row["topic"], row["partition"]): (row["data"], row["control"], row["next_offset"]) for row in json.loads(done.stdout)["rows"]
    }
    dirs = open_log_dirs(cluster.log_dirs)
    found: dict[tuple[str, int], tuple[int, int, int]] = {}
    for excerpt in list_excerpts(dirs, EVERYTHING_SELECTED, StartFrom.EARLIEST, 10_000):
        batches, unread = drained(batches_of(dirs, excerpt))
        assert unread is None
        for row in (row for each in batches for row in each.to_pylist()):
            data, control, _ = found.get((row["topic"], row["partition"]), (0, 0, 0))
            own = (0, row["records"]) if row["control"] else (row["records"], 0)
            found[row["topic"], row["partition"]] = (data + own[0], control + own[1], row["last_offset"] + 1)
    compared = {key: each for key, each in counted.items() if not key[0].startswith("__")}
    assert compared
    assert {key: found.get(key, (0, 0, 0)) for key in compared} == compared
