"""The registry of logs in a scope: begins to watch logs, follows them when they move between log dirs, and removes them when they leave."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.broker.disk.availability import UNKNOWN_BROKER, LogDirs
from streaming.broker.disk.locate import find_offset
from streaming.broker.disk.logdirs import LogDir, Partition, TopicIds, partitions_by_name
from streaming.broker.disk.opening import is_short, shortage
from streaming.broker.disk.segment_files import FileIdentity, Segment, list_segments, log_start_offset, read_leader_epochs
from streaming.broker.journal.cursor import Cursor, Replays
from streaming.broker.journal.known_producers import KnownProducers
from streaming.broker.watcher.beginnings import Beginning, TakingUp, Unmet, as_wanted, most
from streaming.broker.watcher.cluster_knowledge import Cluster
from streaming.broker.watcher.cursors import log_id, pack
from streaming.broker.watcher.departures import HOLD_MS, Departures, ListingResult, WatchedLogs
from streaming.broker.watcher.open_at import still_open
from streaming.broker.watcher.relocate import has_files_of, has_open_file_of, holds_cursor, relocate, resume
from streaming.broker.watcher.stopped_logs import failed
from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.unreadable import LeftOut, StuckTail, unreadable
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.kafka.formats.names import DirState, parse_partition_dir
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_Paths = frozenset[str]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which logs are watched, and how thoroughly.

    ``wants``: whether the directory of a live log is watched. ``opens``: whether it has to be known what is open where reading of a log
    begins; for other logs nothing is published as open there. ``once``: no job waits for the first logs while the last ones are checked,
    and no later poll corrects this one. So all lists are published in one poll, every time index is compared with its segment, and nothing
    is published about events before the reading.
    """

    wants: Callable[[Partition], bool] = lambda _: True
    opens: Callable[[LogKey], bool] = lambda _: True
    once: bool = False


EVERYTHING = Scope()


