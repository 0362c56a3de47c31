"""A watcher with all that it needs, turned by hand: a clock that stands still, leaders that are set, a journal, a reader that folds."""

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.journal.census import members
from streaming.broker.journal.journal import Begun as BeginningOf
from streaming.broker.journal.journal import Journal
from streaming.broker.journal.scan_cache import ScanCache
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.cluster_knowledge import Leads
from streaming.broker.watcher.watcher import RESCAN_MS, Watcher
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.log_positions import KnownEnd
from streaming.common.rows import Kind
from streaming.kafka.formats.metadata_partitions import Begun, PartitionState, UncleanElection
from streaming.kafka.scan.sums import Sums, first_offset_above, sums_from
from streaming.rules.limits import Limits, limits_of
from tests.builders import NOW
from tests.clocks import Clock
from tests.watcher.journalled import events_of

SUMMED = tuple(field.name for field in fields(Sums) if field.name not in ("leader_epoch", "least_timestamp"))
PRODUCERS_LIMIT = 100
MOST_TURNS = 200
"""A watcher that still has more to do after so many turns never rests."""


COMPACTED = '{"topic":{"cleanup.policy":"compact"}}'


@dataclass
class Leaders:
    """What the metadata log would say."""

    leaders: dict[LogKey, tuple[int, int]] = field(default_factory=dict)
    topics: dict[str, bool] = field(default_factory=dict)
    compacted: set[str] = field(default_factory=set)
    replicas: dict[LogKey, tuple[int, ...]] = field(default_factory=dict)
    directories: dict[LogKey, tuple[str, ...]] = field(default_factory=dict)
    set_for: dict[str, str] = field(default_factory=dict)
    former: dict[tuple[LogKey, int], int] = field(default_factory=dict)  # leaders of earlier epochs than the present one
    metadata_versions: dict[int, int] = field(default_factory=dict)
    begun: dict[LogKey, Begun] = field(default_factory=dict)
    elections: list[UncleanElection] = field(default_factory=list)
    changes: int = 0

    def refresh(self) -> None:
        """Nothing is read."""

    def leads(self, log: LogKey, epoch: int) -> Leads:
        leader, newest = self.leaders.get(log, (-2, -1))
        if leader == -2:
            return Leads.UNKNOWN
        if epoch > newest:
            return Leads.BEHIND
        return Leads.YES if self.former.get((log, epoch), leader) == log.broker else Leads.NO

    def has_topic(self, log: LogKey) -> bool | None:
        return self.topics.get(log.topic)

    def topic_ids(self) -> None:
        """They are not known."""

    def metadata_version(self, broker: int) -> int:
        return self.metadata_versions.get(broker, -1)

    def epochs_begun(self, log: LogKey) -> Begun:
        return self.begun.get(log, ())

    def version(self) -> int:
        return self.changes

    def partition(self, log: LogKey) -> PartitionState | None:
        if log not in self.leaders:
            return None
        leader, epoch = self.leaders[log]
        replicas = self.replicas.get(log, (leader,))
        directories = self.directories.get(log, ())
        return PartitionState(
            replicas=replicas, isr=replicas, leader=leader, leader_epoch=epoch, partition_epoch=0, directories=directories
        )

    def configs(self, log: LogKey) -> str:
        return self.set_for.get(log.topic, "")

    def unclean_elections(self) -> list[UncleanElection]:
        taken, self.elections = self.elections, []
        return taken

    def limits(self, log: LogKey) -> Limits:
        return limits_of(log.topic, COMPACTED if log.topic in self.compacted else self.configs(log))


@dataclass
class Counted:
    """What a reader has counted of one log."""

    next_offset: int
    log_epoch: int = -1
    bytes: int = 0
    batches: int = 0
    records: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    corrupt_at: list[int] = field(default_factory=list)
    corrupt_end: int = -1
    truncations: int = 0
    settled: bool = False


class Fold:
    """The simplest reader that counts every byte once: next per log, what is behind it is dropped, a range is cut by its detail."""

    def __init__(self) -> None:
        self.logs: dict[LogKey, Counted] = {}

    def ends(self) -> dict[LogKey, KnownEnd]:
        """Up to where it has counted each log."""
        return {log: KnownEnd(counted.next_offset, counted.log_epoch) for log, counted in self.logs.items()}

    def apply(self, event: Event) -> None:
        if event.kind is Kind.FOUND:
            return
        if event.kind is Kind.CENSUS:
            present = {each.log for each in members(event)}
            self.logs = {log: counted for log, counted in self.logs.items() if log in present}
        elif event.kind is Kind.GONE:
            self.logs.pop(event.log, None)
        elif event.kind is Kind.APPEARED:
            self._appeared(event)
        else:
            counted = self.logs.setdefault(event.log, Counted(max(event.base_offset, 0)))
            getattr(self, f"_{event.kind}")(counted, event)
            counted.settled = counted.settled or event.settled

    def _appeared(self, event: Event) -> None:
        counted = self.logs.get(event.log)
        if counted is None:
            self.logs[event.log] = Counted(event.next_offset, event.log_epoch)
        elif event.next_offset > counted.next_offset:
            counted.skipped["agent_lost"] += 1
            counted.next_offset, counted.log_epoch = event.next_offset, event.log_epoch

    def _appended(self, counted: Counted, event: Event) -> None:
        values = event
        if event.detail is not None:
            parted = first_offset_above(event.detail, counted.log_epoch)
            if parted is not None and counted.log_epoch >= 0 and parted < counted.next_offset:
                counted.next_offset, counted.truncations = parted, counted.truncations + 1
            if event.base_offset < counted.next_offset:
                sums = sums_from(event.detail, counted.next_offset)
                if sums is None:
                    return
                values = replace(event, log_epoch=sums.leader_epoch, **{name: getattr(sums, name) for name in SUMMED})
        if values.next_offset <= counted.next_offset:
            return
        assert values.base_offset >= counted.next_offset, "a range straddles what was counted and has no detail to cut it by"
        counted.next_offset, counted.log_epoch = values.next_offset, values.log_epoch
        counted.bytes += values.bytes
        counted.batches += values.batches
        counted.records += values.records

    def _truncated(self, counted: Counted, event: Event) -> None:
        if event.next_offset < counted.next_offset:
            counted.next_offset, counted.truncations = event.next_offset, counted.truncations + 1

    def _skipped(self, counted: Counted, event: Event) -> None:
        if event.base_offset == event.next_offset:  # behind a flaw: known by its position
            if event.next_offset == counted.next_offset:
                counted.skipped[event.reason] += max(0, event.end_position - max(event.start_position, counted.corrupt_end))
                counted.corrupt_end = max(counted.corrupt_end, event.end_position)
        elif event.next_offset > counted.next_offset:
            counted.skipped[event.reason] += event.bytes
            counted.next_offset = event.next_offset

    def _corrupt(self, counted: Counted, event: Event) -> None:
        counted.settled = True
        if event.base_offset not in counted.corrupt_at and event.base_offset == counted.next_offset:
            counted.corrupt_at.append(event.base_offset)


