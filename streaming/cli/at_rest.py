"""The logs of some log dirs as they lie there, one replica speaking for each partition: what the offline commands work on."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.disk.contents import HIGH_WATERMARK_CHECKPOINT
from streaming.disk.inventory import Inventory, LogInventory
from streaming.disk.logdirs import LogDir, Partition, list_partitions, read_offset_checkpoint
from streaming.disk.metadata_log import MetadataLog
from streaming.disk.segments import list_segments, read_leader_epochs
from streaming.errors import FormatError
from streaming.kafka.metadata import ClusterImage
from streaming.kafka.metadata_partitions import PartitionState
from streaming.kafka.names import METADATA_TOPIC, DirState
from streaming.rules.leaders import LEADER_UNKNOWN, Replicas, assign_roles
from streaming.rules.offsets import Copies, Longs, Sizes, Undecided, high_watermarks, stable_offsets
from streaming.watcher.bootstrap import past_at

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogAtRest:
    """One replica. ``state`` is its partition's by the newest metadata, None where nobody knows it; ``high_watermark`` is an estimate."""

    inventory: LogInventory
    state: PartitionState | None
    leads: bool
    high_watermark: int

    @property
    def partition(self) -> Partition:
        """Where it lies."""
        return self.inventory.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class AtRest:
    """All that lies there. ``logs`` speak for their partitions, ``others`` are replicas besides. ``images`` are by broker, None where its
    metadata log cannot be read; ``unreadable`` counts logs and log dirs that could not be looked at, each told in the log."""

    logs: tuple[LogAtRest, ...]
    others: tuple[LogAtRest, ...]
    images: dict[int, ClusterImage | None]
    unreadable: int


def look_at(log_dirs: Sequence[LogDir], topic: str | None) -> AtRest:
    """Look at all logs, or at those of one topic."""
    images = {broker: _image(broker, log_dirs) for broker in sorted({log_dir.broker for log_dir in log_dirs})}
    inventory, unreadable = Inventory(thorough=True), 0
    found: list[LogInventory] = []
    checkpoints: dict[tuple[LogDir, str, int], int] = {}
    for log_dir in log_dirs:
        try:
            partitions = list_partitions(log_dir)
        except OSError as error:
            unreadable += 1
            log.error("log dir cannot be read", extra={"log_dir": str(log_dir.path), "error": str(error)})
            continue
        for entry in read_offset_checkpoint(log_dir, HIGH_WATERMARK_CHECKPOINT):
            checkpoints[log_dir, entry.topic, entry.partition] = entry.offset
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
    written = np.array([checkpoints.get((each.partition.log_dir, each.partition.topic, each.partition.partition), -1) for each in found])
    logs, others = _roles(found, images, written.astype(np.int64))
    return AtRest(logs=logs, others=others, images=images, unreadable=unreadable)


def _image(broker: int, log_dirs: Sequence[LogDir]) -> ClusterImage | None:
    try:
        return MetadataLog([log_dir for log_dir in log_dirs if log_dir.broker == broker]).advance(None)
    except (OSError, FormatError) as error:
        log.warning(
            "the metadata log cannot be read: leaders and configurations are not known", extra={"broker": broker, "error": str(error)}
        )
        return None


def _roles(
    found: Sequence[LogInventory], images: dict[int, ClusterImage | None], written: Longs
) -> tuple[tuple[LogAtRest, ...], tuple[LogAtRest, ...]]:
    """Which replicas speak, and where the high watermarks are."""
    numbers: dict[tuple[str, int], int] = {}
    keys = [((each.partition.topic_id or each.partition.topic), each.partition.partition) for each in found]
    partition = _longs([numbers.setdefault(key, len(numbers)) for key in keys])
    broker = _longs([each.partition.log_dir.broker for each in found])
    own = [_state(images[each.partition.log_dir.broker], each.partition) for each in found]
    newest: dict[tuple[str, int], PartitionState] = {}
    for key, state in zip(keys, own, strict=True):
        if state is not None and (key not in newest or newest[key].leader_epoch < state.leader_epoch):
            newest[key] = state
    states = [newest.get(key) for key in keys]
    end_offset = _longs([each.end_offset for each in found])
    silent = np.zeros(len(found), np.bool_)
    roles = assign_roles(
        Replicas(
            partition=partition,
            broker=broker,
            leader=_longs([LEADER_UNKNOWN if state is None else state.leader for state in own]),
            leader_epoch=_longs([-1 if state is None else state.leader_epoch for state in own]),
            log_epoch=_longs([_last_epoch(each.partition) for each in found]),
            end_offset=end_offset,
            silent=silent,
        )
    )
    copies = Copies(
        partition=partition,
        broker=broker,
        log_start=_longs([each.log_start_offset() for each in found]),
        end_offset=end_offset,
        checkpoint=written,
        leads=roles.leads,
        in_sync=np.array([state is not None and at in state.isr for state, at in zip(states, broker, strict=True)], np.bool_),
        isr=_longs([-1 if state is None else len(state.isr) for state in states]),
        silent=silent,
    )
    watermarks = high_watermarks(copies).tolist()
    logs = [
        LogAtRest(inventory=each, state=state, leads=bool(leads), high_watermark=watermark)
        for each, state, leads, watermark in zip(found, states, roles.leads, watermarks, strict=True)
    ]
    return (
        tuple(each for each, speaks in zip(logs, roles.speaks, strict=True) if speaks),
        tuple(each for each, speaks in zip(logs, roles.speaks, strict=True) if not speaks),
    )


def _state(image: ClusterImage | None, partition: Partition) -> PartitionState | None:
    if image is None or partition.topic == METADATA_TOPIC:
        return None
    topic_id = partition.topic_id or image.topic_id(partition.topic)
    return None if topic_id is None else image.partition(topic_id, partition.partition)


def _last_epoch(partition: Partition) -> int:
    epochs = read_leader_epochs(partition.path)
    return epochs[-1].epoch if epochs else -1


def _longs(values: Sequence[int]) -> Longs:
    return np.array(values, np.int64)


def last_stable_offset(at_rest: LogAtRest) -> int:
    """The last stable offset of a log, found in its producer snapshots and what follows; the high watermark where that cannot be told."""
    seen, high_watermark = at_rest.inventory, at_rest.high_watermark
    try:
        past = past_at(at_rest.partition.path, list_segments(at_rest.partition.path), high_watermark, producers_limit=None)
    except (OSError, FormatError) as error:
        log.warning("transactions of a log cannot be told", extra={"path": str(at_rest.partition.path), "error": str(error)})
        return high_watermark
    for doubt in past.doubts:
        log.warning("what a log's files tell of its transactions is incomplete", extra={"error": doubt})
    transactions = past.opened
    one, none = _longs([0]), np.zeros(1, np.bool_)
    copies = Copies(
        partition=one,
        broker=one,
        log_start=_longs([seen.log_start_offset()]),
        end_offset=_longs([seen.end_offset]),
        checkpoint=_longs([high_watermark]),
        leads=none,
        in_sync=none,
        isr=_longs([-1]),
        silent=none,
    )
    undecided = Undecided(
        replica=np.zeros(len(transactions), np.int64),
        first_offset=transactions["first_offset"].astype(np.int64),
        marker_offset=transactions["marker_offset"].astype(np.int64),
        bytes_at=transactions["bytes_at"].astype(np.int64),
    )
    unknown = _longs([-1])
    stable = stable_offsets(copies, _longs([high_watermark]), undecided, Sizes(appended=unknown, log=unknown))
    return int(stable.last_stable_offset[0])
