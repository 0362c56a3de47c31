"""What a page depends on besides the table: thresholds, limits, what is known of the cluster, and the memory from page to page."""

import difflib
import logging
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np

from streaming.broker.disk.availability import read_server_properties
from streaming.broker.protocol.cluster_messages import Reassignment
from streaming.cluster.view.disk_forecasts import DiskHistory
from streaming.cluster.view.fading_rates import FadingRates, Rates
from streaming.cluster.view.listed_segments import ListedMemory
from streaming.cluster.view.transaction_columns import READ_WITHIN_MS, TransactionJudge, WaitingGroups
from streaming.common.arrays import Flags, Longs
from streaming.common.reloading import Reloading
from streaming.common.settings import Settings
from streaming.errors import SettingsError
from streaming.rules.config_values import NAMES, Configs, TopicPattern, ValueSource, broker_configs, topic_configs
from streaming.rules.copying import Paces
from streaming.rules.limits import Limiter
from streaming.rules.retention_rule import ABSENT, Bound, SegmentColumns

log = logging.getLogger(__name__)

_NOT_SEEN, _NOT_DELETABLE = -2, -1

SECONDS = 600.0
"""When a log will have grown by so much is predicted from its growth of this time."""

WATCHED_MS, SILENT_MS = 60_000, 300_000
"""A log that was watched for so long, and not silent for so long, grows at the rate of the last minutes."""


class DeletableSince:
    """Remembers from page to page since when the first segment of each log has been seen to be deletable.

    For how long a segment was seen to be deletable: checks of the broker cannot have missed it for longer than that. By its times
    alone, a segment may seem to be overdue for hours at the moment when its limit is lowered, the high watermark moves on, or its
    broker begins to lead.

    If a segment was deletable on the first page, it may have been so for as long as its times show. This is believed if the segment is
    still there one check interval later. The same happens after a restart of the job, because nothing is remembered then.
    """

    def __init__(self) -> None:
        self._since = np.empty(0, np.int64)  # by slot: since when it was seen so, or one of the two above
        self._at_first = np.empty(0, np.bool_)  # by slot: it was deletable on the first page

    def bound(self, slots: Longs, now_ms: int) -> Bound:
        """A function that bounds the overdue times of the logs in some slots of the table, at least one. All other slots are forgotten."""
        count = int(slots.max()) + 1
        before, at_first_before = np.full(count, _NOT_SEEN, np.int64), np.zeros(count, np.bool_)
        common = min(count, len(self._since))
        before[:common], at_first_before[:common] = self._since[:common], self._at_first[:common]

        def bounded(judged: Flags, deletable: Flags, overdue: Longs, check_interval: Longs) -> Longs:
            seen = before[slots]
            since = np.where(~judged, seen, np.where(deletable, np.where(seen >= 0, seen, now_ms), _NOT_DELETABLE))
            at_first = np.where(seen >= 0, at_first_before[slots], seen == _NOT_SEEN)
            self._since, self._at_first = np.full(count, _NOT_SEEN, np.int64), np.zeros(count, np.bool_)
            self._since[slots], self._at_first[slots] = since, at_first
            watched = np.maximum(now_ms - since, 0)
            believed: Longs = np.where(at_first, np.where(watched >= check_interval, overdue, 0), np.minimum(overdue, watched))
            return np.where(judged & deletable, believed, overdue)

        return bounded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ends:
    """The log in each slot of the table, and the base offset and the bytes of its active segment; `ABSENT` for no log."""

    log: Longs
    base: Longs
    size: Longs


