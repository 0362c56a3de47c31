"""Appends to one of three logs, as a journal takes them."""

from dataclasses import replace

from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind

LOGS = [LogKey(1, "t", number, "id") for number in range(3)]


def appended(start: int, size: int, *, number: int = 0, **more: object) -> Event:
    """An append of ``size`` bytes at ``start``, a record a byte, so that offsets are positions."""
    log = LOGS[number]
    event = Event(
        kind=Kind.APPENDED,
        broker=log.broker,
        log_dir="/d",
        topic=log.topic,
        partition=log.partition,
        topic_id=log.topic_id,
        segment=0,
        start_position=start,
        end_position=start + size,
        base_offset=start,
        next_offset=start + size,
        log_epoch=1,
        leads=1,
        bytes=size,
        batches=1,
        records=size,
        max_timestamp=start,
        codec_bytes=(size, 0, 0, 0, 0),
    )
    return replace(event, **more)  # type: ignore[arg-type]
