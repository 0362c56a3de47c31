"""Finds the consumer groups that wait for an open transaction in ``__consumer_offsets``: it contains commits of their offsets.

The keys of its records name the groups. While it is open, none of these offsets is stable, and none of them expires.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streaming.broker.disk.calls import bytes_read
from streaming.broker.disk.locate import window
from streaming.broker.disk.replay import batches_between
from streaming.broker.disk.segment_files import Segment
from streaming.common.short_names import short_name
from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import OffsetCommitKey, read_offsets_key
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

MOST_GROUPS = 10
"""The most groups that are named; a transactional application mostly has one."""

READ_BYTES = 4 << 20
"""About how many bytes of the log are read for one transaction."""

_WINDOW_BYTES = 256 << 10
_END = 2**63 - 1


@dataclass(frozen=True, slots=True)
class PendingGroups:
    """The groups that wait, by their short names, in the order of their commits. ``more``: there may be others."""

    groups: tuple[str, ...]
    more: bool


def waiting_groups(segments: Sequence[Segment], producer_id: int, first_offset: int) -> PendingGroups:
    """The groups of a transaction that is open in a log of ``__consumer_offsets``. Damaged batches name no group.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    began, buffer, found, more = bytes_read(), window()[:_WINDOW_BYTES], dict[str, None](), False
    try:
        for batches, _ in batches_between(segments, first_offset, _END, buffer):
            for group in _groups(batches, buffer, producer_id):
                if group is None:
                    more = True
                else:
                    found[group] = None
            if len(found) > MOST_GROUPS or bytes_read() - began > READ_BYTES:
                return PendingGroups(tuple(found)[:MOST_GROUPS], True)
    except FormatError:  # a flaw of the log: the watcher publishes it when it reads the log
        more = True
    return PendingGroups(tuple(found), more)


def _groups(batches: Batches, buffer: Bytes, producer_id: int) -> Iterator[str | None]:
    """The group of each commit, None for a damaged batch."""
    own = (batches.headers["producer_id"] == producer_id) & ~batches.control
    for item in own.nonzero()[0].tolist():
        position = int(batches.positions[item])
        try:
            for record in read_entry_records(buffer.data[position : position + int(batches.size[item])]) or ():
                key = read_offsets_key(record.key or b"")
                if isinstance(key, OffsetCommitKey):
                    yield short_name(key.group)
        except FormatError:
            yield None
