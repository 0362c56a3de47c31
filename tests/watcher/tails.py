"""Tails as the watcher has them, without a watcher."""

from streaming.broker.disk.availability import LogDir
from streaming.broker.disk.locate import beginning
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.journal.known_producers import KnownProducers
from streaming.broker.watcher.cursors import cursor_at, log_id
from streaming.broker.watcher.log_listing import Listing
from streaming.broker.watcher.tail import Tail
from streaming.kafka.formats.names import DirState
from streaming.simulator.log import PartitionLog


def begun(log: PartitionLog, *, remembered: bool = False, stopped: bool = False, held: bool = False) -> Tail:
    """A tail at the beginning of a log."""
    where = Partition(LogDir(log.directory.parent, 1, "", ""), log.directory, log.topic, log.partition, "", DirState.LIVE)
    segments = list_segments(log.directory)
    first = cursor_at(log_id(where), beginning(segments[0]), segments, 0)
    cursor = first._replace(stopped="a flaw" if stopped else "", wanted="earliest" if held else "")
    return Tail(where, cursor, Listing(segments), KnownProducers(9), remembered=remembered)
