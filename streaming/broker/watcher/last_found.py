"""The values that were published of a log besides its appends, and which of them have to be published again."""

from dataclasses import dataclass, replace
from typing import Any

from streaming.broker.disk.log_inventory import LogInventory
from streaming.common.event_row import Event
from streaming.common.rows import TIME_UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastFound:
    """The values that were published of a log besides its appends, by the names of an event's columns, and their sources."""

    inventory: LogInventory
    remote: bool
    judges_expiry: bool
    log_start_offset: int
    local_log_start_offset: int
    start_after_crash: int
    high_watermark: int
    leader: int
    leader_epoch: int
    active_producers: int

    def event(self, at_cursor: Event, before: "LastFound | None", seen_at: int) -> Event | None:
        """The event that follows ``before``; None if nothing has changed but the size of the active segment.

        Args:
            seen_at: when this was looked at, Unix milliseconds.
        """
        columns = self._columns()
        same_list = before is not None and _lasting(self) == _lasting(before)
        if before is not None and same_list and columns == before._columns():
            return None
        return replace(at_cursor, **columns, seen_at=seen_at, segments=None if same_list else self.inventory.segments.tobytes())

    def _columns(self) -> dict[str, Any]:
        """The values that are published again when they change, besides the list of segments."""
        inventory = self.inventory
        return {
            "log_start_offset": self.log_start_offset,
            "local_log_start_offset": self.local_log_start_offset,
            "start_after_crash": self.start_after_crash,
            "oldest_timestamp": inventory.oldest_record_ms,
            "active_first_timestamp": inventory.active_first_ms,
            "active_created_ms": inventory.active_created_ms,
            "high_watermark": self.high_watermark,
            "active_producers": self.active_producers,
            "leader": self.leader,  # the fold needs it to decide whose ranges count, if another agent reads no metadata
            "leader_epoch": self.leader_epoch,
            "judges_expiry": self.judges_expiry,
        }


def _lasting(last: LastFound) -> tuple[object, ...]:
    """The part of the list that does not change with every append."""
    listed = last.inventory.segments
    return listed[:-1].tobytes(), int(listed["base_offset"][-1]), int(listed["largest_timestamp"][-1]) == TIME_UNKNOWN
