"""The transactions of one log: which are open, and which are closed by a marker that may not be replicated yet.

The rule is Kafka's (`ProducerStateManager`, `ProducerAppendInfo`): the first transactional batch of a producer opens, a marker of that
producer closes, whatever the epochs are; a marker that finds nothing open is empty; what is closed holds the last stable offset until the
high watermark has passed its marker. All of it as arrays: a log may hold 100,000 of them, and 5,000 logs one each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import add

import numpy as np
from numpy.typing import NDArray

from streaming.rows import TRANSACTION_SECONDS_BOUNDS, TRANSACTIONS, StartSource, Step

Transactions = NDArray[np.void]
"""An array of `TRANSACTIONS`, sorted by ``first_offset``. Never changed in place."""

Steps = NDArray[np.void]
"""An array of `streaming.rows.TRANSACTION_STEPS`."""

NO_TRANSACTIONS: Transactions = np.empty(0, TRANSACTIONS)

OPEN = -1
"""``committed`` of a transaction that no marker has closed yet."""

_BOUNDS_MS = np.array(TRANSACTION_SECONDS_BOUNDS) * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What ended in a range.

    ``aborted_bytes`` are those of the data that ended aborted. ``duration_buckets`` (by `streaming.rows.TRANSACTION_SECONDS_BOUNDS`, not
    cumulative) and ``duration_ms``, their sum, are over the transactions whose first batch was seen.
    """

    committed: int = 0
    aborted: int = 0
    empty_markers: int = 0
    aborted_bytes: int = 0
    duration_ms: int = 0
    duration_buckets: tuple[int, ...] = (0,) * (len(TRANSACTION_SECONDS_BOUNDS) + 1)

    def plus(self, later: "Outcome") -> "Outcome":
        """Both together."""
        return Outcome(
            committed=self.committed + later.committed,
            aborted=self.aborted + later.aborted,
            empty_markers=self.empty_markers + later.empty_markers,
            aborted_bytes=self.aborted_bytes + later.aborted_bytes,
            duration_ms=self.duration_ms + later.duration_ms,
            duration_buckets=tuple(map(add, self.duration_buckets, later.duration_buckets)),
        )


NOTHING_ENDED = Outcome()


def advance(transactions: Transactions, steps: Steps, appended_before: int) -> tuple[Transactions, Outcome]:
    """Take in a range that begins where the log ended so far.

    Args:
        appended_before: bytes that were counted of the log before the range.

    Returns:
        The transactions after it, and what ended in it.
    """
    if not len(steps):
        return transactions, NOTHING_ENDED
    # What was open before and what the range says of the same producers, as one sequence; all else stays as it is.
    concerned = _concerned(transactions, steps["producer_id"])
    rows = np.concatenate([transactions.take(concerned), _as_transactions(steps, appended_before)])
    kinds = np.concatenate([np.full(len(concerned), Step.ONGOING, np.uint8), steps["step"]])
    order = np.argsort(rows["producer_id"], kind="stable")
    rows, kinds = rows.take(order), kinds[order]  # take is many times faster than indexing where items are structured
    marker = (kinds == Step.COMMIT) | (kinds == Step.ABORT)
    # A run is one transaction: it ends with a marker or with the producer's last row. One that begins with a marker has opened nothing.
    begins = np.empty(len(rows), np.bool_)
    begins[0] = True
    begins[1:] = marker[:-1] | (rows["producer_id"][1:] != rows["producer_id"][:-1])
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(rows)) - 1
    opened = ~marker[firsts]
    runs = _runs(rows, kinds, marker, firsts, lasts).compress(opened)
    before = order[firsts][opened]  # below len(concerned): which of these goes on in the run
    outcome = _outcome(runs, rows["start_ms"][lasts][opened], len(firsts) - len(runs))
    return _with(transactions, concerned, before, runs), outcome


def _with(transactions: Transactions, concerned: NDArray[np.intp], before: NDArray[np.intp], runs: Transactions) -> Transactions:
    old = before < len(concerned)
    changed = transactions.copy()
    changed[concerned[before[old]]] = runs.compress(old)  # a transaction keeps its first offset, and so its place
    fresh = runs.compress(~old)
    if not len(fresh):
        return changed
    fresh = fresh.take(np.argsort(fresh["first_offset"]))
    changed = np.concatenate([changed, fresh])
    if len(transactions) and fresh["first_offset"][0] < transactions["first_offset"][-1]:  # from a snapshot: not the last to begin
        changed = changed.take(np.argsort(changed["first_offset"], kind="stable"))
    return changed


