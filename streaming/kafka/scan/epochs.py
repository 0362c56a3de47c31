"""Splits a scanned piece of a log where the leader epoch of its batches changes, and where what was published before ends."""

from collections.abc import Iterator

import numpy as np

from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.sums import sum_ranges
from streaming.kafka.scan.walk import Stop


def by_epoch(scanned: Scanned, start: int, frontier: int) -> Iterator[tuple[Scanned, int]]:
    """The parts of a piece, each of one leader epoch, with their start in the buffer. The last part has the reason why the walk ended.

    Nearly always there is one epoch only, and then nothing is done. Epochs only rise along a log, so the first and the last show that.

    Args:
        start: the start of the piece in the buffer.
        frontier: a part also ends before the first batch that begins at this offset or after it.
    """
    epochs, sums = scanned.batches.leader_epoch, scanned.sums
    if sums is None or (epochs[0] == epochs[-1] and not sums.base_offset < frontier < sums.next_offset):
        yield scanned, start
        return
    begins = np.append(True, epochs[1:] != epochs[:-1])
    at = int(np.searchsorted(scanned.batches.base_offset, frontier))
    begins[at : at + 1] = True  # nothing if no batch is beyond it
    firsts = np.flatnonzero(begins)
    ends = [*firsts[1:].tolist(), len(epochs)]
    for first, end, sums in zip(firsts.tolist(), ends, sum_ranges(scanned.batches, firsts), strict=True):
        batches = scanned.batches.take(slice(first, end))
        if end == len(epochs):
            yield Scanned(scanned.end, scanned.stop, scanned.flaw, batches, sums), start
        else:
            reached = int(scanned.batches.positions[end])
            yield Scanned(reached, Stop.END, None, batches, sums), start
            start = reached