class LogRegistry:
    """The watched logs. Only the watcher's thread changes it.

    Args:
        log_dirs: no call is made into an unavailable one, and nothing in it is gone. It contains every reason why one is unavailable.
        cursors: the cursor of each log at the end of an earlier process.
        producers: the producers of a log at the end of an earlier process.
        between: called between one log and the next: a rescan of many logs takes a while.
        scope: which logs are watched.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        cursors: Iterable[Cursor],
        cluster: Cluster,
        producers: Callable[[LogKey], KnownProducers],
        clock_ms: Callable[[], int],
        buffer: Bytes,
        between: Callable[[], object] = bool,
        scope: Scope = EVERYTHING,
    ) -> None:
        self.watched = WatchedLogs(cursors, producers)
        self.tails = self.watched.tails
        """The tail of each watched log."""
        self._log_dirs = log_dirs
        self._clock_ms = clock_ms
        self._buffer = buffer
        self._between = between
        self._copies = LogCopies(cluster, buffer)
        self.listing = LogListing(log_dirs, self.watched, self._copies, scope.wants)
        self._unmet = Unmet(self.watched.cursor_of)
        self._taking_up = TakingUp(self.watched, self._unmet, scope.opens, clock_ms, buffer, once=scope.once)
        self.departures = Departures(self.watched, cluster, self.listing.seen, clock_ms, buffer)
        self._left_out = LeftOut()

        self.all = self.watched.all
        """The same as a list, as `WatchedLogs.all` returns it."""

    # --- listing

    def rescan(self, wanted: Beginning | None = None, *, thorough: bool = True) -> ListingResult:
        """List the log dirs.

        Args:
            wanted: a new job begins here.
            thorough: also check the known logs again.
        """
        if wanted is not None:
            self._taking_up.counted.note(wanted)
        found = self.listing.find()
        if self._missing(found):
            found = self.listing.find()  # during a move between log dirs a log is listed nowhere for a moment
        gone: list[LogKey] = []
        events: list[Event] = []
        self._adopt(found, events, gone)
        for key in self._missing(found):
            if not self.departures.leave(key, self.listing.renamed.get(key.partition, ()), events):
                events.append(self.departures.drop(key))
                gone.append(key)
        self._copies.listed()
        self._keep_hidden(found)
        self._left_out.keep(found)
        if thorough:
            self.listing.topic_ids.keep({partition.path for partition in found.values()}, self._log_dirs.unavailable)
        leaving = {(key.broker, key.topic, key.partition) for key in self.departures.leaving}
        met: set[LogKey] = set()
        for key, partition in found.items():
            tail = self.tails.get(key)
            self._between()
            if (key.broker, key.topic, key.partition) in leaving and not (tail is not None and self.departures.stays(tail, partition)):
                self.departures.note_successor()
                continue
            is_known = tail is not None and tail.resumed and tail.partition.path == partition.path and not tail.cursor.wanted
            try:
                if thorough or not is_known or key in self.watched.back:
                    self._taking_up.take_up(key, partition, wanted, events)
                    self.watched.back.discard(key)
                    self._left_out.clear(key)
                met.add(key)
            except OSError as error:  # gone or unreadable since it was listed: the next rescan tries again
                self._leave_out(key, partition, error)
            except Exception as error:  # noqa: BLE001 - an error in one log does not stop the others
                events.extend(self._fail(key, partition, error))
        self._note_unmet(found, met, as_wanted(wanted))
        return ListingResult(events, gone)

    def before_beginning(self) -> tuple[list[Event], list[Tail], list[LogKey]]:
        """The events to publish before a new job begins, the watched logs, and the logs that are gone.

        The job begins with the logs as they are then: changes that an earlier process did not know are not a part of its beginning.
        A log that is not published yet appears now: the beginning of another job may not become the beginning of this one, nor the
        other way round.
        """
        found = self.rescan()
        tails, events = list(self.tails.values()), list(found.events)
        for tail in tails:
            if tail.cursor.replay == Replays.FIRST:
                tail.plan_replay(Replays.ALONGSIDE)
                events.append(tail.appeared(None))
        return events, tails, found.gone

    def _note_unmet(self, partitions: dict[LogKey, Partition], met: set[LogKey], wanted: str) -> None:
        """Note what a new job wants of logs that could not be read. The note stays until they can be; they are not read on before."""
        for key, tail in self.tails.items():
            if wanted and key not in met and key not in self.departures.leaving:
                tail.want(most(tail.cursor.wanted, wanted))
        left_out = {key: partition for key, partition in partitions.items() if key not in met and key not in self.tails}
        self._unmet.note(wanted, left_out, (*self._log_dirs.unavailable, *self.listing.unlisted), self.watched.cursors.keys())
        if not self._unmet and not any(tail.cursor.wanted for tail in self.tails.values()):
            self._taking_up.counted.forget()

    def take_hints(self, hints: set[Path]) -> bool:
        """List the directories in which something happened; returns whether the log dirs have to be listed too."""
        roots = {log_dir.path for log_dir in self._log_dirs}
        changed = bool(hints & roots)
        for hint in hints - roots:
            tail, name = self.watched.at(hint), parse_partition_dir(hint.name)
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
            topic_id = self.listing.topic_ids.read(tail.partition.path)
            is_same = topic_id in (tail.cursor.log.topic_id, None) or (not topic_id and has_files_of(tail, segments))
            if not segments or not is_same:
                return False
            epochs = read_leader_epochs(tail.partition.path)
            tail.note_log_start(log_start_offset(tail.partition.path, segments, epochs), pack(epochs))
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
        for tail in [tail for tail in self.tails.values() if tail.lost_since_ms >= 0]:
            held = not (tail.away or tail.leaving or 0 <= now - tail.lost_since_ms < HOLD_MS)
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

    def unreadable(self) -> list[StuckTail]:
        """The logs that could not be read at the last try. May be called by other threads."""
        return list(unreadable(list(self.tails.values()), self._left_out, self.listing.unreadable_directories(), self._log_dirs))

    def logs(self) -> dict[LogKey, Path | None]:
        """All logs, also those that cannot be read, with the log dir of each, None if it is not known."""
        here: dict[LogKey, Path | None] = {key: tail.partition.log_dir.path for key, tail in self.tails.items()}
        return {**dict.fromkeys((*self.watched.cursors, *self._left_out.logs)), **here}

    # --- a listing, log by log

    def _adopt(self, partitions: dict[LogKey, Partition], events: list[Event], gone: list[LogKey]) -> None:
        """Let a log go on under another topic id if its files are now under that id: the part that was read is not read again."""
        for key, partition in list(partitions.items()):
            if key in self.tails or key in self.watched.cursors or not key.topic_id:
                continue
            tail = self.watched.at(partition.path)
            before = tail.cursor if tail is not None and tail.resumed else self.watched.cursors.get(key._replace(topic_id=""))
            if before is None or before.log in partitions:
                continue
            try:
                segments = list_segments(partition.path)
                certain = tail is not None and has_open_file_of(tail, segments)
                if not certain and (before.log.topic_id or not holds_cursor(partition.path, before)):
                    continue
                producers = self.watched.producers(before.log) if tail is None else tail.producers
                renamed = KnownProducers(producers.limit)
                renamed.reset(producers.now)
                tail, led_to = resume(partition, segments, before._replace(log=key), renamed, self._buffer)
            except OSError as error:  # it keeps the old topic id until it can be read
                log.warning("log cannot be listed", extra={"log": str(key), "path": str(partition.path), "error": str(error)})
                partitions[before.log] = replace(partitions.pop(key), topic_id=before.log.topic_id)
                continue
            log.warning("log goes on under another topic id", extra={"log": str(key), "topic_id": key.topic_id, "was": before.log.topic_id})
            events.extend([self.departures.drop(before.log, "moved"), *led_to])
            gone.append(before.log)
            self.watched.hold(key, tail)
            self.watched.place(tail)
            events.append(tail.appeared(tail.note_open(still_open(tail))))

    def _missing(self, partitions: dict[LogKey, Partition]) -> list[LogKey]:
        return self.listing.missing(partitions, self.departures.leaving)

    def _keep_hidden(self, partitions: dict[LogKey, Partition]) -> None:
        """Keep the logs of an earlier process that exist but cannot be read now: they must not count as gone."""
        for key in [key for key in self.watched.cursors if key not in partitions]:
            log_dir = self.listing.hidden_in(key)
            if log_dir is not None:
                partition = Partition(log_dir, log_dir.path / str(key), key.topic, key.partition, key.topic_id, DirState.LIVE)
                tail = self.watched.remember(key, partition)
                if log_dir.path in self._log_dirs.unavailable:
                    tail.lose_log_dir(barred=True)
                    self.watched.note_change()

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
        if key in self.watched.cursors:
            self.watched.remember(key, partition)


class LogCopies:
    """Remembers which logs were in several log dirs at the previous listing: at the end of a move both copies exist for a moment.

    The cluster's metadata names the directory.id of a replica since Kafka 3.7.
    """

    def __init__(self, cluster: Cluster, buffer: Bytes) -> None:
        self._cluster = cluster
        self._buffer = buffer
        self._before: dict[LogKey, _Paths] = {}
        self._now: dict[LogKey, _Paths] = {}
        self._logged: dict[LogKey, tuple[_Paths, str]] = {}

    def _assigned(self, key: LogKey) -> str | None:
        state = self._cluster.partition(key)
        return None if state is None else state.directory(key.broker)

    def listed(self) -> None:
        """End the current listing: from now on it is the previous one."""
        self._before, self._now = self._now, {}
        self._logged = {key: logged for key, logged in self._logged.items() if key in self._before}

    def choose(self, key: LogKey, copies: Sequence[Partition], watched: Partition | None) -> Partition:
        """The copy that the cluster's metadata names; else the watched copy, unless another one goes further and both were listed twice."""
        paths = self._now[key] = frozenset(str(each.path) for each in copies)
        directory = self._assigned(key)
        named = [each for each in copies if directory is not None and each.log_dir.directory_id == directory]
        current = next((each for each in copies if watched is not None and each.path == watched.path), None)
        if len(named) == 1:
            chosen = named[0]
        elif current is not None and self._before.get(key) != paths:
            return current
        else:
            chosen = max(copies, key=lambda each: (self._end_of(each)[0], each is current, self._end_of(each)[1]))
        if self._logged.get(key) != (paths, str(chosen.path)):
            self._logged[key] = paths, str(chosen.path)
            log.warning("a log lies in several log dirs", extra={"log": str(key), "paths": sorted(paths), "watched": str(chosen.path)})
        return chosen

    def goes_on_in(self, copy: Partition, cursor: Cursor) -> bool:
        """Whether a copy may replace one in an unavailable log dir: the metadata names it, or it contains everything that was read."""
        directory = self._assigned(cursor.log)
        if directory is not None and copy.log_dir.directory_id == directory:
            return True
        segments = _segments(copy)
        if any(segment.identity == FileIdentity(cursor.device, cursor.inode) for segment in segments):
            return True
        return self._end_of(copy)[0] >= cursor.next_offset

    def _end_of(self, copy: Partition) -> tuple[int, int]:
        """(Next offset, last write in Unix milliseconds) of a copy, -1 where it cannot be read now."""
        segments = _segments(copy)
        try:
            return (find_offset(segments, None, self._buffer).next_offset, segments[-1].modified_ms) if segments else (-1, -1)
        except OSError as error:
            log.warning("copy of a log cannot be read", extra={"path": str(copy.path), "error": str(error)})
            return -1, -1


