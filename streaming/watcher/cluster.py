"""What the watcher wants to know of the cluster."""

from enum import IntEnum
from typing import Protocol

from streaming.kafka.metadata_partitions import PartitionState, UncleanElection
from streaming.watcher.events import LogId

LEADER_UNKNOWN = (-2, -1)
"""(leader, leader epoch) where nobody knows them."""


class Leads(IntEnum):
    """Whether a replica's broker led its partition in a leader epoch."""

    UNKNOWN = -1
    """No metadata is readable."""
    NO = 0
    YES = 1
    BEHIND = 2
    """The metadata at hand has not come as far as the epoch, or has not heard of the partition yet."""
    SEARCHED = 3
    """The epoch is older than the metadata in memory, and what lies on disk is still being read."""


class Cluster(Protocol):
    """What metadata logs say: of partitions the one that has come furthest, else that of a log's own broker."""

    def refresh(self) -> None:
        """Read what was appended to the metadata logs."""

    def version(self) -> int:
        """Another number whenever what is known of partitions or configurations may have changed."""

    def leads(self, log: LogId, epoch: int) -> Leads:
        """Whether what a replica holds of a leader epoch (-1: of batches without one) was appended under its broker's lead.

        Of an epoch that no metadata tells of any more, exactly one replica of a partition says so.
        """

    def partition(self, log: LogId) -> PartitionState | None:
        """Replicas and leader of a partition; None if not known."""

    def metadata_version(self, broker: int) -> int:
        """The highest metadata.version that a broker's registration supports, -1 where it names none or that is not known."""

    def unclean_elections(self) -> list[UncleanElection]:
        """Those by which a broker came to lead whose log dirs are here, each once."""

    def has_topic(self, log: LogId) -> bool | None:
        """Whether the topic still exists; None if not known."""

    def configs(self, log: LogId) -> str:
        """What is set for the topic (`streaming.rules.limits.Configs.text`)."""

    def compacts(self, log: LogId) -> bool:
        """Whether the log is compacted, as far as that is known."""
