"""Two large segments and Kafka's own Java reader, to measure segtail against. Needs a JDK.

    python -m bench.lab        makes both segments where they are not there yet, and times Kafka's reader on them

The segments (1.06 GB each) stay in the tests' cache folder; the same seed makes the same bytes.
"""

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.broker.install import UnavailableError, cache_dir, class_path, java, java_command

_SOURCES = Path(__file__).parent / "java"
_SEGMENT_BYTES = 1_060_000_000
_WARM_UP_ROUNDS = 2
_ROUNDS = 7


class Segment(StrEnum):
    """What the batches of a segment are like."""

    SMALL = "small"  # 1,635,446 batches of 300 to 1000 bytes, no codec
    TXN = "txn"  # 77,349 batches of about 16 KB, lz4, most in transactions, with markers


_SEEDS = {Segment.SMALL: 20261120, Segment.TXN: 20261121}


@dataclass(frozen=True)
class ScanTime:
    """What Kafka's reader found in a segment, and how long a warm round took it: medians, in seconds."""

    batches: int
    records: int
    bytes: int
    cpu_seconds: float


def segment(kind: Segment) -> Path:
    """The `.log` of a benchmark segment, made once a machine. Its index files lie beside it, as under a live broker."""
    directory = cache_dir() / "bench" / f"bench-{kind}-0"
    if not directory.is_dir():
        classes = compiled()
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:  # appears whole or not at all
            staged = Path(scratch, directory.name)
            generate = java_command(
                "BenchGen", kind, str(staged), str(_SEGMENT_BYTES), str(_SEEDS[kind]), options=(), heap_mb=1024, classes=classes
            )
            subprocess.run(generate, check=True, stdout=subprocess.DEVNULL)
            staged.rename(directory)
    return directory / f"{0:020}.log"


def scan_headers(log: Path, *, crc: bool = False) -> ScanTime:
    """Times Kafka's `FileRecords.batches()` over all headers of a segment, with every CRC or without."""
    mode = "crc" if crc else "headers"
    command = java_command("Scan", mode, str(log), str(_ROUNDS), options=(), heap_mb=1024, classes=compiled())
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rounds = [line.split("\t") for line in printed.splitlines()]
    warm = rounds[_WARM_UP_ROUNDS:]
    return ScanTime(
        batches=int(rounds[0][0]),
        records=int(rounds[0][1]),
        bytes=int(rounds[0][2]),
        cpu_seconds=statistics.median(float(columns[4]) for columns in warm),
    )


def compiled() -> Path:
    """The folder with the compiled classes of `java/`, made anew when a source changes. UnavailableError without a JDK."""
    sources = sorted(_SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = cache_dir() / "bench-classes" / digest
    if not classes.is_dir():
        javac = _javac()
        classes.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
            staged = Path(scratch, "classes")
            subprocess.run([javac, "-nowarn", "-proc:none", "-cp", class_path(), "-d", str(staged), *map(str, sources)], check=True)
            staged.rename(classes)
    return classes


def _javac() -> str:
    beside_java = Path(java()).with_name("javac")
    found = str(beside_java) if os.access(beside_java, os.X_OK) else shutil.which("javac")
    if found is None:
        raise UnavailableError(f"the benchmarks against Kafka's own reader need a JDK, and {Path(java()).parent} holds no javac")
    return found


def main() -> int:
    try:
        for kind in Segment:
            log = segment(kind)
            for crc in (False, True):
                time = scan_headers(log, crc=crc)
                what = "headers and CRC" if crc else "headers"
                print(f"{kind:5} {what:15} {time.batches:9,} batches, {time.bytes:13,} bytes, CPU {time.cpu_seconds:.3f} s")
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
