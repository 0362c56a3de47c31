"""Why a consumer group does not go on: verdicts about its partitions and about itself, the most severe first."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from streaming.protocol.group_json import GroupDetail, GroupPartition, GroupSummary
from streaming.verdicts.commands import Command, GroupCommands
from streaming.verdicts.group_sentences import ENDED_BY_ITSELF, Sentences

SKEWED_SHARE = 0.8
"""The share of a group's lag that is most of it."""

SKEWED_RECORDS = 1000
"""With a smaller lag of the whole group, no partition is said to have most of it."""

_EMPTY = "Empty"
_SHARE = "Share"
_BEYOND_END = "beyond_end"
_NO_LAG = ("topic_gone", "not_committed")
"""Why there is no lag, where that is known."""

NO_OFFSETS = "it has no committed offsets, or none any more"
"""What is said of a group without any partition."""

NOT_ON_DISK = f"{NO_OFFSETS}, but it has members: what they have read is not on disk"
"""What is said of such a group while it has consumers: they may be stuck before their first commit, or commit elsewhere."""

_NO_COMMAND = Command()


class Kind(IntEnum):
    """The kind of a verdict, the most severe first."""

    LOST = 0  # records were deleted before they were read
    WILL_LOSE = 1  # retention will delete the next unread record soon
    DAMAGED = 2  # the next batch cannot be read
    TOO_LARGE = 3  # the next batch is larger than consumers fetch at once
    HELD = 4  # an open transaction holds back everything that is left
    BEYOND_END = 5  # the committed offset is beyond the end of the log
    PENDING = 6  # commits wait for an open transaction
    STOPPED = 7  # it has not moved although a record is readable
    SLOWER = 8  # more is appended than it reads
    SKEWED = 9  # one partition has most of the lag
    NO_MEMBERS = 10  # it had members and has none
    UNKNOWN = 11  # its lag is not known
    CATCHING_UP = 12  # it reads more than is appended
    ONLY_MARKERS = 13  # only markers or aborted records are left
    FINE = 14  # nothing is left, or it goes on

    @property
    def label(self) -> str:
        """The spelling in tables and JSON."""
        return self.name.lower()

    @property
    def found(self) -> bool:
        """Whether somebody should look at it."""
        return self < Kind.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """From when on something is a verdict; times in milliseconds.

    ``fetch_bytes``: what consumers fetch of a partition at once. ``loss_within_ms``: a loss that is further away is none yet.
    ``pending_after_ms``: for so long commits of an open transaction may wait. ``slower_after_ms``: with a next record that is
    younger, a group keeps up, whatever its rate of the last minutes; ``slower_from_rate``: nor is a group slower than producers that append
    fewer records a second, as what fades after a burst.
    """

    fetch_bytes: int = 1 << 20
    loss_within_ms: int = 86_400_000
    pending_after_ms: int = 60_000
    slower_after_ms: int = 30_000
    slower_from_rate: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVerdict:
    """One verdict. ``topic`` is "" and ``partition`` -1 if it is about the group as a whole. ``lag``: records, or offsets; -1 not known."""

    kind: Kind
    topic: str
    partition: int
    text: str
    lag: int = -1
    command: Command = _NO_COMMAND


def judge(group: GroupDetail, now_ms: int, bounds: Bounds) -> tuple[GroupVerdict, ...]:
    """All verdicts about a group, the most severe first; of one severity the largest lag first.

    Every partition that is there has at least one, and only one if nothing is found.
    """
    every = [*_of_group(group, now_ms)]
    for partition in group.partitions:
        every += _of_partition(group, partition, now_ms, bounds)
    if not every and not group.summary.partitions:
        kind, text = (Kind.UNKNOWN, NOT_ON_DISK) if reads_without_offsets(group) else (Kind.FINE, NO_OFFSETS)
        every.append(GroupVerdict(kind=kind, topic="", partition=-1, text=text))
    return tuple(sorted(every, key=lambda each: (each.kind, -each.lag, each.topic, each.partition)))


