"""Is all well, and where to look next."""

from grafana_foundation_sdk.builders import dashboard

from conf.dashboards.generator.frame import (
    BROKER,
    ROW_TO_PARTITION,
    TO_PARTITION,
    TOP,
    TOPIC,
    largest_gauges,
    largest_rates,
    new_dashboard,
    rate,
)
from conf.dashboards.generator.parts import NEVER, Column, Query, bars, chart, listing, single


def overview() -> dashboard.Dashboard:
    """Throughput of the cluster, and a line for each thing that may be wrong with it."""
    made = new_dashboard(
        "segtail-overview", "Overview", "What is written to the cluster, and what needs a look.", variables=("broker", "topic")
    )
    return _problems(_throughput(_at_a_glance(made)))


def _at_a_glance(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("At a glance"))
        .with_panel(
            single(
                "Appended",
                rate("segtail_partition_appended_bytes_total", TOPIC),
                unit="Bps",
                told="Bytes appended to the logs of partition leaders, control batches included. A replica's copy is not counted again.",
            )
        )
        .with_panel(
            single(
                "Records",
                rate("segtail_partition_appended_records_total", TOPIC),
                unit="count:/s",
                told="Data records appended a second.",
            )
        )
        .with_panel(
            single(
                "Partitions",
                f"count(segtail_partition_log_end_offset{{{TOPIC}}})",
                unit="short",
                told="Partitions that are exported, one replica of each.",
                decimals=0,
                trend=False,
            )
        )
        .with_panel(
            single(
                "Hanging",
                f"sum(segtail_partition_hanging_transactions{{{TOPIC}}})",
                unit="short",
                told="Open transactions that no coordinator will end. Readers of committed records stand still behind them.",
                steps=NEVER,
                runbook="TransactionHanging",
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Oldest open",
                f"time() - min(segtail_partition_oldest_open_transaction_start_timestamp_seconds{{{TOPIC}}})",
                unit="s",
                told="Age of the transaction that is open for longest.",
                steps=((300, "orange"), (900, "red")),
                runbook="TransactionStuck",
            )
        )
        .with_panel(
            single(
                "Under min ISR",
                _counted("under_min_isr"),
                unit="short",
                told="Partitions that take no write with acks=all, because too few replicas are in sync.",
                steps=NEVER,
                runbook="UnderMinIsr",
                decimals=0,
            )
        )
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
                "Observer's lag",
                f"max(segtail_tail_lag_seconds{{{BROKER}}})",
                unit="s",
                told="How far these figures are behind the disks. While it is more than a few seconds, rates are backlog and not traffic.",
                steps=((30, "orange"), (120, "red")),
                runbook="ObserverLagging",
            )
        )
    )


def _throughput(made: dashboard.Dashboard) -> dashboard.Dashboard:
    size, records = "segtail_partition_appended_bytes_total", "segtail_partition_appended_records_total"
    return (
        made.with_row(dashboard.Row("Throughput"))
        .with_panel(
            chart(
                f"Bytes by topic, the {TOP} largest",
                Query(largest_rates(size, TOPIC), "{{topic}}"),
                unit="Bps",
                told=f"Bytes appended a second to the {TOP} topics that took most in the last hour shown.",
                stacked=True,
            )
        )
        .with_panel(
            chart(
                f"Records by topic, the {TOP} largest",
                Query(largest_rates(records, TOPIC), "{{topic}}"),
                unit="count:/s",
                told=f"Records appended a second to the {TOP} topics that took most in the last hour shown.",
                stacked=True,
            )
        )
        .with_panel(
            chart(
                "Bytes by broker",
                Query(largest_rates(size, TOPIC, "broker"), "broker {{broker}}"),
                unit="Bps",
                told="Bytes appended a second to the partitions that a broker leads. Lines far apart: leaders are not spread evenly.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Bytes by codec",
                Query(rate("segtail_topic_codec_bytes_total", TOPIC, "codec"), "{{codec}}"),
                unit="Bps",
                told="Bytes of data batches by the codec that they are compressed with. Much of none is disk and network that could be "
                "saved.",
                width=8,
                stacked=True,
            )
        )
        .with_panel(
            chart(
                "Size of batches",
                *(
                    Query(
                        f"histogram_quantile({quantile}, {rate('segtail_topic_batch_size_bytes_bucket', TOPIC, 'le')})",
                        f"{quantile:.0%} are smaller",
                    )
                    for quantile in (0.5, 0.9, 0.99)
                ),
                unit="bytes",
                told="Size of data batches on disk. Small batches cost brokers and readers more than their bytes do: linger.ms and "
                "batch.size "
                "of the producers decide.",
                width=8,
            )
        )
    )


