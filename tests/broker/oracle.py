"""What Kafka's own tools say about a cluster: the numbers that every other number is held against.

A tool is a JVM of its own and costs about a second of CPU: one call answers for all partitions.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import TopicPartition, run_tool


@dataclass
class LogTotals:
    """Sums over batches as kafka-dump-log prints them. Data batches and records leave control batches out, bytes do not."""

    data_batches: int = 0
    data_records: int = 0
    control_batches: int = 0
    bytes: int = 0
    next_offset: int = 0
    codec_bytes: dict[str, int] = field(default_factory=dict)


def end_offsets(kafka: Kafka) -> dict[TopicPartition, int]:
    """The offset that each partition's leader will give to the next record, internal topics included (`--time -1`)."""
    lines = run_tool("get-offsets", "--bootstrap-server", kafka.bootstrap, "--time", "-1").splitlines()
    answers = [line.rsplit(":", 2) for line in lines if line]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in answers if offset}


def log_sizes(kafka: Kafka) -> dict[tuple[int, str, int], int]:
    """Bytes that each replica takes, by (broker, topic, partition), as the brokers say (kafka-log-dirs)."""
    return sizes_in(run_tool("log-dirs", "--bootstrap-server", kafka.bootstrap, "--describe"))


def sizes_in(answer: str) -> dict[tuple[int, str, int], int]:
    """The same, from what the tool printed."""
    document = json.loads(next(line for line in answer.splitlines() if line.startswith("{")))
    sizes = {}
    for broker in document["brokers"]:
        for replica in (replica for log_dir in broker["logDirs"] for replica in log_dir["partitions"] if not replica["isFuture"]):
            topic, _, partition = replica["partition"].rpartition("-")
            sizes[broker["broker"], topic, int(partition)] = replica["size"]
    return sizes


def log_totals(log_dirs: Iterable[Path], topics: Iterable[str] | None = None) -> dict[TopicPartition, LogTotals]:
    """Sums over all live segments of the partitions below the log dirs of one broker; of all topics or of these."""
    wanted = None if topics is None else set(topics)
    directories = [path for log_dir in log_dirs for path in log_dir.iterdir() if _LIVE.fullmatch(path.name)]
    chosen = [path for path in directories if wanted is None or _topic_partition(path)[0] in wanted]
    segments = [segment for path in chosen for segment in sorted(path.glob("*.log"))]
    totals: dict[TopicPartition, LogTotals] = {}
    for segment, summed in segment_totals(segments).items():
        whole = totals.setdefault(_topic_partition(segment.parent), LogTotals())
        whole.data_batches += summed.data_batches
        whole.data_records += summed.data_records
        whole.control_batches += summed.control_batches
        whole.bytes += summed.bytes
        whole.next_offset = max(whole.next_offset, summed.next_offset)
        for codec, size in summed.codec_bytes.items():
            whole.codec_bytes[codec] = whole.codec_bytes.get(codec, 0) + size
    return totals


def segment_totals(segments: Iterable[Path]) -> dict[Path, LogTotals]:
    """Sums over the batches of each segment, from the header lines of one kafka-dump-log."""
    totals = {segment: LogTotals() for segment in segments}
    if not totals:
        return totals
    current = LogTotals()
    for line in run_tool("dump-log", "--files", ",".join(map(str, totals))).splitlines():
        if line.startswith("Dumping "):
            current = totals[Path(line.removeprefix("Dumping "))]
        elif line.startswith("baseOffset: "):
            _add(current, line)
        else:
            assert line.startswith("Log starting offset: "), line
    return totals


_LIVE = re.compile(r".+-\d+")
_HEADER = re.compile(r" lastOffset: (\d+) count: (\d+) .* isControl: (true|false) .* size: (\d+) .* compresscodec: (\w+) .* isvalid: true")


def _add(totals: LogTotals, line: str) -> None:
    header = _HEADER.search(line)
    assert header, line
    size = int(header[4])
    totals.next_offset = int(header[1]) + 1
    totals.bytes += size
    if header[3] == "true":
        totals.control_batches += 1
        return
    totals.data_batches += 1
    totals.data_records += int(header[2])
    totals.codec_bytes[header[5]] = totals.codec_bytes.get(header[5], 0) + size


def _topic_partition(directory: Path) -> TopicPartition:
    topic, _, partition = directory.name.rpartition("-")
    return topic, int(partition)