class LogGrowth:
    """Rates by slot of the table. Pages and polls of groups read the same logs. Thread-safe.

    How fast logs grow now, from how they have grown from page to page: by their own lengths, whoever counts what is in them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rates = FadingRates(SECONDS)
        self._ends = _Ends(log=np.empty(0, np.int64), base=np.empty(0, np.int64), size=np.empty(0, np.int64))
        self._at_ms = -1

    def rates(self, slots: Longs, names: Longs, logs: SegmentColumns, steady_ms: int) -> Rates:
        """Bytes a second at which each log grows now; `ABSENT` where it is not watched for long enough, or does not grow.

        Args:
            slots: of the logs, in the table.
            names: a number for each of them, the same as long as it is the same log.
            steady_ms: of a monotonic clock.
        """
        with self._lock:
            if steady_ms > self._at_ms:
                self._look(slots, names, logs, steady_ms)
            known = np.flatnonzero(slots < len(self._ends.log))
            found = np.full(len(slots), float(ABSENT))
            found[known] = self._rates.steady(steady_ms, for_ms=WATCHED_MS, silent_ms=SILENT_MS)[slots[known]]
            return found

    def _look(self, slots: Longs, names: Longs, logs: SegmentColumns, steady_ms: int) -> None:
        before, count = self._ends, max(len(self._ends.log), int(slots.max(initial=-1)) + 1)
        if count > len(before.log):
            there = np.arange(count) < len(before.log)
            self._rates.begin(np.minimum(np.arange(count), len(before.log)), there, steady_ms)
            before = _Ends(**{name: _longer(getattr(before, name), count) for name in _Ends.__slots__})
        self._rates.begin_round(steady_ms)
        self._rates.restart(slots[before.log[slots] != names], steady_ms)
        grown = np.zeros(count, np.int64)
        grown[slots] = np.where(before.log[slots] == names, _grown(logs, before.base[slots], before.size[slots]), 0)
        self._rates.passed(grown, steady_ms)
        ends = {name: np.full(count, ABSENT) for name in _Ends.__slots__}
        ends["log"][slots], ends["base"][slots], ends["size"][slots] = names, logs.base[logs.last], logs.size[logs.last]
        self._ends, self._at_ms = _Ends(**ends), steady_ms


def _longer(column: Longs, count: int) -> Longs:
    return np.concatenate([column, np.full(count - len(column), ABSENT)])


def _grown(logs: SegmentColumns, base: Longs, size: Longs) -> Longs:
    """The bytes that came to each log since its active segment was the one of that base offset, and had that size."""
    at = logs.last.copy()
    rolled = (logs.base[logs.last] != base) & (base != ABSENT)
    for log in np.flatnonzero(rolled).tolist():  # few do between two looks
        first, last = int(logs.first[log]), int(logs.last[log])
        at[log] = np.clip(np.searchsorted(logs.base[first : last + 1], base[log], side="right") - 1, 0, last - first) + first
    came: Longs = np.maximum(logs.bytes_between(at, logs.last + 1) - size, 0)
    return np.where(logs.base[at] == base, came, 0)  # else it was cut off, or all of it is gone


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageContext:
    """What is set, what is known of the cluster now, and what pages remember; the memories are None if a page is made only once."""

    transactions: TransactionJudge
    limiter: Limiter
    deletable: DeletableSince | None = None
    growth: LogGrowth | None = None
    assume_replicated: bool = False  # if no metadata is readable, a log is taken as replicated up to its end
    coordinator_partitions: int | None = (
        None  # partitions of `__transaction_state` by the metadata log: 0 if there is no such topic, None not known
    )
    fenced: frozenset[int] = frozenset()  # the brokers that the controller has fenced off
    topic_ids: Mapping[str, str] | None = None  # of all topics, by name; "" not known, None if nothing is
    topic_partitions: Mapping[str, int] | None = None  # how many each has, None if nothing is known
    away: frozenset[int] = frozenset()  # the brokers that surely have no process, as far as agents have asked: nothing is deleted there
    metadata_ms: int | None = None  # when its most advanced copy was last written to; None if that does not show whether it is old
    clocks_ahead_ms: Mapping[int, int] = field(default_factory=dict)  # by how much the clocks of brokers are ahead, where they are wrong
    overdue_after_ms: int = 1_800_000  # the option of that name
    paces: Paces = field(default_factory=Paces)
    reassignments: tuple[Reassignment, ...] = ()  # those that are under way
    waiting: WaitingGroups = field(default_factory=WaitingGroups)  # the groups that wait for hanging transactions
    listed: ListedMemory = field(default_factory=ListedMemory)  # the segments of the last page or round
    disk_history: DiskHistory = field(default_factory=DiskHistory)  # what disks were


def context_of(settings: Settings, *, once: bool = False, list_all: bool = False) -> PageContext:
    """The context of a table's pages; ``once`` for a table that is read a single time.

    A changed ``server.properties`` is loaded again while the job runs.

    Args:
        list_all: list every open transaction, not only the late ones.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    transactions = TransactionJudge(
        hanging_after_ms=_milliseconds(settings.hanging_after),
        stuck_after_ms=_milliseconds(settings.stuck_after),
        late_after_ms=None if list_all else _milliseconds(settings.late_after),
        late_limit=settings.late_limit,
        read_within_ms=max(READ_WITHIN_MS, 3 * _milliseconds(settings.longest_pause)),
        once=once,
    )
    files = settings.server_properties
    static = Reloading(lambda: (static_configs(files, {}, None), files))
    limiter = Limiter(
        static.get,
        assumed_configs(settings.broker_config),
        topic_patterns(settings.topic_config),
    )
    return PageContext(
        transactions=transactions,
        limiter=limiter,
        deletable=None if once else DeletableSince(),
        growth=None if once else LogGrowth(),
        assume_replicated=settings.assume_replicated,
        overdue_after_ms=_milliseconds(settings.overdue_after),
    )


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def static_configs(files: Iterable[Path], broker_config: Mapping[str, str], brokers: Iterable[int] | None) -> dict[int, Configs]:
    """The static configurations of brokers, by node id. Brokers without any known configuration are left out.

    If a value in a file cannot be read, it is logged: a broker would not have started with it.

    Args:
        files: the ``server.properties`` of some brokers.
        broker_config: the configurations of all other brokers, empty for none.
        brokers: the node ids to return; None for those with a given file.

    Raises:
        UsageError: a file cannot be read, or does not contain the node id.
        SettingsError: ``broker_config`` has a name that is no such configuration, or a value that is not valid.
    """
    assumed, wanted = assumed_configs(broker_config), None if brokers is None else set(brokers)
    found = {} if assumed is None or wanted is None else dict.fromkeys(wanted, assumed)
    for properties in read_server_properties(files):
        configs = broker_configs(properties.configs, ValueSource.STATIC)
        for refused in configs.rejected:
            extra = {"broker": properties.node_id, "config": refused.name, "value": refused.value}
            log.warning("value in server.properties cannot be read: what stands in for it is assumed", extra=extra)
        if wanted is not None and properties.node_id not in wanted:
            log.warning("server.properties of a broker without a log dir here", extra={"broker": properties.node_id})
        found[properties.node_id] = configs
    return found


