"""Cut a range that is published again at exactly the offset up to which it has been counted."""

from dataclasses import fields, replace
from typing import Any

from streaming.kafka.detail import sums_from
from streaming.kafka.sums import Sums
from streaming.rows import EventRow

_SUMMED = tuple(field.name for field in fields(Sums) if field.name not in ("leader_epoch", "next_offset"))


def cut(row: EventRow, offset: int) -> EventRow | None:
    """The part of an append from ``offset`` on; None if the row does not carry its batches one by one."""
    if row.detail is None:
        return None
    sums = sums_from(row.detail, offset)
    if sums is not None:
        return replace(row, **{name: getattr(sums, name) for name in _SUMMED})
    values = ((name, getattr(row, name)) for name in _SUMMED)
    nothing: dict[str, Any] = {name: (0,) * len(value) if isinstance(value, tuple) else 0 for name, value in values}
    return replace(row, **{**nothing, "base_offset": offset, "max_timestamp": -1})
