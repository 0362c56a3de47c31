"""The families of consumer groups: by group and topic, by group, and of the partitions that are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.cluster.consumers.group_lag import ABSENT, REASONS
from streaming.cluster.consumers.group_moves import pair_values
from streaming.cluster.consumers.group_rebalances import MOST_STANDING, all_lately
from streaming.cluster.consumers.group_snapshot import GroupSnapshot, PartitionListing
from streaming.cluster.consumers.group_sums import UNTIMED, PairLabels, count_of, earliest_of, latest_of, partition_labels, with_label
from streaming.cluster.verdicts.conditions import (
    certain_losses,
    endangered_losses,
    held_up,
    last_skips,
    losses_by_cause,
    pair_losses,
    restless_groups,
)
from streaming.cluster.verdicts.group_bounds import DEFAULT_BOUNDS, Usage, usages
from streaming.cluster.view.family import Export, Family, Samples, family_of, labels
from streaming.common.arrays import Flags, Longs
from streaming.common.definitions import group_metrics
from streaming.common.definitions.metric import Metric
from streaming.common.short_names import is_short_form
from streaming.kafka.groups.rebalance_log import COUNTED

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
APPEND, RECORD = "append", "record"

MILLIONTHS = 1_000_000
"""The unit of a ratio."""

Labelled = Sequence[tuple[str, Longs, Flags]]
"""Values by a label's value; which of them there are."""


