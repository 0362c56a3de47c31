"""What is open in some log dirs, since when and whose: read from disk alone, and judged by what the coordinators wrote.

The coordinators' logs are read before those of the data. A marker is written before its coordinator says that the transaction is complete,
so what is still open in a log that is read afterwards was not closed by any marker that a coordinator has told of.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.disk.logdirs import LogDir
from streaming.errors import FormatError
from streaming.kafka.coordinator import CoordinatorEntry, coordinator_entries
from streaming.kafka.metadata import ClusterImage
from streaming.kafka.names import OFFSETS_TOPIC, TRANSACTION_TOPIC
from streaming.kafka.walk import Bytes
from streaming.rest.metadata import Report
from streaming.rest.replicas import NOTHING_STATIC, Disk, Replica, Static, high_watermarks_of, listed_segments, look
from streaming.rows import COORDINATOR, NOT_UNDERSTOOD, TRANSACTIONS
from streaming.rules.coordinator import NO_STATE, STATES, Coordinators, all_read, newest
from streaming.rules.transactions import Transactions
from streaming.rules.verdicts import OpenTransactions, Verdict, abort_command, judge, stuck, verdicts
from streaming.watcher.bootstrap import Past, past_at
from streaming.watcher.locate import window
from streaming.watcher.pending_commits import waiting_groups
from streaming.watcher.replay import batches_between

_Read = TypeVar("_Read")

_TRIES = 3
_END = 2**63 - 1
_ANY_SERVER = "HOST:PORT"
_INTERNAL = re.compile("(?i)controller|replication|inter.?broker|internal")
"""Names of listeners that are mostly not for clients; which one brokers use among themselves stands in no registration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """One open transaction; times in Unix milliseconds. ``behind`` is how many offsets lie between its first one and the high watermark.

    ``transactional_id`` and ``coordinator_state`` are None where no coordinator knows its producer. ``stuck`` as
    `streaming.rules.verdicts` defines it; there is an ``abort_command`` for what is hanging, and for nothing else. ``groups``: of one that
    hangs in `__consumer_offsets`, consumer groups whose offsets wait for it.
    """

    broker: int
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    start_ms: int
    last_ms: int
    behind: int
    transactional_id: str | None
    coordinator_state: str | None
    verdict: Verdict
    stuck: bool
    abort_command: str | None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All open transactions, the worst first, of so many partitions.

    ``doubtful``: a log was not understood or not readable, or there is a transaction that may be hanging as far as can be known here.
    """

    transactions: tuple[OpenTransaction, ...]
    partitions: int
    doubtful: bool

    @property
    def hanging(self) -> tuple[OpenTransaction, ...]:
        """Those that nobody will ever end."""
        return tuple(one for one in self.transactions if one.verdict is Verdict.HANGING)


@dataclass(frozen=True, slots=True)
class After:
    """How long a transaction has to be silent until it counts as hanging, and as stuck; milliseconds."""

    hanging_ms: int
    stuck_ms: int


def find_open(
    log_dirs: Sequence[LogDir],
    topic: str | None,
    *,
    now_ms: int,
    after: "After",
    assume_replicated: bool,
    report: Report,
    static: Static = NOTHING_STATIC,
) -> Answer:
    """Find what is open in all topics, or in one.

    Args:
        now_ms: the time at which it is judged.
        after: how long what is hanging or stuck has been silent.
        report: is told what was not understood.
        static: what the brokers' ``server.properties`` set: below min.insync.replicas a high watermark stands.
    """
    buffer = window()
    disk = look(log_dirs, lambda name: topic in (None, name) or name == TRANSACTION_TOPIC, now_ms, buffer, report, static)
    coordinators = _coordinators(disk, buffer, report)
    asked = [one for one in disk.replicas if topic in (None, one.partition.topic)]
    logs = [_read(one, report) if one.speaks else None for one in asked]
    read = [one if log is None else replace(one, end_offset=log.next_offset) for one, log in zip(asked, logs, strict=True)]
    marks = high_watermarks_of(read, assume_replicated=assume_replicated).tolist()
    found = [(one, log.opened, mark) for one, log, mark in zip(read, logs, marks, strict=True) if log is not None and len(log.opened)]
    transactions = list(_judged(disk.image, found, coordinators, now_ms, after))
    transactions.sort(key=lambda one: (one.verdict is not Verdict.HANGING, one.start_ms, one.topic, one.partition, one.first_offset))
    return Answer(
        transactions=tuple(transactions),
        partitions=sum(one.speaks for one in asked),
        doubtful=(
            any(one.speaks and (log is None or not log.whole) for one, log in zip(asked, logs, strict=True))
            or any(topic in (None, one.topic) for one in disk.unreadable)
            or any(one.verdict is Verdict.UNKNOWN and now_ms - one.last_ms > after.hanging_ms for one in transactions)
        ),
    )


def _coordinators(disk: Disk, buffer: Bytes, report: Report) -> Coordinators:
    """What the current replicas of `__transaction_state` say."""
    tables, unreadable = [], 0
    for replica in disk.replicas:
        if replica.partition.topic != TRANSACTION_TOPIC or not replica.speaks or not replica.current:
            continue
        try:
            entries, left_out = _steadily(partial(_entries, replica, buffer))
        except (FormatError, OSError) as error:
            report(f"{replica.partition.path}: {error}: what this coordinator holds is not known")
            continue
        if left_out:
            report(f"{replica.partition.path}: {left_out} records of the coordinator cannot be read")
        tables.append(_table(entries))
        unreadable += left_out
    table = newest(tables)
    for entry in table.filter(pc.equal(table["state"], NOT_UNDERSTOOD)).to_pylist():
        report(f"{TRANSACTION_TOPIC}: the entry of {entry['transactional_id']!r} at offset {entry['offset']} is not understood")
    return Coordinators.of(table, complete=all_read(_coordinator_partitions(disk.image), len(tables), unreadable))


def _coordinator_partitions(image: ClusterImage | None) -> int | None:
    if image is None:
        return None
    topic_id = image.topic_id(TRANSACTION_TOPIC)
    return 0 if topic_id is None else len(image.partition_numbers(topic_id))


def _entries(replica: Replica, buffer: Bytes) -> tuple[list[CoordinatorEntry], int]:
    """The newest entries of a coordinator's log, and how many records nobody can read. Raises FormatError, OSError."""
    segments = listed_segments(replica.partition.path)
    newest_of: dict[str, CoordinatorEntry] = {}
    reached, unreadable = segments[0].base_offset, 0
    for batches, _ in batches_between(segments, reached, _END, buffer):
        found = coordinator_entries(batches, buffer)
        newest_of.update((entry.transactional_id, entry) for entry in found.entries)
        unreadable += found.unreadable
        reached = int(batches.last_offset[-1]) + 1
    if reached < replica.end_offset and all(segment.base_offset != replica.end_offset for segment in segments):
        raise FormatError(f"no whole batch at offset {reached}")
    return list(newest_of.values()), unreadable


