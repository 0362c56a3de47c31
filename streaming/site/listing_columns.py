"""The columns of the page's tables of partitions, transactions and retention."""

from streaming.formatting import format_count, format_duration, format_size, format_word
from streaming.protocol.listing_json import PartitionRow, RetentionRow, TransactionRow
from streaming.protocol.problem_json import CRITICAL, WARNING
from streaming.site.page_charts import spark
from streaming.site.page_tables import ASCENDING, Column
from streaming.site.page_words import (
    NOTHING,
    UNKNOWN,
    Cell,
    bytes_rate,
    deletion,
    group_reference,
    moment,
    number,
    partition_cell,
    records_rate,
    size,
    span,
)

_HANGING = "hanging"


def _throughput(row: PartitionRow, now_ms: int) -> Cell:
    if not any(rate >= 0 for rate in row.rates):
        return Cell(text=bytes_rate(row.bytes_rate))
    title = f"Last hour: at most {bytes_rate(max(row.rates))}"
    return Cell(text=bytes_rate(row.bytes_rate), line=spark(row.rates, title))


def _held_back(row: PartitionRow, now_ms: int) -> Cell:
    note = f"{format_count(row.hanging_transactions, 'transaction')} hanging" if row.hanging_transactions > 0 else ""
    return Cell(text=number(row.unread_offsets).text, note=note, tone=CRITICAL if note else "")


def _deletion(row: PartitionRow, now_ms: int) -> Cell:
    if row.blocked:
        return Cell(text="blocked", note=row.blocked.replace("_", " "), tone=WARNING)
    return deletion(row.next_deletion_ms, now_ms)


PARTITION_COLUMNS: tuple[Column[PartitionRow], ...] = (
    Column(head="Partition", cell=lambda row, _: partition_cell(row.topic, row.partition), sort="topic", first=ASCENDING),
    Column(head="Broker", cell=lambda row, _: number(row.broker), sort="broker", numbers=True, first=ASCENDING),
    Column(head="Bytes a second", cell=_throughput, sort="bytes_rate", numbers=True),
    Column(head="Records a second", cell=lambda row, _: Cell(text=records_rate(row.records_rate)), sort="records_rate", numbers=True),
    Column(head="Size", cell=lambda row, _: size(row.size_bytes), sort="size_bytes", numbers=True),
    Column(head="Offsets held back", cell=_held_back, sort="unread_offsets", numbers=True),
    Column(head="Open transactions", cell=lambda row, _: number(row.open_transactions), sort="open_transactions", numbers=True),
    Column(head="Last append", cell=lambda row, now: moment(row.last_append_ms, now), sort="last_append_ms"),
    Column(head="Next deletion by time", cell=_deletion, sort="next_deletion_ms", first=ASCENDING),
)


def _producer(row: TransactionRow, now_ms: int) -> Cell:
    name = format_word(row.transactional_id) if row.transactional_id else "transactional.id not known"
    epoch = f", epoch {row.producer_epoch}" if row.producer_epoch >= 0 else ""
    return Cell(text=name, note=f"producer {row.producer_id}{epoch}", name=True)


def verdict_cell(row: TransactionRow) -> Cell:
    """The verdict about a transaction; what its coordinator says of it below."""
    words = [row.verdict.replace("_", " ") or UNKNOWN, *(["stuck"] if row.stuck else [])]
    tone = CRITICAL if row.verdict == _HANGING else WARNING if row.stuck else ""
    return Cell(text=", ".join(words), note=f"coordinator: {row.coordinator_state}" if row.coordinator_state else "", tone=tone)


def _waiting(row: TransactionRow, now_ms: int) -> Cell:
    return Cell(text="" if row.groups else NOTHING, links=tuple(map(group_reference, row.groups)))


def _what_to_do(row: TransactionRow, now_ms: int) -> Cell:
    return Cell(command=row.command) if row.command else Cell(text=row.no_command or NOTHING)


TRANSACTION_COLUMNS: tuple[Column[TransactionRow], ...] = (
    Column(head="Partition", cell=lambda row, _: partition_cell(row.topic, row.partition), sort="topic", first=ASCENDING),
    Column(head="Transaction", cell=_producer, sort="transactional_id", first=ASCENDING),
    Column(head="Verdict", cell=lambda row, _: verdict_cell(row), sort="verdict", first=ASCENDING),
    Column(head="Open since", cell=lambda row, now: moment(row.start_ms, now), sort="start_ms", first=ASCENDING),
    Column(head="Last append", cell=lambda row, now: moment(row.last_append_ms, now), sort="last_append_ms"),
    Column(head="First offset", cell=lambda row, _: number(row.first_offset), sort="first_offset", numbers=True),
    Column(head="Offsets held back", cell=lambda row, _: number(row.holds_offsets), sort="holds_offsets", numbers=True),
    Column(head="Groups that wait", cell=_waiting),
    Column(head="What to do", cell=_what_to_do),
)


def limit_words(row: RetentionRow) -> Cell:
    """The limits of retention."""
    limits = [
        *([format_duration(row.retention_ms / 1000)] if row.retention_ms >= 0 else []),
        *([format_size(row.retention_bytes)] if row.retention_bytes >= 0 else []),
    ]
    return Cell(text=", ".join(limits) or "none", note="assumed: Kafka's default" if row.limits_assumed else "")


def _blocked(row: RetentionRow, now_ms: int) -> Cell:
    return Cell(text=row.blocked.replace("_", " "), note=row.blocked_why, tone=WARNING) if row.blocked else Cell(text=NOTHING)


RETENTION_COLUMNS: tuple[Column[RetentionRow], ...] = (
    Column(head="Partition", cell=lambda row, _: partition_cell(row.topic, row.partition), sort="topic", first=ASCENDING),
    Column(head="Size", cell=lambda row, _: size(row.size_bytes), sort="size_bytes", numbers=True),
    Column(head="Segments", cell=lambda row, _: number(row.segments), sort="segments", numbers=True),
    Column(head="Oldest record", cell=lambda row, now: moment(row.oldest_record_ms, now), sort="oldest_record_ms", first=ASCENDING),
    Column(head="Limit", cell=lambda row, _: limit_words(row), sort="retention_ms"),
    Column(head="Kept too long", cell=lambda row, _: Cell(text=span(row.lag_ms)), sort="lag_ms", numbers=True),
    Column(head="Deletion overdue", cell=lambda row, _: Cell(text=span(row.overdue_ms)), sort="overdue_ms", numbers=True),
    Column(head="Beyond a limit", cell=lambda row, _: size(row.reclaimable_bytes), sort="reclaimable_bytes", numbers=True),
    Column(
        head="Next deletion by time", cell=lambda row, now: deletion(row.next_deletion_ms, now), sort="next_deletion_ms", first=ASCENDING
    ),
    Column(head="Blocked", cell=_blocked, sort="blocked"),
)
