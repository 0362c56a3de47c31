"""The header scan of segtail against Kafka's own Java reader and against just reading the bytes, on two segments of 1.06 GB.

CPU seconds of one core, medians. The file is dropped from the page cache and read again before: in what the kernel has cached by reading
ahead, large folios, everything is found with less CPU than in the small pages of small writes, and so all find the same. The rounds of
segtail and of the plain reading take turns, so that noise of the machine meets all of them. Kafka's reader runs right before them in a
JVM of its own, whose first rounds do not count.

Left out: the watcher around a scan (`turns`), compressed records, which are not opened, and CRCs of our own side (`dump`).
"""

import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

from bench import lab
from bench.measuring import Bounds, show
from streaming.broker.disk.locate import walk_on, window
from streaming.broker.disk.segment_files import OpenSegment
from streaming.kafka.scan.headers import read_headers
from streaming.kafka.scan.walk import Bytes, walk
from tests.broker.install import UnavailableError

ROUNDS = 7
COLD_ROUNDS = 3


def run(_: Bounds) -> None:
    """Print one table a segment, or say what is missing."""
    try:
        for kind in lab.Segment:
            _compare(kind)
    except UnavailableError as error:
        print(f"\nscan: left out, {error}", file=sys.stderr)


def _compare(kind: lab.Segment) -> None:
    log = lab.segment(kind)
    file = OpenSegment(log, 0)
    try:
        cold = _measure_cold(log, file)
        kafkas = lab.scan_headers(log)
        with_crc = lab.scan_headers(log, crc=True)
        seconds, batches = _measure(file)
    finally:
        file.close()
    if batches != kafkas.batches:
        raise AssertionError(f"segtail finds {batches} batches, Kafka {kafkas.batches}")
    seconds |= {"Kafka's Java reader, headers": kafkas.cpu_seconds, "Kafka's Java reader, headers and CRC": with_crc.cpu_seconds}
    title = f"scan of the segment '{kind}': {batches:,} batches in {kafkas.bytes:,} bytes; medians of {ROUNDS}, CPU seconds of one core"
    show(title, ("", "CPU s", "Kafka's / it", "it / reading"), [_row(name, seconds, kafkas.cpu_seconds) for name in seconds])
    rows = [(name, f"{taken:.2f}", f"{taken / cold[READING]:.1f}") for name, taken in cold.items()]
    show(f"the same with the file dropped from the page cache each time; medians of {COLD_ROUNDS}", ("", "wall s", "it / reading"), rows)


def _row(name: str, seconds: dict[str, float], kafkas: float) -> tuple[str, ...]:
    own = seconds[name]
    return name, f"{own:.3f}", f"{kafkas / own:.1f}", f"{own / seconds[READING]:.1f}"


def _ways(file: OpenSegment) -> list[tuple[str, Callable[[], int]]]:
    buffer = window()
    return [
        (SCAN, lambda: _scan(file, buffer)),
        ("segtail, headers", lambda: _headers(file, buffer, seeded=True)),
        ("segtail, headers, without an index", lambda: _headers(file, buffer, seeded=False)),
        (READING, lambda: _read(file, buffer)),
    ]


SCAN = "segtail, as the product scans: headers, checks, sums"
READING = "reading the bytes"


def _measure(file: OpenSegment) -> tuple[dict[str, float], int]:
    """The median CPU seconds of each way, and how many batches there are."""
    ways = _ways(file)
    taken: dict[str, list[float]] = {name: [] for name, _ in ways}
    found = {}
    for _ in range(ROUNDS):
        for name, way in ways:
            began = process_time()
            found[name] = way()
            taken[name].append(process_time() - began)
    counts = {count for name, count in found.items() if name != READING}
    if len(counts) != 1:
        raise AssertionError(f"the ways do not agree: {found}")
    return {name: statistics.median(rounds) for name, rounds in taken.items()}, counts.pop()


def _measure_cold(log: Path, file: OpenSegment) -> dict[str, float]:
    """Median wall seconds. A virtual machine's host may still have the file in memory, for all ways alike after the first round."""
    taken: dict[str, list[float]] = {SCAN: [], READING: []}
    for _ in range(COLD_ROUNDS):
        for name, way in _ways(file):
            if name in taken:
                _drop(log)
                began = perf_counter()
                way()
                taken[name].append(perf_counter() - began)
    return {name: statistics.median(rounds) for name, rounds in taken.items()}


def _drop(log: Path) -> None:
    fd = os.open(log, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def _scan(file: OpenSegment, buffer: Bytes) -> int:
    return sum(len(scanned.batches) for _, scanned in walk_on(file, 0, 0, buffer))


def _headers(file: OpenSegment, buffer: Bytes, *, seeded: bool) -> int:
    position = count = 0
    while size := file.read_into(buffer, position):
        seeds = file.seeds(position, position + size) - position if seeded else None
        walked = walk(buffer, 0, size, seeds)
        if not len(walked.positions):
            break
        count += len(read_headers(buffer, walked.positions))
        position += walked.end
    return count


def _read(file: OpenSegment, buffer: Bytes) -> int:
    position = 0
    while size := file.read_into(buffer, position):
        position += size
    return position
