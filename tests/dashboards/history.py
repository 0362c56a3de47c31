"""Some hours of made-up clusters' metrics, in the names and labels of the exporter, as text that promtool makes a database of.

Everything that a dashboard shows happens in it: traffic that rises and falls, a transaction that hangs, a broker that was away for a while,
records from the future, disks that fill up, consumer groups that fall behind.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

END = 1_772_540_100
"""2026-03-03 12:15 UTC: always the same time, so that the same pictures come out, with no mark of the time axis at their edges."""

TOPICS = {"clicks": 6, "orders": 6, "payments": 6, "inventory": 4, "sessions": 4, "audit": 2}
HANGING = ("payments", 2)
"""The partition with a transaction that nobody will end."""
STUCK = ("inventory", 0)
"""The partition with one whose producer is silent, and which its coordinator will end."""

UNSEEN = "audit-export"
"""The group whose next record was appended before segtail began."""

_OFFSETS = "__consumer_offsets"
_LATE = (
    (*HANGING, 4711, "checkout-7", "Empty", "hanging", 5400),
    (_OFFSETS, 17, 4711, "checkout-7", "Empty", "hanging", 5400),
    (*STUCK, 4417, "stock-count-2", "Ongoing", "open", 1500),
    ("orders", 4, 4802, "billing-2", "Ongoing", "overdue", 1260),
    ("orders", 1, 4655, "settlement-0", "Ongoing", "two_phase", 740),
    ("inventory", 3, 4990, "stock-sync-1", "PrepareCommit", "completing", 320),
    ("payments", 5, 5002, "checkout-3", "Ongoing", "open", 95),
)
"""Topic, partition, producer, transactional.id, its coordinator's state, verdict, and seconds from the start to the end of the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What is made up: partitions by topic, how many brokers, and for how long.

    ``step`` and the length are in seconds. ``job`` is the cluster's name, ``seed`` and ``times_more`` make its values another's, and a
    ``pair`` of segtails watches it instead of one. ``alerts`` that fire are names and severities; ``loss_within`` is the option
    ``group_loss_within``.
    """

    job: str = "shop-eu"
    seed: int = 7
    times_more: float = 1
    pair: bool = False
    alerts: tuple[tuple[str, str], ...] = (
        ("TransactionHanging", "critical"),
        ("GroupWillLoseData", "critical"),
        ("GroupStopped", "warning"),
    )
    loss_within: int = 14_400
    topics: dict[str, int]
    brokers: int = 3
    seconds: int
    step: int

    def leader(self, topic: str, partition: int) -> int:
        """The broker that leads a partition."""
        return 1 + (partition + len(topic)) % self.brokers

    @property
    def late(self) -> tuple[tuple[str, int, int, str, str, str, int], ...]:
        """Its late transactions; without the topic of the one that hangs it has none, and is a quiet one."""
        return tuple(each for each in _LATE if each[0] in (*self.topics, _OFFSETS)) if HANGING[0] in self.topics else ()

    @property
    def times(self) -> Values:
        """Unix seconds of every scrape."""
        return np.arange(END - self.seconds, END + 1, self.step, dtype=np.float64)


SMALL = Cluster(topics=TOPICS, seconds=12_000, step=30)
BESIDE = replace(SMALL, job="shop-us", seed=11, times_more=3, brokers=4, loss_within=600)
"""Topics, partitions, groups and brokers of the same names, with other values; what its groups are about to lose is not yet near."""
PAIRED = replace(SMALL, job="shop-ap", pair=True)
"""The values of SMALL, by two segtails."""


_OF_THE_SECOND = {"namespace": "ap-2", "pod": "segtail-0", "service": "segtail-2", "container": "job", "endpoint": "page"}
"""Labels of a pair's second target, which runs in another namespace under Prometheus's operator."""


LONG_DOWN, NEVER_UP = "shop-old", "segtail-new"
"""Clusters whose segtails are targets, and do not answer."""


class _Page:
    """Families with all their samples, written one family behind the other as OpenMetrics asks."""

    def __init__(self, times: Values) -> None:
        self.times = times
        self.job = self.instance = ""
        self.second = False
        self.families: dict[str, list[tuple[str, str, Values]]] = {}

    def add(self, name: str, values: Values | float, /, suffix: str = "", **labels: object) -> None:
        """NaN: no sample at that time."""
        whole = {"job": self.job, "instance": self.instance} | (_OF_THE_SECOND if self.second else {}) | labels
        spelled = ",".join(f'{key}="{value}"' for key, value in whole.items() if value != "")
        self.families.setdefault(name, []).append((suffix, spelled, np.broadcast_to(np.asarray(values, np.float64), self.times.shape)))

    def lines(self) -> Iterator[str]:
        """OpenMetrics with a timestamp at each sample."""
        for name, series in self.families.items():
            for suffix, labels, values in series:
                head = f"{name}{suffix}{{{labels}}}"
                for at, value in zip(self.times.tolist(), values.tolist(), strict=True):
                    if value == value:
                        yield f"{head} {value:.6g} {at:.0f}\n" if abs(value) < 1e5 else f"{head} {value:.3f} {at:.0f}\n"
        yield "# EOF\n"


def write(clusters: Sequence[Cluster], path: Path) -> None:
    """Write the history of clusters, all of the first one's time, to a file."""
    page = _Page(clusters[0].times)
    for cluster in clusters:
        page.job = cluster.job
        for instance in ("a", "b") if cluster.pair else ("a",):
            page.instance, page.second = f"{cluster.job}-{instance}:9712", instance == "b"
            _cluster(page, cluster)
    page.second = False
    page.add("ALERTS", 1, job="", instance="", alertname="Watchdog", alertstate="firing", severity="info")
    with path.open("w", encoding="utf-8") as file:
        file.writelines(page.lines())


