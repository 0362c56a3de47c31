"""The job that observes: its agents, its query, its page, the thresholds of its configuration."""

from streaming.definitions.metric import Metric

BUILD_INFO = Metric("segtail_build_info", "1: the versions that run.", ("version", "spark_version", "python_version"))
STARTED = Metric("segtail_start_timestamp_seconds", "When this process of the job began.", ())
AGENT_UP = Metric("segtail_agent_up", "1 if the agent answered the last poll and takes part.", ("broker", "agent"))
AGENT_PROBLEM = Metric(
    "segtail_agent_problem",
    "1: what keeps an agent away (refused, silent, unresolved, untrusted, unauthorized, protocol, failed, other_cluster, same_name) or "
    "needs somebody's care (shared_log_dir, clock, blocked, twin_consumer, stuck). Only 1.",
    ("agent", "reason"),
)
AGENT_DOUBTS = Metric(
    "segtail_agent_doubts_total",
    "Files or values that an agent could not use, so that it used something else: a producer_snapshot (an older one, or the log itself), "
    "a time_index (its segment was scanned), the value of a configuration (the next level counts); or a checkpoint, whose offsets are "
    "not known then.",
    ("agent", "kind"),
)
AGENT_CLOCK_AHEAD = Metric(
    "segtail_agent_clock_ahead_seconds", "How far the agent's clock is ahead of the job's; ages are wrong by as much.", ("agent",)
)
CATCHING_UP = Metric(
    "segtail_broker_catching_up",
    "1 while the metrics are further behind the broker's logs than the pace and a few seconds: rates are backlog then, not traffic.",
    ("broker",),
)
TAIL_LAG_BYTES = Metric(
    "segtail_tail_lag_bytes",
    "Bytes that the broker's agent has published and that are not yet in the metrics; absent until the job has had something of the agent.",
    ("broker",),
)
TAIL_LAG_SECONDS = Metric(
    "segtail_tail_lag_seconds",
    "For how long the oldest bytes that are not yet in the metrics have been waiting, as far as the job has seen since it started.",
    ("broker",),
)
SKIPPED_BYTES = Metric("segtail_skipped_bytes_total", "Log bytes that never reached the metrics, and why.", ("broker", "reason"))
LOGS_PER_SHARD = Metric(
    "segtail_query_logs_per_shard",
    "Logs of all agents, also of those that are down, over the shards of the job's state. Above 5,000 the checkpoint is outgrown: each "
    "micro-batch writes megabytes a shard. Only a new checkpoint has more shards.",
    ("query",),
)
LAST_LOOK = Metric("segtail_query_last_look_timestamp_seconds", "When the query last looked for work, idle or not.", ("query",))
BATCH_DURATION = Metric(
    "segtail_query_batch_duration_seconds", "How long a micro-batch took, without the look for work before it.", ("query",), histogram=True
)
PACE = Metric(
    "segtail_query_pace_seconds",
    "The longest pause between two looks of the query for work as things are, and why: fixed (trigger is a duration), first_minute (of "
    "the query), live (a person looks at a page), scrape (it looks right before each scrape), fallback (not of everybody who scrapes is "
    "known when). Only the reason that counts.",
    ("query", "reason"),
)
SCRAPE_AGE = Metric(
    "segtail_scrape_data_age_seconds",
    "How old the newest data was at each scrape: the time since the last look for work of which everything was in the metrics.",
    ("query",),
    histogram=True,
)
RESTARTS = Metric("segtail_query_restarts_total", "How often the query was started again after a failure.", ("query",))
SERIES_DROPPED = Metric(
    "segtail_series_dropped_total",
    "Series left out of a page because of series_limit, counted at every page: partition_series had topic sums take their place, "
    "topic_series had nothing.",
    ("reason",),
)
THRESHOLD_SECONDS = Metric(
    "segtail_config_threshold_seconds", "A duration of the configuration, so that alert rules need no templates.", ("name",)
)
THRESHOLD_RATIO = Metric(
    "segtail_config_threshold_ratio", "A ratio of the configuration, so that alert rules need no templates.", ("name",)
)
THRESHOLD_BYTES = Metric("segtail_config_threshold_bytes", "A size of the configuration, so that alert rules need no templates.", ("name",))
