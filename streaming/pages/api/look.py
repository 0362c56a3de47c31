"""One look at a table: the view with the snapshot that it was made from, and what follows from both for every listing."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.json_message import Unit
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.topic_skew import one_of_each
from streaming.cluster.view.view import View
from streaming.common.arrays import Longs
from streaming.pages.listings.listing import Listing


@dataclass(frozen=True, eq=False)  # no slots: what follows from the fields is computed once
class Look:
    """A view and its snapshot."""

    view: View
    snapshot: Snapshot

    @property
    def now_ms(self) -> int:
        """As of when it is, Unix milliseconds."""
        return self.snapshot.now_ms

    @cached_property
    def topics(self) -> list[str]:
        """The topic of each exported log."""
        return [self.snapshot.topic_names[number] for number in self.view.logs.columns["topic"].tolist()]

    @cached_property
    def texts(self) -> list[str]:
        """``topic-partition`` of each exported log."""
        return [f"{topic}-{partition}" for topic, partition in zip(self.topics, self.partitions.tolist(), strict=True)]

    def columns_of(self, listing: Listing) -> dict[str, NDArray[Any]]:
        """The columns that have the name of a field of a list: of a number they are as they are, of a flag whether it is set."""
        logs, found = self.view.logs, {}
        for each in listing.fields:
            if each.name in logs and (each.unit.is_number or each.unit is Unit.FLAG):
                found[each.name] = logs[each.name] > 0 if each.unit is Unit.FLAG else logs[each.name]
        return found

    @cached_property
    def one_of_each(self) -> Longs:
        """One exported log of each partition: that of the leader, if all replicas are exported."""
        return one_of_each(self.view.logs)

    @cached_property
    def out_of_sync(self) -> Longs:
        """How many replicas of the partition of each exported log are not in sync; -1 where that is not known."""
        logs = self.view.logs
        found: Longs = np.where(logs["in_sync_replicas"] < 0, -1, np.maximum(logs["replicas"] - logs["in_sync_replicas"], 0))
        return found

    @property
    def partitions(self) -> Longs:
        """The partition of each exported log."""
        return self.view.logs.columns["partition"]

    @property
    def brokers(self) -> Longs:
        """The broker of each exported log."""
        return self.view.logs.columns["broker"]
