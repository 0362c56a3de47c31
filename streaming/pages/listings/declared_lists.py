"""Every list that answers, page, terminal and documents show: problems, partitions, transactions, disks, groups."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from streaming.broker.protocol.disk_json import FULL, KIND_WORDS, NEVER, DiskRow, LogDirUse
from streaming.broker.protocol.group_json import GROUPS_PATH, NOBODYS, GroupPage, GroupPartition, GroupSummary, is_finding
from streaming.broker.protocol.listing_json import (
    BROKERS_PATH,
    PARTITIONS_PATH,
    RETENTION_PATH,
    TOPICS_PATH,
    TRANSACTIONS_PATH,
    UNKNOWN,
    BrokerPage,
    BrokerRow,
    CountRow,
    PartitionPage,
    PartitionRow,
    RetentionPage,
    RetentionRow,
    SegmentRow,
    TopicPage,
    TopicRow,
    TransactionPage,
    TransactionRow,
)
from streaming.broker.protocol.status_json import (
    EVENTS_PATH,
    PROBLEMS_PATH,
    ClusterEvent,
    EventKind,
    EventPage,
    Problem,
    ProblemPage,
)
from streaming.common.units import (
    NONE,
    capitalized,
    format_be,
    format_count,
    format_duration,
    format_list,
    format_name,
    format_size,
    format_time,
    format_word,
)
from streaming.kafka.formats.admin_changes import ChangeKind
from streaming.pages.listings.listing import (
    MOST_NAMES,
    Cell,
    Listing,
    MakeCell,
    Times,
    after_start,
    at_least,
    count,
    judged_cell,
    length,
    of_partition,
    partition_cell,
    size,
    topic_cell,
    unsure,
    word,
    words,
)

_MOST_FOLLOWING = 2
"""So much of what follows from a root is in its line."""

_WORDS: dict[str, str] = {
    EventKind.PROBLEM_BEGAN: "began",
    EventKind.PROBLEM_WORSENED: "worse",
    EventKind.PROBLEM_ENDED: "ended",
    EventKind.BROKER_RESTARTED: "restart",
    ChangeKind.BROKER_ADDED: "new",
    ChangeKind.BROKER_REMOVED: "gone",
    EventKind.AGENT_RESTARTED: "restart",
    EventKind.LEADERS_CHANGED: "election",
    EventKind.CONTROLLER_CHANGED: "election",
    EventKind.JOB_STARTED: "restart",
    ChangeKind.TOPIC_CREATED: "created",
    ChangeKind.TOPIC_DELETED: "deleted",
    ChangeKind.PARTITIONS_ADDED: "partitions",
    ChangeKind.CONFIG_CHANGED: "config",
    ChangeKind.REASSIGNMENT_BEGAN: "reassignment",
    ChangeKind.REASSIGNMENT_ENDED: "reassignment",
    ChangeKind.FEATURE_CHANGED: "feature",
}

_NAMED = 5
_SUMMED = ("data", "aborted", "control", "readable", "waiting", "unreplicated", "remote_offsets")

_USES: dict[str, MakeCell] = {
    "replica_bytes": lambda row, _: Cell(
        text=f"{size(row.replica_bytes)}+" if row.replica_more and row.replica_bytes >= 0 else size(row.replica_bytes)
    ),
    "used": lambda row, _: Cell(text="not known" if row.used == UNKNOWN else words(row.used), note=row.used_why),
}

_COUNTED = {"data": "Data", "aborted": "Aborted", "control": "Control", "readable": "Readable"}
COUNTS = {
    "topic": Listing(
        name="count",
        noun="topic",
        row=CountRow,
        heads={"topic": "Topic", "partitions": "Partitions", **_COUNTED},
        cells={"topic": lambda row, _: Cell(text=word(row.topic))},
    ),
    "partition": Listing(
        name="count by partition",
        noun="partition",
        row=CountRow,
        heads={"topic": "Partition", "broker": "Broker", "first_offset": "From", "next_offset": "To", **_COUNTED},
        cells={"topic": of_partition},
    ),
}

_SUMS = {
    "taken": "On disk",
    "growth_day": "Growth a day",
    "frees_now": "Next check frees",
    "next_ms": "Next freed",
    "frees_day": "Free in 24h",
    "not_live": "Deleted or moving",
}


def no_groups(page: GroupPage) -> str:
    """Instead of rows, where no group is known: that there is none, or why that is not known. A clause without a period."""
    if page.coordinators < 0:
        return "no consumer groups are known"
    if not page.coordinators:
        return "no consumer groups are known: no log of a coordinator (__consumer_offsets) was read here"
    was = "was" if page.coordinators == 1 else "were"
    return f"no consumer groups: {format_count(page.coordinators, 'log')} of coordinators {was} read"


def admin_since(page: EventPage) -> str:
    """From when on it is known what admins did, in a sentence.

    The lists of problems, and of what has changed.
    """
    if page.admin_since_offset < 0:
        return "What admins did is not known: no metadata log can be read."
    if page.admin_since_offset == 0:
        return "What admins did is known since the cluster began."
    since = f"{format_time(page.admin_since_ms)}, " if page.admin_since_ms >= 0 else ""
    return f"What admins did is known since {since}offset {page.admin_since_offset:,} of the metadata log."


def what(row: Problem, _: Times) -> Cell:
    """The sentence of a problem from which nothing follows; else the beginning of it, with what does."""
    if not row.consequences:
        return Cell(text=row.what or NONE)
    more = len(row.consequences) + row.more_consequences - _MOST_FOLLOWING
    follows = "; ".join(each.text for each in row.consequences[:_MOST_FOLLOWING]) + (f"; and {more:,} more" if more > 0 else "")
    return Cell(text=f"{row.summary or row.what} -> {follows}")


def segment_deletion(segment: SegmentRow, row: PartitionRow, times: Times) -> str:
    """When retention deletes a segment, in the words of `next_deletion`: one past its limit that may not be deleted is blocked."""
    if segment.deletion_ms >= 0 and row.next_deletion_start_of >= 0:
        return after_start(row.next_deletion_start_of)
    if segment.deletable and not row.retention_blocked:
        return "due"
    if 0 <= segment.deletion_ms <= times.now_ms:
        return "blocked"
    return times.of(segment.deletion_ms) + _limit(segment.deletion_ms, by_size=segment.deletion_by_size)


def _limit(at_ms: int, *, by_size: bool) -> str:
    return "" if at_ms < 0 else " by size" if by_size else " by time"


def by_topic(rows: Iterable[CountRow]) -> list[CountRow]:
    """A row for each topic, in the order in which they come first, with the first error of its partitions."""
    topics: dict[str, list[CountRow]] = {}
    for row in rows:
        topics.setdefault(row.topic, []).append(row)
    return [
        replace(
            CountRow(topic=topic, partitions=len(those), error=next((row.error for row in those if row.error), "")),
            **{name: _sum([getattr(row, name) for row in those]) for name in _SUMMED},
        )
        for topic, those in topics.items()
    ]


def _sum(values: list[int]) -> Any:
    return -1 if min(values) < 0 else sum(values)


def uncounted(rows: Iterable[CountRow], advice: Callable[[CountRow], str] = lambda _: "") -> Iterator[str]:
    """What is not counted, or not to its end, and why: a sentence without a period for each reason, whether a job or a command has counted.

    The lists of partitions, of what is kept of them, of topics, of brokers, and of how many records there are.

    Args:
        rows: of partitions.
        advice: what can be done about one of them, as further sentences.
    """
    alike: dict[tuple[bool, str], list[CountRow]] = {}
    for row in rows:
        if row.error:
            alike.setdefault((row.data >= 0, f"{row.error}{advice(row)}"), []).append(row)
    for (counted, reason), some in alike.items():
        names = [f"{row.topic}-{row.partition}" for row in some]
        one = len(some) == 1
        have, are = ("has", "is") if one else ("have", "are")
        what = f"{have} damage after what is counted" if counted else f"{are} not counted"
        yield (
            f"{names[0]} of broker {some[0].broker} {what}: {reason}"
            if one
            else (f"{len(some):,} partitions {what}: {format_list(names, _NAMED)}: {reason}")
        )


def advice(row: TransactionRow) -> str:
    """What to know before its command is run, as sentences; "" if there is nothing."""
    return f"{capitalized(row.advice)}." if row.advice else ""


def open_long(late_after_ms: int, young: int) -> str:
    """Which transactions a list has, and how many others are open: the end of a sentence without its period."""
    listed = f"open for longer than {length(late_after_ms)}" if late_after_ms >= 0 else "open"
    return listed + (f"; {young:,} {format_be(young)} younger" if young else "")


def _next(row: DiskRow, times: Times) -> Cell:
    if row.next_ms < 0 and row.next_start_of >= 0:
        return Cell(text=after_start(row.next_start_of))
    due = row.next_ms >= 0 and row.frees_now > 0
    return Cell(text="due" if due else times.deletion(row.next_ms), at_ms=row.next_ms)


_CELLS: dict[str, MakeCell] = {
    "topic": lambda row, _: topic_cell(row.topic) if row.topic else Cell(text=NONE),
    "log_dir": lambda row, _: Cell(text=format_name(row.log_dir, 300) if row.log_dir else NONE),
    "kind": lambda row, _: Cell(text=KIND_WORDS.get(row.kind, row.kind) or NONE),
    "not_live": lambda row, _: Cell(text=format_size(row.not_live) if row.not_live else NONE),
    "next_ms": _next,
    "policy": lambda row, _: unsure(Cell(text=row.policy or NONE), assumed=row.limits_assumed),
}


def _by(by: str, heads: dict[str, str], **cells: MakeCell) -> Listing:
    return Listing(name=f"disk by {by}", noun=by, row=DiskRow, heads=heads, cells=_CELLS | cells)


DISK = {
    "topic": _by("topic", {"topic": "Topic", **_SUMS, "replicas": "Replicas", "on_no_disk": "Not flushed", "policy": "Policy"}),
    "partition": _by("partition", {"topic": "Partition", **_SUMS, "broker": "Broker", "log_dir": "Log dir"}, topic=of_partition),
    "dir": _by("log dir", {"log_dir": "Log dir", **_SUMS, "broker": "Broker", "replicas": "Replicas"}),
    "kind": _by("kind", {"kind": "Kind", "taken": "On disk", "apparent": "Length of the files"}),
}
"""The list by what its rows are."""


def _outlook(row: LogDirUse, times: Times) -> Cell:
    if not row.up:
        return Cell(text="cannot be read", note=row.problem)
    soon = f"{times.deadline(row.full_earliest_ms)} if it goes on to fill as now" if row.full_earliest_ms >= 0 else ""
    if row.outlook == FULL:
        return Cell(text=times.deadline(row.full_ms), at_ms=row.full_ms, note=soon)
    if row.outlook == NEVER:
        return Cell(text="not within a year")
    if soon:
        return Cell(text=NONE, note=soon)
    return Cell(text=NONE, note="not all of its logs can be read" if row.growth_unread else "its growth is not known")


def _growth(row: LogDirUse, _: Times) -> Cell:
    notes = [f"without {row.growth_unknown:,} replicas"] if row.growth_unknown and row.growth_day >= 0 else []
    notes += [f"others on its disk take {format_size(row.others_day)} a day"] if row.others_day > 0 else []
    return Cell(text=size(row.growth_day), note=", ".join(notes))


LOG_DIRS = Listing(
    name="log dirs",
    noun="log dir",
    row=LogDirUse,
    cells={"log_dir": _CELLS["log_dir"], "growth_day": _growth, "outlook": _outlook},
)


def counted_in(row: GroupSummary) -> str:
    """In how many partitions that is left, and of how many it is not known: these are not in the sum."""
    every = format_count(row.partitions, "partition")
    return f"{every}, {row.unknown:,} of them not counted" if row.unknown and row.records_left >= 0 else every


def verdict_cell(row: GroupSummary | GroupPartition, times: Times) -> Cell:
    """The worst verdict, and since when it is so; one that is no finding has a question mark where limits are assumed."""
    cell = unsure(Cell(text=words(row.verdict)), assumed=row.limits_assumed and not is_finding(row))
    return cell if row.since_ms < 0 else Cell(text=cell.text, note=times.of(row.since_ms), at_ms=row.since_ms)


def besides_words(row: GroupSummary | GroupPartition) -> str:
    """What is not in the records that are left: those that wait, and those that only the other isolation reads; "" for nothing."""
    waits = f"up to {row.records_waiting:,} more wait for open transactions" if row.records_waiting else ""
    least, most = row.lag_records_read_committed, row.lag_records_read_uncommitted
    others = most - least - row.records_waiting if min(least, most) >= 0 else 0
    isolation = f"as read with {row.isolation}" if row.isolation else f"{others:,} more if it reads with read_uncommitted"
    return ", ".join(filter(None, [waits, isolation if others > 0 else ""]))


def loss_cell(row: GroupSummary | GroupPartition, times: Times) -> Cell:
    """When the first unread record may be deleted; one that is due goes with the next check of its broker."""
    if row.loss_ms < 0 and row.loss_start_of >= 0:
        return unsure(Cell(text=after_start(row.loss_start_of)), assumed=row.limits_assumed)
    due = times.relative and 0 <= row.loss_ms <= times.now_ms
    return unsure(Cell(text="next check" if due else times.of(row.loss_ms), at_ms=row.loss_ms), assumed=row.limits_assumed)


def oldest_cell(at_ms: int, times: Times) -> Cell:
    """How old a record is; one whose clock is ahead is no event to come."""
    ahead = times.relative and at_ms > times.now_ms
    return Cell(text=f"{length(at_ms - times.now_ms)} ahead" if ahead else times.of(at_ms), at_ms=at_ms)


def _left(row: GroupPartition, _: Times) -> Cell:
    at_most = f", at most {row.uncommitted_records:,} in the log" if row.uncommitted_records >= 0 else ""
    return Cell(text=count(row.records_left), note=besides_words(row) or row.unknown.replace("_", " ") + at_most)


GROUP_PARTITIONS = Listing(
    name="group partitions",
    noun="partition",
    row=GroupPartition,
    default="verdict",
    cells={
        "topic": of_partition,
        "lag_records_read_committed": _left,
        "next_append_ms": lambda row, times: oldest_cell(row.next_ms, times),
        "loss_ms": loss_cell,
        "verdict": verdict_cell,
    },
)


def about(row: Problem, _: Times) -> Cell:
    """The smallest thing that a problem names."""
    if row.topic and row.partition >= 0:
        return partition_cell(row.topic, row.partition)
    named = ((row.topic, "topic"), (row.group, "group"), (row.log_dir, "log dir"), (row.agent, "agent"))
    text = next((f"{noun} {format_name(name)}" for name, noun in named if name), "")
    return Cell(text=text or (f"broker {row.broker}" if row.broker >= 0 else NONE))


def since_or_due(row: Problem, times: Times) -> Cell:
    """When something is lost; since when it is so where nothing is."""
    if row.deadline_ms < 0:
        return Cell(text=times.of(row.since_ms), at_ms=row.since_ms)
    return Cell(text=f"due {times.deadline(row.deadline_ms)}", at_ms=row.deadline_ms)


def _change(row: ClusterEvent, _: Times) -> Cell:
    word = _WORDS.get(row.kind, row.kind)
    return Cell(text=f"{word} ({row.severity})" if row.severity else word)


def _changed(row: ClusterEvent, _: Times) -> Cell:
    lasted = f", after {format_duration(row.lasted_ms / 1000)}" if row.lasted_ms >= 0 else ""
    return Cell(text=f"{row.what}{lasted}")


def _times(row: ClusterEvent, times: Times) -> Cell:
    return Cell(text=f"{format_count(row.times, 'time')} since {times.of(row.first_ms)}" if row.times > 1 else NONE)


PROBLEMS = Listing(
    name="problems",
    noun="problem",
    row=Problem,
    path=PROBLEMS_PATH,
    page=ProblemPage,
    cells={"severity": lambda row, _: Cell(text=row.gravity or NONE), "what": what, "topic": about, "since_ms": since_or_due},
)


EVENTS = Listing(
    name="events",
    noun="event",
    row=ClusterEvent,
    path=EVENTS_PATH,
    page=EventPage,
    cells={"kind": _change, "at_ms": lambda row, times: Cell(text=times.of(row.at_ms), at_ms=row.at_ms), "what": _changed, "times": _times},
)


def next_deletion(row: PartitionRow | RetentionRow | TopicRow, times: Times) -> Cell:
    """When retention deletes next, and by which limit; a segment that is past it and stays is blocked."""
    at_ms = row.next_deletion_ms
    if at_ms < 0 and row.next_deletion_start_of >= 0:
        return Cell(text=after_start(row.next_deletion_start_of))
    if at_ms <= times.now_ms and not isinstance(row, TopicRow) and row.retention_blocked:
        return Cell(text="blocked", note=words(row.retention_blocked))
    return Cell(text=times.deletion(at_ms) + _limit(at_ms, by_size=row.next_deletion_by_size), at_ms=at_ms)


def _held_back(row: PartitionRow, _: Times) -> Cell:
    note = f"{format_count(row.hanging_transactions, 'transaction')} hanging" if row.hanging_transactions > 0 else ""
    return Cell(text=at_least(row.unread_offsets, more=row.unread_more), note=note)


def _overdue(row: RetentionRow, _: Times) -> Cell:
    """How long a deletion is overdue; with a question mark where limits are assumed. A log that is only kept too long has no time."""
    if row.retention_overdue_ms == 0:
        return Cell(text=NONE)
    return unsure(Cell(text=length(row.retention_overdue_ms)), assumed=row.limits_assumed and row.retention_overdue_ms > 0)


def _phase(row: BrokerRow, times: Times) -> Cell:
    return Cell(text=words(row.phase), note="" if row.phase_ms < 0 else times.of(row.phase_ms), at_ms=row.phase_ms)


def _restart(row: BrokerRow, _: Times) -> Cell:
    return Cell(text=words(row.restart), note=row.restart_reason.replace("_", " "))


def _agent(row: BrokerRow, _: Times) -> Cell:
    return Cell(text=format_name(row.agent), note="" if row.agent_up else "does not answer") if row.agent else Cell(text=NONE)


_LIMITS = {
    "next_deletion_ms": next_deletion,
    "retention_limit_ms": lambda row, _: unsure(Cell(text=length(row.retention_limit_ms)), assumed=row.limits_assumed),
    "retention_limit_bytes": lambda row, _: unsure(Cell(text=size(row.retention_limit_bytes)), assumed=row.limits_assumed),
    "kind": judged_cell,
}


PARTITIONS = Listing(
    name="partitions",
    noun="partition",
    row=PartitionRow,
    path=PARTITIONS_PATH,
    page=PartitionPage,
    default="kind",
    off_page=("log_end_offset", "hanging_transactions", "oldest_record_ms", "segments"),
    cells={"topic": of_partition, "unread_offsets": _held_back, "next_deletion_ms": next_deletion, "kind": judged_cell},
)


RETENTION = Listing(
    name="retention",
    noun="retention",
    row=RetentionRow,
    path=RETENTION_PATH,
    page=RetentionPage,
    default="kind",
    off_page=("segments", "cleanup_policy", "broker"),
    cells={"topic": of_partition, "retention_overdue_ms": _overdue, **_LIMITS},
)


TOPICS = Listing(
    name="topics",
    noun="topic",
    row=TopicRow,
    path=TOPICS_PATH,
    page=TopicPage,
    default="kind",
    off_page=(
        *("records_skew", "growth_day", "partition_bytes", "batch_bytes", "codecs", "readers", "quiet_ms"),
        *("oldest_record_ms", "retention_limit_bytes", "next_deletion_ms"),  # which the list of retention has
        "advised",
    ),
    cells={
        "topic": lambda row, _: Cell(text=word(row.topic)) if row.topics >= 0 else topic_cell(row.topic),
        "unread_offsets": lambda row, _: Cell(text=at_least(row.unread_offsets, more=row.unread_more)),
        **_LIMITS,
        **_USES,
    },
)


BROKERS = Listing(
    name="brokers",
    noun="broker",
    row=BrokerRow,
    path=BROKERS_PATH,
    page=BrokerPage,
    default="kind",
    cells={"phase": _phase, "agent": _agent, "restart": _restart, "kind": judged_cell},
)


def _producer(row: TransactionRow, _: Times) -> Cell:
    return Cell(text=f"{row.producer_id}, epoch {row.producer_epoch}" if row.producer_epoch >= 0 else str(row.producer_id))


def _verdict(row: TransactionRow, times: Times) -> Cell:
    stated = (words(row.verdict or "not known"), *(["stuck"] if row.stuck else []))
    return Cell(text=", ".join((*stated, *([f"seen {times.of(row.as_of_ms)}"] if row.as_of_ms >= 0 else []))))


def _groups(names: Sequence[str]) -> Cell:
    return Cell(
        text=format_list([format_name(each) for each in names], MOST_NAMES) or NONE,
        groups=tuple(names[:MOST_NAMES]),
        note=f"and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else "",
    )


def _what_to_do(row: TransactionRow, _: Times) -> Cell:
    if row.command:
        return Cell(text="", command=row.command, note=advice(row))
    return Cell(text=row.no_command or NONE, note=advice(row))


TRANSACTIONS = Listing(
    name="transactions",
    noun="transaction",
    row=TransactionRow,
    path=TRANSACTIONS_PATH,
    page=TransactionPage,
    default="verdict",
    off_page=("coordinator_state", "broker", "first_offset", "producer_id"),
    cells={
        "topic": of_partition,
        "producer_id": _producer,
        "transactional_id": lambda row, _: Cell(text=format_word(row.transactional_id) if row.transactional_id else NONE),
        "verdict": _verdict,
        "holds_offsets": lambda row, _: Cell(text=at_least(row.holds_offsets, more=row.holds_more)),
        "held_groups": lambda row, _: _groups(row.held_groups or ()),
        "groups": lambda row, _: _groups(row.groups),
        "command": _what_to_do,
    },
)


def records_left_cell(row: GroupSummary, _: Times) -> Cell:
    """What is left to read, by the isolation of the group; a plus sign where that of some partition is not known.

    The lists of consumer groups, and of a group's partitions.
    """
    return Cell(text=at_least(row.records_left, more=row.unknown > 0), note=besides_words(row))


def _group_loss(row: GroupSummary, times: Times) -> Cell:
    """The same of a group: a loss that no consumer misses says so, and is not the next loss of the cluster's numbers."""
    cell = loss_cell(row, times)
    return replace(cell, note="nobody misses it") if cell.text != NONE and row.use in NOBODYS else cell


GROUPS = Listing(
    name="groups",
    noun="consumer group",
    row=GroupSummary,
    path=GROUPS_PATH,
    page=GroupPage,
    default="verdict",
    cells={
        "group": lambda row, _: Cell(text=format_name(row.group, 255), group=row.group),
        "lag_records_read_committed": records_left_cell,
        "oldest_ms": lambda row, times: oldest_cell(row.oldest_ms, times),
        "loss_ms": _group_loss,
        "verdict": verdict_cell,
    },
)


LISTS = {each.name: each for each in (PROBLEMS, EVENTS, PARTITIONS, TRANSACTIONS, RETENTION, TOPICS, BROKERS, GROUPS)}
