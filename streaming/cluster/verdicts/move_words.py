"""What is said of a committed offset that was moved, in words for people."""

from collections.abc import Sequence

from streaming.broker.protocol.group_json import MovedOffset
from streaming.common.formatting import TimeWords, format_count
from streaming.kafka.groups.offset_moves import MoveKind

_BY = {
    MoveKind.ADMIN: "by hand, as kafka-consumer-groups.sh --reset-offsets does: the group had no members, and the log does not say who it "
    "was",
    MoveKind.RESET: "from beyond the end of the log, as its consumers do by auto.offset.reset: records were cut off, or somebody had "
    "committed that",
    MoveKind.CONSUMER: "by one of its own consumers, further than they go back to repeat what they had not committed",
}


class MoveWords:
    """The sentences, as of ``times``."""

    def __init__(self, times: TimeWords) -> None:
        self._times = times

    def skipped(self, moves: Sequence[MovedOffset], *, read_to: int, members: bool) -> str:
        """Records were skipped, by moves one after the other.

        Args:
            read_to: the offset that is committed now, -1 where nothing sets it back.
            members: the group has some, and Kafka resets no offset of such a group.
        """
        since = "Once it is set back it reads them, and once more all that it has read since, up to offset"
        again = f". {since} {read_to}" if read_to > moves[-1].to_offset else ""
        return f"skipped: {self._moves(moves)}. Left unread: {_records(moves)}{again}{_stop_first(members=members)}"

    def rewound(self, moves: Sequence[MovedOffset], *, members: bool) -> str:
        """The group was set back. What lies between was read before, but for what was skipped meanwhile. ``members``: as in `skipped`."""
        return f"set back: {self._moves(moves)}. Between both: {_records(moves)}{_stop_first(members=members)}"

    @staticmethod
    def moved(*, forwards: bool) -> str:
        """The same, where nothing says how."""
        return "records were skipped, because its committed offset was moved" if forwards else "its committed offset was moved back"

    def _moves(self, moves: Sequence[MovedOffset]) -> str:
        last = moves[-1]
        more = f", the last of {len(moves)} such moves," if len(moves) > 1 else ""
        how = _BY.get(MoveKind(last.kind), "") if last.kind in {*MoveKind} else ""
        went = f"the committed offset went from {last.from_offset} to {last.to_offset} at {self._times.at(last.at_ms)}"
        return f"{went}{more} {how}".rstrip()


def _records(moves: Sequence[MovedOffset]) -> str:
    """How many records; an offset whose record was not counted may have had none."""
    records, offsets = sum(max(each.records, 0) for each in moves), sum(each.offsets for each in moves)
    return f"{'up to ' if offsets else ''}{format_count(records + offsets, 'record')}"


def _stop_first(*, members: bool) -> str:
    return ". Its consumers have to be stopped before an offset is reset" if members else ""
