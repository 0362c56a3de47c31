"""The facts about a segment's batches that are needed to check its indexes: four numbers for each batch, and its markers."""

import numpy as np

from streaming.broker.excerpts.segment_walk import Window
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.walk import Positions

_EMPTY = read_headers(np.zeros(0, np.uint8), np.zeros(0, np.int64))


class Skeleton:
    """Grows window by window; 32 bytes for each batch."""

    def __init__(self) -> None:
        self._columns: list[tuple[Positions, ...]] = []  # positions, base offsets, last offsets, largest timestamps
        self.aborts: set[tuple[int, int]] = set()
        """(offset, producer id) of every control batch."""

    def add(self, window: Window) -> None:
        """Add the batches of the next window."""
        batches = window.batches
        positions = batches.positions + window.position
        self._columns.append((positions, batches.base_offset, batches.last_offset, batches.max_timestamp))
        control = batches.control
        if control.any():
            producers = batches.headers["producer_id"][control].tolist()
            self.aborts.update(zip(batches.base_offset[control].tolist(), producers, strict=True))

    def batches(self) -> Batches:
        """Positions in the file, offsets and largest timestamps of all batches; the other columns are empty."""
        if len(self._columns) != 1:  # combined once, however many indexes there are
            columns = list(zip(*self._columns, strict=True)) or [()] * 4
            self._columns = [tuple(np.concatenate((_EMPTY.positions, *column)) for column in columns)]
        positions, base, last, timestamps = self._columns[0]
        return Batches(
            positions=positions,
            headers=_EMPTY.headers,
            base_offset=base,
            last_offset=last,
            size=_EMPTY.size,
            records=_EMPTY.records,
            max_timestamp=timestamps,
            leader_epoch=_EMPTY.leader_epoch,
            attributes=_EMPTY.attributes,
            magic=_EMPTY.magic,
        )
