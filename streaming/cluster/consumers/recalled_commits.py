"""What the rounds of a job before have kept of the partitions of groups, until their commits are read again."""

from collections.abc import Iterable

import numpy as np

from streaming.broker.protocol.history_json import KeptCommit
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.named_rows import Place, rows_of
from streaming.common.arrays import Longs
from streaming.kafka.groups.commit_table import CommitRows

RECALLED_MS = 3_600_000
"""What a job before has kept is held for so long against what is read: agents may be away when a job starts."""


class RecalledCommits:
    """What a job before has kept, until its commit is read. For one thread."""

    def __init__(self, kept: Iterable[KeptCommit] = ()) -> None:
        self._kept: dict[Place, KeptCommit] = {(each.group, each.topic, each.partition): each for each in kept}
        self._since_ms = ABSENT

    def take(self, rows: CommitRows, steady_ms: int) -> tuple[Longs, list[KeptCommit]]:
        """The rows of which something was kept, and what; each is given once."""
        if not self._kept:
            return np.empty(0, np.int64), []
        self._since_ms = steady_ms if self._since_ms == ABSENT else self._since_ms
        places = list(self._kept)
        there = [(row, self._kept.pop(place)) for place, row in zip(places, rows_of(rows, places), strict=True) if row != ABSENT]
        if steady_ms - self._since_ms > RECALLED_MS:
            self._kept.clear()
        return np.array([row for row, _ in there], np.int64), [each for _, each in there]

    @property
    def left(self) -> list[KeptCommit]:
        """Those whose commits were not read yet. From any thread."""
        return list(self._kept.copy().values())
