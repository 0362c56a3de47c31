"""Which logs there are: takes them up, follows them when they move between log dirs, lets them go."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.disk.availability import LogDirs
from streaming.disk.identity import UNKNOWN_BROKER
from streaming.disk.logdirs import LogDir, Partition, list_partitions
from streaming.disk.segments import Identity, Segment, directory_stamp, list_segments, log_start_offset
from streaming.disk.topic_ids import TopicIds
from streaming.kafka.names import TRANSACTION_TOPIC, DirState, parse_partition_dir
from streaming.kafka.walk import Bytes
from streaming.rows import Kind
from streaming.watcher.carrying import carry_over, still_open
from streaming.watcher.copies import Copies
from streaming.watcher.events import Event, LogId, Place, Replays
from streaming.watcher.leaving import HOLD_MS, count_unread, find_renamed, is_over, leave
from streaming.watcher.locate import StartFrom, beginning, start_spot
from streaming.watcher.producers import KnownProducers
from streaming.watcher.relocate import relocate, resume
from streaming.watcher.same_log import has_files_of, has_open_file_of, has_place
from streaming.watcher.scope import EVERYTHING as ALL_LOGS
from streaming.watcher.scope import Scope
from streaming.watcher.stopping import failed, retry, tell_stopped
from streaming.watcher.tail import EVERYTHING, Tail, log_id, place_at
from streaming.watcher.truncation import epoch_before
from streaming.watcher.unreadable import LeftOut, Unreadable, unreadable

log = logging.getLogger(__name__)

HALF_MADE_MS = 60_000
"""An empty directory without ``partition.metadata`` may still be getting it for so long; then it is from before topics had ids."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A new consumer wants the logs from ``start_from`` on. ``resumed``: it knows these logs already, by another journal."""

    start_from: StartFrom
    resumed: bool


_WANTED = ("", "latest", "active", "earliest", "resumed")
"""What a consumer may want of a log, as the journal keeps it; each wants all that the one before does."""


def _most(*wanted: str) -> str:
    return max(wanted, key=_WANTED.index)


def _as_wanted(beginning: Beginning | None) -> str:
    if beginning is None:
        return ""
    return "resumed" if beginning.resumed else beginning.start_from


