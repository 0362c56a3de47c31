"""Can these figures be trusted: is everything watched, and how far behind is it."""

from grafana_foundation_sdk.builders import dashboard

from conf.dashboards.generator.frame import BROKER, RATE, ROWS, TOP, largest_gauges, longest_ago, new_dashboard
from conf.dashboards.generator.parts import NEVER, Column, Query, chart, listing, single

# Prometheus' own figures of a scrape carry the labels of the target that segtail_build_info has, too.
_SCRAPED = "on (job, instance) segtail_build_info"

# Only a broker without an agent has such a series, and no variable can name one: 0 where there is none.
_NOBODY_UNWATCHED = 'label_replace(0 * count(segtail_agent_up) unless on () segtail_partitions_unobserved, "broker", "any", "", "")'


def observer() -> dashboard.Dashboard:
    """Agents, lag, loss, the query, the scrape."""
    made = new_dashboard(
        "segtail-observer",
        "Observer",
        "segtail itself: which brokers are watched, how far behind it is, what it has missed, what a scrape costs.",
        variables=("broker",),
    )
    return _scrape(_query(_coverage(_lag(_at_a_glance(made)))))


def _at_a_glance(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("At a glance"))
        .with_panel(
            single(
                "Version",
                "segtail_build_info",
                unit="none",
                told="What runs, with its Spark.",
                legend="{{version}}",
                none="down",
                runbook="ObserverDown",
                trend=False,
            )
        )
        .with_panel(
            single(
                "Agents down",
                f"count(segtail_agent_up{{{BROKER}}} == 0) or (0 * count(segtail_agent_up{{{BROKER}}}))",
                unit="short",
                told="Agents that did not answer the last poll. Their partitions keep their last values, and pass on to another replica "
                "after stale_after.",
                steps=NEVER,
                runbook="AgentDown",
                decimals=0,
            )
        )
        .with_panel(
            single(
                "Lag",
                f"max(segtail_tail_lag_seconds{{{BROKER}}})",
                unit="s",
                told="For how long the oldest bytes that an agent has published wait to be counted.",
                steps=((30, "orange"), (120, "red")),
                runbook="ObserverLagging",
            )
        )
        .with_panel(
            single(
                "Skipped, 24 h",
                f"sum(increase(segtail_skipped_bytes_total{{{BROKER}}}[24h]))",
                unit="bytes",
                told="Log bytes that never reached the metrics.",
                steps=((1, "orange"),),
                runbook="BytesSkipped",
            )
        )
        .with_panel(
            single(
                "Last look",
                "time() - max(segtail_query_last_look_timestamp_seconds)",
                unit="s",
                told="When the query last looked for work. An idle cluster makes no micro-batch, yet the query looks.",
                steps=((60, "orange"), (300, "red")),
                runbook="ObserverDown",
            )
        )
        .with_panel(
            single(
                "Restarts, 24 h",
                "sum(increase(segtail_query_restarts_total[24h]))",
                unit="short",
                told="How often the query failed and was started again.",
                steps=((1, "orange"),),
                decimals=0,
                runbook="ObserverDown",
            )
        )
        .with_panel(
            single(
                "Series left out",
                f"sum(increase(segtail_series_dropped_total[{RATE}]))",
                unit="short",
                told="Over series_limit topic sums stand for partitions. Counted at every page.",
                steps=((1, "orange"),),
                decimals=0,
                runbook="SeriesDropped",
            )
        )
        .with_panel(
            single(
                "Late, not listed",
                "max(segtail_late_transactions_omitted)",
                unit="short",
                told="Late transactions beyond late_limit.",
                steps=((1, "orange"),),
                decimals=0,
            )
        )
    )


def _lag(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("How far behind, and what was missed"))
        .with_panel(
            chart(
                f"Lag by broker, the {TOP} longest",
                Query(largest_gauges("segtail_tail_lag_seconds", BROKER, by="broker"), "broker {{broker}}"),
                unit="s",
                told="For how long the oldest bytes that are not counted yet have been waiting.",
                steps=((120, "red"),),
                runbook="ObserverLagging",
            )
        )
        .with_panel(
            chart(
                f"Waiting bytes by broker, the {TOP} most",
                Query(largest_gauges("segtail_tail_lag_bytes", BROKER, by="broker"), "broker {{broker}}"),
                unit="bytes",
                told="Published by the agent and not in the metrics yet.",
                runbook="ObserverLagging",
            )
        )
        .with_panel(
            chart(
                "Skipped bytes by reason",
                Query(f"sum by (reason) (increase(segtail_skipped_bytes_total{{{BROKER}}}[{RATE}]))", "{{reason}}"),
                unit="bytes",
                told="Log bytes that never reached the metrics: deleted or truncated before they were read, corrupt, trimmed out of the "
                "journal, or "
                "lost with an agent.",
                runbook="BytesSkipped",
            )
        )
        .with_panel(
            chart(
                "Brokers that catch up",
                Query(f"sum(segtail_broker_catching_up{{{BROKER}}})", "catching up"),
                Query(f"count(segtail_broker_catching_up{{{BROKER}}})", "watched"),
                unit="short",
                told="While a broker catches up its rates are backlog, and alerts on rates keep quiet.",
            )
        )
    )


