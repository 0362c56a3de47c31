"""Read what was appended to many logs: small pieces together in one pass, big ones a window each, so that no log starves another."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

import google_crc32c

from streaming.disk.segments import list_segments, read_leader_epochs
from streaming.kafka.detail import pack
from streaming.kafka.layout import CURRENT_MAGIC
from streaming.kafka.scan import Piece, Scanned, scan
from streaming.kafka.walk import Bytes, Stop
from streaming.rows import Kind
from streaming.watcher.events import Event
from streaming.watcher.locate import SEEDED_BYTES, find_offset, scan_on, window
from streaming.watcher.resume import lost_bytes, skip_to
from streaming.watcher.tail import EVERYTHING, Tail, moved
from streaming.watcher.truncation import holds_anchor, rewind

log = logging.getLogger(__name__)

_CRC_AT, _CRC_FROM = 17, 21


class Reading:
    """Turns growth into events. One buffer, used again and again."""

    def __init__(self, leads: Callable[[Tail], int], clock_ms: Callable[[], int]) -> None:
        self._leads = leads
        self._clock_ms = clock_ms
        self.buffer: Bytes = window()

    def grown(self, tail: Tail) -> bool:
        """Whether there is something to read, to check or to move on to. Raises OSError."""
        if tail.place.stopped:
            return False
        size = tail.open().size()
        if size != tail.size:
            tail.size = size
            return size != tail.place.position or self._behind(tail)
        if tail.zero_tail and any(tail.open().read(tail.place.position, 12)):
            return True
        return self._behind(tail) or tail.suspect >= 0

    @staticmethod
    def _behind(tail: Tail) -> bool:
        return not tail.is_at(tail.segments[-1])

    def read(self, tails: Iterable[Tail]) -> tuple[list[Event], list[Tail]]:
        """Read one piece of each log that has grown.

        Returns:
            The events in order, and the tails that have more to read at once.
        """
        events: list[Event] = []
        more: list[Tail] = []
        small: list[tuple[Tail, Piece]] = []
        filled = 0
        for tail in tails:
            try:
                room = self._whole(tail, events)
                if room is None:
                    continue
                if room > SEEDED_BYTES:
                    spare = not tail.live
                    scanned = scan_on(tail.open(), tail.place.position, tail.place.next_offset, self.buffer[filled:], spare_cache=spare)
                    self._absorb(tail, 0, self.buffer[filled:], scanned, events, more)
                    continue
                if filled + room > len(self.buffer) - SEEDED_BYTES:  # the rest of the buffer is for the big ones between
                    self._absorb_all(small, events, more)
                    small, filled = [], 0
                size = tail.open().read_into(self.buffer[filled : filled + room], tail.place.position)
                small.append((tail, Piece(filled, filled + size, tail.place.next_offset)))
                filled += size
            except OSError as error:
                self._unreadable(tail, error)
        self._absorb_all(small, events, more)
        return events, more

    def _whole(self, tail: Tail, events: list[Event]) -> int | None:
        """How many bytes are there to read, after the log was found to be the one that was read so far; None if it was set back instead."""
        room = tail.open().size() - tail.place.position
        if room < 0 or not holds_anchor(tail.open(), tail.place):
            events.append(rewind(tail, window()))
            return None
        return room

    def _absorb_all(self, small: list[tuple[Tail, Piece]], events: list[Event], more: list[Tail]) -> None:
        if not small:
            return
        for (tail, piece), scanned in zip(small, scan(self.buffer, [piece for _, piece in small]), strict=True):
            try:
                self._absorb(tail, piece.start, self.buffer, scanned, events, more)
            except OSError as error:
                self._unreadable(tail, error)

    def _absorb(self, tail: Tail, start: int, buffer: Bytes, scanned: Scanned, events: list[Event], more: list[Tail]) -> None:
        """Take in what a scan found from ``start`` of the buffer on, and decide what comes next for this log."""
        if scanned.stop is Stop.ZEROS and not scanned.flaw:
            tail.zero_tail = True
            scanned = _without_half_written(scanned, start, buffer)
        if scanned.sums is not None:
            events.append(self._appended(tail, start, scanned))
        if scanned.flaw is not None or scanned.stop is Stop.BAD_LENGTH:
            what = scanned.flaw or f"bad batch length {int.from_bytes(buffer[scanned.end + 8 : scanned.end + 12].tobytes(), 'big', signed=True)}"
            events.extend(self._flawed(tail, what))
            return
        tail.suspect = -1
        cut_by_window = scanned.stop is Stop.SHORT and scanned.sums is not None
        if cut_by_window or (scanned.stop is Stop.END and tail.place.position < tail.open().size()):
            more.append(tail)
        elif self._behind(tail):
            events.extend(self._next_segment(tail))
            more.append(tail)
        else:
            self._caught_up(tail)

    def _appended(self, tail: Tail, start: int, scanned: Scanned) -> Event:
        sums, before = scanned.sums, tail.place
        assert sums is not None
        again = before.next_offset < before.frontier
        tail.place = replace(
            before,
            position=before.position + scanned.end - start,
            next_offset=sums.next_offset,
            log_epoch=sums.leader_epoch if sums.leader_epoch >= 0 else before.log_epoch,
            anchor=scanned.anchor,
            anchor_position=before.position + scanned.anchor_position - start,
            frontier=max(before.frontier, sums.next_offset),
        )
        return tail.event(
            Kind.APPENDED,
            start_position=before.position,
            end_position=tail.place.position,
            leads=self._leads(tail),
            seen_at=self._clock_ms() if tail.live else tail.open().modified_ms(),
            detail=pack(scanned.batches) if again else None,
        ).with_sums(sums)

    def _caught_up(self, tail: Tail) -> None:
        place = tail.place
        tail.live = True
        if not place.settled or place.frontier == EVERYTHING:
            frontier = place.next_offset if place.frontier == EVERYTHING else place.frontier
            tail.place = replace(place, settled_segment=place.segment, settled_position=place.position, frontier=frontier)

    def _next_segment(self, tail: Tail) -> list[Event]:
        """The open file has been read to its end and the log goes on in another one."""
        listed, tail.segments = tail.segments, list_segments(tail.partition.path)
        place, segments = tail.place, tail.segments
        if not segments:
            raise FileNotFoundError(f"no segment in {tail.path}")
        if segments[0].base_offset > place.next_offset:
            return [skip_to(tail, segments[0], lost_bytes(place, listed, segments))]
        later = [segment for segment in segments if segment.base_offset > place.segment]
        here = [segment for segment in segments if segment.base_offset <= place.next_offset][-1]
        if tail.is_at(here) and not later:
            return []
        if not tail.is_at(here) and here.base_offset <= place.segment:  # compaction put another file under this name while we read the old one
            spot = find_offset(segments, place.next_offset, window())
            tail.close()
            tail.place = replace(moved(place, spot), next_offset=place.next_offset)
            return []
        if tail.open().size() > place.position and not tail.zero_tail:
            return self._flawed(tail, "the segment ends inside a batch although the log goes on behind it")
        if tail.open().size() > place.position and any(tail.open().read(place.position, 12)):
            return []  # the last batch came between our look and the roll: first to its end
        target = here if here.base_offset > place.segment else later[0]
        tail.close()
        tail.place = replace(
            place,
            segment=target.base_offset,
            device=target.identity.device,
            inode=target.identity.inode,
            position=0,
            next_offset=max(place.next_offset, target.base_offset),  # compaction may have left nothing up to there
            anchor=b"",
            anchor_position=0,
        )
        return []

    def _flawed(self, tail: Tail, what: str) -> list[Event]:
        """Something that is not a batch stands at the place: written anew behind a truncation, not whole yet, or corrupt."""
        place = tail.place
        epochs = read_leader_epochs(tail.partition.path)
        if place.log_epoch >= 0 and any(entry.epoch > place.log_epoch and entry.start_offset < place.next_offset for entry in epochs):
            return [rewind(tail, window())]
        if tail.suspect != place.position:  # a page of a preallocated file may not be written yet: look once more before it is called corrupt
            tail.suspect = place.position
            return []
        path = str(tail.open().path)
        log.error("log is not understood and not read on", extra={"log": str(place.log), "path": path, "position": place.position, "what": what})
        tail.place = replace(place, stopped=what)
        rest = _rest(tail)
        tail.skipped_to = rest
        tail.close()
        offsets = {"base_offset": place.next_offset, "next_offset": place.next_offset}
        return [
            tail.event(Kind.CORRUPT, start_position=place.position, reason=what, **offsets),
            tail.event(Kind.SKIPPED, start_position=place.position, reason="corrupt", bytes=rest, **offsets),
        ]

    def retry(self, tail: Tail) -> list[Event]:
        """Look again at a log that is stopped: read on if the flaw is gone, else count what has grown behind it. Raises OSError."""
        place = tail.place
        if any(tail.is_at(segment) and segment.size >= place.position for segment in tail.segments):
            scanned = scan_on(tail.open(), place.position, place.next_offset, self.buffer)
            if scanned.flaw is not None or scanned.stop is Stop.BAD_LENGTH or (scanned.sums is None and self._behind(tail)):
                tail.close()
                return self._grown_behind(tail)
        tail.close()
        log.warning("log is read on again", extra={"log": str(place.log), "path": tail.path, "position": place.position})
        tail.place = replace(place, stopped="")
        spot = find_offset(tail.segments, place.next_offset, self.buffer)
        if spot.next_offset < place.next_offset:
            return [rewind(tail, window())]
        tail.place = moved(tail.place, spot)
        return []

    @staticmethod
    def _grown_behind(tail: Tail) -> list[Event]:
        rest = _rest(tail)
        grown = rest - (tail.skipped_to if tail.skipped_to >= 0 else rest)
        tail.skipped_to = rest
        offsets = {"base_offset": tail.place.next_offset, "next_offset": tail.place.next_offset}
        return [tail.event(Kind.SKIPPED, reason="corrupt", bytes=grown, **offsets)] if grown > 0 else []

    @staticmethod
    def _unreadable(tail: Tail, error: OSError) -> None:
        # gone with its directory, which the next listing tells, or a disk in trouble, which is tried again at the next look
        level = logging.DEBUG if isinstance(error, FileNotFoundError) else logging.WARNING
        log.log(level, "log cannot be read now", extra={"log": str(tail.place.log), "path": tail.path, "error": str(error)})
        tail.close()


def _rest(tail: Tail) -> int:
    """Bytes of a log behind its place."""
    listed = {segment.base_offset: segment.size for segment in tail.segments if segment.base_offset >= tail.place.segment}
    if tail.file is not None:
        listed[tail.place.segment] = tail.file.size()
    return max(0, sum(listed.values()) - tail.place.position)


def _without_half_written(scanned: Scanned, start: int, buffer: Bytes) -> Scanned:
    """In a preallocated file the length of a batch says nothing of how much of it is written: its CRC does."""
    if scanned.sums is None or scanned.batches.magic[-1] < CURRENT_MAGIC:
        return scanned
    at = scanned.anchor_position
    expected = int.from_bytes(buffer[at + _CRC_AT : at + _CRC_FROM].tobytes(), "big")
    if google_crc32c.value(buffer[at + _CRC_FROM : scanned.end].tobytes()) == expected:
        return scanned
    return scan(buffer, [Piece(start, at, int(scanned.batches.base_offset[0]))])[0]


