"""Whatever happens to a log and to the agent, what readers fold of its transactions is what stands open in the log."""

from dataclasses import fields
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.journal.journal import Begun
from streaming.broker.watcher.beginnings import Beginning
from streaming.common.event_row import Event, EventRow
from streaming.common.log_positions import KnownEnd
from streaming.common.rows import TRANSACTIONS, Kind
from streaming.common.start_from import StartFrom
from streaming.simulator.batch_writer import Batch
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.events import Shard
from tests.facts import facts_of
from tests.watcher.journalled import events_of
from tests.watcher.station import Station
from tests.watcher.stepping import Step, hold, piece_by_piece, step

SEGMENT_BYTES = 700
"""Five batches or so."""

PRODUCERS = 4000
_OF_EVENT = [field.name for field in fields(Event)]


class TransactionalLog:
    """A log with transactions, a station beside it, and readers that fold what it publishes."""

    def __init__(self, root: Path) -> None:
        self.directory: LogDir = log_dir(root)
        self.log: PartitionLog = partition(self.directory, "t", segment_bytes=SEGMENT_BYTES, retention_bytes=0)
        self.station = Station(self.directory.path)
        self.shards: dict[str, Shard] = {}
        self.seqs: dict[str, int] = {}
        self.starts: dict[str, str] = {}
        self.epoch = 0
        self.cut = False
        self.begun: dict[str, Begun] = {}
        self.reader("first", "earliest")

    def close(self) -> None:
        self.station.close()
        self.log.close()
        self.directory.release()

    # --- what a broker does

    def append(self, *batches: Batch) -> None:
        self.log.append(*batches, leader_epoch=self.epoch)

    def data(self, producer: int, at_once: int) -> None:
        self.append(*[batch(1, producer=PRODUCERS + producer, transactional=True)] * at_once)

    def plain(self) -> None:
        self.append(batch(2))

    def end(self, producer: int, committed: bool) -> None:
        self.append((commit if committed else abort)(PRODUCERS + producer))

    def roll(self) -> None:
        if self.log.active.size:
            self.log.roll()

    def delete_segments(self, count: int) -> None:
        if self.cut:  # what was cut off and written anew, and then deleted before anybody looked, leaves no trace
            self.look_quickly()
            self.cut = False
        self.log.delete_records(self.log.segments[min(count, len(self.log.segments) - 1)].base_offset)
        self.log.delete_old_segments(NOW)
        self.log.unlink_deleted(NOW + count * 60_000)

    def truncate(self, permille: int) -> None:
        entries = [entry for segment in self.log.segments for entry in segment.entries]
        if entries:
            self.log.truncate(entries[(len(entries) - 1) * permille // 1000].base_offset)
            self.epoch += 1
            self.cut = True

    # --- what happens to the agent and its readers

    def look(self) -> None:
        self.station.look(self.station.everything())
        self._fold()

    def look_quickly(self) -> None:
        """Look, and let nobody read: neighbouring ranges become one."""
        self.station.watcher.poll(self.station.everything())

    def replace_watcher(self) -> None:
        """Another watcher goes on; beginnings that nobody has published yet are asked for again."""
        self.station.replace_watcher()
        for name, shard in self.shards.items():
            if not self.begun[name].done.is_set():
                self._begin(name, self.starts[name], resumed=bool(shard.states))

    def restart(self) -> None:
        """Another process; every reader begins at what it has."""
        self._fold()
        self.station.restart()
        self.seqs.clear()
        for name, shard in self.shards.items():
            self._begin(name, self.starts[name], resumed=bool(shard.states))

    def begin_again(self, name: str) -> None:
        """Another run of a reader."""
        if name in self.shards:
            self._fold()
            self._begin(name, self.starts[name], resumed=bool(self.shards[name].states))

    def reader(self, name: str, start_from: str) -> None:
        if name not in self.shards:
            self.look_quickly()  # it may not begin in a file that is held although it is deleted
            self.shards[name] = Shard()
            self.starts[name] = start_from
            self._begin(name, start_from, resumed=False)
            self.look_quickly()

    def drop(self) -> None:
        """What readers have not had is dropped: they begin again."""
        self.station.journal.clear()
        for name, shard in self.shards.items():
            self._begin(name, self.starts[name], resumed=bool(shard.states))

    def _begin(self, name: str, start_from: str, *, resumed: bool) -> None:
        states = self.shards[name].states.items() if resumed else ()
        ends = {key: KnownEnd(state.log_end_offset, state.log_epoch) for key, state in states if not state.departed}
        self.begun[name] = self.station.watcher.begin(Beginning(StartFrom(start_from), resumed, name, ends))
        self.seqs.pop(name, None)

    def _fold(self) -> None:
        journal = self.station.journal
        for name, shard in self.shards.items():
            begun = self.begun[name]
            if begun.done.is_set():
                self.seqs.setdefault(name, begun.seq)
                upto = journal.reach(self.seqs[name], None).seq
                events = events_of(journal, self.seqs[name], upto)
                rows = [self._row(name, seq, event) for seq, event in events if event.kind is not Kind.CENSUS]
                shard.fold(*rows)
                self.seqs[name] = upto

    def _row(self, name: str, seq: int, event: Event) -> EventRow:
        journal = f"{self.station.journal.id}.{self.begun[name].seq}"
        return EventRow(agent="a1", journal=journal, seq=seq, **{name: getattr(event, name) for name in _OF_EVENT})

    def check(self) -> None:
        self.plain()  # a hole before the first byte of another journal shows with what is appended behind it
        self.station.look()
        self._fold()
        for name, shard in self.shards.items():
            (state,) = shard.states.values()
            assert state.log_end_offset == self.log.log_end_offset, name
            assert open_in(state.transactions) == facts_of(self.log).open_transactions, name


def open_in(transactions: bytes | None) -> tuple[tuple[int, int], ...]:
    """(producer id, first offset) of what is open."""
    found = np.frombuffer(transactions or b"", TRANSACTIONS)
    return tuple((int(row["producer_id"]), int(row["first_offset"])) for row in found if row["committed"] < 0)


producers = st.integers(0, 2)
steps = st.one_of(
    step("data", producers, st.integers(1, 3)),
    step("data", producers, st.integers(1, 3)),
    step("end", producers, st.booleans()),
    step("end", producers, st.booleans()),
    step("plain"),
    step("roll"),
    step("delete_segments", st.integers(1, 3)),
    step("truncate", st.integers(0, 1000)),
    step("look"),
    step("look"),
    step("look_quickly"),
    step("replace_watcher"),
    step("restart"),
    step("drop"),
    step("begin_again", st.sampled_from(["first", "second"])),
    step("reader", st.sampled_from(["second", "third"]), st.sampled_from(["earliest", "active", "latest"])),
)


@given(st.lists(steps, max_size=30))
def test_what_readers_fold_is_what_stands_open_in_the_log(done: list[Step]) -> None:
    hold(TransactionalLog, done)


@given(st.lists(steps, max_size=30))
def test_so_it_is_where_everything_is_replayed_in_pieces(done: list[Step]) -> None:
    with piece_by_piece():
        hold(TransactionalLog, done)