def write_down(path: Path) -> None:
    """Write what a Prometheus has of segtails that are down: of one that answered two days ago, and of one that never did."""
    ended = END - 2 * 86_400
    before, now = (_Page(np.arange(start, end + 1, 60, dtype=np.float64)) for start, end in ((ended - 3600, ended), (END, END)))
    before.add("segtail_build_info", 1, job=LONG_DOWN, instance="old:9712", version="0.1.0")
    now.add("up", 0, job=LONG_DOWN, instance="old:9712")
    now.add("up", 0, job=NEVER_UP, instance="new:9712")
    now.add("up", 0, job="web", instance="web:80")
    lines = [line for page in (before, now) for line in page.lines() if not line.startswith("#")]
    path.write_text("".join(lines) + "# EOF\n", encoding="utf-8")


def _cluster(page: _Page, cluster: Cluster) -> None:
    random = Random(cluster.seed)
    for topic, partitions in cluster.topics.items():
        for partition in range(partitions):
            _partition(page, random, cluster, topic, partition)
        for broker in range(1, cluster.brokers + 1):
            _topic(page, random, topic, broker)
    _counts(page, cluster)
    _replicas(page)
    _late(page, cluster)
    _groups(page, random, cluster)
    _brokers(page, random, cluster)
    _observer(page, cluster)


def _noise(random: Random, times: Values, by: float) -> Values:
    return 1 + by * np.random.default_rng(random.randrange(1 << 30)).standard_normal(len(times))


def _traffic(random: Random, times: Values, topic: str, partition: int) -> Values:
    """Bytes a second."""
    base = {"clicks": 900e3, "orders": 300e3, "payments": 150e3, "inventory": 60e3, "sessions": 25e3, "audit": 4e3}.get(topic, 20e3)
    hot = 4.0 if (topic, partition) == ("clicks", 3) else random.uniform(0.8, 1.2)
    wave = 1 + 0.35 * np.sin((times - END) / 3600 * 2.1 + len(topic))
    return np.maximum(base * hot * wave * _noise(random, times, 0.06), 0)


