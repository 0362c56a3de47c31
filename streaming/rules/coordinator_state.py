"""The state of a log of `__transaction_state`: the newest entry of each transactional id, and the offset up to which this is complete.

The log is compacted, so its present content is its state. ``coordinator_upto`` is the offset up to which every entry since the first byte
has been folded. It advances as long as each row begins where the one before it ended, whether or not the row's bytes have been counted
before. After the first gap, truncation or flaw it is not known (-1). Then the agent reads the log again from its first byte, and the
entries that it finds replace the kept ones. They have to be replaced, because an id that has expired meanwhile may have left no tombstone.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.arrays import Flags, Longs
from streaming.common.event_row import EventRow
from streaming.common.rows import COORDINATOR, NOT_UNDERSTOOD, TOMBSTONE, Kind, pack_rows, unpack_entries
from streaming.common.short_names import LONGEST_NAME, SHORT_CHARS, is_short_form, short_name
from streaming.rules.log_state import LogState

log = logging.getLogger(__name__)

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
"""The states in a coordinator's entries, spelled as in `segtail_coordinator_transactions` (`TransactionState`)."""

ONGOING, PREPARE_COMMIT, PREPARE_ABORT = (STATES.index(name) for name in ("Ongoing", "PrepareCommit", "PrepareAbort"))
NO_STATE = -1

NOT_KNOWN = -1
"""Stands for a time that is not known."""

_LOST = -1


@dataclass(frozen=True, slots=True, eq=False)
class Coordinators:
    """The newest entries by producer id: columns of equal length, one item for each producer, sorted by producer id.

    ``state`` is an index into `STATES`; ``item`` is the index of the entry in its table. ``current``: the entry comes from a log that was
    read to its end. ``complete``: there are no other entries.
    """

    table: pa.Table
    item: Longs
    producer_id: Longs
    state: Longs
    timeout_ms: Longs
    start_ms: Longs
    current: Flags
    complete: bool

    @classmethod
    def of(cls, table: pa.Table, *, complete: bool, current: Flags | None = None, ahead_ms: Longs | None = None) -> "Coordinators":
        """Index the table that `newest` returned.

        An entry that is not understood may be any producer's. So ``complete`` is False if there is one.

        A coordinator never gives a producer id to two transactional ids. If two have the same one, the entry that was updated last counts.

        Args:
            current: which entries come from a log that was read to its end; None for all of them.
            ahead_ms: by how much the clock of each entry's coordinator is ahead; None if none is.
        """
        codes = _codes(table)
        ids, updated = table["producer_id"].to_numpy(), table["last_update_ms"].to_numpy()
        order = np.lexsort((updated, ids))
        order = order[codes[order] >= 0]
        item = order[np.append(ids[order][1:] != ids[order][:-1], True)] if len(order) else order
        start_ms = table["start_ms"].to_numpy()[item]
        if ahead_ms is not None:
            start_ms = np.where(start_ms >= 0, start_ms - ahead_ms[item], start_ms)
        return cls(
            table=table,
            item=item,
            producer_id=ids[item],
            state=codes[item],
            timeout_ms=table["timeout_ms"].to_numpy()[item].astype(np.int64),
            start_ms=start_ms,
            current=np.ones(len(item), np.bool_) if current is None else current[item],
            complete=complete and bool((codes >= 0).all()),
        )

    @property
    def not_understood(self) -> int:
        """The number of entries that are not understood."""
        return int(np.count_nonzero(np.asarray(self.table["state"]) == NOT_UNDERSTOOD))

    @property
    def shortened(self) -> int:
        """The number of transactional ids that are short forms of longer ones."""
        ids = self.table["transactional_id"]
        return sum(map(is_short_form, ids.filter(pc.equal(pc.utf8_length(ids), SHORT_CHARS)).to_pylist()))

    def find(self, producer_ids: Longs) -> Longs:
        """The item of each producer in these columns, -1 if no coordinator has it."""
        if not len(self.producer_id):
            return np.full(len(producer_ids), -1, np.int64)
        places = np.minimum(np.searchsorted(self.producer_id, producer_ids), len(self.producer_id) - 1)
        found: Longs = np.where(self.producer_id[places] == producer_ids, places, -1)
        return found

    def is_current(self, items: Longs) -> Flags:
        """Whether the entry of each item comes from a log that was read to its end; False for item -1."""
        known = items >= 0
        found = np.zeros(len(items), np.bool_)
        found[known] = self.current[items[known]]
        return found

    def names(self, items: Longs, producer_ids: Longs) -> list[str]:
        """The transactional ids. For item -1 it is the id that has used up the epochs of that producer id, "" if there is none."""
        known = items >= 0
        ids = iter(self.table["transactional_id"].take(self.item[items[known]]).to_pylist())
        named = [next(ids) if one else "" for one in known.tolist()]
        if known.all():
            return named
        previous = zip(self.table["previous_producer_id"].to_pylist(), self.table["transactional_id"].to_pylist(), strict=True)
        before = {producer: name for producer, name in previous if producer is not None and producer >= 0}
        return [name or before.get(producer, "") for name, producer in zip(named, producer_ids.tolist(), strict=True)]

    def takes_part(self, items: Longs, partitions: list[str]) -> Flags:
        """Whether the entry of each item lists the partition with the same index ("topic-partition"); False for item -1."""
        rows = np.flatnonzero(items >= 0)
        wanted = np.unique(items[rows])
        if not len(wanted):
            return np.zeros(len(items), np.bool_)
        lists = self.table["partitions"].take(self.item[wanted]).combine_chunks()
        owners = np.repeat(wanted, lists.value_lengths().fill_null(0).to_numpy())
        listed = set(zip(owners.tolist(), lists.flatten().to_pylist(), strict=True))
        found = np.zeros(len(items), np.bool_)
        found[rows] = [(items_of, partitions[place]) in listed for items_of, place in zip(items[rows].tolist(), rows.tolist(), strict=True)]
        return found


