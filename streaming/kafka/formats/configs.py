"""The configurations that the cluster stores in its metadata log, and which of them may be read (`ConfigResource.Type`, `LogConfig`).

A broker's configurations may contain passwords, and under KRaft the metadata log stores them as they were given. So a value is read only if
its key is listed here. The listed keys define how logs are kept, rolled and cleaned, and how long transactions may last.
"""

from enum import IntEnum

TOPIC_KEYS = frozenset(
    {
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "errors.deadletterqueue.group.enable",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "internal.segment.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.decompressed.message.bytes",
        "max.message.bytes",
        "message.downconversion.enable",
        "message.format.version",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)
"""All configurations of a topic, including those of older releases. None of them is secret."""

BROKER_KEYS = frozenset(
    {
        "log.cleaner.backoff.ms",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.enable",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.threads",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.scheduler.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "log.index.interval.bytes",
        "log.index.size.max.bytes",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.difference.max.ms",
        "log.message.timestamp.type",
        "log.preallocate",
        "log.remote.copy.lag.bytes",
        "log.remote.copy.lag.ms",
        "log.retention.bytes",
        "log.retention.check.interval.ms",
        "log.retention.hours",
        "log.retention.minutes",
        "log.retention.ms",
        "log.roll.hours",
        "log.roll.jitter.hours",
        "log.roll.jitter.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "max.decompressed.message.bytes",
        "metadata.log.segment.bytes",
        "metadata.log.segment.ms",
        "message.max.bytes",
        "num.recovery.threads.per.data.dir",
        "offsets.retention.minutes",
        "producer.id.expiration.ms",
        "replica.high.watermark.checkpoint.interval.ms",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.max.timeout.ms",
        "transaction.partition.verification.enable",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id.expiration.ms",
    }
)
"""The configurations of a broker that apply to a topic without its own, and those about logs, transactions and committed offsets."""

READABLE_KEYS = TOPIC_KEYS | BROKER_KEYS
"""Keys with values that are read. The value of every other key is skipped without being parsed."""


class ResourceType(IntEnum):
    """The type of the owner of a configuration. Other types exist, but nothing of them is kept."""

    TOPIC = 2
    BROKER = 4  # an empty name means all brokers: the cluster's default
