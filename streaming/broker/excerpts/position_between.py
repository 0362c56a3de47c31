"""What lies between two positions of logs: excerpts to scan, and what a reader had, or would have had, and the logs have no more."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import Partition
from streaming.broker.excerpts.position_plan import OpenLog
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.broker.protocol.position_messages import GONE, SKIPPED, TRUNCATED, Missing
from streaming.common.log_positions import NOT_KNOWN, LogName, Position, Positions
from streaming.kafka.scan.walk import Bytes

Listed = Mapping[LogName, tuple[Partition, int]]
"""Logs with their log start offsets by their broker's checkpoint."""


def between(moves: list["Move"], there: Listed, most_bytes: int, absent: list[LogName]) -> Iterator[Excerpt | Missing]:
    """What lies between the positions of some logs, log by log, in the order of each.

    Args:
        most_bytes: excerpts are cut at multiples of it.
        absent: is filled with the names of those that are not there.

    Raises:
        OSError: a log cannot be read now.
    """
    buffer = window()
    for move in moves:
        opened = move.opened(there, buffer)
        if opened is None:
            absent.append(move.name)
            continue
        yield from move.missing(opened)
        if move.is_in(opened) and move.to is not None:
            yield from opened.excerpts(move.begin(opened), move.to, most_bytes, buffer)


@dataclass(frozen=True, slots=True)
class Move:
    """A log between two positions; None where it was, or is, in no position."""

    name: LogName
    before: Position | None
    to: Position | None

    @property
    def moved(self) -> bool:
        """Whether there is anything to say of it."""
        if self.before is None or self.to is None:
            return self.before is not self.to
        return self.to._replace(begin=NOT_KNOWN) != self.before._replace(begin=NOT_KNOWN)

    def opened(self, there: Listed, buffer: Bytes) -> OpenLog | None:
        """The log as it is now, None if it is not there. Raises OSError: it cannot be read now."""
        if self.name not in there:
            return None
        try:
            return OpenLog.open(*there[self.name], buffer)
        except FileNotFoundError:
            return None

    def is_in(self, opened: OpenLog) -> bool:
        """Whether the log is still the one to which the second position belongs."""
        return self.to is not None and opened.partition.topic_id == self.to.topic_id

    def begin(self, opened: OpenLog) -> int:
        """The first offset that is read."""
        assert self.to is not None
        return opened.resumed(self.before, self.to.begin).offset

    def missing(self, opened: OpenLog | None) -> Iterator[Missing]:
        """What is not there, by the log as it is now; None: it is gone."""
        before, to = self.before, self.to
        same = before is not None and to is not None and before.topic_id == to.topic_id
        if before is not None and not same:
            yield self._missing(GONE, None, before.topic_id, "deleted" if to is None else "made anew", bytes=0)
        if to is None:
            return
        begin = before.next_offset if before is not None and same else to.begin
        if opened is None or not self.is_in(opened):
            if begin < to.next_offset:
                yield self._hole(begin, to.next_offset, None)
            return
        resumed = opened.resumed(before, to.begin)
        if resumed.cut_off:
            reason = f"truncated: {resumed.cut_off} offsets"
            yield self._missing(TRUNCATED, opened, to.topic_id, reason, next_offset=begin - resumed.cut_off)
        if resumed.deleted:
            yield self._hole(resumed.offset - resumed.deleted, resumed.offset, opened)
        lost = max(resumed.offset, opened.end)
        if lost < to.next_offset:
            reason = f"truncated: {to.next_offset - lost} offsets"
            yield self._missing(SKIPPED, opened, to.topic_id, reason, base_offset=lost, next_offset=to.next_offset)

    def _hole(self, begin: int, end: int, opened: OpenLog | None) -> Missing:
        """Offsets that are gone. Their bytes are estimated by what is left of the log, and not known if nothing is."""
        count, size = (0, 0) if opened is None else (opened.end - opened.start, sum(each.size for each in opened.segments))
        estimate = (end - begin) * size // count if count > 0 else NOT_KNOWN
        reason = f"deleted: {end - begin} offsets" + ("" if estimate == NOT_KNOWN else "; their bytes are an estimate")
        topic_id = "" if self.to is None else self.to.topic_id
        return self._missing(SKIPPED, opened, topic_id, reason, base_offset=begin, next_offset=end, bytes=estimate)

    def _missing(self, kind: str, opened: OpenLog | None, topic_id: str, reason: str, **values: int) -> Missing:
        log_dir = "" if opened is None else str(opened.partition.log_dir.path)
        place = {"topic": self.name.topic, "partition": self.name.partition, "topic_id": topic_id, "log_dir": log_dir}
        return Missing(kind=kind, reason=reason, **place, **values)  # type: ignore[arg-type]


def moves_of(before: Positions, to: Positions) -> list["Move"]:
    """The logs whose positions differ."""
    found = (Move(name, before.get(name), to.get(name)) for name in sorted({*before, *to}))
    return [each for each in found if each.moved]
