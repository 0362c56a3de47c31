"""The status of an agent's scrub, for messages."""

from collections import Counter
from collections.abc import Iterable, Iterator

from streaming.broker.protocol.scrub_messages import CorruptBatch, CorruptLog, ScrubStatus, UnreadableFile
from streaming.broker.scrub.findings import FoundSegment
from streaming.broker.scrub.threads import ScrubReport
from streaming.kafka.formats.names import PartitionDir, parse_partition_dir

MOST_NAMED = 50
"""The most damaged positions, logs and files of a log dir that are named; the others are counted."""

_WAITS_SECONDS = 5.0
"""A call that takes no longer than this is not reported."""


def scrub_statuses(reports: Iterable[ScrubReport]) -> list[ScrubStatus]:
    """The status of each log dir."""
    return [_status(report) for report in reports]


def _status(report: ScrubReport) -> ScrubStatus:
    progress = report.progress
    damaged = [(segment, partition) for segment in progress.segments if segment.batches and (partition := _partition(segment)) is not None]
    unreadable = [segment for segment in progress.segments if segment.error]
    batches = Counter[PartitionDir]()
    for segment, partition in damaged:
        batches[partition] += segment.batches
    waits = report.waiting >= _WAITS_SECONDS
    return ScrubStatus(
        broker=report.log_dir.broker,
        log_dir=str(report.log_dir.path),
        began_ms=progress.began_ms,
        ended_ms=progress.ended_ms,
        logs=progress.logs,
        logs_checked=progress.logs_checked,
        checked=progress.checked,
        corrupt=batches.total(),
        unreadable=len(unreadable),
        waits_at=report.waits_at if waits else "",
        waits_seconds=round(report.waiting, 1) if waits else 0.0,
        corrupt_batches=list(_corrupt_batches(damaged))[:MOST_NAMED],
        corrupt_logs=[CorruptLog(each.topic, each.partition, count) for each, count in batches.most_common(MOST_NAMED)],
        unreadable_files=[UnreadableFile(str(segment.path), segment.error) for segment in unreadable[:MOST_NAMED]],
    )


def _corrupt_batches(damaged: Iterable[tuple[FoundSegment, PartitionDir]]) -> Iterator[CorruptBatch]:
    """The first damaged position of each segment, then the others."""
    named = [
        (number, CorruptBatch(partition.topic, partition.partition, str(segment.path), damage.position, damage.offset, str(damage.fault)))
        for segment, partition in damaged
        for number, damage in enumerate(segment.damages)
    ]
    return (batch for _, batch in sorted(named, key=lambda each: each[0]))


def _partition(segment: FoundSegment) -> PartitionDir | None:
    return parse_partition_dir(segment.path.parent.name)
