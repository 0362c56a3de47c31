"""``segtail count``: show how many records there are, as consumers would get them."""

from collections.abc import Iterator, Sequence

import click

from streaming.broker.protocol.listing_json import BY, BY_TOPIC, COUNT_PATH, CountPage, CountRow
from streaming.common.settings import Settings
from streaming.common.units import format_be, format_count, format_list
from streaming.pages.listings.declared_lists import COUNTS, uncounted
from streaming.pages.listings.listing import Times
from streaming.pages.listings.text_table import text_table
from streaming.terminal.cli.lists import AT_START, Answer, ListRequest, ListSource, check_topics, print_list, topics_here, with_list
from streaming.terminal.cli.source import NOT_KNOWN

_NAMED = 5


@click.command("count")
@with_list("server_properties", "read_rate")
@click.option("--by", type=click.Choice(BY), default=BY_TOPIC, show_default=True, help="One line for each.")
def command(settings: Settings, wanted: ListRequest, by: str) -> int:
    """Count the records of all topics, or of those that are named.

    It reads the headers of all batches in Kafka's log dirs, whether brokers are up or down, and checks their CRCs; no record is opened or
    shown. What is damaged has no count: its file and place are named. One replica of
    each partition is counted: the leader, if it is known and here, else the one that is furthest; from its log start to its high watermark.
    A running job says what it has counted of whole logs, up to their ends, and why others are not counted.

    "Data" are records that producers have sent, without those that compaction has removed; "aborted" those of them that belong to aborted
    transactions; "control" markers of transactions, which have offsets too. "Readable" is what a consumer with read_committed
    gets: data that is not aborted, up to the last stable offset. One with read_uncommitted gets "data".

    Exit status: 0 done, 4 something could not be read or counted, 1 failed, 2 not possible as asked.
    """
    source = ListSource(wanted, None if wanted.job else _counted(settings, wanted), settings.log_dirs)
    partitions = source.page(COUNT_PATH, CountPage, by="partition")
    if wanted.job is not None:
        of_rows = {*uncounted(partitions.rows)}  # these have rows: it is not in doubt that they are there
        source.check_names(COUNT_PATH, CountPage, [each for each in partitions.doubts if each not in of_rows])
    page = partitions if by == "partition" else source.page(COUNT_PATH, CountPage, by=by)
    print_list(page, wanted, _lines(page, partitions.rows, wanted.width), AT_START["count"])
    return NOT_KNOWN if page.doubts else 0


def _counted(settings: Settings, wanted: ListRequest) -> Answer:
    from streaming.broker.disk.log_dir_search import open_below
    from streaming.common.progress_line import ProgressLine
    from streaming.terminal.offline.record_counts import count_records, counted_page

    with ProgressLine.on_stderr() as progress:
        counts = count_records(open_below(settings.log_dirs), wanted.names, settings, wanted.now_ms, progress)
    check_topics(wanted, counts.topics, counts.unread, lambda: topics_here(settings.log_dirs))
    return lambda _, query: counted_page(counts, query, wanted.now_ms)


def _lines(page: CountPage, partitions: Sequence[CountRow], width: int | None) -> Iterator[str]:
    """A table that fits the width, the sum, and what is not in it."""
    yield from text_table(COUNTS[page.by], page.rows, Times(page.at_ms), width)
    yield ""
    counted = [row for row in partitions if row.data >= 0]
    data, aborted, control = (sum(getattr(row, name) for row in counted) for name in ("data", "aborted", "control"))
    within = format_count(len(counted), "partition")
    yield f"{format_count(data, 'data record')} in {within}, {aborted:,} of them aborted, and {format_count(control, 'control record')}"
    yield from _notes(partitions)


def _notes(rows: Sequence[CountRow]) -> Iterator[str]:
    """What is not counted, and why, in sentences."""
    waiting = [row for row in rows if row.waiting > 0]
    if waiting:
        total = sum(row.waiting for row in waiting)
        yield f"{total:,} {'waits' if total == 1 else 'wait'} for open transactions (see `segtail transactions`): {_named(waiting)}"
    unreplicated = [row for row in rows if row.unreplicated > 0]
    if unreplicated:
        total = sum(row.unreplicated for row in unreplicated)
        yield (
            f"{total:,} after the high watermark {format_be(total)} not counted, because consumers may not read them yet, "
            f"as far as can be told here: {_named(unreplicated)}"
        )
    remote = [row for row in rows if row.remote_offsets > 0]
    if remote:
        total = sum(row.remote_offsets for row in remote)
        yield f"{format_count(total, 'offset')} {format_be(total)} only in remote storage, and not counted: {_named(remote)}"
    unknown = [row for row in rows if row.high_watermark < 0 and row.next_offset >= 0 and row.data >= 0]
    if unknown:
        yield f"counted to the end of the log, because the high watermark is not known: {_named(unknown)}"


def _named(rows: Sequence[CountRow]) -> str:
    return format_list([f"{row.topic}-{row.partition}" for row in rows], _NAMED)
