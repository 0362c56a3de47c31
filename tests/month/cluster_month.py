"""The cluster of a month, and the page that segtail serves of it: by the real table, rounds, judge and exporter."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client.exposition import generate_latest

from streaming.cluster.view.observer import Observer, Versions
from streaming.cluster.view.thresholds import thresholds
from streaming.cluster.view.view import view
from streaming.common.settings import Settings
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.pages.exposition.family_lines import lines_of
from streaming.pages.exposition.render import shown_groups_of
from streaming.pages.exposition.series import choose
from tests.consumers.group_world import GroupJob, row
from tests.month.hosts import Hosts
from tests.month.month_agent import MonthAgent
from tests.month.readers import Reader
from tests.month.streams import START, Stream, unix_ms
from tests.view.reported import Facts
from tests.view.rows import new_table, states
from tests.view.test_transaction_columns import coordinator

_FAILED = "up 0"
_ANSWERED = "up 1"
_QUERY = "segtail"
_POLLS_S = 60
"""So far back it is known when the agents' bytes were published, besides a lag of as much."""

_COORDINATOR = Facts(configs=json.dumps({"static": {"offsets.retention.minutes": str(60 * 24 * 60)}}), replicas=(1,), isr=(1,)).encode()
"""Kafka deletes offsets after two months, so that whoever is not there any more stays for all of this one."""


class ClusterMonth:
    """``needed``: names of the metrics of the page that somebody asks for. What happens in the month changes its fields."""

    def __init__(self, streams: Iterable[Stream], readers: Iterable[Reader], needed: frozenset[str]) -> None:
        self.streams = {(each.topic, each.partition): each for each in streams}
        self.readers = {each.name: each for each in readers}
        self.hosts = Hosts(replicated=sorted({topic for topic, _ in self.streams}))
        self.job_up = True
        self.scrapes_fail = False
        self.lag_s = 0.0
        self._needed = needed
        self._agent = MonthAgent(streams=self.streams)
        self._entries: dict[str, dict[str, Any]] = {}
        self._before_s = 0.0
        for reader in self.readers.values():
            self._agent.note(reader)
        self.start_job(0.0)

    # what happens

    def add(self, reader: Reader) -> None:
        self.readers[reader.name] = reader
        self._agent.note(reader)

    def remove(self, name: str) -> None:
        """The coordinator deletes a group, because its offsets have expired."""
        del self.readers[name]
        self._agent.forget(name)

    def remake(self, topic: str, now_s: float) -> None:
        """A topic is deleted and made anew, with the same name."""
        for stream in self._of(topic):
            stream.born_s = now_s

    def open_transaction(self, topic: str, transactional_id: str, timeout_s: int, now_s: float, reader: str = "") -> None:
        """A producer writes its last record in one, and is silent from then on. ``reader``: the group whose offsets it has committed."""
        (stream,) = self._of(topic)
        stream.open_s = now_s
        self._entries[topic] = {
            "transactional_id": transactional_id,
            "producer_id": 9,
            "state": "Ongoing",
            "timeout_ms": 1000 * timeout_s,
            "start_ms": unix_ms(now_s),
            "last_update_ms": unix_ms(now_s),
            "partitions": [f"{topic}-0", *([f"{OFFSETS_TOPIC}-0"] if reader else [])],
        }
        if reader:
            self._agent.wait(self.readers[reader], now_s)

    def end_transaction(self, topic: str, reader: str = "") -> None:
        """Its coordinator, or somebody, aborts it."""
        (stream,) = self._of(topic)
        stream.open_s = None
        self._entries[topic] |= {"state": "CompleteAbort", "start_ms": -1, "partitions": []}
        if reader:
            self._agent.end_wait(reader)

    def start_job(self, now_s: float) -> None:
        """A new process of the job, which knows nothing of before."""
        self.job_up = True
        self._job = GroupJob(new_table(coordinator_partitions=1), {"a1": self._agent}, now=START + now_s)
        self._observer = Observer(
            query=_QUERY, versions=Versions(segtail="0", spark="0", python="0"), thresholds=thresholds(Settings()), started=START + now_s
        )
        for stream in self.streams.values():
            stream.forget()
        self._job.reach()

    # what is seen of it

    def page(self, now_s: float) -> Iterator[str]:
        """Go on to a time; the lines that Prometheus has of it then."""
        self._agent.now_s = now_s
        for reader in self.readers.values():
            if reader.step(self._before_s, now_s):
                self._agent.note(reader)
        self._before_s = now_s
        if self.job_up:
            self._look(now_s)
        if not self.job_up or self.scrapes_fail:
            yield _FAILED
            return
        yield _ANSWERED
        groups = shown_groups_of(self._job.board, self._job.table, unix_ms(now_s))
        seen = view(self._job.table.snapshot(START + now_s))
        for family in choose(seen, 1_000_000, groups=groups).families:
            if family.metric.name in self._needed:
                yield from "".join(lines_of(family).to_pylist()).splitlines()
        own = self._observer.families(seen.skipped_bytes, START + now_s, full=lambda _: self.hosts.full(now_s))
        for line in generate_latest(own).decode().splitlines():
            if line.partition("{")[0].partition(" ")[0] in self._needed:
                yield line

    def _look(self, now_s: float) -> None:
        """What the job does between two scrapes: it polls agents, a micro-batch lands, a round over groups is done."""
        now = START + now_s
        statuses = self.hosts.statuses(now_s)
        self._observer.know(statuses, at=now)
        self._observer.checked(now - 1)
        for each in statuses:
            if each.up:
                for ago_s in range(2 * _POLLS_S, -1, -10):  # it is polled more often than anybody looks
                    self._observer.published(each.name, "j", _bytes_until(now_s - ago_s), now - ago_s)
                self._observer.processed(each.name, "j", _bytes_until(now_s - self.lag_s))
        self._agent.groups_ = [each.facts() for each in self.readers.values()]
        rows = [each.row(now_s) for each in self.streams.values()]
        rows += [row(OFFSETS_TOPIC, end=1000, facts=_COORDINATOR), coordinator(*self._entries.values(), agent="a1", broker=1)]
        self._job.table.apply(states(*rows))
        self._job.round(now - self._job.now)

    def _of(self, topic: str) -> list[Stream]:
        return [each for each in self.streams.values() if each.topic == topic]


def _bytes_until(at_s: float) -> int:
    """What an agent has published by then."""
    return 1_000_000 + round(1_000 * at_s)
