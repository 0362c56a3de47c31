"""The job that observes: its agents, its query, its page, the thresholds of its configuration."""

from streaming.common.definitions.metric import Metric

BUILD_INFO = Metric("segtail_build_info", "1: the versions that run.", ("version", "spark_version", "python_version"))
PAGE_INFO = Metric(
    "segtail_page_info", "1: the address at which people reach the job's page (public_url), for commands and links in alerts.", ("url",)
)
BOOTSTRAP_INFO = Metric(
    "segtail_bootstrap_info",
    "1: host and port of a broker, for Kafka's own tools, by the cluster's metadata.",
    ("bootstrap_server",),
)
STARTED = Metric("segtail_start_timestamp_seconds", "When this process of the job began.", ())
AGENT_UP = Metric("segtail_agent_up", "1 if the agent answered the last poll and the job uses it.", ("broker", "agent"))
AGENT_PROBLEM = Metric(
    "segtail_agent_problem",
    "1 for each problem of an agent, by the reason (docs/troubleshooting.md): why the job does not use it, or what somebody has to fix.",
    ("agent", "reason"),
)
AGENT_DOUBTS = Metric(
    "segtail_agent_doubts_total",
    "Files or values that an agent could not use, with a fallback for each kind: producer_snapshot (an older one, or the log itself), "
    "time_index (a scan of its segment), configuration (another level's value, or Kafka's default). Without one: checkpoint, "
    "record_time (of a record in a batch beyond 8 MiB).",
    ("agent", "kind"),
)
AGENT_CLOCK_AHEAD = Metric(
    "segtail_agent_clock_ahead_seconds", "How far the agent's clock is ahead of the job's; ages are wrong by as much.", ("agent",)
)
CATCHING_UP = Metric(
    "segtail_broker_catching_up",
    "1 while the metrics are behind the broker's logs by more than the pace and half a minute: rates show backlog then, not traffic.",
    ("broker",),
)
TAIL_LAG_BYTES = Metric(
    "segtail_tail_lag_bytes",
    "Bytes that the broker's agent has published and that are not in the metrics yet; absent until the job has read from the agent.",
    ("broker",),
)
TAIL_LAG_SECONDS = Metric(
    "segtail_tail_lag_seconds",
    "Time for which the oldest bytes that are not in the metrics yet have been waiting, as far as the job has seen since it started.",
    ("broker",),
)
SKIPPED_BYTES = Metric(
    "segtail_skipped_bytes_total",
    "Log bytes that never reached the metrics, by the reason and by whose they are. copy: exported, the counters are too low by as "
    "much; follower, of a copy that is not exported. An estimate for agent_lost, and for segments that came and went between two "
    "looks of the agent; else exact.",
    ("broker", "reason", "copy"),
)
LOGS_PER_SHARD = Metric(
    "segtail_query_logs_per_shard",
    "Logs of all agents, divided by the shards of the job's state. Above 5,000 micro-batches are slower, and only a new checkpoint "
    "has more shards.",
    ("query",),
)
LAST_LOOK = Metric(
    "segtail_query_last_look_timestamp_seconds", "When the query last checked for work, whether it found any or not.", ("query",)
)
BATCH_DURATION = Metric(
    "segtail_query_batch_duration_seconds", "Duration of a micro-batch, without the check for work before it.", ("query",), histogram=True
)
PACE = Metric(
    "segtail_query_pace_seconds",
    "The longest pause between two checks of the query for work at present, by the reason: fixed, first_minute, live, scrape, "
    "fallback (docs/pace.md).",
    ("query", "reason"),
)
SCRAPE_AGE = Metric(
    "segtail_scrape_data_age_seconds",
    "Age of the newest data at each scrape: the time since the last check for work whose results were all in the metrics.",
    ("query",),
    histogram=True,
)
WEB_FAILURES = Metric(
    "segtail_web_config_failures_total",
    "Changes of the web config file, or of the files that it names, that could not be used: the previous ones stay in use.",
    (),
)
HTTP_CUTS = Metric(
    "segtail_http_cut_connections_total",
    "HTTP connections that were cut before their end: without a complete request for too long, or too many of them, or too slow to read.",
    (),
)
HTTP_REFUSALS = Metric(
    "segtail_http_refused_requests_total",
    "HTTP requests that were refused with 503 because too many were being answered, or too many passwords waited.",
    (),
)
WRONG_PASSWORDS = Metric("segtail_http_wrong_passwords_total", "HTTP requests whose name and password were wrong.", ())
RESTARTS = Metric("segtail_query_restarts_total", "Restarts of the query after a failure.", ("query",))
SERIES_DROPPED = Metric(
    "segtail_series_dropped_total",
    "Series omitted from a page, counted at every page. Because of series_limit: partition_series were replaced by sums by topic, "
    "topic_series by nothing. Because of label_limit: label_bytes, all series of some metrics.",
    ("reason",),
)
THRESHOLD_SECONDS = Metric(
    "segtail_config_threshold_seconds", "A duration of the configuration, so that alert rules need no templates.", ("name",)
)
THRESHOLD_RATIO = Metric(
    "segtail_config_threshold_ratio", "A ratio of the configuration, so that alert rules need no templates.", ("name",)
)
