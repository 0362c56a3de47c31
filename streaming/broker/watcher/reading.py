"""Reads what was appended to many logs: small pieces together in one pass, one window of each big one, so that no log starves another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from streaming.broker.disk.locate import SEEDED_BYTES, scan_on, window
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.scanning import kept_window, scan_headers_on, without_half_written
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.range_values import encode_entries, encode_steps
from streaming.broker.watcher.cluster_knowledge import Cluster, Leads
from streaming.broker.watcher.cursors import advanced, holds_anchor
from streaming.broker.watcher.open_at import still_open
from streaming.broker.watcher.relocate import follow, list_again, relocate, set_back
from streaming.broker.watcher.stopped_logs import failed, flawed
from streaming.broker.watcher.tail import Awaited, Tail
from streaming.broker.watcher.tail_states import TailState
from streaming.common.event_row import Event
from streaming.common.rows import NOT_UNDERSTOOD, Kind
from streaming.kafka.formats.layout import PREFIX_BYTES
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry, coordinator_entries
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import MAX_SEGMENT_BYTES, Piece, Scanned, by_epoch, scan
from streaming.kafka.scan.sums import COUNTS, NO_ARRIVALS, AppendDelays, Sums, arrivals, pack
from streaming.kafka.scan.transaction_steps import AppendTimes, Steps, understood_steps
from streaming.kafka.scan.walk import Bytes, Stop, batch_size_at
from streaming.rules.config_values import UNLIMITED

log = logging.getLogger(__name__)

WAIT_MS = 5_000
"""How long a range is held back at most because the metadata does not contain its epoch yet."""

SEEN_WITHIN_MS = 10_000
"""If the last poll that found nothing is at most this old, the batches were appended now, by the watcher's clock."""

ZERO_TAIL_LOOK_BYTES = 64 << 10
"""How many bytes of a preallocated file are read at once at least: its size does not show how much is written."""

LEAST_WINDOW_BYTES = 1 << 20
"""The smallest window of a log that has more than this to read, however little may be read."""