def assumed_configs(broker_config: Mapping[str, str]) -> Configs | None:
    """The configurations of brokers without a given ``server.properties``, from the option; None if it is empty.

    Raises:
        SettingsError: it has a name that is no broker configuration that limits logs, or a value that is not valid.
    """
    if not broker_config:
        return None
    assumed = broker_configs(broker_config.items(), ValueSource.STATIC)
    _refuse("broker_config", broker_config, assumed)
    return assumed


def _refuse(option: str, given: Mapping[str, str], configs: Configs) -> None:
    """Raise an error, because an option with a typo must not silently leave Kafka's default."""
    for name in given:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f', did you mean "{near[0]}"?' if near else ""
            raise SettingsError(f'{option}: "{name}" is not a configuration that limits logs{hint}')
    for refused in configs.rejected:
        raise SettingsError(f'{option}: {refused.name} cannot be "{refused.value}"')


def topic_patterns(topic_config: Mapping[str, Mapping[str, str]]) -> tuple[TopicPattern, ...]:
    """The configurations of topics from the option, in its order.

    Raises:
        SettingsError: one has a name that is no topic configuration, or a value that is not valid.
    """
    patterns = []
    for pattern, values in topic_config.items():
        configs = topic_configs(values.items())
        _refuse(f"topic_config of {pattern}", values, configs)
        patterns.append(TopicPattern(re.compile(pattern), configs))
    return tuple(patterns)
