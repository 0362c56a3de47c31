"""Splits a scanned piece of a log where the leader epoch of its batches changes."""

from collections.abc import Iterator

import numpy as np

from streaming.scan.pieces import Scanned
from streaming.scan.sums import sum_ranges
from streaming.scan.walk import Stop


def by_epoch(scanned: Scanned, start: int) -> Iterator[tuple[Scanned, int]]:
    """The parts of a piece, each of one leader epoch, with their start in the buffer. The last part has the reason why the walk ended.

    Nearly always there is one epoch only, and then nothing is done. Epochs only rise along a log, so the first and the last show that.

    Args:
        start: the start of the piece in the buffer.
    """
    epochs = scanned.batches.leader_epoch
    if scanned.sums is None or epochs[0] == epochs[-1]:
        yield scanned, start
        return
    firsts = np.flatnonzero(np.append(True, epochs[1:] != epochs[:-1]))
    ends = [*firsts[1:].tolist(), len(epochs)]
    for first, end, sums in zip(firsts.tolist(), ends, sum_ranges(scanned.batches, firsts), strict=True):
        batches = scanned.batches.take(slice(first, end))
        if end == len(epochs):
            yield Scanned(scanned.end, scanned.stop, scanned.flaw, batches, sums), start
        else:
            reached = int(scanned.batches.positions[end])
            yield Scanned(reached, Stop.END, None, batches, sums), start
            start = reached
