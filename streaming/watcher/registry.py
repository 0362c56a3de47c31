"""The registry of logs: begins to watch logs, follows them when they move between log dirs, and removes them when they leave."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.disk.availability import LogDirs
from streaming.disk.identity import UNKNOWN_BROKER
from streaming.disk.logdirs import LogDir, Partition, list_partitions
from streaming.disk.segment_files import Identity, Segment, directory_stamp, list_segments, log_start_offset
from streaming.disk.topic_ids import TopicIds
from streaming.event_row import Event
from streaming.journal.cursor import Cursor, Replays
from streaming.journal.producer_pages import KnownProducers
from streaming.kafka.names import TRANSACTION_TOPIC, DirState, parse_partition_dir
from streaming.log_key import LogKey
from streaming.rows import Kind
from streaming.scan.walk import Bytes
from streaming.start_from import StartFrom
from streaming.watcher.carrying import open_at, still_open
from streaming.watcher.copies import Copies
from streaming.watcher.cursors import cursor_at, log_id
from streaming.watcher.leaving import HOLD_MS, count_unread, find_renamed, is_over
from streaming.watcher.locate import beginning, start_boundary
from streaming.watcher.relocate import relocate, resume
from streaming.watcher.same_log import has_files_of, has_open_file_of, holds_cursor
from streaming.watcher.scope import EVERYTHING as ALL_LOGS
from streaming.watcher.scope import Scope
from streaming.watcher.stopped_logs import failed, retry, stopped_event
from streaming.watcher.tail import Tail
from streaming.watcher.truncation import epoch_before
from streaming.watcher.unreadable import LeftOut, Unreadable, unreadable

log = logging.getLogger(__name__)

HALF_MADE_MS = 60_000
"""How long an empty directory without ``partition.metadata`` may still get that file; later it is from before topics had ids."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A new consumer wants the logs from ``start_from`` on. ``resumed``: it knows these logs already, from another journal."""

    start_from: StartFrom
    resumed: bool


_RESUMED = "resumed"
_WANTED = ("", StartFrom.LATEST, StartFrom.ACTIVE, StartFrom.EARLIEST, _RESUMED)
"""The beginnings that a consumer may want of a log, as the journal stores them; each includes everything of the one before it."""


def _most(*wanted: str) -> str:
    return max(wanted, key=_WANTED.index)


def _as_wanted(beginning: Beginning | None) -> str:
    if beginning is None:
        return ""
    return _RESUMED if beginning.resumed else beginning.start_from


def _as_beginning(wanted: str) -> Beginning | None:
    if not wanted:
        return None
    return Beginning(StartFrom.EARLIEST, resumed=True) if wanted == _RESUMED else Beginning(StartFrom(wanted), resumed=False)


@dataclass(frozen=True, slots=True)
class Found:
    """The result of listing directories: events in order, and the logs that are gone. ``again``: list once more now."""

    events: list[Event]
    gone: list[LogKey]
    again: bool = False


