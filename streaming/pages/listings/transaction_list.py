"""The list of open transactions."""

from collections.abc import Sequence

from streaming.broker.protocol.listing_json import TRANSACTIONS_PATH, TransactionPage, TransactionRow
from streaming.common.formatting import NONE, format_be, format_list, format_name, format_word
from streaming.pages.listings.list_cells import MOST_NAMES, Cell, Times, length, of_partition, words
from streaming.pages.listings.listing import Listing


def _producer(row: TransactionRow, _: Times) -> Cell:
    return Cell(text=f"{row.producer_id}, epoch {row.producer_epoch}" if row.producer_epoch >= 0 else str(row.producer_id))


def _verdict(row: TransactionRow, times: Times) -> Cell:
    stated = (words(row.verdict or "not known"), *(["stuck"] if row.stuck else []))
    return Cell(text=", ".join((*stated, *([f"seen {times.of(row.as_of_ms)}"] if row.as_of_ms >= 0 else []))))


def _groups(names: Sequence[str]) -> Cell:
    return Cell(
        text=format_list([format_name(each) for each in names], MOST_NAMES) or NONE,
        groups=tuple(names[:MOST_NAMES]),
        note=f"and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else "",
    )


def advice(row: TransactionRow) -> str:
    """What to know before its command is run, as sentences; "" if there is nothing."""
    return f"{row.advice[:1].upper()}{row.advice[1:]}." if row.advice else ""


def open_long(late_after_ms: int, young: int) -> str:
    """Which transactions a list has, and how many others are open: the end of a sentence without its period."""
    listed = f"open for longer than {length(late_after_ms)}" if late_after_ms >= 0 else "open"
    return listed + (f"; {young:,} {format_be(young)} younger" if young else "")


def _what_to_do(row: TransactionRow, _: Times) -> Cell:
    if row.command:
        return Cell(text="", command=row.command, note=advice(row))
    return Cell(text=row.no_command or NONE, note=advice(row))


TRANSACTIONS = Listing(
    name="transactions",
    noun="transaction",
    row=TransactionRow,
    path=TRANSACTIONS_PATH,
    page=TransactionPage,
    default="verdict",
    off_page=("coordinator_state", "broker", "first_offset", "producer_id"),
    cells={
        "topic": of_partition,
        "producer_id": _producer,
        "transactional_id": lambda row, _: Cell(text=format_word(row.transactional_id) if row.transactional_id else NONE),
        "verdict": _verdict,
        "held_groups": lambda row, _: _groups(row.held_groups or ()),
        "groups": lambda row, _: _groups(row.groups),
        "command": _what_to_do,
    },
)
