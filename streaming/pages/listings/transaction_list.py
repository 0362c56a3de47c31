"""The list of open transactions."""

from collections.abc import Sequence

from streaming.broker.protocol.listing_json import TransactionRow
from streaming.common.formatting import NONE, format_be, format_list, format_name, format_word
from streaming.pages.listings.list_cells import MOST_NAMES, Cell, Times, Unit, length, words
from streaming.pages.listings.listing import ASCENDING, DESCENDING, JUDGED, WIDE, Field, Listing
from streaming.pages.listings.partition_list import NUMBER, broker_field, partition_field


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
    off_page=("coordinator_state", "broker", "first_offset", "producer_id"),
    default="verdict",
    fields=(
        broker_field(10),
        partition_field(),
        NUMBER,
        Field(
            name="producer_id",
            unit=Unit.ID,
            meaning="of the transaction there",
            heading="Producer",
            rank=7,
            sort=DESCENDING,
            key="U",
            cell=_producer,
        ),
        Field(name="producer_epoch", unit=Unit.ID, meaning="likewise", sort=DESCENDING),
        Field(
            name="first_offset", unit=Unit.ID, meaning="of the transaction there", heading="First offset", rank=8, sort=DESCENDING, key="F"
        ),
        Field(name="start_ms", unit=Unit.MOMENT, meaning="when it began", heading="Open since", rank=3, sort=ASCENDING, key="S"),
        Field(
            name="last_append_ms",
            unit=Unit.MOMENT,
            meaning="its last append, by the time of that record; not before it began",
            heading="Last append",
            rank=6,
            sort=DESCENDING,
            key="L",
        ),
        Field(
            name="transactional_id",
            unit=Unit.NAME,
            meaning="as its coordinator has it; `null` if none knows its producer",
            heading="Transactional id",
            rank=5,
            sort=ASCENDING,
            key="I",
            least=12,
            cell=lambda row, _: Cell(text=format_word(row.transactional_id) if row.transactional_id else NONE),
        ),
        Field(name="coordinator_state", unit=Unit.WORD, meaning="likewise", heading="Coordinator", rank=9, sort=ASCENDING, key="C"),
        Field(
            name="verdict",
            unit=Unit.WORD,
            meaning="as in [transactions.md](transactions.md)",
            heading="Verdict",
            rank=2,
            sort=ASCENDING,
            key="V",
            toned=True,
            least=8,
            cell=_verdict,
        ),
        Field(name="stuck", unit=Unit.FLAG, meaning="likewise", sort=DESCENDING),
        Field(
            name="holds_offsets",
            unit=Unit.COUNT,
            meaning="what readers of committed data do not see because of it; `null` if another transaction before it holds them back, or "
            "if that is not known",
            heading="Holds back",
            rank=4,
            sort=DESCENDING,
            key="H",
        ),
        Field(
            name="deadline_ms",
            unit=Unit.MOMENT,
            meaning="when its timeout has passed, and its coordinator ends it; `null` if it has none, or if that is not known",
        ),
        Field(name="as_of_ms", unit=Unit.MOMENT, meaning="when its verdict was last certain; `null` if it is now"),
        Field(
            name="held_groups",
            unit=Unit.NAMES,
            meaning="consumer groups that do not read on because of it; `null` where no groups are read",
            heading="Groups that wait",
            rank=11,
            least=6,
            rare=True,
            cell=lambda row, _: _groups(row.held_groups or ()),
        ),
        Field(
            name="groups",
            unit=Unit.NAMES,
            meaning="consumer groups whose commits wait for it",
            heading="Commits that wait",
            rank=12,
            least=6,
            rare=True,
            cell=lambda row, _: _groups(row.groups),
        ),
        Field(
            name="command",
            unit=Unit.SENTENCE,
            meaning="what aborts it if it hangs, or ends it if it is stuck; else what asks its coordinator",
            heading="What to do",
            rank=WIDE,
            cell=_what_to_do,
        ),
        Field(name="no_command", unit=Unit.SENTENCE, meaning="why there is no command"),
        Field(name="advice", unit=Unit.SENTENCE, meaning="what to know before it is run, and what it does; `null` if it only asks"),
        *JUDGED,
    ),
)
