"""The tail of one watched log: its open file, its known segments, the cursor up to which it is read, and its states.

`streaming.broker.watcher.tail_states` has the table of the states. Everything that changes a tail is in this file: other modules compute,
return values and call the methods below. tests/watcher/test_tail.py checks that none of them assigns an attribute.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, fields, replace
from pathlib import Path

from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.opening import ThreadCalls
from streaming.broker.disk.scanning import written_end
from streaming.broker.disk.segment_files import FileIdentity, OpenSegment, Segment, Stamp
from streaming.broker.journal.cursor import TIMES_UNKNOWN, Cursor, Replays
from streaming.broker.journal.journal import Stand
from streaming.broker.journal.known_producers import KnownProducers
from streaming.broker.journal.range_values import NO_ENTRIES
from streaming.broker.watcher.cursors import BROUGHT_ALONG, EVERYTHING, Open, Relocation, holds_anchor
from streaming.broker.watcher.last_found import LastFound
from streaming.broker.watcher.log_listing import ListedSizes, Listing
from streaming.broker.watcher.tail_states import Cause, TailState, step
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.formats.layout import HEADER_BYTES, PREFIX_BYTES
from streaming.kafka.formats.names import TRANSACTION_TOPIC, FileKind, segment_file_name
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.producer_states import Taken
from streaming.kafka.scan.sums import Appended


@dataclass(frozen=True, slots=True)
class Awaited:
    """The leader epoch of a range without a known leader, first read at ``since_ms``; ``given_up``: it is published without one."""

    epoch: int
    since_ms: int
    given_up: bool = False


@dataclass(slots=True, eq=False)  # there is one for each log, and a dict is four times as large
class Tail:
    """The state of one watched log. Only the watcher's thread changes it; other threads read ``cursor``, ``log_start``, ``last_found``.

    Args:
        cursor: where the log is read on.
        listing: the cursor is in one of its segments.
        producers: those at the cursor. The tail takes them over.
        remembered: only the cursor is known; the segments are made up from it.
    """

    partition: Partition
    cursor: Cursor
    listing: Listing
    producers: KnownProducers  # at the cursor
    _: KW_ONLY
    remembered: InitVar[bool] = False
    directory: TailState = TailState.WATCHED
    log_dir: TailState = TailState.AVAILABLE
    unread_state: TailState = TailState.READING
    pace: TailState = TailState.BACKLOG
    published: Stand | None = None  # as the journal has it
    last_found: LastFound | None = None
    list_due: bool = True  # something of it may have changed
    owes_list: bool = True  # all of it has to be published again: some job has not had it
    breaks: int = 0  # how often reading did not simply go on: the part that was replayed before may be gone
    doubtful_times: bool = False  # its files may be copies, which are newer than what was appended to them
    doubts: int = 0  # files that did not show what is open, so that a fallback was used
    high_watermark: int = -1  # by the checkpoint of its log dir
    replayed_whole: bool = True  # the log was understood up to where reading began, so what is open there is known
    appended_ms: int = -1  # when an append was last seen
    log_start: int = -1
    epochs: bytes = b""  # those stored with the log, as a listing shows them, packed as in its cursor
    stamp: Stamp | None = None  # of the directory when it was listed
    new: bool = False  # it appeared while the watcher was running, and was not read yet
    looked_ms: int = -1  # when a poll last found that everything is read
    looked_offset: int = -1  # up to which offset that was
    looked_segment: int = -1  # and in which segment: that another one was begun shows a moment later
    calm: bool = False  # it is read on, and only another size of the open file can mean that there is something to do
    failed: bool = False  # it is stopped by an error of this program: another try soon would fail in the same way
    error: str = ""  # why it could not be read at the last try
    refused: tuple[str, str] | None = None  # the file that cannot be read now, and why
    anchor_unchecked: bool = True  # something happened in the directory: the anchor has to be checked, the size is not enough
    file: OpenSegment | None = None
    size: int = -1  # of the open file at the last poll
    zero_tail: bool = False  # preallocated: the size does not show growth
    plain: bool = False  # it was seen to end with a whole batch, or inside one: the size shows growth
    suspect_since_ms: int = -1  # since when the bytes after the cursor are no batch
    awaited: Awaited | None = None
    parted_by: tuple[EpochEntry, ...] = ()  # the leader epochs by which it was set back last
    lost_since_ms: int = -1  # since when the open file is not among the segments

    def __post_init__(self, remembered: bool) -> None:
        if remembered:
            self.directory = TailState.REMEMBERED
        self.log_start = self.segments[0].base_offset
        self._take(self.cursor)

    # --- what it is

    @property
    def path(self) -> str:
        """The directory, as text for logs."""
        return str(self.partition.path)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Those of the last listing."""
        return self.listing.segments

    @property
    def resumed(self) -> bool:
        """Whether the cursor was found in files that are, or were, there."""
        return self.directory is not TailState.REMEMBERED

    @property
    def leaving(self) -> bool:
        """Whether its directory was renamed or removed, and the rest of it is read."""
        return self.directory is TailState.LEAVING

    @property
    def away(self) -> bool:
        """Whether its log dir is unavailable: no call into it may be made."""
        return self.log_dir is TailState.AWAY

    @property
    def live(self) -> bool:
        """Whether the log grows while it is watched: there is no backlog."""
        return self.pace is TailState.LIVE

    @property
    def may_be_read(self) -> bool:
        """Whether it may be read on, once it has grown."""
        blocked = self.unread_state is TailState.STOPPED or self.unread_state is TailState.HELD
        return not blocked and self.log_dir is TailState.AVAILABLE and self.directory is not TailState.REMEMBERED

    def is_ordinary(self, now_ms: int) -> bool:
        """Whether it may be read together with many others, as columns: it grows in its last file, up to whose end everything was read and
        published, and nothing else is to be done with it. It is not for long: whatever is unusual in what has grown is read by itself.
        """
        cursor = self.cursor
        states = self.pace is TailState.LIVE and self.unread_state is TailState.READING and self.may_be_read
        at_end = self.looked_offset == cursor.next_offset == cursor.frontier and self.looked_segment == cursor.segment
        file = self.directory is TailState.WATCHED and self.file is not None and self.plain and not self.zero_tail
        return (
            (states and at_end and file)
            and (self.awaited is None and self.looked_ms <= now_ms and self.lost_since_ms < 0 and not self.new)
            and (cursor.replay == Replays.NOT and cursor.settled and len(cursor.anchor) == HEADER_BYTES)
            and (cursor.log.topic != TRANSACTION_TOPIC and self.is_at(self.segments[-1]) and not self.producers.expire_at(now_ms))
        )

    @property
    def unsure(self) -> bool:
        """Whether another poll soon may lead to something, though nothing has grown."""
        return self.unread_state is TailState.SUSPECT or self.unread_state is TailState.WAITING

    @property
    def has_later_segment(self) -> bool:
        """Whether the log goes on in another file than the file of the cursor."""
        return not self.is_at(self.segments[-1])

    def is_at(self, segment: Segment) -> bool:
        """Whether a listed file is the file of the cursor."""
        cursor, identity = self.cursor, segment.identity
        return identity.inode == cursor.inode and identity.device == cursor.device and segment.base_offset == cursor.segment

    def is_as_listed(self, stamp: Stamp | None) -> bool:
        """Whether nothing was created, renamed or removed in its directory since it was listed, and nothing else asks for a listing."""
        whole = self.resumed and not self.cursor.stopped and self.lost_since_ms < 0 and self.producers.now is not None
        return whole and stamp is not None and stamp == self.stamp

    def measure(self) -> None:
        """Find out how much of its last file is written: the size of a preallocated file does not show it. Raises OSError."""
        last, here = self.segments[-1], not self.has_later_segment
        file = self.file if here and self.file is not None else OpenSegment(last.path, last.base_offset)
        try:
            size = file.size()  # before it is measured: what it gets meanwhile is written
            end = written_end(file, self.cursor.position if here else 0)
            self.listing = replace(self.listing, written=(file.identity, end) if end < size else None)
        finally:
            if file is not self.file:
                file.close()

    def unread_bytes(self, *, exact: bool) -> int:
        """Bytes after the cursor in the segments of the last listing; of a preallocated file those that were written when it was measured.
        ``exact``: with the size that the open file has now, by a call of the system; otherwise with its size at the last poll.
        """
        return self.listing.unread_bytes(self.cursor, self.size if not exact else -1 if self.file is None else self.file.size())

    @property
    def listed(self) -> ListedSizes:
        """The segments that were listed since `set_listing` was called."""
        return self.listing.sizes(self.cursor)

    def bytes_left_unread(self, listed: ListedSizes | None = None, end: int | None = None, others: tuple[int, int] = (0, 0)) -> int:
        """Bytes after the cursor, as `Listing.left_unread` counts them, with what the open file has now.

        Args:
            listed: those of another listing too.
            end: as there.
            others: as there.
        """
        end_of_file = -1 if self.file is None else written_end(self.file, self.cursor.position)
        return self.listing.left_unread(self.cursor, listed or self.listed, end, end_of_file, others)

    # --- its open file

    def open(self) -> OpenSegment:
        """The open file at the cursor, opened if need be. Raises OSError, FileNotFoundError if another file has its name."""
        if self.file is None:
            listed = FileIdentity(self.cursor.device, self.cursor.inode)
            self.file = OpenSegment(self._path_of_file(), self.cursor.segment, listed, stays=True)
        return self.file

    def _path_of_file(self) -> Path:
        listed = next((segment for segment in self.segments if segment.base_offset == self.cursor.segment), None)
        return listed.path if listed else self.partition.path / segment_file_name(self.cursor.segment, FileKind.LOG)

    def close(self) -> None:
        """Close the open file; bytes that were seen after the cursor have to be seen again."""
        if self.file is not None:
            self.file.close()
            self.file = None
        self.calm = False
        self.size = -1
        self.zero_tail = False
        self.plain = False
        self.awaited = None
        self.lost_since_ms = -1
        if self.unsure:
            self.unread_state = step(self.unread_state, Cause.FILE_CLOSED)

    # --- a poll of it

    def is_still(self, now_ms: int, calls: ThreadCalls) -> bool:
        """Whether the unchanged size of its open file shows that nothing is to be done, as for most logs in most polls. Raises OSError.

        Args:
            calls: as in `OpenSegment.is_of_size`.
        """
        if not self.calm or self.file is None or not self.file.is_of_size(self.size, calls):
            return False
        self.looked_ms = now_ms
        return True

    def has_grown(self, now_ms: int) -> bool:
        """Whether there is something to read or to check, or another file to go on in. Raises OSError."""
        try:
            file = self.open()
        except FileNotFoundError:
            return True  # the log may go on elsewhere
        size, before = file.size(), self.size
        if self.calm and size == before:
            self.looked_ms = now_ms
            return False
        self.size, self.calm = size, False
        if self.pace is not TailState.LIVE or self.unread_state is TailState.SUSPECT or self.has_later_segment:
            return True
        if self.anchor_unchecked:
            self.anchor_unchecked = False
            if not holds_anchor(file, self.cursor):
                return True
        if size not in (before, self.cursor.position):
            return True
        if self.zero_tail and any(file.read(self.cursor.position, PREFIX_BYTES)):
            return True
        self.calm = not self.zero_tail and self.unread_state is TailState.READING
        self.looked_ms = now_ms
        self.was_readable()
        return False

    def take_turn(self, *, far_behind: bool, small: bool) -> bool:
        """Whether it is read at once; else it waits with the backlogs.

        Args:
            far_behind: it has more to read than a live log may have.
            small: it has so little to read that a new log need not wait.
        """
        if far_behind and self.live:
            self.pace = step(self.pace, Cause.FAR_BEHIND)
        new, self.new = self.new, False
        return self.live or (new and small)

    def was_readable(self) -> None:
        """Its file could be read."""
        self.error, self.refused = "", None

    def note_error(self, error: OSError) -> bool:
        """Note why it cannot be read now; returns whether this is another reason than before."""
        before, self.error = self.error, str(error)
        return before != self.error

    def refuse(self, error: OSError) -> None:
        """Note that the file system refuses a file of it."""
        path = error.filename or self.partition.path / segment_file_name(self.cursor.segment, FileKind.LOG)
        self.refused = str(path), error.strerror or str(error)

    # --- reading

    def appended(self, base_offset: int, now_ms: int) -> Appended | None:
        """When batches from an offset on were appended that are read now; None if it is not known.

        They came after the last poll that found the end of the same segment before them. What is in another segment came after that was
        begun, which was after the last write to the one before; also what grew while no agent watched. Of a first backlog nothing is known:
        its files may be copies. Nor is it where the file that was read before is not there any more: the log may have moved.

        Raises OSError.
        """
        looked = 0 <= self.looked_offset <= base_offset and self.looked_ms <= now_ms
        if looked and self.cursor.segment == self.looked_segment:
            return Appended(self.looked_ms, now_ms)
        before = [segment.modified_ms for segment in self.segments if segment.base_offset < self.cursor.segment]
        if looked:
            return Appended(min(self.looked_ms, before[-1]), now_ms) if before else None
        modified, frontier = self.open().modified_ms(), self.cursor.frontier
        again = base_offset < frontier and frontier != BROUGHT_ALONG
        if self.doubtful_times or not self.cursor.settled or again or not before or not before[-1] <= modified <= now_ms:
            return None
        return Appended(before[-1], modified)

    def append(self, after: Cursor, batches: Batches, now_ms: int, *, compacted: bool) -> int:
        """Move over batches that are published now, with the high watermark; returns how many gaps there are in producers' sequences."""
        if self.unread_state is not TailState.READING:
            self.unread_state = step(self.unread_state, Cause.SOUND)
        self.appended_ms = now_ms
        self.list_due = self.list_due or self.cursor.position == 0
        if self.last_found is not None and self.last_found.high_watermark != self.high_watermark:
            self.last_found = replace(self.last_found, high_watermark=self.high_watermark)
        gaps = self.producers.append(batches, now_ms, compacted=compacted)
        self.cursor = after
        return gaps

    def take_range(self, after: Cursor, taken: Taken | None, looked_ms: int, now_ms: int) -> None:
        """Move over a range that is published now, to the end of the file as it was when `has_grown` looked. It is of an ordinary log.

        Args:
            taken: its producers after the range, None if they are not known.
            looked_ms: before that look: what the file lacked then came after it.
        """
        self.appended_ms = now_ms
        if self.last_found is not None and self.last_found.high_watermark != self.high_watermark:
            self.last_found = replace(self.last_found, high_watermark=self.high_watermark)
        if taken is not None:
            self.producers.now = taken.producers
        self.cursor = after
        self.looked_ms, self.looked_offset = looked_ms, after.next_offset
        self.was_readable()

    def note_scan(self, *, zeros: bool, more: bool) -> None:
        """Note what a scan of its file ended at.

        Args:
            zeros: at the zeros of a preallocated file.
            more: before the end of the file, at bytes that may be batches.
        """
        self.zero_tail = self.zero_tail or zeros
        self.plain = self.plain or not (more or self.zero_tail or self.cursor.position == 0)

    def is_sound(self) -> None:
        """Note that a batch, or the end of the log, comes after its cursor."""
        if self.unread_state is TailState.SUSPECT:
            self.unread_state = step(self.unread_state, Cause.SOUND)

    def reach_end(self, now_ms: int) -> bool:
        """Note that everything was read. The frontier, up to which the log was published, moves to its end.

        Args:
            now_ms: before its file was read: bytes that come while it is read came after that.

        Returns:
            Whether more of it may have been published than there is: then jobs have to know its present end.
        """
        self.looked_ms, self.looked_offset, self.looked_segment = now_ms, self.cursor.next_offset, self.cursor.segment
        if not self.live:
            self.pace = step(self.pace, Cause.END_REACHED)
        frontier, end = self.cursor.frontier, self.cursor.next_offset
        if frontier == end:
            return False
        self.cursor = self.cursor._replace(frontier=end)
        return frontier != BROUGHT_ALONG

    def settle_backlog(self) -> None:
        """Note that its first backlog ends at the cursor at the latest."""
        if not self.cursor.settled:
            self.cursor = self.cursor._replace(backlog_segment=self.cursor.segment, backlog_position=self.cursor.position)

    def take_back(self, before: Cursor) -> None:
        """Set the cursor back to where it was, because nothing of what was read since will be published."""
        self._take(before)

    # --- waiting for a leader, and bytes that are no batch

    def wait_for(self, epoch: int, now_ms: int) -> Awaited:
        """Hold the range at the cursor back until it is known who led in its epoch; returns since when this is so."""
        awaited = self.awaited
        if awaited is None or awaited.epoch != epoch:
            awaited = Awaited(epoch, now_ms)
        if self.unread_state is not TailState.WAITING and not awaited.given_up:
            self.unread_state, self.calm = step(self.unread_state, Cause.LEADER_UNKNOWN), False
        self.awaited = awaited
        return awaited

    def know_leader(self) -> None:
        """The leader is known, or that no leader will be."""
        self.awaited = None
        if self.unread_state is TailState.WAITING:
            self.unread_state = step(self.unread_state, Cause.LEADER_KNOWN)

    def give_up_leader(self) -> None:
        """Wait no longer for the leader of this epoch."""
        self.unread_state = step(self.unread_state, Cause.LEADER_KNOWN)
        assert self.awaited is not None  # it is what was waited for
        self.awaited = replace(self.awaited, given_up=True)

    def poll_again(self) -> None:
        """Let the next poll look for bytes after the cursor, whatever the size of the file."""
        self.size, self.calm = -1, False

    def suspect(self, now_ms: int) -> int:
        """Note that the bytes after the cursor are no batch; returns since when."""
        if self.unread_state is not TailState.SUSPECT:
            self.unread_state, self.calm = step(self.unread_state, Cause.NO_BATCH), False
            self.suspect_since_ms = now_ms
        return self.suspect_since_ms

    # --- where the log is read on

    def relocate(self, relocation: Relocation) -> list[Event]:
        """Read on where it was found; returns the events to publish."""
        if relocation.cursor is not self.cursor:
            self.close()
        self.set_listing(relocation.segments)
        self._take(relocation.cursor)
        if relocation.parted_by is not None:
            self.parted_by = relocation.parted_by
        loss = relocation.loss
        if loss is None:
            return []
        columns = {each.name: getattr(loss, each.name) for each in fields(loss) if each.name not in ("kind", "opened")}
        return [replace(self.event(loss.kind), transactions=self.break_off(loss.opened), **columns)]

    def send_back(self, cursor: Cursor) -> None:
        """Read on from a new job's beginning."""
        self.close()
        self._into_backlog()
        self._take(cursor)

    def publish_as_known(self, upto: int = EVERYTHING) -> None:
        """Publish what is read from here on, up to an offset, as a part that some job has counted, by another agent or an earlier one."""
        self._into_backlog()
        self.cursor = self.cursor._replace(frontier=upto)

    def publish_as_brought_along(self) -> None:
        """Publish what is there now as a part that another agent may have published, unless this one has."""
        if self.cursor.frontier <= self.cursor.next_offset:
            self.cursor = self.cursor._replace(frontier=BROUGHT_ALONG)

    def stop(self, what: str, skipped: int, *, failed: bool = False) -> None:
        """Read no further.

        Args:
            what: why.
            skipped: the bytes after the cursor.
            failed: it is an error of this program.
        """
        self.failed = failed
        self._take(self.cursor._replace(stopped=what, skipped=skipped))
        self.close()

    def forgive(self) -> None:
        """Try it again: the bytes that an error of this program has stopped it at are gone."""
        self.failed = False

    def read_on(self) -> None:
        """Read a stopped log on where it is: the flaw is gone."""
        self._take(self.cursor._replace(stopped="", skipped=0))

    def count_skipped(self, skipped: int) -> None:
        """Note how many bytes after the cursor of a stopped log are published as skipped."""
        self.cursor = self.cursor._replace(skipped=skipped)

    def _take(self, cursor: Cursor) -> None:
        """Take over a cursor. It contains whether the log is stopped or held, and it lasts longer than this process."""
        self.cursor = cursor
        if cursor.stopped:
            if self.unread_state is not TailState.STOPPED:
                self.unread_state = step(self.unread_state, Cause.STOP)
            return
        if self.unread_state is TailState.STOPPED:
            self.unread_state = step(self.unread_state, Cause.READ_ON)
        if cursor.held and self.unread_state is not TailState.HELD:
            self.unread_state, self.calm = step(self.unread_state, Cause.HOLD), False
        elif not cursor.held and self.unread_state is TailState.HELD:
            self.unread_state = step(self.unread_state, Cause.RELEASE)

    def _into_backlog(self) -> None:
        if self.live:
            self.pace = step(self.pace, Cause.SENT_BACK)

    # --- its directory

    def set_listing(self, segments: Sequence[Segment]) -> None:
        """Take over the segments of a listing; the cursor is in one of them."""
        self.listing = self.listing.anew(segments)
        self.list_due = True

    def restore_listing(self, listing: Listing) -> None:
        """Go back to an earlier listing, from which growth is counted."""
        self.listing = listing

    def relist(self, segments: Sequence[Segment], now_ms: int) -> None:
        """Take over another listing of the directory; it is not known yet where the cursor is in it."""
        self.listing = self.listing.and_then(segments, self.cursor, zero_tail=self.zero_tail)
        self.recheck_anchor()
        self.list_due = True
        if self.file is None or any(self.is_at(segment) for segment in segments):
            self.lost_since_ms = -1
        else:
            self.miss_file(now_ms)

    def joined(self, segments: Sequence[Segment]) -> ListedSizes:
        """The segments that were listed, and those of another listing."""
        return self.listing.joined(segments, self.cursor, zero_tail=self.zero_tail)

    def miss_file(self, now_ms: int) -> int:
        """Note that its open file has no name any more; returns since when."""
        if self.lost_since_ms < 0:
            self.lost_since_ms = now_ms
        return self.lost_since_ms

    def recheck_anchor(self) -> None:
        """Let the next poll check the anchor: a log that is truncated and grows again may show no other sign."""
        self.anchor_unchecked, self.calm = True, False

    def note_log_start(self, log_start: int, epochs: bytes) -> None:
        """Note the log start and the leader epochs, as a listing shows them."""
        self.log_start, self.epochs = log_start, epochs

    def list_anew(self) -> None:
        """Let the next rescan list its directory, whatever the directory's time."""
        self.stamp = None

    def take_up(self, stamp: Stamp | None, log_start: int, epochs: bytes, *, new: bool) -> None:
        """Note that its directory was listed as of ``stamp``; ``new``: it appeared while the watcher was running."""
        self.stamp, self.new = stamp, new
        self.note_log_start(log_start, epochs)

    def lose_log_dir(self, *, barred: bool) -> None:
        """Make no call into its log dir. ``barred``: not even to close its file, which else prevents an unmount."""
        self.log_dir = step(self.log_dir, Cause.LOG_DIR_LOST)
        if not barred:
            self.close()
        self.recheck_anchor()

    def regain_log_dir(self) -> None:
        """Read on in a log dir that is available again. Hints about it were ignored meanwhile."""
        self.log_dir = step(self.log_dir, Cause.LOG_DIR_BACK)
        self.recheck_anchor()
        self.stamp = None

    def leave(self, place: tuple[Partition, Sequence[Segment]] | None, now_ms: int) -> None:
        """Read the rest of the log as a new backlog: its directory was renamed, or removed if it was not ``place``."""
        self.directory = step(self.directory, Cause.DIRECTORY_LEFT)
        if place is not None:
            self.partition, segments = place
            if self.cursor.stopped:
                self.set_listing(segments)
            else:
                self.relist(segments, now_ms)
        self.recheck_anchor()
        self._into_backlog()
        self.new = True

    def come_back(self, partition: Partition) -> None:
        """Go on as before: its directory has its own name again."""
        self.directory = step(self.directory, Cause.DIRECTORY_BACK)
        self.partition = partition

    def let_go(self) -> None:
        """Close it for good."""
        self.directory = step(self.directory, Cause.LET_GO)
        self.close()

    # --- what is open at its cursor

    def break_off(self, opened: Open) -> bytes | None:
        """Note that reading does not just go on at the cursor, and what is open there; returns that as a column of an event."""
        self.breaks += 1
        self.producers.reset(opened.producers)
        if self.cursor.replay != Replays.FIRST:
            self.plan_replay(Replays.ALONGSIDE if opened.producers is None else Replays.NOT)
        return self.note_open(opened)

    def note_open(self, opened: Open) -> bytes | None:
        """Note what is open at the cursor, to which reading has come; returns it as a column of an event."""
        if opened.producers is None and self.cursor.replay != Replays.FIRST:
            self.plan_replay(Replays.ALONGSIDE)
        self.doubts += opened.doubts
        if opened.whole is not None:
            self.replayed_whole = opened.whole
        return opened.transactions

    def note_partial_replay(self) -> None:
        """Note that the log could not be read up to the cursor, so that what is open there is not known."""
        self.replayed_whole = False

    def plan_replay(self, how: Replays) -> None:
        """Find what is open at its cursor by a replay, or do not."""
        if self.cursor.replay != how:
            self._take(self.cursor._replace(replay=how))

    def replayed(self, opened: Open, times: tuple[int, int] | None) -> None:
        """Note what is open at its cursor, by a replay. ``times``: the timestamps of its segment, if all of it was replayed."""
        first, cursor = self.cursor.replay == Replays.FIRST, self.cursor
        if first or self.producers.now is None:
            self.producers.reset(opened.producers)
        self.note_open(opened)
        first_timestamp, largest_timestamp = cursor.first_timestamp, cursor.largest_timestamp
        if times is not None and largest_timestamp == TIMES_UNKNOWN:
            first_timestamp, largest_timestamp = times
        self._take(cursor._replace(replay=Replays.NOT, first_timestamp=first_timestamp, largest_timestamp=largest_timestamp))
        self.new = first

    def doubt_times(self) -> None:
        """Note that its files may be copies: the times when they were written say nothing of appends."""
        self.doubtful_times = True

    def note_doubt(self) -> None:
        """Count a file that was not understood."""
        self.doubts += 1

    def expire_producers(self, expiration_ms: int, now_ms: int) -> None:
        """Forget producers that have been silent for so long."""
        self.producers.expiration_ms = expiration_ms
        self.producers.expire(now_ms)

    # --- what jobs need of it

    def want(self, beginning: str) -> None:
        """Hold it until the beginning that a new job wants of it can be published."""
        self._take(self.cursor._replace(wanted=beginning))

    def satisfy(self) -> None:
        """Note that what jobs wanted of it is published."""
        if self.cursor.wanted:
            self._take(self.cursor._replace(wanted=""))

    def release(self) -> None:
        """Read it on, whatever it was held for."""
        self._take(self.cursor._replace(replay=Replays.NOT, wanted=""))

    def chain(self, upto: int, *, goes_on: bool) -> None:
        """Note where the last event with entries of this coordinator's log ended, and whether it began where the one before ended."""
        self.cursor = self.cursor._replace(entries_upto=upto, reread=self.cursor.reread or not goes_on)

    def plan_reread(self, *, needed: bool) -> None:
        """Read this coordinator's log again from its first byte, or note that this is done."""
        if self.cursor.reread != needed:
            self.cursor = self.cursor._replace(reread=needed)

    def stand(self) -> Stand:
        """Where it stands. It counts as published so far from now on."""
        self.published = Stand(self.cursor, self.producers.now)
        return self.published

    @property
    def has_moved(self) -> bool:
        """Whether it stands elsewhere than what was published of it."""
        published = self.published
        return published is None or published.cursor is not self.cursor or published.producers is not self.producers.now

    # --- its list

    def make_list_due(self) -> None:
        """Compare its list with the published one: something may have changed."""
        self.list_due = True

    def begin_list(self) -> None:
        """Note that its list is compared now."""
        self.list_due = False

    def publish_again(self) -> None:
        """Publish all values again, because some job has not had them."""
        self.list_due = self.owes_list = True

    def note_found(self, last: LastFound) -> None:
        """Note what is published of its list."""
        self.last_found = last
        self.owes_list = False

    def note_high_watermark(self, high_watermark: int) -> None:
        """Record the high watermark, as the checkpoint of its log dir has it; a damaged checkpoint gives none."""
        self.high_watermark = max(high_watermark, -1)

    # --- what is published of it

    def event(self, kind: Kind) -> Event:
        """An event of this log at its cursor; its other columns are put in by `dataclasses.replace`."""
        log_dir, cursor = str(self.partition.log_dir.path), self.cursor
        return Event(kind=kind, **cursor.log._asdict(), log_dir=log_dir, segment=cursor.segment, settled=cursor.settled)

    def appeared(self, transactions: bytes | None) -> Event:
        """The APPEARED event: the log is watched from its cursor on. ``transactions``: what is open there, None if it is not known."""
        cursor = self.cursor
        begins = cursor.log.topic == TRANSACTION_TOPIC and (cursor.segment, cursor.position) == (self.segments[0].base_offset, 0)
        return replace(
            self.event(Kind.APPEARED),
            next_offset=cursor.next_offset,
            log_epoch=cursor.log_epoch,
            transactions=transactions,
            coordinator=NO_ENTRIES if begins else None,
        )
