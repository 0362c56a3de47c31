"""The listing of topics: sums over the partitions of each, on columns, so that ten thousand partitions cost little."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.listing_json import MOST_PROBLEMS, MOST_READERS, TopicDetail, TopicPage, TopicRow
from streaming.cluster.verdicts.kinds import KINDS
from streaming.common.arrays import Longs
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.paging import PageRequest, Sheet, cut, worst_first
from streaming.pages.api.topic_readers import readers_of

_NOT_KNOWN = -1
_FAR = np.iinfo(np.int64).max
_LAST = len(KINDS)
"""After the place of every kind."""


def topic_page(judged: JudgedLook, request: PageRequest) -> TopicPage:
    """A page of topics."""
    topics = TopicSums(judged)
    some = cut(topics.sheet, request)
    return some.page(TopicPage, judged.look.now_ms, topics.rows(some.items))


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


@dataclass(frozen=True, eq=False)  # no slots: what follows from the look is computed once
class TopicSums:
    """What the partitions of each topic come to; each item is a topic, in the order of their names."""

    judged: JudgedLook

    @property
    def _shown(self) -> Longs:
        return self.judged.look.one_of_each

    @cached_property
    def names(self) -> list[str]:
        """The topics."""
        topics = self.judged.look.topics
        return sorted({topics[item] for item in self._shown.tolist()})

    @cached_property
    def _topic(self) -> Longs:
        """The item of the topic of each partition."""
        items, topics = {name: item for item, name in enumerate(self.names)}, self.judged.look.topics
        return np.fromiter((items[topics[item]] for item in self._shown.tolist()), np.int64, len(self._shown))

    def _sum(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Of the partitions of each topic; not known where a part is not."""
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
        return {
            "partitions": np.bincount(self._topic, minlength=len(self.names)),
            "bytes_rate": self._sum(rates.bytes_rate(look)),
            "records_rate": self._sum(rates.records_rate(look)),
            "size_bytes": self._sum(logs["size_bytes"]).astype(np.int64),
            "unread_offsets": self._sum(logs["unread_offsets"]).astype(np.int64),
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
        return Sheet(columns=columns, texts=self.names, natural=natural, topics=self.names)

    def rows(self, items: Sequence[int]) -> list[TopicRow]:
        """Some of the rows."""
        some = list(items)
        numbers = {name: column[some].tolist() for name, column in self.columns.items() if not name.startswith("_")}
        limits = [self.judged.look.view.logs.limits[log] for log in self.columns["_first"][some].tolist()]
        return [
            TopicRow(
                **{name: values[place] for name, values in numbers.items()},
                topic=self.names[item],
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