def _table(entries: Sequence[CoordinatorEntry]) -> pa.Table:
    columns = {field.name: [getattr(entry, field.name) for entry in entries] for field in fields(CoordinatorEntry)}
    return pa.Table.from_pydict(columns, COORDINATOR)


def _read(replica: Replica, report: Report) -> Past | None:
    """What is open at the end of a log, None where it cannot be read."""
    path = replica.partition.path
    try:
        past = _steadily(lambda: past_at(path, listed_segments(path), None, producers_limit=None))
    except OSError as error:
        report(f"{path}: {error.strerror or error}")
        return None
    for doubt in past.doubts:
        report(doubt)
    return past


def _steadily(read: Callable[[], _Read]) -> _Read:
    """Read something of a broker that is up, which may delete a segment, or put another in its place, while it is read."""
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError):
            return read()
    return read()


def _judged(
    image: ClusterImage | None,
    found: Sequence[tuple[Replica, Transactions, int]],
    coordinators: Coordinators,
    now_ms: int,
    after: After,
) -> Iterator[OpenTransaction]:
    """The open transactions of each log beside what the coordinators say; the last of the three is the log's high watermark."""
    rows = np.concatenate([np.empty(0, TRANSACTIONS), *(opened for _, opened, _ in found)])
    owners = [(replica, mark) for replica, opened, mark in found for _ in range(len(opened))]
    judged = judge(
        OpenTransactions(
            partition=[str(replica) for replica, _ in owners],
            **{field.name: rows[field.name].astype(np.int64) for field in fields(OpenTransactions) if field.name != "partition"},
        ),
        coordinators,
        np.zeros(len(rows), np.int64),
    )
    # the marker may stand in a replica that is further
    judged = replace(judged, certain=judged.certain & np.array([replica.current for replica, _ in owners], np.bool_))
    verdict = verdicts(judged, now_ms, after.hanging_ms)
    stays = stuck(judged, verdict, now_ms, hanging_after_ms=after.hanging_ms, stuck_after_ms=after.stuck_ms)
    names = coordinators.names(judged.item, rows["producer_id"].astype(np.int64))
    for item, (replica, mark) in enumerate(owners):
        own = Verdict(int(verdict[item]))
        first_offset, state = int(rows["first_offset"][item]), int(judged.state[item])
        yield OpenTransaction(
            broker=replica.broker,
            topic=replica.partition.topic,
            partition=replica.partition.partition,
            producer_id=int(rows["producer_id"][item]),
            producer_epoch=int(rows["producer_epoch"][item]),
            first_offset=first_offset,
            start_ms=int(judged.start_ms[item]),
            last_ms=int(judged.last_ms[item]),
            behind=max(0, mark - max(first_offset, replica.log_start)),
            transactional_id=names[item] or None,
            coordinator_state=None if state == NO_STATE else STATES[state],
            verdict=own,
            stuck=bool(stays[item]),
            abort_command=_abort(image, replica, first_offset) if own is Verdict.HANGING else None,
            groups=_groups(replica, int(rows["producer_id"][item]), first_offset) if own is Verdict.HANGING else (),
        )


def _groups(replica: Replica, producer_id: int, first_offset: int) -> tuple[str, ...]:
    if replica.partition.topic != OFFSETS_TOPIC:
        return ()
    with suppress(OSError):  # what cannot be read was reported when its transactions were
        found = waiting_groups(listed_segments(replica.partition.path), producer_id, first_offset)
        return (*found.groups, "...") if found.more else found.groups
    return ()


def _abort(image: ClusterImage | None, replica: Replica, first_offset: int) -> str:
    leader = None if image is None or replica.state is None else image.broker(replica.state.leader)
    chosen = min(leader.endpoints, key=lambda each: _INTERNAL.search(each.name) is not None, default=None) if leader is not None else None
    server = _ANY_SERVER if chosen is None else f"{chosen.host}:{chosen.port}"
    return abort_command(server, replica.partition.topic, replica.partition.partition, first_offset)
