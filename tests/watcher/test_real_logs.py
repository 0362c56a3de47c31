"""Logs that real brokers wrote, counted as by Kafka's own tool."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.simulator.log import LogDir
from tests.formats.dumped import LOGS
from tests.watcher.station import Station

BATCH = re.compile(r"baseOffset: \d+ lastOffset: (\d+) count: (\d+) .*isControl: (\w+) .*size: (\d+)")
MESSAGE = re.compile(r"offset: (\d+) position: .* size: (\d+) magic: [01]")


@dataclass
class Expected:
    bytes: int = 0
    batches: int = 0
    records: int = 0
    next_offset: int = 0


def expected(directory: Path) -> Expected:
    """What the tool's lines about all segments of a partition add up to: data alone, but the bytes of everything."""
    found = Expected()
    for reported in sorted(directory.glob("*.log.txt")):
        old = False
        for line in reported.read_text().splitlines():
            if batch := BATCH.match(line):
                old, control = False, batch[3] == "true"
                found.bytes += int(batch[4])
                found.batches += not control
                found.records += 0 if control else int(batch[2])
                found.next_offset = int(batch[1]) + 1
            elif message := MESSAGE.match(line):
                old = True
                found.bytes += int(message[2])
                found.batches += 1
                found.next_offset = int(message[1]) + 1
            elif old and line.startswith("| offset"):
                found.records += 1
    return found


@pytest.mark.parametrize("cluster", sorted(path.name for path in LOGS.iterdir()))
def test_a_real_log_dir_is_counted_as_kafka_shows_it(station: Station, disk: LogDir, cluster: str) -> None:
    partitions = sorted((LOGS / cluster).iterdir())
    for directory in partitions:
        shutil.copytree(directory, disk.path / directory.name, ignore=shutil.ignore_patterns("*.txt"))
    station.look()
    for directory in partitions:
        topic, _, number = directory.name.rpartition("-")
        counted = station.fold_of(topic, int(number))
        assert Expected(counted.bytes, counted.batches, counted.records, counted.next_offset) == expected(directory)
        assert counted.settled
        assert not counted.skipped
        assert not counted.corrupt_at
    station.replace_watcher()
    assert station.look() == []


def test_the_bytes_of_a_real_log_are_those_of_its_files(station: Station, disk: LogDir) -> None:
    shutil.copytree(LOGS / "transactions" / "pay-0", disk.path / "pay-0")
    station.look()
    files = sum(path.stat().st_size for path in (disk.path / "pay-0").glob("*.log"))
    assert station.fold_of("pay").bytes == files