class GrowthReader:
    """Reads growth, and makes events of it. It has one buffer, which it uses again and again.

    Args:
        redact: returns the text that replaces a transactional id in events.
        note: is called with every range, if anybody wants to know of them besides their events.
    """

    def __init__(self, cluster: Cluster, clock_ms: Callable[[], int], redact: Callable[[str], str], note: Noting | None) -> None:
        self._leading, self._limits = Leading(cluster, clock_ms), cluster.limits
        self._redact = redact
        self._clock_ms = clock_ms
        self._note = note
        self.buffer: Bytes = kept_window()

    def grown(self, tail: Tail) -> bool:
        """Whether there is something to read or to check, or another file to go on in. Raises OSError."""
        return tail.may_be_read and not self._leading.waits(tail) and tail.has_grown(self._clock_ms())

    def read(self, tails: Iterable[Tail], budget: int | None = None) -> ReadRound:
        """Read one piece of each log.

        Args:
            budget: bytes of all logs together; beyond it a window is `LEAST_WINDOW_BYTES` long. None: there is no such bound.
        """
        done, ends = ReadRound(self._clock_ms()), None if budget is None else bytes_read() + budget
        small: list[tuple[Tail, Piece]] = []
        filled = 0
        for tail in tails:
            before, published = tail.cursor, len(done.events)
            try:
                room = self._room(tail)
                if room > SEEDED_BYTES:
                    window_bytes = len(self.buffer) if ends is None else max(LEAST_WINDOW_BYTES, ends - bytes_read())
                    self._read_window(tail, self.buffer[filled : filled + window_bytes], done)
                    continue
                if filled + room > len(self.buffer) - SEEDED_BYTES:  # the rest of the buffer is for big logs between them
                    self._absorb_all(small, done)
                    small, filled = [], 0
                cursor = tail.cursor
                size = tail.open().read_into(self.buffer[filled : filled + room], cursor.position) if room > 0 else 0
                if self._is_same(tail, room, done):
                    small.append((tail, Piece(filled, filled + size, cursor.next_offset, limit=MAX_SEGMENT_BYTES - cursor.position)))
                    filled += size
            except OSError as error:
                self._find_or_leave(tail, error, done)
            except Exception as error:  # noqa: BLE001 - the bytes of one log must not end the agent
                self._fail(tail, before, published, error, done)
        self._absorb_all(small, done)
        return done

    @staticmethod
    def _room(tail: Tail) -> int:
        """How many bytes to read; below 0 if the file is shorter than the part of it that was read."""
        room = tail.open().size() - tail.cursor.position
        if tail.zero_tail and room > 0:
            head = tail.open().read(tail.cursor.position, PREFIX_BYTES)
            size = batch_size_at(head) if len(head) == PREFIX_BYTES else 0  # the file may have become shorter since
            room = min(room, max(ZERO_TAIL_LOOK_BYTES, size))
        return room

    @staticmethod
    def _is_same(tail: Tail, room: int, done: ReadRound) -> bool:
        """Whether the log is still the one that was read so far, checked after reading; if not, it is set back."""
        if room >= 0 and holds_anchor(tail.open(), tail.cursor):
            return True
        done.events.extend(tail.relocate(set_back(tail, list_again(tail), window())))
        done.more.append(tail)
        return False

    def _read_window(self, tail: Tail, buffer: Bytes, done: ReadRound) -> None:
        cursor, file, scanned = tail.cursor, tail.open(), None
        if cursor.log.topic != TRANSACTION_TOPIC:  # whose records are read, too
            scanned = scan_headers_on(file, cursor.position, cursor.next_offset, len(buffer), plain=tail.plain, spare_cache=not tail.live)
        if scanned is None:
            scanned = scan_on(file, cursor.position, cursor.next_offset, buffer, spare_cache=not tail.live)
        if self._is_same(tail, 0, done):
            self._absorb(tail, 0, len(buffer), buffer, scanned, done)

    def _absorb_all(self, small: list[tuple[Tail, Piece]], done: ReadRound) -> None:
        if not small:
            return
        for (tail, piece), scanned in zip(small, self._scan([piece for _, piece in small]), strict=True):
            before, published = tail.cursor, len(done.events)
            try:
                if isinstance(scanned, Exception):
                    raise scanned
                self._absorb(tail, piece.start, piece.end, self.buffer, scanned, done)
            except OSError as error:
                self._find_or_leave(tail, error, done)
            except Exception as error:  # noqa: BLE001 - as above
                self._fail(tail, before, published, error, done)

    def _scan(self, pieces: list[Piece]) -> Sequence[Scanned | Exception]:
        """Scan pieces of several logs at once; if that fails, one after the other, to find the log that causes it."""
        try:
            return scan(self.buffer, pieces)
        except Exception as error:  # noqa: BLE001 - as above
            if len(pieces) == 1:
                return [error]
            return [self._scan([piece])[0] for piece in pieces]

    @staticmethod
    def _fail(tail: Tail, before: Cursor, published: int, error: Exception, done: ReadRound) -> None:
        """Stop a log where it was ``before``, unless events were ``published`` since."""
        if len(done.events) == published:
            tail.take_back(before)
        done.events.extend(failed(tail, error))

    def _absorb(self, tail: Tail, start: int, end: int, buffer: Bytes, scanned: Scanned, done: ReadRound) -> None:
        """Process what a scan found in ``[start, end)`` of the buffer, and decide what comes next for this log."""
        begin = tail.cursor.position
        tail.was_readable()
        scanned = without_half_written(tail.open(), begin, buffer, start, scanned, plain=tail.plain)
        for part, at in by_epoch(scanned, start, tail.cursor.frontier):
            held, flaw = self._absorb_part(tail, at, buffer, part, done)
            if flaw is not None:
                self._flawed(tail, flaw, done)
            if held or flaw is not None:
                return
        more_in_file = scanned.stop is not Stop.ZEROS and begin + end - start < tail.open().size()
        tail.note_scan(zeros=scanned.stop is Stop.ZEROS, more=more_in_file)
        if scanned.sums is not None and more_in_file:
            done.more.append(tail)
        elif tail.has_later_segment:
            found = follow(tail, window())
            if found is None:
                self._flawed(tail, "the segment ends inside a batch although the log goes on after it", done)
                return
            tail.is_sound()
            done.events.extend(tail.relocate(found))
            done.more.append(tail)
        else:
            tail.is_sound()
            if tail.reach_end(done.begun_ms):
                # the part that was published again ends before the part published first, or the last records were cleaned:
                # every job has to know the present end of the log
                cursor = tail.cursor
                done.events.append(
                    replace(
                        tail.event(Kind.TRUNCATED),
                        end_position=cursor.position,
                        next_offset=cursor.next_offset,
                        log_epoch=cursor.log_epoch,
                        transactions=tail.note_open(still_open(tail)),
                    )
                )
            tail.settle_backlog()

    def _absorb_part(self, tail: Tail, start: int, buffer: Bytes, scanned: Scanned, done: ReadRound) -> tuple[bool, str | None]:
        """Process batches of one leader epoch, all new or none. Returns whether they have to wait, and what is wrong after them."""
        leads = -1 if scanned.sums is None else self._leading.of(tail, scanned.sums.leader_epoch)
        if leads is None:
            tail.poll_again()  # the range has not been read
            return True, None
        published_again = scanned.sums is not None and scanned.sums.base_offset < tail.cursor.frontier
        scanned, steps = find_steps(tail, scanned, buffer, start, self._clock_ms(), singly=published_again)
        if scanned.sums is not None:
            detail, coordinator = pack(scanned.batches) if published_again else None, find_entries(tail, scanned, buffer, self._redact)
            event = self._appended(tail, start, scanned, scanned.sums, steps, leads)
            done.events.append(replace(event, detail=detail, coordinator=coordinator) if detail or coordinator else event)
        return False, scanned.flaw

    def _appended(self, tail: Tail, start: int, scanned: Scanned, sums: Sums, steps: Steps, leads: int) -> Event:
        before, now = tail.cursor, self._clock_ms()
        seen_at = _appended_at(tail, now)
        if self._note is not None:
            self._note.note(tail, scanned.batches, sums, seen_at if tail.live else -1, steps)
        limits = self._limits(before.log)
        appended = None if leads == 0 else tail.appended(sums.base_offset, now)
        late = NO_ARRIVALS
        if appended is not None:
            late = arrivals(scanned.batches, sums, appended, limits.expires_ms if leads == 1 else UNLIMITED)
        after = advanced(before, start, scanned, sums)
        gaps = tail.append(after, scanned.batches, now, compacted=limits.compacts)
        return Event(
            kind=Kind.APPENDED,
            **before.log._asdict(),
            log_dir=str(tail.partition.log_dir.path),
            segment=after.segment,
            start_position=before.position,
            end_position=after.position,
            base_offset=sums.base_offset,
            next_offset=sums.next_offset,
            log_epoch=sums.leader_epoch,
            leads=leads,
            settled=after.settled,
            seen_at=seen_at,
            max_timestamp=sums.max_timestamp,
            transactions=encode_steps(steps),
            active_producers=tail.producers.active,
            sequence_gaps=gaps,
            high_watermark=tail.high_watermark,
            judges_expiry=limits.judges_expiry,
            **{name: getattr(sums, name) for name in COUNTS},
            **{name: getattr(late, name) for name in AppendDelays.__slots__},
        )

    def _flawed(self, tail: Tail, what: str, done: ReadRound) -> None:
        events = flawed(tail, what, self._clock_ms(), window())
        done.events.extend(events)
        if events and not tail.cursor.stopped:
            done.more.append(tail)

    def _find_or_leave(self, tail: Tail, error: OSError, done: ReadRound) -> None:
        """The file of a log cannot be opened or read: find where the log goes on, or leave it until the next poll."""
        tail.close()
        if isinstance(error, FileNotFoundError):
            try:
                done.events.extend(tail.relocate(relocate(tail, list_again(tail), window())))
            except OSError as gone:
                error = gone
            else:
                done.more.append(tail)
                return
        if tail.note_error(error):  # if the whole directory is gone, the next listing publishes that
            level = logging.DEBUG if isinstance(error, FileNotFoundError) else logging.WARNING
            log.log(level, "log cannot be read now", extra={"log": str(tail.cursor.log), "path": tail.path, "error": str(error)})
            done.lost = True
        if not isinstance(error, FileNotFoundError):
            tail.refuse(error)


