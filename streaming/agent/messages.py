"""What agent and client say to each other besides rows: small JSON objects, each a frozen value here."""

import json
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
    ``replication-offset-checkpoint`` was written (Unix milliseconds, -1 never). ``free``, ``capacity``: of its file system. The others are
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
    """A broker that is registered, and whether the controller has fenced it off."""

    broker: int
    fenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus(Message):
    """What a broker's own copy of the metadata log says, if it is ``readable``.

    ``metadata_offset``: how far that copy has come, -1 unknown: a broker that is down has stopped somewhere. ``registered``: all brokers
    of the cluster. ``controller``: node id by its ``quorum-state``, -1 unknown. ``led``: by every broker of the cluster that leads any.
    ``transaction_partitions``: of ``__transaction_state``, 0 where there is no such topic, None where that is not known.
    """

    HOLDS: ClassVar[dict[str, type[Message]]] = {"led": Led, "registered": Registered}

    broker: int
    readable: bool
    metadata_offset: int
    registered: list[Registered]
    controller: int
    led: list[Led]
    transaction_partitions: int | None


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


MOST_UNREADABLE = 1_000
"""So many of the logs that cannot be read are named."""


@dataclass(frozen=True, slots=True)
class Status(Message):
    """What an agent is and how far it has come.

    ``brokers``: node ids; ``unreadable_metadata``: those of them whose metadata log it cannot read; ``caught_up``: all that was there
    when the last consumer said hello has been published, and a beat that tells so; ``seq``, ``total``: the end of the journal;
    ``now_ms``: its clock; ``directories``: names for its log dirs, the same from whichever agent; ``doubts``: by
    `streaming.watcher.watcher.Doubt`, how much could not be believed so far. ``log_dirs`` and ``broker_statuses`` are as they were some
    seconds ago. ``blocked``: what does not answer; ``silent_seconds``: since when the watcher has given no sign of life.
    ``unreadable``: how many logs cannot be read, of each broker that has any; ``unreadable_logs``: the first of them.
    ``twins``: ids that two jobs have.
    """

    HOLDS: ClassVar[dict[str, type[Message]]] = {
        "log_dirs": LogDirStatus,
        "broker_statuses": BrokerStatus,
        "blocked": BlockedFile,
        "unreadable": UnreadableLogs,
        "unreadable_logs": UnreadableLog,
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
    """

    agent: str
    journal: str
    seq: int
    total: int
    again: bool
    missed: bool = False


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
