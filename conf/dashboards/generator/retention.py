"""Why a disk is as full as it is, what retention leaves behind, and what compaction waits for."""

from grafana_foundation_sdk.builders import dashboard

from conf.dashboards.generator.frame import (
    BROKER,
    PARTITION,
    RATE,
    ROW_TO_PARTITION,
    ROWS,
    TOP,
    TOPIC,
    largest_gauges,
    largest_rates,
    longest_ago,
    new_dashboard,
)
from conf.dashboards.generator.parts import NEVER, Column, Query, bars, chart, listing, single


def retention() -> dashboard.Dashboard:
    """Disks first, then what should be gone from them and is not."""
    made = new_dashboard(
        "segtail-retention",
        "Retention and disk",
        "Disks and who fills them, data that outlives its limit and why, compaction.",
        variables=("broker", "topic", "partition"),
    )
    return _replicas(_logs(_compaction(_overdue(_disks(_at_a_glance(made))))))


def _at_a_glance(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("At a glance"))
        .with_panel(
            single(
                "Fullest log dir",
                f"1 - min(segtail_log_dir_free_bytes{{{BROKER}}} / segtail_log_dir_capacity_bytes{{{BROKER}}})",
                unit="percentunit",
                told="Used share of the file system that is nearest to full.",
                steps=((0.8, "orange"), (0.9, "red")),
                runbook="LogDirFillingUp",
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Full in",
                f"min(segtail_log_dir_free_bytes{{{BROKER}}} / -(deriv(segtail_log_dir_free_bytes{{{BROKER}}}[1h]) < 0))",
                unit="s",
                told="When the first file system is full if the last hour goes on. Daily ups and downs are not looked through.",
                none="not filling",
                runbook="LogDirFillingUp",
                trend=False,
            )
        )
        .with_panel(
            single(
                "Dirs offline",
                f"count(segtail_log_dir_up{{{BROKER}}} == 0) or (0 * count(segtail_log_dir_up{{{BROKER}}}))",
                unit="short",
                told="Log dirs that cannot be read, or that their broker has taken offline.",
                steps=NEVER,
                runbook="LogDirOffline",
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Logs",
                f"sum(segtail_log_dir_size_bytes{{{BROKER}}})",
                unit="bytes",
                told="What all partitions hold on all watched disks, every replica counted.",
            )
        )
        .with_panel(
            single(
                "Reclaimable",
                f"sum(segtail_partition_retention_reclaimable_bytes{{{PARTITION}}})",
                unit="bytes",
                told="Bytes that Kafka would delete at a check made now. Checks come every 5 minutes (log.retention.check.interval.ms).",
                runbook="RetentionOverdue",
            )
        )
        .with_panel(
            single(
                "Longest overdue",
                f"max(segtail_partition_retention_overdue_seconds{{{PARTITION}}})",
                unit="s",
                told="For how long a segment that may be deleted is still there. Up to one check interval is normal.",
                steps=((600, "orange"), (1800, "red")),
                runbook="RetentionOverdue",
            )
        )
        .with_panel(
            single(
                "Blocked",
                f'count(segtail_partition_retention_blocked{{{PARTITION},reason!="active_segment"}})',
                unit="short",
                told="Partitions with data past its limit that retention does not delete. Those that wait for their active segment to "
                "roll are "
                "not counted: that is how Kafka works.",
                steps=((1, "orange"),),
                runbook="RetentionBlocked",
                decimals=0,
            )
        )
        .with_panel(
            single(
                "In the future",
                f"max(segtail_partition_max_timestamp_ahead_seconds{{{PARTITION}}})",
                unit="s",
                told="How far the largest record timestamp lies ahead of the clock. Retention waits until that time is past its limit.",
                steps=((3600, "orange"), (86400, "red")),
                runbook="TimestampsInFuture",
            )
        )
    )


def _disks(made: dashboard.Dashboard) -> dashboard.Dashboard:
    used = "1 - segtail_log_dir_free_bytes{%s} / segtail_log_dir_capacity_bytes{%s}"
    sizes = f"segtail_log_dir_topic_size_bytes{{{TOPIC}}}"
    return (
        made.with_row(dashboard.Row("Disks, and what fills them"))
        .with_panel(
            chart(
                f"Used share of the file system, the {TOP} fullest",
                Query(
                    f"{used % (BROKER, BROKER)} and topk({TOP}, 1 - segtail_log_dir_free_bytes{{{BROKER}}} @ end()"
                    f" / segtail_log_dir_capacity_bytes{{{BROKER}}} @ end())",
                    "{{broker}} {{log_dir}}",
                ),
                unit="percentunit",
                told="By broker and log dir.",
                steps=((0.9, "red"),),
                runbook="LogDirFillingUp",
                most=1,
            )
        )
        .with_panel(
            chart(
                f"Size by topic, the {TOP} largest",
                Query(f"sum by (topic) ({sizes}) and topk({TOP}, sum by (topic) ({sizes} @ end()))", "{{topic}}"),
                unit="bytes",
                told="What a topic holds on all watched disks, every replica counted.",
                stacked=True,
            )
        )
        .with_panel(
            bars(
                f"Topics by disk, the {TOP} largest",
                Query(f"topk({TOP}, {sizes})", "{{topic}} on {{broker}} {{log_dir}}"),
                unit="bytes",
                told="Why this disk is full: every replica in the log dir, whether it leads or not.",
                width=16,
            )
        )
        .with_panel(
            chart(
                "Beside the logs",
                Query(f"sum by (kind) (segtail_log_dir_other_bytes{{{BROKER}}})", "{{kind}}"),
                unit="bytes",
                told="What else lies in the log dirs: indexes, the metadata log, segments marked .deleted, partitions on their way out "
                "(delete), moved (future) or left over (stray).",
                width=8,
                stacked=True,
            )
        )
    )


