"""The logs that groups have committed offsets of, each with the observed replica that counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, CODES, Codes, LagReason, coded, first
from streaming.cluster.view.exported import Observed
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import NOT_REPLICATED, NOT_UNDERSTOOD

TopicPartition = tuple[str, int]

_PARTITION_BITS = 32
_PARTITIONS = (1 << _PARTITION_BITS) - 1


def group_logs(
    rows: CommitRows,
    numbers: tuple[Longs, Longs],
    observed: Observed,
    topic_ids: Sequence[str],
    agents: Sequence[str],
    *,
    heard: Collection[str],
    cluster_topics: Mapping[str, int] | None,
    topic_names: Mapping[str, str],
    damaged: Collection[int],
) -> GroupLogs:
    """Find the replica of each log that counts.

    Args:
        numbers: the codes and the log of each commit, as `LogNumbers` gives them.
        topic_ids: those of the observed logs.
        agents: the name of each agent, by the number in the observed logs.
        heard: the agents that answer.
        cluster_topics: how many partitions each topic of the cluster has, None if that is not known.
        topic_names: names of topics by their ids, besides those of the observed logs.
        damaged: observed logs that end with what is no batch.
    """
    code, of_row = numbers
    names = _names(rows, code, observed, topic_ids, topic_names)
    partition = (code & _PARTITIONS).astype(np.uint32).view(np.int32).astype(np.int64)
    replicas = current_replicas(observed, {*names})
    item = np.array([replicas.get(log, ABSENT) for log in zip(names, partition.tolist(), strict=True)], np.int64)
    there = item != ABSENT
    agent_numbers = np.append(observed.columns["agent"], ABSENT)[item]
    answers = np.append(np.array([agent in heard for agent in agents], np.bool_), False)[agent_numbers]
    log_end = _taken(observed.columns["log_end_offset"], item)
    high_watermark, last_stable = (_taken(observed.replica_offsets[name], item) for name in ("high_watermark", "last_stable_offset"))
    gone = _gone(names, partition, cluster_topics) & ~there
    leads = observed.roles.leads | (observed.roles.leader_epoch < 0)
    unread = _unreadable(names, partition, observed, item)
    unheard = ~(there & answers & (high_watermark >= 0) & (last_stable >= 0))
    return GroupLogs(
        code=code,
        of_row=of_row,
        topics=names,
        topic_ids=["" if each == ABSENT else topic_ids[each] for each in item.tolist()],
        partition=partition,
        item=item,
        broker=_taken(observed.columns["broker"], item),
        agents=["" if each == ABSENT else agents[each] for each in agent_numbers.tolist()],
        reason=first(coded(gone, LagReason.TOPIC_GONE), coded(unread, LagReason.UNREADABLE), coded(unheard, LagReason.LEADER)),
        log_start=_taken(observed.columns["log_start_offset"], item),
        start_after_crash=_taken(observed.columns["start_after_crash"], item),
        log_end=log_end,
        high_watermark=high_watermark,
        last_stable=last_stable,
        read_ms=_taken(np.where(leads, observed.read_ms, ABSENT), item),
        open_from=_open_from(observed, item, np.flatnonzero(there & (last_stable < log_end))),
        damaged=np.isin(item, [*damaged]),
        epochs=[b"" if each == ABSENT else observed.decided.epochs[each] for each in item.tolist()],
        oldest_ms=_taken(observed.columns["oldest_timestamp"], item),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupLogs:
    """The logs, one item for each, in the order of ``code``, which stands for topic and partition.

    ``read_ms``: up to when they are those of the leader, Unix milliseconds; `ABSENT` where that is not known, as of a follower's. Where
    nothing shows who leads, it is the leader.
    """

    code: Longs
    of_row: Longs  # the log of each commit
    topics: list[str]
    topic_ids: list[str]
    partition: Longs
    item: Longs  # the index of its `current_replicas` among the observed logs, `ABSENT` if there is none
    broker: Longs
    agents: list[str]
    reason: Codes  # the code of why nothing can be known of it. The offsets are those of that replica
    log_start: Longs
    start_after_crash: Longs  # as in `Ends`
    log_end: Longs
    high_watermark: Longs
    last_stable: Longs
    read_ms: Longs
    open_from: Longs  # the first offset of the oldest transaction without a marker, `ABSENT` if there is none
    damaged: Flags  # as in `Ends`
    epochs: Sequence[bytes]  # arrays of `catalog_tables.EPOCHS`, packed
    oldest_ms: Longs  # the timestamp of the first record, `ABSENT` if that is not known

    def __len__(self) -> int:
        return len(self.code)


def _names(rows: CommitRows, code: Longs, observed: Observed, topic_ids: Sequence[str], topic_names: Mapping[str, str]) -> list[str]:
    """The topic of each log. Of a share group's, only the id is known: the observed logs have the name, else the id stands for it."""
    numbers = (code >> _PARTITION_BITS).tolist()
    nameless = {number for number in numbers if not rows.topic_names[number]}
    if not nameless:
        return [rows.topic_names[number] for number in numbers]
    by_id = {**topic_names, **dict(zip(topic_ids, observed.names, strict=True))}
    some = np.flatnonzero(np.isin(rows.topic, np.array(list(nameless), np.int64)))
    ids: dict[int, str] = dict(
        zip(rows.topic[some].tolist(), (rows.topic_ids[number] for number in rows.topic_id[some].tolist()), strict=True)
    )
    return [rows.topic_names[number] or by_id.get(ids[number]) or ids[number] for number in numbers]


