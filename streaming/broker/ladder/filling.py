"""Counts segments that are on disk already: a scan of the headers, the CRCs, and the index of aborted transactions."""

from collections.abc import Callable, Sequence

from streaming.broker.disk.locate import walk_on
from streaming.broker.disk.producer_files import SnapshotFile, aborted_transactions, load_producer_snapshot
from streaming.broker.disk.scanning import BAD_CRC, damaged_batches, scan_on
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.broker.ladder.counts import Aborted, Pending, transaction_runs
from streaming.broker.ladder.log_ladder import LogLadder
from streaming.broker.ladder.segment_ladder import RungBuilder, SegmentLadder
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.pieces import Piece, scan
from streaming.kafka.scan.transaction_steps import AppendTimes, steps_of
from streaming.kafka.scan.walk import Bytes, Stop

_UNTIMED = AppendTimes.recorded(0, 0)


def _unpaced(_size: int) -> None:
    """As fast as possible."""


def count_segment(segments: Sequence[Segment], number: int, buffer: Bytes, paced: Callable[[int], None] = _unpaced) -> SegmentLadder:
    """The ladder of one of a log's segments, by a scan of its headers, and the CRC of each batch.

    Bytes that are no batch end it early, with the reason in it. After a batch with another CRC than its header has, it goes on.

    Args:
        segments: those of a listing, in order: the aborted transactions of this segment may end in later ones.
        number: its index.
        buffer: is used for the scan.
        paced: called with the number of bytes after each window that was read; it may wait.

    Raises:
        OSError: the segment or an index cannot be read; FileNotFoundError if another file has its name by now.
    """
    segment = segments[number]
    built, pending = RungBuilder(segment.base_offset), dict[int, Pending]()
    upto = segments[number + 1].base_offset if number + 1 < len(segments) else 2**63 - 1
    damage, cut, sound_from, aborted = "", "", -1, Aborted.none()
    with segment.open() as file:
        try:
            aborted = read_aborted(segments[number:], upto)
            for position, scanned in walk_on(file, 0, segment.base_offset, buffer, spare_cache=True):
                wrong = damaged_batches(file, position, scanned, buffer)
                if len(wrong):
                    damage = damage or _bad_crc(scanned.batches, int(wrong[0]), position)
                    sound_from = min(int(scanned.batches.last_offset[wrong[-1]]) + 1, upto)
                built.add(scanned.batches, aborted.mask(scanned.batches), -1)
                _note_open(scanned.batches, pending)
                paced(scanned.end)
                assert position + scanned.end == built.position
        except FormatError as error:
            cut = str(error)
        cut = cut or _damage(file, built, buffer, last=number == len(segments) - 1)
        if not cut and built.end_offset > upto:
            cut = f"offsets up to {built.end_offset - 1}, and the next segment begins with {upto}"
    if len(built.rungs):
        built.thin(0)
    still = (one for one in pending.values() if not aborted.covers(one.producer_id, one.first_offset))
    return SegmentLadder(segment.base_offset, built.rungs.copy(), tuple(still), damage or cut, bool(cut), sound_from)


def read_aborted(segments: Sequence[Segment], upto: int) -> Aborted:
    """The aborted transactions that end in one of ``segments`` and may have data below ``upto``. Raises as `aborted_transactions` does."""
    return Aborted(aborted_transactions(segments, upto))


def _bad_crc(batches: Batches, item: int, position: int) -> str:
    offsets = f"offsets {batches.base_offset[item]} to {batches.last_offset[item]}"
    return f"{BAD_CRC}: {offsets} at position {position + int(batches.positions[item])}"


def _note_open(batches: Batches, pending: dict[int, Pending]) -> None:
    """Keep the data of transactions that have not ended yet; how they end is in the index."""
    for run in transaction_runs(batches):
        if run.marker >= 0:
            pending.pop(run.producer_id, None)
        elif len(run.items):
            found, before = Pending.of(run, batches), pending.get(run.producer_id)
            pending[run.producer_id] = found if before is None else before + found


def _damage(file: OpenSegment, built: RungBuilder, buffer: Bytes, *, last: bool) -> str:
    """Why a scan has ended before the end of the file, "" if there is nothing more."""
    if built.position >= file.size():
        return ""
    rest = scan_on(file, built.position, built.end_offset, buffer)
    if rest.sums is not None:  # the walk has taken it for a batch that is being written
        wrong = damaged_batches(file, built.position, rest, buffer)
        return _bad_crc(rest.batches, 0, built.position) if len(wrong) and wrong[0] == 0 else ""
    if rest.flaw is None and (last or rest.stop is Stop.ZEROS):
        return ""
    return f"{rest.flaw or 'no whole batch'} at position {built.position}"


def opened_at(segment: Segment) -> dict[int, int] | None:
    """The transactions that are open at the beginning of a segment, for `ActiveLadder`: first offset by producer id.

    They are in the producer snapshot that a broker writes at each roll. None if there is none, or if it is damaged. Raises OSError.
    """
    if segment.base_offset == 0:
        return {}
    try:
        return load_producer_snapshot(SnapshotFile.beside(segment)).opened
    except (FormatError, FileNotFoundError):
        return None


def read_on(ladder: LogLadder, segment: Segment, upto: int | None, buffer: Bytes, paced: Callable[[int], None] = _unpaced) -> None:
    """Add what is in the file of the segment that grows, from the end of the ladder on.

    Args:
        upto: a position where a batch ends; None for the end of the file, where a part of a batch may follow.

    Raises:
        FormatError: there is something else than whole batches, or it is not known any more which data is aborted.
        OSError: the segment cannot be read; FileNotFoundError if another file has its name by now.
    """
    with segment.open() as file:
        end = file.size() if upto is None else upto
        while ladder.position < end:
            begin = ladder.position
            scanned = scan_on(file, begin, ladder.end_offset, buffer, spare_cache=True)
            if scanned.sums is not None and begin + scanned.end > end:
                scanned = scan(buffer, [Piece(0, end - begin, ladder.end_offset)])[0]
            if scanned.sums is None:
                if upto is None and scanned.flaw is None:
                    return
                raise FormatError(f"{segment.path}: {scanned.flaw or 'no whole batch'}", begin)
            if not ladder.append(segment.base_offset, begin, scanned.batches, -1, steps_of(scanned.batches, buffer, _UNTIMED)):
                raise FormatError(f"{segment.path}: it is not known which data is aborted", begin)
            paced(scanned.end)
