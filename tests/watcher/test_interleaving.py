"""Whatever a broker does to its files, and whatever happens to the agent meanwhile: every byte is counted once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from streaming.simulator.batch_writer import BatchEntry, encode
from streaming.simulator.log import FactTotals, LogDir, PartitionLog, compact
from streaming.simulator.segment_writer import WrittenSegment
from tests.builders import NOW, batch, delete, log_dir, partition
from tests.simulated import write_part
from tests.watcher.station import Fold, Station
from tests.watcher.stepping import Step, hold, piece_by_piece, step

BATCH_BYTES = len(encode(batch(), 0))
SEGMENT_BYTES = 5 * BATCH_BYTES


@dataclass
class Expected:
    """What a reader must have counted of one log, kept from what was done to it.

    ``held`` is the segment whose file the watcher has open; ``pending`` what is unread of it since it is no longer one of the log's, and
    ``cut`` how far the log was cut off since the last look.
    """

    log: PartitionLog
    seen: int
    held: WrittenSegment | None = None
    pending: Sequence[BatchEntry] = ()
    cut: int | None = None
    met: bool = False
    totals: FactTotals = field(default_factory=FactTotals)
    skipped: bool = False

    def before_change(self) -> None:
        """Something may take the held segment out of the log."""
        if self.held is None or self.held not in self.log.segments:
            return
        if self.cut is not None and self.cut < self.seen:
            self.let_go()  # what was read of it is gone: the watcher looks for the place elsewhere
        else:
            self.cut = None  # nothing that was read
            self.pending = [entry for entry in self.held.entries if entry.base_offset >= self.seen]

    def after_change(self) -> None:
        if self.held is not None and self.held in self.log.segments:
            self.pending = ()

    def truncated(self, offset: int) -> None:
        self.cut = offset if self.cut is None else min(self.cut, offset)

    def looked(self) -> None:
        """The watcher has read all there is to read."""
        self._count(self.pending)
        first = self.log.segments[0].base_offset
        self.skipped = self.skipped or (self.met and first > self.seen)
        if self.cut is not None:
            self.seen = min(self.seen, self.cut)
        self.seen = max(self.seen, first)
        self._count([entry for segment in self.log.segments for entry in segment.entries])
        self.held, self.pending, self.cut, self.met = self.log.active, (), None, True

    def glanced(self) -> None:
        """The watcher has looked at the open file alone."""
        if self.held is not None:
            self._count(self.held.entries)

    def let_go(self) -> None:
        """The watcher has no file open any more."""
        self.held, self.pending = None, ()

    def _count(self, entries: Sequence[BatchEntry]) -> None:
        for entry in entries:
            if entry.base_offset >= self.seen:
                self.totals += FactTotals(entry.size, 0 if entry.control else 1, entry.records)
                self.seen = entry.last_offset + 1


class WatchedBroker:
    """A broker's log dir with a few partitions, and a station beside it."""

    def __init__(self, root: Path) -> None:
        self.directory: LogDir = log_dir(root)
        self.other: LogDir = log_dir(root, "d1")
        self.station = Station(self.directory.path, self.other.path)
        self.expected: dict[str, dict[int, Expected]] = {"first": {}}
        self.logs: list[PartitionLog | None] = []
        self._epoch = 0
        self._ids = 0
        for number in range(2):
            self.logs.append(None)
            self.create(number)
        self.station.begin("earliest")

    def close(self) -> None:
        self.station.close()
        for log in self.logs:
            if log is not None:
                log.close()
        self.directory.release()
        self.other.release()

    def _of(self, number: int) -> list[Expected]:
        return [logs[number] for logs in self.expected.values() if number in logs]

    # --- what a broker does

    def create(self, number: int) -> None:
        if self.logs[number] is None:
            self._ids += 1
            log = partition(
                self.directory,
                f"topic-{number}",
                topic_id=self._ids,
                segment_bytes=SEGMENT_BYTES,
                index_interval_bytes=BATCH_BYTES,
                preallocate=number == 1,
                retention_bytes=0,
            )
            self.logs[number] = log
            for logs in self.expected.values():
                logs[number] = Expected(log, 0)

    def delete_topic(self, number: int) -> None:
        log = self.logs[number]
        if log is not None:
            delete(self.directory, log).remove()
            self.logs[number] = None
            for logs in self.expected.values():
                logs.pop(number, None)

    def append(self, number: int, records: int, at_once: int = 1) -> None:
        log = self.logs[number]
        if log is not None:
            log.append(*[batch(records)] * at_once, leader_epoch=self._epoch)

    def append_in_parts(self, number: int, records: int, permille: int) -> None:
        """The watcher looks while the write is half done."""
        log = self.logs[number]
        if log is not None:
            size = len(encode(batch(records), 0))
            if log.active.size + size > SEGMENT_BYTES:
                log.roll()
            write_part(log, batch(records), size=(size - 2) * permille // 1000, leader_epoch=self._epoch)
            self.look(hinted=True)
            log.append(batch(records), leader_epoch=self._epoch)

    def new_leader(self) -> None:
        self._epoch += 1

    def roll(self, number: int) -> None:
        log = self.logs[number]
        if log is not None and log.active.size:
            log.roll()

    def delete_segments(self, number: int, count: int) -> None:
        log = self.logs[number]
        if log is not None:
            for one in self._of(number):
                one.before_change()
            log.delete_records(log.segments[min(count, len(log.segments) - 1)].base_offset)
            log.config = log.config.__class__(segment_bytes=SEGMENT_BYTES, compacted=True, preallocate=number == 1, retention_ms=-1)
            log.delete_old_segments(NOW)
            log.unlink_deleted(NOW + count * 60_000)
            for one in self._of(number):
                one.after_change()

    def truncate(self, number: int, permille: int, regrow: int) -> None:
        """A follower that was ahead of its new leader."""
        log = self.logs[number]
        if log is None:
            return
        entries = [entry for segment in log.segments for entry in segment.entries]
        ends = [log.segments[0].base_offset, *(entry.last_offset + 1 for entry in entries)]
        offsets = [entry.base_offset for entry, end in zip(entries, ends, strict=False) if entry.base_offset == end]  # not in a gap
        if offsets:
            for one in self._of(number):
                one.before_change()
            offset = offsets[(len(offsets) - 1) * permille // 1000]
            log.truncate(offset)
            self._epoch += 1
            for one in self._of(number):
                one.after_change()
                one.truncated(log.log_end_offset)
            for _ in range(regrow):
                log.append(batch(1), leader_epoch=self._epoch)

    def compact(self, number: int, which: int, keep: int) -> None:
        log = self.logs[number]
        if log is not None and len(log.segments) > 1:
            segment = log.segments[which % (len(log.segments) - 1)]
            if segment.entries:
                for one in self._of(number):
                    one.before_change()
                kept = {entry.base_offset for cursor, entry in enumerate(segment.entries) if keep >> cursor & 1}
                compact(log, segment.base_offset, kept)
                for one in self._of(number):
                    one.after_change()

    # --- what happens to the agent

    def look(self, *, hinted: bool) -> None:
        self.station.look(self.station.everything() if hinted else None)
        for logs in self.expected.values():
            for one in logs.values():
                one.looked()

    def look_quickly(self) -> None:
        """The watcher looks at the files it has open, and at nothing else."""
        ones = [one for logs in self.expected.values() for one in logs.values()]
        if all(one.held in one.log.segments and one.cut is None for one in ones):
            self.station.turn()
            for one in ones:
                one.glanced()

    def replace(self) -> None:
        self.station.replace_watcher()
        self._let_go()

    def restart(self) -> None:
        self.station.restart()
        self._let_go()

    def _let_go(self) -> None:
        for logs in self.expected.values():
            for one in logs.values():
                one.let_go()

    def second_reader(self, start_from: str) -> None:
        """Another job begins, which has its own idea of where."""
        if "second" not in self.expected:
            self.look(hinted=True)
            self.station.begin(start_from, "second")
            self.expected["second"] = {
                number: Expected(log, _start(log, start_from)) for number, log in enumerate(self.logs) if log is not None
            }
            self._let_go()
            self.look(hinted=True)

    def disk_away(self) -> None:
        """The log dir cannot be read for a while."""
        self.look(hinted=True)
        away = self.directory.path.with_name("away")
        self.directory.path.rename(away)
        self.station.look()
        self.station.look()
        away.rename(self.directory.path)
        self._let_go()

    def unmount(self, *, replaced: bool) -> None:
        """The log dir is there and empty for a while, as a mount point is."""
        self.look(hinted=True)
        away = self.directory.path.with_name("away")
        self.directory.path.rename(away)
        self.directory.path.mkdir()
        self.station.look()
        if replaced:
            self.station.replace_watcher()
        self.station.look({self.directory.path, *(self.directory.path / path.name for path in away.iterdir())})
        self.directory.path.rmdir()
        away.rename(self.directory.path)
        self._let_go()

    def check(self) -> None:
        self.look(hinted=False)
        for name, logs in self.expected.items():
            for number, one in logs.items():
                assert _counted(self.station.folds[name], number) == (one.totals, one.log.log_end_offset, one.skipped), (name, number)
            assert len(self.station.folds[name].logs) == len(logs)


def _start(log: PartitionLog, start_from: str) -> int:
    return {"earliest": log.segments[0].base_offset, "active": log.active.base_offset, "latest": log.log_end_offset}[start_from]


def _counted(fold: Fold, number: int) -> tuple[FactTotals, int, bool]:
    (one,) = [counted for log, counted in fold.logs.items() if log.topic == f"topic-{number}"]
    return FactTotals(one.bytes, one.batches, one.records), one.next_offset, bool(one.skipped)


numbers, permilles = st.integers(0, 1), st.integers(0, 1000)
steps = st.one_of(
    step("append", numbers, st.integers(1, 4), st.integers(1, 7)),
    step("append", numbers, st.integers(1, 4), st.integers(1, 7)),
    step("append_in_parts", numbers, st.integers(1, 3), permilles),
    step("new_leader"),
    step("roll", numbers),
    step("delete_segments", numbers, st.integers(1, 3)),
    step("truncate", numbers, permilles, st.integers(0, 9)),
    step("compact", numbers, st.integers(0, 3), st.integers(0, 31)),
    step("delete_topic", numbers),
    step("create", numbers),
    step("look", hinted=st.booleans()),
    step("look", hinted=st.booleans()),
    step("look_quickly"),
    step("replace"),
    step("restart"),
    step("second_reader", st.sampled_from(["earliest", "active", "latest"])),
    step("disk_away"),
    step("unmount", replaced=st.booleans()),
)


@example([("disk_away", (), {}), ("append", (0, 1, 1), {}), ("append", (0, 1, 5), {}), ("second_reader", ("latest",), {})])
@given(st.lists(steps, max_size=25))
def test_every_byte_is_counted_once_whatever_happens(done: list[Step]) -> None:
    hold(WatchedBroker, done)


@given(st.lists(steps, max_size=25))
def test_so_it_is_where_a_turn_reads_one_piece_and_everything_is_replayed(done: list[Step]) -> None:
    with piece_by_piece():
        hold(WatchedBroker, done)
