"""The lists of what a job watches: rows of partitions, of what is kept, of topics, brokers, transactions; and one partition whole."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.json_message import ASC
from streaming.broker.protocol.listing_json import (
    ALL_ROWS,
    MOST_PROBLEMS,
    MOST_READERS,
    MOST_SEGMENTS,
    NO,
    UNKNOWN,
    YES,
    BrokerPage,
    BrokerRow,
    PartitionDetail,
    PartitionPage,
    PartitionRow,
    ReplicaRow,
    RetentionPage,
    RetentionRow,
    SegmentRow,
    TopicDetail,
    TopicPage,
    TopicRow,
    TransactionPage,
    TransactionRow,
)
from streaming.broker.protocol.status_json import Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.cases import RowVerdicts, transaction_verdict
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.commands import FUTURE, REMEDIES, wrong_unit
from streaming.cluster.verdicts.kinds import KINDS, ORDER
from streaming.cluster.verdicts.log_problems import why_uncounted
from streaming.cluster.verdicts.transaction_problems import aborts, committers, held_back_groups, remedy_for
from streaming.cluster.view.broker_status import BrokerPhase
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.replica_health import role_of
from streaming.cluster.view.transaction_columns import Late
from streaming.cluster.view.view import sum_by
from streaming.common.arrays import Flags, Longs, whole_sum
from streaming.common.codecs import CODECS
from streaming.kafka.formats.metadata_records import Phase
from streaming.kafka.formats.names import INTERNAL_TOPICS, METADATA_TOPIC
from streaming.pages.api.history import MEAN_RATES, NO_RATES, RateColumns
from streaming.pages.api.judged_look import JudgedLook, with_verdicts
from streaming.pages.api.listed_groups import readers_of
from streaming.pages.api.look import Look
from streaming.pages.api.paging import TOPIC, PageRequest, Sheet, columns_of_rows, cut, natural_order, ranks, worst_first
from streaming.pages.api.topic_use import USUAL, TopicQuestion, TopicUses, by_prefix, topic_uses
from streaming.pages.listings.declared_lists import BROKERS, PARTITIONS, RETENTION, TOPICS, TRANSACTIONS
from streaming.rules.limits import Limits
from streaming.rules.retention_rule import BLOCKED, RetentionRule, SegmentDeletions
from streaming.rules.space_outlook import growth_now

_NOT_KNOWN = -1
_FAR = np.iinfo(np.int64).max

_LAST = len(KINDS)
"""After the place of every kind."""

_DAY_S = 86_400
_INTERNAL = {METADATA_TOPIC, *INTERNAL_TOPICS}

_MOST_NAMED = 100
"""So many readers of a topic are named."""

_SAME = {each.name for each in fields(Late)} & {each.name for each in fields(TransactionRow)} - {"groups"}

_MOST_TRANSACTIONS = 1000


def broker_rows(judged: JudgedLook) -> list[BrokerRow]:
    """All brokers, by their ids: those that the metadata log knows, that an agent watches, and that a replica is of."""
    circumstances, observed = judged.circumstances, judged.look.view.observed
    agents = {broker: each for each in sorted(circumstances.agents, key=lambda each: each.up) for broker in each.brokers}
    every = {*circumstances.phases, *agents, *np.unique(observed.columns["broker"]).tolist()}
    rates = judged.rates.bytes_rate(judged.look)
    data = np.fromiter((name != METADATA_TOPIC for name in observed.names), np.bool_, len(observed.names))  # its copies are in no ISR
    return [_broker_row(judged, broker, agents.get(broker), rates, data) for broker in sorted(every)]


def _broker_row(judged: JudgedLook, broker: int, agent: AgentStatus | None, rates: NDArray[np.float64], data: Flags) -> BrokerRow:
    circumstances, look = judged.circumstances, judged.look
    observed, logs = look.view.observed, look.view.logs
    here = np.flatnonzero(observed.columns["broker"] == broker)
    in_sync = observed.replica_offsets["in_sync"][here[data[here]]]
    known = (observed.replica_offsets["in_sync_replicas"][here[data[here]]] >= 0).all()
    led = np.flatnonzero((look.brokers == broker) & (logs["leader"] > 0))
    led_rates, phase = rates[led], _phase(circumstances, broker)
    _, lag_s = circumstances.lags.get(agent.name, (None, -1.0)) if agent is not None else (None, -1.0)
    worst = _worst(judged.problems, broker, "" if agent is None else agent.name)
    restart, reason = judged.restarts.verdict_of(broker)
    return BrokerRow(
        broker=broker,
        phase="" if phase is None else str(phase.phase),
        phase_ms=-1 if phase is None or phase.since is None else round(phase.since * 1000),
        agent="" if agent is None else agent.name,
        agent_up=agent is not None and agent.up,
        behind_ms=-1 if lag_s < 0 else round(lag_s * 1000),
        leaders=int(observed.roles.leads[here].sum()) if len(here) else -1,
        replicas=len(here) if len(here) else -1,
        out_of_sync=int((in_sync == 0).sum()) if len(here) and known else -1,
        bytes_rate=float(led_rates.sum()) if len(led) and (led_rates >= 0).all() else -1.0,
        size_bytes=whole_sum(observed.replica_offsets["size_bytes"][here]),
        log_dirs=-1 if agent is None else sum(each.broker == broker for each in agent.log_dirs),
        restart=restart,
        restart_reason=reason,
        kind="" if worst is None else worst.kind,
        severity="" if worst is None else worst.severity,
        since_ms=-1 if worst is None else worst.since_ms,
    )


def _phase(circumstances: Circumstances, broker: int) -> BrokerPhase | None:
    """The phase, None if it is not known: of a broker that writes nothing, the last metadata log still has it that it runs."""
    phase = circumstances.phases.get(broker)
    is_silent = broker in circumstances.idle or broker in circumstances.not_writing
    return None if phase is not None and phase.phase is Phase.RUNNING and is_silent else phase


def _worst(problems: Sequence[Problem], broker: int, agent: str) -> Problem | None:
    """The worst problem that is about the broker itself; those of its partitions are theirs."""
    own = [each for each in problems if not each.topic and not each.group and (each.broker == broker or (agent and each.agent == agent))]
    return min(own, key=lambda each: ORDER.get(each.kind, len(ORDER)), default=None)


def partition_page(look: Look, request: PageRequest, verdicts: RowVerdicts, rates: RateColumns = NO_RATES) -> PartitionPage:
    """A page of partitions."""
    columns = partition_columns(look, rates)
    natural = natural_order(look.topics, look.partitions, look.brokers)
    worst = worst_first(verdicts.place, natural, -columns["bytes_rate"])
    sheet = Sheet(columns=columns | {"kind": worst}, texts=look.texts, natural=natural, topics=look.topics)
    some = cut(sheet, request)
    rows = with_verdicts(partition_rows(look, columns, some.items, rates), verdicts.of_rows(some.items))
    return some.page(PartitionPage, look.now_ms, rows)


def partition_columns(look: Look, rates: RateColumns = NO_RATES) -> dict[str, NDArray[Any]]:
    """All numbers of the listing, by field: a column for each that the list can be sorted by, but the topic."""
    logs, columns = look.view.logs, look.columns_of(PARTITIONS)
    for name in ("appended_bytes", "appended_records"):  # they are exported once the backlog is read
        columns[name] = np.where((logs["settled"] == 1) & rates.counts, columns[name], -1)
    columns["retention_blocked"] = logs["retention_blocked"]
    columns["records_data"], columns["records_aborted"], columns["records_control"] = look.view.records[:, logs.columns["slot"]]
    columns["bytes_rate"], columns["records_rate"] = rates.bytes_rate(look), rates.records_rate(look)
    return columns


def partition_rows(look: Look, columns: dict[str, NDArray[Any]], items: Sequence[int], rates: RateColumns = NO_RATES) -> list[PartitionRow]:
    """Some of the rows."""
    numbers = {name: column[list(items)].tolist() for name, column in columns.items() if name != "retention_blocked"}
    blocked = columns["retention_blocked"][list(items)].tolist()
    hours = rates.hours(look, items)
    return [
        PartitionRow(
            **{name: values[place] for name, values in numbers.items()},
            topic=look.topics[item],
            retention_blocked=BLOCKED[blocked[place]] if blocked[place] >= 0 else "",
            rates=hours[place],
        )
        for place, item in enumerate(items)
    ]


def retention_page(judged: JudgedLook, request: PageRequest) -> RetentionPage:
    """A page of what is kept."""
    look, logs = judged.look, judged.look.view.logs
    columns = look.columns_of(RETENTION) | {"retention_blocked": logs["retention_blocked"]}
    natural = natural_order(look.topics, look.partitions, look.brokers)
    columns["kind"] = worst_first(judged.retention_verdicts.place, natural, -logs["retention_overdue_ms"])
    sheet = Sheet(columns=columns, texts=look.texts, natural=natural, topics=look.topics)
    some = cut(sheet, request)
    rows = retention_rows(judged, some.items)
    return some.page(RetentionPage, look.now_ms, rows)


def retention_rows(judged: JudgedLook, items: Sequence[int]) -> list[RetentionRow]:
    """Some of the rows."""
    look, chosen = judged.look, np.array(items, np.int64)
    columns = look.columns_of(RETENTION) | {"retention_overdue": judged.overdue}
    copied = {name: column[chosen].tolist() for name, column in columns.items()}
    rows = [_row(look, item, {name: values[place] for name, values in copied.items()}) for place, item in enumerate(items)]
    of = judged.circumstances

    @cache
    def lowered(topic: str, broker: int, by_size: bool) -> str:
        return of.causes.lowered(topic, broker, of.times, by_size=by_size)

    whys = [lowered(row.topic, row.broker, row.next_deletion_by_size) for row in rows]  # the same for all partitions of a topic there
    rows = [replace(row, limit_lowered=why) if why else row for row, why in zip(rows, whys, strict=True)]
    return with_verdicts(rows, judged.retention_verdicts.of_rows(items))


def _row(look: Look, item: int, copied: dict[str, Any]) -> RetentionRow:
    logs, limits = look.view.logs, look.view.logs.limits[item]
    code, directory, millionths = (int(logs[name][item]) for name in ("retention_blocked", "log_dir", "dirty_millionths"))
    reason = BLOCKED[code] if code >= 0 else ""
    return RetentionRow(
        **copied,
        topic=look.topics[item],
        topic_id=logs.topic_ids[item],
        log_dir=look.view.observed.log_dirs[directory][1] if directory >= 0 else "",
        retention_blocked=reason,
        retention_blocked_why=f"{REMEDIES[reason].why} {_unit(look, item) if reason == FUTURE else ''}".rstrip() if reason else "",
        dirty_ratio=-1.0 if millionths < 0 else millionths / 1e6,
        **_of_limits(limits),
    )


def _unit(look: Look, item: int) -> str:
    ahead_ms = int(look.view.logs["max_timestamp_ahead_ms"][item])
    return wrong_unit(look.now_ms + ahead_ms, look.now_ms) if ahead_ms > 0 else ""


def _of_limits(limits: Limits | None) -> dict[str, Any]:
    if limits is None:
        return {}
    return {
        "cleanup_policy": limits.cleanup_policy,
        "limit_source": str(limits.source),
        "limits_assumed": limits.assumed,
    }


def broker_page(judged: JudgedLook, request: PageRequest) -> BrokerPage:
    """A page of brokers.

    The listing of brokers: the phase of each, what it leads and holds, its agent, and the worst problem of its own.
    """
    rows = broker_rows(judged)
    some = cut(_sheet(rows), request)
    return some.page(BrokerPage, judged.look.now_ms, [rows[item] for item in some.items])


def _sheet(rows: Sequence[BrokerRow]) -> Sheet:
    natural = np.arange(len(rows))
    place = np.array([ORDER.get(row.kind, -1) for row in rows], np.int64)
    return Sheet(
        columns=columns_of_rows(BROKERS, rows) | {"kind": worst_first(place, natural, natural)},
        texts=[f"broker {row.broker} {row.agent} {row.phase}" for row in rows],
        natural=natural,
    )


def topic_page(judged: JudgedLook, request: PageRequest, question: TopicQuestion) -> TopicPage:
    """A page of topics, or of what those with the same prefix come to."""
    topics = TopicSums(judged, question)
    since_ms = topics.uses.commits_from_ms
    if not question.by_prefix:
        some = cut(topics.sheet, request)
        return some.page(TopicPage, judged.look.now_ms, topics.rows(some.items), commits_from_ms=since_ms)
    every = cut(topics.sheet, replace(request, sort=TOPIC, order=ASC, offset=0, limit=ALL_ROWS)).items
    rows = by_prefix(topics.rows(every), question.by_prefix)
    natural = np.arange(len(rows))
    sheet = Sheet(columns=columns_of_rows(TOPICS, rows) | {TOPIC: natural}, texts=[row.topic for row in rows], natural=natural)
    some = cut(sheet, replace(request, topics=frozenset(), chosen=(), filter=""))
    return some.page(TopicPage, judged.look.now_ms, [rows[item] for item in some.items], commits_from_ms=since_ms)


@dataclass(frozen=True, eq=False)  # no slots: what follows from the look is computed once
class TopicSums:
    """What the partitions of each topic come to; each item is a topic, in the order of their names.

    The listing of topics: sums over the partitions of each, on columns, so that ten thousand partitions cost little.
    """

    judged: JudgedLook
    question: TopicQuestion = USUAL

    @property
    def _shown(self) -> Longs:
        return self.judged.look.one_of_each

    @property
    def names(self) -> list[str]:
        """The topics."""
        return self.judged.look.view.skews.names

    @cached_property
    def _topic(self) -> Longs:
        """The item of the topic of each partition."""
        topics = self.judged.look.topics
        return np.fromiter((self._items[topics[item]] for item in self._shown.tolist()), np.int64, len(self._shown))

    def _sum(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The sum of the values of each topic's partitions; not known where one of them is not."""
        of_partitions = values[self._shown]
        sums = np.bincount(self._topic, of_partitions, len(self.names))
        unknown = np.bincount(self._topic, of_partitions < 0, len(self.names)) > 0
        found: NDArray[np.float64] = np.where(unknown, _NOT_KNOWN, sums)
        return found

    def _first(self, values: Longs) -> Longs:
        """The least one that is known."""
        found = np.full(len(self.names), _FAR, np.int64)
        of_partitions = values[self._shown]
        np.minimum.at(found, self._topic, np.where(of_partitions < 0, _FAR, of_partitions))
        return np.where(found == _FAR, _NOT_KNOWN, found)

    @cached_property
    def columns(self) -> dict[str, NDArray[Any]]:
        """All numbers of the listing, by field."""
        look, rates = self.judged.look, self.judged.rates
        logs = look.view.logs
        last = np.full(len(self.names), _NOT_KNOWN, np.int64)
        np.maximum.at(last, self._topic, logs["last_append_ms"][self._shown])
        next_ms = self._first(logs["next_deletion_ms"])
        by_size = (logs["next_deletion_by_size"] > 0) & (logs["next_deletion_ms"] >= 0)
        soonest = self._first(np.where(by_size, logs["next_deletion_ms"], _NOT_KNOWN)) == next_ms
        first = np.full(len(self.names), len(self._shown), np.int64)
        np.minimum.at(first, self._topic, np.arange(len(self._shown)))
        limits = self._shown[first] if len(self._shown) else first
        counts = self.judged.groups_by_topic
        size, number = self._sum(logs["size_bytes"]).astype(np.int64), np.bincount(self._topic, minlength=len(self.names))
        replica_bytes, replica_more = self._replicas
        growth, codec_bytes, batches = self._sum(MEAN_RATES.bytes_rate(look)), *self._counted
        return {
            "partitions": number,
            "bytes_rate": self._sum(rates.bytes_rate(look)),
            "records_rate": self._sum(rates.records_rate(look)),
            "size_bytes": size,
            "replica_bytes": replica_bytes,
            "replica_more": replica_more,
            "growth_day": np.where(growth < 0, _NOT_KNOWN, growth * _DAY_S).astype(np.int64),
            "partition_bytes": np.where(size < 0, _NOT_KNOWN, size // np.maximum(number, 1)),
            "batch_bytes": np.where(batches > 0, codec_bytes.sum(axis=0) // np.maximum(batches, 1), _NOT_KNOWN),
            "last_commit_ms": self.uses.last_commit_ms,
            "quiet_ms": self.uses.quiet_ms,
            "size_skew": _ratio(look.view.skews.size),
            "records_skew": _ratio(look.view.skews.records),
            "unread_offsets": self._sum(logs["unread_offsets"]).astype(np.int64),
            "unread_more": self._sum(logs["unread_more"]) > 0,
            "open_transactions": self._sum(logs["open_transactions"]).astype(np.int64),
            "out_of_sync": self._sum(look.out_of_sync).astype(np.int64),
            "groups": np.array([_NOT_KNOWN if counts is None else counts.get(name, 0) for name in self.names], np.int64),
            "last_append_ms": last,
            "oldest_record_ms": self._first(logs["oldest_record_ms"]),
            "next_deletion_ms": next_ms,
            "next_deletion_start_of": self._first(logs["next_deletion_start_of"]),
            "next_deletion_by_size": soonest & (next_ms >= 0),
            "retention_limit_ms": logs["retention_limit_ms"][limits],
            "retention_limit_bytes": logs["retention_limit_bytes"][limits],
            "_first": limits,
        }

    @cached_property
    def uses(self) -> TopicUses:
        """Who uses each topic."""
        return topic_uses(self.judged, self._topic, self.question)

    @cached_property
    def _items(self) -> dict[str, int]:
        return {name: item for item, name in enumerate(self.names)}

    @cached_property
    def _replicas(self) -> tuple[Longs, Flags]:
        """The bytes of all replicas that are seen, `_NOT_KNOWN` where there is none; and whether others are not seen."""
        observed, replicas = self.judged.look.view.observed, self._sum(self.judged.look.view.logs["replicas"])
        size, count = observed.replica_offsets["size_bytes"], len(self.names)
        topic = np.fromiter((self._items.get(name, _NOT_KNOWN) for name in observed.names), np.int64, len(observed.names))
        known = (size >= 0) & (topic >= 0)
        seen = np.bincount(topic[known], minlength=count)
        more = ~self.judged.look.view.skews.whole | (replicas < 0) | (seen < replicas)
        return np.where(seen > 0, np.bincount(topic[known], size[known], count), _NOT_KNOWN).astype(np.int64), more

    @cached_property
    def _counted(self) -> tuple[Longs, Longs]:
        """The bytes of the batches that were counted, with the shape (codecs, topics), and how many batches there are."""
        sums = self.judged.look.view.topics.sums
        names = self.judged.look.snapshot.topic_names
        topic = np.fromiter((self._items.get(name, len(self.names)) for name in names), np.int64, len(names))
        found = [sum_by(topic, sums[name], len(self.names) + 1)[:, :-1] for name in ("share_codec_bytes", "share_batch_bytes_buckets")]
        return found[0], found[1].sum(axis=0)

    @cached_property
    def _tiny(self) -> list[str]:
        """Whether each has many partitions for its bytes."""
        whole, several, mean = self.judged.look.view.skews.whole, self.columns["partitions"] > 1, self.columns["partition_bytes"]
        known = whole & (mean >= 0)
        words: list[str] = np.where(known, np.where(several & (mean < self.question.tiny_bytes), YES, NO), UNKNOWN).tolist()
        return words

    @cached_property
    def _worst(self) -> Longs:
        """The exported log with the worst verdict of each topic, -1 where nothing is wrong."""
        place = self.judged.partition_verdicts.place
        key = np.where(place < 0, _LAST, place)[self._shown]
        order = np.lexsort((key, self._topic))
        first = np.ones(len(order), np.bool_)
        first[1:] = np.diff(self._topic[order]) != 0
        chosen = order[first]
        return np.where(key[chosen] == _LAST, _NOT_KNOWN, self._shown[chosen])

    @property
    def sheet(self) -> Sheet:
        """The rows to be sorted and filtered."""
        natural, worst = np.arange(len(self.names)), self._worst
        place = np.where(worst < 0, _NOT_KNOWN, self.judged.partition_verdicts.place[worst])
        columns = self.columns | {"topic": natural, "kind": worst_first(place, natural, -self.columns["bytes_rate"])}
        if not self.question.internal:
            natural = natural[[name not in _INTERNAL for name in self.names]]
        words = {"used": self.uses.used, "tiny": self._tiny}
        columns["tiny"] = ranks(self._tiny)
        return Sheet(columns=columns, texts=self.names, natural=natural, topics=self.names, words=words)

    def rows(self, items: Sequence[int]) -> list[TopicRow]:
        """Some of the rows."""
        some, counted = list(items), self._counted[0]
        numbers = {name: column[some].tolist() for name, column in self.columns.items() if not name.startswith("_")}
        limits = [self.judged.look.view.logs.limits[log] for log in self.columns["_first"][some].tolist()]
        return [
            TopicRow(
                **{name: values[place] for name, values in numbers.items()},
                topic=self.names[item],
                codecs=[CODECS[each] for each in np.argsort(-counted[:, item], kind="stable").tolist() if counted[each, item] > 0],
                readers=self.uses.readers[item][:_MOST_NAMED],
                tiny=self._tiny[item],
                used=self.uses.used[item],
                used_why=self.uses.why[item],
                cleanup_policy="" if limit is None else limit.cleanup_policy,
                limits_assumed=limit is not None and limit.assumed,
                rates=self.judged.rates.hour_sum(self.judged.look, self._shown[self._topic == item].tolist()),
                **self._verdict(item),
            )
            for place, (item, limit) in enumerate(zip(some, limits, strict=True))
        ]

    def _verdict(self, item: int) -> dict[str, Any]:
        log = int(self._worst[item])
        if log < 0:
            return {}
        (worst,) = self.judged.partition_verdicts.of_rows([log])
        return {"kind": worst.name, "severity": worst.severity, "since_ms": worst.since_ms}


def _ratio(millionths: Longs) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.where(millionths < 0, -1.0, millionths / 1e6)
    return found


def topic_detail(judged: JudgedLook, topic: str) -> TopicDetail | None:
    """One topic, None if none of its partitions is shown."""
    topics = TopicSums(judged)
    if topic not in topics.names:
        return None
    readers = None if judged.groups is None else readers_of(judged.groups, topic)
    return TopicDetail(
        at_ms=judged.at_ms,
        row=topics.rows([topics.names.index(topic)])[0],
        problems=judged.with_roots([each for each in judged.problems if each.topic == topic])[:MOST_PROBLEMS],
        readers=None if readers is None else readers[:MOST_READERS],
        more_readers=0 if readers is None else max(0, len(readers) - MOST_READERS),
    )


def transaction_page(look: Look, circumstances: Circumstances, request: PageRequest) -> TransactionPage:
    """A page of open transactions: those that are open for longer than ``late_after``."""
    rows = transaction_rows(look, circumstances, look.view.logs.late)
    some = cut(_transaction_sheet(rows), request)
    listed = [rows[item] for item in some.items]
    omitted, every = look.view.logs.late_omitted, look.view.logs.open
    young = int(np.count_nonzero(every.young))
    after_ms = every.late_after_ms
    aborting = [
        f"{kinds.CLIENT_ABORTS.about(client=each.transactional_id)}: {aborts(each, look.now_ms)}" for each in circumstances.aborting
    ]
    return some.page(TransactionPage, look.now_ms, listed, omitted=omitted, late_after_ms=after_ms, young=young, aborting=aborting)


def transaction_rows(look: Look, circumstances: Circumstances, some: Sequence[Late]) -> list[TransactionRow]:
    """Some of the rows."""
    rows, waiting = [], held_back_groups(circumstances.groups)
    for late in some:
        remedy, holds = remedy_for(circumstances, late, waiting), circumstances.view.logs.held_by(late)
        partition = look.topics[late.log], int(look.partitions[late.log])
        rows.append(
            TransactionRow(
                broker=int(look.brokers[late.log]),
                topic=partition[0],
                partition=partition[1],
                **{name: getattr(late, name) for name in _SAME},
                holds_offsets=holds,
                holds_more=holds >= 0 and bool(circumstances.view.logs["unread_more"][late.log]),
                held_groups=None if circumstances.groups is None else waiting.readers(partition) if holds >= 0 else [],
                groups=committers(late, partition, waiting),
                command=remedy.command.line,
                no_command=remedy.command.reason,
                advice=remedy.advice,
            )
        )
    return with_verdicts(rows, [transaction_verdict(circumstances, late) for late in some])


def _transaction_sheet(rows: Sequence[TransactionRow]) -> Sheet:
    columns = columns_of_rows(TRANSACTIONS, rows)
    natural = natural_order([row.topic for row in rows], columns["partition"], columns["broker"], columns["first_offset"])
    place = np.fromiter((ORDER.get(row.kind, -1) for row in rows), np.int64, len(rows))
    columns["verdict"] = worst_first(place, natural, columns["start_ms"])
    return Sheet(
        columns=columns,
        texts=[" ".join((f"{row.topic}-{row.partition}", row.transactional_id, str(row.producer_id), row.verdict)) for row in rows],
        natural=natural,
        topics=[row.topic for row in rows],
    )


def partition_detail(judged: JudgedLook, topic: str, partition: int) -> PartitionDetail | None:
    """One partition, None if none is shown with this name and number.

    Everything about one partition: its row, its last hour, its segments, its transactions, its problems, its replicas.
    """
    look, rates = judged.look, judged.rates
    item = _item(look, topic, partition)
    if item is None:
        return None
    own, broker = judged.kinds_of(item), int(look.view.logs["broker"][item])
    late = [each for each in look.view.logs.late if each.log == item][:_MOST_TRANSACTIONS]
    segments, omitted = _segments(look, item)
    (row,) = with_verdicts(partition_rows(look, partition_columns(look, rates), [item], rates), judged.partition_verdicts.of_rows([item]))
    return PartitionDetail(
        at_ms=judged.at_ms,
        row=row,
        records_why="" if row.records_data >= 0 else why_uncounted(judged.circumstances, look.snapshot, [look.view.logs.items[item]])[0],
        retention=retention_rows(judged, [item])[0],
        transactions=transaction_rows(look, judged.circumstances, sorted(late, key=lambda each: each.first_offset)),
        late_after_ms=look.view.logs.open.late_after_ms,
        young_transactions=look.view.logs.open.young_on(item),
        problems=judged.with_roots(
            [
                each
                for each in judged.problems
                if (each.topic == topic and each.partition in (partition, -1))
                or (not each.topic and each.broker == broker and each.kind in own)
            ]
        ),
        segments=segments,
        omitted=omitted,
        minutes=rates.minutes(look, item),
        replicas=_replicas(look, item),
    )


def _item(look: Look, topic: str, partition: int) -> int | None:
    """The exported log of a partition: that of the leader, if all replicas are exported."""
    items = [each for each in np.flatnonzero(look.partitions == partition).tolist() if look.topics[each] == topic]
    return max(items, key=lambda each: int(look.view.logs["leader"][each]), default=None)


def _segments(look: Look, item: int) -> tuple[list[SegmentRow], int]:
    retention = look.view.retention
    rows = np.flatnonzero(retention.items[retention.listed.items] == look.view.logs.items[item])
    if not len(rows):
        return [], 0
    place, listed = int(rows[0]), retention.listed.logs
    first, last = int(listed.first[place]), int(listed.last[place])
    deletions, unseen = _deletions(look, item, place)
    count = last + 1 - first
    half = MOST_SEGMENTS // 2
    chosen = range(count) if count <= MOST_SEGMENTS else [*range(half), *range(count - half, count)]
    segments = [
        SegmentRow(
            base_offset=int(listed.base[first + each]),
            size_bytes=int(listed.size[first + each]),
            max_timestamp_ms=max(int(listed.recorded[first + each]), -1),
            active=first + each == last,
            deletable=bool(deletions.deletable[each]),
            deletion_ms=look.now_ms if deletions.deletable[each] else -1 if unseen else int(deletions.goes[each]),
            deletion_by_size=bool(deletions.by_size[each]) and not unseen,
        )
        for each in chosen
    ]
    return segments, count - len(segments)


def _deletions(look: Look, item: int, place: int) -> tuple[SegmentDeletions, bool]:
    """When the segments of a log go, by the growth from which its next deletion is, and whether it is not seen how it grows now."""
    retention, columns, replica = look.view.retention, look.view.observed.columns, look.view.logs.items[item]
    log = retention.listed.logs.take(np.array([place]))
    growth = growth_now(log, retention.watched[[place]], columns["active_first_timestamp"][[replica]], look.now_ms)
    return RetentionRule(log).segments_at(look.now_ms, growth), bool(retention.unseen[retention.listed.items[place]])


def _replicas(look: Look, item: int) -> list[ReplicaRow]:
    observed = look.view.observed
    columns, sizes = observed.columns, observed.replica_offsets["size_bytes"]
    known = observed.replica_offsets["in_sync_replicas"]
    own = look.view.logs.columns
    rows = []
    for each in np.flatnonzero(columns["replicas_of"] == own["replicas_of"][item]).tolist():
        in_sync = "unknown" if known[each] < 0 else "yes" if observed.replica_offsets["in_sync"][each] else "no"
        rows.append(
            ReplicaRow(
                broker=int(columns["broker"][each]),
                role=role_of(observed, each),
                in_sync=in_sync,
                shown=bool(columns["slot"][each] == own["slot"][item]),
                log_dir=observed.log_dirs[int(columns["log_dir"][each])][1],
                size_bytes=int(sizes[each]),
                log_start_offset=int(columns["log_start_offset"][each]),
                log_end_offset=int(columns["log_end_offset"][each]),
                last_append_ms=int(columns["last_append_ms"][each]),
            )
        )
    return sorted(rows, key=lambda each: (not each.shown, each.broker))
