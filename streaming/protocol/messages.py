"""The messages between agent and client, besides rows: small JSON objects, each a frozen value here."""

import base64
import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from streaming.errors import AgentError
from streaming.protocol.versions import PROTOCOL, UNNAMED


@dataclass(frozen=True, slots=True)
class Message:
    """A value that is sent as JSON."""

    HOLDS: ClassVar[dict[str, type["Message"]]] = {}
    """The element types of its lists, where they are not plain values."""

    DEFAULTS: ClassVar[dict[str, Any]] = {}
    """The values of fields that an earlier version does not send, where they differ from the field's default."""

    def encode(self) -> bytes:
        """Encode the message as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode the message from JSON. Unknown fields are ignored, because the other side may be newer.

        Raises:
            AgentError: it is not such a message.
        """
        try:
            return cls._of(json.loads(data))
        except (ValueError, TypeError, AttributeError) as error:
            raise AgentError(f"not a message of kind {cls.__name__}: {data[:200]!r} ({error})") from error

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        values = cls.DEFAULTS | {name: value for name, value in fields.items() if name in cls.__slots__}
        lists = {name: [kind._of(each) for each in values[name]] for name, kind in cls.HOLDS.items() if name in values}
        return cls(**values | lists)


_UNNAMED: dict[str, Any] = {"protocol": UNNAMED}


@dataclass(frozen=True, slots=True)
class Register(Message):
    """A consumer starts.

    ``start_from`` is used if the consumer is new to this agent's journal. ``resumed``: it has folded these logs before. ``run``: as in
    `Range`, "" where the job sends none.

    ``protocol``: the protocol of its job, see `streaming.protocol.versions`; the same in other messages.
    """

    DEFAULTS: ClassVar[dict[str, Any]] = _UNNAMED

    consumer: str
    start_from: str
    resumed: bool
    protocol: int = PROTOCOL
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirStatus(Message):
    """A whole log dir; sizes in bytes, -1 where they are not known.

    ``broker``: -1 if the log dir was never readable and its broker is not known. ``up``: it can be read; ``problem``: why it cannot.
    ``registered``: the registration of its broker lists its directory.id, None if that is not known. ``checkpoint_ms``: when
    ``replication-offset-checkpoint`` was written (Unix milliseconds, -1 never). ``hosts``: it has a replica, so that a running broker
    writes that file; None where an earlier version does not send it. ``free``, ``capacity``: of its file system. The other fields are the
    sizes of everything besides segments of live logs: segments renamed to ``.deleted``, directories that end in ``-delete``, ``-stray`` and
    ``-future``, indexes and other small files of live logs, and the metadata log.
    """

    broker: int
    log_dir: str
    up: bool
    registered: bool | None
    checkpoint_ms: int
    free: int
    capacity: int
    deleted: int
    delete: int
    stray: int
    future: int
    index: int
    metadata: int
    problem: str = ""
    hosts: bool | None = None


@dataclass(frozen=True, slots=True)
class BlockedFile(Message):
    """A file or directory at ``path`` in which a call has not returned for so many seconds. Its log dir is not used until it returns."""

    broker: int
    log_dir: str
    path: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Led(Message):
    """How many partitions a broker leads."""

    broker: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Registered(Message):
    """A registered broker, and whether the controller has fenced it off.

    ``phase``: one of `streaming.kafka.metadata_brokers.Phase`, "" if it is not known; ``since_ms``: the latest possible beginning of the
    phase, Unix milliseconds, -1 if it is not known; ``epoch``: of its registration, -1 if it is not known; ``replicas``: whether any
    partition has a replica on it, None if that is not known.
    """

    broker: int
    fenced: bool
    epoch: int = -1
    phase: str = ""
    since_ms: int = -1
    replicas: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCounts(Message):
    """How many partitions a topic has, and how many of them are offline, under min ISR, under-replicated.

    ``in_sync`` is set where neither the topic nor a dynamic configuration sets min.insync.replicas. It counts partitions by their in-sync
    replicas: "2/3" for two of three, or "2/" where the broker ignores how many replicas there are (before Kafka 3.7). ``under_min_isr`` is
    0 then.
    """

    topic: str
    partitions: int
    offline: int = 0
    under_min_isr: int = 0
    under_replicated: int = 0
    in_sync: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedPartition(Message):
    """A partition that is offline, under min ISR or under-replicated: ``problem`` is the worst of these (`Problem`).

    ``leader``: -1 where there is none. ``electable``: one of these brokers has to be up for a leader that has lost nothing.
    """

    topic: str
    partition: int
    problem: str
    leader: int
    in_sync: list[int]
    out_of_sync: list[int]
    electable: list[int]


