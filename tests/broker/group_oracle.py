"""What is left for each group, counted by consuming it; and the same by arithmetic on what kafka-dump-log prints."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from tests.broker.clients import SECONDS
from tests.broker.dumped_logs import DumpedBatch, dumped, readable
from tests.broker.kafka import Kafka
from tests.broker.lab import Commit, Consumed, Ends, Lab
from tests.broker.oracle import TopicPartition, run_tool

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Of one group in one partition. ``committed`` and ``uncommitted`` are what came to a consumer of that isolation."""

    commit: Commit
    ends: Ends
    committed: Consumed
    uncommitted: Consumed

    @property
    def key(self) -> tuple[str, str, int]:
        return self.commit.group, self.commit.topic, self.commit.partition


def consumed(lab: Lab) -> list[Left]:
    """Of all groups but share groups, in partitions that have a leader; nothing may be appended meanwhile."""
    ends = lab.ends()
    commits = [each for each in lab.commits() if each.lag < 0 and (each.topic, each.partition) in ends]
    offsets = [(each.topic, each.partition, each.offset) for each in commits]
    counts = [lab.consume(isolation, offsets) for isolation in (COMMITTED, UNCOMMITTED)]
    assert lab.ends() == ends, "a log has grown while it was read"
    return [
        Left(commit=commit, ends=ends[commit.topic, commit.partition], committed=committed, uncommitted=uncommitted)
        for commit, committed, uncommitted in zip(commits, *counts, strict=True)
    ]


class Arithmetic:
    """What a consumer has to get, from the batches of the leaders' logs."""

    def __init__(self, directories: Iterable[Path]) -> None:
        self._batches = dumped(directories)
        self._readable = {
            (key, isolation): readable(batches, committed=isolation == COMMITTED)
            for key, batches in self._batches.items()
            for isolation in (COMMITTED, UNCOMMITTED)
        }

    def batches(self, partition: TopicPartition) -> Sequence[DumpedBatch]:
        """Of one partition."""
        return self._batches.get(partition, [])

    def consumed(self, left: Left, isolation: str) -> Consumed:
        """From the committed offset to the end that the isolation allows."""
        commit, ends = left.commit, left.ends
        if commit.offset > ends.high_watermark:
            return Consumed(-1, -1, -1)
        end = ends.last_stable if isolation == COMMITTED else ends.high_watermark
        first = max(commit.offset, ends.log_start)
        records = self._readable.get(((commit.topic, commit.partition), isolation), [])
        rest = [record for record in records if first <= record[0] < end]
        return Consumed(len(rest), *rest[0]) if rest else Consumed(0, -1, -1)

    def next_record(self, left: Left) -> tuple[int, int]:
        """Offset and timestamp of the first unread record that is not aborted, though an open transaction may hold it back; or (-1, -1)."""
        first = max(left.commit.offset, left.ends.log_start)
        records = self._readable.get(((left.commit.topic, left.commit.partition), COMMITTED), [])
        return next((record for record in records if first <= record[0] < left.ends.high_watermark), (-1, -1))

    def bytes(self, left: Left) -> int:
        """Of whole batches from the one that holds the committed offset to the high watermark."""
        first, end = max(left.commit.offset, left.ends.log_start), left.ends.high_watermark
        return sum(batch.size for batch in self.batches((left.commit.topic, left.commit.partition)) if first <= batch.last < end)


def leading(kafka: Kafka, topics: Iterable[str]) -> list[Path]:
    """The directories of the leaders of these topics' partitions."""
    found = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=SECONDS).topics
    leaders = {f"{topic}-{number}": state.leader for topic in topics for number, state in found[topic].partitions.items()}
    return [
        path for node in kafka.brokers for log_dir in node.log_dirs for path in log_dir.iterdir() if leaders.get(path.name) == node.node_id
    ]


def told_by_tool(kafka: Kafka) -> dict[tuple[str, str, int], tuple[int, int, int]]:
    """Committed offset, log end and lag by (group, topic, partition) as kafka-consumer-groups prints them."""
    found = {}
    for line in run_tool("groups", "--bootstrap-server", kafka.bootstrap, "--describe", "--all-groups", "--offsets").splitlines():
        cells = line.rsplit(maxsplit=8)  # the name of a group may hold spaces
        if len(cells) == 9 and cells[3].isdigit():
            group, topic, partition, *numbers = cells[:6]
            found[group, topic, int(partition)] = (int(numbers[0]), int(numbers[1]), int(numbers[2]))
    return found
