"""What is known of log dirs and their replicas, from a disk or from a job's table, and what that means: what fills them, and when."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Floats, Longs
from streaming.common.units import parse_duration, parse_size
from streaming.kafka.formats.names import INTERNAL_TOPICS, METADATA_TOPIC
from streaming.rules.config_values import BY_NAME, Configs, Setting, ValueSource
from streaming.rules.limits import Limits
from streaming.rules.restart_cost import RecoveryPoints, reading_seconds
from streaming.rules.retention_rule import ABSENT, Growth, Retention, RetentionRule, SegmentColumns, after_start
from streaming.rules.space_outlook import LASTS, MAY_LAST, NEVER, WINDOW_MS, Outlook, carried_until, growth_now, growth_of, outlook_of

DAY_MS = 86_400_000
_FAR = np.iinfo(np.int64).max

NAMES = ("retention.ms", "retention.bytes", "segment.ms", "segment.bytes")
"""The configurations that can be tried."""

FORM = f"[TOPIC:]NAME=VALUE, where NAME is {', '.join(NAMES[:-1])} or {NAMES[-1]}"

_NUMBER = re.compile(r"-?[0-9]+")


class Reckoning:
    """Values of the live logs; ``directory`` is the number of the log dir of each.

    ``growth`` is in bytes a millisecond, nan if it is not known, as of a log that is young. ``frees_now`` and ``frees_day`` are bytes,
    ``next_ms`` is `NEVER` if nothing is freed. They are 0 and `NEVER` for a log whose segments cannot be told from those that wait for
    remote storage. ``next_start_of``: the broker, without a process, that has to be started before anything is freed, -1 if none has.
    """

    def __init__(self, dirs: Sequence[DirFacts], replicas: ReplicaSizes, there: LogsThere, now_ms: int) -> None:
        self._dirs = dirs
        self._now_ms = now_ms
        logs = there.logs
        self._delete_delay_ms = float(logs.limit("file_delete_delay_ms").max(initial=0)) if len(there.items) else 0.0
        self.items = there.items
        self.directory: Longs = replicas.directory[there.items]
        self._there, self._first_ms = there, there.first_ms
        self._with_young: Floats = growth_of(logs, there.first_ms, now_ms)
        self._until = carried_until(logs, there.first_ms, now_ms)
        self._is_young: NDArray[np.bool_] = (self._until < NEVER) & (self._with_young > 0)
        self.growth: Floats = np.where(self._is_young, np.nan, self._with_young)
        self._outlooks = [outlook_of(logs, self.growth, there.active_first_ms, now_ms, compacted_grow=grow) for grow in (False, True)]
        growth = growth_now(logs, there.watched, there.active_first_ms, now_ms)
        retention = RetentionRule(logs).at(now_ms, growth=growth, away=there.away)
        self.frees_now: Longs = np.maximum(retention.reclaimable, 0)
        self.next_ms, self.next_start_of = _next_freed(logs, retention, now_ms, there.away)
        self.frees_day: Longs = self._freed_in_a_day(there, growth)
        self.again_day: Floats = self._outlooks[0].deleted_again_by(now_ms + DAY_MS, now_ms)

    def _freed_in_a_day(self, there: LogsThere, growth: Growth) -> Longs:
        """What `next_ms` foretells is among it: a young log, or one that was quiet, has a rate that was watched and shows no growth yet."""
        outlook, until_ms = self._outlooks[0], self._now_ms + DAY_MS
        if np.isnan(self.growth).any():
            paced = np.where(np.isnan(self.growth), growth.rate / 1000, self.growth)
            outlook = outlook_of(there.logs, paced, there.active_first_ms, self._now_ms)
        first = np.where(self.next_ms <= until_ms, there.logs.size[there.logs.first], 0)
        return np.maximum(outlook.freed_by(until_ms).astype(np.int64), first)

    def full(self, number: int, *, compacted_grow: bool = False) -> Full | None:
        """When the file system of a log dir is full; None if that is not known.

        Three things fill it: logs as they grew on average, with others' mean of a day; young logs; and what takes the free bytes now and is
        none of these. A mean is carried on for good, what was seen for minutes for `LASTS` times as long: it proves no more. What retention
        frees is reckoned in everywhere.
        """
        found = self._dirs[number]
        if not found.up or found.free < 0:
            return None
        shared = np.array([each.up and each.device == found.device for each in self._dirs], np.bool_)
        mine: NDArray[np.bool_] = shared[self.directory] if len(self.directory) else np.empty(0, np.bool_)
        waiting = sum(each.waiting for each, is_there in zip(self._dirs, shared, strict=True) if is_there)
        others = max(0, found.others_day) / DAY_MS

        def full_at(outlook: Outlook, beside: float) -> float:
            unlinked_ms = self._now_ms + self._delete_delay_ms
            return outlook.full_at(mine, found.free, self._now_ms, waiting=waiting, unlinked_ms=unlinked_ms, others=beside)

        mean = full_at(self._outlooks[compacted_grow], others)
        young = mine & self._is_young
        if found.free <= 0 or not (found.falls or young.any()):
            return Full(mean, mean)
        lasting = self._outlook_with_young(NEVER, compacted_grow)
        logs = float(lasting.growth[mine].sum()) + others
        age_ms = int((self._now_ms - self._first_ms[young]).max(initial=0))
        paces = [Fall(logs, age_ms), *(each for each in found.falls if each.pace > logs)]
        times = [(full_at(lasting, others + each.pace - logs) - self._now_ms, each) for each in paces]
        may = min(((left, each) for left, each in times if left <= MAY_LAST * each.over_ms), key=lambda each: each[0], default=None)
        at_ms = min(mean, full_at(self._outlook_with_young(self._until, compacted_grow), others))
        at_ms = min([at_ms, *(self._now_ms + left for left, each in times if left <= LASTS * each.over_ms)])
        if may is None or self._now_ms + may[0] >= mean:
            return Full(at_ms, at_ms)
        return Full(at_ms, min(at_ms, self._now_ms + may[0]), may[1].pace, may[1].over_ms)

    def _outlook_with_young(self, until: Floats | float, compacted_grow: bool) -> Outlook:
        logs, active_first_ms = self._there.logs, self._there.active_first_ms
        growth, until = self._with_young, np.broadcast_to(until, self._with_young.shape)
        return outlook_of(logs, growth, active_first_ms, self._now_ms, compacted_grow=compacted_grow, until=until)

    def growth_over_ms(self, number: int) -> int:
        """Over how long the growth of the log of a log dir that grows most is a mean; -1 if none is known to grow."""
        mine = np.where((self.directory == number) & (self.growth > 0), self.growth, 0.0)
        if not mine.any():
            return -1
        first_ms = int(self._first_ms[mine.argmax()])
        return WINDOW_MS if first_ms < 0 else min(self._now_ms - first_ms, WINDOW_MS)

    def summed(self, group: Longs, count: int) -> SizeSums:
        """The sums over the logs of each group. ``group``: of each log."""
        unknown = np.isnan(self.growth)
        following = np.full(count, NEVER)
        np.minimum.at(following, group, self.next_ms)
        start_of = np.full(count, _FAR)
        np.minimum.at(start_of, group, np.where(self.next_start_of < 0, _FAR, self.next_start_of))

        def summed(values: NDArray[np.generic]) -> list[float]:
            found: list[float] = np.bincount(group, values, minlength=count).tolist()
            return found

        known = summed(~unknown)
        growth = summed(np.where(unknown, 0.0, self.growth))
        return SizeSums(
            growth_day=[round(each * DAY_MS) if some else -1 for each, some in zip(growth, known, strict=True)],
            growth_unknown=[round(each) for each in summed(unknown)],
            again_day=[round(each) for each in summed(self.again_day)],
            frees_now=[round(each) for each in summed(self.frees_now)],
            frees_day=[round(each) for each in summed(self.frees_day)],
            next_ms=[-1 if each == NEVER else round(each) for each in following.tolist()],
            next_start_of=np.where(start_of == _FAR, -1, start_of).tolist(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartFacts:
    """What a start after a crash reads of a log dir; -1 where it is not known.

    ``left_logs``, ``left_bytes``: of a start that is going on.
    """

    logs: int = -1
    scanned: int = -1
    not_fsynced: int = -1
    rate: float = -1.0  # bytes a second of a recovery that was seen
    threads: int = -1  # that each log dir has
    clean: bool = False  # its broker was shut down in an orderly way, and has not started since
    left_logs: int = -1
    left_bytes: int = -1
    working: tuple[str, ...] = ()  # some logs that it reads

    def seconds(self, size: int) -> float:
        """How long it takes to read so many bytes, by the recovery that was seen; -1 if none was."""
        return reading_seconds(size, self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirFacts:
    """A log dir; sizes in bytes, -1 if they are not known."""

    broker: int
    log_dir: str
    up: bool
    problem: str
    device: int  # of its file system
    free: int
    capacity: int
    checkpoint_ms: int
    kinds: Mapping[str, tuple[int, int]]  # what is in it by kind, on the disk and by length
    unread: Mapping[str, str]  # what could not be read of it, by path with the reason
    waiting: int = 0  # what is deleted and will be unlinked within the delay for that
    lacks: int = 0  # what its replicas that are out of sync have still to copy
    others_day: int = -1  # what others take of its file system in a day
    falls: tuple[Fall, ...] = ()  # how its free bytes fall now, whatever takes them, seen over longer and longer times
    restart: RestartFacts = RestartFacts()


@dataclass(frozen=True, slots=True)
class Fall:
    """By how many bytes a millisecond free bytes fall, and over how long that was seen."""

    pace: float
    over_ms: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaSizes:
    """Directories of replicas, whatever their state: arrays have one item for each."""

    topics: Sequence[str]
    partition: Longs
    directory: Longs  # the number of the log dir
    taken: Longs  # on the disk, and ``not_live`` the part of it that is no live log
    apparent: Longs
    segments: Longs
    not_live: Longs
    live: NDArray[np.bool_]
    unread: NDArray[np.bool_]  # live logs that could not be read, so that nothing is known of them but what they take


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogsThere:
    """The live logs among replicas: ``items`` are their numbers there. Times are the largest of a first batch, -1 if not known."""

    items: Longs
    logs: SegmentColumns
    limits: Sequence[Limits]
    first_ms: Longs
    active_first_ms: Longs
    watched: NDArray[np.float64]  # bytes a second by which each grows now, -1 where that was not measured
    points: RecoveryPoints  # their recovery points
    assigned: Longs  # how many replicas the partition of each has, -1 where that is not known
    away: Longs  # its broker where that has no process, else -1


def _next_freed(logs: SegmentColumns, retention: Retention, now_ms: int, away: Longs) -> tuple[Floats, Longs]:
    """When the space of the next deletion of each log is free at the latest, `NEVER` if that is not foretold; and whose start it awaits."""
    foretold = (retention.deletable > 0) | (retention.next_deletion_if_it_grows >= 0) | (retention.next_start_of >= 0)
    deletion = np.where(retention.deletable > 0, now_ms, np.maximum(retention.next_deletion_if_it_grows, now_ms))
    late = logs.limit("check_interval_ms") + logs.limit("file_delete_delay_ms")
    at_ms, start_of = after_start(np.where(foretold, deletion, ABSENT), away)
    return np.where(at_ms != ABSENT, at_ms + late, NEVER), start_of


@dataclass(frozen=True, slots=True)
class Full:
    """When a file system is full, `NEVER` if not within a year.

    ``at_ms`` is the forecast, and ``earliest_ms`` what it would be if what was seen for minutes lasted. ``pace``: the bytes a millisecond
    by which it fills now, as was seen for ``over_ms``; -1 where means of a day tell as much.
    """

    at_ms: float
    earliest_ms: float
    pace: float = -1.0
    over_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSums:
    """Sums over groups of logs, under the names of `streaming.broker.protocol.disk_json.DiskRow`; one item for each group."""

    growth_day: list[int]
    growth_unknown: list[int]
    again_day: list[int]
    frees_now: list[int]
    frees_day: list[int]
    next_ms: list[int]
    next_start_of: list[int]


def parse_trial(text: str) -> Trial:
    """Parse one.

    What is known of log dirs and of the replicas in them, before anything is reckoned: from a disk, or from a job's table.

    Raises:
        ValueError: it has another form, with a sentence.
    """
    head, equals, value = text.partition("=")
    pattern, _, name = head.rpartition(":")
    if not equals or name not in NAMES:
        raise ValueError(f"{text!r} is not {FORM}")
    try:
        parsed = BY_NAME[name].parse(_plain(name, value.strip()))
    except ValueError:
        form = "milliseconds, or a duration such as 15m, 24h or 7d" if name.endswith(".ms") else "bytes, or a size such as 128MiB or 50GiB"
        raise ValueError(f"{name} cannot be {value!r}: give {form}") from None
    return Trial(text, pattern, Setting(name, parsed, ValueSource.TOPIC))


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration for the topics whose names match ``pattern`` (``*`` and ``?`` stand for any characters).

    Without a pattern it is for all topics but Kafka's own, whose configuration admins do not change with that of the others.
    """

    text: str
    pattern: str
    setting: Setting

    def concerns(self, topic: str) -> bool:
        """Whether it is for a topic."""
        if not self.pattern:
            return topic not in INTERNAL_TOPICS and topic != METADATA_TOPIC and not topic.startswith("__")
        return fnmatchcase(topic, self.pattern)


def _plain(name: str, value: str) -> str:
    """The value as Kafka writes it."""
    if _NUMBER.fullmatch(value):
        return value
    return str(parse_duration(value) // timedelta(milliseconds=1) if name.endswith(".ms") else parse_size(value))


def trying(trials: Sequence[Trial]) -> Callable[[str], Configs]:
    """The settings that are tried for a topic; of several for one name, the last one counts."""

    def of(topic: str) -> Configs:
        return Configs(tuple({each.setting.name: each.setting for each in trials if each.concerns(topic)}.values()))

    return of
