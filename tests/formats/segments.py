"""Segments for tests: batches of every kind back to back, and what must be found in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from hypothesis import strategies as st

from streaming.common.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS
from streaming.kafka.scan.walk import Bytes, Positions
from streaming.simulator.batch_writer import Batch, BatchEntry, Codec
from tests.builders import batch, commit


@dataclass(frozen=True)
class Content:
    """Bytes of a log, and the entry, codec and leader epoch of every batch in them."""

    data: bytes
    entries: tuple[BatchEntry, ...]
    codecs: tuple[int, ...]
    epochs: tuple[int, ...]

    @property
    def buffer(self) -> Bytes:
        return np.frombuffer(self.data, np.uint8)

    @property
    def positions(self) -> list[int]:
        return [0, *accumulate(entry.size for entry in self.entries)][:-1]

    @property
    def next_offset(self) -> int:
        return self.entries[-1].last_offset + 1 if self.entries else 0


def written(batches: Sequence[Batch], *, base_offset: int = 0, epochs: Sequence[int] = (), gaps: Sequence[int] = ()) -> Content:
    """The batches as a broker appends them; before each one that many offsets are missing, as compaction leaves it."""
    data, entries = bytearray(), []
    epochs = [*epochs, *[0] * len(batches)][: len(batches)]
    for one, epoch, gap in zip(batches, epochs, [*gaps, *[0] * len(batches)], strict=False):
        for entry, part in one.entries(base_offset + gap, epoch):
            entries.append(entry)
            data += part
            base_offset = entry.last_offset + 1
    return Content(bytes(data), tuple(entries), tuple(int(one.codec) if one.records else 0 for one in batches), tuple(epochs))


def empty(offsets: int = 1) -> Batch:
    """What compaction leaves of a batch."""
    return replace(batch(1), records=(), last_offset_delta=offsets - 1, max_timestamp=5)


any_batch = st.one_of(
    st.builds(
        batch,
        st.integers(1, 6),
        value_bytes=st.sampled_from([0, 1, 100, 300]),
        timestamp=st.integers(0, 2_000_000_000_000),
        codec=st.sampled_from(list(Codec)),
    ),
    st.builds(commit, st.integers(1, 9)),
    st.builds(empty, st.integers(1, 5)),
)

contents = st.builds(
    written,
    st.lists(any_batch, max_size=20),
    base_offset=st.integers(0, 2**40),
    epochs=st.lists(st.integers(0, 9), min_size=20, max_size=20).map(sorted),
    gaps=st.lists(st.integers(0, 3), max_size=20),
)
"""Logs of up to 20 batches."""

tails = st.one_of(st.just(b""), st.integers(1, 200).map(bytes), st.binary(max_size=200))
"""What may stand behind the last batch: nothing, the zeros of a preallocated file, anything."""


def seeds_in(content: Content, size: int) -> st.SearchStrategy[Positions]:
    """Positions as an index names them, ascending: right ones, wrong ones, both."""
    right = st.sampled_from(content.positions) if content.entries else st.nothing()
    return st.lists(right | st.integers(-5, size + 5), unique=True, max_size=60).map(lambda found: np.array(sorted(found), np.int64))


def buckets(values: Sequence[int], bounds: Sequence[int]) -> tuple[int, ...]:
    """A histogram the plain way: the last bucket takes what is above all bounds."""
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[next((place for place, bound in enumerate(bounds) if value <= bound), len(bounds))] += 1
    return tuple(counts)


def sums_of(content: Content, first: int = 0, last: int | None = None) -> dict[str, object]:
    """The sums over a part of the batches the plain way, by the names of `Sums`."""
    entries = content.entries[first:last]
    data = [(entry, codec) for entry, codec in zip(entries, content.codecs[first:last], strict=True) if not entry.control]
    return {
        "base_offset": entries[0].base_offset,
        "next_offset": entries[-1].last_offset + 1,
        "leader_epoch": content.epochs[first:last][-1],
        "bytes": sum(entry.size for entry in entries),
        "batches": len(data),
        "records": sum(entry.records for entry, _ in data),
        "old_format_batches": sum(entry.magic < 2 for entry in entries),
        "max_timestamp": max(entry.max_timestamp for entry in entries),
        "least_timestamp": min(entry.max_timestamp for entry in entries),
        "codec_bytes": tuple(sum(entry.size for entry, one in data if one == codec) for codec in range(5)),
        "batch_bytes_buckets": buckets([entry.size for entry, _ in data], BATCH_BYTES_BOUNDS),
        "batch_records_buckets": buckets([entry.records for entry, _ in data], BATCH_RECORDS_BOUNDS),
    }
