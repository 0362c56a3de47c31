"""The log dirs that a reader of records was given: checked, so that a wrong one fails before anything is read."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from streaming.broker.disk.identity import UNKNOWN_BROKER, LogDir, read_identity
from streaming.broker.disk.logdirs import Partition, list_partitions
from streaming.broker.disk.segment_files import Segment, indexes_alone
from streaming.broker.excerpts.excerpt_listing import UNREADABLE, WHY_UNREADABLE, topic_id_or_unreadable
from streaming.broker.protocol.selection import Selection
from streaming.common.formatting import format_list
from streaming.errors import LogDirError, UsageError
from streaming.kafka.formats.names import INTERNAL_TOPICS, META_PROPERTIES, METADATA_TOPIC, DirState, parse_partition_dir
from streaming.kafka.formats.properties import known_clusters

log = logging.getLogger(__name__)

_NAMED = 10
_INDEXES_NAMED = 3


def open_given_dirs(paths: Sequence[Path]) -> tuple[LogDir, ...]:
    """The log dirs at these paths, each once. One without ``meta.properties``, a copy, counts if it has directories of partitions.

    Raises:
        LogDirError: one does not exist, cannot be read or is no log dir, or they are of several clusters; names the option ``log_dirs``.
    """
    found = tuple({path.resolve(): _open(path) for path in paths}.values())
    if len(known_clusters(each.cluster_id for each in found)) > 1:
        named = ", ".join(f"{each.path} is of {each.cluster_id}" for each in found if each.cluster_id)
        raise LogDirError(f"option log_dirs: give log dirs of one cluster; {named}")
    return found


def copied_in_part(directory: Path, segments: Iterable[Segment]) -> str:
    """What shows that a log at rest lacks a segment, in words; "" if nothing does. Of one whose broker runs it may be a deletion.

    Raises:
        OSError: the directory is gone or cannot be read.
    """
    alone = indexes_alone(directory, segments)
    return f"{directory} has {format_list(alone, _INDEXES_NAMED)} without the .log beside" if alone else ""


def _open(path: Path) -> LogDir:
    try:
        return read_identity(path)
    except LogDirError as error:
        if _may_exist(path / META_PROPERTIES) or not _has_partitions(path):
            raise LogDirError(f"option log_dirs: {error}") from error
    except OSError as error:
        raise LogDirError(f"option log_dirs: {path} cannot be read: {error.strerror or error}") from error
    log.warning("option log_dirs: %s has no %s: it is read as a part of a copied log dir", path, META_PROPERTIES)
    return LogDir(path, UNKNOWN_BROKER, "", None)


def _may_exist(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # of a directory that may not be read nobody knows
        return True


def _has_partitions(path: Path) -> bool:
    try:
        return any(parse_partition_dir(each.name) is not None and each.is_dir() for each in path.iterdir())
    except OSError:  # what is in the way was said already
        return False


def wanted_partitions(log_dirs: Iterable[LogDir], selection: Selection) -> tuple[Partition, ...]:
    """The wanted live partitions of these log dirs.

    The coordinators' topics are read only if ``topics`` names them, as consumers with a pattern leave them out. The log of the cluster's
    metadata never is: it may hold passwords.

    Raises:
        UsageError: nothing of what the options name is there; names some of what is.
        LogDirError: a log dir or a wanted partition cannot be read: its records would be missing.
    """
    there: list[Partition] = []
    for log_dir in log_dirs:
        try:
            there += [each for each in list_partitions(log_dir, topic_id_or_unreadable) if each.state is DirState.LIVE]
        except OSError as error:
            raise LogDirError(f"option log_dirs: {log_dir.path} cannot be read: {error.strerror or error}") from error
    if METADATA_TOPIC in selection.topics:
        raise UsageError(f"option topics: {METADATA_TOPIC} is not read, because it may hold passwords; segtail dump shows it without them")
    hidden = {METADATA_TOPIC, *INTERNAL_TOPICS.difference(selection.topics)}
    found = tuple(each for each in there if each.topic not in hidden and selection.has(each.topic, each.partition))
    missing = set(selection.topics).difference(each.topic for each in there)
    if missing or (not found and (selection.topics or selection.pattern or selection.partitions)):
        raise UsageError(_nothing(selection, sorted(missing), sorted({each.topic for each in there} - hidden)))
    for each in found:
        if each.topic_id == UNREADABLE:
            raise LogDirError(f"option log_dirs: {each.path} cannot be read: {WHY_UNREADABLE}; run as the broker's user, or leave it out")
    return found


def _nothing(selection: Selection, missing: Sequence[str], topics: Sequence[str]) -> str:
    if missing:
        option = f"option topics: no partition of {', '.join(missing[:_NAMED])} is in the log dirs"
    elif selection.pattern:
        option = f"option topicsPattern: {selection.pattern!r} fits no topic in the log dirs as a whole"
    else:
        option = "option partitions: no such partition is in the log dirs"
    more = f" and {len(topics) - _NAMED} more" if len(topics) > _NAMED else ""
    return f"{option}; they have {', '.join(topics[:_NAMED]) or 'no topics'}{more}"
