"""What the brokers whose log dirs are here know of their cluster, each by its own metadata log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from streaming.disk.logdirs import LogDir, Partition
from streaming.disk.metadata_log import MetadataLog
from streaming.errors import FormatError
from streaming.kafka.metadata import ClusterImage
from streaming.kafka.metadata_partitions import PartitionState

Report = Callable[[str], None]
"""Is told, in words with the file, what could not be read and was done without."""


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    """The cluster as each broker knows it, None where its metadata log cannot be read, and the ``newest`` of these images.

    ``told_ms``: when the log of the newest was last written to, -1 without one; a running broker does so twice a second.
    ``unreadable``: how many brokers have one that cannot be read; one of before KRaft has none.
    """

    images: Mapping[int, ClusterImage | None]
    newest: ClusterImage | None
    told_ms: int
    unreadable: int

    def state(self, partition: Partition) -> PartitionState | None:
        """What the newest image says of a replica's partition, None where nobody knows it."""
        if self.newest is None:
            return None
        topic_id = partition.topic_id or self.newest.topic_id(partition.topic)
        return None if topic_id is None else self.newest.partition(topic_id, partition.partition)


def read_metadata(log_dirs: Sequence[LogDir], report: Report) -> Metadata:
    """Read the metadata log of every broker that one of these log dirs belongs to."""
    images: dict[int, ClusterImage | None] = {}
    newest: ClusterImage | None = None
    told_ms, unreadable = -1, 0
    for broker in sorted({log_dir.broker for log_dir in log_dirs}):
        its_dirs = [log_dir for log_dir in log_dirs if log_dir.broker == broker]
        metadata_log = MetadataLog(its_dirs)
        try:
            images[broker] = image = metadata_log.advance(None)
            if newest is None or image.next_offset > newest.next_offset:
                newest, told_ms = image, metadata_log.modified_ms()
        except (OSError, FormatError) as error:
            images[broker] = None
            unreadable += not all(log_dir.zookeeper for log_dir in its_dirs)
            report(f"broker {broker}: the metadata log cannot be read: {error}")
        finally:
            metadata_log.restart()
    return Metadata(images, newest, told_ms, unreadable)
