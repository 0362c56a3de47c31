"""An offset checkpoint at the root of a log dir, by partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streaming.broker.disk.logdirs import LogDir, Partition, read_offset_checkpoint
from streaming.common.catalog.catalog_tables import UNREADABLE


@dataclass(frozen=True, slots=True)
class OffsetCheckpoint:
    """``offsets`` by topic and partition; None if the file cannot be read or is not understood."""

    offsets: Mapping[tuple[str, int], int] | None

    @property
    def readable(self) -> bool:
        """Whether the file was understood, or is not written yet."""
        return self.offsets is not None

    def of(self, partition: Partition) -> int:
        """The offset of a partition, -1 if there is none, `UNREADABLE` if the file cannot be read or is not understood."""
        return UNREADABLE if self.offsets is None else self.offsets.get((partition.topic, partition.partition), -1)


NOTHING_WRITTEN = OffsetCheckpoint(MappingProxyType({}))
"""The checkpoint of a log dir whose broker has not written one yet."""


def load_offset_checkpoint(log_dir: LogDir, name: str) -> OffsetCheckpoint:
    """Read the checkpoint ``name`` of a log dir, as it is now."""
    entries = read_offset_checkpoint(log_dir, name)
    return OffsetCheckpoint(None if entries is None else {(entry.topic, entry.partition): entry.offset for entry in entries})