def _total(times: Values, rate: Values, before: float = 1e9) -> Values:
    return before + np.cumsum(rate * np.gradient(times))


def _partition(page: _Page, random: Random, cluster: Cluster, topic: str, partition: int) -> None:
    times = page.times
    where = {"broker": cluster.leader(topic, partition), "topic": topic, "partition": partition}

    def add(name: str, values: Values | float, **more: object) -> None:
        page.add(f"segtail_partition_{name}", values, **where, **more)

    sizes = cluster.times_more * _traffic(random, times, topic, partition)
    total = _total(times, sizes)
    end = np.floor(total / 600)
    away = (times > END - 4200) & (times < END - 3300)
    add("appended_bytes_total", total)
    add("appended_batches_total", np.floor(total / 12_000))
    add("appended_records_total", end)
    add("old_format_batches_total", 0)
    add("last_append_timestamp_seconds", times - random.uniform(0, 3))
    add("max_record_timestamp_seconds", times)
    add("log_end_offset", end)
    add("leader", 1)
    add("leader_id", cluster.leader(topic, partition))
    add("leader_epoch", np.where(times > END - 4200, 7, 6))
    add("replicas", 3)
    add("in_sync_replicas", np.where(away & (partition % 2 == 0), 2, 3))
    add("min_in_sync_replicas", 2)
    add("replica_lag_offsets", np.floor(np.where(away, (times - END + 4200) * 40, random.uniform(0, 30))))
    began = next((END - each[-1] for each in cluster.late if each[:2] == (topic, partition)), np.inf)
    _transactions(add, random, times, topic, partition, end, since=began)
    _retention(add, random, times, topic, partition, total)
    for name in ("truncations_total", "truncated_bytes_total", "corrupt_batches_total"):
        add(name, np.where((times > END - 4000) & (topic == "orders") & (partition == 1), 1, 0) if name == "truncations_total" else 0)
    add("info", 1, topic_id=f"Kx{random.randrange(1 << 60):015x}", cleanup_policy=_policy(topic), limit_source="topic")


def _policy(topic: str) -> str:
    return "compact" if topic == "sessions" else "delete"


def _transactions(add, random: Random, times: Values, topic: str, partition: int, end: Values, *, since: float) -> None:  # type: ignore[no-untyped-def]
    hangs = (topic, partition) == HANGING
    late = times > since
    add("active_producers", np.floor(np.maximum(3, 8 * _noise(random, times, 0.1))))
    add("sequence_gaps_total", 0)
    started = times - np.mod(times * random.uniform(0.5, 1.5), 40)
    lag = np.where(late, end - np.interp(since, times, end), np.mod(times, 40) * random.uniform(2, 9))
    watermark = end - np.floor(np.abs(20 * _noise(random, times, 1)))
    add("high_watermark", watermark)
    add("high_watermark_checkpoint", watermark)
    add("log_start_offset", np.floor(end[0] * 0.7))
    add("last_stable_offset_lag", np.floor(lag))
    add("last_stable_offset", watermark - np.floor(lag))
    add("last_stable_offset_lag_bytes", np.floor(lag) * 600)
    add("open_transactions", np.floor(np.abs(3 * _noise(random, times, 0.3))) + late)
    add("oldest_open_transaction_start_timestamp_seconds", np.where(late, since, started))
    add("oldest_open_transaction_last_append_timestamp_seconds", np.where(late, since + 2, times - 1))
    add("hanging_transactions", np.where(times > since + 960, 1, 0) if hangs else 0)
    add("stuck_transactions", np.where(times > since + 1200, 1, 0) if (topic, partition) == STUCK else 0)
    add("last_stable_offset_stalled", np.where(times > since + 900, 1, 0))
    ended = 4.0 * _noise(random, times, 0.2)
    aborts = np.where((topic == "inventory") & (times > END - 3000), 0.3, 0.03)
    add("committed_transactions_total", np.floor(_total(times, ended * (1 - aborts))))
    add("aborted_transactions_total", np.floor(_total(times, ended * aborts, 1e7)))
    add("empty_transaction_markers_total", np.floor(_total(times, ended * 0.01, 1e6)))
    add("aborted_bytes_total", np.floor(_total(times, ended * aborts * 9000)))