def _codes(table: pa.Table) -> Longs:
    """The index into `STATES` for each entry, `NO_STATE` if its state is none of them."""
    places = {name: code for code, name in enumerate(STATES)}
    encoded = table["state"].combine_chunks().dictionary_encode()
    codes = np.array([places.get(name, NO_STATE) for name in encoded.dictionary.to_pylist()], np.int64)
    return codes[encoded.indices.to_numpy()] if len(codes) else np.empty(0, np.int64)


def count_states(table: pa.Table) -> tuple[int, ...]:
    """How many entries are in each of `STATES`."""
    codes = _codes(table)
    return tuple(np.bincount(codes[codes >= 0], minlength=len(STATES)).tolist())


def all_read(partitions: int | None, read: int, unreadable: int) -> bool:
    """Whether all coordinators' logs were read, so that an entry that was not found does not exist.

    Args:
        partitions: how many `__transaction_state` has; 0 if readable metadata has no such topic, None if no metadata is readable.
        read: how many of them were read from a current replica.
        unreadable: records in them that could not be read.
    """
    return partitions is not None and read >= partitions and not unreadable


def taken(before: LogState | None, after: LogState, row: EventRow) -> LogState:
    """The log with a row's entries added.

    Args:
        before: the log before the row, None where it was not known.
        after: the log with all other changes of the row.
    """
    if row.kind == Kind.APPEARED:
        if row.coordinator is not None:
            whole = before is not None and 0 <= before.log_end_offset <= before.coordinator_upto
            if whole and before is not None and before.journal == row.journal and row.next_offset <= before.coordinator_upto:
                return after  # it is sent for another job
            return _kept(after, [row.coordinator], row, row.next_offset)
        goes_on = row.next_offset <= after.coordinator_upto or 0 <= row.follows <= after.coordinator_upto
        return after if goes_on else replace(after, coordinator_upto=_LOST)
    if after.coordinator_upto < 0:
        return after if row.coordinator is None else _kept(after, [after.coordinator, row.coordinator], row, _LOST)
    if row.kind in (Kind.CORRUPT, Kind.SKIPPED):
        return replace(after, coordinator_upto=_LOST)
    return _learnt(after, row) if row.kind == Kind.APPENDED else after


def _kept(state: LogState, packed: list[bytes | None], row: EventRow, upto: int) -> LogState:
    """The log with the newest of some entries. Of the last pack, entries before ``coordinator_upto`` are ignored."""
    try:
        tables = [pa.Table.from_batches([unpack_entries(each)], COORDINATOR) for each in packed if each is not None]
    except pa.ArrowInvalid as error:
        log.error(
            "coordinators' entries are not understood: is the agent of another version?",
            extra={"log": f"{row.topic}-{row.partition}", "seq": row.seq, "error": str(error)},
        )
        return replace(state, coordinator_upto=_LOST)
    if len(packed) > 1 and state.coordinator_upto >= 0:
        tables[-1] = tables[-1].filter(pc.greater_equal(tables[-1]["offset"], state.coordinator_upto))
    together = newest(tables)
    (batch,) = together.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], COORDINATOR)]
    return replace(state, coordinator=pack_rows(batch), coordinator_upto=upto)


def newest(tables: Iterable[pa.Table]) -> pa.Table:
    """Return the newest entry of every transactional id as one table of `streaming.common.rows.COORDINATOR`, without expired ones.

    The entries of all transaction coordinators: the newest one of every transactional id, found by producer id.

    All entries of a transactional id are in one partition, so the entry with the higher offset is newer.
    """
    table = _with_short_names(pa.concat_tables([COORDINATOR.empty_table(), *tables]))
    if not len(table):
        return table
    ids = table["transactional_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.lexsort((table["offset"].to_numpy(), ids))
    lasts = order[np.append(ids[order][1:] != ids[order][:-1], True)]
    last = table.take(np.sort(lasts))
    return last.filter(pc.not_equal(last["state"], TOMBSTONE))


def _with_short_names(table: pa.Table) -> pa.Table:
    """The entries by their short names. No agent of this version sends long ones; what one of another sends is bounded here."""
    ids = table["transactional_id"]
    if not pc.any(pc.greater(pc.utf8_length(ids), LONGEST_NAME)).as_py():
        return table
    shortened = [name if len(name) <= LONGEST_NAME else short_name(name) for name in ids.to_pylist()]
    return table.set_column(table.column_names.index("transactional_id"), COORDINATOR.field("transactional_id"), [shortened])


def _learnt(state: LogState, row: EventRow) -> LogState:
    """The log with the entries of a range. If the range was sent before, only its new entries are added."""
    upto = state.coordinator_upto
    if row.next_offset <= upto:
        return state
    goes_on = 0 <= row.follows <= upto
    if row.coordinator is None:
        return replace(state, coordinator_upto=row.next_offset if goes_on else _LOST)
    return _kept(state, [state.coordinator, row.coordinator], row, row.next_offset if goes_on else _LOST)


def cut(state: LogState, offset: int) -> LogState:
    """The log after a truncation at ``offset``: entries that were overwritten there are not kept, so completeness is lost."""
    return replace(state, coordinator_upto=_LOST) if state.coordinator_upto > offset else state
