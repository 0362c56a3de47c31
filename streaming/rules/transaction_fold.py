"""The transactions of one log: those that are open, and those closed by a marker that may not be replicated yet.

The rule is Kafka's (`ProducerStateManager`, `ProducerAppendInfo`). The first transactional batch of a producer opens a transaction, and a
marker of that producer closes it, whatever the epochs are. A marker without an open transaction is empty. A closed transaction holds the
last stable offset back until the high watermark has passed its marker. Everything is stored in arrays, because one log may have 100,000
transactions, and 5,000 logs may have one each.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.rows import TRANSACTION_SECONDS_BOUNDS, TRANSACTIONS, StartSource, Step

Transactions = NDArray[np.void]
"""An array of `TRANSACTIONS`, sorted by ``first_offset``. Never changed in place."""

Steps = NDArray[np.void]
"""An array of `streaming.common.rows.TRANSACTION_STEPS`."""

NO_TRANSACTIONS: Transactions = np.empty(0, TRANSACTIONS)

OPEN = -1
"""``committed`` of a transaction that no marker has closed yet."""

_BOUNDS_MS = np.array(TRANSACTION_SECONDS_BOUNDS) * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutcome:
    """The transactions that ended in a range.

    ``aborted_bytes`` are the data bytes of those that were aborted. ``duration_buckets`` (by
    `streaming.common.rows.TRANSACTION_SECONDS_BOUNDS`, not cumulative) and their sum ``duration_ms`` cover the transactions whose first
    batch was seen.
    """

    committed: int = 0
    aborted: int = 0
    empty_markers: int = 0
    aborted_bytes: int = 0
    duration_ms: int = 0
    duration_buckets: tuple[int, ...] = (0,) * (len(TRANSACTION_SECONDS_BOUNDS) + 1)


def advance(transactions: Transactions, steps: Steps, appended_before: int) -> tuple[Transactions, TransactionOutcome]:
    """Add a range that begins at the end of the log so far.

    Args:
        appended_before: bytes of the log that were counted before the range.

    Returns:
        The transactions after the range, and those that ended in it.
    """
    if not len(steps):
        return transactions, NOTHING_ENDED
    # One sequence of the transactions that were open before and the range's steps of the same producers; everything else is unchanged.
    concerned = _concerned(transactions, steps["producer_id"])
    rows = np.concatenate([transactions.take(concerned), _as_transactions(steps, appended_before)])
    kinds = np.concatenate([np.full(len(concerned), Step.ONGOING, np.uint8), steps["step"]])
    order = np.argsort(rows["producer_id"], kind="stable")
    rows, kinds = rows.take(order), kinds[order]  # take is many times faster than indexing where items are structured
    marker = (kinds == Step.COMMIT) | (kinds == Step.ABORT)
    # A run is one transaction: it ends with a marker or with the producer's last row. If it begins with a marker, it has opened nothing.
    begins = np.empty(len(rows), np.bool_)
    begins[0] = True
    begins[1:] = marker[:-1] | (rows["producer_id"][1:] != rows["producer_id"][:-1])
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(rows)) - 1
    opened = ~marker[firsts]
    runs = _runs(rows, kinds, marker, firsts, lasts).compress(opened)
    before = order[firsts][opened]  # below len(concerned): the open transaction that continues in the run
    outcome = _outcome(runs, rows["start_ms"][lasts][opened], len(firsts) - len(runs))
    return _with(transactions, concerned, before, runs), outcome


NOTHING_ENDED = TransactionOutcome()


def _concerned(transactions: Transactions, producer_ids: NDArray[np.int64]) -> NDArray[np.intp]:
    """The indexes of these producers' open transactions."""
    owners = transactions["producer_id"]
    near = (owners >= producer_ids.min()) & (owners <= producer_ids.max())
    places = np.flatnonzero(near & (transactions["committed"] == OPEN))
    return places[np.isin(owners[places], producer_ids)] if len(places) else places


def _as_transactions(steps: Steps, appended_before: int) -> Transactions:
    """Each step as an open transaction of its own."""
    rows = np.empty(len(steps), TRANSACTIONS)
    for name in ("source", "producer_epoch", "producer_id", "first_offset", "next_offset", "bytes", "start_ms", "last_ms"):
        rows[name] = steps[name]
    rows["committed"], rows["marker_offset"] = OPEN, -1
    rows["bytes_at"] = np.where(steps["step"] == Step.ONGOING, -1, appended_before + steps["bytes_before"])
    return rows


def _runs(
    rows: Transactions, kinds: NDArray[np.uint8], marker: NDArray[np.bool_], firsts: NDArray[np.intp], lasts: NDArray[np.intp]
) -> Transactions:
    """One row for each run. For a run that is an empty marker, the row has no meaning."""
    closed = marker[lasts]
    lasts_of_data = np.maximum(lasts - closed, firsts)
    found = rows.take(firsts)  # producer, start and first offset: from the first row
    found["producer_epoch"] = rows["producer_epoch"][lasts_of_data]
    found["next_offset"] = rows["next_offset"][lasts_of_data]
    found["bytes"] = np.add.reduceat(np.where(marker, 0, rows["bytes"]), firsts)
    found["last_ms"] = np.maximum.reduceat(np.where(marker, -1, rows["last_ms"]), firsts)
    found["committed"] = np.where(closed, kinds[lasts] == Step.COMMIT, OPEN)
    found["marker_offset"] = np.where(closed, rows["first_offset"][lasts], -1)
    return found


