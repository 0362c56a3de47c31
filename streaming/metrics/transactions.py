"""What is open on the exported logs, since when, and what is to be thought of it, as columns and as a list of the late ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.kafka.names import TRANSACTION_TOPIC
from streaming.metrics.carried import Carried
from streaming.metrics.columns import Columns, Longs
from streaming.metrics.standing import ABSENT, Standing, of_all
from streaming.rules.coordinator import STATES, Coordinators, all_read, count_states, newest
from streaming.rules.leaders import Flags
from streaming.rules.transactions import OPEN
from streaming.rules.verdicts import Judged, OpenTransactions, Verdict, hanging, judge, select_late, verdicts

COLUMNS = ("open_transactions", "oldest_open_start_ms", "oldest_open_last_append_ms", "hanging_transactions")
"""What `Bench.weigh` works out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """One late transaction; ``log`` is its item among the logs that were asked about. ``state`` is "" where no coordinator knows it."""

    log: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    start_ms: int
    transactional_id: str
    state: str
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What is to be said of transactions at a moment."""

    columns: Standing
    late: tuple[Late, ...]
    omitted: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoordinatorView:
    """What the logs of `__transaction_state` say together.

    ``partitions``: how many there are by the metadata log, None where nobody knows; ``readable`` of them were read from a current replica.
    ``counts``: by broker, how many entries are in each of `streaming.rules.coordinator.STATES`.
    """

    coordinators: Coordinators
    partitions: int | None
    readable: int
    counts: dict[int, tuple[int, ...]]


def coordinator_view(
    logs: Columns, carried: Sequence[Carried], names: Sequence[str], *, current: Flags, speaks: Flags, partitions: int | None
) -> CoordinatorView:
    """Put together what the observed logs of `__transaction_state` say.

    Args:
        current: which logs are current replicas: they lead, or are in sync, and their agents answer.
        speaks: which logs are exported.
    """
    whole = (logs["settled"] == 1) & (logs["skipped_bytes"].sum(axis=0) == 0) & (logs["corrupt_batches"] == 0)
    own = [item for item, name in enumerate(names) if name == TRANSACTION_TOPIC]
    read = {int(logs["partition"][item]) for item in own if current[item] and whole[item]}
    tables = {item: _table(carried[item]) for item in own}
    table = newest(tables.values())
    counts: dict[int, tuple[int, ...]] = {}
    for item in own:
        if speaks[item]:
            broker = int(logs["broker"][item])
            known = counts.get(broker, (0,) * len(STATES))
            counts[broker] = tuple(a + b for a, b in zip(known, count_states(tables[item]), strict=True))
    complete = all_read(partitions, len(read), 0)
    return CoordinatorView(coordinators=Coordinators.of(table, complete=complete), partitions=partitions, readable=len(read), counts=counts)


def _table(carried: Carried) -> pa.Table:
    """The entries of one log, of each transactional id the newest: the fold keeps no others."""
    return newest(()) if carried.coordinator is None else pa.Table.from_batches([carried.coordinator])


class Bench:
    """Judges open transactions, and remembers since when nobody was known to end each of them.

    Args:
        hanging_after_ms: how long what nobody will end has to be silent until it counts as hanging.
        late_after_ms: what is open for longer is listed by itself.
        late_limit: at most so many are.
        once: judge by a single look, when all logs have been read to their ends: there is no earlier one to remember. What was silent for
            long and is ended in the very moment between the reading of two logs may seem to hang.
    """

    def __init__(self, *, hanging_after_ms: int, late_after_ms: int, late_limit: int, once: bool = False) -> None:
        self._hanging_after_ms = hanging_after_ms
        self._late_after_ms = late_after_ms
        self._late_limit = late_limit
        self._once = once
        self._uncovered_since: dict[tuple[str, int, int], int] = {}

    def weigh(self, carried: Sequence[Carried], places: Sequence[str], view: CoordinatorView, now_ms: int) -> Weighed:
        """Judge what is open on some logs; ``places`` are their names, "topic-partition"."""
        owners, found = of_all([each.transactions for each in carried])
        still = found["committed"] == OPEN
        owners, found = owners[still], found[still]
        transactions = OpenTransactions(
            partition=[places[owner] for owner in owners.tolist()],
            producer_id=found["producer_id"],
            first_offset=found["first_offset"],
            source=found["source"].astype(np.int64),
            start_ms=found["start_ms"],
            last_ms=found["last_ms"],
        )
        judged = self._remember(transactions, judge(transactions, view.coordinators, np.zeros(len(found), np.int64)), now_ms)
        verdict = verdicts(judged, now_ms)
        late = select_late(
            judged,
            verdict,
            transactions.producer_id,
            transactions.first_offset,
            now_ms=now_ms,
            late_after_ms=self._late_after_ms,
            limit=self._late_limit,
        )
        ids = view.coordinators.names(judged.item[late.items])
        listed = tuple(
            Late(
                log=int(owners[item]),
                producer_id=int(found["producer_id"][item]),
                producer_epoch=int(found["producer_epoch"][item]),
                first_offset=int(found["first_offset"][item]),
                start_ms=int(judged.start_ms[item]),
                transactional_id=transactional_id,
                state=STATES[judged.state[item]] if judged.state[item] >= 0 else "",
                verdict=Verdict(int(verdict[item])).label,
            )
            for item, transactional_id in zip(late.items.tolist(), ids, strict=True)
        )
        hangs = hanging(judged, verdict, now_ms, self._hanging_after_ms)
        return Weighed(columns=_columns(len(carried), owners, judged, verdict, hangs), late=listed, omitted=late.omitted)

    def _remember(self, transactions: OpenTransactions, judged: Judged, now_ms: int) -> Judged:
        if self._once:
            return judged
        uncovered = np.flatnonzero(~judged.covered).tolist()
        keys = [
            (transactions.partition[item], int(transactions.producer_id[item]), int(transactions.first_offset[item])) for item in uncovered
        ]
        self._uncovered_since = {key: self._uncovered_since.get(key, now_ms) for key in keys}
        since = judged.uncovered_ms.copy()
        since[uncovered] = [self._uncovered_since[key] for key in keys]
        return replace(judged, uncovered_ms=since)


def _columns(count: int, owners: Longs, judged: Judged, verdict: Longs, hangs: Flags) -> Standing:
    columns = {name: np.full(count, ABSENT, np.int64) for name in COLUMNS}
    columns["open_transactions"] = np.bincount(owners, minlength=count)
    firsts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])  # in the order of their first offsets
    columns["oldest_open_start_ms"][owners[firsts]] = judged.start_ms[firsts]
    columns["oldest_open_last_append_ms"][owners[firsts]] = judged.last_ms[firsts]
    told = np.bincount(owners[hangs], minlength=count)
    cannot_tell = np.bincount(owners[verdict == Verdict.UNKNOWN], minlength=count) > 0
    columns["hanging_transactions"] = np.where(cannot_tell, ABSENT, told)
    return columns


def states_of(counts: dict[int, tuple[int, ...]]) -> Iterable[tuple[int, str, int]]:
    """(broker, state, entries) of every broker that speaks for coordinators."""
    for broker in sorted(counts):
        for state, entries in zip(STATES, counts[broker], strict=True):
            yield broker, state, entries
