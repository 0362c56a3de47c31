"""A broker with one coordinator and a topic that was last appended to long ago, for what is said of who uses topics."""

import os
from pathlib import Path
from uuid import UUID

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.listing_json import TopicPage, TopicRow
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import offset_commit_record
from streaming.simulator.log import clean
from streaming.simulator.metadata_writer import ReplicaSet, partition_record, topic_record
from streaming.terminal.offline.everything import read_topics
from tests.builders import NOW, batch, delete, log_dir, partition
from tests.elections import MetadataCopy
from tests.file_times import written_at

DAY = 86_400_000
LONG_AGO = NOW - 40 * DAY


class World:
    """A broker with one coordinator, and a topic that was appended to long ago."""

    def __init__(self, path: Path, partitions: int = 1, *, committed: bool = True) -> None:
        self.disk, self.written = log_dir(path), False
        self.coordinator = partition(self.disk, "__consumer_offsets", topic_id=7, segment_bytes=400)
        self.orders = partition(self.disk, "orders", topic_id=8)
        self.metadata = MetadataCopy(self.disk.path)
        self.metadata.write((topic_of("__consumer_offsets", 7, 1) if committed else ()) + topic_of("orders", 8, partitions), NOW - 60 * DAY)
        if not committed:
            self.coordinator.remove()
        self.append(LONG_AGO)

    def append(self, at: int) -> None:
        self.orders.append(batch(3, timestamp=at))
        written_at(self.orders, at)

    def make(self, at: int, *, base_offset: int = 0) -> None:
        """The topic was made at that time, and nobody has appended; with a base offset all was deleted then."""
        delete(self.disk, self.orders).remove()
        self.orders = partition(self.disk, "orders", topic_id=8, base_offset=base_offset)
        for path in self.orders.directory.iterdir():
            os.utime(path, (at / 1000, at / 1000))

    def commit(self, at: int, *, group: str = "billing", gone: bool = False) -> None:
        record = offset_commit_record(group, "orders", 0, 1, at)
        self.coordinator.append(Batch(records=(Record(record.key, None, at) if gone else record,)))

    def compact(self) -> None:
        self.coordinator.roll()
        clean(self.coordinator, (), NOW)

    def empty(self) -> None:
        """The cleaner takes whole batches away of whoever is no idempotent producer, as a coordinator."""
        for segment in self.coordinator.segments:
            segment.path("log").write_bytes(b"")

    def copied(self, *, held: bool = False) -> None:
        """All was written 35 days ago at the latest, and nobody holds its locks, or who holds them writes nothing."""
        if not held:
            self.disk.release()
        self.disk.write_high_watermarks()
        self.disk.write_log_starts()
        for path in self.disk.path.rglob("*"):
            at = min(path.stat().st_mtime, (NOW - 35 * DAY) / 1000)
            os.utime(path, (at, at))
        self.written = True

    def page(self, query: str = "", settings: Settings = Settings()) -> TopicPage:  # noqa: B008 - read only
        if not self.written:
            self.disk.write_high_watermarks()
            self.disk.write_log_starts()
        return read_topics(open_log_dirs([self.disk.path]), (), settings, NOW).topics(f"internal=false&{query}")

    def row(self, query: str = "", settings: Settings = Settings()) -> TopicRow:  # noqa: B008 - read only
        (row,) = self.page(query, settings).rows
        return row


def topic_of(name: str, topic_id: int, partitions: int) -> tuple[bytes, ...]:
    replicas = {"topic_id": UUID(int=topic_id), "replicas": (1,), "isr": (1,), "leader": 1, "leader_epoch": 0}
    sets = (ReplicaSet(partition=number, directories=(UUID(int=5),), **replicas) for number in range(partitions))  # type: ignore[arg-type]
    return topic_record(name, UUID(int=topic_id)), *map(partition_record, sets)
