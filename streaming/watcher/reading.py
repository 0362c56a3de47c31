"""Reads what was appended to many logs: small pieces together in one pass, one window of each big one, so that no log starves another."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from streaming.disk.reads import bytes_read
from streaming.journal.blobs import encode_steps
from streaming.journal.events import TIMES_UNKNOWN, Cursor, Event, LogId
from streaming.kafka.layout import PREFIX_BYTES
from streaming.kafka.names import FileKind, segment_file_name
from streaming.rows import Kind
from streaming.scan.detail import pack
from streaming.scan.epochs import by_epoch
from streaming.scan.pieces import MAX_SEGMENT_BYTES, Piece, Scanned, batch_size_at, scan
from streaming.scan.sums import Sums
from streaming.scan.walk import Bytes, Stop
from streaming.watcher.carrying import still_open
from streaming.watcher.coordinator_ranges import find_entries
from streaming.watcher.leading import Leading
from streaming.watcher.locate import SEEDED_BYTES, scan_on, window
from streaming.watcher.preallocated import without_half_written
from streaming.watcher.range_transactions import find_steps
from streaming.watcher.relocate import follow, list_again, relocate, set_back
from streaming.watcher.seen_epochs import with_epoch
from streaming.watcher.stopped_logs import failed, flawed
from streaming.watcher.tail import Tail
from streaming.watcher.truncation import holds_anchor

log = logging.getLogger(__name__)

ZERO_TAIL_LOOK_BYTES = 64 << 10
"""How many bytes of a preallocated file are read at once at least: its size does not show how much is written."""

LEAST_WINDOW_BYTES = 1 << 20
"""The smallest window of a log that has more than this to read, however little may be read."""


@dataclass(slots=True)
class Read:
    """The result of a round of reading: events in order, the tails that have more to read at once, and whether one lost its directory."""

    events: list[Event]
    more: list[Tail]
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _RangeColumns:
    """The columns of a range's event besides its sums."""

    leads: int
    detail: bytes | None
    transactions: bytes | None
    coordinator: bytes | None


