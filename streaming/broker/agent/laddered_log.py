"""The ladder of one watched log: begun by a scan of the segment that the watcher reads, kept by what it appends, filled from there down."""

import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

from streaming.broker.disk.locate import without_replaced
from streaming.broker.disk.segment_files import FileIdentity, Segment, SegmentKey
from streaming.broker.journal.cursor import Cursor
from streaming.broker.ladder.counts import NOTHING, Counts
from streaming.broker.ladder.filling import count_segment, opened_at, read_aborted, read_on
from streaming.broker.ladder.log_ladder import ActiveLadder, LogLadder
from streaming.broker.ladder.positions import CountedLog, PositionState
from streaming.broker.ladder.segment_ladder import RUNG_BYTES, SegmentLadder
from streaming.broker.watcher.tail import Tail
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.sums import Sums
from streaming.kafka.scan.transaction_steps import NO_STEPS, Steps
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_NO_FILE = FileIdentity(-1, -1)

Paced = Callable[[int], None]
"""Called with the number of bytes after each window that was read; it may wait, or raise OSError to end the scan."""


class _Seen(NamedTuple):
    """All of a log that decides what is to be done. It is made for every log each few seconds."""

    tail: Tail
    cursor: Cursor
    segments: tuple[Segment, ...]
    breaks: int
    log_start: int
    edition: str


