"""Applies one row to the transactions of one log: `streaming.rules.transaction_fold` on the state of the fold."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from streaming.common.column_types import plus
from streaming.common.event_row import EventRow
from streaming.common.rows import TRANSACTION_STEPS, TRANSACTIONS, Step
from streaming.rules import transaction_fold as rule
from streaming.rules.log_state import LogState
from streaming.rules.transaction_fold import Steps, TransactionOutcome, Transactions

log = logging.getLogger(__name__)


def found(state: LogState, row: EventRow) -> LogState:
    """The state with the transactions that are open at the row's ``next_offset``.

    They come from the log's files, or from the steps of a range that a reader lost on the way there.

    If ``transactions`` is None, the row contains nothing about them. If it is empty, no transaction is open.
    """
    if row.transactions is None:
        return state
    steps = _steps(row)
    if len(steps) and steps["step"][0] != Step.ONGOING:
        return counted(state, row, state.appended_bytes, share=row.leads != 0)
    return _with(state, rule.resumed(_kept(state), steps), transactional=bool(len(steps)))


def _steps(row: EventRow) -> Steps:
    data = row.transactions or b""
    if len(data) % TRANSACTION_STEPS.itemsize:
        log.error(
            "transactions of a range are not understood: is the agent of another version?",
            extra={"log": f"{row.topic}-{row.partition}", "seq": row.seq},
        )
        return np.empty(0, TRANSACTION_STEPS)
    return np.frombuffer(data, TRANSACTION_STEPS)


def counted(state: LogState, row: EventRow, appended_before: int, *, share: bool) -> LogState:
    """The state with the transactions of a range that was just counted.

    Args:
        appended_before: bytes that were counted before the range.
        share: whether it counts for the topic too.
    """
    if not row.transactions and state.transactions is None:
        return state
    before, steps = _kept(state), _steps(row)
    after, outcome = rule.advance(before, steps, appended_before)
    return replace(state, **_open(state, after, transactional=bool(len(steps))), **_ended(state, outcome, share=share))


def _kept(state: LogState) -> Transactions:
    return np.frombuffer(state.transactions or b"", TRANSACTIONS)


def _open(state: LogState, transactions: Transactions, *, transactional: bool) -> dict[str, Any]:
    packed = transactions.tobytes() if len(transactions) else None
    return {"transactions": packed, "transactional": state.transactional or transactional}


def _ended(state: LogState, outcome: TransactionOutcome, *, share: bool) -> dict[str, Any]:
    """The changed counters, as values for a single copy of the state, because each copy costs as much as the rule itself."""
    if outcome is rule.NOTHING_ENDED:
        return {}
    after: dict[str, Any] = {
        "committed_transactions": plus(state.committed_transactions, outcome.committed),
        "aborted_transactions": plus(state.aborted_transactions, outcome.aborted),
        "empty_markers": plus(state.empty_markers, outcome.empty_markers),
        "aborted_bytes": plus(state.aborted_bytes, outcome.aborted_bytes),
    }
    if share:
        after["share_transaction_buckets"] = plus(state.share_transaction_buckets, outcome.duration_buckets)
        after["share_transaction_ms"] = plus(state.share_transaction_ms, outcome.duration_ms)
    return after


def _with(state: LogState, transactions: Transactions, *, transactional: bool = False) -> LogState:
    return replace(state, **_open(state, transactions, transactional=transactional))


def truncated(state: LogState, offset: int, cut_bytes: int) -> LogState:
    """The state after a truncation at ``offset``."""
    if state.transactions is None:
        return state
    return _with(state, rule.truncated(_kept(state), offset, cut_bytes))


def drop_replicated(state: LogState) -> LogState:
    """The state without closed transactions that the high watermark or the log start has passed."""
    if state.transactions is None:
        return state
    passed = max(state.log_start_offset, state.high_watermark)
    before = _kept(state)
    after = rule.replicated(before, passed)
    return state if len(after) == len(before) else _with(state, after)