class Reading:
    """Reads growth, and makes events of it. It has one buffer, which it uses again and again.

    Args:
        leading: whether a log's replica led when a range was appended.
        compacts: whether batches may be missing in the middle of a log.
        redact: returns the text that replaces a transactional id in events.
    """

    def __init__(
        self, leading: Leading, compacts: Callable[[LogId], bool], redact: Callable[[str], str], clock_ms: Callable[[], int]
    ) -> None:
        self._leading = leading
        self._compacts = compacts
        self._redact = redact
        self._clock_ms = clock_ms
        self.buffer: Bytes = window()

    def grown(self, tail: Tail) -> bool:
        """Whether there is something to read or to check, or another file to go on in. Raises OSError."""
        if tail.still():
            tail.looked_ms = self._clock_ms()
            return False
        waits = tail.cursor.held or tail.away or self._leading.waits(tail)
        if tail.cursor.stopped or not tail.resumed or waits:
            return False
        try:
            if tail.rests():
                tail.looked_ms = self._clock_ms()
                return False
            file = tail.open()
        except FileNotFoundError:
            return True  # the log may go on elsewhere
        size, seen = file.size(), tail.size
        if tail.calm and size == seen:
            tail.looked_ms = self._clock_ms()
            return False
        tail.size, tail.calm = size, False
        if not tail.live or tail.suspect is not None or tail.behind:
            return True
        if tail.doubtful:
            tail.doubtful = False
            if not holds_anchor(file, tail.cursor):
                return True
        if size not in (seen, tail.cursor.position):
            return True
        if tail.zero_tail and any(file.read(tail.cursor.position, PREFIX_BYTES)):
            return True
        tail.calm = not tail.zero_tail
        tail.looked_ms = self._clock_ms()
        tail.error, tail.refused = "", None
        return False

    def read(self, tails: Iterable[Tail], budget: int | None = None) -> Read:
        """Read one piece of each log.

        Args:
            budget: bytes of all logs together; beyond it a window is `LEAST_WINDOW_BYTES` long. None: there is no such bound.
        """
        done, ends = Read([], []), None if budget is None else bytes_read() + budget
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
            room = min(room, max(ZERO_TAIL_LOOK_BYTES, batch_size_at(head)))
        return room

    @staticmethod
    def _is_same(tail: Tail, room: int, done: Read) -> bool:
        """Whether the log is still the one that was read so far, checked after reading; if not, it is set back."""
        if room >= 0 and holds_anchor(tail.open(), tail.cursor):
            return True
        done.events.append(set_back(tail, list_again(tail), window()))
        done.more.append(tail)
        return False

    def _read_window(self, tail: Tail, buffer: Bytes, done: Read) -> None:
        cursor = tail.cursor
        scanned = scan_on(tail.open(), cursor.position, cursor.next_offset, buffer, spare_cache=not tail.live)
        if self._is_same(tail, 0, done):
            self._absorb(tail, 0, len(buffer), buffer, scanned, done)

    def _absorb_all(self, small: list[tuple[Tail, Piece]], done: Read) -> None:
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
    def _fail(tail: Tail, before: Cursor, published: int, error: Exception, done: Read) -> None:
        """Stop a log where it was ``before``, unless events were ``published`` since."""
        if len(done.events) == published:
            tail.cursor = before
        done.events.extend(failed(tail, error))

    def _absorb(self, tail: Tail, start: int, end: int, buffer: Bytes, scanned: Scanned, done: Read) -> None:
        """Process what a scan found in ``[start, end)`` of the buffer, and decide what comes next for this log."""
        begin = tail.cursor.position
        tail.error, tail.refused = "", None
        scanned = without_half_written(tail.open(), begin, buffer, start, scanned, plain=tail.plain)
        for part, at in by_epoch(scanned, start):
            held, flaw = self._absorb_part(tail, at, buffer, part, done)
            if flaw is not None:
                self._flawed(tail, flaw, done)
            if held or flaw is not None:
                return
        tail.zero_tail = tail.zero_tail or scanned.stop is Stop.ZEROS
        more_in_file = scanned.stop is not Stop.ZEROS and begin + end - start < tail.open().size()
        tail.plain = tail.plain or not (more_in_file or tail.zero_tail or tail.cursor.position == 0)
        if scanned.sums is not None and more_in_file:
            tail.suspect = None
            done.more.append(tail)
        elif tail.behind:
            events = follow(tail, window())
            if events is None:
                self._flawed(tail, "the segment ends inside a batch although the log goes on behind it", done)
                return
            tail.suspect = None
            done.events.extend(events)
            done.more.append(tail)
        else:
            tail.suspect = None
            self._caught_up(tail, done)

    def _absorb_part(self, tail: Tail, start: int, buffer: Bytes, scanned: Scanned, done: Read) -> tuple[bool, str | None]:
        """Process batches of one leader epoch. Returns whether they have to wait, and what is wrong behind them."""
        leads = -1 if scanned.sums is None else self._leading.of(tail, scanned.sums.leader_epoch)
        if leads is None:
            tail.size, tail.calm = -1, False  # the range has not been read: the log has to be polled again
            return True, None
        published_again = tail.cursor.next_offset < tail.cursor.frontier
        scanned, steps = find_steps(tail, scanned, buffer, start, self._clock_ms(), singly=published_again)
        if scanned.sums is not None:
            columns = _RangeColumns(
                leads=leads,
                detail=pack(scanned.batches) if published_again else None,
                transactions=encode_steps(steps),
                coordinator=find_entries(tail, scanned, buffer, self._redact),
            )
            done.events.append(self._appended(tail, start, scanned, columns))
        return False, scanned.flaw

    def _appended(self, tail: Tail, start: int, scanned: Scanned, columns: "_RangeColumns") -> Event:
        sums, before, now = scanned.sums, tail.cursor, self._clock_ms()
        assert sums is not None
        seen_at = _appended_at(tail, now)
        _note(tail, now)
        gaps = tail.producers.take(scanned.batches, now, compacted=self._compacts(before.log))
        tail.cursor = after = _behind(before, start, scanned, sums)
        log = before.log
        return Event(
            kind=Kind.APPENDED,
            broker=log.broker,
            log_dir=str(tail.partition.log_dir.path),
            topic=log.topic,
            partition=log.partition,
            topic_id=log.topic_id,
            segment=after.segment,
            start_position=before.position,
            end_position=after.position,
            base_offset=sums.base_offset,
            next_offset=sums.next_offset,
            log_epoch=sums.leader_epoch,
            leads=columns.leads,
            settled=after.settled,
            seen_at=seen_at,
            max_timestamp=sums.max_timestamp,
            bytes=sums.bytes,
            batches=sums.batches,
            records=sums.records,
            old_format_batches=sums.old_format_batches,
            codec_bytes=sums.codec_bytes,
            batch_bytes_buckets=sums.batch_bytes_buckets,
            batch_records_buckets=sums.batch_records_buckets,
            detail=columns.detail,
            transactions=columns.transactions,
            active_producers=tail.producers.active,
            sequence_gaps=gaps,
            coordinator=columns.coordinator,
            high_watermark=tail.high_watermark,
        )

    def _flawed(self, tail: Tail, what: str, done: Read) -> None:
        events = flawed(tail, what, self._clock_ms(), window())
        done.events.extend(events)
        if events and not tail.cursor.stopped:
            done.more.append(tail)

    def _caught_up(self, tail: Tail, done: Read) -> None:
        cursor = tail.cursor
        tail.live, tail.looked_ms = True, self._clock_ms()
        if cursor.frontier != cursor.next_offset:
            # the part that was published again ends before the part published first, or the last records were cleaned:
            # every consumer has to know the present end of the log
            tail.cursor = cursor = replace(cursor, frontier=cursor.next_offset)
            done.events.append(
                tail.event(
                    Kind.TRUNCATED,
                    end_position=cursor.position,
                    next_offset=cursor.next_offset,
                    log_epoch=cursor.log_epoch,
                    transactions=still_open(tail),
                )
            )
        if not cursor.settled:
            tail.cursor = replace(cursor, backlog_segment=cursor.segment, backlog_position=cursor.position)

    def _find_or_leave(self, tail: Tail, error: OSError, done: Read) -> None:
        """The file of a log cannot be opened or read: find where the log goes on, or leave it until the next poll."""
        tail.close()
        if isinstance(error, FileNotFoundError):
            try:
                done.events.extend(relocate(tail, list_again(tail), window()))
            except OSError as gone:
                error = gone
            else:
                done.more.append(tail)
                return
        if tail.error != str(error):  # if the whole directory is gone, the next listing publishes that
            level = logging.DEBUG if isinstance(error, FileNotFoundError) else logging.WARNING
            log.log(level, "log cannot be read now", extra={"log": str(tail.cursor.log), "path": tail.path, "error": str(error)})
            tail.error = str(error)
            done.lost = True
        if not isinstance(error, FileNotFoundError):
            tail.refused = refusal(tail, error)


