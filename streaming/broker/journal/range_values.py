"""Values that events of ranges have as bytes, and the part of a range from an offset on."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from streaming.common.event_row import Event
from streaming.common.rows import COORDINATOR, TRANSACTION_STEPS, pack_rows
from streaming.errors import FormatError
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry
from streaming.kafka.scan.sums import COUNTS, NO_ARRIVALS, first_offset_above, sums_from
from streaming.kafka.scan.transaction_steps import NO_STEPS, Steps, steps_from

log = logging.getLogger(__name__)

_Range = TypeVar("_Range", bound=Event)

_SUMMED = ("base_offset", "max_timestamp", *COUNTS)

_NOT_JUDGED: dict[str, Any] = {each.name: getattr(NO_ARRIVALS, each.name) for each in fields(NO_ARRIVALS)}
"""How late batches arrived that are published again is not known."""

NO_ENTRIES = pack_rows(pa.RecordBatch.from_pylist([], COORDINATOR))
"""The entries before the first byte of a log of ``__transaction_state``: there are none."""


def cut(row: _Range, offset: int) -> _Range | None:
    """The part of an append from ``offset`` on; None if the row does not carry its batches one by one."""
    if row.detail is None:
        return None
    try:
        sums = sums_from(row.detail, offset)
    except FormatError as error:
        _not_understood(row, error)
        return None
    # the first part may have counted the gap already: rather count one too few
    row = replace(row, sequence_gaps=0, **_NOT_JUDGED)
    if sums is not None:
        return replace(
            row, **{name: getattr(sums, name) for name in _SUMMED}, transactions=_steps_from(row, offset, row.bytes - sums.bytes)
        )
    values = ((name, getattr(row, name)) for name in _SUMMED)
    nothing: dict[str, Any] = {name: (0,) * len(value) if isinstance(value, tuple) else 0 for name, value in values}
    return replace(row, **{**nothing, "base_offset": offset, "max_timestamp": -1}, transactions=None)


def _not_understood(row: Event, error: FormatError) -> None:
    log.error(
        "batches of a range are not understood",
        extra={"log": str(row.log), "segment": row.segment, "position": row.start_position, "error": str(error)},
    )


def _steps_from(row: Event, offset: int, cut_bytes: int) -> bytes | None:
    if row.transactions is None:
        return None
    steps = steps_from(np.frombuffer(row.transactions, TRANSACTION_STEPS), offset, cut_bytes)
    return steps.tobytes() or None


def decode_steps(blob: bytes | None) -> Steps:
    """The steps in a column of an event."""
    return np.frombuffer(blob, TRANSACTION_STEPS) if blob else NO_STEPS


def encode_steps(steps: Steps) -> bytes | None:
    """The steps of a range as a column of its event."""
    return steps.tobytes() or None


def encode_ongoing(ongoing: Steps) -> bytes:
    """The open transactions at the offset where a log begins, goes on or ends, as a column of that event; b"" if there are none."""
    return ongoing.tobytes()


def encode_entries(entries: Sequence[CoordinatorEntry], redact: Callable[[str], str]) -> bytes | None:
    """The coordinator entries of a range of ``__transaction_state``, as a column of its event.

    Args:
        redact: returns the text that replaces a transactional id, because these entries leave the broker's host.
    """
    if not entries:
        return None
    entries = [replace(entry, transactional_id=redact(entry.transactional_id)) for entry in entries]
    columns = [pa.array([getattr(entry, field.name) for entry in entries], field.type) for field in COORDINATOR]
    return pack_rows(pa.RecordBatch.from_arrays(columns, schema=COORDINATOR))


def overwritten_from(row: Event, leader_epoch: int) -> int | None:
    """The first offset of an append in a later epoch than ``leader_epoch``; None if there is none, or if the batches are not known."""
    if row.detail is None:
        return None
    try:
        return first_offset_above(row.detail, leader_epoch)
    except FormatError as error:
        _not_understood(row, error)
        return None
