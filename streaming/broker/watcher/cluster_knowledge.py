"""The facts about the cluster that the watcher needs."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Protocol

from streaming.common.log_key import LogKey
from streaming.kafka.formats.metadata_partitions import Begun, PartitionState, UncleanElection
from streaming.rules.limits import Limits

LEADER_UNKNOWN = (-2, -1)
"""(leader, leader epoch) if they are not known."""


class Cluster(Protocol):
    """The contents of metadata logs: for partitions, of the most advanced one; for anything else, of the one of a log's own broker."""

    def refresh(self) -> None:
        """Read what was appended to the metadata logs."""

    def version(self) -> int:
        """A number that changes whenever partitions or configurations may have changed."""

    def leads(self, log: LogKey, epoch: int) -> Leads:
        """Whether a replica's broker led when its batches of a leader epoch (-1: batches without one) were appended.

        If no metadata contains the epoch any more, the answer is yes for exactly one replica of the partition.
        """

    def partition(self, log: LogKey) -> PartitionState | None:
        """Replicas and leader of a partition; None if not known."""

    def epochs_begun(self, log: LogKey) -> Begun:
        """When leader epochs of a partition began, as far as that is known."""

    def metadata_version(self, broker: int) -> int:
        """The highest metadata.version that a broker's registration supports, -1 where it names none or that is not known."""

    def unclean_elections(self) -> list[UncleanElection]:
        """The unclean elections of leaders whose log dirs are on this host; each is returned once."""

    def has_topic(self, log: LogKey) -> bool | None:
        """Whether the topic still exists; None if not known."""

    def topic_ids(self) -> Collection[str] | None:
        """The ids of all topics that exist; None if one of the brokers here does not know them."""

    def configs(self, log: LogKey) -> str:
        """The configuration of the topic (`streaming.rules.config_values.Configs.text`)."""

    def limits(self, log: LogKey) -> Limits:
        """The limits of the log, as far as they are known."""


class Leads(IntEnum):
    """Whether a replica's broker led its partition in a leader epoch."""

    UNKNOWN = -1
    """No metadata is readable."""
    NO = 0
    YES = 1
    BEHIND = 2
    """The metadata that was read does not reach the epoch, or does not contain the partition yet."""
    SEARCHED = 3
    """The epoch is older than the metadata in memory, and the metadata on disk is still being read."""
