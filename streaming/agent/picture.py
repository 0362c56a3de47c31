"""The full picture that a beat stands for, expanded when it is read: every log's start, leader and whether its backlog is behind."""

from collections.abc import Iterable

from streaming.disk.logdirs import LogDir, read_offset_checkpoint
from streaming.kafka.names import LOG_START_OFFSET_CHECKPOINT
from streaming.rows import Kind
from streaming.watcher.events import Event
from streaming.watcher.tail import Tail
from streaming.watcher.watcher import Cluster


def picture(beat: Event, log_dirs: Iterable[LogDir], tails: Iterable[Tail], cluster: Cluster) -> list[Event]:
    """A row for every log, and the closing one. ``beat`` is the journal's event."""
    starts = {
        (log_dir.path, entry.topic, entry.partition): entry.offset
        for log_dir in log_dirs
        for entry in read_offset_checkpoint(log_dir, LOG_START_OFFSET_CHECKPOINT)
    }
    rows = []
    for tail in tails:
        log = tail.place.log
        leader, leader_epoch = cluster.leader(log)
        log_start = max(tail.log_start, starts.get((tail.partition.log_dir.path, log.topic, log.partition), -1))
        # a backlog that was read since the beat was told lies behind this row, and may not have been folded yet
        settled = beat.settled and tail.place.settled
        rows.append(tail.event(Kind.BEAT, settled=settled, log_start_offset=log_start, leader=leader, leader_epoch=leader_epoch))
    return [*rows, Event(kind=Kind.BEAT_END, settled=beat.settled)]
