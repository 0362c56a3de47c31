"""Closed segments of a real broker, copied to where they may be damaged."""

import os
import shutil
from pathlib import Path

import numpy as np

from streaming.broker.disk.segment_files import Segment, list_segments, read_leader_epochs
from streaming.broker.scrub.threads import SegmentCheck
from streaming.kafka.scan.soundness import Damage

DATA = Path(__file__).parents[1] / "data"
BY_TIME = DATA / "log_dirs/deletions/n1/d1/byms-A-0"
"""Four segments, no gaps."""
CODECS = DATA / "logs/codecs/mixed-A-0"
"""Two segments with their indexes, every codec."""
OLD_FORMATS = tuple(sorted((DATA / "logs/old_formats").iterdir()))


def copied(directory: Path, into: Path) -> Path:
    """The partition directory, to be written to."""
    return Path(shutil.copytree(directory, into / directory.name))


def closed(directory: Path, number: int = 0) -> tuple[Segment, Segment]:
    """A segment as it is listed now, and the one behind it."""
    segments = list_segments(directory)
    return segments[number], segments[number + 1]


def flip(path: Path, bit: int) -> None:
    """Flip a bit, and leave the file's time as it was: a disk that rots sets none."""
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[bit >> 3] ^= 1 << (bit & 7)
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def checked(directory: Path, number: int = 0, window: int = 1 << 20) -> list[Damage]:
    """What a check of a segment finds. Each step gets further, or looks for the next batch."""
    check = SegmentCheck(*closed(directory, number), read_leader_epochs(directory))
    buffer, found = np.empty(window, np.uint8), list[Damage]()
    for _ in range(2 * check.segment.size + 10):
        if check.done:
            return found
        found += check.advance(buffer)
    raise AssertionError(f"the check stays at {check.position}")
