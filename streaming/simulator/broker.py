"""A broker that no client connects to: it does to its log dirs what a busy one would do.

Everything it does follows from its seed and the time it is given; only `run` looks at a clock by itself and waits.
"""

import heapq
import itertools
import json
import random
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from streaming.kafka.formats import names
from streaming.simulator.batch_writer import encode
from streaming.simulator.coordinators import Coordinator, GroupCoordinator
from streaming.simulator.log import LogDir, PartitionLog
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
from streaming.simulator.segment_writer import LogConfig, replace_file, uuid_text
from streaming.simulator.workload import (
    AHEAD,
    CONSUMER_OFFSETS,
    LATE,
    READING,
    STUCK,
    TOPICS,
    TRAFFIC,
    TRANSACTION_STATE,
    Actor,
    Reading,
    SimulatedTopic,
    Traffic,
    Writer,
    late_producer,
    plain_producer,
    producer_ahead,
    stuck_producer,
    transactional_producer,
)

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

COMMIT_MS = 5_000

NODE_ID = 1
DEFAULT_RATE = 1_500_000

HISTORY_MS = 30 * 60_000
"""A history that is longer than the default limits of what is wrong, as with transactions that are stuck for 20 minutes."""

HEARTBEAT_MS = 500
HIGH_WATERMARK_MS = 5_000
CHECKPOINT_MS = 60_000
RETENTION_CHECK_MS = 5_000
CLEANER_MS = 15_000

_SHORTEST_WAIT_SECONDS = 0.02
_LONGEST_PAUSE_MS = 5_000
_WRONG_AFTER_MS = 5_000
_AHEAD_AFTER_MS = 5 * 60_000
_PORT = 9092


