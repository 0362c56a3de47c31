"""All about one partition."""

from grafana_foundation_sdk.builders import dashboard

from conf.dashboards.generator.frame import BROKER, RATE, new_dashboard
from conf.dashboards.generator.late import late_transactions
from conf.dashboards.generator.parts import NEVER, Column, Query, chart, listing, single

_ONE = f'{BROKER},topic="$topic",partition="$partition"'


def partition() -> dashboard.Dashboard:
    """Every series of a partition, and of each replica where several are exported."""
    made = new_dashboard(
        "segtail-partition",
        "Partition drill-down",
        "One partition: what is written, where its offsets stand, what is open in it, what its retention does.",
        variables=("broker", "topic", "partition"),
        one=("topic", "partition"),
    )
    return _health(_retention(_transactions(_offsets(_throughput(_at_a_glance(made))))))


def _gauge(name: str) -> str:
    return f"segtail_partition_{name}{{{_ONE}}}"


def _line(name: str, legend: str) -> Query:
    return Query(f"max({_gauge(name)})", legend)


def _rate(name: str, legend: str) -> Query:
    return Query(f"sum(rate({_gauge(name + '_total')}[{RATE}]))", legend)


def _at_a_glance(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("$topic-$partition"))
        .with_panel(
            single(
                "Leader",
                f"max({_gauge('leader_id')})",
                unit="short",
                told="The broker that leads, watched or not; -1 is nobody.",
                legend="broker",
                none="unknown",
                trend=False,
            )
        )
        .with_panel(
            single(
                "In sync",
                f"max({_gauge('in_sync_replicas')}) / max({_gauge('replicas')})",
                unit="percentunit",
                told="Share of the replicas that are in sync, by the metadata log.",
                decimals=0,
            )
        )
        .with_panel(
            single("Size", f"max({_gauge('size_bytes')})", unit="bytes", told="All segments, the active one included, without indexes.")
        )
        .with_panel(
            single(
                "Last append",
                f"time() - max({_gauge('last_append_timestamp_seconds')})",
                unit="s",
                told="How long ago the log was last seen to grow.",
                runbook="PartitionSilent",
                trend=False,
            )
        )
        .with_panel(
            single(
                "Oldest open",
                f"time() - min({_gauge('oldest_open_transaction_start_timestamp_seconds')})",
                unit="s",
                told="Age of the open transaction with the lowest first offset.",
                steps=((300, "orange"), (900, "red")),
                runbook="TransactionStuck",
            )
        )
        .with_panel(
            single(
                "Hanging",
                f"max({_gauge('hanging_transactions')})",
                unit="short",
                told="Open transactions that no coordinator will end.",
                steps=NEVER,
                runbook="TransactionHanging",
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Oldest record",
                f"time() - min({_gauge('oldest_record_timestamp_seconds')})",
                unit="s",
                told="Age of the first record that can be read.",
                trend=False,
            )
        )
        .with_panel(
            single(
                "Next deletion in",
                f"min({_gauge('next_deletion_timestamp_seconds')}) - time()",
                unit="s",
                told="When the first segment becomes deletable; Kafka deletes it at its next check behind that.",
                trend=False,
            )
        )
        .with_panel(
            listing(
                "What it is",
                f"segtail_partition_info{{{_ONE}}}",
                (
                    Column(of="broker", head="broker", width=90),
                    Column(of="topic_id", head="topic id"),
                    Column(of="cleanup_policy", head="cleanup.policy"),
                    Column(of="limit_source", head="limits come from"),
                ),
                unit="short",
                told="limits come from: the topic's own configuration, the broker's (dynamic, static), or assumed, where "
                "server.properties was not "
                "given and Kafka's default stands in.",
                runbook="ObserverConfigAssumed",
                height=4,
            )
        )
    )


def _throughput(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("Throughput"))
        .with_panel(chart("Bytes", _rate("appended_bytes", "appended"), unit="Bps", told="Control batches included.", width=8))
        .with_panel(
            chart(
                "Records and batches",
                _rate("appended_records", "records"),
                _rate("appended_batches", "batches"),
                _rate("old_format_batches", "batches of an old format"),
                unit="count:/s",
                told="Data alone: transaction markers are not counted. Batches of message format 0 or 1 have to be converted for newer "
                "readers.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Mean size of a batch",
                Query(
                    f"sum(rate({_gauge('appended_bytes_total')}[{RATE}])) / sum(rate({_gauge('appended_batches_total')}[{RATE}]))",
                    "a batch",
                ),
                Query(
                    f"sum(rate({_gauge('appended_bytes_total')}[{RATE}])) / sum(rate({_gauge('appended_records_total')}[{RATE}]))",
                    "a record",
                ),
                unit="bytes",
                told="Bytes appended for each batch and for each record, as compressed.",
                width=8,
            )
        )
    )


