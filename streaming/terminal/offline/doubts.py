"""Why an answer about log dirs may not be the whole truth, in sentences for people."""

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.strays import stray_sentences
from streaming.broker.ladder.positions import CountedLog
from streaming.broker.watcher.tail import Tail
from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.view.broker_status import newest
from streaming.cluster.view.host_families import last_written
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.transaction_columns import CoordinatorView
from streaming.common.log_key import LogKey
from streaming.common.units import format_be, format_count, format_duration, format_list, format_word
from streaming.kafka.formats.layout import PREFIX_BYTES
from streaming.kafka.formats.names import METADATA_TOPIC, TRANSACTION_TOPIC, parse_partition_dir
from streaming.terminal.offline.cluster_logs import unseen_dirs
from streaming.terminal.offline.offline_agent import OfflineAgent

log = logging.getLogger(__name__)

_QUIET_MS = 60_000
"""A broker completes a batch that it has begun to write much sooner."""

_SILENT_MS = 12_000
"""A broker that runs writes its high watermarks every five seconds, and its metadata log twice a second."""


def unread(agent: OfflineAgent, counts: Callable[[str, int], bool], exported: Sequence[Tail], listed: Iterable[Path]) -> Iterator[str]:
    """Sentences about logs that were not read to their ends or not understood. Files that may not be read at all are in `refused`.

    Args:
        counts: whether the answer is about a topic and partition.
        exported: the logs that are exported.
        listed: the directories of all logs that were to be read.
    """
    yield from unseen_dirs(agent.watcher.log_dirs, agent.cluster)
    yield from stray_sentences(agent.watcher.log_dirs.available, agent.cluster, counts)
    if not agent.complete:
        yield "some logs change all the time and were not read to their ends"
    for log_dir in agent.host_status.log_dirs:
        if not log_dir.up:
            yield log_dir.problem or f"log dir {log_dir.log_dir} cannot be read"
    for path in agent.watcher.checkpoints_not_understood():
        yield f"{format_word(str(path))} cannot be read or is damaged: the offsets in it are not known"
    taken_up = {tail.partition.path for tail in agent.watcher.tails()}
    for path in sorted(set(listed) - taken_up):
        name = parse_partition_dir(path.name)
        if path.is_dir() and name is not None and counts(name.topic, name.partition):
            log.warning("log cannot be listed: no segment of it can be read", extra={"path": str(path)})
            yield f"{format_word(str(path))}: no segment of it can be read"
    away = {each.broker for each in agent.away}
    for tail in (each for each in exported if counts(each.cursor.log.topic, each.cursor.log.partition)):
        where, cursor = format_word(str(tail.partition.path)), tail.cursor
        if cursor.stopped:
            yield f"{where} is not understood from offset {cursor.next_offset} on: {cursor.stopped}"
        elif ragged := ragged_bytes(tail, agent.now_ms):
            last = f"the last {ragged:,} bytes, from offset {cursor.next_offset} on"
            yield f"{where}: {last}, are no whole batch: see segtail dump --verify {where}"
        elif cursor.log.broker in away and tail.high_watermark > cursor.next_offset:  # one that runs appends while both are read
            yield (
                f"{where} ends at offset {cursor.next_offset}, below the high watermark of its own checkpoint, {tail.high_watermark}: "
                "what came after it is missing here"
            )
        elif not tail.replayed_whole:
            yield f"{where}: some of what is needed to know what is open there is gone, damaged or not readable"


def ragged_bytes(tail: Tail, now_ms: int) -> int:
    """The bytes at the end of a log that are no whole batch, although nothing has been written there for a minute; 0 if there are none.

    A broker that starts cuts them off. Until then it is not known what they were.
    """
    at = tail.cursor.position
    last = tail.segments[-1] if tail.segments else None
    if last is None or last.base_offset != tail.cursor.segment or last.size <= at or now_ms - last.modified_ms < _QUIET_MS:
        return 0
    try:
        file = last.open()
    except OSError:  # it has just been deleted or compacted
        return 0
    with file:
        return file.size() - at if any(file.read(at, PREFIX_BYTES)) else 0  # a preallocated file ends with zeros


def damage_advice(directory: Path | None, error: str) -> str:
    """What to do about a log that cannot be read on, in a sentence; "" where that is not known: it is in no directory here."""
    if os.strerror(errno.EACCES) in error:
        return "Run as the broker's user, or as one of its group with read access"
    if directory is None:
        return ""
    shows = Commands().verify(str(directory)).line
    return f"Consumers get no further than that; another replica may have it whole{f', and `{shows}` lists all damage' if shows else ''}"


def missing_offsets(cluster: ClusterView, log: LogKey, counted: CountedLog, begin: int) -> Iterator[str]:
    """What a log that is not compacted lacks between two segments, from an offset on."""
    if not cluster.known or log.topic == METADATA_TOPIC or cluster.limits(log).compacts:
        return
    if hole := counted.hole(begin):
        yield (
            f"{format_word(f'{log.topic}-{log.partition}')} of broker {log.broker}: offsets {hole[0]} to {hole[1]} are missing between two "
            "segments, which is right only if the topic was compacted before; consumers jump over them without a word"
        )


def refused(agent: OfflineAgent, counts: Callable[[str, int], bool]) -> Iterator[str]:
    """What the file system does not let be read."""
    for each in agent.watcher.unreadable():
        if counts(each.log.topic, each.log.partition):
            yield f"{format_word(str(each.path))} cannot be read: {each.error}"


def silent(agent: AgentStatus, now_ms: int) -> Iterator[str]:
    """Brokers that have written nothing lately, where others are not read here: these may have taken over, and it takes a minute until the
    age of a metadata log alone shows that who leads is not known any more.
    """
    latest = newest(agent.broker_statuses)
    if latest is None or {each.broker for each in latest.registered} <= {*agent.brokers}:
        return
    for broker, at_ms in sorted(last_written(agent.broker_statuses, agent.log_dirs).items()):
        if 0 <= at_ms < now_ms - _SILENT_MS:
            yield f"broker {broker} has written nothing for {format_duration((now_ms - at_ms) / 1000)}: what its log dirs say may be old"


def missing_coordinators(view: CoordinatorView) -> str:
    """Which coordinators' logs are missing, so that it is not known whether a transaction hangs."""
    if view.partitions is None:
        return f"no metadata log can be read here, so nothing shows how many partitions {TRANSACTION_TOPIC} has"
    missing = sorted(set(range(view.partitions)) - view.readable_partitions)
    if not missing:
        return "whether a transaction hangs is not known: its log or its coordinator's was not read to the end from a current replica"
    names = format_list([str(number) for number in missing], 10)
    count, be = format_count(view.partitions, "partition"), format_be(len(missing))
    return (
        f"{len(missing)} of {count} of {TRANSACTION_TOPIC} {be} not read to the end from a current replica: {names}. "
        f"Whether a transaction hangs whose entry may be there is not known; {name_leaders(len(missing))}"
    )


def name_leaders(partitions: int) -> str:
    """What to do about partitions that are not here."""
    return f"name the log dirs of the {'broker that leads it' if partitions == 1 else 'brokers that lead them'} too"