def shown_groups(snapshot: GroupSnapshot | None, listing: PartitionListing, export: Export, now_ms: int) -> ShownGroups:
    """What a page shows of consumer groups; nothing if nothing is known of any."""
    if snapshot is None:
        return NO_GROUPS
    usage = usages(snapshot, snapshot.at_ms, DEFAULT_BOUNDS)
    uses = [(labels(group=name, use=each.use), 1) for name, each in usage.items() if export.has_consumer(name)]
    groups = (*by_group(snapshot, export.has_consumer), family_of(group_metrics.USE, uses))
    families = (*by_topic(snapshot, usage, export, now_ms), *groups)
    return ShownGroups(families=families, partitions=tuple(by_partition(snapshot, listing, now_ms)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownGroups:
    """The families by group and topic and by group, and those of the listed partitions."""

    families: tuple[Family, ...] = ()
    partitions: tuple[Family, ...] = ()


NO_GROUPS = ShownGroups()


def by_group(snapshot: GroupSnapshot, is_exported: Callable[[str], bool]) -> Iterator[Family]:
    """The families by group, and those about all groups."""
    groups = [group for name, group in snapshot.groups.items() if is_exported(name)]
    infos = {each.group: labels(group=each.group, type=each.type, protocol=each.protocol) for each in groups}
    pair_labels = snapshot.labels
    numbers = np.unique(snapshot.rows.group[snapshot.pairs.first[pair_labels.shown]])
    simple = {snapshot.rows.group_names[number] for number in numbers.tolist()}
    infos |= {name: labels(group=name, type="Classic", protocol="") for name in simple - infos.keys()}
    members = {each.group: each.members for each in groups if each.members >= 0}  # not known of a record that is not understood
    members |= dict.fromkeys(infos.keys() - snapshot.groups.keys(), 0)
    yield family_of(group_metrics.MEMBERS, [(labels(group=name), count) for name, count in members.items()])
    yield family_of(group_metrics.INFO, [(label, 1) for label in infos.values()])
    yield family_of(group_metrics.STATE, [(labels(group=each.group, state=each.state), 1) for each in groups if each.state])
    yield from _rebalances(snapshot, is_exported)
    yield family_of(group_metrics.OMITTED, [("", snapshot.omitted)])
    yield family_of(group_metrics.CHECKPOINTS_UNREAD, [("", snapshot.checkpoints_unread)])
    yield family_of(group_metrics.SHORTENED, [("", sum(map(is_short_form, infos)))])
    yield family_of(group_metrics.COORDINATORS_UNREAD, [(labels(topic=topic), count) for topic, count in snapshot.unread.items()])
    yield family_of(group_metrics.NOT_UNDERSTOOD, [(labels(topic=topic), count) for topic, count in snapshot.not_understood.items()])


def _rebalances(snapshot: GroupSnapshot, is_exported: Callable[[str], bool]) -> Iterator[Family]:
    """How often each group has rebalanced, when last, and whether it does so all the time."""
    found = snapshot.rebalances
    counts, possible = found.counts[:, found.shown], found.possible[:, found.shown]
    yield _labelled(group_metrics.REBALANCES, found.labels, "kind", list(zip(map(str, COUNTED), counts, possible, strict=True)))
    yield _family(group_metrics.LAST_REBALANCE, found.labels, found.last_by(snapshot.at_ms)[found.shown])
    of_late = all_lately(found, snapshot.groups, snapshot.at_ms)
    ratios = [(labels(group=name), round(each.ratio * MILLIONTHS)) for name, each in of_late.items() if each.ratio and is_exported(name)]
    yield family_of(group_metrics.REBALANCE_RATIO, ratios)


def _labelled(metric: Metric, series_labels: pa.LargeStringArray, name: str, values: Labelled) -> Family:
    """A family with a label more, whose value may be empty."""
    parts, numbers = [series_labels[:0]], [np.empty(0, np.int64)]
    for value, column, there in values:
        some = series_labels.filter(pa.array(there))
        parts.append(with_label(some, name, value))
        numbers.append(column[there])
    return Family(metric=metric, labels=pa.concat_arrays(parts), samples=(Samples(values=np.concatenate(numbers)),))


def _family(metric: Metric, series_labels: pa.LargeStringArray, values: Longs) -> Family:
    """A family of the values that are there."""
    there = values >= 0
    return Family(metric=metric, labels=series_labels.filter(pa.array(there)), samples=(Samples(values=values[there]),))


def by_topic(snapshot: GroupSnapshot, usage: Mapping[str, Usage], export: Export, now_ms: int) -> Iterator[Family]:
    """The families by group and topic."""
    sums, counters, pair_labels = snapshot.pairs, snapshot.counters, snapshot.labels
    numbers = sums.number[pair_labels.shown]

    def plain(metric: Metric, values: Longs) -> Family:
        return _family(metric, pair_labels.labels, values[pair_labels.shown])

    share = snapshot.rows.share[sums.first][pair_labels.shown] if len(snapshot.rows) else np.empty(0, np.bool_)
    committed, uncommitted = sums.read_committed[pair_labels.shown], sums.read_uncommitted[pair_labels.shown]
    known = sums.known[pair_labels.shown] > 0
    yield plain(group_metrics.LAG_OFFSETS, sums.lag_offsets)
    yield _labelled(group_metrics.LAG_RECORDS, pair_labels.labels, "isolation", _records(committed, uncommitted, share))
    yield plain(group_metrics.UNREAD_RECORDS, sums.left)
    yield plain(group_metrics.LAG_BYTES, sums.bytes)
    oldest = (sums.oldest_append_ms[pair_labels.shown], sums.oldest_timestamp_ms[pair_labels.shown])
    yield _labelled(group_metrics.LAG_SECONDS, pair_labels.labels, "clock", _ages(*oldest, known, now_ms))
    yield plain(group_metrics.LOSS, pair_losses(snapshot, certain_losses(snapshot.found)))
    dangers = losses_by_cause(snapshot, endangered_losses(snapshot, usage, now_ms))
    by_cause = [(cause, losses[pair_labels.shown], losses[pair_labels.shown] >= 0) for cause, losses in dangers.items()]
    yield _labelled(group_metrics.ENDANGERED, pair_labels.labels, "cause", by_cause)
    yield plain(group_metrics.BUFFERED_RECORDS, sums.buffered)
    yield _family(group_metrics.LOST_RECORDS, pair_labels.labels, counters.lost_records[numbers])
    yield _family(group_metrics.LOST_OFFSETS, pair_labels.labels, counters.lost_offsets[numbers])
    yield from _lost_of_late(snapshot, export)
    yield from _moved(snapshot, numbers, pair_labels)
    yield plain(group_metrics.LAST_SKIP, last_skips(snapshot, now_ms))
    yield _family(group_metrics.COMMITTED_RECORDS, pair_labels.labels, counters.committed_records[numbers])
    yield plain(group_metrics.LAST_COMMIT, sums.last_commit_ms)
    yield plain(group_metrics.OFFSET_EXPIRATION, sums.expiration_ms)
    yield _pending(snapshot, pair_labels, export)
    yield plain(group_metrics.STOPPED, sums.stopped)
    yield _standing(snapshot, export, now_ms)
    yield plain(group_metrics.INVALID_OFFSETS, sums.invalid)
    yield from (plain(metric, values) for metric, values in _held(snapshot))
    reasons = zip(REASONS, sums.unknown[:, pair_labels.shown], strict=True)
    unknown = [(str(reason), counts, counts > 0) for reason, counts in reasons]
    yield _labelled(group_metrics.UNKNOWN, pair_labels.labels, "reason", unknown)


def _records(committed: Longs, uncommitted: Longs, share: Flags) -> Labelled:
    """Records by isolation. A share group has none: it may read everything up to the high watermark."""
    return [
        ("", uncommitted, share & (uncommitted >= 0)),
        (READ_COMMITTED, committed, ~share & (committed >= 0)),
        (READ_UNCOMMITTED, uncommitted, ~share & (uncommitted >= 0)),
    ]


def _ages(append_ms: Longs, timestamp_ms: Longs, counted: Flags, now_ms: int) -> Labelled:
    """Ages in milliseconds: 0 where nothing is unread, and none where the time of an unread record is not known."""
    ages = []
    for clock, times in ((APPEND, append_ms), (RECORD, timestamp_ms)):
        age = np.where(times == ABSENT, 0, np.maximum(now_ms - times, 0))
        ages.append((clock, age, counted & (times != UNTIMED)))
    return ages


def _lost_of_late(snapshot: GroupSnapshot, export: Export) -> Iterator[Family]:
    """When each pair lost records last, and what was left of deleted topics: such a pair is gone, or of another topic of that name."""
    pair_labels = snapshot.labels
    lost_ms = latest_of(snapshot.progress.lost_ms, snapshot.pairs.first)[pair_labels.shown]
    last = {label: at for label, at in zip(pair_labels.labels.to_pylist(), lost_ms.tolist(), strict=True) if at >= 0}
    records: Counter[str] = Counter()
    for each in snapshot.deleted_topics:
        if export.has_consumer(each.group) and export.has_topic(each.topic):
            label = labels(group=each.group, topic=each.topic)
            last[label] = max(last.get(label, each.at_ms), each.at_ms)
            records[label] += each.records + each.offsets
    yield family_of(group_metrics.LAST_LOSS, list(last.items()))
    yield family_of(group_metrics.DELETED_TOPIC_RECORDS, list(records.items()))


def _moved(snapshot: GroupSnapshot, numbers: Longs, pair_labels: PairLabels) -> Iterator[Family]:
    """What was moved of the committed offsets of pairs, by their numbers."""
    families = (
        (False, group_metrics.REWOUND_RECORDS, group_metrics.REWOUND_OFFSETS),
        (True, group_metrics.SKIPPED_RECORDS, group_metrics.SKIPPED_OFFSETS),
    )
    for forwards, of_records, of_offsets in families:
        by_kind = list(pair_values(numbers, snapshot.moved.amounts, forwards=forwards))
        yield _labelled(of_records, pair_labels.labels, "kind", [(kind, records, records >= 0) for kind, records, _ in by_kind])
        yield _labelled(of_offsets, pair_labels.labels, "kind", [(kind, offsets, offsets >= 0) for kind, _, offsets in by_kind])


def _pending(snapshot: GroupSnapshot, pair_labels: PairLabels, export: Export) -> Family:
    """Open commits are few: those of groups without any other offset have a series too."""
    wanted = (each for each in snapshot.pending if export.has_consumer(each.group) and export.has_topic(each.topic))
    counts = Counter(labels(group=each.group, topic=each.topic) for each in wanted)
    rows = dict.fromkeys(pair_labels.labels.to_pylist(), 0)
    return family_of(group_metrics.PENDING_COMMITS, (rows | counts).items())


def _standing(snapshot: GroupSnapshot, export: Export, now_ms: int) -> Family:
    """Where partitions stand: of groups whose members come and go, and of those that have stopped."""
    rows, logs, lags = snapshot.rows, snapshot.logs, snapshot.found.lags
    found = {
        (name, each.topic, each.partition): each.offset for name, of in restless_groups(snapshot, now_ms).items() for each in of.standing
    }
    count: Counter[tuple[str, str]] = Counter(key[:2] for key in found)
    for row in np.flatnonzero(snapshot.found.stopped).tolist():
        name, topic = rows.group_names[rows.group[row]], logs.topics[logs.of_row[row]]
        key = name, topic, int(rows.partition[row])
        if key not in found and count[name, topic] < MOST_STANDING:
            count[name, topic] += 1
            found[key] = max(int(lags.next_offset[row]), int(rows.offset[row]))
    shown = {key: offset for key, offset in found.items() if export.has_consumer(key[0]) and export.has_topic(key[1])}
    family = [(labels(group=name, topic=topic, partition=str(partition)), offset) for (name, topic, partition), offset in shown.items()]
    return family_of(group_metrics.STANDING_OFFSET, family)


def _held(snapshot: GroupSnapshot) -> Iterator[tuple[Metric, Longs]]:
    """The partitions of each pair that are held up, and since when, as of the snapshot: a wait may have ended after it."""
    certain, first = held_up(snapshot, snapshot.at_ms, DEFAULT_BOUNDS.held_from_ms).certain, snapshot.pairs.first
    yield group_metrics.HELD, count_of(certain, first)
    yield group_metrics.HELD_SINCE, earliest_of(np.where(certain, snapshot.progress.held_since_ms, ABSENT), first)


def by_partition(snapshot: GroupSnapshot, listing: PartitionListing, now_ms: int) -> Iterator[Family]:
    """The families of the partitions that are listed."""
    pair_labels = snapshot.labels
    rows, omitted = _listed(snapshot, pair_labels, listing, now_ms)
    lags = snapshot.found.lags
    pair_of = np.searchsorted(snapshot.pairs.first, rows, side="right") - 1
    series_labels = partition_labels(pair_labels, pair_of, snapshot.rows.partition[rows].astype(np.int64))
    share = snapshot.rows.share[rows]
    known = lags.bytes[rows] >= 0
    yield _family(group_metrics.PARTITION_COMMITTED, series_labels, snapshot.rows.offset[rows])
    yield _family(group_metrics.PARTITION_LAG_OFFSETS, series_labels, lags.offsets[rows])
    records = _records(lags.read_committed[rows], lags.read_uncommitted[rows], share)
    yield _labelled(group_metrics.PARTITION_LAG_RECORDS, series_labels, "isolation", records)
    yield _family(group_metrics.PARTITION_LAG_BYTES, series_labels, lags.bytes[rows])
    unread = lags.next_offset[rows] >= 0
    append_ms, timestamp_ms = (
        np.where(unread & (column[rows] < 0), UNTIMED, column[rows]) for column in (lags.next_append_ms, lags.next_timestamp_ms)
    )
    yield _labelled(group_metrics.PARTITION_LAG_SECONDS, series_labels, "clock", _ages(append_ms, timestamp_ms, known, now_ms))
    yield _family(group_metrics.PARTITION_LOSS, series_labels, certain_losses(snapshot.found)[rows])
    yield family_of(group_metrics.LATE_OMITTED, [("", omitted)])


def _listed(snapshot: GroupSnapshot, pair_labels: PairLabels, listing: PartitionListing, now_ms: int) -> tuple[Longs, int]:
    """The indexes of the partitions, and how many late ones are left out."""
    pairs = snapshot.pairs
    exported = np.repeat(pair_labels.rank >= 0, pairs.partitions) if len(pairs) else np.empty(0, np.bool_)
    if listing.partitions:
        return np.flatnonzero(exported), 0
    since = snapshot.found.appended.latest_ms
    late = np.flatnonzero(exported & (since >= 0) & (now_ms - since > listing.late_after_ms))
    if len(late) <= listing.late_limit:
        return late, 0
    latest = np.argpartition(since[late], listing.late_limit)[: listing.late_limit]
    return np.sort(late[latest]), len(late) - listing.late_limit
