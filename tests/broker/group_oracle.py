"""What is left for each group, by arithmetic on what kafka-dump-log prints; and what kafka-consumer-groups makes of it."""

from collections.abc import Mapping, Sequence

from tests.broker.dumped_logs import DumpedBatch, readable
from tests.broker.group_consuming import COMMITTED, UNCOMMITTED, Left
from tests.broker.kafka_tools import TopicPartition
from tests.broker.lab import Consumed


class Arithmetic:
    """What a consumer has to get, from the batches of the leaders' logs."""

    def __init__(self, batches: Mapping[TopicPartition, Sequence[DumpedBatch]]) -> None:
        self._batches = batches
        self._readable = {
            (key, isolation): readable(dumped, committed=isolation == COMMITTED)
            for key, dumped in batches.items()
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


def reported_by_tool(described: str) -> dict[tuple[str, str, int], tuple[int, int, int]]:
    """Committed offset, log end and lag by (group, topic, partition) as kafka-consumer-groups prints them."""
    found = {}
    for line in described.splitlines():
        cells = line.rsplit(maxsplit=8)  # the name of a group may hold spaces
        if len(cells) == 9 and cells[3].isdigit():
            group, topic, partition, *numbers = cells[:6]
            found[group, topic, int(partition)] = (int(numbers[0]), int(numbers[1]), int(numbers[2]))
    return found
