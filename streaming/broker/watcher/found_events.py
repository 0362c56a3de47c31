"""Publishes FOUND events: the list of a log's segments, and its values in other files and in the metadata log.

A FOUND event is published at the first check of a log, for a new job, and when something changes. A log is checked again only for a
reason: its directory was listed again, its first batch was written, a checkpoint has another offset for it, or the metadata log has another
leader or configuration. The high watermark is published with appends. It is published alone only if nothing was appended for a while.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from time import monotonic

import numpy as np
import pyarrow as pa

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.log_inventory import Inventory, LogInventory, ScannedTimes
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.segment_files import SegmentListing
from streaming.broker.disk.segment_times import ActiveRead
from streaming.broker.journal.cursor import TIMES_UNKNOWN, Cursor
from streaming.broker.watcher.cluster_knowledge import LEADER_UNKNOWN, Cluster
from streaming.broker.watcher.cursors import unpack
from streaming.broker.watcher.last_found import LastFound
from streaming.broker.watcher.offset_checkpoints import Checkpoints, RecoveryPositions
from streaming.broker.watcher.tail import Tail
from streaming.common.arrays import Longs
from streaming.common.catalog import LOGS, NOTHING_DECIDED, PARTITIONS, TOPICS, UNREADABLE, Editions, packed_epochs
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.formats.metadata_partitions import Begun, PartitionState
from streaming.kafka.formats.names import CLEANER_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT
from streaming.rules.limits import producer_expiration

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.02
"""How long lists are looked at in one poll."""

FIRST_LOOK_SECONDS = 0.5
"""The same while there are logs of which no list is published; or as long as the rest of the poll takes."""

MOST_LOOK_SECONDS = 1.0
"""But no longer than that."""

CHECK_MS = 1_000
"""The shortest time between two comparisons of checkpoints and metadata log with the published values."""

REGULAR_MS = 600_000
"""Every log is checked once in this time in any case; a broker forgets idle producers as often."""

QUIET_MS = 3_000
"""If a log was appended to within this time, its high watermark is published with the next append."""

_SHARED = tuple(each.name for each in fields(ActiveRead) if each.name in Cursor._fields)
"""What a cursor says of the segment that it is in."""


class FoundPublisher:
    """Checks the watched logs, and makes their FOUND events. Only the watcher's thread calls it.

    Args:
        once: as in `streaming.broker.watcher.registry.Scope`.
    """

    def __init__(
        self, log_dirs: LogDirs, cluster: Cluster, clock_ms: Callable[[], int], scanned: ScannedTimes, *, once: bool = False
    ) -> None:
        self._once = once
        self._cluster = cluster
        self.checkpoints = Checkpoints(log_dirs)
        self.decided = LogCatalog(cluster, self.checkpoints)
        """The catalog of the logs."""
        self._clock_ms = clock_ms
        self._time = ListTime()
        self.inventory = Inventory(thorough=once, clock_ms=clock_ms, scanned=scanned)
        self._unfinished: dict[Tail, None] = {}  # with something to scan
        self._due: deque[Tail] = deque()  # to be checked
        self._looked_at: dict[Path, Partition] = {}
        self._tails: Sequence[Tail] = ()  # the logs of the last round
        self._quiet: deque[Tail] = deque()  # of which nothing but the high watermark has to be published
        self._unequal: dict[Tail, None] = {}  # logs of which checkpoints may have other offsets than are published
        self._version = -1  # of the metadata logs, at the last comparison
        self._next_check = 0
        self._regular = RegularTurns(REGULAR_MS)

    @property
    def unfinished(self) -> bool:
        """Whether something has to be scanned before all times are known."""
        return bool(self._unfinished)

    def scan(self, budget: int, is_there: Callable[[Tail], bool]) -> None:
        """Scan about ``budget`` bytes of one log that has something to scan.

        Args:
            is_there: whether a log is still watched, and may be read.
        """
        tail = next(iter(self._unfinished))
        try:
            if is_there(tail):
                self.inventory.scan(tail.partition, budget)
                if self.inventory.unfinished(tail.partition):
                    return
                tail.make_list_due()
        except MemoryError:
            raise
        except Exception as error:  # an error in an old batch does not stop anything else
            if isinstance(error, FileNotFoundError):  # compacted or deleted; after other errors the next regular check tries
                tail.make_list_due()
            extra = {"log": str(tail.cursor.log), "path": tail.path, "error": str(error)}
            log.warning("segment cannot be scanned", exc_info=None if isinstance(error, OSError) else error, extra=extra)
        del self._unfinished[tail]

    def forget_others(self, tails: Sequence[Tail]) -> None:
        """Forget the scans of earlier processes whose segments are in none of these logs; only once all logs have been checked."""
        if all(tail.last_found is not None for tail in tails):
            self.inventory.scanned.keep_only(self.inventory.files())

    def round(
        self, tails: Sequence[Tail], moving: Collection[tuple[int, str, int]], *, at_once: bool, full: bool = False
    ) -> tuple[list[Event], bool]:
        """Check the logs that may have changed, for a short time; logs that are away or leaving are left out.

        Returns events, and whether some logs still have to be published with all their values.

        Args:
            moving: as `streaming.broker.watcher.registry.LogRegistry.moving`.
            at_once: a caller waits for it: every log that may have changed is checked now.
            full: only what is decided is looked at, because nothing more may be published now.
        """
        now = self._clock_ms()
        check = not self._next_check - CHECK_MS <= now < self._next_check
        anew = check or (at_once and not self._due)
        if anew:
            if tails is not self._tails:
                self._tails, self._unequal, self._quiet = tails, dict.fromkeys(tails), deque()
                self._forget([tail for tail in tails if _is_read(tail)])
            changed = self.checkpoints.refresh().among(tails) if check else None
            self.decided.look(tails, changed, moving)
            if changed is not None:
                self._next_check = now + CHECK_MS
                self._unequal.update(dict.fromkeys(tails[number] for number in changed))
                self._compare(tails, now)
            self._due = deque(tail for tail in tails if tail.list_due and _is_read(tail))
        self._time.begin(first=any(tail.owes_list for tail in self._due))
        events: list[Event] = []
        while (self._due or self._quiet) and not full and (self._once or self._time.left):
            event = self._look_safely(self._due.popleft()) if self._due else self._high_watermark(self._quiet.popleft(), now)
            if event is not None:
                events.append(event)
        self._time.end()
        # logs that have been read since then come in the next round
        return events, any(tail.owes_list for tail in self._due) or (at_once and not anew)

    def _compare(self, tails: Sequence[Tail], now: int) -> None:
        before, self._version = self._version, self._cluster.version()
        for number in self._regular.due(len(tails), now):
            if _is_read(tails[number]):
                tails[number].make_list_due()  # a change may have been missed; and each check compares one time index with its segment
        for tail in tails if self._version != before else ():
            last = tail.last_found
            if last is not None and not tail.list_due and _is_read(tail) and self._is_changed(tail, last):
                tail.make_list_due()
        self._quiet.clear()
        unequal = [tail for tail in self._unequal if tail.last_found is not None and not tail.list_due and _is_read(tail)]
        places = [tail.partition for tail in unequal]
        names = HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, CLEANER_CHECKPOINT
        columns = (self.checkpoints.offsets(places, name) for name in names)
        for tail, high_watermark, *starts in zip(unequal, *columns, strict=True):
            last = tail.last_found
            assert last is not None
            tail.note_high_watermark(high_watermark)
            if starts != [last.inventory.start_checkpoint, last.inventory.cleaner_checkpoint] or last.inventory.start_after_crash >= 0:
                tail.make_list_due()
            elif tail.high_watermark == last.high_watermark:
                del self._unequal[tail]
            elif not 0 <= now - tail.appended_ms < QUIET_MS:
                self._quiet.append(tail)

    def _forget(self, tails: Iterable[Tail]) -> None:
        """Forget logs that have left."""
        if len(self._looked_at) > sum(tail.last_found is not None for tail in tails):
            there = {tail.partition.path for tail in tails}
            for path in [path for path in self._looked_at if path not in there]:
                self.inventory.forget(self._looked_at.pop(path))

    def _is_changed(self, tail: Tail, last: LastFound) -> bool:
        """Whether the metadata log has another leader, or a configuration that changes how the log start or what expires is determined."""
        state = self._cluster.partition(tail.cursor.log)
        if (LEADER_UNKNOWN if state is None else (state.leader, state.leader_epoch)) != (last.leader, last.leader_epoch):
            return True
        limits = self._cluster.limits(tail.cursor.log)
        return (limits.remote_storage, limits.judges_expiry) != (last.remote, last.judges_expiry)

    def _look_safely(self, tail: Tail) -> Event | None:
        try:
            return self._look(tail)
        except MemoryError:
            raise
        except Exception:  # after an error in one log's other files its published values stay, and the other logs go on
            log.exception("log cannot be listed", extra={"log": str(tail.cursor.log), "path": tail.path})
            return None

    def _high_watermark(self, tail: Tail, now: int) -> Event | None:
        """The FOUND event of a log that rests, as each does after its appends: all else is as published."""
        last = tail.last_found
        if last is None or tail.list_due or not _is_read(tail):
            return None
        with_it = replace(last, high_watermark=tail.high_watermark)
        event = with_it.event(tail.event(Kind.FOUND), last, now)
        tail.note_found(with_it)
        return event

    def _look(self, tail: Tail) -> Event | None:
        """The FOUND event that has to be published for a log now, None for none."""
        tail.begin_list()
        self._looked_at[tail.partition.path] = tail.partition
        read = _read_of(tail)
        if read is not None:
            self.inventory.note_active(tail.partition, read)
        try:
            listing = None if tail.stamp is None else SegmentListing(tail.stamp, tail.segments, tail.log_start)
            inventory = self.inventory.look(tail.partition, listing)
        except OSError as error:  # its directory is gone or cannot be read: the published values stay until this is known
            log.info("log cannot be listed", extra={"log": str(tail.cursor.log), "error": str(error)})
            return None
        if inventory is None:
            return None
        if self.inventory.unfinished(tail.partition):
            self._unfinished[tail] = None
        if inventory.start_after_crash >= 0:
            self._unequal[tail] = None
        last = self._last_found(tail, inventory)
        event = last.event(tail.event(Kind.FOUND), None if tail.owes_list else tail.last_found, self._clock_ms())
        tail.note_found(last)
        return event

    def _last_found(self, tail: Tail, inventory: LogInventory) -> LastFound:
        log_ = tail.cursor.log
        state, limits = self._cluster.partition(log_), self._cluster.limits(log_)
        tail.expire_producers(producer_expiration(limits, self._cluster.metadata_version(log_.broker)), self._clock_ms())
        tail.note_high_watermark(*self.checkpoints.offsets([tail.partition], HIGH_WATERMARK_CHECKPOINT))
        leader, leader_epoch = LEADER_UNKNOWN if state is None else (state.leader, state.leader_epoch)
        remote = limits.remote_storage
        return LastFound(
            inventory=inventory,
            remote=remote,
            judges_expiry=limits.judges_expiry,
            log_start_offset=inventory.log_start_offset(remote_storage=remote),
            local_log_start_offset=inventory.own_start_offset if remote else -1,
            start_after_crash=-1 if remote else inventory.start_after_crash,
            high_watermark=tail.high_watermark,
            active_producers=tail.producers.active,
            leader=leader,
            leader_epoch=leader_epoch,
        )


class LogCatalog:
    """Keeps the catalog of a watcher's logs, and rebuilds only the parts that may have changed. Only the watcher's thread calls `look`.

    Makes the catalog of the logs that an agent watches, from metadata logs, configurations and checkpoints.
    """

    def __init__(self, cluster: Cluster, checkpoints: Checkpoints) -> None:
        self.editions = Editions()
        self._cluster = cluster
        self._checkpoints = checkpoints
        self.recovery = RecoveryPositions(checkpoints)
        """The recovery points of the logs, as they were found last."""
        self._catalog = NOTHING_DECIDED
        self._tails: Sequence[Tail] | None = None
        self._rows: LogRows | None = None  # of these logs
        self._version = -1  # of the metadata logs and configurations
        self._moving: Collection[tuple[int, str, int]] = ()

    def look(self, tails: Sequence[Tail], changed: Collection[int] | None, moving: Collection[tuple[int, str, int]] = ()) -> None:
        """Update the catalog to the present state of these logs.

        Args:
            tails: as `streaming.broker.watcher.departures.WatchedLogs.all` returns them.
            changed: the indexes of those with other offsets in a checkpoint, None if they were not read.
            moving: as `streaming.broker.watcher.registry.LogRegistry.moving`.
        """
        others, version = tails is not self._tails, self._cluster.version()
        if changed is not None and self._rows is not None and not others:  # an election may be known before the file that shows it
            changed = {*changed, *self._rows.led_anew()}
        catalog, dated = self._catalog, version != self._version and self._rows is not None
        if others or version != self._version:
            ids = [tail.cursor.log for tail in tails]
            catalog = replace(catalog, topics=topics_of(ids, self._cluster), partitions=partitions_of(ids, self._cluster))
        if others or self._rows is None or moving is not self._moving:
            self._rows, self._moving = LogRows(tails, self._cluster, self._checkpoints, self.recovery, moving), moving
            catalog = replace(catalog, logs=self._rows.table())
        elif dated or changed or (changed is not None and self.recovery.unsettled):
            if dated:
                self._rows.date_epochs()
            self._rows.read_again(changed or ())
            catalog = replace(catalog, logs=self._rows.table())
        if catalog is not self._catalog:
            self._catalog, self._tails, self._version = catalog, tails, version
            self.editions.update(catalog)


class LogRows:
    """The table `LOGS` of some logs: their offsets in the checkpoints of their log dirs, and their leader epochs. Only the watcher's thread
    uses it.

    Args:
        moving: as `streaming.broker.watcher.registry.LogRegistry.moving`.
    """

    def __init__(
        self,
        tails: Sequence[Tail],
        cluster: Cluster,
        checkpoints: Checkpoints,
        recovery: RecoveryPositions,
        moving: Collection[tuple[int, str, int]] = (),
    ) -> None:
        self._tails = tails
        self._cluster = cluster
        self._checkpoints = checkpoints
        self._recovery = recovery
        logs = [tail.cursor.log for tail in tails]
        keys = [[log.broker for log in logs], [log.topic for log in logs], [log.topic_id for log in logs], [log.partition for log in logs]]
        self._keys = [pa.array(column, each.type) for column, each in zip(keys, LOGS, strict=False)]
        self._offsets: Longs = np.empty((len(LOGS) - len(keys) - 2, len(tails)), np.int64)
        self._moving = pa.array(
            [int((log.broker, log.topic, log.partition) in moving) for log in logs] if moving else np.zeros(len(logs), int)
        )
        self._epochs = [b""] * len(tails)
        self._made_of: list[tuple[bytes, Begun]] = [(b"", ())] * len(tails)
        self.read_again(range(len(tails)))
        self.date_epochs()

    def read_again(self, changed: Iterable[int]) -> None:
        """Take over the offsets of some logs, by their indexes, and of those whose position is to be looked up again."""
        self._recovery.begin(self._tails)
        unsettled = self._recovery.unsettled
        again = [number for number, tail in enumerate(self._tails) if tail in unsettled] if unsettled else []
        numbers = sorted({*changed, *again})
        if numbers:
            self._offsets[:, numbers] = self._read([self._tails[number] for number in numbers])
        self._read_epochs(numbers)

    def led_anew(self) -> list[int]:
        """The logs whose leader epochs are stored otherwise by now."""
        return [number for number, (tail, (stored, _)) in enumerate(zip(self._tails, self._made_of, strict=True)) if tail.epochs != stored]

    def date_epochs(self) -> None:
        """Take over when leader epochs began: the metadata may show that by now."""
        self._read_epochs(range(len(self._tails)))

    def _read_epochs(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            tail = self._tails[number]
            begun, (stored, dated) = self._cluster.epochs_begun(tail.cursor.log), self._made_of[number]
            if begun is not dated or tail.epochs != stored:  # most have no other ones than before
                self._made_of[number] = tail.epochs, begun
                starts = {each.epoch: each.start_offset for each in unpack(tail.epochs)}
                self._epochs[number] = packed_epochs(starts, dict(begun))

    def _read(self, tails: Sequence[Tail]) -> Longs:
        checkpoints, places = self._checkpoints, [tail.partition for tail in tails]
        points, positions = zip(*self._recovery.of(tails), strict=True)
        names = HIGH_WATERMARK_CHECKPOINT, CLEANER_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT
        rows = [*(checkpoints.offsets(places, name) for name in names), points, positions]
        found = np.array(rows, np.int64)
        # a log dir that is away may never have been read: then it is not known whether there is an entry
        away = np.array([tail.away for tail in tails], bool)
        found[:-1][(found[:-1] < 0) & away] = UNREADABLE
        return found

    def table(self) -> pa.Table:
        """The rows as they are now."""
        columns = [*map(pa.array, self._offsets.copy()), self._moving, pa.array(self._epochs, pa.binary())]
        return pa.Table.from_arrays([*self._keys, *columns], schema=LOGS)


def topics_of(logs: Iterable[LogKey], cluster: Cluster) -> pa.Table:
    """The configuration of each topic on each broker."""
    first = {(log.broker, log.topic, log.topic_id): log for log in logs}
    return _table([(*key, cluster.configs(log)) for key, log in first.items()], TOPICS)


def _table(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.Table.from_arrays([pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)


def partitions_of(logs: Iterable[LogKey], cluster: Cluster) -> pa.Table:
    """The leader and the replicas of each partition."""
    first = {(log.topic, log.topic_id, log.partition): log for log in logs}
    return _table([(*key, *_assigned(cluster.partition(log), cluster)) for key, log in first.items()], PARTITIONS)


def _assigned(state: PartitionState | None, cluster: Cluster) -> tuple[object, ...]:
    if state is None:
        return (*LEADER_UNKNOWN, None, None, None, -1, None)
    version = cluster.metadata_version(state.leader) if state.leader >= 0 else -1
    return (
        state.leader,
        state.leader_epoch,
        state.assigned_replicas,
        state.adding_replicas,
        state.isr,
        version,
        state.eligible_leader_replicas,
    )


class ListTime:
    """The time that a poll may spend on lists. ``clock``: seconds of a clock that only goes forward. Only one thread uses it.

    How long the lists of logs are looked at in one poll, so that other work goes on, and a start does not take the square of its
    logs. Everything else that a poll does takes as long as there are logs. So where a start looked at lists for the same short time
    in each poll, most of it would be that other work, poll after poll.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ended = clock()
        self._until = 0.0

    def begin(self, *, first: bool) -> None:
        """Begin to look; ``first``: there are logs of which no list is published."""
        now = self._clock()
        rest = min(now - self._ended, MOST_LOOK_SECONDS)
        self._until = now + (max(FIRST_LOOK_SECONDS, rest) if first else LOOK_SECONDS)

    @property
    def left(self) -> bool:
        """Whether another list may be looked at in this poll."""
        return self._clock() < self._until

    def end(self) -> None:
        """Note that no more lists are looked at in this poll."""
        self._ended = self._clock()


