"""What agent and client say to each other besides rows: small JSON objects, each a frozen value here."""

import base64
import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from streaming.agent.versions import PROTOCOL, UNNAMED
from streaming.errors import AgentError


@dataclass(frozen=True, slots=True)
class Message:
    """A value that crosses the wire as JSON."""

    HOLDS: ClassVar[dict[str, type["Message"]]] = {}
    """What the lists in it hold, where that is not plain numbers."""

    UNTOLD: ClassVar[dict[str, Any]] = {}
    """What fields mean that an earlier version does not send, where that is not the field's default."""

    def encode(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """From JSON. Fields that are not known are passed over: the other side may be newer.

        Raises:
            AgentError: it is not such a message.
        """
        try:
            return cls._of(json.loads(data))
        except (ValueError, TypeError, AttributeError) as error:
            raise AgentError(f"not a message of kind {cls.__name__}: {data[:200]!r} ({error})") from error

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        values = cls.UNTOLD | {name: value for name, value in fields.items() if name in cls.__slots__}
        lists = {name: [kind._of(each) for each in values[name]] for name, kind in cls.HOLDS.items() if name in values}
        return cls(**values | lists)


_UNNAMED: dict[str, Any] = {"protocol": UNNAMED}


@dataclass(frozen=True, slots=True)
class Hello(Message):
    """A consumer starts. ``start_from`` counts if it is new to this agent's journal; ``resumed``: it has folded these logs before;
    ``run`` as in `Range`, "" where the job does not say.

    ``protocol``: what its job speaks, see `streaming.agent.versions`; also where it is in other messages.
    """

    UNTOLD: ClassVar[dict[str, Any]] = _UNNAMED

    consumer: str
    start_from: str
    resumed: bool
    protocol: int = PROTOCOL
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirStatus(Message):
    """A log dir as a whole; sizes in bytes, -1 where they are not known.

    ``broker``: -1 where it was never readable and nothing tells whose it is. ``up``: it can be read; ``problem``: why not.
    ``registered``: the registration of its broker lists its directory.id, None where nobody can tell. ``checkpoint_ms``: when
    ``replication-offset-checkpoint`` was written (Unix milliseconds, -1 never). ``hosts``: a replica lives there, so that a running broker
    writes that file; None where an earlier version does not say. ``free``, ``capacity``: of its file system. The others are
    what lies there besides segments of live logs: segments renamed to ``.deleted``, directories that end in ``-delete``, ``-stray`` and
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
    """A file or directory at ``path`` in which a call has not come back for so many seconds; its log dir is left alone until it does."""

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
    """A broker that is registered, and whether the controller has fenced it off.

    ``phase``: one of `streaming.kafka.metadata_brokers.Phase`, "" where it is not known; ``since_ms``: since when at the latest, Unix
    milliseconds, -1 where it is not known; ``epoch``: of its registration, -1 where it is not known; ``replicas``: whether any partition
    has a replica on it, None where that is not known.
    """

    broker: int
    fenced: bool
    epoch: int = -1
    phase: str = ""
    since_ms: int = -1
    replicas: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCounts(Message):
    """How many partitions a topic has; how many of them are offline, under min ISR, under-replicated.

    ``in_sync``: where neither the topic nor a dynamic configuration sets min.insync.replicas, how many partitions have so many replicas in
    sync, by "2/3" for two of three, or "2/" where the broker does not care how many there are (before Kafka 3.7); ``under_min_isr`` is 0
    then.
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

    ``leader``: -1 where there is none. ``electable``: brokers of which one has to be there for a leader that lost nothing.
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
    """Which partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment(Message):
    """A partition whose replicas move: from ``removing`` to ``adding`` brokers; -1 where nobody leads it."""

    topic: str
    partition: int
    leader: int
    adding: list[int]
    removing: list[int]


@dataclass(frozen=True, slots=True)
class PartitionCounts(Message):
    """All topics of a cluster, and of those where something is wrong some partitions, the worst ones.

    ``recovering``: some of the partitions that recover from an unclean election; ``reassignments``: some of those that are under way.
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
        """As text that goes into another message: thousands of topics in a few kilobytes."""
        return base64.b64encode(zlib.compress(self.encode())).decode()

    @classmethod
    def unpack(cls, packed: str) -> Self:
        """What `pack` made. Raises AgentError as `decode`."""
        try:
            return cls.decode(zlib.decompress(base64.b64decode(packed)))
        except (ValueError, zlib.error) as error:
            raise AgentError(f"not packed counts of partitions: {packed[:200]!r} ({error})") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommits(Message):
    """A transaction that is open in a log of ``__consumer_offsets``.

    In an answer with the ``groups`` whose offsets wait for it, as they may be told; ``more``: there may be others.
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
    """A state of the catalog of some process of an agent (`streaming.catalog.changes.Version`)."""

    process: str
    number: int


@dataclass(frozen=True, slots=True)
class CatalogPart(Message):
    """What changed of an agent's catalog up to ``version``: ``changes`` as `streaming.catalog.changes.Changes.pack` makes it, ``whole``
    where that is all there is."""

    version: CatalogVersion
    whole: bool
    changes: str

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields | {"version": CatalogVersion(**fields["version"])})


@dataclass(frozen=True, slots=True)
class StatusRequest(Message):
    """``counts``: names of `PartitionCounts` that the job has and does not need again. ``pending``: of which transactions it wants the
    groups. ``catalog``: whether it wants to know what is decided, as far as that changed since those of the ``catalogs`` that it has."""

    HOLDS: ClassVar[dict[str, type[Message]]] = {"pending": PendingCommits, "catalogs": CatalogVersion}

    counts: list[str] = field(default_factory=list)
    pending: list[PendingCommits] = field(default_factory=list)
    catalog: bool = False
    catalogs: list[CatalogVersion] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus(Message):
    """What a broker's own copy of the metadata log says, if it is ``readable``.

    ``metadata_offset``: how far that copy has come, -1 unknown: a broker that is down has stopped somewhere. ``registered``: all brokers
    of the cluster. ``controller``: node id by its ``quorum-state``, -1 unknown. ``led``: by every broker of the cluster that leads any.
    ``transaction_partitions``: of ``__transaction_state``, 0 where there is no such topic, None where that is not known.
    ``counts``: a packed `PartitionCounts`, "" where the job has it already; ``counts_name`` names it by its content, "" where none is
    known. Brokers whose copies say the same send the same one.
    ``appended_ms``: when its copy last grew (Unix milliseconds), where an idle controller would make it grow all the time; -1 where it
    would not, or where that is not known. ``log_dirs``: directory ids that the broker is registered with, as far as the agent knows; none
    before Kafka 3.7. ``expected``: False where the broker has no metadata log, because its cluster is of before KRaft.
    ``snapshot``: False where the newest snapshot cannot be read, so that the next start of the agent knows nothing; None where an earlier
    version does not say. ``clean``: its log dirs say that it was shut down cleanly, and has not started since.
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
    """A log that could not be read at the last try: the file or directory, and why."""

    broker: int
    topic: str
    partition: int
    topic_id: str
    path: str
    error: str


@dataclass(frozen=True, slots=True)
class UnreadableLogs(Message):
    """How many logs of a broker could not be read at the last try."""

    broker: int
    logs: int


@dataclass(frozen=True, slots=True)
class CorruptBatch(Message):
    """A damaged place in a closed segment: its file, the byte, the offset that its header says, and what is wrong with it."""

    topic: str
    partition: int
    path: str
    position: int
    offset: int
    fault: str


@dataclass(frozen=True, slots=True)
class CorruptLog(Message):
    """How many damaged places the scrub knows in the closed segments of a log."""

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

    ``began_ms``, ``ended_ms``: when the last pass began, and when a pass ended last. ``logs``, ``logs_checked``: how many the pass has to
    go through and is through, 0 and 0 between passes of two processes; ``checked``: bytes, ever since. ``corrupt``, ``unreadable``: damaged
    places, and files that cannot be read, as they are known now; the first of them are named. ``waits_at``: the file in which a call has
    not come back for ``waits_seconds``, "" where none waits.
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
"""So many of the logs that cannot be read are named."""


@dataclass(frozen=True, slots=True)
class Status(Message):
    """What an agent is and how far it has come.

    ``brokers``: node ids; ``unreadable_metadata``: those of them whose metadata log it cannot read; ``caught_up``: all that was there
    when the last consumer said hello has been published, and the lists of segments of all logs; ``logs``: how many there are, also before
    anybody reads them; ``seq``, ``total``: the end of the journal;
    ``now_ms``: its clock; ``directories``: names for its log dirs, the same from whichever agent; ``doubts``: by
    `streaming.watcher.watcher.Doubt`, how much could not be believed so far. ``log_dirs`` and ``broker_statuses`` are as they were some
    seconds ago. ``blocked``: what does not answer; ``silent_seconds``: since when the watcher has given no sign of life.
    ``unreadable``: how many logs cannot be read, of each broker that has any; ``unreadable_logs``: the first of them.
    ``twins``: ids that two jobs have. ``scrubs``: of each log dir, none where the scrub is off.
    ``pending``: of the transactions that were asked about, those whose log is here and could be read.
    ``catalog``: a part of the catalog where it was asked for, else none: what was decided when the journal ended where this says.
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
    UNTOLD: ClassVar[dict[str, Any]] = _UNNAMED

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
    """How far does a budget reach?

    ``run``: what received the last ranges (see `Range`); ``journal`` and ``after``: the end of the last plan ("" and -1 before the first);
    ``budget``: bytes of logs, None for all there is; ``wait_ms``: how long to wait where there is nothing new; ``total``: of the last plan,
    -1 where the job does not say.
    """

    UNTOLD: ClassVar[dict[str, Any]] = _UNNAMED

    consumer: str
    run: str
    journal: str
    after: int
    budget: int | None
    wait_ms: int
    protocol: int = PROTOCOL
    total: int = -1


NOT_BEGUN = -1
"""``seq`` of a plan for a consumer whose beginning is not published yet: say hello, or ask again."""


@dataclass(frozen=True, slots=True)
class Plan(Message):
    """Up to ``seq`` of ``journal``, which is ``total`` bytes of logs since its beginning.

    ``again``: nothing new, but something before it has not arrived; ``missed``: something has not arrived, whether or not there is more.
    ``more``: there is more than the budget allows; None where the agent does not say.
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
    """A ticket: the events of ``journal`` behind ``after``, which is ``after_total`` bytes, up to ``upto``.

    An ``after`` of -1 stands for the consumer's own beginning.

    ``run`` names one run of the consumer's query. What an earlier run received may never have been committed, so it does not count.
    """

    UNTOLD: ClassVar[dict[str, Any]] = _UNNAMED

    consumer: str
    run: str
    journal: str
    after: int
    after_total: int
    upto: int
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Committed(Message):
    """The micro-batch that ends at ``seq`` is committed: what ``run`` received up to there will not be asked for again."""

    consumer: str
    run: str
    journal: str
    seq: int


@dataclass(frozen=True, slots=True)
class Log(Message):
    """One segment of a log as it lies on disk; ``size`` in bytes."""

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
