"""What a start after a crash costs each log, and how much of it a power cut may take, by recovery points and segments.

The rule is that of `LogLoader.recoverLog` and `LogSegments.values` (the same in Kafka 3.9, 4.3 and 4.4). A start that finds no
``.kafka_cleanshutdown`` reads the segment that holds the recovery point, all of it, and every one after it: each batch, with its checksum.
A log without an entry in ``recovery-point-offset-checkpoint`` begins at 0 (`LogManager.loadLog`), so all of it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.rules.config_values import Configs, ValueSource

NOT_KNOWN = -1
"""In place of bytes: the recovery points cannot be read, or were not sent."""

NO_ENTRY = -1
"""In place of a recovery point: the checkpoint has no entry for the log. A recovery point below it is not known."""

THREADS = "num.recovery.threads.per.data.dir"

_KAFKA_4_0 = 22
"""The first metadata.version that a broker of Kafka 4.0 supports (`MetadataVersion.IBP_4_0_IV0`)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecoveryPoints:
    """Where each log is known to be on disk.

    ``offset``: the first one that is not, `NO_ENTRY`, or smaller if it is not known. ``position``: so many bytes of the segment that holds
    it lie below it, at least; 0 where that is not known.
    """

    offset: Longs
    position: Longs

    @property
    def known(self) -> Flags:
        """Whether a start would find what is known here."""
        known: Flags = self.offset >= NO_ENTRY
        return known

    @property
    def begin(self) -> Longs:
        """The offset from which on a start reads."""
        return np.maximum(self.offset, 0)


def on_no_disk_bytes(segments: LogSegments, points: RecoveryPoints, end: Longs, partition: Longs, count: int) -> Longs:
    """The most bytes of each partition that are on no disk of any replica, `NOT_KNOWN` where no replica's recovery point is known.

    Records below the largest recovery point are on one disk. Those above it are measured on the replica whose log is the longest:
    another one may lack records that are only there. Where that replica's segments do not begin at that offset, all of the segment counts
    that holds it. A replica that no agent observes may have more on its disk, so this is the most in any case.

    Args:
        partition: the number of each log's partition, less than ``count``.
    """
    safe = np.full(count, NOT_KNOWN, np.int64)
    np.maximum.at(safe, partition, np.where(points.known, np.minimum(points.begin, np.maximum(end, 0)), NOT_KNOWN))
    order = np.lexsort((points.begin, end, partition))
    last = order[np.append(partition[order][1:] != partition[order][:-1], True)] if len(order) else order
    longest = np.zeros(len(partition), np.bool_)
    longest[last] = True
    offset = safe[partition]
    position = np.where(offset == points.offset, points.position, 0)
    safest = RecoveryPoints(offset=np.maximum(offset, NO_ENTRY), position=position)
    above = not_fsynced_bytes(scanned_bytes(segments, safest), safest, end)
    found = np.full(count, NOT_KNOWN, np.int64)
    found[partition[longest]] = np.where(offset[longest] < 0, NOT_KNOWN, above[longest])
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogSegments:
    """Segments of several logs, one log after the other: ``base`` offsets and ``size`` in bytes.

    ``first``: the index of each log's first segment; each has at least one.
    """

    first: Longs
    base: Longs
    size: Longs

    @classmethod
    def of(cls, logs: Sequence[NDArray[np.void]]) -> Self:
        """Those of some logs, each of the type `streaming.common.rows.SEGMENTS`."""
        counts = np.array([len(each) for each in logs], np.int64)
        every = np.concatenate(logs)
        return cls(first=np.cumsum(counts) - counts, base=every["base_offset"], size=every["size"])

    def holding(self, offset: Longs) -> Longs:
        """The segment of each log that holds an offset: the last one that does not begin after it, or else the first."""
        if not len(self.first):
            return self.first
        counts = np.diff(np.append(self.first, len(self.base)))
        begun = np.add.reduceat((self.base <= np.repeat(offset, counts)).astype(np.int64), self.first)
        found: Longs = np.maximum(self.first + begun - 1, self.first)
        return found

    def bytes_from(self, segment: Longs) -> Longs:
        """The bytes of each log from one of its segments on."""
        before = np.concatenate([[0], np.cumsum(self.size)])
        end = np.append(self.first[1:], len(self.base))
        found: Longs = before[end] - before[segment]
        return found


def not_fsynced_bytes(scanned: Longs, points: RecoveryPoints, end: Longs) -> Longs:
    """The most bytes of each log that may be in the page cache alone, `NOT_KNOWN` where the recovery point is not known.

    Args:
        scanned: by `scanned_bytes`.
        end: the log end offsets, -1 where one is not known. A log whose recovery point is there is on disk as a whole.
    """
    above = np.where((end >= 0) & (points.begin >= end), 0, np.maximum(scanned - points.position, 0))
    found: Longs = np.where(scanned >= 0, above, NOT_KNOWN)
    return found


def scanned_bytes(segments: LogSegments, points: RecoveryPoints) -> Longs:
    """Bytes of each log that a start after a crash reads, `NOT_KNOWN` where the recovery point is not known."""
    found: Longs = np.where(points.known, segments.bytes_from(segments.holding(points.begin)), NOT_KNOWN)
    return found


def reading_seconds(size: int, rate: float) -> float:
    """How long a start takes to read so many bytes, by the bytes a second of a recovery that was seen; -1 if either is not known."""
    return size / rate if size >= 0 and rate > 0 else -1.0


def recovery_threads(configs: Configs, metadata_version: int) -> int:
    """How many threads a start has for each log dir (`LogManager.loadLogs`), -1 if that is not known. A log is read by one of them.

    The default is 2 since Kafka 4.0 (KIP-1030), and was 1 before (`ServerLogConfigs.NUM_RECOVERY_THREADS_PER_DATA_DIR_DEFAULT`). It does
    not count where something is set that cannot be read, such as ``${env:THREADS}``.

    Args:
        configs: of the broker.
        metadata_version: the highest one that the broker's binaries support, -1 if it is not known.
    """
    for each in configs.settings:
        if each.name == THREADS:
            return -1 if each.source is ValueSource.ASSUMED else int(each.value)
    if not configs.static_known or metadata_version < 0:
        return -1
    return 2 if metadata_version >= _KAFKA_4_0 else 1
