"""A partition in detail: its state, its problems, its open transactions, its last hour, its segments and replicas."""

from collections.abc import Iterator

from streaming.broker.protocol.listing_json import PartitionDetail, RetentionRow, TransactionRow
from streaming.common.formatting import NONE, format_count, format_name, format_table
from streaming.pages.listings.cells import cut
from streaming.pages.listings.list_cells import Times, count, curve, length, number, place, rate, size, word
from streaming.pages.listings.partition_list import next_deletion, segment_deletion
from streaming.pages.listings.transaction_list import advice, open_long
from streaming.terminal.top.labelled_text import DetailLine, all_labelled, command_lines, title
from streaming.terminal.top.problem_lines import problem_list


def partition_lines(detail: PartitionDetail, times: Times, width: int) -> list[DetailLine]:
    """Everything about a partition, what is wrong first."""
    return [
        *title(place(detail.row.topic, detail.row.partition), width),
        *all_labelled(_facts(detail, times), width),
        *problem_list(detail.problems, times, width),
        *(line for each in detail.transactions for line in _transaction(each, times, width)),
        *_hour(detail, width),
        *_segments(detail, times, width),
        *_replicas(detail, times, width),
    ]


def _facts(detail: PartitionDetail, times: Times) -> Iterator[tuple[str, str]]:
    row = detail.row
    yield "broker", number(row.broker)
    yield "offsets", f"{number(row.log_start_offset)} to {number(row.log_end_offset)}, high watermark {number(row.high_watermark)}"
    hidden = f", {count(row.unread_offsets)} offsets below the high watermark are not readable" if row.unread_offsets > 0 else ""
    yield "last stable", f"{number(row.last_stable_offset)}{hidden}"
    yield "appended", f"{size(row.bytes_rate)}/s, {rate(row.records_rate)} records/s, the last {times.of(row.last_append_ms)}"
    yield "on disk", f"{size(row.size_bytes)} in {_segment_count(row.segments)}, the oldest record {times.of(row.oldest_record_ms)}"
    if row.records_data >= 0:
        aborted, control = count(row.records_aborted), count(row.records_control)
        yield "records", f"{count(row.records_data)} of data, {aborted} of them aborted, {control} control records"
    elif detail.records_why:
        yield "records", f"not counted: {detail.records_why}"
    if detail.young_transactions:
        yield "transactions", f"below is what is {open_long(detail.late_after_ms, detail.young_transactions)}"
    if detail.retention is not None:
        yield "retention", _retention(detail.retention, times)
        yield "blocked", detail.retention.retention_blocked_why or detail.retention.retention_blocked


def _segment_count(segments: int) -> str:
    return "segments not known" if segments < 0 else format_count(segments, "segment")


def _retention(row: RetentionRow, times: Times) -> str:
    limits = (length(row.retention_limit_ms), size(row.retention_limit_bytes))
    named = " or ".join(each for each in limits if each != NONE) or "no limit"
    assumed = " (assumed)" if row.limits_assumed else ""
    overdue = f", overdue for {length(row.retention_overdue_ms)}" if row.retention_overdue_ms > 0 else ""
    frees = f", {size(row.retention_reclaimable_bytes)} beyond the limits" if row.retention_reclaimable_bytes > 0 else ""
    following = next_deletion(row, times).text
    deletion = f", the next deletion {following}" if following != NONE else ""
    return f"{named}{assumed}{overdue}{frees}{deletion}"


def _transaction(row: TransactionRow, times: Times, width: int) -> list[DetailLine]:
    stuck = ", stuck" if row.stuck else ""
    return [
        *title(f"open transaction of producer {row.producer_id}, epoch {number(row.producer_epoch)}: {word(row.verdict)}{stuck}", width),
        *all_labelled(
            (
                ("since", f"{times.of(row.start_ms)}, the last append {times.of(row.last_append_ms)}"),
                ("offsets", f"from {number(row.first_offset)} on, holds back {count(row.holds_offsets)}"),
                ("id", f"{word(row.transactional_id)}, its coordinator has {word(row.coordinator_state)}"),
                ("groups", ", ".join(map(format_name, row.groups))),
            ),
            width,
        ),
        *command_lines(row.command, row.no_command, width, advice(row)),
    ]


def _hour(detail: PartitionDetail, width: int) -> list[DetailLine]:
    rates = [each.bytes_rate for each in detail.minutes]
    if not rates or max(rates) < 0:
        return []
    minutes = f"the last {len(rates)} minutes, bytes/s at most {size(max(rates))}"
    return [*title(minutes, width), DetailLine(curve(rates, min(width, 60)))]


def _segments(detail: PartitionDetail, times: Times, width: int) -> list[DetailLine]:
    if not detail.segments:
        return []
    heads = ("segment from", "size", "newest record", "deleted")
    rows: list[tuple[str | None, ...]] = [heads]
    for each in detail.segments:
        deletion = "active" if each.active else segment_deletion(each, detail.row, times)
        rows.append((str(each.base_offset), size(each.size_bytes), times.of(each.max_timestamp_ms), deletion))
    omitted = f", {detail.omitted:,} in the middle left out" if detail.omitted else ""
    return [*title(f"segments{omitted}", width), *_table(rows, ("segment from", "size"), width)]


def _replicas(detail: PartitionDetail, times: Times, width: int) -> list[DetailLine]:
    if not detail.replicas:
        return []
    rows: list[tuple[str | None, ...]] = [("broker", "role", "in sync", "size", "end offset", "last append", "log dir")]
    for each in detail.replicas:
        end, last = number(each.log_end_offset), times.of(each.last_append_ms)
        rows.append((number(each.broker), each.role, each.in_sync, size(each.size_bytes), end, last, each.log_dir or NONE))
    return [*title("replicas", width), *_table(rows, ("broker", "size", "end offset"), width)]


def _table(rows: list[tuple[str | None, ...]], right: tuple[str, ...], width: int) -> list[DetailLine]:
    return [DetailLine(cut(line, width)) for line in format_table(rows, right)]