class SimulatedBroker:
    """One broker (node 1, its own controller) with its log dirs below ``directory``, all made from scratch.

    Args:
        seed: the same seed and start make the same bytes.
        clock: Unix milliseconds; asked once here for the start, and by `run`.
        history_ms: for how long it was there before. The events of that time are written at once, with the times of then: there
            was little traffic, and some things went wrong.
        rate_bytes_per_second: bytes of data batches that all partitions together grow by.

    Raises:
        LogDirError: a log dir exists and is not empty.
    """

    def __init__(
        self,
        directory: Path,
        *,
        seed: int,
        clock: Callable[[], int],
        history_ms: int = 0,
        log_dirs: int = 2,
        rate_bytes_per_second: float = DEFAULT_RATE,
    ) -> None:
        self._busy_from = clock()
        start = self._busy_from - history_ms
        self._clock = clock
        self._seed = seed
        self._rate = rate_bytes_per_second
        self._rng = self._random("broker")
        self.cluster_id = uuid_text(self._uuid())
        written = datetime.fromtimestamp(start // 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
        self._dirs = [LogDir(directory / f"d{n}", NODE_ID, self.cluster_id, self._uuid(), written) for n in range(log_dirs)]
        (directory / "server.properties").write_text(self._server_properties())
        identities = [log_dir.directory_id for log_dir in self._dirs]
        self._controller = Controller(self._dirs[0], NODE_ID, self._uuid(), identities, _PORT, start)
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        placement = itertools.cycle(self._dirs)
        for topic in (TRANSACTION_STATE, CONSUMER_OFFSETS, *TOPICS):
            self._create_topic(topic, placement, start)
        self._coordinator = Coordinator(self._logs_of(TRANSACTION_STATE.name), self._logs, self._controller.new_producer_id)
        self._groups = GroupCoordinator(self._logs_of(CONSUMER_OFFSETS.name))
        self._due: list[tuple[int, int, Actor]] = []
        for actor in self._actors(start):
            self._due.append((next(actor), len(self._due), actor))
        heapq.heapify(self._due)
        if history_ms:
            self.step(self._busy_from)
            for log in (*self._logs.values(), self._controller.log):
                log.date_files(self._busy_from)

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """Its log dirs; the first holds the metadata log."""
        return tuple(log_dir.path for log_dir in self._dirs)

    @property
    def next_due_ms(self) -> int:
        """When there is something to do again."""
        return self._due[0][0]

    def step(self, now_ms: int) -> None:
        """Do all that is due by now, each thing at its own time: how often this is called makes no difference."""
        while self._due[0][0] <= now_ms:
            due, order, actor = heapq.heappop(self._due)
            following = _advance(actor, due)
            if following is not None:
                heapq.heappush(self._due, (following, order, actor))

    def run(self, stop: threading.Event) -> None:
        """Keep pace with the clock until ``stop`` is set. A long pause (a machine asleep) is not made up for."""
        while not stop.is_set():
            now = self._clock()
            behind = now - self.next_due_ms
            if behind > _LONGEST_PAUSE_MS:
                self._due = [(due + behind, order, actor) for due, order, actor in self._due]
            self.step(now)
            stop.wait(max(_SHORTEST_WAIT_SECONDS, (self.next_due_ms - self._clock()) / 1000))

    def close(self) -> None:
        """Shut down cleanly."""
        for log in (*self._logs.values(), self._controller.log):
            log.shut_down()
        for log_dir in self._dirs:
            log_dir.write_high_watermarks()
            log_dir.write_recovery_points(clean=True)
            log_dir.write_log_starts()
            clean = {"version": 0, "brokerEpoch": self._controller.broker_epoch}
            (log_dir.path / ".kafka_cleanshutdown").write_text(json.dumps(clean, separators=(",", ":")))
            log_dir.release()

    def _create_topic(self, topic: SimulatedTopic, placement: "itertools.cycle[LogDir]", now: int) -> None:
        topic_id = self._uuid()
        homes = [next(placement) for _ in range(topic.partitions)]
        self._controller.create_topic(topic.name, topic_id, topic.configs, [home.directory_id for home in homes], now)
        for number, home in enumerate(homes):
            self._logs[topic.name, number] = home.create(topic.name, number, topic_id, topic.log_config())

    def _actors(self, start: int) -> list[Actor]:
        producers = [self._producer(traffic, start) for traffic in TRAFFIC]
        readers = [self._reader(reading, start + COMMIT_MS * place // len(READING)) for place, reading in enumerate(READING)]
        goes_wrong = start + _WRONG_AFTER_MS
        return [
            *producers,
            *readers,
            stuck_producer(self._writer(STUCK), self._coordinator, goes_wrong),
            late_producer(self._writer(LATE), self._coordinator, goes_wrong),
            producer_ahead(self._writer(AHEAD), start + _AHEAD_AFTER_MS),
            _every(HEARTBEAT_MS, start, self._controller.heartbeat),
            _every(HIGH_WATERMARK_MS, start, self._write_high_watermarks),
            _every(CHECKPOINT_MS, start, self._write_checkpoints),
            _every(RETENTION_CHECK_MS, start, self._check_retention),
            _every(CLEANER_MS, start, self._clean),
        ]

    def _producer(self, traffic: Traffic, start: int) -> Actor:
        writer = self._writer(traffic)
        first_due = start + self._rng.randrange(200)
        if traffic.transactional_id:
            sources = self._logs_of(traffic.group.topic) if traffic.group else []
            return transactional_producer(writer, self._coordinator, self._groups, sources, first_due)
        return plain_producer(writer, self._controller.new_producer_id(start) if traffic.idempotent else -1, first_due)

    def _reader(self, reading: Reading, first_due: int) -> Actor:
        return consumer_group(reading, self._logs_of(reading.group.topic), self._groups, first_due)

    def _writer(self, traffic: Traffic) -> Writer:
        topic = next(topic for topic in TOPICS if topic.name == traffic.topic)
        rng = self._random(f"{traffic.topic} {traffic.transactional_id}")
        return Writer(
            traffic,
            self._logs_of(topic.name),
            self._rate * traffic.share,
            rng,
            log_append_time=topic.log_append_time(),
            busy_from=self._busy_from,
        )

    def _logs_of(self, topic: str) -> list[PartitionLog]:
        return [log for (name, _), log in self._logs.items() if name == topic]

    def _write_high_watermarks(self, now: int) -> None:
        for log_dir in self._dirs:
            log_dir.write_high_watermarks()

    def _write_checkpoints(self, now: int) -> None:
        for log_dir in self._dirs:
            log_dir.write_recovery_points()
            log_dir.write_log_starts()

    def _check_retention(self, now: int) -> None:
        for log in self._logs.values():
            log.delete_old_segments(now)
            log.unlink_deleted(now)

    def _clean(self, now: int) -> None:
        self._coordinator.compact(now)
        for log_dir in self._dirs:
            log_dir.write_cleaner_offsets()

    def _server_properties(self) -> str:
        options = {
            "process.roles": "broker,controller",
            "node.id": NODE_ID,
            "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{_PORT + 1}",
            "listeners": f"PLAINTEXT://127.0.0.1:{_PORT},CONTROLLER://127.0.0.1:{_PORT + 1}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{_PORT}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": ",".join(str(path) for path in self.log_dirs),
            "log.retention.check.interval.ms": RETENTION_CHECK_MS,
            "offsets.topic.num.partitions": CONSUMER_OFFSETS.partitions,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": TRANSACTION_STATE.partitions,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.max.timeout.ms": 7 * 24 * 3_600_000,
            "transaction.partition.verification.enable": "false",
        }
        return "".join(f"{name}={value}\n" for name, value in options.items())

    def _random(self, name: str) -> random.Random:
        return random.Random(f"{self._seed} {name}")

    def _uuid(self) -> UUID:
        while True:
            identity = UUID(int=self._rng.getrandbits(128), version=4)
            # Kafka draws again, because a text beginning with a dash would be taken for an option of its tools.
            if not uuid_text(identity).startswith("-"):
                return identity


class Controller:
    """The only controller of a cluster with one node, and the only writer of its metadata log.

    The controller's side of the broker: the metadata log and the files around it (`KafkaRaftClient`, `ReplicationControlManager`).

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


def _advance(actor: Actor, now: int) -> int | None:
    try:
        return actor.send(now)
    except StopIteration:
        return None


def _every(period: int, start: int, action: Callable[[int], None]) -> Actor:
    now = yield start + period
    while True:
        action(now)
        now = yield now + period


def consumer_group(reading: Reading, sources: Sequence[PartitionLog], coordinator: GroupCoordinator, first_due: int) -> Actor:
    """Reads committed records from the beginning; what was deleted before it was read is passed over, as by ``auto.offset.reset=earliest``.

    A group that has stopped commits the same offsets again and again: its members are there, and process nothing.

    Args:
        sources: the partitions of its topic.
    """
    now = yield first_due
    coordinator.join(reading.group, sources, now)
    stops = None if reading.stops_after_ms is None else now + reading.stops_after_ms
    offsets = [log.log_start_offset for log in sources]
    ends = offsets
    while True:
        now = yield now + COMMIT_MS
        if stops is None or now < stops:
            offsets = [_read_on(log, offset, before, reading.pace) for log, offset, before in zip(sources, offsets, ends, strict=True)]
            ends = [log.log_end_offset for log in sources]
        coordinator.commit(reading.group.name, sources, offsets, now)


def _read_on(log: PartitionLog, offset: int, end_before: int, pace: float) -> int:
    """How far a consumer comes that reads ``pace`` offsets for each one that was appended since ``end_before``."""
    there = max(offset, log.log_start_offset)
    return min(log.last_stable_offset(), there + round((log.log_end_offset - end_before) * pace))
