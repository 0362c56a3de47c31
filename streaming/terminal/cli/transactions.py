"""``segtail transactions``: show the open transactions, and which of them will never end."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import click

from streaming.broker.protocol.listing_json import PARTITIONS_PATH, TRANSACTIONS_PATH, PartitionPage, TransactionPage, TransactionRow
from streaming.common.settings import Settings
from streaming.common.units import format_list, format_word
from streaming.pages.listings.declared_lists import TRANSACTIONS, advice, open_long
from streaming.pages.listings.listing import Times
from streaming.pages.listings.text_table import text_table
from streaming.terminal.cli.lists import AT_START, ListRequest, print_list, source_of, with_list
from streaming.terminal.cli.printing import ShellCommand
from streaming.terminal.cli.source import EXIT_STATUS, FOUND, NOT_KNOWN, NOTHING_FOUND

HANGING, OVERDUE, UNKNOWN = "hanging", "overdue", "unknown"

_NAMED = 5

_OF_A_JOB = (
    "The logs of all coordinators (__transaction_state) decide that. After its start a job reads them once more, where an agent has them."
)


@click.command("transactions", epilog=EXIT_STATUS)
@with_list("server_properties", "hanging_after", "stuck_after")
def command(settings: Settings, wanted: ListRequest) -> int:
    """Show every open transaction: its start, its producer, what it holds back from readers, and its verdict.

    It reads Kafka's log dirs, whether brokers are up or down, or asks a running job, which lists those that are open for longer than its
    late_after; give the log dirs of all brokers that are readable here. A transaction holds back the offsets that readers of committed data
    cannot see yet.

    A transaction is hanging if no coordinator will ever end it and it has been silent for --hanging-after; until then it is unclaimed. The
    command that aborts a transaction is shown for hanging ones only: to abort a live one breaks exactly-once. If a coordinator's log cannot
    be read, the verdict on a transaction that no coordinator knows is "unknown". A transaction that has been silent for --stuck-after, and
    is neither hanging, overdue nor in two-phase commit, is also stuck.

    Something is found if a transaction is hanging, stuck or overdue.
    """
    source = source_of(settings, wanted, TRANSACTIONS_PATH)
    page = source.page(TRANSACTIONS_PATH, TransactionPage)
    source.check_names(PARTITIONS_PATH, PartitionPage, page.doubts)
    unknown = any(row.verdict == UNKNOWN for row in page.rows)
    if unknown and wanted.job:
        page = replace(page, doubts=[*page.doubts, _OF_A_JOB])
    overdue = any(row.verdict == OVERDUE or 0 <= row.deadline_ms < page.at_ms for row in page.rows)
    total = _sum(page.rows, page.omitted + page.young)
    print_list(page, wanted, _lines(page, wanted.width), AT_START["transactions"] if overdue else "", total)
    return FOUND if _wrong(page) else NOT_KNOWN if page.doubts or unknown else NOTHING_FOUND


def _sum(rows: Sequence[TransactionRow], unlisted: int) -> str:
    """How many are open, and how many of them the table calls what."""
    hanging, overdue, unknown = (sum(row.verdict == verdict for row in rows) for verdict in (HANGING, OVERDUE, UNKNOWN))
    stuck = sum(row.stuck for row in rows)
    words = [f"{count:,} of them {word}" for count, word in ((stuck, "stuck"), (overdue, "overdue")) if count]
    words += [f"{hanging:,} hanging"] if hanging or not unknown else []
    whether = f"; whether {unknown:,} of them {'hangs' if unknown == 1 else 'hang'} is not known" if unknown else ""
    listed = f"{len(rows) + unlisted:,} open, {len(rows):,} of them listed" if unlisted else f"{len(rows):,} open"
    return ", ".join([listed, *words]) + whether


def _lines(page: TransactionPage, width: int | None) -> Iterator[str]:
    """A table that fits the width, the commands for those that are wrong with what to know before."""
    if page.rows:
        yield from text_table(TRANSACTIONS, page.rows, Times(page.at_ms), width)
        yield ""
    wrong = _wrong(page)
    for before, rows in groupby((row for row in wrong if row.command), advice):
        some = list(rows)
        names = [*dict.fromkeys(f"{row.topic}-{row.partition}" for row in some)]
        yield f"{format_list(names, _NAMED)}: {before or 'What the coordinator has of it:'}"
        yield from (*map(ShellCommand, dict.fromkeys(row.command for row in some)), "")
    for row in wrong:
        if row.groups:
            groups = ", ".join(map(format_word, row.groups))
            yield f"Committed offsets of these groups wait for {row.topic}-{row.partition} at {row.first_offset}: {groups}"
            yield "Their consumers get UNSTABLE_OFFSET_COMMIT where they ask for stable offsets, and their offsets do not expire."
            yield ""
    if page.omitted:
        yield f"{page.omitted:,} more are only counted: late_limit is how many are listed"
    if page.young:
        yield f"listed are only transactions {open_long(page.late_after_ms, page.young)}"
    yield from page.aborting


def _wrong(page: TransactionPage) -> list[TransactionRow]:
    """Those that are hanging, stuck or overdue by what their rows say."""
    return [row for row in page.rows if row.stuck or row.verdict in (HANGING, OVERDUE)]
