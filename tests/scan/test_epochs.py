"""A scanned piece is parted where the leader epoch changes and where what was published before ends, and nowhere else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.scan.pieces import Piece, by_epoch, scan
from streaming.kafka.scan.sums import joined
from streaming.simulator.batch_writer import encode
from tests.builders import batch


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=12), st.integers(0, 5), st.integers(0, 90), st.integers(0, 40))
def test_the_parts_say_together_what_the_piece_says(rises: list[tuple[int, int]], start: int, torn: int, frontier: int) -> None:
    data, offset, epoch, sides = b"", 0, 0, []
    for rise, records in rises:
        epoch += rise
        data += encode(batch(records), offset, epoch)
        sides.append((epoch, offset >= frontier))
        offset += records
    whole = encode(batch(2), offset, epoch + 1)
    buffer = np.frombuffer(bytes(start) + data + whole[:torn], np.uint8)
    (scanned,) = scan(buffer, [Piece(start, len(buffer), 0)])
    parts = list(by_epoch(scanned, start, frontier))
    assert [
        set(zip(part.batches.leader_epoch.tolist(), (part.batches.base_offset >= frontier).tolist(), strict=True))
        for part, _ in parts
        if part.sums is not None
    ] == [{each} for each in sorted(set(sides))]
    assert [at for _, at in parts] == [start, *(part.end for part, _ in parts[:-1])]
    assert (parts[-1][0].end, parts[-1][0].stop, parts[-1][0].flaw) == (scanned.end, scanned.stop, scanned.flaw)
    merged = None
    for part, _ in parts:
        merged = part.sums if merged is None or part.sums is None else joined(merged, part.sums)
    assert merged == scanned.sums