def _as_beginning(wanted: str) -> Beginning | None:
    starts: dict[str, StartFrom] = {"latest": "latest", "active": "active", "earliest": "earliest", "resumed": "earliest"}
    return Beginning(starts[wanted], wanted == "resumed") if wanted else None


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at the directories led to: events in order, and the logs that are no more. ``again``: look once more now."""

    events: list[Event]
    gone: list[LogId]
    again: bool = False


class Roster:
    """The logs under watch. Only the watcher's thread changes it.

    Args:
        log_dirs: into one that is unavailable no call is made, and nothing in it is gone. Whatever makes one unavailable, it is told there.
        places: where an earlier process left each log.
        has_topic: whether a topic still exists by the metadata log, None if nobody knows.
        assigned: the directory.id in which the metadata log has the log, None if it does not say.
        producers: those of a log as an earlier process left them.
        between: called between one log and the next: a survey of many takes a while.
        scope: which logs are taken up.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        places: Iterable[Place],
        has_topic: Callable[[LogId], bool | None],
        assigned: Callable[[LogId], str | None],
        producers: Callable[[LogId], KnownProducers],
        clock_ms: Callable[[], int],
        buffer: Bytes,
        between: Callable[[], object] = bool,
        scope: Scope = ALL_LOGS,
    ) -> None:
        self.tails: dict[LogId, Tail] = {}
        self._at: dict[Path, Tail] = {}  # the same by their directories
        self._doubts_of_left = 0
        self._log_dirs = log_dirs
        self._kept = {place.log: place for place in places}
        self._has_topic = has_topic
        self._producers = producers
        self._clock_ms = clock_ms
        self._buffer = buffer
        self._between = between
        self._scope = scope
        self._topic_ids = TopicIds()
        self._renamed: dict[int, list[Partition]] = {}  # directories of logs that leave, by partition number
        self._copies = Copies(assigned, buffer)
        self._leaving: set[LogId] = set()
        self._back: set[LogId] = set()  # logs in log dirs that were unavailable: to be listed again
        self._awaited = False  # a log was found that has the name of one that leaves
        self._left_out = LeftOut()
        self._unlisted: Mapping[Path, str] = {}  # log dirs that are available and could not be listed
        self._seen_in: frozenset[Path] = frozenset()  # the log dirs that were listed last time
        self._unmet: dict[LogId, str] = {}  # what new consumers want of logs that nobody could look at so far
        self._unmet_in: dict[Path, str] = {}  # the same of all logs in a log dir that cannot be read

    # --- looking around

    def survey(self, wanted: Beginning | None = None, *, thorough: bool = True) -> Found:
        """List the log dirs.

        Args:
            wanted: a new consumer begins here.
            thorough: also look again at the logs that are known.
        """
        found = self._list()
        if self._missing(found):
            found = self._list()  # a move between log dirs shows a log nowhere for a moment
        gone: list[LogId] = []
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
        met: set[LogId] = set()
        for key, partition in found.items():
            known = self.tails.get(key)
            self._between()
            if (key.broker, key.topic, key.partition) in leaving and not (known is not None and self._stays(known, partition)):
                self._awaited = True  # another of its name: it comes when the one of before has left
                continue
            is_known = known is not None and known.resumed and known.partition.path == partition.path and not known.place.wanted
            try:
                if thorough or not is_known or key in self._back:
                    self._take_up(key, partition, wanted, events)
                    self._back.discard(key)
                    self._left_out.clear(key)
                met.add(key)
            except OSError as error:  # gone or unreadable since it was listed: the next survey tries again
                self._leave_out(key, partition, error)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one log, the others are taken up
                events.extend(self._fail(key, partition, error))
        self._note_unmet(found, met, _as_wanted(wanted))
        return Found(events, gone)

    def before_beginning(self) -> tuple[list[Event], list[Tail], list[LogId]]:
        """What has to be told before a new consumer begins, the logs under watch, and those that are no more.

        It is told of the logs as they are then; what an earlier process did not know yet is nothing of its beginning. A log of which nobody
        was told yet appears now: where another consumer began may not become the beginning of this one, nor the other way round.
        """
        found = self.survey()
        tails, events = list(self.tails.values()), list(found.events)
        for tail in tails:
            if tail.place.replay == Replays.FIRST:
                tail.place = replace(tail.place, replay=Replays.ALONGSIDE)
                events.append(tail.appeared(None))
        return events, tails, found.gone

    def _note_unmet(self, found: dict[LogId, Partition], met: set[LogId], wanted: str) -> None:
        """What a new consumer wants of a log that could not be looked at holds until it can be: that log is not read on before."""
        for key, tail in self.tails.items():
            if wanted and key not in met and key not in self._leaving:
                tail.place = replace(tail.place, wanted=_most(tail.place.wanted, wanted))
        left_out = {key: partition for key, partition in found.items() if key not in met and key not in self.tails}
        # what nobody knows yet is read whole for those that are there: where a later consumer begins may not change that
        unmet = {key: _most(wanted, self._owed(key, partition)) or self._whole(key) for key, partition in left_out.items()}
        self._unmet = {key: owed for key, owed in unmet.items() if owed}
        in_dirs = {
            path: _most(wanted, self._unmet_in.get(path, "")) or "earliest" for path in (*self._log_dirs.unavailable, *self._unlisted)
        }
        self._unmet_in = {path: owed for path, owed in in_dirs.items() if owed}

    def _whole(self, key: LogId) -> str:
        return "" if key in self._kept else "earliest"

    def _owed(self, key: LogId, partition: Partition) -> str:
        """What consumers that began while a log could not be looked at want of it."""
        place = self.tails[key].place if key in self.tails else self._kept.get(key)
        if place is not None:
            return place.wanted
        return _most(self._unmet.get(key, ""), self._unmet_in.get(partition.log_dir.path, ""))

    def heed(self, hints: set[Path]) -> bool:
        """Look at the directories in which something happened; returns whether the log dirs have to be listed too."""
        roots = {log_dir.path for log_dir in self._log_dirs}
        stirred = bool(hints & roots)
        for hint in hints - roots:
            tail, name = self._at.get(hint), parse_partition_dir(hint.name)
            if tail is not None and tail.away:
                continue
            if tail is not None:
                stirred = not self._look_again(tail) or stirred
            elif name is not None and name.state is DirState.LIVE:  # in those being deleted or moved things happen all the time
                stirred = True
        return stirred

    def _look_again(self, tail: Tail) -> bool:
        """List a log's directory; False if it does not hold this log (any more)."""
        try:
            segments = list_segments(tail.partition.path)
            topic_id = self._topic_ids.read(tail.partition.path)
            is_same = topic_id in (tail.place.log.topic_id, None) or (not topic_id and has_files_of(tail, segments))
            if not segments or not is_same:
                return False
            tail.log_start = log_start_offset(tail.partition.path, segments)
        except OSError:
            return False
        except Exception as error:  # the next survey stops it
            if isinstance(error, MemoryError):
                raise
            log.warning("log cannot be looked at", exc_info=error, extra={"log": str(tail.place.log), "path": tail.path})
            tail.stamp = None
            return True
        if not tail.place.stopped:  # a stopped log's growth is counted from one survey to the next
            tail.relist(segments, self._clock_ms())
        return True

    def release(self) -> list[Event]:
        """Let go of unlinked files that were held for long enough; what was not read of them is skipped."""
        now, events = self._clock_ms(), []
        for tail in self.tails.values():
            held = not (tail.away or tail.leaving) and tail.lost_since_ms >= 0 and not 0 <= now - tail.lost_since_ms < HOLD_MS
            if held and tail.file is not None and tail.file.unlinked():
                try:
                    events.extend(relocate(tail, list_segments(tail.partition.path) or tail.segments, self._buffer))
                except OSError as error:  # its directory is gone too: the next survey drops it
                    log.info("deleted file let go", extra={"log": str(tail.place.log), "path": tail.path, "error": str(error)})
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
        """Say of every log where it is read, and what is open there: some reader has missed what led there."""
        events = []
        for tail in self.tails.values():
            if tail.away and tail.place.replay == Replays.NOT:
                tail.place = replace(tail.place, replay=Replays.ALONGSIDE)
            if tail.place.log.topic == TRANSACTION_TOPIC and not tail.place.reread:
                tail.place = replace(tail.place, reread=True)
            if tail.resumed and tail.place.replay != Replays.FIRST:
                events.append(tail.appeared(None if tail.away else still_open(tail)))
        return events

    def logs(self) -> dict[LogId, Path | None]:
        """All that there are, those included that cannot be looked at, and the log dir of each, None where that is not known."""
        here: dict[LogId, Path | None] = {key: tail.partition.log_dir.path for key, tail in self.tails.items()}
        return {**dict.fromkeys((*self._kept, *self._left_out.logs)), **here}

    # --- which are there

    def _list(self) -> dict[LogId, Partition]:
        """The directory of each log that is there."""
        copies: dict[LogId, list[Partition]] = {}
        self._renamed = {}
        for partition in self._listed():
            if partition.state in (DirState.DELETE, DirState.STRAY):
                self._renamed.setdefault(partition.partition, []).append(partition)
            elif partition.state is DirState.LIVE:
                known = self._as_known(partition)
                copies.setdefault(log_id(known), []).append(known)
        found: dict[LogId, Partition] = {}
        for key, those in copies.items():
            tail = self.tails.get(key)
            one = those[0] if len(those) == 1 else self._copies.choose(key, those, None if tail is None else tail.partition)
            if not self._is_elsewhere(key, one):
                found[key] = one
        return found

    def _is_elsewhere(self, key: LogId, copy: Partition) -> bool:
        """Whether the log itself lies in a log dir that is unavailable, and this copy is an old one."""
        tail, away = self.tails.get(key), self._log_dirs.unavailable
        if not away or (tail is not None and not tail.away):
            return False
        place = self._kept.get(key) if tail is None else tail.place
        return place is not None and not self._copies.goes_on_in(copy, place)

    # --- whose directory it is

    def _as_known(self, partition: Partition) -> Partition:
        """A directory that has lost its topic id, with that of the log that it still holds."""
        if partition.topic_id:
            return partition
        tail = self._at.get(partition.path)
        try:
            if tail is not None and tail.place.log.topic_id:
                return replace(partition, topic_id=tail.place.log.topic_id if has_files_of(tail, list_segments(partition.path)) else "")
            for place in self._kept_as(partition):
                if has_place(partition.path, place):
                    return replace(partition, topic_id=place.log.topic_id)
        except OSError as error:
            log.info("log cannot be looked at", extra={"path": str(partition.path), "error": str(error)})
        return partition

    def _kept_as(self, partition: Partition) -> list[Place]:
        """The places that an earlier process left in logs of a name with a topic id."""
        named = log_id(partition)
        if not self._kept or named in self._kept:
            return []
        return [place for key, place in self._kept.items() if key.topic_id and replace(key, topic_id="") == named]

    def _adopt(self, found: dict[LogId, Partition], events: list[Event], gone: list[LogId]) -> None:
        """A log whose files are there under another topic id goes on under that: what was read of it is not read again."""
        for key, partition in list(found.items()):
            if key in self.tails or key in self._kept or not key.topic_id:
                continue
            tail = self._at.get(partition.path)
            before = tail.place if tail is not None and tail.resumed else self._kept.get(replace(key, topic_id=""))
            if before is None or before.log in found:
                continue
            try:
                segments = list_segments(partition.path)
                certain = tail is not None and has_open_file_of(tail, segments)
                if not certain and (before.log.topic_id or not has_place(partition.path, before)):
                    continue
                producers = self._producers(before.log) if tail is None else tail.producers
                renamed = KnownProducers(producers.limit)
                renamed.reset(producers.now)
                tail, led_to = resume(partition, segments, replace(before, log=key), renamed, self._buffer)
            except OSError as error:  # it stays what it was until it can be looked at
                log.warning("log cannot be looked at", extra={"log": str(key), "path": str(partition.path), "error": str(error)})
                found[before.log] = replace(found.pop(key), topic_id=before.log.topic_id)
                continue
            log.warning("log goes on under another topic id", extra={"log": str(key), "topic_id": key.topic_id, "was": before.log.topic_id})
            events.extend([self._drop(before.log, "moved"), *led_to])
            gone.append(before.log)
            self._hold(key, tail)
            self._at[partition.path] = tail
            events.append(tail.appeared(still_open(tail)))

    def unseen(self) -> list[Path]:
        """The log dirs of which is not known what lies in them now. Any thread may ask."""
        seen = self._seen_in
        return [log_dir.path for log_dir in self._log_dirs if log_dir.path not in seen]

    def _listed(self) -> list[Partition]:
        """What lies in the log dirs that are available before and after."""
        self._log_dirs.check()
        listed: dict[LogDir, Sequence[Partition]] = {}
        unlisted: dict[Path, str] = {}
        for log_dir in self._log_dirs.available:
            try:
                listed[log_dir] = list_partitions(log_dir, self._topic_ids.read)
            except OSError as error:
                unlisted[log_dir.path] = str(error)
        self._log_dirs.check()  # one that was unmounted meanwhile seemed empty
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
        """Leave alone the logs in log dirs that are unavailable, and take up again those in log dirs that are back."""
        unavailable, barred = self._log_dirs.unavailable, self._log_dirs.barred
        for tail in self.tails.values():
            path = tail.partition.log_dir.path
            if tail.away == (path in unavailable):
                continue
            tail.away = not tail.away
            if tail.away and path not in barred:
                tail.close()  # an open file holds up an unmount
            tail.doubt()
            if not tail.away:  # nothing that happened there meanwhile was heeded
                self._back.add(tail.place.log)
                tail.stamp = None

    def _missing(self, found: dict[LogId, Partition]) -> list[LogId]:
        there = found.keys() | self._leaving
        return [key for key in (*self.tails, *self._kept) if key not in there and self._hidden_in(key) is None]

    def _hidden_in(self, key: LogId) -> LogDir | None:
        """Where a log that was not found may lie all the same: where nothing can be read now."""
        tail = self.tails.get(key)
        for log_dir in self._log_dirs if tail is None or not tail.resumed else (tail.partition.log_dir,):
            if log_dir.broker in (key.broker, UNKNOWN_BROKER) and (
                log_dir.path in self._log_dirs.unavailable
                or log_dir.path in self._unlisted
                or self._topic_ids.read(log_dir.path / str(key)) is None
            ):
                return log_dir
        return None

    def _keep_hidden(self, found: dict[LogId, Partition]) -> None:
        """What an earlier process read is there, only not to be read: nobody may take it for gone."""
        for key in [key for key in self._kept if key not in found]:
            log_dir = self._hidden_in(key)
            if log_dir is not None:
                partition = Partition(log_dir, log_dir.path / str(key), key.topic, key.partition, key.topic_id, DirState.LIVE)
                tail = _as_left(partition, self._kept[key], self._producers(key))
                self._hold(key, tail)
                tail.away = log_dir.path in self._log_dirs.unavailable

    # --- leaving

    def _leave(self, key: LogId, events: list[Event]) -> bool:
        """Go on with a log whose directory is not where it was, as long as there is something to read; False if there is nothing."""
        tail, renamed = self.tails.get(key), self._renamed.get(key.partition, ())
        place = self._kept[key] if tail is None else tail.place
        try:
            found = find_renamed(key, place, renamed)
            if tail is None or not tail.resumed:  # only what an earlier process kept is known of it
                if found is None:
                    return False
                tail, led_to = resume(*found, place, self._producers(key), self._buffer)
                events.extend(led_to)
                self._hold(key, tail)
        except OSError as error:  # the next survey tries again
            log.warning("log that leaves cannot be read now", extra={"log": str(key), "error": str(error)})
            return True
        if self._at.get(tail.partition.path) is tail:
            del self._at[tail.partition.path]
        leave(tail, found, self._clock_ms())
        self._leaving.add(key)
        if tail.place.held:  # what is left of it is read now or never
            events.extend([tail.appeared(None)] if tail.place.replay == Replays.FIRST else [])
            tail.place = replace(tail.place, replay=Replays.NOT, wanted="")
        return True

    def _stays(self, tail: Tail, partition: Partition) -> bool:
        """Whether a log that was leaving is back: its directory has the old name again."""
        try:
            back = tail.leaving and has_files_of(tail, list_segments(partition.path))
        except OSError:
            return False
        if back:
            tail.partition, tail.leaving = partition, False
            self._leaving.discard(tail.place.log)
        return back

    def departed(self) -> Found:
        """The logs that have left and of which nothing more can be read. Call it when what can be read was read."""
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

    def _drop(self, gone: LogId, reason: str = "") -> Event:
        tail = self.tails.pop(gone, None)
        self._back.discard(gone)
        self._kept.pop(gone, None)
        if tail is not None:
            self._let_go(tail)
        reason = reason or ("moved" if self._has_topic(gone) else "deleted")
        log.info("log left", extra={"log": str(gone), "reason": reason})
        return Event(kind=Kind.GONE, broker=gone.broker, topic=gone.topic, partition=gone.partition, topic_id=gone.topic_id, reason=reason)

    def _fail(self, key: LogId, partition: Partition, error: Exception) -> list[Event]:
        """Stop a log that is watched; leave one alone that is not."""
        tail = self.tails.get(key)
        if tail is not None and tail.resumed:
            return failed(tail, error)
        if isinstance(error, MemoryError):
            raise error
        self._leave_out(key, partition, error)
        return []

    def _leave_out(self, key: LogId, partition: Partition, error: Exception) -> None:
        level = logging.DEBUG if isinstance(error, FileNotFoundError) else logging.WARNING
        extra = {"log": str(key), "path": str(partition.path), "error": str(error)}
        self._left_out.note(key, partition.path, error)
        log.log(level, "log cannot be taken up now", exc_info=None if isinstance(error, OSError) else error, extra=extra)
        if key in self._kept:
            self._hold(key, _as_left(partition, self._kept[key], self._producers(key)))

    # --- taking up

    def _take_up(self, key: LogId, partition: Partition, wanted: Beginning | None, events: list[Event]) -> None:
        """Watch a log that is new, moved or known, from further back if a new consumer wants it so.

        Raises:
            OSError: it cannot be read now. It is held as it was before, or, where it is known, as far as ``events`` tell.
        """
        wanted = _as_beginning(_most(_as_wanted(wanted), self._owed(key, partition)))
        stamp, known = directory_stamp(partition.path, self._clock_ms()), self.tails.get(key)
        if wanted is None and known is not None and known.partition.path == partition.path and known.is_as_listed(stamp):
            known.doubt()
            return
        segments = list_segments(partition.path)
        if not segments or self._half_made(key, segments):
            return  # its first segment, or its topic's id, is a hint of its own
        log_start = log_start_offset(partition.path, segments)
        tail, fresh, led_to = known, False, events  # what is done to a log that is held is done, whatever fails next
        if tail is None or not tail.resumed or tail.partition.path != partition.path:
            tail, fresh, led_to = self._tail(key, partition, segments)
        replay = tail.place.replay
        try:
            moved = self._read_from_where(tail, segments, wanted, led_to, fresh=fresh)
        except OSError:
            if tail is not known:
                tail.close()
            raise
        if tail is not known:
            self._hold(key, tail)
            events.extend(led_to)
        self._at[partition.path] = tail
        tail.new = fresh and wanted is None
        tail.stamp = stamp
        tail.log_start = log_start
        needed = moved or (tail.producers.now is None and not replay)
        told = carry_over(tail, opens=self._scope.opens(key)) if needed else None
        if fresh and wanted is not None and told is None:
            tail.place = replace(tail.place, replay=Replays.FIRST)
        elif fresh or wanted is not None:
            events.append(tail.appeared(told if moved else still_open(tail)))
        if replay == Replays.ALONGSIDE:  # for those that have come further than where it begins again now
            tail.place = replace(tail.place, replay=replay)
        if tail.place.wanted:
            tail.place = replace(tail.place, wanted="")
        if wanted is not None and tail.place.stopped:
            events.append(tell_stopped(tail))

    def _read_from_where(
        self, tail: Tail, segments: tuple[Segment, ...], wanted: Beginning | None, events: list[Event], *, fresh: bool
    ) -> bool:
        """Find out where a log is to be read on by another listing; returns whether that is elsewhere than it was. Raises OSError."""
        if tail.place.stopped:
            events.extend(retry(tail, segments, self._buffer))
        else:
            tail.relist(segments, self._clock_ms())
        return (wanted is not None and self._go_back(tail, wanted, fresh)) or fresh

    def _hold(self, key: LogId, tail: Tail) -> None:
        """This tail is its log's from now on; what was known of the log before has a place in it."""
        before = self.tails.get(key)
        if before is not None:
            self._let_go(before)
        self._kept.pop(key, None)
        self.tails[key] = tail

    def _half_made(self, key: LogId, segments: Sequence[Segment]) -> bool:
        if key.topic_id or key in self._kept or key in self.tails or any(segment.size for segment in segments):
            return False
        return 0 <= self._clock_ms() - segments[-1].modified_ms < HALF_MADE_MS

    def _tail(self, key: LogId, partition: Partition, segments: Sequence[Segment]) -> tuple[Tail, bool, list[Event]]:
        """A tail for a directory that is new to this process, whether nothing at all is known of its log, and what must be told."""
        watched = self.tails.get(key)
        place = watched.place if watched is not None else self._kept.get(key)
        if place is None:
            # a log that appears is read whole, unless a new consumer asks for less
            return Tail(partition, place_at(key, beginning(segments[0]), segments, 0), segments, self._producers(key)), True, []
        producers = watched.producers.copy() if watched is not None else self._producers(key)
        first = place.replay == Replays.FIRST
        met = replace(place, replay=Replays.ALONGSIDE) if first else place
        tail, events = resume(partition, segments, met, producers, self._buffer)
        if first and events:  # what happened to it happened behind the place where it was to appear
            events.insert(0, Tail(partition, place, segments, producers).appeared(None))
        elif first:
            tail.place = replace(tail.place, replay=Replays.FIRST)
        return tail, False, events

    @property
    def doubts(self) -> int:
        """Files that did not tell what is open in their log, so far."""
        return self._doubts_of_left + sum(tail.doubts for tail in list(self.tails.values()))

    def _let_go(self, tail: Tail) -> None:
        self._doubts_of_left += tail.doubts
        if self._at.get(tail.partition.path) is tail:
            del self._at[tail.partition.path]
        tail.close()

    def _go_back(self, tail: Tail, wanted: Beginning, fresh: bool) -> bool:
        """Set the tail to where a new consumer wants to begin, never ahead of where others are; returns whether it was elsewhere."""
        # what coordinators know is the newest of all that they ever wrote
        whole = wanted.resumed or tail.place.log.topic == TRANSACTION_TOPIC
        start_from: StartFrom = "earliest" if whole else wanted.start_from
        spot = start_spot(tail.segments, start_from, self._buffer)
        goes = fresh or spot.next_offset < tail.place.next_offset
        if goes:
            tail.close()
            tail.live = False
            at = place_at(tail.place.log, spot, tail.segments, 0 if fresh else tail.place.frontier)
            # what is cut off before it is told again others take for new entries behind a cut, which breaks their chain
            reread = not fresh and tail.place.log.topic == TRANSACTION_TOPIC
            tail.place = replace(at, log_epoch=epoch_before(tail, spot), reread=reread)
        if wanted.resumed:
            tail.live = False
            tail.place = replace(tail.place, frontier=EVERYTHING)
        return goes


def _as_left(partition: Partition, place: Place, producers: KnownProducers) -> Tail:
    """A tail of which only is known what an earlier process kept."""
    identity = Identity(place.device, place.inode)
    tail = Tail(partition, place, [Segment(place.segment, partition.path, False, place.position, 0, identity)], producers)
    tail.resumed = False
    return tail
