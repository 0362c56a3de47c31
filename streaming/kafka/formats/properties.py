"""The Java properties format, `meta.properties`, and the configurations that the cluster stores, with which of them may be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from streaming.errors import FormatError, quoted

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
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
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
"""The configurations of a broker that apply to a topic without its own, and those about logs, replication, transactions and offsets."""

READABLE_KEYS = TOPIC_KEYS | BROKER_KEYS
"""Keys with values that are read. The value of every other key is skipped without being parsed."""

_MAX_INT = 2**31 - 1
_SPACE = " \t\f"
_NODE_ID = re.compile(r"[0-9]{1,10}", re.ASCII)
_NODE_ID_KEYS = {"0": "broker.id", "1": "node.id"}

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

_NODE_KEYS = ("node.id", "broker.id")  # the second was used until ZooKeeper was removed, and as a synonym of the first


def parse_meta_properties(data: bytes) -> MetaProperties:
    """Parse `meta.properties`. Version 0 names the node `broker.id` (ZooKeeper), version 1 `node.id`.

    Raises FormatError that names the property that is missing or wrong.
    Version 0 may lack `cluster.id`: brokers of that version take it so, too.
    """
    properties = dict(parse_properties(data))
    version = properties.get("version", "0")
    if version not in _NODE_ID_KEYS:
        raise FormatError(f"version {quoted(version)} is not known, so neither is its node and its cluster: this segtail reads 0 and 1")
    node_key = _NODE_ID_KEYS[version]
    if not properties.get(node_key):
        raise FormatError(f"{node_key} is missing")
    node_id = parse_node_id(properties[node_key], node_key)
    cluster_id, zookeeper = properties.get("cluster.id", ""), version == "0"
    if not cluster_id and not zookeeper:
        raise FormatError("cluster.id is missing")
    return MetaProperties(cluster_id, node_id, properties.get("directory.id"), zookeeper)


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The owner of a log dir (`MetaProperties`, versions 0 and 1).

    `cluster_id`: "" not known, as of a broker before 2.4 (KAFKA-7335). `zookeeper`: it belongs to a broker of before KRaft.
    """

    cluster_id: str
    node_id: int
    directory_id: str | None
    zookeeper: bool = field(default=False, compare=False)


def parse_properties(data: bytes) -> tuple[tuple[str, str], ...]:
    """The (key, value) pairs of a file in Java's properties format, in order (`java.util.Properties.load`).

    Raises FormatError for a malformed escape.
    """
    return tuple(_pair(line) for line in _logical_lines(data.decode("latin-1")))


def _pair(line: str) -> tuple[str, str]:
    """Split at the first separator (`=`, `:` or white space) that no backslash escapes."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _SPACE:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_SPACE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_SPACE)
    return _unescape(line[:end]), _unescape(rest)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if code == "u":
        raise FormatError(f"malformed \\u escape in {quoted(match.string)}")
    return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROLS.get(code, code)


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without blank ones and comments. A line that ends with an odd number of backslashes continues in the next one."""
    joined = ""
    continued = False
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_SPACE)
        if not continued and (not line or line[0] in "#!"):
            continue
        joined += line
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        if continued:
            joined = joined[:-1]
        else:
            yield joined
            joined = ""
    if joined:
        yield joined


def parse_node_id(text: str, key: str) -> int:
    """Parse the number of a node, the value of ``key``. Raises FormatError if it is none."""
    if not _NODE_ID.fullmatch(text) or int(text) > _MAX_INT:
        raise FormatError(f"{key} {quoted(text)} is not a node's number")
    return int(text)


class ResourceType(IntEnum):
    """The type of the owner of a configuration. Other types exist, but nothing of them is kept."""

    TOPIC = 2
    BROKER = 4  # an empty name means all brokers: the cluster's default


def known_clusters(cluster_ids: Iterable[str]) -> list[str]:
    """The different ids of clusters, without "": a cluster that is not known may be any of them."""
    return sorted(set(cluster_ids) - {""})


def parse_server_properties(data: bytes) -> ServerProperties:
    """Parse the file. If a name occurs twice, the last value counts, as in Java.

    The configurations that the cluster stores in its metadata log, and which of them may be read (`ConfigResource.Type`,
    `LogConfig`). A broker's configurations may contain passwords, and under KRaft the metadata log stores them as they were given. So
    a value is read only if its key is listed here. The listed keys define how logs are kept, rolled and cleaned, and how long
    transactions may last.

    Raises:
        FormatError: it is not in the format of Java's properties, or does not contain the node id.
    """
    properties = dict(parse_properties(data))
    written = next((properties[key].strip() for key in _NODE_KEYS if key in properties), None)
    if written is None:
        raise FormatError("neither node.id nor broker.id is in it, so it cannot be matched with a log dir")
    return ServerProperties(
        parse_node_id(written, _NODE_KEYS[0]), tuple((name, value) for name, value in properties.items() if name in READABLE_KEYS)
    )


@dataclass(frozen=True, slots=True)
class ServerProperties:
    """The node id of a file, and its configurations that may be read: a file may contain passwords."""

    node_id: int
    configs: tuple[tuple[str, str], ...]