class Station:
    """One agent's inside. ``looks`` are whole: turned until there is nothing more to do, and everything published is folded."""

    def __init__(self, *log_dirs: Path, clock: Clock | None = None, few_logs: int = 0, cache: Path | None = None) -> None:
        self.few_logs = few_logs  # by default every log that can be is read as columns
        self.clock = clock or Clock(NOW)
        self.cluster = Leaders()
        self.paths = log_dirs
        self.events: list[Event] = []
        self.folds: dict[str, Fold] = {}
        self.asked = 0  # how often the watcher asked whether to stop
        self.stop_at = -1  # at which of these it has to stop
        self._starts: dict[str, str] = {}
        self._begun: dict[str, BeginningOf] = {}
        self._read: dict[str, int] = {}
        self.journal = Journal()
        self._cache, self.cache = cache, ScanCache(cache)
        self._open()

    def _open(self) -> None:
        dirs = open_log_dirs(self.paths)
        self.watcher = Watcher(
            dirs,
            self.journal,
            self.cluster,
            self.clock,
            producers_limit=PRODUCERS_LIMIT,
            attached=self.journal.begun,
            should_stop=self._should_stop,
            few_logs=self.few_logs,
            cache=self.cache,
        )

    def _should_stop(self) -> bool:
        self.asked += 1
        return self.asked == self.stop_at

    def close(self) -> None:
        self.watcher.close()
        self.cache.close()

    def replace_watcher(self) -> None:
        """Another watcher goes on from what is published, as where a call of the first one does not return; who waits begins again."""
        self.watcher.close()
        self._open()
        for name, begun in self._begun.items():
            if not begun.done.is_set():
                self.begin(self._starts[name], name, resumed=bool(self.folds[name].logs))

    def restart(self) -> None:
        """Another process, which knows nothing; every reader begins at what it has counted."""
        self.leave()
        self.come_back()

    def leave(self) -> None:
        """The process ends, and nobody looks."""
        self.close()
        self.journal = Journal()
        self._begun.clear()
        self._read.clear()

    def come_back(self) -> None:
        """Another process."""
        self.cache = ScanCache(self._cache)
        self._open()
        for name in self.folds:
            self.begin(self._starts[name], name, resumed=bool(self.folds[name].logs))

    def begin(self, start_from: str, name: str = "first", *, resumed: bool = False) -> None:
        """A run of a reader registers; the next look publishes its beginning."""
        fold = self.folds.setdefault(name, Fold())
        self._starts.setdefault(name, start_from)
        self._read.pop(name, None)
        self._begun[name] = self.watcher.begin(Beginning(start_from, resumed, name, fold.ends() if resumed else {}))  # type: ignore[arg-type]

    def turn(self, hints: set[Path] | None = None, *, budget: int | None = None) -> bool:
        more = self.watcher.poll(hints or set(), budget)
        self._fold()
        return more

    def look(self, hints: set[Path] | None = None) -> list[Event]:
        """Turn until it rests; with a new survey unless there are hints. Returns what was published but censuses and lists of segments."""
        begun = len(self.events)
        self.clock.now += 1000 if hints is not None else RESCAN_MS
        for _ in range(MOST_TURNS):
            if not self.turn(hints):
                break
            hints = None
        else:
            raise AssertionError("the watcher never rests")
        return [event for event in self.events[begun:] if event.kind not in (Kind.CENSUS, Kind.FOUND)]

    def everything(self) -> set[Path]:
        """Hints at all there is."""
        return {*self.paths, *(path for root in self.paths for path in root.iterdir() if path.is_dir())}

    def fold_of(self, topic: str, partition: int = 0, *, name: str = "first") -> Counted:
        (found,) = [counted for log, counted in self.folds[name].logs.items() if (log.topic, log.partition) == (topic, partition)]
        return found

    def _fold(self) -> None:
        for number, (name, fold) in enumerate(self.folds.items()):
            begun = self._begun.get(name)
            if begun is not None and begun.done.is_set():
                after, upto = self._read.get(name, begun.seq), self.journal.end().seq
                for _, event in events_of(self.journal, after, upto):
                    fold.apply(event)
                    if number == 0:
                        self.events.append(event)
                self._read[name] = upto