class Noting(Protocol):
    """Is called with every range that is read, before the cursor moves over it. It costs almost nothing, and does not raise.

    ``seen_ms``: when the append of a range was seen, Unix milliseconds, -1 if it was not.
    """

    def note(self, tail: Tail, batches: Batches, sums: Sums, seen_ms: int, steps: Steps) -> None:
        """``steps``: of transactions, markers among them."""

    def note_plain(self, tail: Tail, next_offset: int, records: int, size: int, seen_ms: int, batches: Callable[[], Batches]) -> None:
        """The same of a range with no transactional and no control batch; ``batches`` makes its columns, which costs more than its sums."""


class Leading:
    """Queries the metadata, and notes in a tail what it waits for. Only the watcher's thread calls it."""

    def __init__(self, cluster: Cluster, clock_ms: Callable[[], int]) -> None:
        self._cluster = cluster
        self._clock_ms = clock_ms

    def of(self, tail: Tail, epoch: int) -> int | None:
        """1 if the replica led, 0 if not, -1 if this cannot be known; None: not known yet, and the range has to wait (`Tail.awaited`)."""
        leads, before = self._cluster.leads(tail.cursor.log, epoch), tail.awaited
        again = before is not None and before.epoch == epoch
        if leads is Leads.BEHIND and not again:
            self._cluster.refresh()
            leads = self._cluster.leads(tail.cursor.log, epoch)
        if leads in (Leads.YES, Leads.NO, Leads.UNKNOWN):
            if before is not None:
                tail.know_leader()
            return int(leads)
        awaited = tail.wait_for(epoch, self._clock_ms())
        if leads is Leads.BEHIND and (awaited.given_up or not 0 <= self._clock_ms() - awaited.since_ms < WAIT_MS):
            self._give_up(tail, awaited)
            return -1
        return None

    def waits(self, tail: Tail) -> bool:
        """Whether the tail still has to wait; called before it is read."""
        awaited = tail.awaited
        return tail.unread_state is TailState.WAITING and awaited is not None and self.of(tail, awaited.epoch) is None

    @staticmethod
    def _give_up(tail: Tail, awaited: Awaited) -> None:
        if not awaited.given_up:
            tail.give_up_leader()
            log.warning(
                "the metadata log names no leader: a range is counted without one",
                extra={"log": str(tail.cursor.log), "path": tail.path, "leader_epoch": awaited.epoch},
            )


