"""What counts of a broker, a log dir or a scrub that two agents report: page, alerts and problems have one status of each."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus, ScrubStatus
from streaming.cluster.view.process_reports import process_by_all

_Report = TypeVar("_Report", LogDirStatus, ScrubStatus)


def each_broker(statuses: Iterable[BrokerStatus]) -> list[BrokerStatus]:
    """The status with the most advanced copy of the metadata log, with what any agent has found out about the broker's files."""
    by_broker: dict[int, BrokerStatus] = {}
    for each in statuses:
        other = by_broker.setdefault(each.broker, each)
        if other is not each:
            best = max(other, each, key=lambda status: (status.readable, status.expected, status.metadata_offset))
            snapshot = any(status.readable and status.snapshot for status in (other, each)) or best.snapshot
            process = process_by_all([other.process, each.process])
            by_broker[each.broker] = replace(best, snapshot=snapshot, clean=other.clean or each.clean, process=process)
    return list(by_broker.values())


def each_log_dir(statuses: Iterable[LogDirStatus]) -> list[LogDirStatus]:
    """That of an agent that can read the log dir, with the latest checkpoint."""
    return _best_of_each(statuses, lambda status: (status.up, status.checkpoint_ms))


def each_scrub(scrubs: Iterable[ScrubStatus]) -> list[ScrubStatus]:
    """That which has found most, with the latest pass."""
    return _best_of_each(scrubs, lambda scrub: (scrub.corrupt, scrub.unreadable, scrub.ended_ms))


def _best_of_each(reports: Iterable[_Report], rank: Callable[[_Report], tuple[int, ...]]) -> list[_Report]:
    """Of each log dir the report with the highest rank, the first of equals."""
    by_log_dir: dict[tuple[int, str], _Report] = {}
    for each in reports:
        other = by_log_dir.setdefault((each.broker, each.log_dir), each)
        by_log_dir[each.broker, each.log_dir] = max(other, each, key=rank)
    return list(by_log_dir.values())