def _overdue(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("What outlives its limit"))
        .with_panel(
            chart(
                f"Overdue by topic, the {TOP} longest",
                Query(largest_gauges("segtail_partition_retention_overdue_seconds", PARTITION), "{{topic}}"),
                unit="s",
                told="For how long a segment that may be deleted is still there, in the worst partition of a topic.",
                steps=((1800, "red"),),
                runbook="RetentionOverdue",
            )
        )
        .with_panel(
            chart(
                f"Reclaimable by topic, the {TOP} largest",
                Query(largest_gauges("segtail_partition_retention_reclaimable_bytes", PARTITION, how="sum"), "{{topic}}"),
                unit="bytes",
                told="Bytes that Kafka would delete at a check made now: it rises to a check and falls to 0 there.",
                runbook="RetentionOverdue",
                stacked=True,
            )
        )
        .with_panel(
            chart(
                f"Retention lag by topic, the {TOP} longest",
                Query(largest_gauges("segtail_partition_retention_lag_seconds", PARTITION), "{{topic}}"),
                unit="s",
                told="How far the oldest record has outlived its limit. A segment goes as a whole and only when it is closed, so up to "
                "the time "
                "that a segment stays active is no fault.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Blocked partitions by reason",
                Query(f"count by (reason) (segtail_partition_retention_blocked{{{PARTITION}}})", "{{reason}}"),
                unit="short",
                told="Why data past its limit stays: only the first reason of a partition counts.",
                runbook="RetentionBlocked",
                width=8,
                stacked=True,
            )
        )
        .with_panel(
            chart(
                f"Timestamps in the future, the {TOP} furthest",
                Query(largest_gauges("segtail_partition_max_timestamp_ahead_seconds", PARTITION), "{{topic}}"),
                unit="s",
                told="How far the largest record timestamp lies ahead of the clock, in the worst partition of a topic.",
                runbook="TimestampsInFuture",
                width=8,
            )
        )
        .with_panel(
            listing(
                "Partitions that are blocked, the longest behind first",
                f"topk({ROWS}, max by (broker, topic, partition) (segtail_partition_retention_lag_seconds{{{PARTITION}}})"
                " * on (broker, topic, partition) group_right ()"
                f" max by (broker, topic, partition, reason) (segtail_partition_retention_blocked{{{PARTITION}}}))",
                (
                    Column(of="Value", head="past its limit by", width=150),
                    Column(of="reason", head="blocked by"),
                    Column(of="topic", head="topic", link=ROW_TO_PARTITION),
                    Column(of="partition", head="partition", link=ROW_TO_PARTITION, width=100),
                    Column(of="broker", head="broker", width=90),
                ),
                unit="s",
                told="future_timestamp: the first segment's largest timestamp is still to come. high_watermark: it is not replicated to "
                "its end. "
                "remote_copy: it waits to be copied. head_of_line: a later segment is past the limit, the first is not. active_segment: "
                "the old "
                "records lie in a segment that still grows.",
                runbook="RetentionBlocked",
            )
        )
    )


def _compaction(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("Compaction"))
        .with_panel(
            chart(
                f"Dirty ratio by topic, the {TOP} largest",
                Query(largest_gauges("segtail_partition_dirty_ratio", PARTITION), "{{topic}}"),
                unit="percentunit",
                told="Share of a compacted log that has not been compacted, in the worst partition. Kafka cleans above "
                "min.cleanable.dirty.ratio, 50 % unless set.",
                runbook="CompactionStalled",
                width=8,
                most=1,
            )
        )
        .with_panel(
            chart(
                f"Dirty bytes by topic, the {TOP} largest",
                Query(largest_gauges("segtail_partition_dirty_bytes", PARTITION, how="sum"), "{{topic}}"),
                unit="bytes",
                told="Bytes that the cleaner has still to go through.",
                runbook="CompactionStalled",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Not cleanable yet, by reason",
                Query(f"sum by (reason) (segtail_partition_uncleanable_bytes{{{PARTITION}}})", "{{reason}}"),
                unit="bytes",
                told="Bytes that the cleaner must not touch: behind an open transaction, or younger than min.compaction.lag.ms.",
                width=8,
                stacked=True,
            )
        )
    )