def worst(group: GroupDetail, now_ms: int, bounds: Bounds) -> Kind:
    """The most severe verdict about a group: of its partitions, and by its summary if they are not all there."""
    found = [each.kind for each in judge(group, now_ms, bounds)]
    if len(group.partitions) < group.summary.partitions:
        found += _by_summary(group, now_ms, bounds)
    return min(found, default=Kind.FINE)


def reads_without_offsets(group: GroupDetail) -> bool:
    """Whether it has consumers, but no offset shows what they read. Members of other protocols, such as connect, commit none."""
    return not group.summary.partitions and group.summary.members > 0 and group.summary.protocol == "consumer"


def _by_summary(group: GroupDetail, now_ms: int, bounds: Bounds) -> list[Kind]:
    """What the sums show without the partitions."""
    summary, whole = group.summary, not group.partitions
    shown = (
        (summary.below_start > 0 and whole, Kind.LOST),
        (whole and _sums_will_lose(summary, now_ms, bounds), Kind.WILL_LOSE),
        (summary.held > 0, Kind.HELD),
        (summary.beyond_end > 0, Kind.BEYOND_END),
        (0 <= summary.oldest_pending_ms < now_ms - bounds.pending_after_ms and whole, Kind.PENDING),
        (summary.stopped > 0 and not _deserted(group), Kind.STOPPED),
        (_deserted(group) and summary.lag > 0, Kind.NO_MEMBERS),
        (summary.unknown > 0, Kind.UNKNOWN),
    )
    return [kind for holds, kind in shown if holds]


def _sums_will_lose(of: GroupSummary, now_ms: int, bounds: Bounds) -> bool:
    """As `_will_lose`, by the soonest loss and the oldest next record; a group that reads fast enough may be among these."""
    left = of.loss_ms - now_ms
    return of.loss_ms >= 0 and left <= bounds.loss_within_ms and not (of.oldest_ms >= 0 and now_ms - of.oldest_ms < left)


def _deserted(group: GroupDetail) -> bool:
    """Whether the group had members and has none."""
    return group.summary.members == 0 and group.summary.epoch > 0 and group.summary.state == _EMPTY


def _of_group(group: GroupDetail, now_ms: int) -> Iterator[GroupVerdict]:
    summary, lags = group.summary, [each.lag for each in group.partitions]
    total, words = sum(lag for lag in lags if lag > 0), Sentences(now_ms)
    if len(lags) > 1 and total >= SKEWED_RECORDS and max(lags) >= SKEWED_SHARE * total:
        worst = group.partitions[lags.index(max(lags))]
        yield GroupVerdict(
            kind=Kind.SKEWED, topic=worst.topic, partition=worst.partition, text=words.skewed(max(lags), total), lag=max(lags)
        )
    if _deserted(group) and total:
        yield GroupVerdict(kind=Kind.NO_MEMBERS, topic="", partition=-1, text=words.no_members(summary), lag=total)


def _of_partition(group: GroupDetail, of: GroupPartition, now_ms: int, bounds: Bounds) -> list[GroupVerdict]:
    words = Sentences(now_ms)

    def verdict(kind: Kind, text: str, command: Command = _NO_COMMAND) -> GroupVerdict:
        return GroupVerdict(kind=kind, topic=of.topic, partition=of.partition, text=text, lag=of.lag, command=command)

    found = [verdict(kind, text, command) for kind, text, command in _found(group, of, words, now_ms, bounds)]
    if not found:
        found = [verdict(*_calm(of, words, share=group.summary.type == _SHARE))]
    return found


_Finding = tuple[Kind, str, Command]


