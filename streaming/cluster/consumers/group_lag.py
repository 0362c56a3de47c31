"""How far consumer groups are behind: the arithmetic of all groups' partitions at once, and why a result is not known.

A consumer gets records from its committed offset on, or from the log start if that is later. Positions are the counts of a ladder: their
difference is what lies between two offsets, if both are of one edition.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs

Codes = NDArray[np.int8]

ABSENT = -1
"""A number that is not known, or a time that does not exist."""


class LagReason(StrEnum):
    """Why the lag of a partition is not known; the first one that applies is shown."""

    NOT_OBSERVED = "coordinator_not_observed"  # no agent reads the current replica of the coordinator's log
    UNREAD = "coordinator_behind"  # its agent has not read all of that log yet
    CHECKPOINT = "checkpoint_unread"  # the checkpoint of a streaming query cannot be read now
    NOT_REPLICATED = "commit_not_replicated"  # only commits above the high watermark of the coordinator's log are known
    NOT_UNDERSTOOD = "not_understood"  # the commit is damaged or of a later version
    ELSEWHERE = "not_in_cluster"  # a streaming query reads a topic that is not there: perhaps one of another cluster
    TOPIC_GONE = "topic_gone"
    MADE_ANEW = "topic_made_anew"  # the commit is of an earlier topic with this name
    LEADER = "leader_not_observed"  # no agent reads the partition's leader, or it does not answer
    UNREADABLE = "log_unreadable"  # its log dir is read, but not its log: it may not be, or cannot be now
    VERSION = "agent_version"  # the leader's agent is of a version that counts no records
    NEWER = "commit_newer"  # the committed offset is after the end of the log as it is known, which is perhaps older
    BEYOND = "beyond_end"  # the committed offset is after the end of the log: where the consumer will begin is not on disk
    REMOTE = "remote_log_start"  # the next record is only in remote storage
    DAMAGED = "damaged"
    FILLING = "filling"  # the agent has not counted the log so far yet


REASONS = tuple(LagReason)
KNOWN = np.int8(-1)
"""The code of a partition whose lag is known; every other code is an index in `REASONS`."""

CODES = {reason: np.int8(code) for code, reason in enumerate(REASONS)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """Logs that groups read, one item for each. `ABSENT` where a number is not known.

    ``reason``: the code of why nothing can be known of it. ``counted``: why its records cannot be. ``edition``: of the counts below.
    ``data``, ``control``, ``bytes``: up to the high watermark; ``stable_data``: up to the last stable offset. ``kept``: data that is not
    aborted up to there; ``end_kept``: up to the high watermark, where transactions that are open still count. ``damaged``: what comes
    after ``log_end`` is no batch, so that the log may have gone on.
    """

    reason: Codes
    counted: Codes
    log_start: Longs
    log_end: Longs
    high_watermark: Longs
    last_stable: Longs
    edition: Longs
    data: Longs
    stable_data: Longs
    kept: Longs
    end_kept: Longs
    control: Longs
    bytes: Longs
    damaged: Flags

    def take(self, items: Longs) -> "Ends":
        """The logs of some partitions, each by its index."""
        return Ends(**{name: getattr(self, name)[items] for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """The positions from which partitions are read, one item for each; ``offset`` is `ABSENT` where none was answered yet.

    ``edition`` to ``bytes``: counts of everything before the offset. ``next_`` are of the next data record: its offset, `ABSENT` for none,
    its own time, the time when it was appended, the size of its batch, the base offset of its segment, and its batch's position there; if
    its append was not seen, it was between ``next_earliest_ms`` and ``next_latest_ms``.
    ``reads_uncommitted``: 1 if that may be an aborted one. ``deleted_``: as in `streaming.broker.ladder.positions.Position`.
    """

    reason: Codes
    offset: Longs
    edition: Longs
    data: Longs
    aborted: Longs
    control: Longs
    bytes: Longs
    next_offset: Longs
    next_timestamp_ms: Longs
    next_append_ms: Longs
    next_batch_bytes: Longs
    next_segment: Longs
    next_position: Longs
    reads_uncommitted: Longs
    deleted_least: Longs
    deleted_most: Longs
    next_earliest_ms: Longs
    next_latest_ms: Longs

    @property
    def kept(self) -> Longs:
        """Records of committed data before each position."""
        return self.data - self.aborted


_OF_NEXT = tuple(name for name in Places.__slots__ if name.startswith("next_"))
"""The columns of `Places` about the next record."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Committed:
    """What is known of partitions without their logs, one item for each.

    ``offset``: the committed one. ``reason``: the code of why it cannot count. ``beyond``: if it is after
    the end of the log that is known, it is known to be beyond the end.
    ``reads_uncommitted``: of a group that is known to read with ``read_uncommitted``. ``start``: from where on there is something to read.
    ``share``: of a share group, of which ``offset`` is the start offset, and ``delivered`` offsets after it are done with; between
    ``done_least`` and ``done_most`` of these are before ``start``. ``deleted_to``: what is before it is deleted, and the commit is no older
    than that; ``start``, but where the commit is perhaps older.
    """

    offset: Longs
    start: Longs
    reason: Codes
    beyond: Flags
    reads_uncommitted: Flags
    share: Flags
    delivered: Longs
    done_least: Longs
    done_most: Longs
    deleted_to: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lags:
    """The lag of partitions, one item for each, `ABSENT` where it is not known.

    ``reason``: the code of why the records are not known. ``offsets`` may be known all the same. ``read_committed`` and
    ``read_uncommitted``: records. ``start``: the offset from which they are counted. ``beyond``: the committed offset is after the log's
    end. ``below``: so many offsets before the log start, without those that a share group is known to be done with, nor what is after
    ``deleted_to``, which is as in `Committed`; ``offsets_there``: what is left of ``offsets`` without all that are before the log start.
    ``next_``: as in `Places`, `ABSENT` where nothing is left. ``held``: the next record is behind an open transaction, and not known to be
    readable: ``reads_uncommitted``, as in `Committed`, is not set.
    """

    reason: Codes
    start: Longs
    offsets: Longs
    offsets_there: Longs
    read_committed: Longs
    read_uncommitted: Longs
    bytes: Longs
    next_offset: Longs
    next_timestamp_ms: Longs
    next_append_ms: Longs
    next_batch_bytes: Longs
    next_segment: Longs
    next_position: Longs
    next_earliest_ms: Longs
    next_latest_ms: Longs
    beyond: Flags
    below: Longs
    deleted_to: Longs
    held: Flags
    reads_uncommitted: Flags

    @property
    def left(self) -> Longs:
        """The records that the group has yet to get: by the isolation that it is known to have, else with ``read_committed``."""
        return np.where(self.reads_uncommitted, self.read_uncommitted, self.read_committed)

    @property
    def next_ms(self) -> Longs:
        """Since when the next record of each partition is there: since it was appended, or since its own time where that was not seen."""
        return np.where(self.next_append_ms >= 0, self.next_append_ms, self.next_timestamp_ms)