@dataclass(frozen=True, slots=True)
class PartitionName(Message):
    """The name of a partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment(Message):
    """A partition that moves replicas from ``removing`` to ``adding`` brokers; ``leader`` is -1 where there is none."""

    topic: str
    partition: int
    leader: int
    adding: list[int]
    removing: list[int]


@dataclass(frozen=True, slots=True)
class PartitionCounts(Message):
    """All topics of a cluster, and some partitions of those with a problem, the worst ones.

    ``recovering``: some of the partitions that recover from an unclean election; ``reassignments``: some of the running reassignments.
    """

    HOLDS: ClassVar[dict[str, type[Message]]] = {
        "topics": TopicCounts,
        "affected": AffectedPartition,
        "recovering": PartitionName,
        "reassignments": Reassignment,
    }

    topics: list[TopicCounts]
    affected: list[AffectedPartition]
    recovering: list[PartitionName] = field(default_factory=list)
    reassignments: list[Reassignment] = field(default_factory=list)

    def pack(self) -> str:
        """Pack the counts as text for another message: thousands of topics in a few kilobytes."""
        return base64.b64encode(zlib.compress(self.encode())).decode()

    @classmethod
    def unpack(cls, packed: str) -> Self:
        """Unpack the text of `pack`. Raises AgentError as `decode` does."""
        try:
            return cls.decode(zlib.decompress(base64.b64decode(packed)))
        except (ValueError, zlib.error) as error:
            raise AgentError(f"not packed counts of partitions: {packed[:200]!r} ({error})") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommits(Message):
    """A transaction that is open in a log of ``__consumer_offsets``.

    In an answer, ``groups`` are those with offsets that wait for it, redacted where needed; ``more``: there may be others.
    """

    broker: int
    topic: str
    partition: int
    topic_id: str
    producer_id: int
    first_offset: int
    groups: list[str] = field(default_factory=list)
    more: bool = False


@dataclass(frozen=True, slots=True)
class CatalogVersion(Message):
    """A version of the catalog in one process of an agent (`streaming.catalog.changes.Version`)."""

    process: str
    number: int


@dataclass(frozen=True, slots=True)
class CatalogPart(Message):
    """The changes of an agent's catalog up to ``version``.

    ``changes``: packed by `streaming.catalog.changes.Changes.pack`; ``whole``: they are the whole catalog.
    """

    version: CatalogVersion
    whole: bool
    changes: str

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields | {"version": CatalogVersion(**fields["version"])})


@dataclass(frozen=True, slots=True)
class StatusRequest(Message):
    """A request for the status.

    ``counts``: names of `PartitionCounts` that the job already has. ``pending``: the transactions whose waiting groups it requests.
    ``catalog``: whether it requests the catalog, as far as that has changed since the versions in ``catalogs``, which it has.
    """

    HOLDS: ClassVar[dict[str, type[Message]]] = {"pending": PendingCommits, "catalogs": CatalogVersion}

    counts: list[str] = field(default_factory=list)
    pending: list[PendingCommits] = field(default_factory=list)
    catalog: bool = False
    catalogs: list[CatalogVersion] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus(Message):
    """The content of a broker's own copy of the metadata log, if it is ``readable``.

    ``metadata_offset``: the end of that copy, -1 unknown; a broker that is down has stopped somewhere. ``registered``: all brokers of the
    cluster. ``controller``: node id by its ``quorum-state``, -1 unknown. ``led``: for every broker of the cluster that leads any partition.
    ``transaction_partitions``: of ``__transaction_state``, 0 where there is no such topic, None if that is not known. ``counts``: a packed
    `PartitionCounts`, "" where the job has it already; ``counts_name`` names it by its content, "" where none is known. Brokers with equal
    copies send the same one. ``appended_ms``: when its copy last grew (Unix milliseconds), if an idle controller makes it grow all the
    time; otherwise, or if that is not known, -1. ``log_dirs``: directory ids that the broker is registered with, as far as the agent knows;
    none before Kafka 3.7. ``expected``: False where the broker has no metadata log, because its cluster is of before KRaft. ``snapshot``:
    False where the newest snapshot cannot be read, so that the agent knows nothing after its next start; None where an earlier version does
    not send it. ``clean``: its log dirs show that it was shut down cleanly and has not started since.
    """

    HOLDS: ClassVar[dict[str, type[Message]]] = {"led": Led, "registered": Registered}

    broker: int
    readable: bool
    metadata_offset: int
    registered: list[Registered]
    controller: int
    led: list[Led]
    transaction_partitions: int | None
    counts_name: str = ""
    counts: str = ""
    appended_ms: int = -1
    log_dirs: list[str] = field(default_factory=list)
    expected: bool = True
    snapshot: bool | None = None
    clean: bool = False


@dataclass(frozen=True, slots=True)
class UnreadableLog(Message):
    """A log that could not be read at the last attempt: the file or directory, and why."""

    broker: int
    topic: str
    partition: int
    topic_id: str
    path: str
    error: str


@dataclass(frozen=True, slots=True)
class UnreadableLogs(Message):
    """How many logs of a broker could not be read at the last attempt."""

    broker: int
    logs: int


@dataclass(frozen=True, slots=True)
class CorruptBatch(Message):
    """A damaged position in a closed segment: its file, the byte, the offset in its header, and what is wrong with it."""

    topic: str
    partition: int
    path: str
    position: int
    offset: int
    fault: str


@dataclass(frozen=True, slots=True)
class CorruptLog(Message):
    """How many damaged positions the scrub has found in the closed segments of a log."""

    topic: str
    partition: int
    batches: int


@dataclass(frozen=True, slots=True)
class UnreadableFile(Message):
    """A file or directory that the scrub could not read, and why."""

    path: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubStatus(Message):
    """The scrub of one log dir. Times are Unix milliseconds, -1 never.

    ``began_ms``, ``ended_ms``: when the last pass began, and when a pass last ended. ``logs``, ``logs_checked``: how many logs the pass has
    to check and has checked, 0 and 0 between the passes of two processes. ``checked``: bytes, in all passes. ``corrupt``, ``unreadable``:
    the damaged positions and the unreadable files that are known now; the first of them are named. ``waits_at``: the file in which a call
    has not returned for ``waits_seconds``, "" if there is none.
    """

    HOLDS: ClassVar[dict[str, type[Message]]] = {
        "corrupt_batches": CorruptBatch,
        "corrupt_logs": CorruptLog,
        "unreadable_files": UnreadableFile,
    }

    broker: int
    log_dir: str
    began_ms: int
    ended_ms: int
    logs: int
    logs_checked: int
    checked: int
    corrupt: int
    unreadable: int
    waits_at: str = ""
    waits_seconds: float = 0.0
    corrupt_batches: list[CorruptBatch] = field(default_factory=list)
    corrupt_logs: list[CorruptLog] = field(default_factory=list)
    unreadable_files: list[UnreadableFile] = field(default_factory=list)


MOST_UNREADABLE = 1_000
"""The most unreadable logs that are named."""


@dataclass(frozen=True, slots=True)
class Status(Message):
    """An agent's identity and progress.

    ``brokers``: node ids; ``unreadable_metadata``: those with a metadata log that the agent cannot read; ``caught_up``: everything that was
    there when the last consumer registered has been published, and the lists of segments of all logs; ``logs``: how many there are, also
    before they are read; ``seq``, ``total``: the end of the journal; ``now_ms``: its clock; ``directories``: names for its log dirs, the
    same from every agent; ``doubts``: by `streaming.watcher.watcher.Doubt`, how many values could not be believed so far. ``log_dirs`` and
    ``broker_statuses`` are some seconds old. ``blocked``: the files that do not answer; ``silent_seconds``: since the watcher's last sign
    of life. ``unreadable``: how many logs cannot be read, for each broker with such logs; ``unreadable_logs``: the first of them.
    ``twins``: ids that two jobs share. ``scrubs``: for each log dir, none where the scrub is off. ``pending``: for the requested
    transactions, those whose log is here and could be read. ``catalog``: a part of the catalog if it was requested, else none; it contains
    the decisions up to this end of the journal.
    """

    HOLDS: ClassVar[dict[str, type[Message]]] = {
        "log_dirs": LogDirStatus,
        "broker_statuses": BrokerStatus,
        "blocked": BlockedFile,
        "unreadable": UnreadableLogs,
        "unreadable_logs": UnreadableLog,
        "scrubs": ScrubStatus,
        "pending": PendingCommits,
        "catalog": CatalogPart,
    }
    DEFAULTS: ClassVar[dict[str, Any]] = _UNNAMED

    agent: str
    version: str
    journal: str
    cluster_id: str
    brokers: list[int]
    unreadable_metadata: list[int]
    logs: int
    caught_up: bool
    seq: int
    total: int
    now_ms: int = 0
    directories: list[str] = field(default_factory=list)
    doubts: dict[str, int] = field(default_factory=dict)
    log_dirs: list[LogDirStatus] = field(default_factory=list)
    broker_statuses: list[BrokerStatus] = field(default_factory=list)
    protocol: int = PROTOCOL
    blocked: list[BlockedFile] = field(default_factory=list)
    silent_seconds: float = 0.0
    unreadable: list[UnreadableLogs] = field(default_factory=list)
    unreadable_logs: list[UnreadableLog] = field(default_factory=list)
    twins: list[str] = field(default_factory=list)
    scrubs: list[ScrubStatus] = field(default_factory=list)
    pending: list[PendingCommits] = field(default_factory=list)
    catalog: list[CatalogPart] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PlanRequest(Message):
    """A request for how far a budget reaches.

    ``run``: the run that received the last ranges (see `Range`); ``journal`` and ``after``: the end of the last plan ("" and -1 before the
    first); ``budget``: bytes of logs, None for no limit; ``wait_ms``: how long to wait if there is nothing new; ``total``: of the last
    plan, -1 where the job does not send it.
    """

    DEFAULTS: ClassVar[dict[str, Any]] = _UNNAMED

    consumer: str
    run: str
    journal: str
    after: int
    budget: int | None
    wait_ms: int
    protocol: int = PROTOCOL
    total: int = -1


NOT_BEGUN = -1
"""``seq`` of a plan for a consumer whose beginning is not published yet: register, or send the request again."""


@dataclass(frozen=True, slots=True)
class Plan(Message):
    """A plan up to ``seq`` of ``journal``, which is ``total`` bytes of logs since the journal's beginning.

    ``again``: nothing is new, but something before it has not arrived; ``missed``: something has not arrived, whether or not there is more.
    ``more``: there is more than the budget allows; None where the agent does not send it.
    """

    agent: str
    journal: str
    seq: int
    total: int
    again: bool
    missed: bool = False
    more: bool | None = None


@dataclass(frozen=True, slots=True)
class Range(Message):
    """A ticket for the events of ``journal`` after the seq ``after``, up to ``upto``. ``after_total`` is the bytes at ``after``.

    If ``after`` is -1, the range begins at the consumer's own beginning.

    ``run`` names one run of the consumer's query. Events that an earlier run received do not count, because they may never have been
    committed.
    """

    DEFAULTS: ClassVar[dict[str, Any]] = _UNNAMED

    consumer: str
    run: str
    journal: str
    after: int
    after_total: int
    upto: int
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Committed(Message):
    """The micro-batch that ends at ``seq`` is committed. Events up to there that ``run`` received will not be requested again."""

    consumer: str
    run: str
    journal: str
    seq: int


@dataclass(frozen=True, slots=True)
class Log(Message):
    """One segment of a log on disk; ``size`` in bytes."""

    broker: int
    log_dir: str
    topic: str
    partition: int
    segment: int
    size: int


@dataclass(frozen=True, slots=True)
class Logs(Message):
    """All segments that an agent can scan."""

    HOLDS: ClassVar[dict[str, type[Message]]] = {"logs": Log}

    logs: list[Log]
