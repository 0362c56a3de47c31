"""Brokers, what they have of the metadata, and their log dirs with the scrub."""

from streaming.common.definitions.metric import Metric

# --- log dirs, and their scrub.

LOG_DIR = ("broker", "log_dir")

LOG_DIR_SIZE = Metric("segtail_log_dir_size_bytes", "Bytes of the logs in the log dir.", LOG_DIR)
LOG_DIR_FREE = Metric("segtail_log_dir_free_bytes", "Bytes free in the file system of the log dir.", LOG_DIR)
LOG_DIR_CAPACITY = Metric("segtail_log_dir_capacity_bytes", "Size of the file system of the log dir.", LOG_DIR)
LOG_DIR_TOPIC_SIZE = Metric(
    "segtail_log_dir_topic_size_bytes", "Bytes of a topic's replicas in the log dir, whether they lead or not.", (*LOG_DIR, "topic")
)
LOG_DIR_OTHER = Metric(
    "segtail_log_dir_other_bytes",
    "Bytes in the log dir that belong to no live log: logs that wait for deletion, are being moved or are left over, indexes, metadata.",
    (*LOG_DIR, "kind"),
)
LOG_DIR_FULL = Metric(
    "segtail_log_dir_full_timestamp_seconds",
    "When the file system of the log dir is full, with what retention frees: its logs grow on as in the last day, compaction frees "
    "what is appended. Absent where that is not within a year, or not known.",
    LOG_DIR,
)
LOG_DIR_UP = Metric(
    "segtail_log_dir_up",
    "0 if the log dir cannot be read, its broker no longer lists it among those it uses, or has let go of its lock and holds others.",
    LOG_DIR,
)
LOG_DIR_BLOCKED = Metric(
    "segtail_log_dir_blocked_seconds",
    "Time since a call to this file or directory that has not returned. The log dir is not watched until it does. Absent where none waits.",
    (*LOG_DIR, "path"),
)
LOG_DIR_CHECKPOINT = Metric(
    "segtail_log_dir_checkpoint_timestamp_seconds",
    "When the broker last wrote the high watermarks of the log dir; a running broker does so every 5 seconds. Absent where the log "
    "dir holds no replica.",
    LOG_DIR,
)
LOG_DIR_RECOVERY = Metric(
    "segtail_log_dir_recovery_bytes",
    "Bytes of whole segments that a start of the broker reads after a crash, without the metadata log. 0 after a clean shutdown. "
    "Absent while it is not known of every log.",
    LOG_DIR,
)
LOG_DIR_NOT_FSYNCED = Metric(
    "segtail_log_dir_not_fsynced_bytes",
    "The most bytes of the log dir that may not be on disk: those above the recovery points, which are up to 60 seconds old. Absent "
    "while it is not known of every log.",
    LOG_DIR,
)
LOG_DIR_RECOVERING = Metric(
    "segtail_log_dir_recovering_bytes",
    "Bytes of segments that the broker, which starts after a crash, has not recovered yet. Absent where no log dir is recovered.",
    LOG_DIR,
)
LOG_DIR_SET_ASIDE = Metric(
    "segtail_log_dir_set_aside_logs",
    "Logs of live topics in the log dir whose records nobody serves, or will after the broker's next start. `stray_only`: set aside by the "
    "broker, and on no replica in sync, as far as agents see. `unnamed`: without partition.metadata.",
    (*LOG_DIR, "kind"),
)
SCRUB_CHECKED = Metric(
    "segtail_scrub_checked_bytes_total",
    "Bytes of closed segments that the scrub has checked. All of segtail_scrub_* is absent where the scrub is off.",
    LOG_DIR,
)
SCRUB_PASS_RATIO = Metric(
    "segtail_scrub_pass_ratio",
    "Share of the log dir's logs that the current pass of the scrub has finished; 1 between passes.",
    LOG_DIR,
)
SCRUB_PASS_START = Metric("segtail_scrub_pass_start_timestamp_seconds", "When the last pass of the scrub began.", LOG_DIR)
SCRUB_LAST_PASS = Metric(
    "segtail_scrub_last_pass_timestamp_seconds",
    "When the last complete pass of the scrub over the log dir ended; absent before the first one.",
    LOG_DIR,
)
SCRUB_CORRUPT = Metric(
    "segtail_scrub_corrupt_batches",
    "Damaged batches that the scrub has found in closed segments of all replicas. Those of segments that are gone, or that pass a later "
    "check, are not counted.",
    LOG_DIR,
)
SCRUB_CORRUPT_PLACE = Metric(
    "segtail_scrub_corrupt_batch_position_bytes",
    "Byte of the segment at which a damaged batch begins, its offset, and what is wrong (framing, crc, offset, epoch); at most 50 a log "
    "dir.",
    (*LOG_DIR, "topic", "partition", "segment", "offset", "fault"),
)
SCRUB_UNREADABLE = Metric(
    "segtail_scrub_unreadable_files", "Files that the scrub could not read at the last try: I/O errors, missing permissions.", LOG_DIR
)
SCRUB_BLOCKED = Metric(
    "segtail_scrub_blocked_seconds",
    "Time since a call of the scrub to this file that has not returned. Absent where none waits.",
    (*LOG_DIR, "path"),
)

# --- brokers, and what they have of the cluster's metadata.

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
    "replica), down (fenced although it served, or its process was seen to end).",
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
    "1 if a process holds the lock of any of the broker's log dirs, 0 if nobody does and nobody writes there. The broker is stopped "
    "then, or these are a copy. Absent on file systems that do not share locks.",
    ("broker",),
)
RESTART_SAFE = Metric(
    "segtail_broker_restart_safe",
    "1 if the broker may be restarted now, or started. No partition goes offline or falls under min ISR, no record that stands on it alone "
    "is lost, and the quorum keeps its majority. 0 with the first reason why not. Absent while something is not known.",
    ("broker", "reason"),
)
METADATA_OFFSET = Metric("segtail_broker_metadata_offset", "Log end offset of the broker's own copy of the metadata log.", ("broker",))
METADATA_LAST_APPEND = Metric(
    "segtail_broker_metadata_last_append_timestamp_seconds",
    "When the broker's own copy of the metadata log last grew; a running broker's does twice a second. Absent where an idle "
    "controller writes nothing: before Kafka 3.3, or where metadata.max.idle.interval.ms is 0 or above 5 seconds.",
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