class RegularTurns:
    """Turns go round by number, and those that are due since the last question come at once; a clock that goes back costs one question.

    Args:
        period_ms: in this time each has one turn.
    """

    def __init__(self, period_ms: int) -> None:
        self._period_ms = period_ms
        self._asked_ms: int | None = None
        self._next = 0
        self._owed = 0  # turns times the period: what is left of a turn is not lost

    def due(self, many: int, now_ms: int) -> list[int]:
        """The numbers, from 0 to ``many`` - 1, whose turn has come since the last call, each once; the first call only begins to count."""
        passed = 0 if self._asked_ms is None else min(max(0, now_ms - self._asked_ms), self._period_ms)
        self._asked_ms = now_ms
        turns, self._owed = divmod(self._owed + many * passed, self._period_ms)
        turns = min(turns, many)
        numbers = [(self._next + turn) % many for turn in range(turns)]
        self._next = (self._next + turns) % max(1, many)
        return numbers


def _is_read(tail: Tail) -> bool:
    """Whether a log is checked now: others are when they have been read, or their log dir is back."""
    return (tail.live or bool(tail.cursor.stopped)) and not (tail.away or tail.leaving)


def _read_of(tail: Tail) -> ActiveRead | None:
    """The part of the active segment that the tail has read; None if it has not read everything up to its cursor."""
    cursor = tail.cursor
    if cursor.largest_timestamp == TIMES_UNKNOWN or tail.has_later_segment or cursor.stopped:
        return None
    shared = {name: getattr(cursor, name) for name in _SHARED}
    return ActiveRead(identity=tail.segments[-1].identity, base_offset=cursor.segment, zero_tail=tail.zero_tail, **shared)