def _coverage(made: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        made.with_row(dashboard.Row("What is watched"))
        .with_panel(
            listing(
                "Agents",
                f"topk({ROWS}, max by (broker, agent) (segtail_agent_up{{{BROKER}}}) * on (broker, agent) group_left (cluster_id)"
                f" max by (broker, agent, cluster_id) (segtail_broker_info{{{BROKER}}}))",
                (
                    Column(of="broker", head="broker", width=90),
                    Column(of="agent", head="agent"),
                    Column(of="cluster_id", head="cluster id"),
                    Column(of="Value", head="up", width=80),
                ),
                unit="bool_yes_no",
                told="Every agent that has told a broker, and whether it answered the last poll.",
                runbook="AgentDown",
                width=12,
            )
        )
        .with_panel(
            chart(
                "Partitions that nobody watches",
                Query(
                    f"{largest_gauges('segtail_partitions_unobserved', '', by='broker')} or {_NOBODY_UNWATCHED}", "led by broker {{broker}}"
                ),
                unit="short",
                told="Partitions led by a broker without an agent, whichever brokers are chosen: what is known of them comes from other "
                "replicas, if at all.",
                width=6,
            )
        )
        .with_panel(
            chart(
                "Brokers by what can be read",
                Query(f"sum(segtail_broker_metadata_readable{{{BROKER}}})", "metadata log readable"),
                Query("max(segtail_coordinator_partitions_readable)", "__transaction_state partitions readable"),
                Query("max(segtail_coordinator_partitions)", "__transaction_state partitions"),
                unit="short",
                told="Without the metadata log no leader, limit or high watermark is known for sure; without all of __transaction_state "
                "no transaction is "
                "called hanging.",
                width=6,
            )
        )
        .with_panel(
            chart(
                "Brokers by status",
                Query(f"sum by (status) (segtail_broker_status{{{BROKER}}})", "{{status}}"),
                unit="short",
                told="By the cluster's metadata: starting is registered and not unfenced since, stopping in a controlled shutdown or ended "
                "by one, down fenced although it served.",
                width=12,
            )
        )
        .with_panel(
            chart(
                f"Since the metadata log grew, the {TOP} longest",
                Query(longest_ago("segtail_broker_metadata_last_append_timestamp_seconds", BROKER, "broker"), "broker {{broker}}"),
                unit="s",
                told="An active controller makes every broker's copy grow twice a second. All of them stand still where there is none; a "
                "single one where its broker reads no metadata, or is down.",
                width=12,
            )
        )
    )


def _query(made: dashboard.Dashboard) -> dashboard.Dashboard:
    seconds = f"sum by (le) (rate(segtail_query_batch_duration_seconds_bucket[{RATE}]))"
    return (
        made.with_row(dashboard.Row("The query"))
        .with_panel(
            chart(
                "Duration of a micro-batch",
                *(Query(f"histogram_quantile({quantile}, {seconds})", f"{quantile:.0%} are shorter") for quantile in (0.5, 0.99)),
                unit="s",
                told="More than the pace: micro-batches follow one another without a pause.",
                width=8,
            )
        )
        .with_panel(
            chart(
                "Micro-batches",
                Query(f"sum(rate(segtail_query_batch_duration_seconds_count[{RATE}]))", "a second"),
                unit="count:/s",
                told="Micro-batches a second. An idle cluster makes none.",
                width=8,
            )
        )
        .with_panel(
            listing(
                "Thresholds of the configuration",
                f"topk({ROWS}, max by (name) (segtail_config_threshold_seconds))",
                (Column(of="name", head="option"), Column(of="Value", head="is", width=120)),
                unit="s",
                told="Alert rules compare with these, so that a change of the configuration changes them.",
                width=8,
            )
        )
    )


def _scrape(made: dashboard.Dashboard) -> dashboard.Dashboard:
    ages = f"sum by (le) (rate(segtail_scrape_data_age_seconds_bucket[{RATE}]))"
    return (
        made.with_row(dashboard.Row("The scrape"))
        .with_panel(
            chart(
                "Age of the newest data at a scrape",
                *(Query(f"histogram_quantile({quantile}, {ages})", f"{quantile:.0%} are younger") for quantile in (0.5, 0.99)),
                unit="s",
                told="How long before a scrape the query had last looked for work: what a micro-batch takes and half a second, where the "
                "scraper's period is known.",
            )
        )
        .with_panel(
            chart(
                "Pace of the query",
                Query("max by (reason) (segtail_query_pace_seconds)", "{{reason}}"),
                unit="s",
                told="The longest pause between two looks for work, and why. Scrape: it looks right before each scrape. Fallback: not of "
                "everybody who scrapes is known when.",
            )
        )
        .with_panel(
            chart(
                "Series a scrape",
                Query(f"scrape_samples_scraped and {_SCRAPED}", "{{instance}}"),
                unit="short",
                told="What Prometheus takes in at each scrape. The export options and series_limit bound it.",
                runbook="SeriesDropped",
            )
        )
        .with_panel(
            chart(
                "Duration of a scrape",
                Query(f"scrape_duration_seconds and {_SCRAPED}", "{{instance}}"),
                unit="s",
                told="Near scrape_timeout, 10 s unless set, scrapes begin to fail.",
            )
        )
    )
