"""Which batches a Java producer makes of the same records with another codec, ``batch.size`` and ``linger.ms``, and their bytes.

As `RecordAccumulator`, `MemoryRecordsBuilder.hasRoomFor` and `CompressionRatioEstimator` do it: a batch is closed ``linger.ms`` after its
first record, or where the next record would not fit. Its records count as they are expected to be compressed, with 5 % on top; the
next record counts as it is. The expected part follows those that came out: down by half a point a batch, up at once and by 5 points at
least.

Left out: that a producer sends all partitions of a broker when one of them is due, so those of many partitions wait a little less;
that without keys it stays at one partition until ``batch.size`` bytes are sent there, so that a larger one saves more than is predicted.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from streaming.common.arrays import Floats, Longs
from streaming.kafka.formats.compression import compress
from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.formats.wire import varint

AS_IT_IS = 0
"""The ``batch_size`` that leaves the batches as they are."""

_MARGIN = 1.05
_DOWN, _UP = 0.005, 0.05
_TRIALS, _PLACES = 3, 7
_NEARLY, _LEAST_BATCHES = 0.85, 20  # what counts as full, as what is expected goes up and down; to see what bounds batches
_TIMED_MS = 2  # batches that took less, as with linger.ms=0, show no spread of their times
_HEAD_BYTES = 5  # of a record before its body, mostly: length, attributes and deltas


def rebatch(records: Sent, setting: Setting, expected: Expected) -> Iterator[Made]:
    """The batches that a producer with this setting makes. ``expected`` learns from them."""
    for begin, end in _bounds(records, setting, expected):
        made = records.batch(setting.codec, begin, end)
        expected.learn(made.part)
        yield made


@dataclass(slots=True, kw_only=True)
class Sent:
    """The records of one producer in one partition, as it sent them; items of the lists are records.

    ``sent``: when, in milliseconds that never fall. ``windows``: a number for each, which rises. ``begins``: where batches begin as they
    are. ``ends``: where a batch ends whatever the setting, as with a transaction. ``born``: the producer's id if it began with these
    records, and had not yet learned how they compress; -1 if not.
    """

    born: int = -1

    stamps: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    _sections: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _made: dict[tuple[int, int, int], Made] = field(default_factory=dict)

    def forget(self, *, made: bool) -> None:
        """Forget the bytes of batches, and with ``made`` their sizes: other settings make the same ones again, most of those that differ
        in the codec alone, and where ``linger_ms`` bounds them in the batch size, too.
        """
        self._sections.clear()
        if made:
            self._made.clear()

    def batch(self, codec: int, begin: int, end: int) -> Made:
        """The batch of the records ``[begin, end)``."""
        made = self._made.get((codec, begin, end))
        if made is None:
            section = self._sections.get((begin, end))
            if section is None:
                section = self._sections[begin, end] = self._encoded(begin, end)
            size = HEADER_BYTES + len(compress(codec, section))
            made = self._made[codec, begin, end] = Made(begin, end, size, len(section))
        return made

    def _encoded(self, begin: int, end: int) -> bytes:
        """The records section before it is compressed."""
        base, parts = self.stamps[begin], list[bytes]()
        for delta, (stamp, body) in enumerate(zip(self.stamps[begin:end], self.bodies[begin:end], strict=True)):
            head = b"\0" + varint(stamp - base) + varint(delta)
            parts += (varint(len(head) + len(body)), head, body)
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Made:
    """A batch with the records ``[begin, end)``: its bytes, and those of its records before they were compressed."""

    begin: int
    end: int
    size: int
    raw: int

    @property
    def part(self) -> float:
        """What is left of its records when they are compressed."""
        return (self.size - HEADER_BYTES) / self.raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """``codec`` by its id. ``linger_ms`` -1: as long as it takes to fill a batch."""

    codec: int
    batch_size: int = AS_IT_IS
    linger_ms: int = -1


class Expected:
    """What part of its bytes a compressed batch is expected to keep: of one topic and codec."""

    def __init__(self, part: float = 1.0) -> None:
        self.part = part

    def learn(self, part: float) -> None:
        """A batch came out as this part."""
        if part > self.part:
            self.part = max(self.part + _UP, part)
        elif part < self.part:
            self.part -= _DOWN


def _bounds(records: Sent, setting: Setting, expected: Expected) -> Iterable[tuple[int, int]]:
    if setting.batch_size == AS_IT_IS:
        return zip(records.begins, [*records.begins[1:], len(records.bodies)], strict=True)
    return _Filling(records, setting, expected)


class _Filling:
    """Where batches begin and end; each is decided when it is asked for, by what is expected then."""

    def __init__(self, records: Sent, setting: Setting, expected: Expected) -> None:
        self._sizes = _sizes(records)
        self._before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._sizes)])
        self._sent, self._setting, self._expected = np.array(records.sent, np.int64), setting, expected
        self._ends = np.array([*records.ends, len(records.bodies)], np.int64)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        begin = 0
        while begin < len(self._sizes):
            end = self.end(begin)
            yield begin, end
            begin = end

    def end(self, begin: int) -> int:
        """Where a batch ends that begins with this record."""
        setting, sizes, before = self._setting, self._sizes, self._before
        end = int(self._ends[self._ends.searchsorted(begin, side="right")])
        if setting.linger_ms >= 0:
            end = min(end, int(self._sent.searchsorted(self._sent[begin] + setting.linger_ms, side="right")))
        room = setting.batch_size - HEADER_BYTES
        part = self._expected.part * _MARGIN if setting.codec else 1.0
        end = min(end, int(before.searchsorted(before[begin] + int(room / part), side="right")) - 1)
        while end > begin + 1 and (before[end - 1] - before[begin]) * part + sizes[end - 1] > room:
            end -= 1
        return max(end, begin + 1)


def _sizes(records: Sent) -> Longs:
    """The sizes of the records, before they are compressed."""
    return np.fromiter(map(len, records.bodies), np.int64, len(records.bodies)) + _HEAD_BYTES


def settled(records: Sent, setting: Setting) -> Expected:
    """What a producer expects that has sent such records for long: what comes out, and half a step above it, as it goes up and down.

    The part that comes out is the median of batches that begin all over the records: the first ones of a producer are often small.
    """
    expected = Expected()
    if setting.batch_size == AS_IT_IS or not setting.codec:
        return expected
    filling, count = _Filling(records, setting, expected), len(records.bodies)
    for _ in range(_TRIALS):
        made = [records.batch(setting.codec, at, filling.end(at)).part for at in range(count // (2 * _PLACES), count, -(-count // _PLACES))]
        expected.part = statistics.median(made) + _UP / 2
    return expected


def full_at(records: Sent, codec: int) -> Setting | None:
    """The setting that filled most batches as they are: ``linger_ms`` is what they waited, the least that it can be.

    None if something else ended them: then their bytes differ more than the times that they took, or these are too short to be told
    apart in milliseconds.
    """
    held, refused, raw, took = _room(records, codec)
    if len(held) < _LEAST_BATCHES:
        return None
    most = np.quantile(held, 0.9)
    full = refused >= _NEARLY * most
    if raw[full].sum() < raw.sum() / 2 or np.mean(took[full]) < _TIMED_MS:
        return None
    if 1.5 * np.std(refused[full]) * np.mean(took[full]) > np.std(took[full]) * np.mean(refused[full]):
        return None
    return Setting(codec=codec, batch_size=int(most + np.quantile(refused[full], 0.1)) // 2, linger_ms=int(np.quantile(took[full], 0.95)))


def _room(records: Sent, codec: int) -> tuple[Floats, Floats, Floats, Longs]:
    """For each batch as it is but the last: which ``batch.size`` it takes, which also has room for the next record; bytes, milliseconds."""
    begins, sent = np.array([*records.begins, len(records.bodies)], np.int64), np.array(records.sent, np.int64)
    sizes: Floats = _sizes(records).astype(np.float64)
    part = 1.0
    if codec:
        parts = [records.batch(codec, begin, end).part for begin, end in pairwise(begins.tolist())]
        part = (statistics.median(parts) + _UP / 2) * _MARGIN
    raw: Floats = np.add.reduceat(sizes, begins[:-1])[:-1]
    last, following = sizes[begins[1:-1] - 1], sizes[begins[1:-1]]
    held: Floats = (raw - last) * part + last + HEADER_BYTES
    refused: Floats = raw * part + following + HEADER_BYTES
    return held, refused, raw, sent[begins[1:-1] - 1] - sent[begins[:-2]]


def without_full(records: Sent, full: Setting) -> Sent:
    """The records, with an end wherever a batch as it is ended though it was not full."""
    _, refused, _, _ = _room(records, full.codec)
    others = (begin for begin, size in zip(records.begins[1:], refused.tolist(), strict=True) if size < _NEARLY * full.batch_size)
    return replace(records, ends=sorted({*records.ends, *others}))


def add_to_windows(records: Sent, made: Made, totals: Floats) -> None:
    """Add the bytes of a batch to those of the windows of its records, to each by its part of them."""
    first, last = records.windows[made.begin], records.windows[made.end - 1]
    if first == last:
        totals[first] += made.size
    else:
        totals += np.bincount(records.windows[made.begin : made.end], minlength=len(totals)) * (made.size / (made.end - made.begin))