def _retention(add, random: Random, times: Values, topic: str, partition: int, total: Values) -> None:  # type: ignore[no-untyped-def]
    rolled = np.mod(times + random.uniform(0, 3600), 3600)
    add("size_bytes", total * 3)
    add("segments", np.floor(total * 3 / 1e9) + 4)
    add("active_segment_size_bytes", rolled * 2e5)
    add("active_segment_first_timestamp_seconds", times - rolled)
    add("segment_limit_seconds", 3600)
    add("segment_limit_bytes", 1 << 30)
    add("oldest_record_timestamp_seconds", times - 86400 - rolled)
    add("retention_limit_seconds", 86400)
    add("retention_limit_bytes", 8e9)
    late = (topic, partition) == ("inventory", 1)
    check = np.mod(times, 300)
    add("retention_lag_seconds", rolled if topic != "audit" else rolled + 90_000)
    add("retention_overdue_seconds", np.maximum(times - END + 6000, 0) if late else np.where(rolled < 300, check, 0))
    add("retention_reclaimable_bytes", np.maximum(times - END + 6000, 0) * 6e4 if late else np.where(rolled < 300, check * 2e5, 0))
    add("next_deletion_timestamp_seconds", times + 3600 - rolled)
    add("max_timestamp_ahead_seconds", 40_000 + END - times if topic == "audit" else 0)
    if topic == "audit":
        add("retention_blocked", 1, reason="future_timestamp")
    elif late:
        add("retention_blocked", np.where(times > END - 6000, 1, np.nan), reason="high_watermark")
    elif partition % 3 == 0:
        add("retention_blocked", np.where(rolled > 1800, 1, np.nan), reason="active_segment")
    add("dirty_ratio", np.mod((times - END) / 7200 + random.random(), 0.55))
    add("dirty_bytes", np.mod((times - END) / 7200 + random.random(), 0.55) * 4e9)
    add("uncleanable_bytes", 2e8 * _noise(random, times, 0.1), reason="compaction_lag")
    add("uncleanable_bytes", np.maximum(times - END + 5400, 0) * 2e4 if topic == "payments" else 0, reason="open_transaction")
    add("segments_rolled_total", np.floor(times / 3600))
    add("segments_deleted_total", np.floor(times / 3600) - 24)


def _topic(page: _Page, random: Random, topic: str, broker: int) -> None:
    times = page.times
    where = {"broker": broker, "topic": topic}
    share = _total(times, _traffic(random, times, topic, 0))
    for codec, part in (("none", 0.1), ("gzip", 0), ("snappy", 0), ("lz4", 0.6), ("zstd", 0.3)):
        page.add("segtail_topic_codec_bytes_total", share * part, **where, codec=codec)
    for name, bounds in (
        ("segtail_topic_batch_size_bytes", (256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0)),
        ("segtail_topic_batch_records", (1.0, 10.0, 100.0, 1000.0)),
        ("segtail_topic_transaction_duration_seconds", (0.01, 0.1, 1.0, 10.0, 60.0, 900.0)),
    ):
        _histogram(page, name, bounds, share / 12_000, **where)


def _histogram(page: _Page, name: str, bounds: tuple[float, ...], count: Values, **labels: object) -> None:
    for place, bound in enumerate((*bounds, float("inf"))):
        upto = 1 / (1 + np.exp(len(bounds) / 2 - 1.6 * place)) if place < len(bounds) else 1.0
        page.add(name, np.floor(count * upto), suffix="_bucket", **labels, le="+Inf" if place == len(bounds) else bound)
    page.add(name, count * 5000, suffix="_sum", **labels)
    page.add(name, np.floor(count), suffix="_count", **labels)