def _logs(made: dashboard.Dashboard) -> dashboard.Dashboard:
    def happened(name: str) -> str:
        return f"sum(increase(segtail_partition_{name}_total{{{PARTITION}}}[{RATE}]))"

    return (
        made.with_row(dashboard.Row("Segments and log health"))
        .with_panel(
            chart(
                f"Segments by topic, the {TOP} with most",
                Query(largest_gauges("segtail_partition_segments", PARTITION, how="sum"), "{{topic}}"),
                unit="short",
                told="Each segment takes open files and memory maps of its broker.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Segments rolled and deleted",
                Query(happened("segments_rolled"), "rolled"),
                Query(happened("segments_deleted"), "deleted"),
                unit="short",
                told="In the long run as many go as come; many that roll with few bytes hint at a short segment.ms.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Truncations and corrupt batches",
                Query(happened("truncations"), "truncations"),
                Query(happened("corrupt_batches"), "corrupt batches"),
                unit="short",
                told="A follower truncates what a new leader does not have; what a leader had acknowledged must not be among it. A "
                "corrupt batch "
                "is one that Kafka cannot have written.",
                steps=((1, "red"),),
                runbook="LogCorrupt",
                width=8,
            )
        )
        .with_panel(
            chart(
                f"Damage found by the scrub, the {TOP // 2} worst",
                Query(
                    largest_gauges("segtail_scrub_corrupt_batches", BROKER, how="sum", by="broker, log_dir", count=TOP // 2),
                    "damaged batches {{broker}} {{log_dir}}",
                ),
                Query(
                    largest_gauges("segtail_scrub_unreadable_files", BROKER, how="sum", by="broker, log_dir", count=TOP // 2),
                    "unreadable files {{broker}} {{log_dir}}",
                ),
                unit="short",
                told="Damaged batches and unreadable files in closed segments of all replicas, as they are known now. Nothing is shown "
                "where the scrub is off.",
                steps=((1, "red"),),
                runbook="ScrubCorrupt",
                width=8,
            )
        )
        .with_panel(
            chart(
                f"Age of the scrub's last full pass, the {TOP} oldest",
                Query(longest_ago("segtail_scrub_last_pass_timestamp_seconds", BROKER, "broker, log_dir"), "{{broker}} {{log_dir}}"),
                unit="s",
                told="Every closed segment of the log dir was checked within this time.",
                runbook="ScrubOverdue",
                width=8,
            )
        )
        .with_panel(
            chart(
                f"Checked by the scrub, the {TOP} most",
                Query(largest_rates("segtail_scrub_checked_bytes_total", BROKER, "broker"), "{{broker}}"),
                unit="Bps",
                told="Bytes of closed segments that the scrub checks in a second; it rests between passes.",
                runbook="ScrubOverdue",
                width=8,
            )
        )
    )


def _replicas(made: dashboard.Dashboard) -> dashboard.Dashboard:
    def count(name: str) -> str:
        return f"count(segtail_replica_{name}{{{PARTITION}}}) or (0 * count(segtail_log_dir_up{{{BROKER}}}))"

    return (
        made.with_row(dashboard.Row("Replicas, leaders or not"))
        .with_panel(
            chart(
                "Replicas with something wrong",
                Query(count("corrupt_batches"), "damaged"),
                Query(count("truncated_committed_offsets_total"), "cut off below the high watermark"),
                Query(count("retention_overdue_seconds"), "overdue"),
                Query(count("dirty_ratio"), "not compacted"),
                Query(f"sum(segtail_replicas_omitted) or (0 * count(segtail_log_dir_up{{{BROKER}}}))", "not named, beyond 1,000"),
                unit="short",
                told="Each broker deletes and compacts its own replicas, and a damaged one may come to lead. Told of followers too, "
                "whatever replicas and series_limit leave out.",
                steps=((1, "red"),),
                runbook="ReplicaCorrupt",
                width=8,
            )
        )
        .with_panel(
            listing(
                "Damaged replicas, the worst first",
                f"topk({ROWS}, max by (broker, topic, partition, role, found_by) (segtail_replica_corrupt_batches{{{PARTITION}}}))",
                (
                    Column(of="Value", head="damaged places", width=130),
                    Column(of="topic", head="topic", link=ROW_TO_PARTITION),
                    Column(of="partition", head="partition", link=ROW_TO_PARTITION, width=100),
                    Column(of="broker", head="broker", width=90),
                    Column(of="role", head="role", width=100),
                    Column(of="found_by", head="found by", width=100),
                ),
                unit="short",
                told="Places that are no batch: met by the tail, ever since, or found by the scrub in closed segments, as they are now.",
                runbook="ReplicaCorrupt",
                width=16,
            )
        )
    )
