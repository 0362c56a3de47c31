"""What the watcher wants to know of the cluster."""

from typing import Protocol

from streaming.kafka.metadata_partitions import PartitionState
from streaming.watcher.events import LogId

LEADER_UNKNOWN = (-2, -1)
"""(leader, leader epoch) where nobody knows them."""


class Cluster(Protocol):
    """What metadata logs say: of partitions the one that has come furthest, else that of a log's own broker."""

    def refresh(self) -> None:
        """Read what was appended to the metadata logs."""

    def version(self) -> int:
        """Another number whenever what is known of partitions or configurations may have changed."""

    def leader(self, log: LogId) -> tuple[int, int]:
        """(leader, leader epoch) of a partition; `LEADER_UNKNOWN` if not known."""

    def partition(self, log: LogId) -> PartitionState | None:
        """Replicas and leader of a partition; None if not known."""

    def has_topic(self, log: LogId) -> bool | None:
        """Whether the topic still exists; None if not known."""

    def configs(self, log: LogId) -> str:
        """What is set for the topic (`streaming.rules.limits.Configs.text`)."""

    def compacts(self, log: LogId) -> bool:
        """Whether the log is compacted, as far as that is known."""
