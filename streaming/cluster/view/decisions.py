"""What is decided of logs: catalogs as columns, found by key for all logs at once, and which round of answers counts for an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.catalog import SCHEMAS, UNREADABLE, Catalog, key_of, spelled, together
from streaming.common.log_key import KEY
from streaming.rules.partition_values import LEADER_UNKNOWN

NOWHERE = -1
"""The index of something that a catalog does not contain."""

_OF_PARTITIONS = {
    "leader": LEADER_UNKNOWN,
    "leader_epoch": -1,
    "leader_metadata_version": -1,
    "replicas": -1,
    "adding_replicas": -1,
    "in_sync_replicas": -1,
    "eligible_replicas": -1,
}
_OF_LOGS: Mapping[str, int | bytes] = {
    **dict.fromkeys(("high_watermark", "cleaner_checkpoint", "recovery_point"), UNREADABLE),
    **{"recovery_position": 0, "moving": 0, "epochs": b""},
}
_NOT_KNOWN: Mapping[str, int | bytes] = {**_OF_PARTITIONS, **_OF_LOGS}


class Decisions:
    """What is decided, as far as one agent knows. Numbers and units as in `streaming.common.catalog`; counts are -1 if not known.

    ``configs`` belong to topics, ``leader`` to ``eligible_replicas`` to partitions, the others to logs.
    """

    def __init__(self, catalog: Catalog) -> None:
        topics, partitions, logs = (table.combine_chunks() for table in catalog.tables)
        self._catalog = catalog
        self._keys = tuple(spelled(table, key_of(table.schema)) for table in (topics, partitions, logs))
        self.configs: list[str] = topics["configs"].to_pylist()
        self.leader, self.leader_epoch = _longs(partitions["leader"]), _longs(partitions["leader_epoch"])
        self.leader_metadata_version = _longs(partitions["leader_metadata_version"])
        self.replicas, self.adding_replicas = _lengths(partitions["replicas"]), _lengths(partitions["adding_replicas"])
        self.in_sync_replicas = _lengths(partitions["isr"])
        self.isr: pa.ListArray = together(partitions["isr"])
        self.eligible: pa.ListArray = together(partitions["eligible"])
        self.assigned: pa.ListArray = together(partitions["replicas"])
        self.eligible_replicas = _lengths(partitions["eligible"])
        self.high_watermark, self.cleaner_checkpoint = _longs(logs["high_watermark"]), _longs(logs["cleaner_checkpoint"])
        self.recovery_point, self.recovery_position = _longs(logs["recovery_point"]), _longs(logs["recovery_position"])
        self.moving = _longs(logs["moving"])
        self.epochs: NDArray[np.object_] = together(logs["epochs"]).to_numpy(zero_copy_only=False)

    def is_same(self, other: Decisions) -> bool:
        """Whether both have the same table objects, which means that nothing was sent between them. Contents are not compared."""
        return all(mine is its for mine, its in zip(self._catalog.tables, other._catalog.tables, strict=True))

    def find(self, keys: Keys) -> FoundRows:
        """The rows that belong to some logs."""
        of = (keys.topics, keys.partitions, keys.logs)
        topics, partitions, logs = (_found(wanted, known) for wanted, known in zip(of, self._keys, strict=True))
        return FoundRows(topics=topics, partitions=partitions, logs=logs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keys:
    """The keys of some logs in each of a catalog's tables, in the form used there."""

    topics: pa.Array
    partitions: pa.Array
    logs: pa.Array

    def take(self, items: Longs) -> Keys:
        """The keys of some of the logs."""
        some = pa.array(items)
        return Keys(topics=self.topics.take(some), partitions=self.partitions.take(some), logs=self.logs.take(some))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundRows:
    """The row numbers of some logs in each of a catalog's tables, `NOWHERE` if there is none."""

    topics: Longs
    partitions: Longs
    logs: Longs


def _found(wanted: pa.Array, values: pa.Array) -> Longs:
    found: Longs = pc.fill_null(pc.index_in(wanted, value_set=values), NOWHERE).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _longs(column: Any) -> Longs:
    values: Longs = together(column).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _lengths(column: Any) -> Longs:
    return _longs(pc.fill_null(pc.list_value_length(together(column)), -1))


