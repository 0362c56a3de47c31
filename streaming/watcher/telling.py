"""What stands of a log in other files than its segments and in the metadata log: told at the first look, for a new reader, when it changes.

A log is looked at again only where there is a reason to: its directory was listed anew, its first batch was written, a checkpoint names
another offset for it, the metadata log another leader or configuration. Its high watermark goes with what is appended; alone it is
told where nothing was appended for a while.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from streaming.disk.active import ActiveRead
from streaming.disk.availability import LogDirs
from streaming.disk.inventory import Inventory, LogInventory
from streaming.disk.logdirs import Partition
from streaming.disk.scanned import ScannedTimes
from streaming.disk.segments import Identity, Listing
from streaming.rows import Kind
from streaming.rules.limits import limits_of
from streaming.rules.releases import producer_expiration
from streaming.watcher.catalog import Decided
from streaming.watcher.checkpoints import Checkpoints
from streaming.watcher.cluster import LEADER_UNKNOWN, Cluster
from streaming.watcher.events import TIMES_UNKNOWN, Event
from streaming.watcher.tail import Tail, Told

log = logging.getLogger(__name__)

CHECK_MS = 1_000
"""How often checkpoints and what the metadata log says are compared with what was told, at most."""

ALL_CHECKS = 60
"""Every log is looked at in one of so many checks in any case."""

QUIET_MS = 3_000
"""A log that was appended to this lately soon tells its high watermark with what is appended next."""

LOOK_SECONDS = 0.02
"""How long logs are looked at in one turn, so that the others go on."""

FIRST_LOOK_SECONDS = 0.2
"""The same while there are logs of which nothing has been told yet."""


@dataclass(frozen=True, slots=True)
class Telling:
    """What a round led to: events, and whether there are logs of which everything has to be told yet."""

    events: list[Event]
    more: bool


class Teller:
    """Looks at the logs under watch. Only the watcher's thread calls it.

    Args:
        once: as in `streaming.watcher.scope.Scope`.
    """

    def __init__(
        self, log_dirs: LogDirs, cluster: Cluster, clock_ms: Callable[[], int], scanned: ScannedTimes, *, once: bool = False
    ) -> None:
        self._once = once
        self._cluster = cluster
        self._checkpoints = Checkpoints(log_dirs)
        self.decided = Decided(cluster, self._checkpoints)
        """What is decided of the logs."""
        self._clock_ms = clock_ms
        self._inventory = Inventory(thorough=once, clock_ms=clock_ms, scanned=scanned)
        self._unfinished: dict[Tail, None] = {}  # of which something has to be scanned
        self._due: deque[Tail] = deque()  # to be looked at
        self._looked_at: dict[Path, Partition] = {}
        self._version = -1  # of what metadata logs say, as it was compared last
        self._next_check = 0

    @property
    def wrong_time_indexes(self) -> int:
        """Time indexes that disagreed with their segment, so far."""
        return self._inventory.wrong_time_indexes

    @property
    def unreadable_checkpoints(self) -> int:
        """Checkpoint files that could not be read or were not understood, so far."""
        return self._checkpoints.unreadable

    @property
    def unfinished(self) -> bool:
        """Whether something has to be scanned before all times are known."""
        return bool(self._unfinished)

    def scan(self, budget: int, is_there: Callable[[Tail], bool]) -> None:
        """Scan for about ``budget`` bytes what has to be scanned of one log.

        Args:
            is_there: whether a log is under watch still, and may be read.
        """
        tail = next(iter(self._unfinished))
        try:
            if is_there(tail):
                self._inventory.scan(tail.partition, budget)
                if self._inventory.unfinished(tail.partition):
                    return
                tail.untold = True
        except MemoryError:
            raise
        except Exception as error:  # whatever is wrong with an old batch, everything else goes on
            tail.untold = isinstance(error, FileNotFoundError)  # compacted or deleted; any other is tried again at the next look in turn
            extra = {"log": str(tail.place.log), "path": tail.path, "error": str(error)}
            log.warning("segment cannot be scanned", exc_info=None if isinstance(error, OSError) else error, extra=extra)
        del self._unfinished[tail]

    def forget_others(self, tails: Sequence[Tail]) -> None:
        """What was scanned before this process, and is in none of these logs, is no more; all of them have been looked at."""
        if all(tail.told is not None for tail in tails):
            self._inventory.scanned.keep_only(self._inventory.files())

    def round(self, tails: Sequence[Tail], *, at_once: bool) -> Telling:
        """Look at those that may have changed, for a short while, but for those that are away or leaving.

        Args:
            at_once: somebody waits for it: whatever may have changed is looked at now.
        """
        now = self._clock_ms()
        check = not self._next_check - CHECK_MS <= now < self._next_check
        anew = check or (at_once and not self._due)
        if anew:
            there = [tail for tail in tails if not (tail.away or tail.leaving)]
            read = [tail for tail in there if tail.live or tail.place.stopped]  # the others will be looked at when they have been read
            replaced = check and self._checkpoints.refresh()
            self.decided.look(tails, replaced=replaced)
            if check:
                self._next_check = now + CHECK_MS
                self._compare(read, now, replaced=replaced)
            self._due = deque(tail for tail in read if tail.untold)
        first = any(tail.owes_list for tail in self._due)
        ends = inf if self._once else time.monotonic() + (FIRST_LOOK_SECONDS if first else LOOK_SECONDS)
        events: list[Event] = []
        while self._due and time.monotonic() < ends:
            tail = self._due.popleft()
            event = self._look_safely(tail)
            if event is not None:
                events.append(event)
        # those that have been read since the others were listed come next
        return Telling(events, any(tail.owes_list for tail in self._due) or (at_once and not anew))

    def _compare(self, tails: Sequence[Tail], now: int, *, replaced: bool) -> None:
        self._forget(tails)
        before, self._version = self._version, self._cluster.version()
        for tail in tails[now // CHECK_MS % ALL_CHECKS :: ALL_CHECKS]:
            tail.untold = True  # whatever was missed; and of its time indexes one is checked at each look
        for tail in tails:
            told = tail.told
            if told is None or tail.untold:
                continue
            if tail.high_watermark != told.high_watermark and not 0 <= now - tail.appended_ms < QUIET_MS:
                tail.untold = True
            if replaced and self._is_moved(tail, told):
                tail.untold = True
            if self._version != before and self._is_changed(tail, told):
                tail.untold = True

    def _forget(self, tails: Iterable[Tail]) -> None:
        """Let go of logs that have left."""
        if len(self._looked_at) > sum(tail.told is not None for tail in tails):
            there = {tail.partition.path for tail in tails}
            for path in [path for path in self._looked_at if path not in there]:
                self._inventory.forget(self._looked_at.pop(path))

    def _is_moved(self, tail: Tail, told: Told) -> bool:
        """Whether checkpoints name other offsets."""
        tail.high_watermark = self._checkpoints.high_watermark(tail.partition)
        starts = self._checkpoints.log_start(tail.partition), self._checkpoints.cleaned(tail.partition)
        return starts != (told.inventory.start_checkpoint, told.inventory.cleaner_checkpoint)

    def _is_changed(self, tail: Tail, told: Told) -> bool:
        """Whether the metadata log names another leader, or configures where the log starts in another way."""
        state = self._cluster.partition(tail.place.log)
        if (LEADER_UNKNOWN if state is None else (state.leader, state.leader_epoch)) != (told.leader, told.leader_epoch):
            return True
        return limits_of(tail.place.log.topic, self._cluster.configs(tail.place.log)).remote_storage != told.remote

    def _look_safely(self, tail: Tail) -> Event | None:
        try:
            return self._look(tail)
        except MemoryError:
            raise
        except Exception:  # whatever is wrong with one log's other files, what was told stands and the others go on
            log.exception("log cannot be looked at", extra={"log": str(tail.place.log), "path": tail.path})
            return None

    def _look(self, tail: Tail) -> Event | None:
        """What has to be told of a log now."""
        tail.untold = False
        self._looked_at[tail.partition.path] = tail.partition
        read = _read_of(tail)
        if read is not None:
            self._inventory.told(tail.partition, read)
        try:
            inventory = self._inventory.look(tail.partition, None if tail.stamp is None else Listing(tail.stamp, tail.segments))
        except OSError as error:  # its directory is gone, or cannot be read: what was told stands until that is known
            log.info("log cannot be looked at", extra={"log": str(tail.place.log), "error": str(error)})
            return None
        if inventory is None:
            return None
        if self._inventory.unfinished(tail.partition):
            self._unfinished[tail] = None
        before, tail.told = tail.told, self._tell(tail, inventory)
        news = tail.told.news(None if tail.owes_list else before)
        tail.owes_list = False
        return tail.event(Kind.FOUND, **news) if news else None

    def _tell(self, tail: Tail, inventory: LogInventory) -> Told:
        log_ = tail.place.log
        state, limits = self._cluster.partition(log_), limits_of(log_.topic, self._cluster.configs(log_))
        tail.producers.expiration_ms = producer_expiration(limits, self._cluster.metadata_version(log_.broker))
        tail.producers.expire(self._clock_ms())
        tail.high_watermark = self._checkpoints.high_watermark(tail.partition)
        leader, leader_epoch = LEADER_UNKNOWN if state is None else (state.leader, state.leader_epoch)
        remote = limits.remote_storage
        return Told(
            inventory=inventory,
            remote=remote,
            log_start_offset=inventory.log_start_offset(remote_storage=remote),
            local_log_start_offset=inventory.own_start_offset if remote else -1,
            high_watermark=tail.high_watermark,
            active_producers=tail.producers.active,
            leader=leader,
            leader_epoch=leader_epoch,
        )


def _read_of(tail: Tail) -> ActiveRead | None:
    """What the tail has read of the active segment, None where that is not all up to its place."""
    place = tail.place
    if place.largest_timestamp == TIMES_UNKNOWN or tail.behind or place.stopped:
        return None
    return ActiveRead(
        identity=Identity(place.device, place.inode),
        base_offset=place.segment,
        position=place.position,
        next_offset=place.next_offset,
        first_timestamp=place.first_timestamp,
        largest_timestamp=place.largest_timestamp,
        anchor=place.anchor,
        anchor_position=place.anchor_position,
        zero_tail=tail.zero_tail,
    )
