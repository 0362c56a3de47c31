"""When a broker has nothing left to do: it has written down how far its partitions are committed, or has deleted all it will delete."""

import time
from collections.abc import Callable, Mapping

from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import TopicPartition

_CHECKPOINT = "replication-offset-checkpoint"  # written every five seconds
_SETTLED_SECONDS = 5


def rest(kafka: Kafka, high_watermarks: Mapping[TopicPartition, int]) -> None:
    """Waits until the disks of a broker tell these."""
    wanted = {f"{topic} {partition} {offset}" for (topic, partition), offset in high_watermarks.items()}

    def told() -> set[str]:
        files = [path for log_dir in kafka.log_dirs if (path := log_dir / _CHECKPOINT).exists()]
        return {line for path in files for line in path.read_text().splitlines()}

    kafka.until(lambda: wanted <= told(), f"{_CHECKPOINT} tells {sorted(wanted)}")


def settle(kafka: Kafka, look: Callable[[], object], what: str) -> None:
    """Waits until it has been the same for so long that a broker with short intervals has nothing left to do."""
    seen, since = look(), time.monotonic()

    def settled() -> bool:
        nonlocal seen, since
        now = look()
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > _SETTLED_SECONDS

    kafka.until(settled, f"{what} stays as it is")