@dataclass(frozen=True, slots=True)
class End:
    """Where a journal ended."""

    journal: str
    seq: int


@dataclass(frozen=True, slots=True)
class Round:
    """What is decided by an agent's answer, and where its journal ended when it was asked; None if the answer counts at once.

    Which round of answers counts for an agent: the last one whose journal end has been reached. An agent's answer belongs to the
    position at which its journal ended then. It counts once all rows up to that position are processed.
    """

    decisions: Decisions
    end: End | None


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of one agent: ``speaks`` is the one that counts, None before the first; the later ones wait for their end.

    The first of the later rounds, ``waiting``, stays until its end is reached, however many follow. Of the others, only the last one is
    kept, as ``latest``.
    """

    speaks: Decisions | None = None
    waiting: Round | None = None
    latest: Round | None = None
    reached: End | None = None

    def updated(self, round_: Round) -> Rounds:
        """The rounds after another answer of the agent."""
        if self.waiting is None or self._is_of_another_journal(self.waiting, round_):
            return replace(self, waiting=round_, latest=None)._moved()
        return replace(self, latest=round_)

    def arrived(self, end: End) -> Rounds:
        """The rounds after all rows up to ``end`` have been processed."""
        before = self.reached
        if before is not None and before.journal == end.journal and before.seq >= end.seq:
            return self
        return replace(self, reached=end)._moved()

    @property
    def ahead(self) -> tuple[Decisions, ...]:
        """The decisions that will count when more rows have been processed, and differ from those that count now."""
        waiting = [each.decisions for each in (self.waiting, self.latest) if each is not None]
        return tuple(each for each in waiting if self.speaks is None or not each.is_same(self.speaks))

    @staticmethod
    def _is_of_another_journal(waiting: Round, later: Round) -> bool:
        """Whether ``waiting`` is for an earlier journal: it would wait for ever, because that journal is gone."""
        return waiting.end is not None and later.end is not None and waiting.end.journal != later.end.journal

    def _moved(self) -> Rounds:
        if self.waiting is None or not self._is_reached(self.waiting):
            return self
        return replace(self, speaks=self.waiting.decisions, waiting=self.latest, latest=None)._moved()

    def _is_reached(self, round_: Round) -> bool:
        end, reached = round_.end, self.reached
        return end is None or (reached is not None and reached.journal == end.journal and reached.seq >= end.seq)


def keys_of(brokers: Longs, topics: list[str], topic_ids: list[str], partitions: Longs) -> Keys:
    """The keys of some logs."""
    columns = [pa.array(brokers), pa.array(topics, pa.string()), pa.array(partitions), pa.array(topic_ids, pa.string())]
    rows = pa.Table.from_arrays(columns, names=KEY)
    of_topics, of_partitions, of_logs = (spelled(rows, key_of(schema)) for schema in SCHEMAS)
    return Keys(topics=of_topics, partitions=of_partitions, logs=of_logs)


def join(keys: Keys, agents: Longs, decisions_of: dict[int, Decisions]) -> Decided:
    """What is decided of some logs.

    What is decided of the logs on a page: their rows, joined by key with the catalog of each log's agent.

    Args:
        agents: the number of each log's agent.
        decisions_of: the decisions that count now, by the number of their agent.
    """
    columns: dict[str, NDArray[Any]] = {
        name: np.full(len(agents), value, np.int64 if isinstance(value, int) else np.object_) for name, value in _NOT_KNOWN.items()
    }
    heard, isr, configs = np.zeros(len(agents), np.bool_), np.full(len(agents), NOWHERE), np.full(len(agents), NOWHERE)
    members: list[pa.ListArray] = [pa.array([], pa.list_(pa.int32()))]
    eligible, assigned = [*members], [*members]
    texts: list[str] = []
    for agent, decisions in decisions_of.items():
        items = np.flatnonzero(agents == agent)
        rows = decisions.find(keys.take(items))
        known, there = rows.partitions != NOWHERE, rows.logs != NOWHERE
        for name in _OF_PARTITIONS:
            columns[name][items[known]] = getattr(decisions, name)[rows.partitions[known]]
        for name in _OF_LOGS:
            columns[name][items[there]] = getattr(decisions, name)[rows.logs[there]]
        heard[items] = there
        isr[items[known]] = rows.partitions[known] + sum(map(len, members))
        limited = rows.topics != NOWHERE
        configs[items[limited]] = rows.topics[limited] + len(texts)
        members.append(decisions.isr)
        eligible.append(decisions.eligible)
        assigned.append(decisions.assigned)
        texts += decisions.configs
    isr[columns["in_sync_replicas"] < 0] = NOWHERE
    return Decided(
        **columns,
        heard=heard,
        members=pa.concat_arrays(members),
        eligible=pa.concat_arrays(eligible),
        assigned=pa.concat_arrays(assigned),
        isr=isr,
        texts=tuple(texts),
        configs=configs,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decided:
    """Columns with one item per log. Values that its agent has not sent are "not known" as in `streaming.common.catalog`.

    ``heard``: whether the agent has sent anything about the log. ``replicas`` to ``eligible_replicas`` are counts, -1 not known;
    the last are those that are eligible to lead, and not in sync. ``members`` are the known ISRs of all partitions, ``eligible``
    these other replicas, ``assigned`` all replicas in their order. ``isr`` is the index of each log's partition in all three.
    ``texts`` are the configurations of all topics, and ``configs`` is the index of each log's configuration in them. Both indexes are
    `NOWHERE` if there is none.
    """

    heard: Flags
    leader: Longs
    leader_epoch: Longs
    leader_metadata_version: Longs
    replicas: Longs
    adding_replicas: Longs
    in_sync_replicas: Longs
    eligible_replicas: Longs
    high_watermark: Longs
    cleaner_checkpoint: Longs
    recovery_point: Longs
    recovery_position: Longs
    moving: Longs
    epochs: NDArray[np.object_]
    members: pa.ListArray
    eligible: pa.ListArray
    assigned: pa.ListArray
    isr: Longs
    texts: tuple[str, ...]
    configs: Longs

    @property
    def all_replicas(self) -> Longs:
        """The number of replicas, including those that a reassignment adds; -1 if not known."""
        count: Longs = np.where(self.replicas < 0, -1, self.replicas + np.maximum(self.adding_replicas, 0))
        return count

    def text(self, item: int) -> str:
        """The configuration of a log's topic, "" if it is not known."""
        row = int(self.configs[item])
        return "" if row == NOWHERE else self.texts[row]

    def brokers_in_sync(self, items: Longs) -> tuple[Longs, Longs]:
        """The brokers in the ISRs of some logs, each with the index in ``items`` of its log. The ISR of each log has to be known."""
        return _flat(self.members.take(pa.array(self.isr[items])))

    def brokers_eligible(self, items: Longs) -> tuple[Longs, Longs]:
        """The brokers that are eligible to lead and not in sync, in the same form."""
        return _flat(self.eligible.take(pa.array(self.isr[items])))

    def brokers_assigned(self, items: Longs) -> tuple[Longs, Longs]:
        """The brokers of all replicas in the same form, in their order: the first of a partition is its preferred leader."""
        return _flat(self.assigned.take(pa.array(self.isr[items])))

    def take(self, items: Longs) -> Decided:
        """What is decided of some of the logs."""
        columns = {name: getattr(self, name)[items] for name in _NOT_KNOWN}
        return Decided(
            **columns,
            heard=self.heard[items],
            members=self.members,
            eligible=self.eligible,
            assigned=self.assigned,
            isr=self.isr[items],
            texts=self.texts,
            configs=self.configs[items],
        )


def _flat(lists: pa.ListArray) -> tuple[Longs, Longs]:
    """The values of lists, each with the index of its list; a null has none."""
    lengths = lists.value_lengths().fill_null(0).to_numpy()
    return np.repeat(np.arange(len(lists)), lengths), lists.flatten().to_numpy().astype(np.int64)


def best_of_each(group: Longs, count: int, wanted: Flags, keys: Sequence[Longs | Flags]) -> Longs:
    """The wanted item of each group with the largest keys, the last key compared first; `NOWHERE` if no item is wanted."""
    some = np.flatnonzero(wanted)
    order = some[np.lexsort((*(key[some] for key in keys), group[some]))]
    ends = np.flatnonzero(np.append(group[order][1:] != group[order][:-1], True)) if len(order) else np.empty(0, np.int64)
    best = np.full(count, NOWHERE, np.int64)
    best[group[order[ends]]] = order[ends]
    return best