def _segments(copy: Partition) -> tuple[Segment, ...]:
    try:
        return list_segments(copy.path)
    except OSError as error:
        log.warning("copy of a log cannot be read", extra={"path": str(copy.path), "error": str(error)})
        return ()


class LogListing:
    """The last listing. Only the watcher's thread changes it.

    Lists the log dirs: which logs are there, in which directory, and which may be where nothing can be read now.

    Args:
        log_dirs: no call is made into an unavailable one, and nothing in it is gone. It contains every reason why one is unavailable.
        copies: decides between several directories of one log.
        wants: whether the directory of a live log is watched.
    """

    def __init__(self, log_dirs: LogDirs, watched: WatchedLogs, copies: LogCopies, wants: Callable[[Partition], bool]) -> None:
        self._log_dirs = log_dirs
        self._watched = watched
        self._copies = copies
        self._wants = wants
        self.topic_ids = TopicIds()
        self.moving: frozenset[tuple[int, str, int]] = frozenset()  # broker, topic and partition of copies of moves between log dirs
        self.renamed: dict[int, list[Partition]] = {}  # directories of logs that leave, by partition number
        self._by_name: dict[Path, dict[str, Partition]] = {}  # what was listed last in each log dir
        self.unlisted: Mapping[Path, str] = {}  # log dirs that are available and could not be listed
        self._seen_in: frozenset[Path] = frozenset()  # the log dirs that were listed last time

    def find(self) -> dict[LogKey, Partition]:
        """The directory of each log that is there. In log dirs that are unavailable none is."""
        copies: dict[LogKey, list[Partition]] = {}
        self.renamed, moving = {}, set[tuple[int, str, int]]()
        for partition in self._listed():
            if partition.state in (DirState.DELETE, DirState.STRAY):
                self.renamed.setdefault(partition.partition, []).append(partition)
            elif partition.state is DirState.LIVE:
                known = self._as_known(partition)
                copies.setdefault(log_id(known), []).append(known)
            else:
                moving.add((partition.log_dir.broker, partition.topic, partition.partition))
        if moving != self.moving:
            self.moving = frozenset(moving)
        found: dict[LogKey, Partition] = {}
        for key, those in copies.items():
            tail = self._watched.tails.get(key)
            one = those[0] if len(those) == 1 else self._copies.choose(key, those, None if tail is None else tail.partition)
            if not self._is_elsewhere(key, one):
                found[key] = one
        return found

    def _is_elsewhere(self, key: LogKey, copy: Partition) -> bool:
        """Whether the log itself is in an unavailable log dir, and this copy is an old one."""
        tail, away = self._watched.tails.get(key), self._log_dirs.unavailable
        if not away or (tail is not None and not tail.away):
            return False
        cursor = self._watched.cursors.get(key) if tail is None else tail.cursor
        return cursor is not None and not self._copies.goes_on_in(copy, cursor)

    def seen(self) -> list[LogDir]:
        """The log dirs whose logs are known by the last listing."""
        return [log_dir for log_dir in self._log_dirs if log_dir.path in self._seen_in]

    def unseen(self) -> list[Path]:
        """The log dirs whose logs are not known now. Any thread may call it."""
        seen = self._seen_in
        return [log_dir.path for log_dir in self._log_dirs if log_dir.path not in seen]

    def unreadable_directories(self) -> dict[Path, str]:
        """The directories in available log dirs whose ``partition.metadata`` cannot be read, and why. Any thread may call it."""
        unavailable = self._log_dirs.unavailable
        return {path: why for path, why in dict(self.topic_ids.unreadable).items() if path.parent not in unavailable}

    def missing(self, logs: Collection[LogKey], leaving: Collection[LogKey]) -> list[LogKey]:
        """The logs that are known and neither found nor leaving, and that may not be where nothing can be read now."""
        there = {*logs, *leaving}
        return [key for key in (*self._watched.tails, *self._watched.cursors) if key not in there and self.hidden_in(key) is None]

    def hidden_in(self, key: LogKey) -> LogDir | None:
        """The log dir that may still contain a log that was not found, because it cannot be read now; None if there is none."""
        tail = self._watched.tails.get(key)
        for log_dir in self._log_dirs if tail is None or not tail.resumed else (tail.partition.log_dir,):
            if log_dir.broker in (key.broker, UNKNOWN_BROKER) and (
                log_dir.path in self._log_dirs.unavailable
                or log_dir.path in self.unlisted
                or self.topic_ids.read(log_dir.path / str(key)) is None
            ):
                return log_dir
        return None

    # --- which log a directory contains

    def _as_known(self, partition: Partition) -> Partition:
        """The directory with its topic id; if it has lost that, with the topic id of the log that it still contains."""
        if partition.topic_id:
            return partition
        tail = self._watched.at(partition.path)
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
        if not self._watched.cursors or named in self._watched.cursors:
            return []
        return [cursor for key, cursor in self._watched.cursors.items() if key.topic_id and key._replace(topic_id="") == named]

    def _listed(self) -> list[Partition]:
        """The directories in the log dirs that are available before and after the listing."""
        self._log_dirs.check()
        listed: dict[LogDir, Collection[Partition]] = {}
        unlisted: dict[Path, str] = {}
        for log_dir in self._log_dirs.available:
            try:
                found = partitions_by_name(log_dir, self.topic_ids.read, self._by_name.get(log_dir.path, {}))
                self._by_name[log_dir.path] = found
                listed[log_dir] = found.values()
            except OSError as error:
                if is_short(error):
                    shortage.note()
                unlisted[log_dir.path] = str(error)
        self._log_dirs.check()  # a log dir that was unmounted meanwhile seemed empty
        self._log_dirs.log_changes()
        available = set(self._log_dirs.available)
        for log_dir in listed.keys() - available:
            unlisted[log_dir.path] = "it was exchanged while it was listed"
        for path, why in unlisted.items():
            if path not in self._log_dirs.unavailable and self.unlisted.get(path) != why and not shortage.lasts:
                log.error("log dir cannot be listed", extra={"log_dir": str(path), "error": why})
        self.unlisted = unlisted
        self._seen_in = frozenset(log_dir.path for log_dir in listed if log_dir in available)
        self._watched.part(self._log_dirs)
        there = (partition for log_dir, partitions in listed.items() if log_dir in available for partition in partitions)
        return [each for each in there if each.state is not DirState.LIVE or self._wants(each)]
