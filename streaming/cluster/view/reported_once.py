"""What counts of a broker, a log dir or a scrub that two agents report: page, alerts and problems have one status of each."""

from collections.abc import Iterable
from dataclasses import replace

from streaming.broker.protocol.scrub_messages import ScrubStatus
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus


def each_broker(statuses: Iterable[BrokerStatus]) -> list[BrokerStatus]:
    """The status with the most advanced copy of the metadata log, with what any agent has found out about the broker's files."""
    by_broker: dict[int, BrokerStatus] = {}
    for each in statuses:
        other = by_broker.setdefault(each.broker, each)
        if other is not each:
            best = max(other, each, key=lambda status: (status.readable, status.expected, status.metadata_offset))
            snapshot = any(status.readable and status.snapshot for status in (other, each)) or best.snapshot
            by_broker[each.broker] = replace(best, snapshot=snapshot, clean=other.clean or each.clean)
    return list(by_broker.values())


def each_log_dir(statuses: Iterable[LogDirStatus]) -> list[LogDirStatus]:
    """That of an agent that can read the log dir, with the latest checkpoint."""
    by_path: dict[tuple[int, str], LogDirStatus] = {}
    for each in statuses:
        other = by_path.setdefault((each.broker, each.log_dir), each)
        by_path[each.broker, each.log_dir] = max(other, each, key=lambda status: (status.up, status.checkpoint_ms))
    return list(by_path.values())


def each_scrub(scrubs: Iterable[ScrubStatus]) -> list[ScrubStatus]:
    """That which has found most, with the latest pass."""
    by_path: dict[tuple[int, str], ScrubStatus] = {}
    for each in scrubs:
        other = by_path.setdefault((each.broker, each.log_dir), each)
        by_path[each.broker, each.log_dir] = max(other, each, key=lambda scrub: (scrub.corrupt, scrub.unreadable, scrub.ended_ms))
    return list(by_path.values())
