"""``segtail dump`` against kafka-dump-log, whole processes, on two segments of 1.06 GB; and the verification of CRCs.

Wall seconds from start to end, start-up of interpreter and JVM included, the output thrown away; the two take turns, and the ratio is the
median of those of each round. The page cache is warm, and Python finds its modules compiled, as it does on a user's machine.

Left out: a cold page cache (`scan` has it), compressed records, which a summary does not open, and damaged segments.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import google_crc32c
import numpy as np

from bench import lab
from bench.measuring import ROOT, Bounds, show
from streaming.broker.disk.segment_files import OpenSegment
from streaming.kafka.scan.headers import read_headers
from streaming.kafka.scan.soundness import wrong_crcs
from streaming.kafka.scan.walk import walk
from tests.broker.install import UnavailableError, java_command
from tests.broker.kafka_tools import TOOLS

ROUNDS = 5
_WAYS = (("--summary",), ("--format", "arrow"), ("--format", "text"), ("--format", "json"), ("--summary", "--verify"))
_WINDOW_BYTES = 8 << 20
_HEADER_BYTES = 21


def run(_: Bounds) -> None:
    """Print one table a segment, or say what is missing."""
    try:
        for kind in lab.Segment:
            _compare(kind)
    except UnavailableError as error:
        print(f"\ndump: left out, {error}", file=sys.stderr)


def _compare(kind: lab.Segment) -> None:
    log = lab.segment(kind)
    kafkas = java_command(TOOLS["dump-log"], "--files", str(log), options=())
    rows = [_row(" ".join(way), [sys.executable, "-m", "streaming.terminal.cli", "dump", str(log), *way], kafkas) for way in _WAYS]
    show(
        f"dump of the segment '{kind}', {log.stat().st_size:,} bytes, whole processes; medians of {ROUNDS}",
        ("segtail dump", "s", "kafka-dump-log s", "ratio", "peak MB"),
        rows,
    )
    verified, library = _crc_speeds(log)
    show(
        "CRC of every batch, one core, without reading the file",
        ("", "GB/s"),
        [("segtail", f"{verified:.1f}"), ("the library alone, one call per batch", f"{library:.1f}")],
    )


def _row(name: str, ours: list[str], kafkas: list[str]) -> tuple[str, ...]:
    _process(ours)  # what was not compiled is now
    pairs = [(_process(ours), _process(kafkas)) for _ in range(ROUNDS)]
    own = statistics.median(mine for (mine, _), _ in pairs)
    others = statistics.median(theirs for _, (theirs, _) in pairs)
    ratio = statistics.median(theirs / mine for (mine, _), (theirs, _) in pairs)
    peak = max(resident for (_, resident), _ in pairs)
    return name, f"{own:.3f}", f"{others:.2f}", f"{ratio:.1f}", f"{peak / 1e6:.0f}"


def _process(command: list[str]) -> tuple[float, int]:
    """Seconds from start to end, and the peak of resident memory in bytes."""
    began = perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return perf_counter() - began, used.ru_maxrss * 1024


def _crc_speeds(log: Path) -> tuple[float, float]:
    """GB/s of the verification, and of the library called by itself for the same bytes; medians over windows."""
    file, buffer = OpenSegment(log, 0), np.empty(_WINDOW_BYTES, np.uint8)
    position, ours, librarys = 0, list[float](), list[float]()
    try:
        while len(ours) < 20 and (size := file.read_into(buffer, position)):
            walked = walk(buffer, 0, size)
            batches = read_headers(buffer, walked.positions)
            checked = int(batches.size.sum()) - _HEADER_BYTES * len(batches)
            pieces = [bytes(buffer[at + _HEADER_BYTES : at + size]) for at, size in zip(batches.positions, batches.size, strict=True)]
            began = perf_counter()
            wrong = wrong_crcs(buffer, batches)
            ours.append(checked / (perf_counter() - began) / 1e9)
            if len(wrong):
                raise AssertionError(f"{len(wrong)} batches with a wrong CRC")
            began = perf_counter()
            for piece in pieces:
                google_crc32c.value(piece)
            librarys.append(checked / (perf_counter() - began) / 1e9)
            position += walked.end
    finally:
        file.close()
    return statistics.median(ours), statistics.median(librarys)
