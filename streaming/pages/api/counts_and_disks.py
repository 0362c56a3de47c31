"""The answers about how many records there are and about disks, whether a job or a command has counted or read them."""

from collections.abc import Sequence
from dataclasses import replace

from streaming.broker.protocol import disk_json, listing_json
from streaming.broker.protocol.group_messages import is_counted
from streaming.broker.protocol.listing_json import BY_PARTITION, BY_TOPIC, CountPage, CountRow
from streaming.cluster.usage.disk_answer import DiskContents, answer_of
from streaming.cluster.verdicts.log_problems import why_uncounted
from streaming.errors import UsageError
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.log_rows import partition_columns
from streaming.pages.api.paging import TOPIC, filter_of, limit_of, offset_of, parameters_of, topics_of
from streaming.pages.listings.declared_lists import by_topic, uncounted


def count_page(judged: JudgedLook, query: str, largest: int) -> CountPage:
    """What a job knows of the logs that it follows: they are counted whole, from their starts to their ends.

    The metadata log, which no agent counts, is there only if it is named.
    """
    named = topics_of(query)
    rows = [row for row in _rows(judged) if is_counted(row.topic) or row.topic in named]
    return page_of(rows, query, judged.look.now_ms, largest)


def _rows(judged: JudgedLook) -> list[CountRow]:
    look = judged.look
    columns = {name: column.tolist() for name, column in partition_columns(look).items()}
    leaders = (look.view.logs["leader"] > 0).tolist()
    rows = [
        CountRow(
            topic=look.topics[item],
            partition=partition,
            broker=columns["broker"][item],
            leader=leaders[item],
            first_offset=columns["log_start_offset"][item],
            next_offset=columns["log_end_offset"][item],
            high_watermark=columns["high_watermark"][item],
            last_stable_offset=columns["last_stable_offset"][item],
            data=columns["records_data"][item],
            aborted=columns["records_aborted"][item],
            control=columns["records_control"][item],
        )
        for item, partition in enumerate(columns["partition"])
    ]
    missing = [item for item, row in enumerate(rows) if row.data < 0]
    reasons = why_uncounted(judged.circumstances, look.snapshot, look.view.logs.items[missing].tolist())
    for item, reason in zip(missing, reasons, strict=True):
        rows[item] = replace(rows[item], error=reason)
    return rows


def page_of(rows: Sequence[CountRow], query: str, at_ms: int, largest: int) -> CountPage:
    """The rows that a query asks for; ``doubts``: which partitions among them are not counted, and why.

    The page of how many records there are: made of rows of partitions, whoever has counted them.

    Args:
        rows: of partitions.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    given = parameters_of(query, ("by", "filter", TOPIC, "offset", "limit"))
    by, text, topics, offset = given.get("by", BY_TOPIC), filter_of(given).casefold(), topics_of(query), offset_of(given)
    if by not in listing_json.BY:
        raise UsageError(f"by is not one of {', '.join(listing_json.BY)}")
    ordered = sorted(rows, key=lambda row: (row.topic, row.partition, row.broker))
    those = [row for row in ordered if (not topics or row.topic in topics) and text in f"{row.topic}-{row.partition}".casefold()]
    every, matched = (ordered, those) if by == BY_PARTITION else (by_topic(ordered), by_topic(those))
    limit = limit_of(given, largest=largest)
    return CountPage(
        at_ms=at_ms,
        doubts=list(uncounted(those)),
        by=by,
        total=len(every),
        matched=len(matched),
        offset=offset,
        rows=matched[offset : offset + limit],
    )


def disk_page(disks: DiskContents, query: str, largest: int) -> disk_json.DiskAnswer:
    """The log dirs, with the rows that a query asks for.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    given = parameters_of(query, ("by", TOPIC, "filter", "offset", "limit"))
    by, topics = given.get("by", disk_json.BY[0]), topics_of(query)
    if by not in disk_json.BY:
        raise UsageError(f"by is one of {', '.join(disk_json.BY)}")
    if topics and by == "kind":
        raise UsageError("by kind there are no rows of a topic: which kinds of files a topic has is not known")
    limit = limit_of(given, largest=largest)
    return answer_of(disks, by, limit, offset=offset_of(given), topics=topics, text=filter_of(given))