class LogRegistry:
    """The watched logs. Only the watcher's thread changes it.

    Args:
        log_dirs: no call is made into an unavailable one, and nothing in it is gone. It contains every reason why one is unavailable.
        cursors: the cursor of each log at the end of an earlier process.
        has_topic: whether a topic still exists by the metadata log, None if it is not known.
        assigned: the directory.id of the log in the metadata log, None if that contains none.
        producers: the producers of a log at the end of an earlier process.
        between: called between one log and the next: a rescan of many logs takes a while.
        scope: which logs are watched.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        cursors: Iterable[Cursor],
        has_topic: Callable[[LogKey], bool | None],
        assigned: Callable[[LogKey], str | None],
        producers: Callable[[LogKey], KnownProducers],
        clock_ms: Callable[[], int],
        buffer: Bytes,
        between: Callable[[], object] = bool,
        scope: Scope = ALL_LOGS,
    ) -> None:
        self.tails: dict[LogKey, Tail] = {}
        self._at: dict[Path, Tail] = {}  # the same by their directories
        self._doubts_of_left = 0
        self._log_dirs = log_dirs
        self._kept = {cursor.log: cursor for cursor in cursors}
        self._has_topic = has_topic
        self._producers = producers
        self._clock_ms = clock_ms
        self._buffer = buffer
        self._between = between
        self._scope = scope
        self._topic_ids = TopicIds()
        self._renamed: dict[int, list[Partition]] = {}  # directories of logs that leave, by partition number
        self._copies = Copies(assigned, buffer)
        self._leaving: set[LogKey] = set()
        self._back: set[LogKey] = set()  # logs in log dirs that were unavailable: to be listed again
        self._awaited = False  # a log was found that has the name of one that leaves
        self._left_out = LeftOut()
        self._unlisted: Mapping[Path, str] = {}  # log dirs that are available and could not be listed
        self._seen_in: frozenset[Path] = frozenset()  # the log dirs that were listed last time
        self._unmet: dict[LogKey, str] = {}  # what new consumers want of logs that could not be read so far
        self._unmet_in: dict[Path, str] = {}  # the same of all logs in a log dir that cannot be read

    # --- listing

    def rescan(self, wanted: Beginning | None = None, *, thorough: bool = True) -> Found:
        """List the log dirs.

        Args:
            wanted: a new consumer begins here.
            thorough: also check the known logs again.
        """
        found = self._list()
        if self._missing(found):
            found = self._list()  # during a move between log dirs a log is listed nowhere for a moment
        gone: list[LogKey] = []
        events: list[Event] = []
        self._adopt(found, events, gone)
        for key in self._missing(found):
            if not self._leave(key, events):
                events.append(self._drop(key))
                gone.append(key)
        self._copies.listed()
        self._keep_hidden(found)
        self._left_out.keep(found)
        if thorough:
            self._topic_ids.keep({partition.path for partition in found.values()}, self._log_dirs.unavailable)
        leaving = {(key.broker, key.topic, key.partition) for key in self._leaving}
        met: set[LogKey] = set()
        for key, partition in found.items():
            known = self.tails.get(key)
            self._between()
            if (key.broker, key.topic, key.partition) in leaving and not (known is not None and self._stays(known, partition)):
                self._awaited = True  # another log of the same name: it comes when the earlier one has left
                continue
            is_known = known is not None and known.resumed and known.partition.path == partition.path and not known.cursor.wanted
            try:
                if thorough or not is_known or key in self._back:
                    self._take_up(key, partition, wanted, events)
                    self._back.discard(key)
                    self._left_out.clear(key)
                met.add(key)
            except OSError as error:  # gone or unreadable since it was listed: the next rescan tries again
                self._leave_out(key, partition, error)
            except Exception as error:  # noqa: BLE001 - an error in one log does not stop the others
                events.extend(self._fail(key, partition, error))
        self._note_unmet(found, met, _as_wanted(wanted))
        return Found(events, gone)

    def before_beginning(self) -> tuple[list[Event], list[Tail], list[LogKey]]:
        """The events to publish before a new consumer begins, the watched logs, and the logs that are gone.

        The consumer begins with the logs as they are then: changes that an earlier process did not know are not a part of its beginning.
        A log that is not published yet appears now: the beginning of another consumer may not become the beginning of this one, nor the
        other way round.
        """
        found = self.rescan()
        tails, events = list(self.tails.values()), list(found.events)
        for tail in tails:
            if tail.cursor.replay == Replays.FIRST:
                tail.plan_replay(Replays.ALONGSIDE)
                events.append(tail.appeared(None))
        return events, tails, found.gone

    def _note_unmet(self, found: dict[LogKey, Partition], met: set[LogKey], wanted: str) -> None:
        """Note what a new consumer wants of logs that could not be read. The note stays until they can be; they are not read on before."""
        for key, tail in self.tails.items():
            if wanted and key not in met and key not in self._leaving:
                tail.want(_most(tail.cursor.wanted, wanted))
        left_out = {key: partition for key, partition in found.items() if key not in met and key not in self.tails}
        # a log that is not known yet is read whole for the present consumers: the beginning of a later consumer may not change that
        unmet = {key: _most(wanted, self._owed(key, partition)) or self._whole(key) for key, partition in left_out.items()}
        self._unmet = {key: owed for key, owed in unmet.items() if owed}
        in_dirs = {
            path: _most(wanted, self._unmet_in.get(path, "")) or StartFrom.EARLIEST
            for path in (*self._log_dirs.unavailable, *self._unlisted)
        }
        self._unmet_in = {path: owed for path, owed in in_dirs.items() if owed}

    def _whole(self, key: LogKey) -> str:
        return "" if key in self._kept else StartFrom.EARLIEST

    def _owed(self, key: LogKey, partition: Partition) -> str:
        """What consumers want of a log that could not be read when they began."""
        cursor = self.tails[key].cursor if key in self.tails else self._kept.get(key)
        if cursor is not None:
            return cursor.wanted
        return _most(self._unmet.get(key, ""), self._unmet_in.get(partition.log_dir.path, ""))

    def take_hints(self, hints: set[Path]) -> bool:
        """List the directories in which something happened; returns whether the log dirs have to be listed too."""
        roots = {log_dir.path for log_dir in self._log_dirs}
        changed = bool(hints & roots)
        for hint in hints - roots:
            tail, name = self._at.get(hint), parse_partition_dir(hint.name)
            if tail is not None and tail.away:
                continue
            if tail is not None:
                changed = not self._look_again(tail) or changed
            elif name is not None and name.state is DirState.LIVE:  # directories that are being deleted or moved change all the time
                changed = True
        return changed

    def _look_again(self, tail: Tail) -> bool:
        """List a log's directory; False if it does not hold this log (any more)."""
        try:
            segments = list_segments(tail.partition.path)
            topic_id = self._topic_ids.read(tail.partition.path)
            is_same = topic_id in (tail.cursor.log.topic_id, None) or (not topic_id and has_files_of(tail, segments))
            if not segments or not is_same:
                return False
            tail.note_log_start(log_start_offset(tail.partition.path, segments))
        except OSError:
            return False
        except Exception as error:  # the next rescan stops the log
            if isinstance(error, MemoryError):
                raise
            log.warning("log cannot be listed", exc_info=error, extra={"log": str(tail.cursor.log), "path": tail.path})
            tail.list_anew()
            return True
        if not tail.cursor.stopped:  # a stopped log's growth is counted from one rescan to the next
            tail.relist(segments, self._clock_ms())
        return True

    def release(self) -> list[Event]:
        """Close unlinked files that were held for long enough; their unread bytes are skipped."""
        now, events = self._clock_ms(), []
        for tail in self.tails.values():
            held = not (tail.away or tail.leaving) and tail.lost_since_ms >= 0 and not 0 <= now - tail.lost_since_ms < HOLD_MS
            if held and tail.file is not None and tail.file.unlinked():
                try:
                    found = relocate(tail, list_segments(tail.partition.path) or tail.segments, self._buffer)
                    events.extend(tail.relocate(found))
                except OSError as error:  # its directory is gone too: the next rescan drops it
                    log.info("deleted file let go", extra={"log": str(tail.cursor.log), "path": tail.path, "error": str(error)})
                    tail.close()
                except Exception as error:  # noqa: BLE001 - as above
                    events.extend(failed(tail, error))
        return events

    def unreadable(self) -> list[Unreadable]:
        """The logs that could not be read at the last try. May be called by other threads."""
        unavailable = self._log_dirs.unavailable
        directories = {path: why for path, why in dict(self._topic_ids.unreadable).items() if path.parent not in unavailable}
        return list(unreadable(list(self.tails.values()), self._left_out, directories, self._log_dirs))

    def appear_again(self) -> list[Event]:
        """APPEARED events of all logs, with the cursor and what is open there: some consumer has missed the events that led there."""
        events = []
        for tail in self.tails.values():
            if tail.away and tail.cursor.replay == Replays.NOT:
                tail.plan_replay(Replays.ALONGSIDE)
            if tail.cursor.log.topic == TRANSACTION_TOPIC:
                tail.plan_reread(needed=True)
            if tail.resumed and tail.cursor.replay != Replays.FIRST:
                events.append(tail.appeared(None if tail.away else tail.note_open(still_open(tail))))
        return events

    def logs(self) -> dict[LogKey, Path | None]:
        """All logs, also those that cannot be read, with the log dir of each, None if it is not known."""
        here: dict[LogKey, Path | None] = {key: tail.partition.log_dir.path for key, tail in self.tails.items()}
        return {**dict.fromkeys((*self._kept, *self._left_out.logs)), **here}

    # --- which logs are there

    def _list(self) -> dict[LogKey, Partition]:
        """The directory of each log that is there."""
        copies: dict[LogKey, list[Partition]] = {}
        self._renamed = {}
        for partition in self._listed():
            if partition.state in (DirState.DELETE, DirState.STRAY):
                self._renamed.setdefault(partition.partition, []).append(partition)
            elif partition.state is DirState.LIVE:
                known = self._as_known(partition)
                copies.setdefault(log_id(known), []).append(known)
        found: dict[LogKey, Partition] = {}
        for key, those in copies.items():
            tail = self.tails.get(key)
            one = those[0] if len(those) == 1 else self._copies.choose(key, those, None if tail is None else tail.partition)
            if not self._is_elsewhere(key, one):
                found[key] = one
        return found

    def _is_elsewhere(self, key: LogKey, copy: Partition) -> bool:
        """Whether the log itself is in an unavailable log dir, and this copy is an old one."""
        tail, away = self.tails.get(key), self._log_dirs.unavailable
        if not away or (tail is not None and not tail.away):
            return False
        cursor = self._kept.get(key) if tail is None else tail.cursor
        return cursor is not None and not self._copies.goes_on_in(copy, cursor)

    # --- which log a directory contains

    def _as_known(self, partition: Partition) -> Partition:
        """The directory with its topic id; if it has lost that, with the topic id of the log that it still contains."""
        if partition.topic_id:
            return partition
        tail = self._at.get(partition.path)
        try:
            if tail is not None and tail.cursor.log.topic_id:
                return replace(partition, topic_id=tail.cursor.log.topic_id if has_files_of(tail, list_segments(partition.path)) else "")
            for cursor in self._kept_as(partition):
                if holds_cursor(partition.path, cursor):
                    return replace(partition, topic_id=cursor.log.topic_id)
        except OSError as error:
            log.info("log cannot be listed", extra={"path": str(partition.path), "error": str(error)})
        return partition

    def _kept_as(self, partition: Partition) -> list[Cursor]:
        """The cursors of an earlier process in logs of this name that have a topic id."""
        named = log_id(partition)
        if not self._kept or named in self._kept:
            return []
        return [cursor for key, cursor in self._kept.items() if key.topic_id and key._replace(topic_id="") == named]

    def _adopt(self, found: dict[LogKey, Partition], events: list[Event], gone: list[LogKey]) -> None:
        """Let a log go on under another topic id if its files are now under that id: the part that was read is not read again."""
        for key, partition in list(found.items()):
            if key in self.tails or key in self._kept or not key.topic_id:
                continue
            tail = self._at.get(partition.path)
            before = tail.cursor if tail is not None and tail.resumed else self._kept.get(key._replace(topic_id=""))
            if before is None or before.log in found:
                continue
            try:
                segments = list_segments(partition.path)
                certain = tail is not None and has_open_file_of(tail, segments)
                if not certain and (before.log.topic_id or not holds_cursor(partition.path, before)):
                    continue
                producers = self._producers(before.log) if tail is None else tail.producers
                renamed = KnownProducers(producers.limit)
                renamed.reset(producers.now)
                tail, led_to = resume(partition, segments, replace(before, log=key), renamed, self._buffer)
            except OSError as error:  # it keeps the old topic id until it can be read
                log.warning("log cannot be listed", extra={"log": str(key), "path": str(partition.path), "error": str(error)})
                found[before.log] = replace(found.pop(key), topic_id=before.log.topic_id)
                continue
            log.warning("log goes on under another topic id", extra={"log": str(key), "topic_id": key.topic_id, "was": before.log.topic_id})
            events.extend([self._drop(before.log, "moved"), *led_to])
            gone.append(before.log)
            self._hold(key, tail)
            self._at[partition.path] = tail
            events.append(tail.appeared(tail.note_open(still_open(tail))))

    def unseen(self) -> list[Path]:
        """The log dirs whose logs are not known now. Any thread may call it."""
        seen = self._seen_in
        return [log_dir.path for log_dir in self._log_dirs if log_dir.path not in seen]

    def _listed(self) -> list[Partition]:
        """The directories in the log dirs that are available before and after the listing."""
        self._log_dirs.check()
        listed: dict[LogDir, Sequence[Partition]] = {}
        unlisted: dict[Path, str] = {}
        for log_dir in self._log_dirs.available:
            try:
                listed[log_dir] = list_partitions(log_dir, self._topic_ids.read)
            except OSError as error:
                unlisted[log_dir.path] = str(error)
        self._log_dirs.check()  # a log dir that was unmounted meanwhile seemed empty
        self._log_dirs.log_changes()
        available = set(self._log_dirs.available)
        for log_dir in listed.keys() - available:
            unlisted[log_dir.path] = "it was exchanged while it was listed"
        for path, why in unlisted.items():
            if path not in self._log_dirs.unavailable and self._unlisted.get(path) != why:
                log.error("log dir cannot be listed", extra={"log_dir": str(path), "error": why})
        self._unlisted = unlisted
        self._seen_in = frozenset(log_dir.path for log_dir in listed if log_dir in available)
        self.part()
        there = (partition for log_dir, partitions in listed.items() if log_dir in available for partition in partitions)
        return [each for each in there if each.state is not DirState.LIVE or self._scope.wants(each)]

    def part(self) -> None:
        """Stop all calls for logs in unavailable log dirs, and begin again with logs in log dirs that are back."""
        unavailable, barred = self._log_dirs.unavailable, self._log_dirs.barred
        for tail in self.tails.values():
            path = tail.partition.log_dir.path
            if tail.away == (path in unavailable):
                continue
            if tail.away:
                tail.regain_log_dir()
                self._back.add(tail.cursor.log)
            else:
                tail.lose_log_dir(barred=path in barred)

    def _missing(self, found: dict[LogKey, Partition]) -> list[LogKey]:
        there = found.keys() | self._leaving
        return [key for key in (*self.tails, *self._kept) if key not in there and self._hidden_in(key) is None]

    def _hidden_in(self, key: LogKey) -> LogDir | None:
        """The log dir that may still contain a log that was not found, because it cannot be read now; None if there is none."""
        tail = self.tails.get(key)
        for log_dir in self._log_dirs if tail is None or not tail.resumed else (tail.partition.log_dir,):
            if log_dir.broker in (key.broker, UNKNOWN_BROKER) and (
                log_dir.path in self._log_dirs.unavailable
                or log_dir.path in self._unlisted
                or self._topic_ids.read(log_dir.path / str(key)) is None
            ):
                return log_dir
        return None

    def _keep_hidden(self, found: dict[LogKey, Partition]) -> None:
        """Keep the logs of an earlier process that exist but cannot be read now: they must not count as gone."""
        for key in [key for key in self._kept if key not in found]:
            log_dir = self._hidden_in(key)
            if log_dir is not None:
                partition = Partition(log_dir, log_dir.path / str(key), key.topic, key.partition, key.topic_id, DirState.LIVE)
                tail = _as_left(partition, self._kept[key], self._producers(key))
                self._hold(key, tail)
                if log_dir.path in self._log_dirs.unavailable:
                    tail.lose_log_dir(barred=True)

    # --- leaving

    def _leave(self, key: LogKey, events: list[Event]) -> bool:
        """Read on in a log whose directory was renamed or removed; False if there is nothing to read."""
        tail, renamed = self.tails.get(key), self._renamed.get(key.partition, ())
        cursor = self._kept[key] if tail is None else tail.cursor
        try:
            found = find_renamed(key, cursor, renamed)
            if tail is None or not tail.resumed:  # only the cursor of an earlier process is known
                if found is None:
                    return False
                tail, led_to = resume(*found, cursor, self._producers(key), self._buffer)
                events.extend(led_to)
                self._hold(key, tail)
        except OSError as error:  # the next rescan tries again
            log.warning("log that leaves cannot be read now", extra={"log": str(key), "error": str(error)})
            return True
        if self._at.get(tail.partition.path) is tail:
            del self._at[tail.partition.path]
        tail.leave(found, self._clock_ms())
        self._leaving.add(key)
        if tail.cursor.held:  # the rest of the log is read now or never
            events.extend([tail.appeared(None)] if tail.cursor.replay == Replays.FIRST else [])
            tail.release()
        return True

    def _stays(self, tail: Tail, partition: Partition) -> bool:
        """Whether a log that was leaving is back: its directory has the old name again."""
        try:
            back = tail.leaving and has_files_of(tail, list_segments(partition.path))
        except OSError:
            return False
        if back:
            tail.come_back(partition)
            self._leaving.discard(tail.cursor.log)
        return back

    def departed(self) -> Found:
        """The logs that have left and have nothing more to read. Call it when everything that can be read was read."""
        found, now = Found([], [], again=self._awaited), self._clock_ms()
        for key in list(self._leaving):
            tail = self.tails[key]
            if not tail.away and is_over(tail, now):
                self._leaving.discard(key)
                found.events.extend([*count_unread(tail), self._drop(key)])
                found.gone.append(key)
        if found.gone:
            self._awaited = False
        return found

    def _drop(self, gone: LogKey, reason: str = "") -> Event:
        tail = self.tails.pop(gone, None)
        self._back.discard(gone)
        self._kept.pop(gone, None)
        if tail is not None:
            self._let_go(tail)
        reason = reason or ("moved" if self._has_topic(gone) else "deleted")
        log.info("log left", extra={"log": str(gone), "reason": reason})
        return Event(kind=Kind.GONE, **gone._asdict(), reason=reason)

    def _fail(self, key: LogKey, partition: Partition, error: Exception) -> list[Event]:
        """Stop a log that is watched; leave out a log that is not."""
        tail = self.tails.get(key)
        if tail is not None and tail.resumed:
            return failed(tail, error)
        if isinstance(error, MemoryError):
            raise error
        self._leave_out(key, partition, error)
        return []

    def _leave_out(self, key: LogKey, partition: Partition, error: Exception) -> None:
        level = logging.DEBUG if isinstance(error, FileNotFoundError) else logging.WARNING
        extra = {"log": str(key), "path": str(partition.path), "error": str(error)}
        self._left_out.note(key, partition.path, error)
        log.log(level, "log cannot be taken up now", exc_info=None if isinstance(error, OSError) else error, extra=extra)
        if key in self._kept:
            self._hold(key, _as_left(partition, self._kept[key], self._producers(key)))

    # --- beginning to watch

    def _take_up(self, key: LogKey, partition: Partition, wanted: Beginning | None, events: list[Event]) -> None:
        """Watch a log that is new, moved or known, from an earlier position if a new consumer wants it.

        Raises:
            OSError: it cannot be read now. It stays as it was before; if it is known, it is in the state that ``events`` lead to.
        """
        wanted = _as_beginning(_most(_as_wanted(wanted), self._owed(key, partition)))
        stamp, known = directory_stamp(partition.path, self._clock_ms()), self.tails.get(key)
        if wanted is None and known is not None and known.partition.path == partition.path and known.is_as_listed(stamp):
            known.doubt()
            return
        segments = list_segments(partition.path)
        if not segments or self._half_made(key, segments):
            return  # a hint will come with its first segment, or with its topic id
        log_start = log_start_offset(partition.path, segments)
        tail, is_new, led_to = known, False, events  # the changes of a known tail are kept, whatever fails next
        if tail is None or not tail.resumed or tail.partition.path != partition.path:
            tail, is_new, led_to = self._tail(key, partition, segments)
        replay = tail.cursor.replay
        try:
            moved = self._read_from_where(tail, segments, wanted, led_to, is_new=is_new)
        except OSError:
            if tail is not known:
                tail.close()
            raise
        if tail is not known:
            self._hold(key, tail)
            events.extend(led_to)
        self._at[partition.path] = tail
        tail.take_up(stamp, log_start, new=is_new and wanted is None)
        needed = moved or (tail.producers.now is None and not replay)
        steps = tail.break_off(open_at(tail, tail.cursor, tail.segments, opens=self._scope.opens(key))) if needed else None
        if is_new and wanted is not None and steps is None:
            tail.plan_replay(Replays.FIRST)
        elif is_new or wanted is not None:
            events.append(tail.appeared(steps if moved else tail.note_open(still_open(tail))))
        if replay == Replays.ALONGSIDE:  # for consumers that are beyond the new beginning
            tail.plan_replay(Replays.ALONGSIDE)
        tail.satisfy()
        if wanted is not None and tail.cursor.stopped:
            events.append(stopped_event(tail))

    def _read_from_where(
        self, tail: Tail, segments: tuple[Segment, ...], wanted: Beginning | None, events: list[Event], *, is_new: bool
    ) -> bool:
        """Find where a log is read on after another listing; returns whether this is another position than before. Raises OSError."""
        if tail.cursor.stopped:
            events.extend(retry(tail, segments, self._buffer))
        else:
            tail.relist(segments, self._clock_ms())
        return (wanted is not None and self._go_back(tail, wanted, is_new)) or is_new

    def _hold(self, key: LogKey, tail: Tail) -> None:
        """Make this tail the current one of its log; it replaces everything that was kept of the log before."""
        before = self.tails.get(key)
        if before is not None:
            self._let_go(before)
        self._kept.pop(key, None)
        self.tails[key] = tail

    def _half_made(self, key: LogKey, segments: Sequence[Segment]) -> bool:
        if key.topic_id or key in self._kept or key in self.tails or any(segment.size for segment in segments):
            return False
        return 0 <= self._clock_ms() - segments[-1].modified_ms < HALF_MADE_MS

    def _tail(self, key: LogKey, partition: Partition, segments: tuple[Segment, ...]) -> tuple[Tail, bool, list[Event]]:
        """A tail for a directory that is new to this process, whether its log is completely new, and the events to publish."""
        watched = self.tails.get(key)
        cursor = watched.cursor if watched is not None else self._kept.get(key)
        if cursor is None:
            # a log that appears is read whole, unless a new consumer wants less
            return Tail(partition, cursor_at(key, beginning(segments[0]), segments, 0), segments, self._producers(key)), True, []
        producers = watched.producers.copy() if watched is not None else self._producers(key)
        first = cursor.replay == Replays.FIRST
        met = replace(cursor, replay=Replays.ALONGSIDE) if first else cursor
        tail, events = resume(partition, segments, met, producers, self._buffer)
        if first and events:  # these events happened behind the cursor where the log appears
            events.insert(0, Tail(partition, cursor, segments, producers).appeared(None))
        elif first:
            tail.plan_replay(Replays.FIRST)
        return tail, False, events

    @property
    def doubts(self) -> int:
        """Files that did not show what is open in their log, so far."""
        return self._doubts_of_left + sum(tail.doubts for tail in list(self.tails.values()))

    def _let_go(self, tail: Tail) -> None:
        self._doubts_of_left += tail.doubts
        if self._at.get(tail.partition.path) is tail:
            del self._at[tail.partition.path]
        tail.let_go()

    def _go_back(self, tail: Tail, wanted: Beginning, is_new: bool) -> bool:
        """Set the tail to the beginning that a new consumer wants, never ahead of other consumers; returns whether it has moved."""
        # the state of coordinators consists of the newest entries of all that they ever wrote
        whole = wanted.resumed or tail.cursor.log.topic == TRANSACTION_TOPIC
        start_from = StartFrom.EARLIEST if whole else wanted.start_from
        boundary = start_boundary(tail.segments, start_from, self._buffer)
        goes = is_new or boundary.next_offset < tail.cursor.next_offset
        if goes:
            at = cursor_at(tail.cursor.log, boundary, tail.segments, 0 if is_new else tail.cursor.frontier)
            # if the log is truncated before it is published again, other consumers take the entries for new ones: their chain breaks
            reread = not is_new and tail.cursor.log.topic == TRANSACTION_TOPIC
            tail.send_back(replace(at, log_epoch=epoch_before(tail, boundary), reread=reread))
        if wanted.resumed:
            tail.publish_as_known()
        return goes


def _as_left(partition: Partition, cursor: Cursor, producers: KnownProducers) -> Tail:
    """A tail with nothing but the cursor and producers of an earlier process."""
    identity = Identity(cursor.device, cursor.inode)
    segment = Segment(cursor.segment, partition.path, False, cursor.position, 0, identity)
    return Tail(partition, cursor, [segment], producers, remembered=True)
