"""Where jobs begin in logs, also in those that come or move, and what they want of logs that could not be read when they began.

Such a log is not read on before it can be read for them. The cursor of a log that is known has what is wanted of it; of other logs it is
noted here, and for all logs in a log dir that cannot be read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streaming.broker.disk.locate import beginning, find_offset, start_boundary
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.scanning import has_data
from streaming.broker.disk.segment_files import Segment, directory_stamp, list_segments, log_start_offset, read_leader_epochs
from streaming.broker.journal.cursor import Cursor, Replays
from streaming.broker.watcher.cursors import BROUGHT_ALONG, cursor_at, pack
from streaming.broker.watcher.departures import WatchedLogs
from streaming.broker.watcher.log_listing import Listing
from streaming.broker.watcher.open_at import open_at, still_open
from streaming.broker.watcher.relocate import epoch_before, resume
from streaming.broker.watcher.stopped_logs import retry, stopped_event
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.log_positions import KnownEnd
from streaming.common.start_from import StartFrom
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.scan.walk import Bytes
from streaming.rules.position_rule import goes_on_at

log = logging.getLogger(__name__)

_RESUMED = "resumed"

_WANTED = ("", StartFrom.LATEST, StartFrom.ACTIVE, StartFrom.EARLIEST, _RESUMED)
"""The beginnings that a job may want of a log, each includes everything of the one before it."""

HALF_MADE_MS = 60_000
"""How long an empty directory without ``partition.metadata`` may still get that file; later it is from before topics had ids."""


class TakingUp:
    """Makes and updates the tails of logs that were listed. Only the watcher's thread uses it.

    Args:
        unmet: what jobs want of logs that could not be read when they began.
        opens: whether it has to be known what is open where reading of a log begins.
        once: no poll follows, so that a log that is being made is read as it is.
    """

    def __init__(
        self,
        watched: WatchedLogs,
        unmet: Unmet,
        opens: Callable[[LogKey], bool],
        clock_ms: Callable[[], int],
        buffer: Bytes,
        *,
        once: bool,
    ) -> None:
        self._watched = watched
        self._unmet = unmet
        self._opens = opens
        self._clock_ms = clock_ms
        self._buffer = buffer
        self._once = once
        self.counted = CountedEnds(unknown=bool(watched.cursors))

    def take_up(self, key: LogKey, partition: Partition, wanted: Beginning | None, events: list[Event]) -> None:
        """Watch a log that is new, moved or known, from an earlier position if a new job wants it.

        Raises:
            OSError: it cannot be read now. It stays as it was before; if it is known, it is in the state that ``events`` lead to.
        """
        begins, owed = wanted, self._unmet.of(key, partition)
        wanted = as_beginning(most(as_wanted(begins), owed))
        stamp, known = directory_stamp(partition.path, self._clock_ms()), self._watched.tails.get(key)
        if wanted is None and known is not None and known.partition.path == partition.path and known.is_as_listed(stamp):
            known.recheck_anchor()
            return
        segments = list_segments(partition.path)
        if not segments or self._half_made(key, segments):
            return  # a hint will come with its first segment, or with its topic id
        epochs = read_leader_epochs(partition.path)
        log_start = log_start_offset(partition.path, segments, epochs)
        tail, is_new, led_to = known, False, events  # the changes of a known tail are kept, whatever fails next
        if tail is None or not tail.resumed or tail.partition.path != partition.path:
            tail, is_new, led_to = self._tail(key, partition, segments)
        replay = tail.cursor.replay
        try:
            ends = self.counted.of(key, None if owed else begins)
            moved = self._read_from_where(tail, segments, wanted, led_to, is_new=is_new, epochs=epochs, ends=ends)
        except OSError:
            if tail is not known:
                tail.close()
            raise
        if tail is not known:
            self._watched.hold(key, tail)
            events.extend(led_to)
        self._watched.place(tail)
        tail.take_up(stamp, log_start, pack(epochs), new=is_new and wanted is None)
        # a log that is copied to another log dir knows nothing of a transaction that lay in segments that were deleted before
        copied = known is not None and known.partition.path != partition.path and tail.segments[0].base_offset > 0
        needed = moved or copied or (tail.producers.now is None and not replay)
        steps = tail.break_off(open_at(tail, tail.cursor, tail.segments, opens=self._opens(key))) if needed else None
        if is_new and wanted is not None and steps is None:
            tail.plan_replay(Replays.FIRST)
        elif is_new or copied or wanted is not None:
            events.append(tail.appeared(steps if moved or copied else tail.note_open(still_open(tail))))
        if replay == Replays.ALONGSIDE:  # for jobs that are beyond the new beginning
            tail.plan_replay(Replays.ALONGSIDE)
        tail.satisfy()
        if wanted is not None and tail.cursor.stopped:
            events.append(stopped_event(tail))

    def _read_from_where(
        self,
        tail: Tail,
        segments: tuple[Segment, ...],
        wanted: Beginning | None,
        events: list[Event],
        *,
        is_new: bool,
        epochs: Sequence[EpochEntry],
        ends: list[KnownEnd] | None,
    ) -> bool:
        """Find where a log is read on after another listing; returns whether this is another position than before. Raises OSError."""
        if tail.cursor.stopped:
            events.extend(retry(tail, segments, self._buffer))
        else:
            tail.relist(segments, self._clock_ms())
        return (wanted is not None and self._go_back(tail, wanted, is_new, epochs, ends)) or is_new

    def _half_made(self, key: LogKey, segments: Sequence[Segment]) -> bool:
        if self._once or key.topic_id or key in self._watched.cursors or key in self._watched.tails or any(map(has_data, segments)):
            return False
        return 0 <= self._clock_ms() - segments[-1].modified_ms < HALF_MADE_MS

    def _tail(self, key: LogKey, partition: Partition, segments: tuple[Segment, ...]) -> tuple[Tail, bool, list[Event]]:
        """A tail for a directory that is new to this process, whether its log is completely new, and the events to publish."""
        watched, cursor = self._watched.tails.get(key), self._watched.cursor_of(key)
        at_offset = segments[0].base_offset if cursor is None else cursor.next_offset
        log.debug("log is taken up", extra={"log": str(key), "path": str(partition.path), "offset": at_offset, "known": cursor is not None})
        if cursor is None:
            # a log that appears is read whole, unless a new job wants less. What it brings along was perhaps published by another
            # agent: a replica or a disk may have moved here, or this agent may watch a log dir that another one had
            frontier = BROUGHT_ALONG if any(segment.size for segment in segments) else 0
            at = cursor_at(key, beginning(segments[0]), segments, frontier)
            return Tail(partition, at, Listing(tuple(segments)), self._watched.producers(key)), True, []
        producers = watched.producers.copy() if watched is not None else self._watched.producers(key)
        first = cursor.replay == Replays.FIRST
        met = cursor._replace(replay=Replays.ALONGSIDE) if first else cursor
        tail, events = resume(partition, segments, met, producers, self._buffer)
        if watched is None and tail.unread_bytes(exact=False):
            tail.publish_as_brought_along()  # another agent may have watched its log dir meanwhile
        if first and events:  # these events happened after the cursor where the log appears
            events.insert(0, Tail(partition, cursor, Listing(tuple(segments)), producers).appeared(None))
        elif first:
            tail.plan_replay(Replays.FIRST)
        return tail, False, events

    def _go_back(self, tail: Tail, wanted: Beginning, is_new: bool, epochs: Sequence[EpochEntry], ends: list[KnownEnd] | None) -> bool:
        """Set the tail to the beginning that a job wants, never ahead of other jobs; returns whether it has moved.

        Args:
            ends: up to where those that want it have counted the log, None if that is not known of one of them.
        """
        # the state of coordinators consists of the newest entries of all that they ever wrote
        is_coordinators = tail.cursor.log.topic == TRANSACTION_TOPIC
        ends = ends if wanted.resumed and not is_coordinators else None
        offset = None if ends is None else _goes_on_at(ends, epochs, tail.segments[0].base_offset)
        counted = 0 if ends is None or offset is None else max(end.next_offset for end in ends)
        goes = is_new or offset is None or offset < tail.cursor.next_offset
        if goes:
            if offset is None:
                start_from = StartFrom.EARLIEST if wanted.resumed or is_coordinators else wanted.start_from
                boundary = start_boundary(tail.segments, start_from, self._buffer)
            else:
                boundary = find_offset(tail.segments, offset, self._buffer)
            goes = is_new or boundary.next_offset < tail.cursor.next_offset
        if goes:
            at = cursor_at(tail.cursor.log, boundary, tail.segments, max(counted, 0 if is_new else tail.cursor.frontier))
            if offset is not None:  # what comes after that was appended since the job has counted the log
                at = at._replace(backlog_segment=boundary.segment.base_offset, backlog_position=boundary.position)
            # if the log is truncated before it is published again, other jobs take the entries for new ones: their chain breaks
            reread = not is_new and is_coordinators
            tail.send_back(at._replace(log_epoch=epoch_before(tail, boundary), reread=reread))
            if is_new and offset is not None:
                tail.doubt_times()  # whether these are the files that the job's rows are of is not known: they may be copies
        misses = ends is None or offset is None or min(end.next_offset for end in ends) < tail.segments[0].base_offset
        if wanted.resumed and misses:
            tail.publish_as_known()  # that something is deleted a job learns by the log's end, also if nothing follows
        elif counted > tail.cursor.frontier:
            tail.publish_as_known(counted)
        return goes


class Unmet:
    """The beginnings that jobs want of logs that could not be read so far.

    Args:
        cursor_of: the cursor of a log that is watched, or was by an earlier process; None for a log that is new.
    """

    def __init__(self, cursor_of: Callable[[LogKey], Cursor | None]) -> None:
        self._cursor_of = cursor_of
        self._logs: dict[LogKey, str] = {}
        self._log_dirs: dict[Path, str] = {}

    def of(self, key: LogKey, partition: Partition) -> str:
        """The beginning that jobs want of a log that could not be read when they began, "" for none."""
        cursor = self._cursor_of(key)
        if cursor is not None:
            return cursor.wanted
        return most(self._logs.get(key, ""), self._log_dirs.get(partition.log_dir.path, ""))

    def note(self, wanted: str, left_out: Mapping[LogKey, Partition], unseen: Iterable[Path], remembered: Collection[LogKey]) -> None:
        """Note what a new job wants, after everything that can be read was read for it.

        A log that is not known yet is read whole for the present jobs: the beginning of a later job may not change that.

        Args:
            wanted: by the new job, "" if there is none.
            left_out: the logs that could not be read, and are not watched.
            unseen: the log dirs that cannot be read.
            remembered: the logs that are known from an earlier process.
        """
        logs = {key: most(wanted, self.of(key, at)) or ("" if key in remembered else StartFrom.EARLIEST) for key, at in left_out.items()}
        self._logs = {key: owed for key, owed in logs.items() if owed}
        self._log_dirs = {path: most(wanted, self._log_dirs.get(path, "")) or StartFrom.EARLIEST for path in unseen}

    def __bool__(self) -> bool:
        """Whether anything is wanted of logs that are not watched."""
        return bool(self._logs or self._log_dirs)


def most(*wanted: str) -> str:
    """The beginning that includes the others."""
    return max(wanted, key=_WANTED.index)


class CountedEnds:
    """Up to where jobs have counted logs: of those that began since every log could be read for all of them.

    Args:
        unknown: jobs may have begun at an earlier watcher, and what these have counted is not known.
    """

    def __init__(self, *, unknown: bool) -> None:
        self._of_job: dict[str, Mapping[LogKey, KnownEnd]] = {}
        self._unknown = unknown

    def note(self, beginning: Beginning) -> None:
        """Note what a job has counted that begins now."""
        self._of_job.pop(beginning.job, None)
        if beginning.resumed or beginning.start_from != StartFrom.LATEST:
            self._of_job[beginning.job] = beginning.ends

    def forget(self) -> None:
        """Forget them: everything that they want was given to them."""
        self._of_job.clear()
        self._unknown = False

    def of(self, log: LogKey, alone: Beginning | None = None) -> list[KnownEnd] | None:
        """Up to where each of the jobs has counted a log; None if one of them has counted nothing of it.

        Args:
            alone: of the job alone that begins now: the others have what they want of this log.
        """
        if alone is None and self._unknown:
            return None
        ends = [ends.get(log) for ends in (self._of_job.values() if alone is None else (alone.ends,))]
        known = [end for end in ends if end is not None]
        return known if known and len(known) == len(ends) else None


@dataclass(frozen=True, slots=True)
class Beginning:
    """A job wants the logs from ``start_from`` on. ``resumed``: it has counted logs before; it goes on in them at ``ends``, and gets all
    others from their first byte on."""

    start_from: StartFrom
    resumed: bool
    job: str = ""
    ends: Mapping[LogKey, KnownEnd] = field(default_factory=dict)


def as_beginning(wanted: str) -> Beginning | None:
    """The reverse."""
    if not wanted:
        return None
    return Beginning(StartFrom.EARLIEST, resumed=True) if wanted == _RESUMED else Beginning(StartFrom(wanted), resumed=False)


def as_wanted(beginning: Beginning | None) -> str:
    """A beginning as a cursor has it, "" for none."""
    if beginning is None:
        return ""
    return _RESUMED if beginning.resumed else beginning.start_from


def _goes_on_at(ends: Iterable[KnownEnd], epochs: Sequence[EpochEntry], log_start: int) -> int | None:
    """The first offset that one of these jobs has not counted, as far as the log goes; None if that cannot be said of one of them."""
    offsets = [goes_on_at(end, epochs, log_start) for end in ends]
    known = [offset for offset in offsets if offset is not None]
    return min(known) if len(known) == len(offsets) else None
