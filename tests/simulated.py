"""What a broker does to its logs and its metadata, and the demo's simulator does not."""

import struct
from uuid import UUID

from streaming.simulator.log import Appendable, PartitionLog
from streaming.simulator.metadata_writer import frame, tagged
from streaming.simulator.segment_writer import ProducerTable


def write_part(log: PartitionLog, *batches: Appendable, size: int, leader_epoch: int = 0) -> None:
    """Let the first bytes of what an append of the same batches will write be seen, as a reader may see them meanwhile."""
    offset, data = log.log_end_offset, b""
    for batch in batches:
        for entry, part in batch.entries(offset, leader_epoch):
            data, offset = data + part, entry.last_offset + 1
    log.active.write(data[:size])


def truncate_fully(log: PartitionLog, offset: int, now: int = 0) -> None:
    """Drop everything and begin again at ``offset``, as a follower does whose leader no longer has what it would need."""
    gone, log.segments = log.segments, []
    log._set_aside(gone, now)
    log.log_start_offset = log.log_end_offset = log._snapshot_offset = offset
    log._write_leader_epochs([])
    log._producers = ProducerTable()
    log._add_segment(offset).open_indexes()


def remove_topic_record(topic_id: UUID) -> bytes:
    """A topic goes, with its partitions and configs."""
    return frame(9, 0) + topic_id.bytes + tagged([])


def broker_change_record(broker_id: int, broker_epoch: int, *, fenced: bool | None = None, stopping: bool = False) -> bytes:
    """What changed in the registration of a broker (a BrokerRegistrationChangeRecord)."""
    tags = [] if fenced is None else [(0, struct.pack(">b", 1 if fenced else -1))]
    if stopping:
        tags.append((1, struct.pack(">b", 1)))  # from version 1 on
    return frame(17, 1 if stopping else 0) + struct.pack(">iq", broker_id, broker_epoch) + tagged(tags)
