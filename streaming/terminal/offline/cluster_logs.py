"""Which directories of log dirs hold a log of the cluster, decided here for every command, and which log dirs may not have been seen."""

from collections.abc import Callable, Iterator
from pathlib import Path

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.log_dir_search import unsearched_words
from streaming.broker.disk.logdirs import Partition
from streaming.broker.watcher.cursors import log_id
from streaming.common.log_key import LogKey
from streaming.common.units import format_be, format_count, format_list, format_word
from streaming.kafka.formats.names import METADATA_TOPIC

_NAMED = 3

ASSUMED_LIMITS = "the limits of topics are assumed where topic_config does not give them"
"""What is not known of retention without metadata."""


class ClusterLogs:
    """Selects the cluster's logs that an answer is about, and remembers what it has selected and what it has left out.

    Args:
        asked_for: whether an answer is about a topic and partition.
        needed: whether logs of a topic are read for it all the same.
    """

    def __init__(
        self, cluster: ClusterView, asked_for: Callable[[str, int], bool], needed: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._cluster = cluster
        self._asked_for = asked_for
        self._needed = needed
        self.listed: dict[Path, tuple[str, int]] = {}
        self._foreign: list[Path] = []

    def __call__(self, partition: Partition) -> bool:
        """Whether a log is to be read."""
        asked_for = self._asked_for(partition.topic, partition.partition)
        if not (asked_for or self._needed(partition.topic)):
            return False
        if is_of_cluster(self._cluster, partition):
            self.listed[partition.path] = (partition.topic, partition.partition)
            return True
        if asked_for and is_foreign(self._cluster, log_id(partition)) and partition.path not in self._foreign:
            self._foreign.append(partition.path)
        return False

    def doubts(self) -> Iterator[str]:
        """The directories that are left out although nothing shows that their broker will delete them."""
        if self._foreign:
            some = format_list([format_word(str(path)) for path in sorted(self._foreign)], _NAMED)
            yield f"{format_count(len(self._foreign), 'log')} left out, because the topic is not in the metadata: {some}"


def is_of_cluster(cluster: ClusterView, partition: Partition) -> bool:
    """Whether a log is one of the cluster's, as far as its metadata is known.

    A log is left out if its topic is not in the metadata, or if it has moved to another broker: its broker makes it a stray, or deletes it,
    at the next start. The metadata log is one like every other, although the metadata does not contain it.
    """
    if partition.topic == METADATA_TOPIC:
        return True
    state = cluster.partition(log_id(partition))
    return not cluster.known or (state is not None and partition.log_dir.broker in state.replicas)


def is_foreign(cluster: ClusterView, log: LogKey) -> bool:
    """Whether the metadata is known and has no such partition."""
    return cluster.known and log.topic != METADATA_TOPIC and cluster.partition(log) is None


def unseen_dirs(log_dirs: LogDirs, cluster: ClusterView) -> Iterator[str]:
    """Sentences about log dirs that were not seen. Those that were named are as the user asked: only a search can miss some."""
    if log_dirs.unsearched:
        yield unsearched_words(log_dirs.unsearched)
    if log_dirs.searched:
        yield from other_dirs(log_dirs, cluster)


def other_dirs(log_dirs: LogDirs, cluster: ClusterView) -> Iterator[str]:
    """Which log dirs their brokers have besides these, in sentences.

    A broker registers with the directory.id of each of its log dirs (from Kafka 3.7 on), which the metadata log has. One of these that
    could never be read may be one of those.
    """
    for broker in log_dirs.brokers:
        state = cluster.broker(broker)
        registered = () if state is None else state.log_dirs
        known = [each.directory_id for each in log_dirs.known if each.broker == broker]
        missing = sorted({*registered} - {*known})
        if len(missing) > sum(each.broker == broker for each in log_dirs) - len(known):
            seen = len(registered) - len(missing)
            yield (
                f"{seen:,} of {format_count(len(registered), 'log dir')} of broker {broker} {format_be(seen)} found here: it is registered "
                f"with {format_list(missing, _NAMED)} (directory.id in meta.properties), too"
            )


def no_metadata(cluster: ClusterView, lacks: str) -> str:
    """That no metadata log can be read, what is therefore not known, and what to do about it."""
    if cluster.of_zookeeper:
        return f"the metadata of a cluster with ZooKeeper is in no log dir, so {lacks}"
    return f"no metadata log can be read here, so {lacks}; run as the broker's user, or name the log dir that has {METADATA_TOPIC}-0 too"