def _concerned(transactions: Transactions, producer_ids: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where the open ones of these producers stand."""
    owners = transactions["producer_id"]
    near = (owners >= producer_ids.min()) & (owners <= producer_ids.max())
    places = np.flatnonzero(near & (transactions["committed"] == OPEN))
    return places[np.isin(owners[places], producer_ids)] if len(places) else places


def _as_transactions(steps: Steps, appended_before: int) -> Transactions:
    """Each step as if it were a transaction of its own, open."""
    rows = np.empty(len(steps), TRANSACTIONS)
    for name in ("source", "producer_epoch", "producer_id", "first_offset", "next_offset", "bytes", "start_ms", "last_ms"):
        rows[name] = steps[name]
    rows["committed"], rows["marker_offset"] = OPEN, -1
    rows["bytes_at"] = np.where(steps["step"] == Step.ONGOING, -1, appended_before + steps["bytes_before"])
    return rows


def _runs(
    rows: Transactions, kinds: NDArray[np.uint8], marker: NDArray[np.bool_], firsts: NDArray[np.intp], lasts: NDArray[np.intp]
) -> Transactions:
    """One row a run. A run that is an empty marker gets a row that means nothing."""
    closed = marker[lasts]
    lasts_of_data = np.maximum(lasts - closed, firsts)
    found = rows.take(firsts)  # who, since when and where from: of the first
    found["producer_epoch"] = rows["producer_epoch"][lasts_of_data]
    found["next_offset"] = rows["next_offset"][lasts_of_data]
    found["bytes"] = np.add.reduceat(np.where(marker, 0, rows["bytes"]), firsts)
    found["last_ms"] = np.maximum.reduceat(np.where(marker, -1, rows["last_ms"]), firsts)
    found["committed"] = np.where(closed, kinds[lasts] == Step.COMMIT, OPEN)
    found["marker_offset"] = np.where(closed, rows["first_offset"][lasts], -1)
    return found


def _outcome(after: Transactions, ended_ms: NDArray[np.int64], empty_markers: int) -> Outcome:
    """What ended among the runs; ``ended_ms`` is when each was closed."""
    closed = after["committed"] != OPEN
    if not closed.any():
        return Outcome(empty_markers=empty_markers) if empty_markers else NOTHING_ENDED
    aborted = after["committed"] == 0
    timed = closed & (after["source"] != StartSource.SNAPSHOT)
    durations = np.maximum(ended_ms - after["start_ms"], 0)[timed]  # two clocks: an end may seem to lie before its beginning
    buckets = np.bincount(np.searchsorted(_BOUNDS_MS, durations), minlength=len(_BOUNDS_MS) + 1)
    return Outcome(
        committed=int(np.count_nonzero(after["committed"] == 1)),
        aborted=int(np.count_nonzero(aborted)),
        empty_markers=empty_markers,
        aborted_bytes=int(after["bytes"][aborted].sum()),
        duration_ms=int(durations.sum()),
        duration_buckets=tuple(buckets.tolist()),
    )


def truncated(transactions: Transactions, offset: int, cut_bytes: int) -> Transactions:
    """Take back ``cut_bytes`` bytes that were cut off at ``offset``: what was opened there is gone, what was closed there is open again.

    What has left by `replicated` does not come back: only an unclean election cuts below the high watermark. Where the files can tell what
    is open at ``offset``, `resumed` tells more.
    """
    if not len(transactions):
        return transactions
    kept = transactions.compress(transactions["first_offset"] < offset)
    reopened = kept["marker_offset"] >= offset
    kept["committed"][reopened], kept["marker_offset"][reopened] = OPEN, -1
    shortened = kept["next_offset"] > offset
    if shortened.any():  # how much of its data went is not known: by the mean size of an offset
        part = (offset - kept["first_offset"]) / (kept["next_offset"] - kept["first_offset"])
        kept["bytes"] = np.where(shortened, kept["bytes"] * part, kept["bytes"])
        kept["next_offset"] = np.where(shortened, offset, kept["next_offset"])
    kept["bytes_at"] += np.where(kept["bytes_at"] >= 0, cut_bytes, 0)  # these will be appended, and counted, once more
    return kept


def resumed(transactions: Transactions, ongoing: Steps) -> Transactions:
    """What is open where a log is read on behind a hole, or behind a cut, as its files tell: steps of kind ONGOING alone.

    What is known already keeps its times and sizes; what is open here and not told was closed in the hole by a marker that nobody saw. What
    was closed before the hole stays as it is.
    """
    is_open = transactions["committed"] == OPEN
    known, told = transactions.compress(is_open), _as_transactions(ongoing, 0)
    kept = np.concatenate([transactions.compress(~is_open), known.compress(_among(known, told)), told.compress(~_among(told, known))])
    return kept.take(np.argsort(kept["first_offset"], kind="stable"))


def _among(some: Transactions, others: Transactions) -> NDArray[np.bool_]:
    """Which of some are among others, by producer and first offset."""
    found = set(_identities(others))
    return np.fromiter((identity in found for identity in _identities(some)), np.bool_, len(some))


def _identities(transactions: Transactions) -> Iterator[tuple[int, int]]:
    return zip(transactions["producer_id"].tolist(), transactions["first_offset"].tolist(), strict=True)


def replicated(transactions: Transactions, high_watermark: int) -> Transactions:
    """Let go of what is closed by a marker below the high watermark (`ProducerStateManager.removeUnreplicatedTransactions`).

    So does a log start behind the marker (`ProducerStateManager.onLogStartOffsetIncremented`): what is open stays open though its first
    batches are deleted, and the last stable offset stops at the start.
    """
    closed = transactions["committed"] != OPEN
    if not closed.any():
        return transactions
    return transactions.compress(~closed | (transactions["marker_offset"] >= high_watermark))


def open_ones(transactions: Transactions) -> Transactions:
    """Those with data and no marker yet, in the order of their first offsets."""
    return transactions.compress(transactions["committed"] == OPEN)
