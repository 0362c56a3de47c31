"""Logs with everything that is counted in a special way, and what really lies in them, record by record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import strategies as st

from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.kafka.formats.control import EndTxnMarker, read_control
from streaming.kafka.formats.entries import read_entry_records, read_message
from streaming.kafka.formats.layout import CURRENT_MAGIC, MAGIC_AT, TRANSACTIONAL_BIT
from streaming.kafka.formats.records import read_batch
from streaming.simulator.batch_writer import Batch, Codec, Record
from streaming.simulator.log import Appendable, PartitionLog
from tests.builders import NOW, abort, commit, log_dir, partition
from tests.legacy_messages import Messages

PRODUCERS = (3, 70_000)

times = st.integers(NOW - 1_000, NOW + 1_000)


def records(stamps: Sequence[int], gaps: Sequence[int]) -> tuple[Record, ...]:
    """Records of which some are missing in between: ``gaps`` before each."""
    delta, found = -1, []
    for stamp, gap in zip(stamps, [*gaps, *[0] * len(stamps)], strict=False):
        delta += 1 + gap
        found.append(Record(value=b"v" * 30, timestamp=stamp, offset_delta=delta))
    return tuple(found)


@st.composite
def data_batches(draw: st.DrawFn) -> Batch:
    """A batch of data: whole, or as compaction leaves it."""
    kept = records(draw(st.lists(times, min_size=1, max_size=4)), draw(st.lists(st.integers(0, 2), max_size=3)))
    last = kept[-1].offset_delta
    assert last is not None
    producer = draw(st.sampled_from([-1, *PRODUCERS]))
    batch = Batch(
        records=kept,
        codec=draw(st.sampled_from(list(Codec))),
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else 0,
        base_sequence=-1 if producer < 0 else 0,
        transactional=producer >= 0 and draw(st.integers(0, 4)) > 0,
        log_append_time=draw(st.sampled_from([None, None, NOW + 5])),
        delete_horizon=draw(st.sampled_from([None, None, NOW + 77])),
        last_offset_delta=last + draw(st.integers(0, 2)),
    )
    if draw(st.integers(0, 5)) == 0:
        return replace(batch, records=(), max_timestamp=NOW, delete_horizon=None, log_append_time=None)
    return batch


messages = st.builds(
    Messages,
    magic=st.sampled_from([0, 1]),
    records=st.lists(times, min_size=1, max_size=4).map(lambda stamps: tuple(Record(value=b"old", timestamp=stamp) for stamp in stamps)),
    codec=st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY]),
)
later_messages = st.builds(replace, messages, magic=st.just(1), log_append_time=st.just(NOW + 9))
markers = st.builds(lambda end, producer: end(producer, epoch=0), st.sampled_from([commit, abort]), st.sampled_from(PRODUCERS))
emptied_markers = markers.map(lambda marker: replace(marker, records=(), last_offset_delta=0, max_timestamp=NOW, marker=None))

appends = st.integers(0, 11).flatmap(
    lambda kind: (emptied_markers, messages, later_messages)[kind] if kind < 3 else markers if kind < 6 else data_batches()
)
steps = st.lists(st.tuples(appends, st.integers(0, 2), st.integers(0, 7)), min_size=8, max_size=30)
"""What is appended, how many offsets are missing before it, and 0 for a roll after it."""


@dataclass(frozen=True, slots=True)
class Real:
    """One record that is there, in the order of the log."""

    offset: int
    timestamp: int
    control: bool
    aborted: bool
    segment: int
    position: int
    size: int
    append_ms: int


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an entry of the log is: its last offset, size, and the bytes of the log before it."""

    last_offset: int
    size: int
    bytes_before: int


def write(path: Path, content: Sequence[tuple[Appendable, int, int]]) -> PartitionLog:
    """A log with that content, some segments."""
    log = partition(log_dir(path), "orders")
    for item, gap, roll in content:
        log.append(item, base_offset=log.log_end_offset + gap)
        if roll == 0:
            log.roll()
    return log


def parse(segments: Sequence[Segment]) -> tuple[list[Real], list[Entry]]:
    """Every record of a log, read one by one; aborted ones are found by the markers."""
    real: list[Real] = []
    entries: list[Entry] = []
    pending: dict[int, list[int]] = {}
    total = 0
    for segment in segments:
        data, position = memoryview(segment.path.read_bytes()), 0
        while position < len(data):
            opened = read_entry_records(data, position)
            assert opened is not None
            found = tuple(opened)
            batch = read_batch(data, position) if data[position + MAGIC_AT] == CURRENT_MAGIC else None
            message = read_message(data, position) if batch is None else None
            size = batch.size if batch is not None else message.size if message is not None else 0
            last = batch.last_offset if batch is not None else found[-1].offset
            control = batch is not None and batch.is_control
            stamped = batch.is_log_append_time if batch is not None else message is not None and message.is_log_append_time
            if batch is not None and batch.attributes & TRANSACTIONAL_BIT and not control:
                pending.setdefault(batch.producer_id, []).extend(range(len(real), len(real) + len(found)))
            for record in found:
                append_ms = record.timestamp if stamped else -1
                real.append(Real(record.offset, record.timestamp, control, False, segment.base_offset, position, size, append_ms))
                end = read_control(record) if control else None
                if isinstance(end, EndTxnMarker) and batch is not None:
                    for item in pending.pop(batch.producer_id, ()):
                        real[item] = replace(real[item], aborted=not end.committed)
            entries.append(Entry(last, size, total))
            position += size
            total += size
    return real, entries


def listed(log: PartitionLog) -> tuple[Segment, ...]:
    """The segments of a log."""
    return list_segments(log.directory)