def refusal(tail: Tail, error: OSError) -> tuple[str, str]:
    """The file of a log that cannot be read, and why."""
    path = error.filename or tail.partition.path / segment_file_name(tail.cursor.segment, FileKind.LOG)
    return str(path), error.strerror or str(error)


def _appended_at(tail: Tail, now_ms: int) -> int:
    """When the last batch that is read now was appended: by the file's time, but not before the last poll that found nothing there."""
    modified = tail.open().modified_ms()
    return min(max(modified, tail.looked_ms), now_ms) if tail.live else modified


def _note(tail: Tail, now_ms: int) -> None:
    """Note that the tail's cursor is about to move over an append, and that the high watermark is published with it."""
    tail.appended_ms = now_ms
    tail.list_due = tail.list_due or tail.cursor.position == 0
    if tail.last_found is not None and tail.last_found.high_watermark != tail.high_watermark:
        tail.last_found = replace(tail.last_found, high_watermark=tail.high_watermark)


def _behind(before: Cursor, start: int, scanned: Scanned, sums: Sums) -> Cursor:
    """The cursor after a range that was scanned from ``start`` of a buffer. All fields are named: this runs for every range."""
    first, largest = before.first_timestamp, before.largest_timestamp
    if largest != TIMES_UNKNOWN:
        largest = max(largest, sums.max_timestamp)
        if before.position == 0:
            first = max(int(scanned.batches.max_timestamp[0]), -1)
    return Cursor(
        log=before.log,
        segment=before.segment,
        device=before.device,
        inode=before.inode,
        position=before.position + scanned.end - start,
        next_offset=sums.next_offset,
        log_epoch=max(before.log_epoch, sums.leader_epoch),
        anchor=scanned.anchor,
        anchor_position=before.position + scanned.anchor_position - start,
        frontier=max(before.frontier, sums.next_offset),
        stopped=before.stopped,
        skipped=before.skipped,
        backlog_segment=before.backlog_segment,
        backlog_position=before.backlog_position,
        first_timestamp=first,
        largest_timestamp=largest,
        epochs=with_epoch(before.epochs, sums.leader_epoch, sums.base_offset),
        replay=before.replay,
        wanted=before.wanted,
        entries_upto=before.entries_upto,
        reread=before.reread,
    )
