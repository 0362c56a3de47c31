"""A scanned piece of a log, parted where the leader epoch of its batches changes."""

from collections.abc import Iterator

import numpy as np

from streaming.kafka.scan import Scanned
from streaming.kafka.sums import sum_ranges
from streaming.kafka.walk import Stop


def by_epoch(scanned: Scanned, start: int) -> Iterator[tuple[Scanned, int]]:
    """The parts of a piece, each of one leader epoch and with where it begins in the buffer; what ended the walk ends the last one.

    Nearly always there is one epoch only, and then nothing is done: along a log epochs only rise, so the first and the last tell.

    Args:
        start: where the piece begins in the buffer.
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