def _outcome(after: Transactions, ended_ms: NDArray[np.int64], empty_markers: int) -> TransactionOutcome:
    """The transactions that ended among the runs; ``ended_ms`` is when each was closed."""
    closed = after["committed"] != OPEN
    if not closed.any():
        return TransactionOutcome(empty_markers=empty_markers) if empty_markers else NOTHING_ENDED
    aborted = after["committed"] == 0
    timed = closed & (after["source"] != StartSource.SNAPSHOT)
    durations = np.maximum(ended_ms - after["start_ms"], 0)[timed]  # two clocks: an end may seem to be before its beginning
    buckets = np.bincount(np.searchsorted(_BOUNDS_MS, durations), minlength=len(_BOUNDS_MS) + 1)
    return TransactionOutcome(
        committed=int(np.count_nonzero(after["committed"] == 1)),
        aborted=int(np.count_nonzero(aborted)),
        empty_markers=empty_markers,
        aborted_bytes=int(after["bytes"][aborted].sum()),
        duration_ms=int(durations.sum()),
        duration_buckets=tuple(buckets.tolist()),
    )


def _with(transactions: Transactions, concerned: NDArray[np.intp], before: NDArray[np.intp], runs: Transactions) -> Transactions:
    old = before < len(concerned)
    changed = transactions.copy()
    changed[concerned[before[old]]] = runs.compress(old)  # a transaction keeps its first offset, and so its index
    new = runs.compress(~old)
    if not len(new):
        return changed
    new = new.take(np.argsort(new["first_offset"]))
    changed = np.concatenate([changed, new])
    if len(transactions) and new["first_offset"][0] < transactions["first_offset"][-1]:  # from a snapshot: not the last to begin
        changed = changed.take(np.argsort(changed["first_offset"], kind="stable"))
    return changed


def truncated(transactions: Transactions, offset: int, cut_bytes: int) -> Transactions:
    """Remove ``cut_bytes`` bytes that were cut off at ``offset``: transactions opened there are gone, those closed there are open again.

    Transactions that `replicated` has removed do not come back: only an unclean election cuts below the high watermark. If the files show
    which transactions are open at ``offset``, `resumed` is more exact.
    """
    if not len(transactions):
        return transactions
    before = transactions.compress(transactions["first_offset"] < offset)
    reopened = before["marker_offset"] >= offset
    before["committed"][reopened], before["marker_offset"][reopened] = OPEN, -1
    shortened = before["next_offset"] > offset
    if shortened.any():  # how many of its bytes were cut off is not known: estimated by the mean size of an offset
        part = (offset - before["first_offset"]) / (before["next_offset"] - before["first_offset"])
        before["bytes"] = np.where(shortened, before["bytes"] * part, before["bytes"])
        before["next_offset"] = np.where(shortened, offset, before["next_offset"])
    before["bytes_at"] += np.where(before["bytes_at"] >= 0, cut_bytes, 0)  # these bytes will be appended, and counted, once more
    return before


def resumed(transactions: Transactions, ongoing: Steps) -> Transactions:
    """Set the open transactions where reading continues after a gap or a truncation, from the log's files: only steps of kind ONGOING.

    A known transaction keeps its times and sizes. If a transaction is open here but not listed, a marker in the gap closed it, and that
    marker was not read. A transaction that was closed before the gap stays as it is.
    """
    is_open = transactions["committed"] == OPEN
    known, listed = transactions.compress(is_open), _as_transactions(ongoing, 0)
    kept = np.concatenate([transactions.compress(~is_open), known.compress(_among(known, listed)), listed.compress(~_among(listed, known))])
    return kept.take(np.argsort(kept["first_offset"], kind="stable"))


def _among(some: Transactions, others: Transactions) -> NDArray[np.bool_]:
    """Which transactions are among the others, by producer and first offset."""
    found = set(_identities(others))
    return np.fromiter((identity in found for identity in _identities(some)), np.bool_, len(some))


def _identities(transactions: Transactions) -> Iterator[tuple[int, int]]:
    return zip(transactions["producer_id"].tolist(), transactions["first_offset"].tolist(), strict=True)


def replicated(transactions: Transactions, high_watermark: int) -> Transactions:
    """Remove transactions closed by a marker below the high watermark (`ProducerStateManager.removeUnreplicatedTransactions`).

    A log start after the marker has the same effect (`ProducerStateManager.onLogStartOffsetIncremented`). An open transaction stays open
    even if its first batches are deleted, and then the last stable offset is the log start.
    """
    closed = transactions["committed"] != OPEN
    if not closed.any():
        return transactions
    return transactions.compress(~closed | (transactions["marker_offset"] >= high_watermark))


def open_ones(transactions: Transactions) -> Transactions:
    """The transactions without a marker yet, in the order of their first offsets."""
    return transactions.compress(transactions["committed"] == OPEN)
