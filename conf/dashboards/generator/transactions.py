"""Which transactions are open, who holds readers up, and what ends badly."""

from grafana_foundation_sdk.builders import dashboard

from conf.dashboards.generator.frame import BROKER, PARTITION, TOP, TOPIC, largest_gauges, largest_rates, new_dashboard, oldest_ages, rate
from conf.dashboards.generator.late import late_transactions
from conf.dashboards.generator.parts import NEVER, Query, chart, single

_COMMITTED = "segtail_partition_committed_transactions_total"
_ABORTED = "segtail_partition_aborted_transactions_total"
_OLDEST = "segtail_partition_oldest_open_transaction_start_timestamp_seconds"


def transactions() -> dashboard.Dashboard:
    """From the question whether anything hangs down to the producers that are late."""
    made = new_dashboard(
        "segtail-transactions",
        "Transactions",
        "Open, late and hanging transactions, who holds the last stable offset, and how transactions end.",
        variables=("broker", "topic", "partition"),
    )
    return _ends(_held_up(_at_a_glance(made)))


def _at_a_glance(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("At a glance"))
        .with_panel(
            single(
                "Hanging",
                f"sum(segtail_partition_hanging_transactions{{{PARTITION}}})",
                unit="short",
                told="Open transactions that no coordinator will end. They do not end by themselves.",
                steps=NEVER,
                runbook="TransactionHanging",
                width=3,
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Stuck",
                f"sum(segtail_partition_stuck_transactions{{{PARTITION}}})",
                unit="short",
                told="Open transactions whose producers have been silent for longer than stuck_after, and that are not hanging, overdue "
                "or in two-phase commit.",
                steps=NEVER,
                runbook="TransactionStuck",
                width=3,
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Overdue",
                "sum(segtail_coordinator_overdue_transactions)",
                unit="short",
                told="Transactions that a coordinator should have aborted by now.",
                steps=NEVER,
                runbook="TransactionOverdue",
                none="no such topic",
                width=3,
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Oldest open",
                f"time() - min({_OLDEST}{{{PARTITION}}})",
                unit="s",
                told="Age of the transaction that is open for longest.",
                steps=((300, "orange"), (900, "red")),
                runbook="TransactionStuck",
                width=3,
            )
        )
        .with_panel(
            single(
                "Open",
                f"sum(segtail_partition_open_transactions{{{PARTITION}}})",
                unit="short",
                told="Transactions with data and no marker yet, counted on every partition that they have written to.",
                width=3,
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Late",
                f"count(segtail_late_transaction_start_timestamp_seconds{{{PARTITION}}})",
                unit="short",
                told="Transactions that are open for longer than late_after, as listed below.",
                steps=((1, "orange"),),
                width=3,
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Aborted",
                f"{rate(_ABORTED, PARTITION)} / ({rate(_ABORTED, PARTITION)} + {rate(_COMMITTED, PARTITION)})",
                unit="percentunit",
                told="Share of the transactions that ended aborted.",
                steps=((0.1, "orange"), (0.2, "red")),
                runbook="AbortRatioHigh",
                width=3,
            )
        )
        .with_panel(
            single(
                "State readable",
                "max(segtail_coordinator_partitions_readable) / max(segtail_coordinator_partitions)",
                unit="percentunit",
                told="Share of the partitions of __transaction_state that were read to their ends from a current replica. Below 100 % no "
                "open transaction can be called hanging: its verdict is unknown.",
                none="no such topic",
                width=3,
                decimals=0,
            )
        )
        .with_panel(late_transactions(PARTITION))
    )


