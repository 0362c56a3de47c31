"""The broker that the documents' examples are about: what its log dirs hold, at one moment, the same at every run.

It runs, as its locks show, and does nothing more after `NOW`. Of each topic there is as much as an example needs: two transactions that
nobody will end, one that is at work, a group that they hold up, one that is about to lose data, partitions that keep more than their limit.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from streaming.kafka.formats import names
from streaming.simulator.batch_writer import Batch, Codec
from streaming.simulator.coordinators import (
    IdState,
    SimulatedMember,
    StoredTransaction,
    classic_group_record,
    consumer_group_records,
    offset_commit_record,
    partition_for,
    transaction_record,
)
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.metadata_writer import (
    METADATA_TOPIC_ID,
    ConfigResource,
    Feature,
    Listener,
    ReplicaSet,
    config_record,
    feature_level_record,
    leader_change_batch,
    metadata_batch,
    no_op_record,
    partition_record,
    register_broker_record,
    topic_record,
    unfence_record,
)
from streaming.simulator.segment_writer import LogConfig, replace_file
from tests.builders import CLUSTER_ID, abort, batch, commit
from tests.formats.dumped import columns

NOW = 1_795_169_180_000  # 2026-11-20T10:06:20Z
SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

LOG_DIRS = ("var/lib/kafka/data-1", "var/lib/kafka/data-2")
SERVER_PROPERTIES = "etc/kafka/server.properties"

_BROKER = 1
_EPOCH = 1
_COORDINATOR_PARTITIONS = 4
_COMPACT = (("cleanup.policy", "compact"),)
_FEATURES = (Feature("metadata.version", 7, 30), Feature("transaction.version", 0, 2), Feature("group.version", 0, 1))
_LEVELS = (("metadata.version", 30), ("group.version", 1), ("transaction.version", 2))


class ShownBroker:
    """The log dirs below ``root``, and the only writer of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._dirs = [LogDir(root / path, _BROKER, CLUSTER_ID, UUID(int=n)) for n, path in enumerate(LOG_DIRS, start=101)]
        self._topics: dict[str, UUID] = {}
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._metadata: list[bytes] = []
        self._open_metadata()
        self._fill()
        self._close()

    # --- what is there

    def _fill(self) -> None:
        for topic in ("__transaction_state", "__consumer_offsets"):
            self._topic(topic, _COORDINATOR_PARTITIONS, _COMPACT)
        self._payments()
        self._orders()
        self._clicks()
        self._shipments()
        self._kept_too_long()
        self._groups()

    def _payments(self) -> None:
        """Two open transactions: one of a producer whose coordinator knows of none, one of a producer that no coordinator knows."""
        first, second = self._topic("payments", 2, (("retention.ms", str(7 * DAY)),))
        began = NOW - 33 * MINUTE - 20 * SECOND
        for n in range(20):
            at = NOW - 10 * HOUR + n * 20 * MINUTE
            first.append(
                batch(14, timestamp=at, producer=9, sequence=14 * n, transactional=True), commit(9, epoch=0, timestamp=at + SECOND)
            )
            end = abort if n % 6 == 5 else commit
            second.append(
                batch(11, timestamp=at, producer=12, sequence=11 * n, transactional=True), end(12, epoch=0, timestamp=at + SECOND)
            )
        first.append(batch(1, timestamp=began))
        first.append(batch(12, timestamp=began, producer=9, sequence=280, transactional=True))
        second.append(batch(4, timestamp=began, producer=777_777, transactional=True))
        self._coordinate("transfers", 9, IdState.EMPTY, NOW - 40 * MINUTE)
        self._coordinate("payouts", 12, IdState.COMPLETE_COMMIT, NOW - 3 * HOUR)

    def _orders(self) -> None:
        """A transaction that is at work, and a group that reads."""
        first, second = self._topic("orders", 2, (("retention.ms", str(DAY)),))
        for n in range(60):
            first.append(batch(10, value_bytes=500, timestamp=NOW - 5 * HOUR + n * 3 * MINUTE, codec=Codec.ZSTD))
        first.append(batch(10, value_bytes=500, timestamp=NOW - 81 * MINUTE))
        second.append(batch(5, timestamp=NOW - HOUR))
        second.append(batch(3, timestamp=NOW - 12 * SECOND, producer=1, transactional=True))
        self._coordinate("checkout", 1, IdState.ONGOING, NOW - 12 * SECOND, (("orders", 1),))

    def _clicks(self) -> None:
        """A day of clicks, of which a group without members has not read the last 19 hours."""
        (log,) = self._topic("clicks", 1, (("retention.ms", str(DAY)), ("segment.bytes", str(1 << 20))), segment_bytes=1 << 20)
        for n in range(86):
            log.append(batch(400, value_bytes=700, timestamp=NOW - 21 * HOUR - 30 * MINUTE + n * 15 * MINUTE))

    def _shipments(self) -> None:
        (log,) = self._topic("shipments", 1)
        for n in range(20):
            end = abort if n % 4 == 3 else commit
            at = NOW - 2 * HOUR + n * MINUTE
            log.append(batch(5, timestamp=at, producer=3, sequence=5 * n, transactional=True), end(3, epoch=0, timestamp=at))
            if n == 15:
                log.roll()

    def _kept_too_long(self) -> None:
        """A partition for each of the commonest reasons why data outlives its limit."""
        hour = (("retention.ms", str(HOUR)),)
        (active,) = self._topic("sessions", 1, hour)
        for n in range(21):
            active.append(batch(5, timestamp=NOW - 200 * MINUTE + n * 10 * MINUTE - 30 * SECOND))
        (future,) = self._topic("sensors", 1, hour)
        future.append(batch(40, value_bytes=300, timestamp=NOW + 10 * MINUTE))
        future.roll()
        future.append(batch(5, timestamp=NOW - 2 * HOUR))
        (head,) = self._topic("backfill", 1, hour)
        for age in (30 * MINUTE, 3 * HOUR, 2 * HOUR):
            head.append(batch(30, value_bytes=200, timestamp=NOW - age))
            head.roll()
        head.append(batch(1, timestamp=NOW - MINUTE))
        (compact,) = self._topic("prices", 1, _COMPACT)
        compact.append(batch(50, timestamp=NOW - 24 * MINUTE, keys=[f"sku-{n}".encode() for n in range(50)]))

    def _groups(self) -> None:
        classic = {"billing": ("payments", ("billing-1", "billing-2")), "reports": ("clicks", ()), "audit": ("shipments", ())}
        for group, (topic, members) in classic.items():
            record = classic_group_record(group, 4, topic, [SimulatedMember(name, "app", (0,)) for name in members], NOW - 9 * HOUR)
            self._coordinator_log("__consumer_offsets", group).append(Batch(records=(record,)))
        members = [SimulatedMember(f"search-{n}", "app", (0,) if n == 0 else ()) for n in range(3)]
        records = consumer_group_records("search", 3, "orders", self._topics["orders"], members, NOW - 5 * HOUR)
        self._coordinator_log("__consumer_offsets", "search").append(Batch(records=tuple(records)))
        shipped = self._logs["shipments", 0].log_end_offset
        for group, topic, offset, ago in (
            ("billing", "payments", 301, 33 * MINUTE),
            ("reports", "clicks", 3_200, 9 * HOUR),
            ("search", "orders", 600, 20 * SECOND),
            ("audit", "shipments", shipped, 100 * MINUTE),
        ):
            commits = offset_commit_record(group, topic, 0, offset, NOW - ago, topic_id=self._topics[topic])
            self._coordinator_log("__consumer_offsets", group).append(Batch(records=(commits,)))

    # --- how it is written

    def _open_metadata(self) -> None:
        home = self._dirs[0].path
        self._metadata_log = PartitionLog(
            home / "__cluster_metadata-0", "__cluster_metadata", 0, METADATA_TOPIC_ID, LogConfig(retention_ms=-1)
        )
        voters = [{"voterId": _BROKER}]
        state = {"clusterId": "", "leaderId": _BROKER, "leaderEpoch": _EPOCH, "votedId": -1, "currentVoters": voters, "data_version": 0}
        replace_file(self._metadata_log.directory / names.QUORUM_STATE, json.dumps(state).encode())
        self._metadata_log.append(leader_change_batch(_BROKER, NOW - DAY), leader_epoch=_EPOCH)
        epoch = 1
        where = Listener("PLAINTEXT", "broker-1", 9092)
        directories = [each.directory_id for each in self._dirs]
        self._decide(
            *(feature_level_record(name, level) for name, level in _LEVELS),
            register_broker_record(_BROKER, UUID(int=7), epoch, where, _FEATURES, directories),
            unfence_record(_BROKER, epoch),
        )

    def _decide(self, *values: bytes, at: int = NOW - DAY) -> None:
        self._metadata_log.append(metadata_batch(values, at), leader_epoch=_EPOCH)

    def _topic(
        self,
        topic: str,
        partitions: int,
        configs: Sequence[tuple[str, str]] = (),
        *,
        segment_bytes: int = 1 << 30,
    ) -> list[PartitionLog]:
        topic_id = self._topics[topic] = UUID(int=1_000 + len(self._topics))
        config = LogConfig(segment_bytes=segment_bytes, index_bytes=480, compacted=configs == _COMPACT)
        values = [topic_record(topic, topic_id), *(config_record(ConfigResource.TOPIC, topic, key, value) for key, value in configs)]
        for number in range(partitions):
            home = self._dirs[number % len(self._dirs)]
            placed = ReplicaSet(
                partition=number, topic_id=topic_id, replicas=(_BROKER,), isr=(_BROKER,), leader=_BROKER, directories=(home.directory_id,)
            )
            values.append(partition_record(placed))
            self._logs[topic, number] = home.create(topic, number, topic_id, config)
        self._decide(*values)
        return [self._logs[topic, number] for number in range(partitions)]

    def _coordinator_log(self, topic: str, identity: str) -> PartitionLog:
        return self._logs[topic, partition_for(identity, _COORDINATOR_PARTITIONS)]

    def _coordinate(
        self, transactional_id: str, producer: int, state: IdState, at: int, partitions: tuple[tuple[str, int], ...] = ()
    ) -> None:
        of = StoredTransaction(
            transactional_id=transactional_id,
            producer_id=producer,
            epoch=0,
            timeout_ms=MINUTE,
            state=state,
            partitions=partitions,
            updated=at,
            started=at if partitions else -1,
        )
        self._coordinator_log("__transaction_state", transactional_id).append(Batch(records=(transaction_record(of),)))

    def stop(self) -> None:
        """Let go of its locks, as one that was killed."""
        for log_dir in self._dirs:
            log_dir.release()

    def _close(self) -> None:
        self._decide(no_op_record(), at=NOW)
        self._metadata_log.close()
        for log in self._logs.values():
            log.close()
        for log_dir in self._dirs:
            log_dir.write_high_watermarks()
            log_dir.write_log_starts()
            log_dir.write_recovery_points()
            log_dir.write_cleaner_offsets()
        properties = self.root / SERVER_PROPERTIES
        properties.parent.mkdir(parents=True)
        properties.write_text(f"node.id={_BROKER}\nlog.retention.hours=168\n")
        for path in self.root.rglob("*"):
            os.utime(path, (NOW / 1000, NOW / 1000))
        for path in self.root.rglob("*.log"):
            if not path.parent.name.startswith("__"):  # each was last written when its newest record was stamped: clocks are right here
                newest = int(columns(path.read_bytes()).max_timestamp.max(initial=0))
                os.utime(path, ns=(newest * 1_000_000, newest * 1_000_000))
