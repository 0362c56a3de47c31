"""The status of an agent: its log dirs and brokers, what it cannot read, and the changes of its catalog."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

from streaming.broker.protocol.cluster_messages import Led, Registered
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import AnyName, Name, Natural, Packed, Small, Text
from streaming.broker.protocol.versions import PROTOCOL
from streaming.rules.broker_process import LockState, ProcessState

LockName = Annotated[str, Text(form="|".join(LockState))]
"""One of `streaming.rules.broker_process.LockState`."""

ProcessName = Annotated[str, Text(form="|".join(ProcessState))]
"""One of `streaming.rules.broker_process.ProcessState`."""

OfBroker = Annotated[str, Text(form=r"(?s)-?[0-9]{1,9}:.*")]
"""The id of a broker, a colon, and a name."""

MOST_UNREADABLE = 1_000
"""The most unreadable logs that are told with their files and reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus(Message):
    """Whether a broker's process is there, by the locks of its log dirs (`streaming.rules.broker_process`).

    ``why``: the reason where that is not known. ``since_ms``: when it was first seen so, at most one look after it came true, -1 where that
    is not known; ``last_ms``: its last sign of life, -1 for none. ``free``: ids of the log dirs that no process holds. Unix milliseconds.
    ``before``: the epoch of the registration that its broker had when it last had no process, -1 if that is not known. ``keeps_metadata``:
    one of ``free`` has the node's metadata log.
    """

    state: ProcessName
    why: str = ""
    since_ms: int = -1
    last_ms: int = -1
    free: list[str] = field(default_factory=list)
    before: int = -1
    keeps_metadata: bool = False

    def has_not_registered(self, epoch: int) -> bool:
        """Whether the process is there, and this registration of its broker is that of another process, before it."""
        return self.state == ProcessState.UP and 0 <= self.before == epoch


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
    False where the newest snapshot cannot be read, so that the agent knows nothing after its next start. ``clean``: its log dirs show that
    it was shut down cleanly and has not started since. ``voters``: node ids of the quorum's voters, none where they are not known.
    ``changes``: a packed `MetadataChanges`, sent as ``counts`` are.
    """

    broker: Small
    readable: bool
    metadata_offset: int
    registered: list[Registered]
    controller: Small
    led: list[Led]
    transaction_partitions: int | None
    counts_name: AnyName = ""
    counts: Packed = ""
    appended_ms: int = -1
    log_dirs: list[str] = field(default_factory=list)
    expected: bool = True
    snapshot: bool = True
    clean: bool = False
    voters: list[Small] = field(default_factory=list)
    changes_name: AnyName = ""
    changes: Packed = ""
    process: ProcessStatus | None = None

    @property
    def packed(self) -> dict[str, str]:
        """What is packed in it, by name."""
        return {name: packed for name, packed in ((self.counts_name, self.counts), (self.changes_name, self.changes)) if name}

    def with_packed(self, chosen: Callable[[str, str], str]) -> Self:
        """The same with what is chosen for a name and what is packed now."""
        return replace(self, counts=chosen(self.counts_name, self.counts), changes=chosen(self.changes_name, self.changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommits(Message):
    """A transaction that is open in a log of ``__consumer_offsets``.

    In an answer, ``groups`` are those with offsets that wait for it, redacted where needed; ``more``: there may be others.
    """

    broker: Small
    topic: str
    partition: Small
    topic_id: AnyName
    producer_id: int
    first_offset: int
    groups: list[str] = field(default_factory=list)
    more: bool = False


@dataclass(frozen=True, slots=True)
class CatalogVersion(Message):
    """A version of the catalog in one process of an agent (`streaming.common.catalog.Version`)."""

    process: AnyName
    number: int


@dataclass(frozen=True, slots=True)
class StatusRequest(Message):
    """A request for the status.

    ``counts``: names of `PartitionCounts` that the job already has. ``pending``: the transactions whose waiting groups it requests.
    ``catalog``: whether it requests the catalog, as far as that has changed since the versions in ``catalogs``, which it has.
    ``consumer``: who asks, "" for one without an id.
    """

    counts: list[str] = field(default_factory=list)
    pending: list[PendingCommits] = field(default_factory=list)
    catalog: bool = False
    catalogs: list[CatalogVersion] = field(default_factory=list)
    consumer: AnyName = ""


@dataclass(frozen=True, slots=True)
class CorruptBatch(Message):
    """A damaged position in a closed segment: its file, the byte, the offset in its header, and what is wrong with it."""

    topic: str
    partition: Small
    path: str
    position: int
    offset: int
    fault: str


@dataclass(frozen=True, slots=True)
class CorruptLog(Message):
    """How many damaged positions the scrub has found in the closed segments of a log."""

    topic: str
    partition: Small
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

    broker: Small
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirStatus(Message):
    """A whole log dir; sizes in bytes, -1 where they are not known.

    ``broker``: -1 if the log dir was never readable and its broker is not known. ``up``: it can be read; ``problem``: why it cannot.
    ``registered``: the registration of its broker lists its directory.id, None if that is not known. ``checkpoint_ms``: when
    ``replication-offset-checkpoint`` was written (Unix milliseconds, -1 never). ``hosts``: it has a replica, so that a running broker
    writes that file. ``free``, ``capacity``: of its file system, ``device`` the number of that on its host. ``lock``: whether a process
    holds the lock of the log dir. The other fields are the sizes of everything besides segments of live
    logs: segments renamed to ``.deleted``, directories that end in ``-delete``, ``-stray`` and ``-future``, indexes and other small files
    of live logs, and the metadata log.

    ``recovery_logs``, ``recovery_bytes``: what a start after a crash reads, without the metadata log, which every start reads; 0 after a
    clean shutdown, which ``clean`` tells from logs without
    records. ``not_fsynced_bytes``: the most that may be in the page cache alone. ``recovery_rate``: bytes a second of the last
    recovery that the agent saw. ``recovery_threads``: ``num.recovery.threads.per.data.dir``. While a broker starts, ``recovering_logs`` and
    ``recovering_bytes`` are what is left of its logs, and ``recovering`` names some that are being read.

    ``stray_only``: strays of live topics with records that no replica in sync has, as far as the agent sees. ``unnamed``: logs without
    ``partition.metadata``, which the next start of the broker makes strays. ``set_aside``: the names of some directories of both.
    """

    broker: Small
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
    hosts: bool = True
    device: int = -1
    lock: LockName = LockState.UNKNOWN
    recovery_logs: int = -1
    recovery_bytes: int = -1
    not_fsynced_bytes: int = -1
    recovery_rate: float = -1.0
    recovery_threads: int = -1
    clean: bool = False
    recovering_logs: int = -1
    recovering_bytes: int = -1
    recovering: list[AnyName] = field(default_factory=list)
    stray_only: int = 0
    unnamed: int = 0
    set_aside: list[AnyName] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BlockedFile(Message):
    """A file or directory at ``path`` in which a call has not returned for so many seconds. Its log dir is not used until it returns."""

    broker: Small
    log_dir: str
    path: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CatalogPart(Message):
    """The changes of an agent's catalog up to ``version``.

    ``changes``: packed by `streaming.common.catalog.Changes.pack`; ``whole``: they are the whole catalog.
    """

    version: CatalogVersion
    whole: bool
    changes: Packed


@dataclass(frozen=True, slots=True)
class UnreadableLog(Message):
    """A log that could not be read at the last attempt: the file or directory, and why."""

    broker: Small
    topic: str
    partition: Small
    topic_id: AnyName
    path: str
    error: str


@dataclass(frozen=True, slots=True)
class UnreadableTopic(Message):
    """Partitions of a topic that could not be read at the last attempt."""

    topic: str
    topic_id: AnyName
    partitions: list[Small]


@dataclass(frozen=True, slots=True)
class UnreadableLogs(Message):
    """How many logs of a broker could not be read at the last attempt, and all of them by topic."""

    broker: Small
    logs: int
    topics: list[UnreadableTopic] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Status(Message):
    """An agent's identity and progress.

    ``brokers``: node ids; ``unreadable_metadata``: those with a metadata log that the agent cannot read; ``caught_up``: everything that was
    there when the last consumer registered has been published, and the lists of segments of all logs; ``unread``: bytes of logs that it
    has not read yet, -1 not known, as before the first consumer registers; ``logs``: how many there are, also
    before they are read; ``seq``, ``total``: the end of the journal; ``now_ms``: its clock; ``directories``: names for its log dirs, the
    same from every agent; ``doubts``: by `streaming.broker.watcher.watcher.Doubt`, how many values could not be believed so far.
    ``log_dirs`` and ``broker_statuses`` are some seconds old. ``blocked``: the files that do not answer; ``silent_seconds``: since the
    watcher's last sign of life. ``unreadable``: how many logs cannot be read, for each broker with such logs; ``unreadable_logs``: the
    first of them. ``twins``: ids that two jobs share. ``scrubs``: for each log dir, none where the scrub is off. ``pending``: for the
    requested transactions, those whose log is here and could be read. ``catalog``: a part of the catalog if it was requested, else none;
    it contains the decisions up to this end of the journal. ``started_ms``: when its process began, by its clock, -1 not known.
    ``full``: it reads no further before a job has more of what is published.
    """

    agent: Name
    version: AnyName
    journal: AnyName
    cluster_id: AnyName
    brokers: list[Small]
    unreadable_metadata: list[Small]
    logs: int
    caught_up: bool
    seq: Natural
    total: Natural
    now_ms: int = 0
    directories: list[OfBroker] = field(default_factory=list)
    doubts: dict[AnyName, int] = field(default_factory=dict)
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
    unread: int = -1
    started_ms: int = -1
    full: bool = False
