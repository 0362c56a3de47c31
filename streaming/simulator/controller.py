"""The controller's side of the broker: the metadata log and the files around it (`KafkaRaftClient`, `ReplicationControlManager`)."""

import json
from collections.abc import Sequence
from uuid import UUID

from streaming.kafka.formats import names
from streaming.simulator.batch_writer import encode
from streaming.simulator.file_writer import replace_file
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from streaming.simulator.metadata_writer import (
    METADATA_TOPIC_ID,
    UNASSIGNED_DIRECTORY,
    ConfigResource,
    Feature,
    Listener,
    ReplicaSet,
    begin_transaction_record,
    config_record,
    end_transaction_record,
    feature_level_record,
    leader_change_batch,
    metadata_batch,
    no_op_record,
    partition_change_record,
    partition_record,
    producer_ids_record,
    register_broker_record,
    register_controller_record,
    snapshot_footer_batch,
    snapshot_header_batch,
    topic_record,
    unfence_record,
)
from streaming.simulator.segment_writer import LogConfig

METADATA_TOPIC = "__cluster_metadata"

_EPOCH = 1
_PRODUCER_ID_BLOCK = 1000
_LEVELS = (
    ("metadata.version", 30),
    ("eligible.leader.replicas.version", 1),
    ("group.version", 1),
    ("share.version", 1),
    ("streams.version", 1),
    ("transaction.version", 2),
)
_SUPPORTED = (
    Feature("group.version", 0, 1),
    Feature("kraft.version", 0, 1),
    Feature("metadata.version", 7, 30),
    Feature("share.version", 0, 1),
    Feature("streams.version", 0, 1),
    Feature("transaction.version", 0, 2),
    Feature("eligible.leader.replicas.version", 0, 1),
)


class Controller:
    """The only controller of a cluster with one node, and the only writer of its metadata log.

    Args:
        home: the log dir that holds the metadata log.
        log_dirs: ids of all log dirs of the broker.
    """

    def __init__(self, home: LogDir, node_id: int, incarnation_id: UUID, log_dirs: Sequence[UUID], port: int, now: int) -> None:
        self._node_id = node_id
        self._next_producer_id = self._producer_id_limit = 0
        self._write_bootstrap(home, now)
        config = LogConfig(retention_ms=-1)
        self.log = PartitionLog(home.path / f"{METADATA_TOPIC}-0", METADATA_TOPIC, 0, METADATA_TOPIC_ID, config)
        replace_file(self.log.directory / names.QUORUM_STATE, _quorum_state(node_id))
        self.log.append(leader_change_batch(node_id, now), leader_epoch=_EPOCH)
        levels = [feature_level_record(name, level) for name, level in _LEVELS]
        cluster = config_record(ConfigResource.BROKER, "", "min.insync.replicas", "1")
        self._write([begin_transaction_record("Bootstrap records"), *levels, cluster, end_transaction_record()], now)
        controller = Listener("CONTROLLER", "127.0.0.1", port + 1)
        self._write([register_controller_record(node_id, incarnation_id, controller, _SUPPORTED)], now)
        self._incarnation_id, self._port = incarnation_id, port
        self.register(log_dirs, now)

    def register(self, log_dirs: Sequence[UUID], now: int) -> None:
        """The broker has started, and serves."""
        self.broker_epoch = self.log.log_end_offset
        broker = Listener("PLAINTEXT", "127.0.0.1", self._port)
        registration = register_broker_record(self._node_id, self._incarnation_id, self.broker_epoch, broker, _SUPPORTED, log_dirs)
        self._write([registration], now)
        self._write([unfence_record(self._node_id, self.broker_epoch)], now)

    def heartbeat(self, now: int) -> None:
        """Write the record that an idle controller writes every half second."""
        self._write([no_op_record()], now)

    def create_topic(self, name: str, topic_id: UUID, configs: Sequence[tuple[str, str]], directories: Sequence[UUID], now: int) -> None:
        """Register a topic with a partition for each of ``directories``, and then where the broker has put them."""
        values = [topic_record(name, topic_id)]
        values += [config_record(ConfigResource.TOPIC, name, key, value) for key, value in configs]
        values += [partition_record(self._replicas(number, topic_id)) for number in range(len(directories))]
        self._write(values, now)
        self._write([partition_change_record(n, topic_id, directories=[where]) for n, where in enumerate(directories)], now)

    def new_producer_id(self, now: int) -> int:
        """The next producer id; the broker takes them in blocks."""
        if self._next_producer_id == self._producer_id_limit:
            self._producer_id_limit += _PRODUCER_ID_BLOCK
            self._write([producer_ids_record(self._node_id, self.broker_epoch, self._producer_id_limit)], now)
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def _replicas(self, number: int, topic_id: UUID) -> ReplicaSet:
        alone = (self._node_id,)
        unassigned = (UNASSIGNED_DIRECTORY,)
        return ReplicaSet(partition=number, topic_id=topic_id, replicas=alone, isr=alone, leader=self._node_id, directories=unassigned)

    def _write(self, values: Sequence[bytes], now: int) -> None:
        self.log.append(metadata_batch(values, now), leader_epoch=_EPOCH)

    @staticmethod
    def _write_bootstrap(home: LogDir, now: int) -> None:
        levels = metadata_batch([feature_level_record(name, level) for name, level in _LEVELS], now)
        header, footer = encode(snapshot_header_batch(now), 0), encode(snapshot_footer_batch(now), 1 + len(_LEVELS))
        (home.path / names.BOOTSTRAP_SNAPSHOT).write_bytes(header + encode(levels, 1) + footer)


def _quorum_state(node_id: int) -> bytes:
    state = {
        "clusterId": "",
        "leaderId": node_id,
        "leaderEpoch": _EPOCH,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": node_id}],
        "data_version": 0,
    }
    return json.dumps(state, separators=(",", ":")).encode()
