"""Chooses one replica of each partition: of several brokers' disks given together, every record comes once."""

import logging
from collections.abc import Iterable

from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.segment_files import list_segments, read_leader_epochs
from streaming.errors import LogDirError

log = logging.getLogger(__name__)


def choose_replicas(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    """One replica of each partition: the one with the highest leader epoch, of these the one whose log has the most; says which.

    A replica that was cut off from the others may have a longer log, whose end was never replicated. Its leader epoch shows that.

    Raises:
        LogDirError: the same name is of two topics, one of which was deleted; or a directory cannot be read.
    """
    copies: dict[tuple[str, int], list[Partition]] = {}
    for each in partitions:
        copies.setdefault((each.topic, each.partition), []).append(each)
    return tuple(_choose(copies[name]) for name in sorted(copies))


def _choose(copies: list[Partition]) -> Partition:
    if len(copies) == 1:
        return copies[0]
    by_id = {each.topic_id: each for each in copies if each.topic_id}
    if len(by_id) > 1:
        named = ", ".join(f"{topic_id} in {each.path}" for topic_id, each in by_id.items())
        raise LogDirError(
            f"option log_dirs: topic {copies[0].topic} has several topic ids: {named}; it was deleted and made again, so leave one of the "
            "log dirs out, or select other topics"
        )
    try:
        chosen = max(copies, key=_progress)
    except OSError as error:
        raise LogDirError(f"option log_dirs: {error.filename} cannot be read: {error.strerror or error}") from error
    others = ", ".join(str(each.path) for each in copies if each is not chosen)
    log.warning("several replicas of %s-%d are given: %s is read, and not %s", chosen.topic, chosen.partition, chosen.path, others)
    return chosen


def _progress(partition: Partition) -> tuple[int, int, int]:
    """Its leader epoch, and how far its log goes: the base offset of its active segment, and the bytes in it."""
    epochs = read_leader_epochs(partition.path)
    segments = list_segments(partition.path)
    last = (segments[-1].base_offset, segments[-1].size) if segments else (-1, 0)
    return (epochs[-1].epoch if epochs else -1, *last)