@dataclass(slots=True)
class ReadRound:
    """The result of a round of reading: events in order, the tails that have more to read at once, and whether one lost its directory.

    ``begun_ms``: what was appended before this was there to be read.
    """

    begun_ms: int
    events: list[Event] = field(default_factory=list)
    more: list[Tail] = field(default_factory=list)
    lost: bool = False


def find_steps(tail: Tail, scanned: Scanned, buffer: Bytes, start: int, now_ms: int, *, singly: bool) -> tuple[Scanned, Steps]:
    """The steps of the batches scanned from ``start`` of the buffer, at the tail's cursor; ends before a marker that is not understood.

    Args:
        singly: a row for every batch, so that a job can cut the range at any of them.

    Raises:
        OSError: the file is gone.
    """
    return understood_steps(scanned, buffer, start, lambda: _times(tail, now_ms), singly=singly)


def _times(tail: Tail, now_ms: int) -> AppendTimes:
    if tail.live and 0 <= now_ms - tail.looked_ms <= SEEN_WITHIN_MS:
        return AppendTimes.seen(tail.looked_ms, now_ms)
    before = [segment.modified_ms for segment in tail.segments if segment.base_offset < tail.cursor.segment]
    return AppendTimes.recorded(before[-1] if before else 0, tail.open().modified_ms())


def find_entries(tail: Tail, scanned: Scanned, buffer: Bytes, redact: Callable[[str], str]) -> bytes | None:
    """The newest entries in the range that was scanned at the tail's cursor, as a column of its event; None for other topics.

    Entries that cannot be read are published too, or a verdict would be wrong. If not even the transactional id of some records can be
    read, these records become one entry without an id.

    Args:
        redact: returns the text that replaces a transactional id in the entries.

    Raises:
        OSError: a batch that is larger than the buffer cannot be read.
    """
    if tail.cursor.log.topic != TRANSACTION_TOPIC:
        return None
    if scanned.end > len(buffer):  # of such a large batch only the header was read
        buffer = np.frombuffer(tail.open().read(tail.cursor.position, scanned.end), np.uint8)
    found = coordinator_entries(scanned.batches, buffer)
    entries = found.entries
    if found.unreadable:
        entries = (*entries, CoordinatorEntry(transactional_id="", offset=int(scanned.batches.last_offset[-1]), state=NOT_UNDERSTOOD))
    if found.unreadable or found.not_understood:
        log.error(
            "entries of a coordinator are not understood: no verdict on transactions is certain",
            extra={
                "log": str(tail.cursor.log),
                "path": tail.path,
                "position": tail.cursor.position,
                "records": found.unreadable,
                "transactional_ids": found.not_understood,
            },
        )
    return encode_entries(entries, redact)


def _appended_at(tail: Tail, now_ms: int) -> int:
    """When the last batch that is read now was appended: by the file's time, but not before the last poll that found nothing there."""
    modified = tail.open().modified_ms()
    return min(max(modified, tail.looked_ms), now_ms) if tail.live else modified
