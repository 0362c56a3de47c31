"""What is said of a transaction that a consumer group waits for: one that holds its records back, or its own commits."""

from dataclasses import replace

from streaming.metrics.open_list import Late
from streaming.protocol.group_json import HoldingTransaction, PendingOffset


def holding(late: Late) -> HoldingTransaction:
    """A transaction that holds back the last stable offset."""
    return HoldingTransaction(
        producer_id=late.producer_id,
        producer_epoch=late.producer_epoch,
        first_offset=late.first_offset,
        start_ms=late.start_ms,
        last_append_ms=late.last_ms,
        transactional_id=late.transactional_id,
        state=late.state,
        verdict=late.verdict,
        deadline_ms=late.deadline_ms,
    )


def with_transaction(pending: PendingOffset, late: Late | None) -> PendingOffset:
    """A pending commit with what is known of its transaction, None for nothing."""
    if late is None:
        return pending
    return replace(
        pending,
        since_ms=late.first_ms if late.first_ms >= 0 else pending.since_ms,
        start_ms=late.start_ms,
        first_offset=late.first_offset,
        transactional_id=late.transactional_id,
        verdict=late.verdict,
        deadline_ms=late.deadline_ms,
    )
