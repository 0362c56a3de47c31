"""What fills log dirs and when they are full, as JSON: what a job serves, and ``segtail disk --json`` prints.

Times are Unix milliseconds, sizes bytes, growth is bytes a day. In memory -1 and "" mean "not known" or "none", and
never 0; in JSON that is null.
"""

from dataclasses import dataclass, field
from typing import Annotated

from streaming.broker.protocol.json_message import (
    Bytes,
    Count,
    Duration,
    Flag,
    Heading,
    Id,
    Moment,
    Name,
    Names,
    PublicMessage,
    Ratio,
    Sentence,
    Word,
)
from streaming.broker.protocol.listing_json import AwayBroker

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
    """What files of one kind (`streaming.broker.disk.dir_usage.DiskFileKind`) take."""

    kind: str  # of files
    taken: int  # what they take on the disk
    apparent: int = -1  # their length


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirUse(PublicMessage):
    """A log dir."""

    broker: Annotated[Id, Heading("Broker", 3)]  # whose it is
    log_dir: Annotated[Name, Heading("Log dir", 1, least=16)]  # which
    up: Flag = True  # it can be read
    problem: Sentence = ""  # why it cannot
    file_system: Id = -1  # log dirs with the same number share `free` and `capacity`, and are full together
    taken: Annotated[Bytes, Heading("On disk", 6)] = -1  # by all files on the disk; of segments their length where a job or the page of log
    # dirs tells it
    apparent: Bytes = -1  # the length of all files
    kinds: list[KindUse] = field(default_factory=list)  # list of `KindUse`, of each kind of files
    replicas: Annotated[Count, Heading("Replicas", 8)] = 0  # live ones, without that of the metadata log
    free: Annotated[Bytes, Heading("Free", 4)] = -1  # of its file system
    capacity: Annotated[Bytes, Heading("Capacity", 7)] = -1  # likewise
    growth_day: Annotated[Bytes, Heading("Growth a day", 5)] = -1  # bytes a day, of the replicas whose growth is known
    growth_over_ms: Duration = -1  # over how long the growth of the replica that grows most is a mean, a day at most
    again_day: Bytes = -1  # how much of `growth_day` is deleted again within the day
    others_day: Bytes = -1  # what else on its file system took a day, as a job has seen it for an hour; it counts in `full_ms`
    growth_unknown: Count = 0  # of how many replicas it is not known
    growth_unread: Count = 0  # of how many of these the log cannot be read
    frees_now: Annotated[Bytes, Heading("Next check frees", 9)] = -1  # what the next check deletes
    frees_day: Bytes = -1  # what is free in 24 hours
    next_ms: Moment = -1  # when the next space is free
    next_start_of: Id = -1  # its broker, if that has no process and has to be started before that
    moving: Count = 0  # how many replicas move to another log dir: nothing of them is deleted meanwhile
    outlook: Annotated[Word, Heading("Full", 2)] = UNKNOWN  # `full`, `never` (not within a year), `unknown`
    full_ms: Moment = -1  # when it is full, if compaction frees as much as is appended; at the latest where the growth of a replica is not
    # known
    full_earliest_ms: Moment = -1  # when, if it goes on to fill as in the last minutes, where that is earlier
    pace_day: Bytes = -1  # bytes a day by which its file system fills now, where that is more than means of a day tell
    pace_over_ms: Duration = -1  # over how long that was seen
    full_uncleaned_ms: Moment = -1  # when, if compaction frees nothing
    checkpoint_ms: Annotated[Moment, Heading("Last checkpoint", 10)] = -1  # when its broker last wrote here, `null` for never
    unread: Count = 0  # how many files and directories could not be read
    unread_of: Names = field(default_factory=list)  # some of them, with the reason
    recovery_logs: Count = -1  # how many logs a start after a crash reads; 0 after a clean shutdown
    recovery_bytes: Bytes = -1  # what it reads of them
    recovery_seconds: Ratio = -1.0  # how long that takes, by the last recovery that its agent saw
    recovery_threads: Count = -1  # `num.recovery.threads.per.data.dir`
    clean: Flag = False  # its broker was shut down in an orderly way, and has not started since
    not_fsynced_bytes: Bytes = -1  # the most that may not be on disk
    recovering_logs: Count = -1  # how many are left of a recovery that is going on
    recovering_bytes: Bytes = -1  # what is left of it
    recovering: Names = field(default_factory=list)  # some of the logs that it reads
    recovered_ms: Moment = -1  # when it ends


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRow(PublicMessage):
    """What a topic, a partition, a log dir or a kind of files takes, by ``by`` of the answer; names that do not apply are "" or -1."""

    topic: Name = ""  # what the row is about, by `by`; `null` if it is about something else
    broker: Id = -1  # likewise
    partition: Id = -1  # likewise
    log_dir: Name = ""  # likewise
    kind: Word = ""  # likewise
    replicas: Count = 0  # live ones, without that of the metadata log
    taken: Bytes  # what it takes on the disk; of segments their length where a job or the page of log dirs tells it
    apparent: Bytes = -1  # the length of its files
    segments: Bytes = -1  # of live segments
    not_live: Bytes = 0  # of `-delete`, `-future`, `-stray`, and files that are being deleted or that compaction has left
    growth_day: Bytes = -1  # bytes a day, of the replicas whose growth is known
    growth_unknown: Count = 0  # how many the others are
    growth_unread: Count = 0  # of how many of these the log cannot be read
    frees_now: Bytes = -1  # what the next check deletes
    frees_day: Bytes = -1  # what is free in 24 hours
    next_ms: Moment = -1  # when the next space is free: after the next deletion, when a check has come and the files are unlinked
    next_start_of: Id = -1  # a broker, without a process, that has to be started before some of it is
    policy: Word = ""  # the cleanup policy of a topic
    limits_assumed: Flag = False  # the limits of a topic are Kafka's defaults, because the real ones are not known
    on_no_disk: Bytes = -1  # the most of a topic that is on no disk of any replica: what a power cut of the site may take
    on_no_disk_partly: Count = 0  # of how many partitions not every replica is observed, so that it may be less


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoverFiles(PublicMessage):
    """Files that should be gone, or that nothing uses."""

    path: str  # where it is
    kind: str  # what it is
    taken: int  # what it takes on the disk
    since_ms: int  # since when nothing of it has changed


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskAnswer(PublicMessage):
    """What fills log dirs.

    What fills log dirs and when they are full: [disk.md](disk.md) says how that is reckoned. `segtail disk --json` prints the same.
    """

    at_ms: int  # as of when
    version: str = ""  # of segtail
    by: str  # what a row is
    total: int  # how many there are
    matched: int  # how many were asked for
    offset: int = 0  # how many come before the first one here
    log_dirs: list[LogDirUse]  # `LogDirUse` of each log dir, with all that is in it, whatever rows were asked for
    rows: list[DiskRow]  # list of `DiskRow`, the largest first
    leftovers: list[LeftoverFiles] = field(default_factory=list)  # `LeftoverFiles`, only from `segtail disk`
    what_if: list[str] = field(default_factory=list)  # what was reckoned with instead of what is in force, as `[TOPIC:]NAME=VALUE`; only
    # from `segtail disk`
    in_force: list[LogDirUse] = field(default_factory=list)  # the log dirs by what is in force, where `what_if` has something
    doubts: list[str] = field(default_factory=list)  # what cannot be told, in sentences: something may be wrong there that is nowhere else
    away: list[AwayBroker] = field(default_factory=list)  # list of `AwayBroker`: what is shown of these is as of when they last wrote
    beside: list[str] = field(default_factory=list)  # sentences: the log dirs that the brokers have besides these, which were named; only
    # from `segtail disk`
