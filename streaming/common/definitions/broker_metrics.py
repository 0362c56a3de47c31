"""Brokers, and what they have of the cluster's metadata."""

from streaming.common.definitions.metric import Metric

CHECK_INTERVAL = Metric(
    "segtail_broker_retention_check_interval_seconds",
    "Time between two retention checks of the broker: log.retention.check.interval.ms, or Kafka's default where it is not known.",
    ("broker",),
)
UNOBSERVED = Metric("segtail_partitions_unobserved", "Partitions led by a broker that no agent watches.", ("broker",))
CONTROLLER = Metric("segtail_cluster_controller_id", "Node id of the active controller, by the quorum-state file.", ())
BROKER_FENCED = Metric("segtail_broker_fenced", "1 if the broker is fenced by the metadata log.", ("broker",))
BROKER_STATUS = Metric(
    "segtail_broker_status",
    "1 for the status of a registered broker by the cluster's metadata, 0 for the others: running, starting (registered, not unfenced "
    "since, or its process came up and has not registered yet), stopping (in controlled shutdown, ended by one, or away without any "
    "replica, however it ended), down (fenced although it served, or its process was seen to end). It stays running beside "
    "segtail_broker_process_up 0 while the broker is not fenced and nobody has seen its process end.",
    ("broker", "status"),
)
BROKER_STATUS_SINCE = Metric(
    "segtail_broker_status_since_timestamp_seconds",
    "Since when at the latest the broker has that status, by the controller's clock, or by its host's where its process was seen to end "
    "or to come up.",
    ("broker",),
)
PROCESS_UP = Metric(
    "segtail_broker_process_up",
    "1 if a process holds the lock of any of the broker's log dirs, 0 if nobody holds them and nobody writes there: the broker is stopped, "
    "or these are a copy: an agent that was started after its process had ended cannot tell which. Absent where that cannot be known, such "
    "as on a file system that does not share locks.",
    ("broker",),
)
METADATA_OFFSET = Metric("segtail_broker_metadata_offset", "Log end offset of the broker's own copy of the metadata log.", ("broker",))
METADATA_LAST_APPEND = Metric(
    "segtail_broker_metadata_last_append_timestamp_seconds",
    "When the broker's own copy of the metadata log last grew; a running broker's does twice a second. Absent where an idle controller "
    "writes nothing: before Kafka 3.3, or where metadata.max.idle.interval.ms is 0 or above 5 seconds.",
    ("broker",),
)
METADATA_SNAPSHOT_READABLE = Metric(
    "segtail_broker_metadata_snapshot_readable",
    "0 if the agent may not read the newest snapshot of the metadata log: after its next start it then knows nothing of the cluster.",
    ("broker",),
)
UNWATCHED_LOG_DIRS = Metric(
    "segtail_broker_unwatched_log_dirs",
    "Log dirs that a watched broker is registered with and that no agent watches. Absent where that is not known: before Kafka 3.7.",
    ("broker",),
)
BROKER_INFO = Metric("segtail_broker_info", "1 for every watched broker: its cluster and its agent.", ("broker", "cluster_id", "agent"))
UNREADABLE_LOGS = Metric(
    "segtail_unreadable_logs",
    "Logs that could not be read at the last try: an I/O error, a missing permission, no file descriptor left. Their metrics do not "
    "change.",
    ("broker",),
)
METADATA_READABLE = Metric(
    "segtail_broker_metadata_readable",
    "1 if the broker's own copy of the metadata log could be read. Absent for a broker without KRaft, which has none.",
    ("broker",),
)
