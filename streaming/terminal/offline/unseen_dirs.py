"""Which log dirs may not have been seen: what below a named directory could not be searched, and what a registration has besides."""

from collections.abc import Iterator

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.log_dir_search import unsearched_words
from streaming.common.formatting import format_be, format_count, format_list
from streaming.kafka.formats.names import METADATA_TOPIC

_NAMED = 3


def unseen_dirs(log_dirs: LogDirs, cluster: ClusterView) -> Iterator[str]:
    """Sentences. Log dirs that were named are what somebody has asked for: only of those that were searched for some can be missing.

    A broker registers with the directory.id of each of its log dirs (from Kafka 3.7 on), which the metadata log has.
    """
    if log_dirs.unsearched:
        yield unsearched_words(log_dirs.unsearched)
    if not log_dirs.searched:
        return
    for broker in log_dirs.brokers:
        state = cluster.broker(broker)
        registered = () if state is None else state.log_dirs
        missing = sorted({*registered} - {each.directory_id for each in log_dirs.known if each.broker == broker})
        if missing:
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


ASSUMED_LIMITS = "the limits of topics are assumed where topic_config does not give them"
"""What is not known of retention without metadata."""