def _offsets(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("Offsets and replicas"))
        .with_panel(
            chart(
                "Offsets",
                _line("log_end_offset", "log end"),
                _line("high_watermark", "high watermark"),
                _line("last_stable_offset", "last stable"),
                _line("log_start_offset", "log start"),
                unit="none",
                told="Readers see up to the high watermark, readers of committed records up to the last stable offset.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Behind the log's end",
                Query(f"max({_gauge('log_end_offset')} - {_gauge('high_watermark')})", "not replicated yet"),
                _line("last_stable_offset_lag", "not stable yet"),
                # only a replica that is behind has a lag
                Query(f"max({_gauge('replica_lag_offsets')}) or 0 * max({_gauge('replicas')})", "replica furthest behind"),
                unit="short",
                told="Offsets between the log's end and the high watermark, between that and the last stable offset, and the lag of "
                "observed followers.",
                runbook="LastStableOffsetStalled",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Replicas",
                _line("replicas", "replicas"),
                _line("in_sync_replicas", "in sync"),
                _line("min_in_sync_replicas", "min.insync.replicas"),
                _line("leader_epoch", "leader epoch"),
                unit="none",
                told="From the metadata log. A new leader epoch is an election.",
                runbook="UnderReplicated",
                width=8,
            )
        )
    )


def _transactions(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("Transactions"))
        .with_panel(
            chart(
                "Open",
                _line("open_transactions", "open"),
                _line("hanging_transactions", "hanging"),
                _line("active_producers", "producer ids with state"),
                unit="none",
                told="Transactions with data and no marker yet, those of them that no coordinator will end, and the producers that the log "
                "keeps state of.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Age of the oldest open",
                Query(f"time() - min({_gauge('oldest_open_transaction_start_timestamp_seconds')})", "since its start"),
                Query(
                    f"time() - min({_gauge('oldest_open_transaction_last_append_timestamp_seconds')})", "since its producer's last append"
                ),
                unit="s",
                told="Silent for long and open for long: its producer is gone. Open for long and not silent: it is slow.",
                runbook="TransactionStuck",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Ended",
                _rate("committed_transactions", "committed"),
                _rate("aborted_transactions", "aborted"),
                _rate("empty_transaction_markers", "markers that closed nothing"),
                unit="count:/s",
                told="Markers a second.",
                runbook="AbortRatioHigh",
                width=8,
            )
        )
        .with_panel(late_transactions(_ONE, rows=20, height=6))
    )


def _retention(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("Retention and compaction"))
        .with_panel(
            chart(
                "Size against its limit",
                _line("size_bytes", "log"),
                _line("active_segment_size_bytes", "active segment"),
                _line("retention_reclaimable_bytes", "reclaimable"),
                _line("retention_limit_bytes", "retention.bytes"),
                unit="bytes",
                told="Kafka deletes a segment when the log without it would still hold retention.bytes. Without that limit its line is "
                "missing.",
                runbook="RetentionOverdue",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Age against its limit",
                Query(f"time() - min({_gauge('oldest_record_timestamp_seconds')})", "oldest record"),
                Query(f"time() - min({_gauge('active_segment_first_timestamp_seconds')})", "active segment"),
                _line("retention_limit_seconds", "retention.ms"),
                _line("segment_limit_seconds", "segment.ms"),
                unit="s",
                told="A segment goes when its newest record is past retention.ms, so the oldest record outlives it by the time that its "
                "segment was active.",
                runbook="ActiveSegmentTooOld",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Past its limit",
                _line("retention_lag_seconds", "retention lag"),
                _line("retention_overdue_seconds", "overdue"),
                _line("max_timestamp_ahead_seconds", "timestamps in the future"),
                unit="s",
                told="Overdue counts from when the first segment may be deleted; up to one check interval of the broker is normal.",
                runbook="RetentionOverdue",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Compaction",
                _line("dirty_bytes", "dirty"),
                Query(f"sum by (reason) ({_gauge('uncleanable_bytes')})", "not cleanable: {{reason}}"),
                unit="bytes",
                told="Of a compacted topic: what the cleaner has still to go through, and what it must not touch yet.",
                runbook="CompactionStalled",
                width=12,
            )
        )
        .with_panel(
            chart(
                "Dirty ratio",
                _line("dirty_ratio", "dirty / (clean + dirty)"),
                unit="percentunit",
                told="Kafka cleans above min.cleanable.dirty.ratio, 50 % unless set.",
                runbook="CompactionStalled",
                width=12,
                most=1,
            )
        )
    )


def _health(made: dashboard.Dashboard) -> dashboard.Dashboard:
    def happened(name: str, legend: str) -> Query:
        return Query(f"sum(increase({_gauge(name + '_total')}[{RATE}]))", legend)

    return (
        made.with_row(dashboard.Row("What befell the log"))
        .with_panel(
            chart(
                "Segments",
                _line("segments", "segments"),
                happened("segments_rolled", "rolled"),
                happened("segments_deleted", "deleted"),
                unit="short",
                told="How many there are, and how many came and went.",
            )
        )
        .with_panel(
            chart(
                "Faults",
                happened("truncations", "truncations"),
                happened("corrupt_batches", "corrupt batches"),
                happened("sequence_gaps", "sequence gaps"),
                unit="short",
                told="Truncations of the log, batches that Kafka cannot have written, and producers whose sequence skips.",
                steps=((1, "red"),),
                runbook="LogTruncated",
            )
        )
    )