def _held_up(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("Who holds readers up"))
        .with_panel(
            chart(
                f"Oldest open transaction by topic, the {TOP} oldest",
                Query(oldest_ages(_OLDEST, PARTITION), "{{topic}}"),
                unit="s",
                told="Age of the oldest open transaction of a topic. A saw-tooth is transactions that come and go; a straight line is "
                "one that stays.",
                steps=((900, "red"),),
                runbook="TransactionStuck",
            )
        )
        .with_panel(
            chart(
                f"Open transactions by topic, the {TOP} with most",
                Query(largest_gauges("segtail_partition_open_transactions", PARTITION, how="sum"), "{{topic}}"),
                unit="short",
                told="Transactions with data and no marker yet.",
            )
        )
        .with_panel(
            chart(
                f"Last stable offset lag, the {TOP} largest",
                Query(
                    largest_gauges("segtail_partition_last_stable_offset_lag", PARTITION, by="topic, partition"), "{{topic}}-{{partition}}"
                ),
                unit="short",
                told="High watermark - last stable offset: offsets that readers of committed records cannot see yet.",
                runbook="LastStableOffsetStalled",
            )
        )
        .with_panel(
            chart(
                f"Last stable offset lag in bytes, the {TOP} largest",
                Query(
                    largest_gauges("segtail_partition_last_stable_offset_lag_bytes", PARTITION, by="topic, partition"),
                    "{{topic}}-{{partition}}",
                ),
                unit="bytes",
                told="Bytes of log between the last stable offset and the high watermark: what readers have to catch up with once it "
                "moves.",
                runbook="LastStableOffsetStalled",
            )
        )
    )


def _ends(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("How transactions end"))
        .with_panel(
            chart(
                "Ended transactions",
                Query(rate(_COMMITTED, PARTITION), "committed"),
                Query(rate(_ABORTED, PARTITION), "aborted"),
                Query(rate("segtail_partition_empty_transaction_markers_total", PARTITION), "markers that closed nothing"),
                unit="count:/s",
                told="Markers a second, counted on every partition. One that closes nothing is harmless: the producer had added the "
                "partition and "
                "not written to it.",
                width=8,
            )
        )
        .with_panel(
            chart(
                f"Aborted share by topic, the {TOP} largest",
                Query(_abort_ratio(), "{{topic}}"),
                unit="percentunit",
                told="Share of the transactions that ended aborted, by topic.",
                steps=((0.2, "red"),),
                runbook="AbortRatioHigh",
                width=8,
                most=1,
            )
        )
        .with_panel(
            chart(
                f"Aborted bytes by topic, the {TOP} largest",
                Query(largest_rates("segtail_partition_aborted_bytes_total", PARTITION), "{{topic}}"),
                unit="Bps",
                told="Bytes of data that ended aborted: written, replicated, and read by nobody who reads committed records.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "From start to marker",
                *(
                    Query(
                        f"histogram_quantile({quantile}, {rate('segtail_topic_transaction_duration_seconds_bucket', TOPIC, 'le')})",
                        f"{quantile:.0%} are shorter",
                    )
                    for quantile in (0.5, 0.9, 0.99)
                ),
                unit="s",
                told="Duration of the transactions that ended, committed or aborted.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Coordinators' entries by state",
                Query(f"sum by (state) (segtail_coordinator_transactions{{{BROKER}}})", "{{state}}"),
                unit="short",
                told="Entries of __transaction_state. Ongoing ones are in use; PrepareCommit and PrepareAbort last for moments when all "
                "is well.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Producers",
                Query(f"sum(segtail_partition_active_producers{{{PARTITION}}})", "producer ids with state"),
                Query(f"sum(increase(segtail_partition_sequence_gaps_total{{{PARTITION}}}[$__rate_interval]))", "sequence gaps"),
                unit="short",
                told="Producer ids that the logs keep state of, a sum over partitions, and batches whose sequence does not follow the one "
                "before in the same epoch.",
                width=8,
            )
        )
    )


def _abort_ratio() -> str:
    aborted, committed = rate(_ABORTED, PARTITION, "topic"), rate(_COMMITTED, PARTITION, "topic")
    ranked = f"sum by (topic) (rate({_ABORTED}{{{PARTITION}}}[1h] @ end()))"
    return f"({aborted} / ({aborted} + {committed})) and topk({TOP}, {ranked})"
