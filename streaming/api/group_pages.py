"""A snapshot of consumer groups as the messages that a job serves: a page of all groups, and one group with its partitions."""

from collections.abc import Callable, Sequence

import numpy as np

from streaming.groups.group_facts import PendingCommit
from streaming.metrics.group_lag import ABSENT, KNOWN, REASONS, Longs
from streaming.metrics.group_snapshot import GroupSnapshot
from streaming.metrics.uncommitted import pending_offsets, uncommitted, waiting_by_group
from streaming.protocol.group_json import GroupDetail, GroupPage, GroupPartition, GroupSummary
from streaming.short_names import possible_names

MOST_GROUPS = 1000
"""The most groups of an answer."""

MOST_PARTITIONS = 10_000
"""The most partitions of an answer: those with the largest lag."""

_CLASSIC = "Classic"


def group_page(snapshot: GroupSnapshot, is_exported: Callable[[str], bool], after: str, limit: int) -> GroupPage:
    """The groups whose names come after ``after``, at most ``limit`` of them."""
    numbers = {snapshot.rows.group_names[number]: number for number in np.unique(snapshot.rows.group[snapshot.pairs.first]).tolist()}
    waiting = waiting_by_group(snapshot.pending)
    names = sorted(filter(is_exported, snapshot.groups.keys() | numbers.keys() | waiting.keys()))
    begin = int(np.searchsorted(np.array(names, object), after, side="right")) if after else 0
    some = names[begin : begin + max(1, min(limit, MOST_GROUPS))]
    of_pair = snapshot.rows.group[snapshot.pairs.first]
    groups = [_summary(snapshot, name, np.flatnonzero(of_pair == numbers.get(name, ABSENT)), waiting.get(name, ())) for name in some]
    more = begin + len(some) < len(names)
    return GroupPage(
        at_ms=snapshot.at_ms,
        groups=groups,
        total=len(names),
        next=some[-1] if more else "",
        omitted=snapshot.omitted,
        unread=sum(snapshot.unread.values()),
    )


def named_group(given: str, is_exported: Callable[[str], bool], details: Callable[[str], GroupDetail | None]) -> GroupDetail | None:
    """One group by its whole name or by the short form that is shown; None if there is none with this name, or it is not exported."""
    found = (details(name) for name in possible_names(given) if is_exported(name))
    return next((each for each in found if each is not None), None)


def group_detail(snapshot: GroupSnapshot, name: str) -> GroupDetail | None:
    """One group, None if there is none with this name."""
    facts, rows = snapshot.groups.get(name), snapshot.rows_of(name)
    waiting = waiting_by_group(snapshot.pending).get(name, ())
    if facts is None and not rows and not waiting:
        return None
    items = np.array(rows, np.int64)
    lags = snapshot.found.lags
    order = np.argsort(-np.maximum(lags.read_committed[items], lags.offsets[items]), kind="stable")[:MOST_PARTITIONS]
    pairs = np.unique(np.searchsorted(snapshot.pairs.first, items, side="right") - 1)
    return GroupDetail(
        at_ms=snapshot.at_ms,
        summary=_summary(snapshot, name, pairs, waiting),
        partitions=[*(_partition(snapshot, row, waiting) for row in np.sort(items[order]).tolist()), *uncommitted(snapshot, name, waiting)],
        omitted=max(len(rows) - MOST_PARTITIONS, 0),
        unread=sum(snapshot.unread.values()),
        clients=[] if facts is None else list(facts.clients),
        hosts=[] if facts is None else list(facts.hosts),
    )


def _summary(snapshot: GroupSnapshot, name: str, pairs: Longs, waiting: Sequence[PendingCommit]) -> GroupSummary:
    sums, facts = snapshot.pairs, snapshot.groups.get(name)
    without = len(uncommitted(snapshot, name, waiting))

    def total(values: Longs) -> int:
        some = values[pairs]
        return int(some[some >= 0].sum()) if (some >= 0).any() else ABSENT

    def count(values: Longs) -> int:
        return int(values[pairs].sum())

    def earliest(values: Longs) -> int:
        some = values[pairs]
        return int(some[some >= 0].min()) if (some >= 0).any() else ABSENT

    return GroupSummary(
        group=name,
        type=_CLASSIC if facts is None else facts.type,
        protocol="" if facts is None else facts.protocol,
        state="" if facts is None else facts.state,
        members=ABSENT if facts is None else facts.members,
        epoch=ABSENT if facts is None else facts.epoch,
        state_ms=ABSENT if facts is None else facts.state_ms,
        partitions=count(sums.partitions) + without,
        unknown=count(sums.partitions) - count(sums.known) + without,
        stopped=count(sums.stopped),
        held=count(sums.held),
        beyond_end=count(sums.beyond),
        below_start=count(sums.below),
        pending=len(waiting),
        oldest_pending_ms=min((each.commit_ms for each in waiting if each.commit_ms >= 0), default=ABSENT),
        lag_offsets=total(sums.lag_offsets),
        lag_records_read_committed=total(sums.read_committed),
        lag_records_read_uncommitted=total(sums.read_uncommitted),
        lag_bytes=total(sums.bytes),
        oldest_append_ms=earliest(sums.oldest_append_ms),
        oldest_timestamp_ms=earliest(sums.oldest_timestamp_ms),
        loss_ms=earliest(sums.loss_ms),
        limits_assumed=count(sums.assumed) > 0,
        last_commit_ms=int(sums.last_commit_ms[pairs].max(initial=ABSENT)),
        expiration_ms=earliest(sums.expiration_ms),
    )


def _partition(snapshot: GroupSnapshot, row: int, waiting: Sequence[PendingCommit]) -> GroupPartition:
    rows, logs, lags = snapshot.rows, snapshot.logs, snapshot.found.lags
    log, code = int(logs.of_row[row]), int(lags.reason[row])
    topic, partition = logs.topics[log], int(rows.partition[row])
    below = int(lags.below[row])
    return GroupPartition(
        topic=topic,
        partition=partition,
        topic_id=logs.topic_ids[log],
        broker=int(logs.broker[log]),
        committed=int(rows.offset[row]),
        commit_ms=int(rows.commit_ms[row]),
        expiration_ms=int(snapshot.found.expiration_ms[row]),
        log_start=int(logs.log_start[log]),
        high_watermark=int(logs.high_watermark[log]),
        last_stable_offset=int(logs.last_stable[log]),
        unknown="" if code == KNOWN else str(REASONS[code]),
        lag_offsets=int(lags.offsets[row]),
        lag_records_read_committed=int(lags.read_committed[row]),
        lag_records_read_uncommitted=int(lags.read_uncommitted[row]),
        lag_bytes=int(lags.bytes[row]),
        next_offset=int(lags.next_offset[row]),
        next_timestamp_ms=int(lags.next_timestamp_ms[row]),
        next_append_ms=int(lags.next_append_ms[row]),
        lost_records=ABSENT if below else 0,
        lost_offsets=below,
        loss_ms=int(snapshot.found.loss_ms[row]),
        limits_assumed=bool(snapshot.found.assumed[row]),
        stopped_since_ms=int(snapshot.progress.stopped_since_ms[row]) if snapshot.found.stopped[row] else ABSENT,
        stopped_earlier=bool(snapshot.found.stopped[row] and snapshot.progress.stopped_earlier[row]),
        held=bool(snapshot.found.held[row]),
        consumed_rate=float(snapshot.progress.rate[row]),
        appended_rate=float(snapshot.appended_rate[log]),
        pending=pending_offsets(waiting, topic, partition),
    )
