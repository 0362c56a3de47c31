"""A job's answers over HTTP, from messages that a test changes; it may also start, stop and be slow."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage, GroupSummary
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.listing_json import (
    PARTITIONS_PATH,
    RETENTION_PATH,
    TRANSACTIONS_PATH,
    PartitionDetail,
    PartitionPage,
    PartitionRow,
    RetentionPage,
    RetentionRow,
    TransactionPage,
    TransactionRow,
)
from streaming.broker.protocol.status_json import (
    EVENTS_PATH,
    PROBLEMS_PATH,
    STATUS_PATH,
    ClusterEvent,
    EventPage,
    Problem,
    ProblemPage,
    Status,
)
from tests.serving import answering

NOW_MS = 1_780_000_000_000
COMMAND = "kafka-transactions.sh --bootstrap-server b1:9092 abort --topic orders --partition 7 --start-offset 41"


@dataclass
class FakeJob:
    """What the job says; every attribute may be set while it is asked. ``asked``: the paths with their queries, in order."""

    status: Status
    problems: list[Problem] = field(default_factory=list)
    partitions: list[PartitionRow] = field(default_factory=list)
    transactions: list[TransactionRow] = field(default_factory=list)
    retention: list[RetentionRow] = field(default_factory=list)
    groups: list[GroupSummary] = field(default_factory=list)
    events: list[ClusterEvent] = field(default_factory=list)
    details: dict[str, Message] = field(default_factory=dict)
    error: int = 0
    hold: threading.Event | None = None
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> Message | None:
        """What is at a path, None if that is nothing."""
        parts = urlsplit(path)
        asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.path == STATUS_PATH:
            return self.status
        if parts.path == PROBLEMS_PATH:
            rows, found = _page(self.problems, asked)
            return ProblemPage(at_ms=self.status.at_ms, rows=rows, total=found["total"], matched=found["matched"], offset=found["offset"])
        if parts.path == PARTITIONS_PATH:
            rows, found = _page(self.partitions, asked, "bytes_rate")
            return PartitionPage(at_ms=self.status.at_ms, rows=rows, **found)
        if parts.path == TRANSACTIONS_PATH:
            rows, found = _page(self.transactions, asked, "start_ms")
            return TransactionPage(at_ms=self.status.at_ms, rows=rows, **found)
        if parts.path == RETENTION_PATH:
            rows, found = _page(self.retention, asked, "retention_overdue_ms")
            return RetentionPage(at_ms=self.status.at_ms, rows=rows, **found)
        if parts.path == GROUPS_PATH:
            rows, found = _page(self.groups, asked, "verdict", use=asked.get("use", ""))
            return GroupPage(at_ms=self.status.at_ms, rows=rows, **found)
        if parts.path == EVENTS_PATH:
            rows, found = _page(self.events, asked)
            place = {name: found[name] for name in ("total", "matched", "offset")}
            return EventPage(at_ms=self.status.at_ms, rows=rows, since_ms=NOW_MS - 3_600_000, **place)
        return self.details.get(unquote(parts.path))


def _page(rows: Sequence[Any], asked: dict[str, str], sort: str = "", use: str = "") -> tuple[list[Any], dict[str, Any]]:
    sort, descending = asked.get("sort", sort), asked.get("order", "desc") == "desc"
    matching = [row for row in rows if asked.get("filter", "") in json.dumps(asdict(row), ensure_ascii=False)]
    matching = [row for row in matching if not use or row.use in use.split(",")]
    if sort:
        matching.sort(key=lambda row: getattr(row, sort), reverse=descending)
    offset, limit = int(asked.get("offset", 0)), int(asked.get("limit", 50))
    found = {"total": len(rows), "matched": len(matching), "offset": offset, "sort": sort, "order": "desc" if descending else "asc"}
    return matching[offset : offset + limit], found


def status(**values: Any) -> Status:
    """A job at which nothing is wrong."""
    return Status(
        **{
            "at_ms": NOW_MS,
            "version": "0.1.0",
            "ready": True,
            "verdict": "nothing is wrong in 3 partitions",
            "freshness": "the newest is 0.8 s old; 3 of 3 brokers",
            **values,
        }
    )


def problem(**values: Any) -> Problem:
    """A hanging transaction."""
    given = {
        "kind": "transaction_hanging",
        "severity": "critical",
        "what": "orders-7 is held up by a transaction that nobody will end",
        "topic": "orders",
        "partition": 7,
        "broker": 1,
        "since_ms": NOW_MS - 11_520_000,
        "holds_back": "1,204 offsets cannot be read with read_committed",
        "command": COMMAND,
        "runbook": "TransactionHanging",
    }
    return Problem(**{**given, **values})


def partition(number: int, topic: str = "orders", **values: Any) -> PartitionRow:
    """A partition that grows as fast as its number is high."""
    given = {"bytes_rate": 1000.0 * number, "records_rate": float(number), "size_bytes": 1 << 20, "log_end_offset": 10 * number}
    return PartitionRow(broker=1, topic=topic, partition=number, **{**given, "rates": [0.0, 5.0, 10.0, -1.0], **values})


def troubled() -> FakeJob:
    """A job with a problem, and something in every view."""
    transaction = TransactionRow(
        broker=1,
        topic="orders",
        partition=7,
        producer_id=4711,
        producer_epoch=2,
        first_offset=41,
        start_ms=NOW_MS - 11_520_000,
        last_append_ms=NOW_MS - 11_500_000,
        verdict="hanging",
        holds_offsets=1204,
        command=COMMAND,
    )
    kept = RetentionRow(
        broker=1, topic="orders", partition=7, size_bytes=5 << 30, retention_blocked="open_transaction", retention_limit_ms=604_800_000
    )
    group = GroupSummary(group="billing", type="Classic", state="Stable", members=2, partitions=1, lag_records_read_committed=12, held=1)
    group = replace(group, verdict="held", severity="warning")
    return FakeJob(
        status(verdict="1 transaction hangs: orders-7 is held for 3 h 12 min", severity="critical", critical=1),
        problems=[
            problem(),
            problem(kind="group_stopped", severity="warning", what="the group billing has stopped", topic="", group="billing"),
        ],
        partitions=[partition(number) for number in range(300)],
        transactions=[transaction],
        retention=[kept],
        groups=[group],
        events=[
            ClusterEvent(kind="problem_began", at_ms=NOW_MS, what="orders-7 is held up", severity="critical", topic="orders", partition=7),
            ClusterEvent(kind="broker_restarted", at_ms=NOW_MS - 60_000, what="Broker 2 was started again", broker=2),
        ],
        details={
            "/api/v1/partitions/orders/7": PartitionDetail(
                at_ms=NOW_MS, row=partition(7), transactions=[transaction], problems=[problem()]
            ),
            "/api/v1/groups/billing": GroupDetail(at_ms=NOW_MS, summary=group, partitions=[]),
        },
    )


@contextmanager
def serving(job: FakeJob, port: int = 0) -> Iterator[str]:
    """The address at which the job answers; leaving it, the job is gone."""

    def answer(path: str) -> tuple[int, bytes]:
        job.asked.append(path)
        if job.hold is not None:
            job.hold.wait()
        message = None if job.error else job.answer(path)
        status = job.error or (200 if message else 404)
        return status, message.encode() if message else b"starting" if job.error == 503 else b"no"

    with answering(answer, port) as url:
        try:
            yield url
        finally:
            if job.hold is not None:
                job.hold.set()
