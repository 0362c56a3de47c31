"""The open transactions of the exported logs as columns, of which some are made into values, one by one."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming.cluster.view.replica_offsets import ABSENT
from streaming.common.arrays import Flags, Longs
from streaming.common.rows import StartSource
from streaming.rules.coordinator_join import ONGOING, STATES, Coordinators
from streaming.rules.transaction_verdicts import GRACE_MS, Claims, TransactionVerdict

_NO_DEADLINE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """One open transaction, times in Unix milliseconds.

    ``log`` is the index of its log among the judged logs. ``start_ms`` is its coordinator's if that is known; ``first_ms``: when its first
    batch was appended to this log, -1 if that is not known. ``coordinator_state`` is "" if no coordinator knows it. ``deadline_ms``: when
    its timeout has passed, and its coordinator ends it; -1 if it has none, or if that is not known. ``as_of_ms``: when its verdict was last
    certain, -1 if it is now. ``stuck`` is defined in `streaming.rules.transaction_verdicts`. ``groups``: if it hangs in
    `__consumer_offsets`, the consumer groups whose offsets wait for it, as far as they are known.
    """

    log: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    start_ms: int
    last_append_ms: int
    transactional_id: str
    coordinator_state: str
    verdict: str
    stuck: bool
    first_ms: int = -1
    deadline_ms: int = -1
    as_of_ms: int = -1
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenList:
    """One item for each open transaction, sorted by log and first offset. ``owner``: the index of its log among the judged logs.

    ``found``: its columns as in `streaming.common.rows.TRANSACTIONS`. ``verdict`` and ``stuck``: see
    `streaming.rules.transaction_verdicts`; ``as_of_ms``: as in `Late`. ``young``: open for ``late_after_ms`` at most, and so not listed by
    itself; that is `ABSENT` where all are listed.
    """

    owner: Longs
    found: Any  # a structured array, whose fields have no types
    claims: Claims
    verdict: Longs
    as_of_ms: Longs
    stuck: Flags
    young: Flags
    late_after_ms: int
    coordinators: Coordinators

    def first_of(self, logs: Collection[int]) -> tuple[Late, ...]:
        """The first transaction of each of these logs, which holds its last stable offset."""
        firsts = self._firsts
        return self.take(firsts[np.isin(self.owner[firsts], [*logs])])

    def young_on(self, log: int) -> int:
        """How many transactions on a log are too young to be listed."""
        return int(np.count_nonzero(self.young & (self.owner == log)))

    def first_since(self) -> dict[int, int]:
        """Of each log since when its first transaction is open, Unix milliseconds, where its coordinator or its verdict shows it.

        Where no coordinator knows it, only its producer's clock tells when it began. It is certain that it has been silent for long if it
        hangs.
        """
        firsts, claims = self._firsts, self.claims
        dated = claims.covered[firsts] & (claims.source[firsts] == StartSource.COORDINATOR)
        hangs = self.verdict[firsts] == TransactionVerdict.HANGING
        since_ms = np.where(dated, claims.start_ms[firsts], np.where(hangs, claims.last_ms[firsts], ABSENT))
        some = np.flatnonzero(since_ms >= 0)
        return dict(zip(self.owner[firsts[some]].tolist(), since_ms[some].tolist(), strict=True))

    @property
    def _firsts(self) -> Longs:
        """The first transaction of each log that has one."""
        return np.flatnonzero(np.append(True, self.owner[1:] != self.owner[:-1])[: len(self.owner)])

    def of(self, logs: Collection[int], producer_ids: Collection[int]) -> tuple[Late, ...]:
        """The transactions of some producers in some logs."""
        return self.take(np.flatnonzero(np.isin(self.owner, [*logs]) & np.isin(self.found["producer_id"], [*producer_ids])))

    def take(self, items: Longs) -> tuple[Late, ...]:
        """Some transactions as values, in the order of ``items``."""
        claims, found, appended_ms = self.claims, self.found, self.claims.appended_ms
        ids = self.coordinators.names(claims.item[items], found["producer_id"][items])
        return tuple(
            Late(
                log=int(self.owner[item]),
                producer_id=int(found["producer_id"][item]),
                producer_epoch=int(found["producer_epoch"][item]),
                first_offset=int(found["first_offset"][item]),
                start_ms=int(claims.start_ms[item]),
                last_append_ms=int(appended_ms[item]),
                transactional_id=transactional_id,
                coordinator_state=STATES[claims.state[item]] if claims.state[item] >= 0 else "",
                verdict=TransactionVerdict(int(self.verdict[item])).label,
                stuck=bool(self.stuck[item]),
                first_ms=int(found["start_ms"][item]),
                deadline_ms=self._deadline_ms(item),
                as_of_ms=int(self.as_of_ms[item]),
            )
            for item, transactional_id in zip(items.tolist(), ids, strict=True)
        )

    def _deadline_ms(self, item: int) -> int:
        claims = self.claims
        if not claims.covered[item] or claims.state[item] != ONGOING or claims.deadline_ms[item] == _NO_DEADLINE:
            return -1
        return int(claims.deadline_ms[item]) - GRACE_MS
