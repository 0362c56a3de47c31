"""Partition directories that a test writes batch by batch."""

from collections.abc import Iterable
from pathlib import Path

from streaming.simulator.batch_writer import Batch, Record, encode
from tests.builders import NOW, log_dir, partition

TOPIC = "t"


def segment_name(base_offset: int = 0) -> str:
    return f"{base_offset:020}.log"


def segment_of_values(directory: Path, values: Iterable[bytes | None]) -> Path:
    """A segment with one batch of records without keys."""
    directory.mkdir()
    path = directory / segment_name()
    path.write_bytes(encode(Batch(records=tuple(Record(None, value, NOW) for value in values)), 0))
    return path


def log_of(directory: Path, *segments: Iterable[Batch], index_interval_bytes: int = 64) -> Path:
    """A log as a broker leaves it when it stops: its segments have their indexes. Returns the partition directory."""
    disk = log_dir(directory)
    log = partition(disk, TOPIC, segment_bytes=64 << 20, index_interval_bytes=index_interval_bytes)
    for number, batches in enumerate(segments):
        if number:
            log.roll()
        for batch in batches:
            log.append(batch)
    log.shut_down()
    return disk.path / f"{TOPIC}-0"


def batch_positions(path: Path) -> list[int]:
    """Where the batches of a segment begin."""
    data, position, found = path.read_bytes(), 0, list[int]()
    while position < len(data):
        found.append(position)
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return found


def damage(path: Path, position: int, new: bytes) -> None:
    """Write over some bytes of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(new)


def cut(path: Path, size: int) -> None:
    """Shorten a file."""
    with path.open("r+b") as file:
        file.truncate(size)
