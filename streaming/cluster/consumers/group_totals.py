"""What the partitions of each consumer group come to, as columns: one item for each group, in the order of their names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from streaming.broker.protocol.group_json import GroupSummary
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_partitions import pending_by_group
from streaming.cluster.consumers.group_rebalances import all_lately
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.common.arrays import Longs

_CLASSIC = "Classic"
_FAR = np.iinfo(np.int64).max

_COUNTS = {
    "partitions": "partitions",
    "known": "known",
    "stopped": "stopped",
    "beyond_end": "beyond",
    "below_start": "below",
}
"""Numbers of partitions: the column here, and that of `PairSums`; likewise those that follow."""

_LOWER_BOUNDS = {
    "lag_offsets": "lag_offsets",
    "lag_records_read_committed": "read_committed",
    "lag_records_read_uncommitted": "read_uncommitted",
    "lag_bytes": "bytes",
}
_LEAST = ("oldest_ms", "oldest_append_ms", "oldest_timestamp_ms", "loss_ms", "loss_start_of", "expiration_ms")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTotals:
    """``names``: of the groups. ``number``: that of each in `CommitRows.group_names`, `ABSENT` for one without a committed offset.

    ``columns``: the fields of `GroupSummary` that are numbers, but for ``held``, which is judged; besides, of how many partitions
    ``limits_assumed`` and ``reads_uncommitted`` are so.
    """

    snapshot: GroupSnapshot
    names: list[str]
    number: Longs
    columns: Mapping[str, Longs]

    @property
    def lag(self) -> Longs:
        """What is left of each group, as `GroupSummary.lag`."""
        at = self.columns
        records = np.where(at["reads_uncommitted"] > 0, at["lag_records_read_uncommitted"], at["lag_records_read_committed"])
        return np.where(records >= 0, records, at["lag_offsets"])

    @property
    def types(self) -> list[str]:
        """The type of each group; one that has only commits is a classic one, as for Kafka's tools."""
        return [_CLASSIC if facts is None else facts.type for facts in map(self.snapshot.groups.get, self.names)]

    @property
    def states(self) -> list[str]:
        """The state of each group, "" where nothing is known of it."""
        return ["" if facts is None else facts.state for facts in map(self.snapshot.groups.get, self.names)]

    def summary(self, item: int) -> GroupSummary:
        """One group."""
        facts = self.snapshot.groups.get(self.names[item])
        numbers = {name: int(column[item]) for name, column in self.columns.items()}
        reads_uncommitted = numbers.pop("reads_uncommitted") > 0
        return GroupSummary(
            group=self.names[item],
            type=_CLASSIC if facts is None else facts.type,
            protocol="" if facts is None else facts.protocol,
            state="" if facts is None else facts.state,
            isolation=self.snapshot.isolation(self.names[item], reads_uncommitted=reads_uncommitted),
            limits_assumed=numbers.pop("limits_assumed") > 0,
            **numbers,  # type: ignore[arg-type]  # every column has the name of a number
        )


def group_totals(snapshot: GroupSnapshot, is_exported: Callable[[str], bool]) -> GroupTotals:
    """The totals of all groups that are exported."""
    rows, sums = snapshot.rows, snapshot.pairs
    waiting = pending_by_group(snapshot.pending)
    of_pair = rows.group[sums.first].astype(np.int64)
    numbers = {rows.group_names[number]: number for number in np.unique(of_pair).tolist()}
    names = sorted(filter(is_exported, snapshot.groups.keys() | numbers.keys() | waiting.keys()))
    number = np.array([numbers.get(name, ABSENT) for name in names], np.int64)
    count = len(rows.group_names)

    def total(values: Longs) -> Longs:
        found = np.zeros(count + 1, np.int64)  # the last item is of groups without an offset
        np.add.at(found, of_pair, values)
        return found[number]

    def lower_bound(values: Longs) -> Longs:
        known = values >= 0
        return np.where(total(known.astype(np.int64)) > 0, total(np.where(known, values, 0)), ABSENT)

    def best(function: np.ufunc, values: Longs, none: int) -> Longs:
        found = np.full(count + 1, none, np.int64)
        function.at(found, of_pair, np.where(values >= 0, values, none))
        return np.where(found == none, ABSENT, found)[number]

    columns = {name: total(getattr(sums, column)) for name, column in _COUNTS.items()}
    columns |= {name: lower_bound(getattr(sums, column)) for name, column in _LOWER_BOUNDS.items()}
    columns |= {name: best(np.minimum, getattr(sums, name), _FAR) for name in _LEAST}
    unread = [[each.records for each in snapshot.uncommitted.get(name, ())] for name in names]
    without = np.array([len(each) for each in unread], np.int64)
    facts = [snapshot.groups.get(name) for name in names]
    pending = {name: [each.commit_ms for each in those if each.commit_ms >= 0] for name, those in waiting.items()}
    columns["unknown"] = columns["partitions"] - columns.pop("known") + without
    columns["partitions"] = columns["partitions"] + without
    columns |= {
        "uncommitted": without,
        "uncommitted_records": np.array([_known_sum(each) for each in unread], np.int64),
        "pending": np.array([len(waiting.get(name, ())) for name in names], np.int64),
        "oldest_pending_ms": np.array([min(pending.get(name, ()), default=ABSENT) for name in names], np.int64),
        "limits_assumed": total(sums.assumed),
        "reads_uncommitted": total(sums.reads_uncommitted),
        "last_commit_ms": best(np.maximum, sums.last_commit_ms, ABSENT),
    }
    for name in ("members", "epoch", "state_ms", "interval_ms"):
        columns[name] = np.array([ABSENT if each is None else max(getattr(each, name), ABSENT) for each in facts], np.int64)
    columns |= _rebalances(snapshot, names)
    return GroupTotals(snapshot=snapshot, names=names, number=number, columns=columns)


def _rebalances(snapshot: GroupSnapshot, names: list[str]) -> dict[str, Longs]:
    """When groups last rebalanced, and how often of late."""
    found, of_late = snapshot.rebalances, all_lately(snapshot.rebalances, snapshot.groups, snapshot.at_ms)
    last_ms = dict(zip(found.names, found.last_by(snapshot.at_ms).tolist(), strict=True))
    counts = dict.fromkeys(found.names, 0) | {name: each.generations for name, each in of_late.items()}
    return {
        "last_rebalance_ms": np.array([last_ms.get(name, ABSENT) for name in names], np.int64),
        "rebalances_lately": np.array([counts.get(name, ABSENT) for name in names], np.int64),
    }


def _known_sum(numbers: list[int]) -> int:
    """The sum of those that are known, `ABSENT` if none is."""
    known = [each for each in numbers if each >= 0]
    return sum(known) if known else ABSENT