def _counts(page: _Page, cluster: Cluster) -> None:
    times = page.times
    away = (times > END - 4200) & (times < END - 3300)
    for topic, partitions in cluster.topics.items():
        page.add("segtail_topic_partitions", partitions, topic=topic)
        page.add("segtail_topic_under_replicated_partitions", np.where(away, (partitions + 1) // 2, np.nan), topic=topic)
    left = np.where((times > END - 3000) & (times < END - 600), np.maximum(END - 600 - times, 0) * 2e6, np.nan)
    page.add("segtail_partition_reassignment_remaining_bytes", left, topic="clicks", partition=1, broker=2)


def _replicas(page: _Page) -> None:
    late = page.times > END - 3000
    orders = {"topic": "orders", "partition": 1, "broker": 3, "role": "follower"}
    page.add("segtail_replica_corrupt_batches", np.where(late, 2, np.nan), **orders, found_by="scrub")
    page.add("segtail_replica_retention_overdue_seconds", np.where(late, page.times - END + 4000, np.nan), **orders)
    page.add("segtail_replica_dirty_ratio", np.where(late, 0.8, np.nan), **(orders | {"topic": "inventory"}))


def _late(page: _Page, cluster: Cluster) -> None:
    more_topics = [topic for topic in cluster.topics if topic not in TOPICS]
    others = [(topic, 0, 6000 + number, f"{topic}-writer", "Ongoing", "open", 90) for number, topic in enumerate(more_topics)]
    for topic, partition, producer, transactional_id, state, verdict, age in (*cluster.late, *others):
        broker = cluster.leader(topic, partition)
        since = np.where(page.times >= END - age + 60, END - age, np.nan)
        subject = {"broker": broker, "topic": topic, "partition": partition, "producer_id": producer, "first_offset": 1_660_000 + producer}
        page.add("segtail_late_transaction_start_timestamp_seconds", since, **subject)
        more = {"producer_epoch": 3, "transactional_id": transactional_id, "coordinator_state": state, "verdict": verdict}
        more |= {"stuck": "true"} if (topic, partition) == STUCK else {}  # labels that most have empty
        more |= {"groups": "billing"} if topic == _OFFSETS else {}
        more |= {"verdict": "unknown"} if page.second and verdict == "overdue" else {}  # a pair differs for a moment
        page.add("segtail_late_transaction_info", np.where(np.isnan(since), np.nan, 1), **subject, **more)
        if topic == _OFFSETS:
            where = {"broker": broker, "topic": topic, "partition": partition}
            page.add("segtail_partition_hanging_transactions", np.where(page.times > END - age + 960, 1, 0), **where)
    page.add("segtail_late_transactions_omitted", 0)


def _groups(page: _Page, random: Random, cluster: Cluster) -> None:
    """A group for each topic: one loses records, one has stopped, one waits for the transaction that hangs."""
    times = page.times
    since = np.maximum(times - END + 5400, 0)
    nothing = np.zeros_like(times)
    for place, (topic, partitions) in enumerate(cluster.topics.items()):
        group = {"clicks": "click-archive", "audit": "audit-export", HANGING[0]: "billing"}.get(topic, f"{topic}-reader")
        late = since if group in ("click-archive", "audit-export", "billing") else nothing
        seconds = late + np.abs(2 * cluster.times_more * _noise(random, times, 0.4))
        rate = 40.0 * cluster.times_more * (place % 7 + 1)
        of = {"group": group, "topic": topic}
        clock = "record" if group == UNSEEN else "append"
        for each, more in (("append", np.nan if group == UNSEEN else 0.0), ("record", 600.0 * (group == UNSEEN) + 0.1)):
            page.add("segtail_group_lag_seconds", seconds + more, **of, clock=each)
        readable = np.minimum(seconds, 4) if group == "billing" else seconds  # the rest waits behind the transaction
        for isolation, unread in (("read_committed", readable), ("read_uncommitted", seconds * 1.05)):
            page.add("segtail_group_lag_records", unread * rate, **of, isolation=isolation)
        page.add("segtail_group_unread_records", readable * rate, **of)
        page.add("segtail_group_lag_offsets", seconds * rate * 1.2, **of)
        page.add("segtail_group_lag_bytes", seconds * rate * 600, **of)
        page.add("segtail_group_loss_timestamp_seconds", times + 7200 - seconds, **of)
        if late.any():
            endangered = np.where(late > 0, times + 7200 - seconds, np.nan)
            cause = "transaction" if group == "billing" else "group"
            page.add("segtail_group_endangered_timestamp_seconds", endangered, cause=cause, **of)
        lost = np.maximum(since - 4000, 0) if group == "click-archive" else nothing
        page.add("segtail_group_lost_records_total", np.floor(lost * rate), **of)
        page.add("segtail_group_lost_offsets_total", 0, **of)
        if group == "click-archive":
            page.add("segtail_group_buffered_records", np.full(len(times), 120.0), **of)
            page.add("segtail_group_skipped_records_total", np.floor(lost * rate / 10), **of, kind="admin")
            page.add("segtail_group_rewound_records_total", np.floor(lost * rate / 20), **of, kind="consumer")
        read = rate * _noise(random, times, 0.1) * ((late == 0) | (group == "billing"))
        page.add("segtail_group_committed_records_total", np.floor(_total(times, read, 1e6)), **of)
        page.add("segtail_group_last_commit_timestamp_seconds", times - np.mod(times, 5), **of)
        page.add("segtail_group_pending_transactional_commits", partitions if topic == HANGING[0] else 0, **of)
        page.add("segtail_group_stopped_partitions", np.where(late > 900, partitions, 0) if group == "audit-export" else 0, **of)
        page.add("segtail_group_invalid_offset_partitions", np.where(late > 900, 1, 0) if group == "audit-export" else 0, **of)
        page.add("segtail_group_held_partitions", np.where(late > 0, 1, 0) if group == "billing" else 0, **of)
        if group == "billing":
            page.add("segtail_group_held_since_timestamp_seconds", np.where(late > 0, END - 5400, np.nan), **of)
        page.add("segtail_group_lag_unknown_partitions", np.where(late > 3000, 1, np.nan), **of, reason="leader_not_observed")
        if group == "click-archive":  # it has no members, nobody uses it, so its offsets expire, and the coordinator has no state of it
            page.add("segtail_group_offset_expiration_timestamp_seconds", END + 86_400, **of)
        else:
            page.add("segtail_group_members", partitions, group=group)
            page.add("segtail_group_info", 1, group=group, type="Classic" if place % 2 else "Consumer", protocol="consumer")
            page.add("segtail_group_state", 1, group=group, state="Stable" if place % 3 else "Empty")
            deployed = 2 * partitions * np.floor((times - times[0]) / 3600 + 0.1 * place)  # once an hour
            for kind, count in (("members", deployed), ("metadata" if place % 2 == 0 else "unfinished", 3)):
                page.add("segtail_group_rebalances_total", count, group=group, kind=kind)
            page.add("segtail_group_last_rebalance_timestamp_seconds", times - np.mod(times, 3600), group=group)
        page.add("segtail_group_use", 1, group=group, use="abandoned" if group == "click-archive" else "in_use")
        if late.any():
            _late_partition(page, seconds, rate, clock, **of, partition=partitions - 1)
    looked = {"group": "console-consumer-12341", "topic": next(iter(cluster.topics))}  # somebody has looked, and gone
    page.add("segtail_group_use", 1, group=looked["group"], use="throw_away")
    for problem in ("stopped", "held"):
        page.add(f"segtail_group_{problem}_partitions", 2, **looked)
    for topic in ("__consumer_offsets", "__share_group_state"):
        page.add("segtail_group_coordinators_unread", np.where((times > END - 4200) & (times < END - 3300), 17, 0), topic=topic)
        page.add("segtail_group_records_not_understood", 0, topic=topic)
    page.add("segtail_groups_omitted", 0)
    page.add("segtail_group_late_partitions_omitted", 0)


def _late_partition(page: _Page, seconds: Values, rate: float, clock: str, **of: object) -> None:
    late = np.where(seconds > 300, seconds, np.nan)
    page.add("segtail_group_partition_committed_offset", 1_660_000, **of)
    page.add("segtail_group_partition_lag_offsets", late * rate, **of)
    page.add("segtail_group_partition_lag_records", late * rate, **of, isolation="read_committed")
    page.add("segtail_group_partition_lag_records", late * rate, **of, isolation="read_uncommitted")
    page.add("segtail_group_partition_lag_bytes", late * rate * 600, **of)
    page.add("segtail_group_partition_lag_seconds", late, **of, clock=clock)
    page.add("segtail_group_partition_loss_timestamp_seconds", page.times + 7200 - late, **of)


def _brokers(page: _Page, random: Random, cluster: Cluster) -> None:
    times = page.times
    away = (times > END - 4200) & (times < END - 3300)
    for broker in range(1, cluster.brokers + 1):
        here = away if broker == 3 else np.zeros_like(away)
        page.add("segtail_agent_up", np.where(here & (times < END - 4000), 0, 1), broker=broker, agent=f"agent-{broker}")
        page.add("segtail_broker_info", 1, broker=broker, agent=f"agent-{broker}", cluster_id="mJp4iNsYQ2Sgkq1PzQvwJg")
        page.add("segtail_broker_metadata_readable", 1, broker=broker)
        page.add("segtail_broker_fenced", np.where(here, 1, 0), broker=broker)
        for status in ("running", "starting", "stopping", "down"):
            page.add("segtail_broker_status", np.where(here, status == "down", status == "running"), broker=broker, status=status)
        page.add("segtail_broker_process_up", np.where(here, 0, 1), broker=broker)
        grown = np.where(here, np.minimum(times, END - 4200), times - random.uniform(0, 0.5))
        page.add("segtail_broker_metadata_last_append_timestamp_seconds", grown, broker=broker)
        page.add("segtail_partitions_unobserved", np.where(here, 9, np.nan), broker=broker)
        lag = np.where(here, np.maximum(4000 - (END - times), 0) * np.where(times > END - 3600, 0.3, 1), random.uniform(0.3, 1.1))
        page.add("segtail_tail_lag_seconds", lag, broker=broker)
        page.add("segtail_tail_lag_bytes", lag * 2.1e6, broker=broker)
        page.add("segtail_broker_catching_up", np.where(here, 1, 0), broker=broker)
        for reason in ("deleted", "corrupt", "agent_lost"):
            page.add(
                "segtail_skipped_bytes_total",
                np.where(here.cumsum() > 0, 3e6 if reason == "deleted" else 0, 0),
                broker=broker,
                reason=reason,
                copy="exported",
            )
        _log_dirs(page, random, cluster, broker)
        for state, count in (
            ("Empty", 2),
            ("Ongoing", 14),
            ("PrepareCommit", 1),
            ("PrepareAbort", 0),
            ("CompleteCommit", 60),
            ("CompleteAbort", 5),
        ):
            page.add("segtail_coordinator_transactions", np.floor(count * np.abs(_noise(random, times, 0.15))), broker=broker, state=state)
        page.add("segtail_coordinator_overdue_transactions", int(broker == 1), broker=broker)
    page.add("segtail_coordinator_partitions", 50)
    page.add("segtail_coordinator_partitions_readable", np.where(away & (times < END - 4000), 34, 50))


def _log_dirs(page: _Page, random: Random, cluster: Cluster, broker: int) -> None:
    times = page.times
    where = {"broker": broker, "log_dir": "/var/lib/kafka/data-1"}
    capacity = 512 * 2**30
    used = capacity * (0.55 + 0.1 * (broker % 4) + 0.01 * (cluster.times_more - 1)) + (times - END) * 1.2e6 * (broker % 4)
    page.add("segtail_log_dir_capacity_bytes", capacity, **where)
    page.add("segtail_log_dir_free_bytes", capacity - used, **where)
    days = 1 if "LogDirFillingUp" in dict(cluster.alerts) else 8
    page.add("segtail_log_dir_full_timestamp_seconds", END + 86_400.0 * days * broker, **where)
    page.add("segtail_log_dir_size_bytes", used * 0.97, **where)
    page.add("segtail_log_dir_up", 1, **where)
    page.add("segtail_log_dir_checkpoint_timestamp_seconds", times - 2, **where)
    page.add("segtail_scrub_checked_bytes_total", (times - END + 1e6) * 1e7, **where)
    page.add("segtail_scrub_pass_ratio", (times - END + 14_400) / 28_800, **where)
    page.add("segtail_scrub_pass_start_timestamp_seconds", END - 14_400, **where)
    page.add("segtail_scrub_last_pass_timestamp_seconds", END - 15_000, **where)
    page.add("segtail_scrub_corrupt_batches", np.where(times > END - 3_000, 1, 0) if broker == 2 else 0, **where)
    page.add("segtail_scrub_unreadable_files", 0, **where)
    for place, topic in enumerate(cluster.topics):
        page.add("segtail_log_dir_topic_size_bytes", used * 0.5 / (place + 1.2), **where, topic=topic)
    for kind, share in (("deleted", 0.004), ("delete", 0), ("stray", 0.001), ("future", 0), ("index", 0.006), ("metadata", 0.0005)):
        page.add("segtail_log_dir_other_bytes", used * share * np.abs(_noise(random, times, 0.02)), **where, kind=kind)


def _observer(page: _Page, cluster: Cluster) -> None:
    times = page.times
    page.add("up", 1)
    page.add("segtail_start_timestamp_seconds", np.where(times > END - 7000, END - 7000, END - 90_000))
    page.add("segtail_build_info", 1, version="0.1.0", spark_version="4.3.0", python_version="3.11.7")
    for alert, severity, job in (*((*alert, page.job) for alert in cluster.alerts), ("Other", "critical", "web")):
        page.add("ALERTS", 1, alertname=alert, alertstate="firing", severity=severity, job=job)
    page.add("ALERTS", 1, alertname="AgentDown", alertstate="pending", severity="critical")
    page.add("segtail_query_last_look_timestamp_seconds", times - 0.7, query="segtail")
    page.add("segtail_query_restarts_total", np.where(times > END - 7000, 1, 0), query="segtail")
    _histogram(
        page,
        "segtail_query_batch_duration_seconds",
        (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
        np.floor((times - END + 1e6) * 0.8),
        query="segtail",
    )
    page.add("segtail_query_pace_seconds", 15, query="segtail", reason="scrape")
    _histogram(
        page,
        "segtail_scrape_data_age_seconds",
        (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0),
        np.floor((times - END + 1e6) / 15),
        query="segtail",
    )
    for reason in ("partition_series", "topic_series"):
        page.add("segtail_series_dropped_total", 0, reason=reason)
    for name, value in (
        ("hanging_after", 900),
        ("late_after", 60),
        ("stale_after", 300),
        ("trigger", 30),
        ("group_loss_within", cluster.loss_within),
    ):
        page.add("segtail_config_threshold_seconds", value, name=name)
    page.add("scrape_samples_scraped", 3200 + 40 * np.sin(times / 900))
    page.add("scrape_duration_seconds", 0.012 + 0.002 * np.sin(times / 700))
