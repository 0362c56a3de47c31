"""What fills log dirs and when they are full, as JSON: what a job serves, and ``segtail disk --json`` prints.

Sizes are bytes, times Unix milliseconds, growth is bytes a day. -1 means "not
known" or "never", and is null in JSON; `LogDirUse.outlook` distinguishes them.
"""

from dataclasses import dataclass, field

from streaming.broker.protocol.away_json import AwayBroker
from streaming.broker.protocol.json_message import PublicMessage

DISK_PATH = "/api/v1/disk"
"""`DiskAnswer`, with the largest rows, by ``?by=topic|partition|dir|kind&topic=NAME&filter=TEXT&offset=N&limit=N``."""

BY = ("topic", "partition", "dir", "kind")

FULL, NEVER, UNKNOWN = "full", "never", "unknown"
"""The words of ``outlook``: full at a time that is known, not full within a year, not known."""

KIND_WORDS = {
    "segment": "segments",
    "index": "indexes",
    "snapshot": "producer snapshots",
    "checkpoint": "checkpoints",
    "metadata": "metadata log",
    "future": "replicas moving here",
    "deleted": "deleted segments",
    "delete": "deleted replicas",
    "cleaner": "unfinished compaction",
    "stray": "strays",
    "directory": "directories",
    "other": "other files",
}
"""Kinds of files for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindUse(PublicMessage):
    """What files of one kind (`streaming.broker.disk.file_kinds.DiskFileKind`) take: ``apparent`` their lengths, ``taken`` their place."""

    kind: str
    taken: int
    apparent: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirUse(PublicMessage):
    """A log dir. ``taken`` is what everything in it takes on the disk, ``apparent`` the length of all files, ``kinds`` the same by kind.

    ``growth_day``: of the replicas whose growth is known; ``growth_unknown`` is the number of the others, ``growth_unread`` of those among
    them whose logs cannot be read; what there is of the rest is too young. ``frees_now``: what the next check deletes; ``frees_day``: what
    is free in 24 hours at the latest. ``next_ms``: when the next space is free; ``next_start_of``: a broker, without a process, that has to
    be started before some of it is, -1 if none has. ``file_system``: log dirs with the same number share ``free`` and ``capacity``, and are
    full together. ``moving``: of so many replicas a copy is being made in another log dir: nothing of them is deleted before that is over.
    ``full_ms``: when, if nothing else grows there and compaction frees as much as is appended; ``full_uncleaned_ms``: if it
    frees nothing. ``checkpoint_ms``: when a broker last wrote here, -1 never. ``up``: it can be read; ``problem``: why not. ``unread``: how
    many files and directories in it could not be read, ``unread_of`` some of them with the reason.

    ``growth_over_ms``: over how long the growth of the replica that grows most is a mean, a day at most. ``others_day``: what else on the
    file system took in a day, as a job has seen it for an hour at least; it counts in ``full_ms``.

    ``recovery_logs``, ``recovery_bytes``: what a start of the broker after a crash reads. ``recovery_seconds``: how long that takes, by the
    last recovery that the agent saw. ``clean``: the broker was shut down in an orderly way, and has not started since.
    ``recovery_threads``: ``num.recovery.threads.per.data.dir``. ``not_fsynced_bytes``: the most that may
    not be on disk. ``recovering_logs``, ``recovering_bytes``: what is left of a recovery that is going on, ``recovering`` some of its logs,
    and ``recovered_ms`` when it ends.
    """

    broker: int
    log_dir: str
    up: bool = True
    problem: str = ""
    file_system: int = -1
    taken: int = -1
    apparent: int = -1
    kinds: list[KindUse] = field(default_factory=list)
    replicas: int = 0
    free: int = -1
    capacity: int = -1
    growth_day: int = -1
    growth_over_ms: int = -1
    others_day: int = -1
    growth_unknown: int = 0
    growth_unread: int = 0
    frees_now: int = -1
    frees_day: int = -1
    next_ms: int = -1
    next_start_of: int = -1
    moving: int = 0
    outlook: str = UNKNOWN
    full_ms: int = -1
    full_uncleaned_ms: int = -1
    checkpoint_ms: int = -1
    unread: int = 0
    unread_of: list[str] = field(default_factory=list)
    recovery_logs: int = -1
    recovery_bytes: int = -1
    recovery_seconds: float = -1.0
    recovery_threads: int = -1
    clean: bool = False
    not_fsynced_bytes: int = -1
    recovering_logs: int = -1
    recovering_bytes: int = -1
    recovering: list[str] = field(default_factory=list)
    recovered_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRow(PublicMessage):
    """What a topic, a partition, a log dir or a kind of files takes, by ``by`` of the answer; names that do not apply are "" or -1.

    ``segments``: bytes of the live segments. ``not_live``: bytes of what Kafka does not use any more, or not yet: copies that move here,
    strays, files that are being deleted, what compaction has left. ``policy`` and ``limits_assumed``: of a topic. ``on_no_disk``: the most
    bytes of a topic that are on no disk of any replica, which a power cut of the whole site may take; ``on_no_disk_partly``: of so many
    partitions not every replica is observed, so that it may be less. The other fields are as in `LogDirUse`.
    """

    topic: str = ""
    broker: int = -1
    partition: int = -1
    log_dir: str = ""
    kind: str = ""
    replicas: int = 0
    taken: int
    apparent: int = -1
    segments: int = -1
    not_live: int = 0
    growth_day: int = -1
    growth_unknown: int = 0
    growth_unread: int = 0
    frees_now: int = -1
    frees_day: int = -1
    next_ms: int = -1
    next_start_of: int = -1
    policy: str = ""
    limits_assumed: bool = False
    on_no_disk: int = -1
    on_no_disk_partly: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoverFiles(PublicMessage):
    """Files that should be gone, or that nothing uses: their kind, what they take, and since when nothing of them has changed."""

    path: str
    kind: str
    taken: int
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskAnswer(PublicMessage):
    """``rows``: the largest first, from ``offset`` on, of the ``matched`` ones that were asked for; there are ``total``.

    ``log_dirs``: all of them, with all that is in them, whatever rows were asked for. ``doubts``: what is not known, in sentences.
    ``what_if``: the configurations that everything was reckoned with instead of those in force, as ``[TOPIC:]NAME=VALUE``; ``in_force``:
    the log dirs with the latter, if there are any of the former. ``away``: brokers without a process.
    """

    at_ms: int
    version: str = ""
    by: str
    total: int
    matched: int
    offset: int = 0
    log_dirs: list[LogDirUse]
    rows: list[DiskRow]
    leftovers: list[LeftoverFiles] = field(default_factory=list)
    what_if: list[str] = field(default_factory=list)
    in_force: list[LogDirUse] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    away: list[AwayBroker] = field(default_factory=list)
