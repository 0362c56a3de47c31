"""When a broker has written down how far its partitions are committed: it does so every five seconds."""

from collections.abc import Mapping

from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import TopicPartition

_CHECKPOINT = "replication-offset-checkpoint"


def rest(kafka: Kafka, high_watermarks: Mapping[TopicPartition, int]) -> None:
    """Waits until the disks of a broker tell these."""
    wanted = {f"{topic} {partition} {offset}" for (topic, partition), offset in high_watermarks.items()}

    def told() -> set[str]:
        files = [path for log_dir in kafka.log_dirs if (path := log_dir / _CHECKPOINT).exists()]
        return {line for path in files for line in path.read_text().splitlines()}

    kafka.until(lambda: wanted <= told(), f"{_CHECKPOINT} tells {sorted(wanted)}")
