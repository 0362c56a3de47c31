"""What transactions cost: batch by batch in the scan and in the fold, and while very many are open.

Left out: Spark, disks and the agent's journal.
"""

import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from streaming.cluster.view.observer import Observer, Versions
from streaming.cluster.view.page_context import context_of
from streaming.cluster.view.table import Table
from streaming.common.event_row import EventRow
from streaming.common.rows import ROWS, SHARD, TRANSACTION_STEPS, Kind, StartSource, Step, pack_rows, unpack_rows
from streaming.common.settings import Settings
from streaming.common.state_row import STATES
from streaming.kafka.scan.pieces import Piece, scan
from streaming.kafka.scan.producer_states import Producers
from streaming.kafka.scan.transaction_steps import AppendTimes, steps_of
from streaming.pages.exposition.render import render
from streaming.simulator.batch_writer import Batch, Marker, Record, encode
from streaming.spark.query.processor import ShardProcessor
from tests.bench.bounds import Bounds
from tests.bench.table import show
from tests.events import appended, batch_of, row

T = TypeVar("T")

BATCHES = 200_000
PRODUCERS = 64
BATCHES_A_TRANSACTION = 9
HELD = 100_000
SPREAD = 5_000
SHARDS = 64
ENDED = 1_000  # of those held, in a micro-batch; as many begin
ROUNDS = 5
RANGES = 1_000  # in a micro-batch
NOW_MS = 1_795_000_000_000


def run(_: Bounds) -> None:
    """Print two tables."""
    _a_million()
    _held()


# --- batch by batch


def _a_million() -> None:
    rows = []
    for name, transactional in (("transactional", True), ("ordinary, idempotent", False)):
        log = list(_written(transactional))
        for size in (10, 5_000):
            rows.append((f"{name}, {size:,} a range", *_cost_of(log, size)))
    title = (
        f"CPU-seconds per million batches of about {len(log[0])} bytes; where they are transactional, every tenth is a marker and "
        f"{PRODUCERS} producers are interleaved"
    )
    show(title, ("", "header scan", "steps", "producers", "fold"), rows)


def _written(transactional: bool) -> Iterator[bytes]:
    """The batches of a log, one after the other, as each producer's transactions of nine batches and a marker."""
    now = NOW_MS
    data = bytearray(
        encode(
            Batch(
                records=(Record(b"key", b"v" * 200, now),), producer_id=0, producer_epoch=0, base_sequence=0, transactional=transactional
            ),
            0,
        )
    )
    marker = bytearray(_marker(now))
    for number in range(BATCHES):
        turn, producer = divmod(number, PRODUCERS)
        made = marker if transactional and turn % (BATCHES_A_TRANSACTION + 1) == BATCHES_A_TRANSACTION else data
        struct.pack_into(">q", made, 0, number)
        struct.pack_into(">q", made, 43, producer)
        if made is data:
            struct.pack_into(">i", made, 53, turn - turn // (BATCHES_A_TRANSACTION + 1) if transactional else turn)
        yield bytes(made)


def _marker(now: int) -> bytes:
    key, value = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0)
    batch = Batch(
        records=(Record(key, value, now),), producer_id=0, producer_epoch=0, transactional=True, control=True, marker=Marker(True, 0)
    )
    return encode(batch, 0)


def _cost_of(log: Sequence[bytes], size: int) -> Iterator[str]:
    """Of each stage, for the whole log in ranges of so many batches."""
    pieces = [b"".join(log[at : at + size]) for at in range(0, len(log), size)]
    buffers = [np.frombuffer(piece, np.uint8) for piece in pieces]
    times = AppendTimes.seen(NOW_MS, NOW_MS)
    spent, scans = _timed(lambda: [scan(buffer, [Piece(0, len(buffer), 0)])[0] for buffer in buffers])
    yield _of_a_million(spent)
    spent, steps = _timed(lambda: [steps_of(one.batches, buffer, times) for one, buffer in zip(scans, buffers, strict=True)])
    yield _of_a_million(spent)

    def remember() -> None:
        producers = Producers.none(10_000)
        for one in scans:
            producers = producers.take(one.batches).producers

    yield _of_a_million(_timed(remember)[0])
    fold = _Fold(1)
    fold.take([_appeared(0)])
    ranges = [
        appended(
            2 + number,
            number * size,
            end := number * size + len(one.batches),
            buffer.size,
            seen_at=NOW_MS,
            transactions=step.tobytes() or None,
            high_watermark=end,
        )
        for number, (one, buffer, step) in enumerate(zip(scans, buffers, steps, strict=True))
    ]
    packed = [_packed(ranges[at : at + RANGES]) for at in range(0, len(ranges), RANGES)]
    yield _of_a_million(_timed(lambda: [fold.take_packed(0, each) for each in packed])[0])


def _of_a_million(seconds: float) -> str:
    return f"{seconds * 1e6 / BATCHES:.2f}"


# --- very many open


def _held() -> None:
    rows = []
    for name, logs, held in (
        ("none", 1, 0),
        (f"{HELD:,} in one log", 1, HELD),
        (f"none, {SPREAD:,} logs", SPREAD, 0),
        (f"{HELD:,} over {SPREAD:,} logs", SPREAD, HELD),
    ):
        rows.append((name, *_cost_of_holding(logs, held)))
    title = (
        f"while so many are open: CPU-seconds of a micro-batch in which {ENDED:,} transactions end and as many begin, all shards "
        "together, state that Spark writes for it, rows that reach the driver, putting them into the table, a scrape"
    )
    show(title, ("open", "fold s", "state MB", "rows MB", "table s", "scrape s"), rows)