def current_replicas(observed: Observed, topics: Collection[str]) -> dict[TopicPartition, int]:
    """The replica of each partition of some topics that counts, as an index in ``observed``.

    It is the leader's, or where that is not read one in sync. Where nothing shows who leads, it is the one that would win an election.
    """
    roles, concerned = observed.roles, np.array([name in topics for name in observed.names], np.bool_)
    counts = roles.speaks & (roles.leads | (observed.read_ms >= 0))
    items = np.concatenate([np.flatnonzero(roles.leads & concerned), np.flatnonzero(counts & concerned)])
    partitions = observed.columns["partition"][items].tolist()
    return {(observed.names[item], partition): item for item, partition in zip(items.tolist(), partitions, strict=True)}


def _taken(column: Longs, item: Longs) -> Longs:
    taken: Longs = np.append(column, ABSENT)[item]
    return taken


def _gone(names: Sequence[str], partition: Longs, cluster_topics: Mapping[str, int] | None) -> Flags:
    if cluster_topics is None:
        return np.zeros(len(names), np.bool_)
    counts = np.array([cluster_topics.get(name, 0) for name in names], np.int64)
    gone: Flags = partition >= counts
    return gone


def _unreadable(names: Sequence[str], partition: Longs, observed: Observed, item: Longs) -> Flags:
    """Whether the replica that counts cannot be read now; or one that is there, where none counts."""
    refused = np.flatnonzero(observed.unreadable)
    if not len(refused):  # as nearly always
        return np.zeros(len(item), np.bool_)
    logs = {(observed.names[each], int(observed.columns["partition"][each])) for each in refused.tolist()}
    either = np.array([log in logs for log in zip(names, partition.tolist(), strict=True)], np.bool_)
    return np.where(item == ABSENT, either, np.append(observed.unreadable, False)[item])


def _open_from(observed: Observed, item: Longs, some: Longs) -> Longs:
    """Where the oldest transaction without a marker begins in each log; only those of ``some`` can have one."""
    found = np.full(len(item), ABSENT, np.int64)
    for log in some.tolist():
        transactions = observed.carried[item[log]].transactions
        still_open = transactions["first_offset"][transactions["marker_offset"] < 0]
        if len(still_open):
            found[log] = still_open.min()
    return found


class LogNumbers:
    """The logs of commits, computed again only if the commits are of others."""

    def __init__(self) -> None:
        self._key: Longs = np.empty(0, np.int64)
        self._found: tuple[Longs, Longs] = (np.empty(0, np.int64), np.empty(0, np.int64))

    def of(self, rows: CommitRows) -> tuple[Longs, Longs]:
        """The codes of all logs in ascending order, and the index of each commit's log."""
        if not np.array_equal(rows.key, self._key):
            codes = rows.topic.astype(np.int64) << _PARTITION_BITS | rows.partition.astype(np.int64) & _PARTITIONS
            found, of_row = np.unique(codes, return_inverse=True)
            self._key, self._found = rows.key, (found, of_row.reshape(-1))
        return self._found


def commit_reasons(rows: CommitRows, logs: GroupLogs, observed: Flags, unread: Flags, query: Flags, made_anew: Flags) -> Codes:
    """The code of why each commit cannot count.

    ``observed`` and ``unread`` are of the coordinators' logs, ``query`` and ``made_anew`` of the commits.

    A topic that is not there is gone for a group of this cluster. A query may read another cluster: its checkpoint names none.
    """
    if not len(rows):
        return np.empty(0, np.int8)
    gone = logs.reason[logs.of_row] == CODES[LagReason.TOPIC_GONE]
    return first(
        coded(~observed[rows.log] & query, LagReason.CHECKPOINT),
        coded(gone & query, LagReason.ELSEWHERE),
        coded(~observed[rows.log], LagReason.NOT_OBSERVED),
        coded(unread[rows.log], LagReason.UNREAD),
        coded(rows.offset == NOT_REPLICATED, LagReason.NOT_REPLICATED),
        coded(rows.offset == NOT_UNDERSTOOD, LagReason.NOT_UNDERSTOOD),
        coded(gone, LagReason.TOPIC_GONE),
        coded(made_anew, LagReason.MADE_ANEW),
    )