@dataclass(slots=True, eq=False)
class LadderedLog:
    """One log under one tail.

    The watcher's thread calls `note`. One other thread calls what reads: `begin`, `catch_up`, `fill`. Any thread may call the rest.
    """

    tail: Tail
    _: KW_ONLY
    _unsaved: dict[SegmentKey, bytes] = field(default_factory=dict)
    _breaks: int = 0
    _ladder: LogLadder | None = None
    _identity: FileIdentity = _NO_FILE  # of the file of the active segment
    _gap: bool = False  # the watcher has read a range that the ladder lacks; nothing is added before the gap is closed
    _lost: bool = False  # it is not known any more which data is aborted
    _keys: tuple[SegmentKey, ...] = ()  # of the closed segments in the ladder
    _compared: tuple[Segment, ...] = ()  # the listing that the ladder was last compared with
    _listed: tuple[Segment, ...] = ()  # the same; once `fill` has looked, without what a compaction has replaced
    _start: tuple[str, int, Counts] | None = None  # edition, log start, what lies before it
    _done_at: _Seen | None = None  # as it was when nothing was left to do
    _lock: threading.Lock = field(default_factory=threading.Lock)  # of the keys, the listing, and the closed segments of the ladder

    def __post_init__(self) -> None:
        self._breaks = self.tail.breaks

    # --- the watcher's thread

    def note(self, batches: Batches, sums: Sums, seen_ms: int, steps: Steps, now_ms: int) -> None:
        """Add a range that is read at the tail's cursor, before the cursor moves. It costs microseconds and does not raise."""
        if steps is NO_STEPS and sums.batches == len(batches):  # as nearly always
            self.note_plain(sums.next_offset, sums.records, sums.bytes, seen_ms, lambda: batches, now_ms)
        else:
            self._note_all(lambda: batches, seen_ms, steps, now_ms)

    def note_plain(self, next_offset: int, records: int, size: int, seen_ms: int, batches: Callable[[], Batches], now_ms: int) -> None:
        """The same for a range without transactional and control batches; ``batches`` makes its columns where its sums are not enough."""
        if size > RUNG_BYTES:
            self._note_all(batches, seen_ms, NO_STEPS, now_ms)
            return
        try:
            ladder, cursor = self._follow(now_ms), self.tail.cursor
            if ladder is not None and not ladder.append_plain(cursor.segment, cursor.position, next_offset, records, size, seen_ms):
                self._lost = True
        except Exception as error:  # noqa: BLE001 - the watcher does not depend on the ladder
            self._lose(error)

    def _note_all(self, batches: Callable[[], Batches], seen_ms: int, steps: Steps, now_ms: int) -> None:
        try:
            ladder, cursor = self._follow(now_ms), self.tail.cursor
            if ladder is not None:
                ladder.begin_at(self._log_start)
                self._lost |= not ladder.append(cursor.segment, cursor.position, batches(), seen_ms, steps)
        except Exception as error:  # noqa: BLE001 - as above
            self._lose(error)

    def _follow(self, now_ms: int) -> LogLadder | None:
        """The ladder, if it goes as far as the cursor, so that a range that is read there can be added."""
        ladder, tail = self._ladder, self.tail
        if ladder is None or self._gap or tail.breaks != self._breaks:
            return None
        cursor = tail.cursor
        if cursor.segment != ladder.active_offset:
            with self._lock:
                self._follow_roll(ladder, now_ms)
        if ladder.is_at(cursor.segment, cursor.position):
            return ladder
        self._gap = True
        return None

    def _lose(self, error: Exception) -> None:
        log.warning(
            "a ladder is begun again", exc_info=error, extra={"log": str(self.tail.cursor.log), "position": self.tail.cursor.position}
        )
        self._lost = True

    def _follow_roll(self, ladder: LogLadder, now_ms: int) -> None:
        """Go on in the segment that the watcher has gone on to, if all of the one before was noted."""
        cursor = self.tail.cursor
        if cursor.segment > ladder.active_offset and cursor.position == 0 and cursor.next_offset == ladder.end_offset and not self._gap:
            ladder.roll(cursor.segment, now_ms)
            self._identity = FileIdentity(cursor.device, cursor.inode)

    # --- the thread that fills

    def goes_on_resting(self) -> bool:
        """Whether nothing is to be done still. Most logs are as they were when nothing was left to do, or what they grew by is noted."""
        done, tail = self._done_at, self.tail
        if done is None or not self._rests_since(done):
            return False
        cursor = tail.cursor
        if cursor is not done.cursor:
            if (cursor.segment, cursor.inode, cursor.device) != (done.cursor.segment, done.cursor.inode, done.cursor.device):
                return False
            self._done_at = done._replace(cursor=cursor)
        return True

    def _rests_since(self, done: _Seen) -> bool:
        tail = self.tail
        if self._gap or self._lost or done.tail is not tail or tail.segments is not done.segments:
            return False
        return tail.breaks == done.breaks and self._log_start == done.log_start and self._edition == done.edition

    @property
    def done_at(self) -> object | None:
        """What stands for the moment since when it rests and has not grown, None if it does not rest."""
        done = self._done_at
        return done if done is not None and done.cursor is self.tail.cursor and self._rests_since(done) else None

    def wake(self) -> _Seen:
        """Begin to do what is to be done; returns the log as it is now."""
        self._done_at = None
        tail = self.tail
        return _Seen(tail, tail.cursor, tail.segments, tail.breaks, self._log_start, self._edition)

    def rest_if_done(self, state: _Seen) -> None:
        """Rest until the log is not as it was ``state`` any more, if nothing is left to do."""
        done = self.valid and not self._gap and self._compared is state.segments
        if done and not self.start_is_due and self.next_modified_ms() is None:
            self._done_at = state

    @property
    def _edition(self) -> str:
        return "" if self._ladder is None else self._ladder.edition

    @property
    def valid(self) -> bool:
        """Whether it is begun, and the log goes on as it was."""
        cursor, ladder = self.tail.cursor, self._ladder
        if ladder is None or self._lost or self.tail.breaks != self._breaks:
            return False
        identity = self._identity
        return cursor.segment != ladder.active_offset or (identity.inode == cursor.inode and identity.device == cursor.device)

    @property
    def has_gap(self) -> bool:
        """Whether the watcher has read more than was noted."""
        return self._gap

    def adopt(self, tail: Tail) -> bool:
        """Go on under the tail of another watcher, which goes on from the journal; False if it found another log there."""
        ladder = self._ladder
        if ladder is None or tail.breaks or self.tail.breaks != self._breaks:
            return False
        if all((segment.base_offset, segment.identity) != (ladder.active_offset, self._identity) for segment in tail.segments):
            return False
        self._gap, self._breaks, self.tail = True, 0, tail  # in this order: the watcher goes by the tail
        return True

    def begin(self, buffer: Bytes, paced: Paced) -> bool:
        """Begin with the segment that the watcher reads, up to where it is; False if that segment is not listed.

        Raises:
            FormatError: there is something else than whole batches.
            OSError: the segment cannot be read.
        """
        self.end()
        breaks, cursor, segments = self.tail.breaks, self.tail.cursor, self.tail.segments
        segment = next((each for each in segments if self.tail.is_at(each)), None)
        if segment is None or segment.base_offset != cursor.segment:
            return False
        ladder = LogLadder(ActiveLadder(segment.base_offset, opened_at(segment)))
        read_on(ladder, segment, cursor.position, buffer, paced)
        self._breaks, self._identity = breaks, segment.identity
        self._gap, self._lost = True, False  # the watcher may have read more by now
        with self._lock:
            self._keys, self._listed, self._compared = (), (), ()
            self._ladder = ladder
        return True

    def end(self) -> None:
        """Forget the ladder."""
        with self._lock:
            self._ladder = None

    def catch_up(self, buffer: Bytes, paced: Paced, now_ms: int) -> None:
        """Add what the watcher has read and was not noted. Raises as `begin` does; then begin again."""
        ladder, cursor = self._ladder, self.tail.cursor
        assert ladder is not None
        ladder.begin_at(self._log_start)
        segments = {segment.base_offset: segment for segment in self.tail.segments}
        bases = sorted(segments)
        while ladder.active_offset < cursor.segment:
            read_on(ladder, _listed(segments, ladder.active_offset), None, buffer, paced)
            following = next((base for base in bases if base > ladder.active_offset), None)
            if following is None:  # the log was truncated after its cursor was read
                raise FileNotFoundError(f"no segment after {ladder.active_offset} is listed any more")
            ladder.roll(following, now_ms)
            self._identity = segments[following].identity
        if cursor.segment == ladder.active_offset and cursor.position >= ladder.position:
            read_on(ladder, _listed(segments, cursor.segment), cursor.position, buffer, paced)
            self._gap = False

    def fill(self, stored: Callable[[SegmentKey], bytes | None], buffer: Bytes, paced: Paced) -> None:
        """Add the newest segment that is not counted. Raises OSError.

        Args:
            stored: the packed ladder of a segment, as it was stored by an earlier process.
        """
        self._leave_out_replaced(buffer)
        ladder, segments = self._ladder, self._listed
        number = self._next(segments)
        if ladder is None or number is None:
            return
        key = SegmentKey.of(segments[number])
        found = _unpacked(stored(key))
        kept = found is not None
        if found is None:
            found = count_segment(segments, number, buffer, paced)
        packed = found.pack()
        if found.pending:
            found = found.settled(read_aborted(segments[number:], segments[number + 1].base_offset))
        with self._lock:
            if ladder is not self._ladder or segments is not self._listed or number != self._next(segments):
                return
            ladder.add(found)
            self._keys += (key,)
            if not kept and not found.damage:
                self._unsaved[key] = packed

    def _leave_out_replaced(self, buffer: Bytes) -> None:
        """Go on without the segments that a compaction has replaced. If its broker was killed meanwhile, they are there until it starts."""
        listed = self._listed
        current = tuple(without_replaced(listed, buffer))
        if len(current) == len(listed):
            return
        with self._lock:
            if self._ladder is not None and self._listed is listed:
                self._take_listing(self._ladder, current)

    @property
    def start_is_due(self) -> bool:
        """Whether all segments are counted, and what lies before the log start has to be found."""
        ladder, start = self._ladder, self._start
        if ladder is None or not self._listed or (start is not None and start[:2] == (ladder.edition, self._log_start)):
            return False
        return self._next(self._listed) is None

    def place_start(self) -> None:
        """Find what lies before the log start; if records were deleted, a stretch is read. Raises OSError."""
        ladder, start, known = self._ladder, self._log_start, self.known()
        if ladder is None or known is None or not known.whole or known.ladder.edition != ladder.edition:
            return
        (found,) = known.positions((max(start, known.segments[0].base_offset),), 0)
        if found.state is PositionState.KNOWN:
            before = Counts(found.data, found.aborted, found.control, found.bytes)
            self._start = ladder.edition, start, before if before != NOTHING else NOTHING

    @property
    def _log_start(self) -> int:
        last = self.tail.last_found
        return self.tail.log_start if last is None else max(last.log_start_offset, last.local_log_start_offset)

    def next_modified_ms(self) -> int | None:
        """When the next segment to fill was written last, Unix milliseconds; None if there is none."""
        number = self._next(self._listed)
        return None if number is None else self._listed[number].modified_ms

    def _next(self, segments: Sequence[Segment]) -> int | None:
        ladder = self._ladder
        if ladder is None or not segments:
            return None
        number = bisect_left(segments, ladder.begin_offset, key=lambda segment: segment.base_offset) - 1
        return number if number >= 0 else None

    # --- any thread

    def compare(self) -> set[SegmentKey]:
        """Compare the ladder with the listing that the watcher has now; returns the segments that are not there any more."""
        with self._lock:
            ladder, segments = self._ladder, self.tail.segments
            if ladder is None or segments is self._compared or not self.valid:
                return set()
            self._follow_roll(ladder, 0)
            if ladder.active_offset not in {each.base_offset for each in segments}:
                return set()
            before = self._keys
            listed = self._take_listing(ladder, segments)
            self._compared = segments
            return {key for key in before if listed.get(key.base_offset) != key}

    def _take_listing(self, ladder: LogLadder, segments: tuple[Segment, ...]) -> Mapping[int, SegmentKey]:
        """Forget what is counted of segments that are not in a listing; returns the keys of those that are."""
        listed = {each.base_offset: SegmentKey.of(each) for each in segments}
        self._note_rolled(ladder, listed)
        ladder.drop_below(segments[0].base_offset)
        keys = {key.base_offset: key for key in self._keys}
        ladder.forget(lambda one: keys.get(one.base_offset) != listed.get(one.base_offset, ()))
        begin = ladder.begin_offset
        self._keys = tuple(key for key in self._keys if key.base_offset >= begin)
        self._listed = segments
        return listed

    def _note_rolled(self, ladder: LogLadder, listed: Mapping[int, SegmentKey]) -> None:
        """Name segments that have been closed since the last comparison, and store their ladders."""
        named = {key.base_offset for key in self._keys}
        for one in ladder.view().segments[:-1]:
            key = listed.get(one.base_offset)
            if one.base_offset not in named and key is not None and key.size == one.totals.bytes:
                self._keys += (key,)
                self._unsaved[key] = one.pack()

    def known(self) -> CountedLog | None:
        """Its ladder with the listing that this is of, None if there is none that holds."""
        self.compare()
        with self._lock:
            ladder = self._ladder
            if ladder is None or not self.valid or not self._listed or ladder.active_offset not in {s.base_offset for s in self._listed}:
                return None
            return CountedLog(self._listed, ladder.view())

    @property
    def damage(self) -> str:
        """The first damage that is known of it, with its file, "" if none is: it has no totals as long as it is there."""
        ladder = self._ladder
        known = self.known() if ladder is not None and ladder.is_damaged else None
        return "" if known is None else known.damage(0)

    def totals(self) -> tuple[int, int, int, int, int] | None:
        """The log start, the offset after the last batch, and the records between them: of data, aborted ones among them, and in control
        batches; None if that is not known now."""
        ladder, start = self._ladder, self._start
        if ladder is None or start is None or not self.valid or self._gap:
            return None
        edition, log_start, before = start
        if edition != ladder.edition:  # by a marker of data in closed segments, for one: it changes nothing before the first of them
            begin_offset, before = ladder.begin
            if begin_offset != log_start:
                return None
        return log_start, *ladder.counted_since(before)

    def holds(self, counted: CountedLog) -> bool:
        """Whether what was known still is: the log was not truncated, and its ladder not begun again."""
        ladder = self._ladder
        return ladder is not None and ladder.edition == counted.ladder.edition and self.tail.breaks == self._breaks

    @property
    def has_unsaved(self) -> bool:
        """Whether there is something to store."""
        return bool(self._unsaved)

    def unsaved(self) -> dict[SegmentKey, bytes]:
        """The ladders of closed segments that are to be stored."""
        with self._lock:
            return self._unsaved.copy()

    def note_saved(self, saved: Mapping[SegmentKey, bytes]) -> None:
        """These are stored."""
        with self._lock:
            self._unsaved = {key: packed for key, packed in self._unsaved.items() if saved.get(key) is not packed}

    @property
    def stored_keys(self) -> set[SegmentKey]:
        """The segments whose ladders are stored, or will be."""
        with self._lock:
            return set(self._keys)

    @property
    def unfilled_bytes(self) -> int:
        """The bytes of closed segments that are not counted."""
        ladder, segments = self._ladder, self.tail.segments
        begin = self.tail.cursor.segment if ladder is None else ladder.begin_offset
        return sum(segment.size for segment in segments if segment.base_offset < begin)

    @property
    def nbytes(self) -> int:
        """The memory that its ladder takes, without Python's own."""
        ladder = self._ladder
        return 0 if ladder is None else ladder.nbytes


def _listed(segments: Mapping[int, Segment], base_offset: int) -> Segment:
    found = segments.get(base_offset)
    if found is None:
        raise FileNotFoundError(f"segment {base_offset} is not listed any more")
    return found


def _unpacked(data: bytes | None) -> SegmentLadder | None:
    try:
        return None if data is None else SegmentLadder.unpack(data)
    except FormatError as error:
        log.warning("a stored ladder is not used", extra={"error": str(error)})
        return None
