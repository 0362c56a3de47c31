"""The logs of some log dirs with all their segments, one replica speaking for each partition."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.disk.inventory import Inventory, LogInventory
from streaming.disk.logdirs import LogDir, Partition, list_partitions
from streaming.disk.segments import list_segments
from streaming.errors import FormatError
from streaming.kafka.metadata_partitions import PartitionState
from streaming.kafka.names import HIGH_WATERMARK_CHECKPOINT, METADATA_TOPIC, DirState
from streaming.rest.metadata import Metadata, read_metadata
from streaming.rest.replicas import (
    NOTHING_STATIC,
    Checkpoints,
    Replica,
    Static,
    copies_of,
    high_watermarks_of,
    is_fenced,
    last_epoch,
    leader_may_stand,
    metadata_version_of_leader,
    with_roles,
)
from streaming.rules.offsets import Sizes, Undecided, stable_offsets
from streaming.watcher.bootstrap import past_at

log = logging.getLogger(__name__)

_NOT_KNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogAtRest:
    """One replica; ``high_watermark`` is an estimate, -1 where nobody knows it."""

    inventory: LogInventory
    replica: Replica
    high_watermark: int

    @property
    def partition(self) -> Partition:
        """Where it lies."""
        return self.replica.partition

    @property
    def state(self) -> PartitionState | None:
        """Its partition's by the newest metadata, None where nobody knows it."""
        return self.replica.state


@dataclass(frozen=True, slots=True, kw_only=True)
class AtRest:
    """All that lies there. ``logs`` speak for their partitions, ``others`` are replicas besides.

    ``unreadable`` counts logs and log dirs that could not be looked at, each told in the log.
    """

    logs: tuple[LogAtRest, ...]
    others: tuple[LogAtRest, ...]
    metadata: Metadata
    unreadable: int


def look_at(log_dirs: Sequence[LogDir], topic: str | None, static: Static = NOTHING_STATIC) -> AtRest:
    """Look at all logs, or at those of one topic."""
    metadata = read_metadata(log_dirs, log.warning)
    inventory, unreadable = Inventory(thorough=True), 0
    found: list[LogInventory] = []
    for log_dir in log_dirs:
        try:
            partitions = list_partitions(log_dir)
        except OSError as error:
            unreadable += 1
            log.error("log dir cannot be read", extra={"log_dir": str(log_dir.path), "error": str(error)})
            continue
        for partition in partitions:
            if partition.state is not DirState.LIVE or topic not in (None, partition.topic):
                continue
            try:
                seen = inventory.look(partition)
            except OSError as error:
                if not partition.path.is_dir():  # deleted or moved away since it was listed
                    continue
                unreadable += 1
                log.error("log cannot be read", extra={"path": str(partition.path), "error": str(error)})
                continue
            if seen is not None:
                found.append(seen)
    marks = Checkpoints(log_dirs, HIGH_WATERMARK_CHECKPOINT)
    replicas = with_roles([_replica(seen, metadata, marks, static) for seen in found])
    watermarks = high_watermarks_of(replicas, assume_replicated=False).tolist()
    logs = [
        # no file that is read here tells how far the quorum has committed
        LogAtRest(inventory=seen, replica=replica, high_watermark=_NOT_KNOWN if seen.partition.topic == METADATA_TOPIC else watermark)
        for seen, replica, watermark in zip(found, replicas, watermarks, strict=True)
    ]
    return AtRest(
        logs=tuple(each for each in logs if each.replica.speaks),
        others=tuple(each for each in logs if not each.replica.speaks),
        metadata=metadata,
        unreadable=unreadable,
    )


def _replica(seen: LogInventory, metadata: Metadata, marks: Checkpoints, static: Static) -> Replica:
    partition = seen.partition
    return Replica(
        partition=partition,
        log_start=seen.log_start_offset(),
        end_offset=seen.end_offset,
        log_epoch=last_epoch(partition, seen.end_offset),
        checkpoint=marks.of(partition),
        state=metadata.state(partition),
        leader_metadata_version=metadata_version_of_leader(metadata.newest, metadata.state(partition)),
        stands=leader_may_stand(metadata.newest, partition.topic, metadata.state(partition), static),
        fenced=is_fenced(metadata.newest, partition.log_dir.broker),
    )


def last_stable_offset(at_rest: LogAtRest) -> int:
    """The last stable offset of a log, found in its producer snapshots and what follows; the high watermark where that cannot be told."""
    high_watermark, path = at_rest.high_watermark, at_rest.partition.path
    if high_watermark < 0:
        return _NOT_KNOWN
    try:
        past = past_at(path, list_segments(path), high_watermark, producers_limit=None)
    except (OSError, FormatError) as error:
        log.warning("transactions of a log cannot be told", extra={"path": str(path), "error": str(error)})
        return high_watermark
    for doubt in past.doubts:
        log.warning("what a log's files tell of its transactions is incomplete", extra={"error": doubt})
    transactions = past.opened
    undecided = Undecided(
        replica=np.zeros(len(transactions), np.int64),
        first_offset=transactions["first_offset"].astype(np.int64),
        marker_offset=transactions["marker_offset"].astype(np.int64),
        bytes_at=transactions["bytes_at"].astype(np.int64),
    )
    unknown = np.array([-1], np.int64)
    mark = np.array([high_watermark], np.int64)
    stable = stable_offsets(copies_of([at_rest.replica]), mark, undecided, Sizes(appended=unknown, log=unknown))
    return int(stable.last_stable_offset[0])