def _cost_of_holding(logs: int, held: int) -> Iterator[str]:
    fold, table = _Fold(min(SHARDS, logs)), _table()
    fold.take(_appeared(log) for log in range(logs))
    ends = [0] * logs
    table.apply(fold.take(_opening(range(held), ends, 2)))
    folding, applying = [], []
    for turn in range(ROUNDS):
        over = range(turn * ENDED, (turn + 1) * ENDED)
        rows = [*_opening((HELD + item for item in over), ends, 3 + 2 * turn), *_ending(over, ends, 4 + 2 * turn)]
        parts = fold.packed(rows)
        fold.written = 0
        spent, found = _timed(lambda parts=parts: [fold.take_packed(shard, part) for shard, part in parts])  # type: ignore[misc]
        states = pa.concat_tables(found)
        folding.append(spent)
        applying.append(_timed(lambda states=states: table.apply(states))[0])  # type: ignore[misc]
    observer = Observer(query="bench", versions=Versions(segtail="", spark="", python=""), thresholds=())
    scraping = min(_timed(lambda: render(table, observer, NOW_MS / 1000 + 30))[0] for _ in range(ROUNDS))
    yield f"{min(folding):.3f}"
    yield f"{fold.written / 1e6:.1f}"
    yield f"{sum(len(each or b'') for each in states['transactions'].to_pylist()) / 1e6:.1f}"
    yield f"{min(applying):.3f}"
    yield f"{scraping:.3f}"


def _opening(producers: Iterable[int], ends: list[int], seq: int) -> list[EventRow]:
    return _ranges([(producer, Step.DATA) for producer in producers], ends, seq)


def _ending(producers: Iterable[int], ends: list[int], seq: int) -> list[EventRow]:
    return _ranges([(producer, Step.COMMIT) for producer in producers], ends, seq)


def _ranges(reported: Sequence[tuple[int, Step]], ends: list[int], seq: int) -> list[EventRow]:
    """A range of each log; producer n writes to log n modulo their number."""
    of: dict[int, list[tuple[int, Step]]] = {}
    for producer, step in reported:
        of.setdefault(producer % len(ends), []).append((producer, step))
    rows = []
    for log, found in of.items():
        steps = np.zeros(len(found), TRANSACTION_STEPS)
        begin = ends[log]
        offsets = np.arange(begin, begin + len(found))
        steps["producer_id"], steps["step"] = np.array(found).T
        steps["source"] = np.where(steps["step"] == Step.DATA, int(StartSource.SEEN), 0)
        steps["first_offset"], steps["next_offset"] = offsets, offsets + 1
        steps["bytes"], steps["bytes_before"] = 100, (offsets - begin) * 100
        steps["start_ms"] = steps["last_ms"] = NOW_MS
        ends[log] += len(found)
        rows.append(
            appended(
                seq,
                begin,
                ends[log],
                100 * len(found),
                part=log,
                partition=log,
                seen_at=NOW_MS,
                transactions=steps.tobytes(),
                high_watermark=ends[log],
            )
        )
    return rows


def _table() -> Table:
    return Table(replicas="leaders", stale_after_s=300, series_limit=10_000_000, context=context_of(Settings()))


# --- none at all


class _Fold:
    """The stateful processor with a state for each shard, as Spark runs it; a log's shard is its partition modulo their number."""

    def __init__(self, shards: int) -> None:
        self.written = 0
        self._values: list[tuple[bytes] | None] = [None] * shards
        self._shard = 0
        self._processor = ShardProcessor()
        self._processor.init(cast(Any, self))

    # what the processor asks of Spark

    def getValueState(self, *_: object) -> "_Fold":  # noqa: N802
        return self

    def get(self) -> tuple[bytes] | None:
        return self._values[self._shard]

    def update(self, value: tuple[bytes]) -> None:
        self._values[self._shard] = value
        self.written += len(value[0])

    # what the bench asks

    def packed(self, rows: Iterable[EventRow]) -> list[tuple[int, bytes]]:
        of: dict[int, list[EventRow]] = {}
        for each in rows:
            of.setdefault(each.partition % len(self._values), []).append(each)
        return [(shard, _packed(some)) for shard, some in of.items()]

    def take(self, rows: Iterable[EventRow]) -> pa.Table:
        return pa.concat_tables([STATES.empty_table(), *(self.take_packed(shard, part) for shard, part in self.packed(rows))])

    def take_packed(self, shard: int, packed: bytes) -> pa.Table:
        """Fold a micro-batch of one shard; returns what changed."""
        self._shard = shard
        frames = self._processor.handleInputRows((shard,), iter([pd.DataFrame({SHARD: [shard], ROWS: [packed]})]), None)
        return pa.Table.from_batches([unpack_rows(each, STATES) for frame in frames for each in frame[ROWS]], STATES)


def _appeared(log: int) -> EventRow:
    return row(Kind.APPEARED, 1, part=log, partition=log, next_offset=0)


def _packed(rows: Sequence[EventRow]) -> bytes:
    return pack_rows(batch_of(rows))


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    begun = time.process_time()
    done = work()
    return time.process_time() - begun, done
