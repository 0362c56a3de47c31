"""A made-up cluster as the messages that the page is made from: something of everything is wrong in it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import parse_qs

from streaming.broker.protocol.disk_json import DiskAnswer, DiskRow, LogDirUse
from streaming.broker.protocol.group_json import GroupDetail, GroupFinding, GroupPage, GroupPartition, GroupSummary, HoldingTransaction
from streaming.broker.protocol.json_message import DESC
from streaming.broker.protocol.listing_json import (
    BrokerPage,
    BrokerRow,
    Minute,
    PartitionDetail,
    PartitionPage,
    PartitionRow,
    ReplicaRow,
    RetentionPage,
    RetentionRow,
    SegmentRow,
    TopicDetail,
    TopicPage,
    TopicReader,
    TopicRow,
    TransactionPage,
    TransactionRow,
)
from streaming.broker.protocol.status_json import (
    SEVERITIES,
    AgentState,
    ClusterEvent,
    Cost,
    EventPage,
    JobStart,
    Problem,
    ProblemPage,
    Share,
    Status,
)
from streaming.errors import NotYetError
from streaming.pages.api.paging import page_request
from streaming.pages.api.state import State, problem_page
from streaming.pages.listings.declared_lists import BROKERS, GROUPS, PARTITIONS, RETENTION, TOPICS, TRANSACTIONS
from streaming.pages.listings.listing import Listing
from streaming.pages.site.page_site import PageSite

NOW = 1_763_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MIB, GIB = 1 << 20, 1 << 30
ADVICE = "no coordinator will end it. The abort discards its records: first make sure that its producer has ended"
ABORT = "kafka-transactions.sh --bootstrap-server broker-1:9092 abort --topic payments --partition 3 --start-offset 8812344"

PROBLEMS = (
    Problem(
        kind="transaction_hanging",
        severity="critical",
        broker=1,
        topic="payments",
        partition=3,
        what="A transaction of producer 4012 in payments-3 hangs: no coordinator will ever end it",
        since_ms=NOW - 3 * HOUR - 12 * MINUTE,
        holds_back="Readers of committed data have waited at offset 8812344 since then: 1,204,311 offsets are held back, and "
        "retention cannot delete past it.",
        command=ABORT,
        runbook="TransactionHanging",
    ),
    Problem(
        kind="log_dir_full",
        severity="critical",
        broker=2,
        log_dir="/var/lib/kafka/data-2",
        what="Log dir /var/lib/kafka/data-2 of broker 2 is full in 9h at the rate of the last day",
        since_ms=NOW - 40 * MINUTE,
        holds_back="Broker 2 stops serving the 412 partitions that it has there.",
        command="segtail disk /var/lib/kafka/data-2",
        runbook="LogDirFillingUp",
    ),
    Problem(
        kind="group_held",
        severity="warning",
        topic="payments",
        partition=3,
        group="billing",
        what="Group billing is held up in payments-3 by the transaction of producer 4012",
        since_ms=NOW - 3 * HOUR - 11 * MINUTE,
        holds_back="88,120 records wait for it.",
        no_command="the transaction has a problem of its own, above",
        runbook="GroupHeldUp",
    ),
    Problem(
        kind="retention_blocked",
        severity="warning",
        broker=1,
        topic="audit",
        partition=0,
        what="Retention of audit-0 is blocked: a record's time is in the future",
        since_ms=NOW - 2 * DAY,
        holds_back="14.2 GiB that are beyond the limit stay.",
        no_command="names are redacted here",
        runbook="RetentionBlocked",
    ),
    Problem(
        kind="agent_down", severity="info", agent="broker-3:8815", what="Agent broker-3:8815 does not answer", since_ms=NOW - 5 * MINUTE
    ),
)

EVENTS = (
    ClusterEvent(
        kind="problem_began",
        at_ms=NOW - 5 * MINUTE,
        what="Agent broker-3:8815 does not answer",
        severity="info",
        agent="broker-3:8815",
        times=3,
        first_ms=NOW - 50 * MINUTE,
    ),
    ClusterEvent(
        kind="problem_ended",
        at_ms=NOW - 12 * MINUTE,
        what="Topic orders is under-replicated",
        severity="warning",
        topic="orders",
        lasted_ms=9 * MINUTE,
    ),
    ClusterEvent(kind="leaders_changed", at_ms=NOW - 20 * MINUTE, what="40 partitions of orders got another leader: 40 from broker 3 to 1"),
    *(
        ClusterEvent(kind="broker_restarted", at_ms=NOW - (each + 30) * MINUTE, what=f"Broker {each} was started again")
        for each in range(8)
    ),
)


def _judged(number: int) -> dict[str, Any]:
    if number == 12:
        return {"kind": "transaction_hanging", "severity": "critical", "since_ms": NOW - 3 * HOUR - 12 * MINUTE}
    return {"kind": "retention_blocked", "severity": "warning", "since_ms": NOW - 2 * DAY} if number == 2 else {}


def partition(number: int) -> PartitionRow:
    topic = ("payments", "orders", "audit", "clicks")[number % 4]
    rates = [max(0.0, (1 + number % 7) * 60_000 * (1 + math.sin((minute + number) / 9))) for minute in range(60)]
    return PartitionRow(
        broker=1 + number % 3,
        topic=topic,
        partition=number // 4,
        bytes_rate=rates[-1],
        records_rate=rates[-1] / 512,
        appended_bytes=number * 77_000_000,
        appended_records=number * 150_000,
        size_bytes=(1 + number % 50) * 210 * MIB,
        log_start_offset=1_000_000,
        log_end_offset=10_016_655 + number,
        high_watermark=10_016_655 + number,
        last_stable_offset=8_812_344 if number == 12 else 10_016_655 + number,
        unread_offsets=1_204_311 if number == 12 else 0,
        open_transactions=1 if number == 12 else 0,
        hanging_transactions=1 if number == 12 else 0,
        last_append_ms=NOW - 400 - 1000 * number,
        oldest_record_ms=NOW - 6 * DAY,
        retention_lag_ms=0,
        next_deletion_ms=NOW + HOUR * (1 + number % 40),
        retention_blocked="future_timestamp" if number == 2 else "",
        **_judged(number),
        segments=12,
        records_data=9_000_000,
        records_aborted=1200,
        records_control=800,
        rates=rates,
    )


def transaction(**values: object) -> TransactionRow:
    made = TransactionRow(
        broker=1,
        topic="payments",
        partition=3,
        producer_id=4012,
        producer_epoch=7,
        first_offset=8_812_344,
        start_ms=NOW - 3 * HOUR - 12 * MINUTE,
        last_append_ms=NOW - 3 * HOUR - 11 * MINUTE,
        verdict="hanging",
        stuck=True,
        kind="transaction_hanging",
        severity="critical",
        since_ms=NOW - 3 * HOUR - 12 * MINUTE,
        holds_offsets=1_204_311,
        groups=["billing"],
        command=ABORT,
        advice=ADVICE,
    )
    return replace(made, **values)  # type: ignore[arg-type]


def retained(row: PartitionRow) -> RetentionRow:
    blocked = bool(row.retention_blocked)
    return RetentionRow(
        broker=row.broker,
        topic=row.topic,
        partition=row.partition,
        size_bytes=row.size_bytes,
        segments=row.segments,
        oldest_record_ms=row.oldest_record_ms,
        retention_limit_ms=5 * DAY if blocked else 7 * DAY,
        retention_limit_bytes=2 << 30,
        limits_assumed=row.partition % 2 == 1,
        retention_lag_ms=DAY if blocked else 0,
        retention_overdue_ms=2 * HOUR if blocked else -1,
        retention_reclaimable_bytes=14 << 30 if blocked else 0,
        next_deletion_ms=row.next_deletion_ms,
        next_deletion_start_of=row.next_deletion_start_of,
        retention_blocked=row.retention_blocked,
        retention_blocked_why="The largest time of the oldest segment is in the future, by 3 days" if blocked else "",
        **(_judged(2) if blocked else {}),
    )


def topic(name: str) -> TopicRow:
    rates = [60_000 * (2 + math.sin(minute / 6)) for minute in range(60)]
    return TopicRow(
        topic=name,
        partitions=30,
        bytes_rate=rates[-1],
        records_rate=rates[-1] / 512,
        size_bytes=90 * GIB,
        unread_offsets=1_204_311 if name == "payments" else 0,
        open_transactions=1,
        out_of_sync=0,
        groups=2,
        last_append_ms=NOW - 400,
        oldest_record_ms=NOW - 6 * DAY,
        next_deletion_ms=NOW + HOUR,
        cleanup_policy="delete",
        retention_limit_ms=7 * DAY,
        rates=rates,
        **(_judged(12) if name == "payments" else {}),
    )


BROKER_ROWS = tuple(
    BrokerRow(
        broker=number,
        phase="running" if number < 3 else "down",
        phase_ms=NOW - 9 * DAY,
        agent=f"broker-{number}:8815",
        agent_up=number < 3,
        behind_ms=0 if number < 3 else -1,
        leaders=40,
        replicas=120,
        out_of_sync=0,
        bytes_rate=7_000_000.0,
        size_bytes=90 * GIB,
        log_dirs=2,
        **({"kind": "broker_down", "severity": "critical", "since_ms": NOW - 5 * MINUTE} if number == 3 else {}),  # type: ignore[arg-type]
    )
    for number in (1, 2, 3)
)
LOG_DIR_ROWS = (
    LogDirUse(
        broker=1, log_dir="/var/lib/kafka/data-1", taken=80 * GIB, free=900 * GIB, capacity=1000 * GIB, outlook="never", growth_day=GIB
    ),
    LogDirUse(
        broker=2,
        log_dir="/var/lib/kafka/data-2",
        taken=900 * GIB,
        free=9 * GIB,
        capacity=1000 * GIB,
        outlook="full",
        full_ms=NOW + 9 * HOUR,
        growth_day=24 * GIB,
        growth_unknown=2,
    ),
    LogDirUse(broker=3, log_dir="/var/lib/kafka/data-1", up=False, problem="agent broker-3:8815 does not answer"),
)


def minutes() -> list[Minute]:
    ends = [8_812_344 + 20_000 * number for number in range(60)]
    return [
        Minute(
            at_ms=NOW - (59 - number) * MINUTE,
            bytes_rate=-1.0 if 20 <= number < 23 else 60_000 * (2 + math.sin(number / 6)),
            records_rate=120 * (2 + math.sin(number / 6)),
            log_end_offset=end,
            last_stable_offset=min(end, 8_812_344 + 200_000),
        )
        for number, end in enumerate(ends)
    ]


def segments(count: int = 12) -> list[SegmentRow]:
    return [
        SegmentRow(
            base_offset=1_000_000 + 700_000 * number,
            size_bytes=(120 + 37 * (number % 5)) * MIB,
            max_timestamp_ms=NOW - (count - number) * 13 * HOUR,
            active=number == count - 1,
            deletable=number < 2,
            deletion_ms=NOW + number * HOUR,
        )
        for number in range(count)
    ]


def group(name: str, **values: object) -> GroupSummary:
    made = GroupSummary(
        group=name,
        type="Classic",
        protocol="consumer",
        state="Stable",
        members=3,
        partitions=8,
        lag_offsets=1_204_400,
        lag_records_read_committed=88_120,
        lag_bytes=310 * MIB,
        oldest_ms=NOW - 3 * HOUR,
        last_commit_ms=NOW - 4000,
    )
    return replace(made, **values)  # type: ignore[arg-type]


@dataclass
class MadeUpJob:
    """Makes everything up that a job would tell its page."""

    partition_rows: Sequence[PartitionRow] = field(default_factory=lambda: [partition(number) for number in range(120)])
    transaction_rows: Sequence[TransactionRow] = field(
        default_factory=lambda: [
            transaction(),
            transaction(
                topic="orders",
                partition=7,
                producer_id=88,
                transactional_id="orders-etl-1",
                verdict="open",
                kind="",
                severity="",
                since_ms=-1,
                stuck=False,
                command="",
                no_command="its producer ends it, or its coordinator does",
                coordinator_state="Ongoing",
                holds_offsets=-1,
                groups=[],
            ),
        ]
    )
    topic_rows: Sequence[TopicRow] = field(default_factory=lambda: [topic("payments"), topic("orders"), topic("clicks")])
    problem_rows: Sequence[Problem] = PROBLEMS
    event_rows: Sequence[ClusterEvent] = EVENTS
    group_rows: Sequence[GroupSummary] | None = field(
        default_factory=lambda: [
            group("billing", held=1, stopped=1, verdict="held", severity="warning", since_ms=NOW - 3 * HOUR),
            group("search", lag_records_read_committed=12, lag_bytes=5000),
            group("ETL/nightly", state="Empty", members=0, below_start=2, verdict="lost", severity="critical"),
        ]
    )
    state: Status = field(
        default_factory=lambda: Status(
            at_ms=NOW,
            version="1.0",
            ready=True,
            verdict="1 transaction hangs: payments-3 has been held for 3h 12m; 1 disk is full in 9h",
            freshness="Everything up to 0.8 s ago is in, from 2 of 3 brokers",
            severity="critical",
            critical=2,
            warning=2,
            info=1,
            newest_ms=NOW - 800,
            agents=[
                AgentState(name="broker-1:8815", up=True, brokers=[1], behind_bytes=0, behind_ms=0),
                AgentState(
                    name="broker-2:8815",
                    up=True,
                    brokers=[2],
                    behind_bytes=9_000_000,
                    behind_ms=4_200,
                    problems=["slow"],
                    explanation="It reads a backlog.",
                ),
                AgentState(
                    name="broker-3:8815",
                    up=False,
                    brokers=[3],
                    problems=["unreachable"],
                    explanation="agent at broker-3.kafka.internal.example.org:8815: nobody listens there: is it running?",
                ),
            ],
            partitions=120,
            logs=360,
            cluster_id="5L6g3nShT-eMCtK--X86sw",
            doubts=["Whether transactions of broker 3's partitions hang cannot be told while its agent is down."],
        )
    )

    def status(self) -> Status:
        return self.state

    def problems(self, query: str) -> ProblemPage:
        return problem_page(self.problem_rows, query, NOW)

    def events(self, query: str) -> EventPage:
        given = parse_qs(query)
        offset, limit = (int(given.get(name, [otherwise])[0]) for name, otherwise in (("offset", "0"), ("limit", "50")))
        rows = [each for each in self.event_rows if given.get("filter", [""])[0] in each.what]
        page = {"total": len(self.event_rows), "matched": len(rows), "offset": offset, "rows": rows[offset : offset + limit]}
        return EventPage(at_ms=NOW, since_ms=NOW - HOUR if self.event_rows else -1, **page)

    def partitions(self, query: str) -> PartitionPage:
        return PartitionPage(**_page(self.partition_rows, query, PARTITIONS))

    def topics(self, query: str) -> TopicPage:
        return TopicPage(**_listed(self.topic_rows, query, TOPICS, lambda row: row.topic))

    def topic(self, name: str) -> TopicDetail | None:
        row = next((each for each in self.topic_rows if each.topic == name), None)
        if row is None:
            return None
        reader = TopicReader(group="billing", partitions=8, lag_records=88_120, lag_offsets=1_204_400, verdict="held", severity="warning")
        problems = [each for each in self.problem_rows if each.topic == name]
        return TopicDetail(at_ms=NOW, row=row, problems=problems, readers=None if self.group_rows is None else [reader])

    def brokers(self, query: str) -> BrokerPage:
        return BrokerPage(**_listed(BROKER_ROWS, query, BROKERS, lambda row: f"broker {row.broker} {row.agent} {row.phase}"))

    def disk(self, query: str) -> DiskAnswer:
        rows = [DiskRow(topic=each.topic, replicas=3, taken=each.size_bytes, growth_day=GIB) for each in self.topic_rows]
        return DiskAnswer(at_ms=NOW, by="topic", total=len(rows), matched=len(rows), log_dirs=list(LOG_DIR_ROWS), rows=rows)

    def transactions(self, query: str) -> TransactionPage:
        page = _page(self.transaction_rows, query, TRANSACTIONS)
        return TransactionPage(**page, omitted=3, late_after_ms=60_000, young=4)

    def retention(self, query: str) -> RetentionPage:
        every = [retained(each) for each in self.partition_rows]
        return RetentionPage(**_page(every, query, RETENTION))

    def partition(self, topic: str, partition: int) -> PartitionDetail | None:
        rows = [each for each in self.partition_rows if (each.topic, each.partition) == (topic, partition)]
        if not rows:
            return None
        return PartitionDetail(
            at_ms=NOW,
            row=rows[0],
            retention=retained(rows[0]),
            transactions=[each for each in self.transaction_rows if (each.topic, each.partition) == (topic, partition)],
            problems=[each for each in self.problem_rows if (each.topic, each.partition) == (topic, partition)],
            segments=segments(),
            minutes=minutes(),
            replicas=[ReplicaRow(broker=1, role="leader", in_sync="yes", shown=True, log_dir="/var/lib/kafka/data-1", size_bytes=3 << 30)],
        )

    def groups(self, query: str) -> GroupPage:
        if self.group_rows is None:
            raise NotYetError("nothing is known of consumer groups yet")
        request = page_request(query, GROUPS)
        found = [each for each in self.group_rows if request.filter.casefold() in each.group.casefold()]
        severities = [*SEVERITIES, ""]
        known = [each for each in found if getattr(each, request.sort) != -1]
        known.sort(
            key=lambda each: severities.index(each.severity) if request.sort == "verdict" else getattr(each, request.sort),
            reverse=request.order == DESC,
        )
        rows = [*known, *(each for each in found if each not in known)][request.offset : request.offset + request.limit]
        page = {"at_ms": NOW, "total": len(self.group_rows), "matched": len(found), "offset": request.offset}
        return GroupPage(**page, sort=request.sort, order=request.order, rows=rows)

    def group(self, name: str) -> GroupDetail | None:
        if self.group_rows is None:
            raise NotYetError("nothing is known of consumer groups yet")
        summary = next((each for each in self.group_rows if each.group == name), None)
        if summary is None:
            return None
        held = HoldingTransaction(
            producer_id=4012,
            producer_epoch=7,
            first_offset=8_812_344,
            start_ms=NOW - 3 * HOUR,
            last_append_ms=NOW - 3 * HOUR,
            verdict="hanging",
        )
        partitions = [
            GroupPartition(
                topic="payments",
                partition=number,
                broker=1,
                committed=8_812_000,
                commit_ms=NOW - 5000,
                high_watermark=10_016_655,
                last_stable_offset=8_812_344,
                lag_offsets=120,
                lag_records_read_committed=100 * number,
                lag_bytes=9000,
                held=number == 3,
                verdict="held" if number == 3 else "fine",
                held_by=held if number == 3 else None,
                consumed_rate=5.5,
                appended_rate=4.0,
            )
            for number in (3, 7, 6, 5, 4, 2, 1, 0)  # the worst first
        ]
        finding = GroupFinding(
            verdict="held",
            severity="warning",
            topic="payments",
            partition=3,
            text="held up by a transaction of producer 4012",
            command="kafka-transactions.sh --bootstrap-server broker-1:9092 abort --topic payments --partition 3 --start-offset 8812344",
        )
        return GroupDetail(at_ms=NOW, summary=summary, partitions=partitions, findings=[finding], clients=["billing-1"])

    def cost(self) -> Cost:
        return Cost(
            at_ms=NOW - 9000,
            series=48_211,
            bytes=6_900_000,
            duration_ms=210,
            metrics=[
                Share(name="segtail_partition_batch_bytes_bucket", series=14_000, bytes=2_300_000),
                Share(name="segtail_partition_size_bytes", series=120, bytes=9000),
            ],
            topics=[Share(name="payments", series=20_000, bytes=3_000_000)],
            omitted_topics=4,
        )


def _listed(rows: Sequence[Any], query: str, listing: Listing, text: Callable[[Any], str]) -> dict[str, Any]:
    request = page_request(query, listing)
    found = [each for each in rows if request.filter.casefold() in text(each).casefold()]
    severities = [*SEVERITIES, ""]
    ordered = sorted(
        found,
        key=lambda each: severities.index(each.severity) if request.sort == "kind" else getattr(each, request.sort),
        reverse=request.order == DESC,
    )
    return {
        **{"at_ms": NOW, "total": len(rows), "matched": len(found), "offset": request.offset, "sort": request.sort, "order": request.order},
        "rows": ordered[request.offset : request.offset + request.limit],
    }


def _page(rows: Sequence[Any], query: str, listing: Listing) -> dict[str, Any]:
    request = page_request(query, listing)
    some = [each for each in rows if not request.topics or each.topic in request.topics]
    text = request.filter.casefold()
    found = [each for each in some if text in f"{each.topic}-{each.partition} {getattr(each, 'transactional_id', '')}".casefold()]
    severities = [*SEVERITIES, ""]

    def key(each: Any) -> tuple[Any, ...]:
        by = severities.index(each.severity) if request.sort in ("kind", "verdict") else getattr(each, request.sort)
        return by, each.topic, each.partition

    ordered = sorted(found, key=key, reverse=request.order == DESC)
    return {
        **{"at_ms": NOW, "total": len(rows), "matched": len(found), "offset": request.offset, "sort": request.sort, "order": request.order},
        "rows": ordered[request.offset : request.offset + request.limit],
    }


def starting(status: Status) -> Status:
    """The same of a job that starts."""
    start = JobStart(
        step="reading", what="Reading the disks: 41 %, 82.0 MiB of 197.0 MiB, 12s left", done_bytes=82 * MIB, all_bytes=197 * MIB
    )
    return replace(status, ready=False, start=start, newest_ms=-1, verdict=f"{start.what}. So far: {status.verdict}")


def site_of(world: MadeUpJob) -> PageSite:
    """The page of a world, which stands in for a job's `State`."""
    return PageSite(cast(State, world), world.cost)
