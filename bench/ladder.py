"""The ladder of a log: what it costs to fill, to keep, to ask and to grow, on two segments of 1.06 GB in the page cache.

CPU seconds of one core, medians.

Left out: the agent's threads and their pace, logs that are compacted, a cold page cache.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench import lab
from bench.measuring import Bounds, median, show
from streaming.broker.disk.locate import walk_on, window
from streaming.broker.disk.segment_files import OpenSegment, Segment, list_segments
from streaming.broker.ladder.filling import count_segment
from streaming.broker.ladder.log_ladder import ActiveLadder
from streaming.broker.ladder.positions import count_log
from streaming.broker.ladder.segment_ladder import SegmentLadder
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.transaction_steps import NO_STEPS, AppendTimes, Steps, steps_of
from streaming.kafka.scan.walk import Bytes
from streaming.simulator.batch_writer import Batch
from tests.broker.install import UnavailableError
from tests.builders import NOW, abort, batch
from tests.formats.segments import written

POSITIONS = 300
APPENDS = 20_000
_GB = 1_000_000_000


def run(_: Bounds) -> None:
    """Print one table a segment, or say what is missing, and what an append costs."""
    try:
        for kind in lab.Segment:
            _fill(kind)
    except UnavailableError as error:
        print(f"\nladder: left out, {error}", file=sys.stderr)
    _grow()


def _fill(kind: lab.Segment) -> None:
    segments, buffer = list_segments(lab.segment(kind).parent), window()
    size = segments[0].size
    found: list[SegmentLadder] = []
    walked = median(lambda: _walk(segments[0], buffer))
    counted = median(lambda: found.append(count_segment(segments, 0, buffer)))
    ladder, log = found[-1], count_log(segments, 0, buffer)
    chosen = random.Random(1).choices(range(log.end_offset), k=POSITIONS)
    asked = median(lambda: [log.positions([offset], log.end_offset) for offset in chosen])
    near_end = median(lambda: [log.positions([log.end_offset - 1], log.end_offset) for _ in range(POSITIONS)])
    totals = ladder.totals
    rows = [
        ("to fill it, CPU s a GB", f"{counted / size * _GB:.2f}"),
        ("the scan of the headers alone", f"{walked / size * _GB:.2f}"),
        ("rungs", f"{len(ladder.rungs):,}"),
        ("memory, KB a GB", f"{ladder.nbytes / size * _GB / 1000:.1f}"),
        ("stored, KB a GB", f"{len(ladder.pack()) / size * _GB / 1000:.1f}"),
        ("a position anywhere, CPU ms", f"{asked / POSITIONS * 1000:.2f}"),
        ("a position in the last stretch, CPU ms", f"{near_end / POSITIONS * 1000:.2f}"),
    ]
    what = f"{totals.data:,} data records, {totals.aborted:,} of them aborted, and {totals.control:,} markers"
    show(f"ladder of the segment '{kind}': {what}", ("", ""), rows)


def _grow() -> None:
    """Appends of one log, one a second: rungs are thinned meanwhile."""
    rows = []
    for title, content in (
        ("one batch", [batch(5)]),
        ("ten batches", [batch(5)] * 10),
        ("one transactional batch", [batch(5, producer=7, transactional=True)]),
        ("one transactional batch and its ABORT", [batch(5, producer=7, transactional=True), abort(7)]),
    ):
        ranges = _ranges(content)
        ladders: list[ActiveLadder] = []
        taken = median(lambda ranges=ranges, ladders=ladders: ladders.append(_append(ranges)))  # type: ignore[misc]
        rows.append((title, f"{taken / APPENDS * 1e6:.1f}", f"{len(ladders[-1].rungs):,}"))
    show(f"ladder of an active segment: {APPENDS:,} appends, one a second", ("each of", "CPU us", "rungs"), rows)


def _ranges(content: Sequence[Batch]) -> list[tuple[Batches, Steps]]:
    one = written(content)
    batches = read_headers(one.buffer, np.array(one.positions))
    steps, span = steps_of(batches, one.buffer, AppendTimes.seen(NOW, NOW)), int(batches.last_offset[-1]) + 1
    found = []
    for number in range(APPENDS):
        moved = replace(batches, base_offset=batches.base_offset + number * span, last_offset=batches.last_offset + number * span)
        own = steps.copy() if len(steps) else NO_STEPS
        if len(own):
            own["first_offset"] += number * span
        found.append((moved, own))
    return found


def _append(ranges: Sequence[tuple[Batches, Steps]]) -> ActiveLadder:
    ladder = ActiveLadder(0, {})
    for number, (batches, steps) in enumerate(ranges):
        ladder.append(batches, NOW + 1_000 * number, steps)
    return ladder


def _walk(segment: Segment, buffer: Bytes) -> None:
    file = OpenSegment(segment.path, segment.base_offset)
    try:
        for _ in walk_on(file, 0, segment.base_offset, buffer):
            pass
    finally:
        file.close()