def lags(committed: Committed, ends: Ends, places: Places) -> Lags:
    """Compute the lag of partitions; all three have one item for each."""
    start = committed.start
    after_end = (committed.offset > ends.log_end) & (ends.log_end >= 0)
    beyond = after_end & committed.beyond
    cut_short = ends.damaged & (committed.offset >= ends.log_end) & (ends.log_end >= 0)
    outside = coded(beyond, LagReason.BEYOND), coded(after_end, LagReason.NEWER)
    blocked = first(committed.reason, ends.reason, coded(cut_short, LagReason.DAMAGED), *outside)
    at_end = (start >= ends.high_watermark) & (ends.high_watermark >= 0)
    missing = (places.offset != start) | ((places.reason == KNOWN) & (places.edition != ends.edition))
    aborted = ends.data - ends.end_kept > places.aborted  # one of them may be next: only agents that are asked for it look it up
    not_looked_up = committed.reads_uncommitted & (places.reads_uncommitted < 1) & aborted
    uncounted = first(ends.counted, coded(missing, LagReason.FILLING), places.reason, coded(not_looked_up, LagReason.VERSION))
    reason = first(blocked, np.where(at_end, KNOWN, uncounted))
    known = reason == KNOWN
    left = known & ~at_end
    uncommitted = np.where(left, np.maximum(ends.data - places.data, 0), 0)
    below_stable = left & (start < ends.last_stable)
    kept = np.where(below_stable, np.maximum(ends.kept - (places.data - places.aborted), 0), 0)
    # of a share group, offsets are done with, markers too, and it reads aborted records unless it is told otherwise
    delivered = np.where(committed.share, np.maximum(committed.delivered, 0), 0)
    bound = np.minimum(uncommitted, np.maximum(ends.high_watermark - start - np.maximum(delivered - committed.done_most, 0), 0))
    unread = left & (places.next_offset >= 0) & (places.next_offset < ends.high_watermark) & ~(committed.share & (bound == 0))
    offsets = np.where(blocked == KNOWN, np.maximum(ends.high_watermark - committed.offset - delivered, 0), ABSENT)
    offsets = np.where(ends.high_watermark >= 0, offsets, ABSENT)
    there = (ends.log_start >= 0) & (committed.offset >= 0)
    gone, below = (
        np.where(there, np.maximum(first - committed.offset - committed.done_least, 0), 0) for first in (start, committed.deleted_to)
    )
    return Lags(
        reason=reason,
        start=start,
        offsets=offsets,
        offsets_there=np.where(offsets >= 0, np.maximum(offsets - gone, 0), ABSENT),
        read_committed=np.where(known, np.where(committed.share, bound, kept), ABSENT),
        read_uncommitted=np.where(known, np.where(committed.share, bound, uncommitted), ABSENT),
        bytes=np.where(known, np.where(left & ~(committed.share & (bound == 0)), np.maximum(ends.bytes - places.bytes, 0), 0), ABSENT),
        **{name: np.where(unread, getattr(places, name), ABSENT) for name in _OF_NEXT},
        beyond=beyond,
        below=below,
        deleted_to=committed.deleted_to,
        held=unread & (places.next_offset >= ends.last_stable) & ~committed.share & ~committed.reads_uncommitted,
        reads_uncommitted=committed.reads_uncommitted,
    )


def unanswered(lag: Lags, silent: Flags) -> Lags:
    """The same, where the agents of some partitions do not answer: what they have not counted yet nobody counts now."""
    return replace(lag, reason=np.where(silent & (lag.reason == CODES[LagReason.FILLING]), CODES[LagReason.LEADER], lag.reason))


def coded(flags: Flags, reason: LagReason) -> Codes:
    """The reason where a flag is set."""
    return np.where(flags, CODES[reason], KNOWN)


def first(*codes: Codes) -> Codes:
    """The first code of each item that is a reason."""
    found = codes[0]
    for each in codes[1:]:
        found = np.where(found == KNOWN, each, found)
    return found