def _found(group: GroupDetail, of: GroupPartition, words: Sentences, now_ms: int, bounds: Bounds) -> Iterator[_Finding]:
    commands = GroupCommands(group=group.summary.group, server=group.server, redacted=group.redacted)
    log, members = (of.topic, of.partition), group.summary.members > 0
    if of.lost_offsets > 0 and of.lost_records:
        yield Kind.LOST, words.lost(of, members=members), commands.reset_to_earliest(*log)
    if _will_lose(of, now_ms, bounds, moves=not (_deserted(group) or of.stopped_since_ms >= 0)):
        yield Kind.WILL_LOSE, words.will_lose(of), _keep_longer(of, commands)
    batch = of.batch
    if batch is not None and not batch.sound:
        after = batch.last_offset + 1
        skip = commands.reset_to(*log, after) if after > 0 else Command(reason="where the batch after it begins is not known")
        yield Kind.DAMAGED, words.damaged(of, batch, members=members and bool(skip.line)), skip
    elif of.next_batch_bytes > bounds.fetch_bytes:
        yield Kind.TOO_LARGE, words.too_large(of, bounds.fetch_bytes), _NO_COMMAND
    if of.held:
        yield Kind.HELD, words.held(of), _abort(of, commands)
    if of.unknown == _BEYOND_END:
        yield Kind.BEYOND_END, words.beyond_end(of, members=members), commands.reset_to_latest(*log)
    waiting = [each for each in of.pending if 0 <= each.since_ms < now_ms - bounds.pending_after_ms]
    if waiting:
        yield Kind.PENDING, words.pending(waiting[0], len(waiting)), _NO_COMMAND
    if of.stopped_since_ms >= 0 and of.lag and not _deserted(group):
        yield Kind.STOPPED, words.stopped(of), _NO_COMMAND
    elif _is_slower(of, now_ms, bounds) and not _deserted(group):
        yield Kind.SLOWER, words.slower(of), _NO_COMMAND


def _is_slower(of: GroupPartition, now_ms: int, bounds: Bounds) -> bool:
    falls_back = 0 <= of.consumed_rate < of.appended_rate and of.appended_rate >= bounds.slower_from_rate
    return falls_back and of.lag > 0 and now_ms - _readable_ms(of) >= bounds.slower_after_ms


def _calm(of: GroupPartition, words: Sentences, *, share: bool) -> tuple[Kind, str]:
    lag = of.lag
    if of.unknown in _NO_LAG:
        return Kind.FINE, words.no_lag(of)
    if of.unknown or lag < 0:
        return Kind.UNKNOWN, words.unknown(of)
    if lag == 0:
        markers = of.lag_offsets > 0 and not share  # a share group is done with offsets after the one that it begins at
        return (Kind.ONLY_MARKERS, words.only_markers(of)) if markers else (Kind.FINE, words.nothing_left())
    if 0 <= of.appended_rate < of.consumed_rate:
        return Kind.CATCHING_UP, words.catching_up(of)
    return Kind.FINE, words.left(of)


def _will_lose(of: GroupPartition, now_ms: int, bounds: Bounds, *, moves: bool) -> bool:
    """Whether the next unread record is deleted soon, and nothing shows that it is read before.

    A consumer that keeps up also has a next record, which retention will delete one day: more time is left then than the record is old.
    ``moves``: nothing shows that the group stands still.
    """
    left = of.loss_ms - now_ms
    if of.loss_ms < 0 or left > bounds.loss_within_ms:
        return False
    if not moves:
        return True
    since = _readable_ms(of)
    age = now_ms - since if since >= 0 else of.retention_ms - left
    if 0 <= age < left:
        return False
    faster = of.consumed_rate - max(0.0, of.appended_rate)
    return not (faster > 0 and now_ms + 1000 * of.lag / faster < of.loss_ms)


def _readable_ms(of: GroupPartition) -> int:
    """Since when the next record is there, -1 if that is not known."""
    return of.next_append_ms if of.next_append_ms >= 0 else of.next_timestamp_ms


def _keep_longer(of: GroupPartition, commands: GroupCommands) -> Command:
    """A higher limit, of the two the one that deletes the next record."""
    if of.loss_by_size:
        return commands.keep_longer(of.topic, "retention.bytes", of.retention_bytes)
    return commands.keep_longer(of.topic, "retention.ms", of.retention_ms)


def _abort(of: GroupPartition, commands: GroupCommands) -> Command:
    holding = of.held_by
    if holding is None:
        return Command(reason="the transaction is not known")
    if holding.verdict in ("", "unknown", "unclaimed"):
        return Command(reason="whether a coordinator will end the transaction is not known here: see `segtail transactions`")
    if holding.verdict != "hanging":
        return Command(reason=ENDED_BY_ITSELF.get(holding.verdict, ENDED_BY_ITSELF["open"]))
    return commands.abort(of.topic, of.partition, holding.first_offset)