def _problems(made: dashboard.Dashboard) -> dashboard.Dashboard:
    busiest = f"sum by (topic, partition) (rate(segtail_partition_appended_bytes_total{{{TOPIC}}}[$__rate_interval]))"
    return (
        made.with_row(dashboard.Row("What needs a look"))
        .with_panel(
            bars(
                f"Busiest partitions, the first {TOP}",
                Query(f"topk({TOP}, {busiest})", "{{topic}}-{{partition}}"),
                unit="Bps",
                told="Bytes appended a second. One partition far above the others of its topic: a key that is too common.",
                runbook="HotPartition",
                width=8,
                link=TO_PARTITION,
            )
        )
        .with_panel(
            chart(
                f"Last stable offset lag, the {TOP} largest",
                Query(largest_gauges("segtail_partition_last_stable_offset_lag", TOPIC), "{{topic}}"),
                unit="short",
                told="High watermark - last stable offset: offsets that readers of committed records cannot see yet, in the worst "
                "partition of each topic. A line that only "
                "grows is a transaction that does not end.",
                runbook="LastStableOffsetStalled",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Partitions short of replicas",
                Query(_counted("under_replicated"), "fewer in sync than there are"),
                Query(_counted("under_min_isr"), "fewer in sync than min.insync.replicas"),
                Query(_counted("offline"), "without a leader"),
                unit="short",
                told="All partitions of the cluster, whoever watches their brokers. After a broker's restart it falls back to 0 by itself. "
                "Below min.insync.replicas writes with acks=all fail; without a leader nobody writes or reads.",
                steps=((1, "orange"),),
                runbook="UnderReplicated",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Reassignments: bytes left to copy",
                Query(
                    'sum by (broker) (segtail_partition_reassignment_remaining_bytes{topic=~"$topic"}) '
                    'or 0 * sum(segtail_topic_partitions{topic=~"$topic"})',
                    "to broker {{broker}}",
                ),
                unit="bytes",
                told="What brokers to which partitions are reassigned have not copied yet. A line that stays flat is a throttle that is "
                "too low, or a replica that does not fetch.",
                runbook="UnderReplicated",
                width=12,
            )
        )
        .with_panel(
            chart(
                "Records lost by unclean elections",
                Query(
                    'sum(segtail_partition_unclean_lost_offsets_total{topic=~"$topic",bound="acknowledged"}) '
                    'or 0 * sum(segtail_topic_partitions{topic=~"$topic"})',
                    "acknowledged, at least",
                ),
                Query(
                    'sum(segtail_partition_unclean_lost_offsets_total{topic=~"$topic",bound="upper"}) '
                    'or 0 * sum(segtail_topic_partitions{topic=~"$topic"})',
                    "in all, at most",
                ),
                unit="short",
                told="Offsets that a new leader lacked, summed up since segtail counts. It steps up with each unclean election of which "
                "the old leader's log was seen.",
                steps=((1, "red"),),
                runbook="UncleanElection",
                width=12,
            )
        )
        .with_panel(
            listing(
                "Data that stays past its limit",
                f'topk({5 * TOP}, segtail_partition_retention_blocked{{{TOPIC},reason!="active_segment"}})',
                (
                    Column(of="topic", head="topic", link=ROW_TO_PARTITION),
                    Column(of="partition", head="partition", link=ROW_TO_PARTITION, width=90),
                    Column(of="reason", head="blocked by"),
                    Column(of="broker", head="broker", width=80),
                ),
                unit="short",
                told="Partitions whose retention does not delete what is past its limit, and why; without those that only wait for their "
                "active segment to roll, which is how Kafka works.",
                runbook="RetentionBlocked",
                width=12,
            )
        )
        .with_panel(
            bars(
                "Log dirs: used share of the file system",
                Query(
                    f"topk({TOP}, 1 - segtail_log_dir_free_bytes{{{BROKER}}} / segtail_log_dir_capacity_bytes{{{BROKER}}})",
                    "{{broker}} {{log_dir}}",
                ),
                unit="percentunit",
                told="A broker whose log dir is full takes the dir offline and leads its partitions no more.",
                steps=((0.8, "orange"), (0.9, "red")),
                runbook="LogDirFillingUp",
                width=12,
                most=1,
            )
        )
    )


def _counted(problem: str) -> str:
    """How many partitions have a problem; 0 and not nothing where there is none."""
    return f'sum(segtail_topic_{problem}_partitions{{topic=~"$topic"}}) or 0 * sum(segtail_topic_partitions{{topic=~"$topic"}})'
