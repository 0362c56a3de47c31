"""A partition in detail: its state, its problems, its open transactions, its last hour, its segments and replicas."""

from collections.abc import Iterator

from streaming.broker.protocol.listing_json import RetentionRow, TransactionRow
from streaming.broker.protocol.partition_json import PartitionDetail
from streaming.common.formatting import NONE, format_count, format_name, format_table
from streaming.pages.listings.list_cells import Times, count, curve, length, number, place, rate, size, word
from streaming.terminal.top.cells import cut
from streaming.terminal.top.labelled_text import Line, all_labelled, command_lines, title
from streaming.terminal.top.problem_lines import problem_list


def partition_lines(of: PartitionDetail, times: Times, width: int) -> list[Line]:
    """Everything about a partition, what is wrong first."""
    return [
        *title(place(of.row.topic, of.row.partition), width),
        *all_labelled(_facts(of, times), width),
        *problem_list(of.problems, times, width),
        *(line for each in of.transactions for line in _transaction(each, times, width)),
        *_hour(of, width),
        *_segments(of, times, width),
        *_replicas(of, times, width),
    ]


def _facts(of: PartitionDetail, times: Times) -> Iterator[tuple[str, str]]:
    row = of.row
    yield "broker", number(row.broker)
    yield "offsets", f"{number(row.log_start_offset)} to {number(row.log_end_offset)}, high watermark {number(row.high_watermark)}"
    hidden = f", {count(row.unread_offsets)} offsets below the high watermark are not readable" if row.unread_offsets > 0 else ""
    yield "last stable", f"{number(row.last_stable_offset)}{hidden}"
    yield "appended", f"{size(row.bytes_rate)}/s, {rate(row.records_rate)} records/s, the last {times.of(row.last_append_ms)}"
    yield "on disk", f"{size(row.size_bytes)} in {_segment_count(row.segments)}, the oldest record {times.of(row.oldest_record_ms)}"
    if row.records_data >= 0:
        aborted, control = count(row.records_aborted), count(row.records_control)
        yield "records", f"{count(row.records_data)} of data, {aborted} of them aborted, {control} control records"
    if of.retention is not None:
        yield "retention", _retention(of.retention, times)
        yield "blocked", of.retention.retention_blocked_why or of.retention.retention_blocked


def _segment_count(segments: int) -> str:
    return "segments not known" if segments < 0 else format_count(segments, "segment")


def _retention(of: RetentionRow, times: Times) -> str:
    limits = (length(of.retention_limit_ms), size(of.retention_limit_bytes))
    named = " or ".join(each for each in limits if each != NONE) or "no limit"
    assumed = " (assumed)" if of.limits_assumed else ""
    overdue = f", overdue for {length(of.retention_overdue_ms)}" if of.retention_overdue_ms > 0 else ""
    frees = f", {size(of.retention_reclaimable_bytes)} beyond the limits" if of.retention_reclaimable_bytes > 0 else ""
    deletion = f", the next deletion by time {times.of(of.next_deletion_ms)}" if of.next_deletion_ms >= 0 else ""
    return f"{named}{assumed}{overdue}{frees}{deletion}"


def _transaction(of: TransactionRow, times: Times, width: int) -> list[Line]:
    stuck = ", stuck" if of.stuck else ""
    return [
        *title(f"open transaction of producer {of.producer_id}, epoch {number(of.producer_epoch)}: {word(of.verdict)}{stuck}", width),
        *all_labelled(
            (
                ("since", f"{times.of(of.start_ms)}, the last append {times.of(of.last_append_ms)}"),
                ("offsets", f"from {number(of.first_offset)} on, holds back {count(of.holds_offsets)}"),
                ("id", f"{word(of.transactional_id)}, its coordinator has {word(of.coordinator_state)}"),
                ("groups", ", ".join(map(format_name, of.groups))),
            ),
            width,
        ),
        *command_lines(of.command, of.no_command, width),
    ]


def _hour(of: PartitionDetail, width: int) -> list[Line]:
    rates = [each.bytes_rate for each in of.minutes]
    if not rates or max(rates) < 0:
        return []
    minutes = f"the last {len(rates)} minutes, bytes/s at most {size(max(rates))}"
    return [*title(minutes, width), Line(curve(rates, min(width, 60)))]


def _segments(of: PartitionDetail, times: Times, width: int) -> list[Line]:
    if not of.segments:
        return []
    heads = ("segment from", "size", "newest record", "deleted")
    rows: list[tuple[str | None, ...]] = [heads]
    for each in of.segments:
        deletion = "active" if each.active else "due" if each.deletable else times.of(each.deletion_ms)
        rows.append((str(each.base_offset), size(each.size_bytes), times.of(each.max_timestamp_ms), deletion))
    omitted = f", {of.omitted:,} in the middle left out" if of.omitted else ""
    return [*title(f"segments{omitted}", width), *_table(rows, ("segment from", "size"), width)]


def _replicas(of: PartitionDetail, times: Times, width: int) -> list[Line]:
    if not of.replicas:
        return []
    rows: list[tuple[str | None, ...]] = [("broker", "role", "in sync", "size", "end offset", "last append", "log dir")]
    for each in of.replicas:
        end, last = number(each.log_end_offset), times.of(each.last_append_ms)
        rows.append((number(each.broker), each.role, each.in_sync, size(each.size_bytes), end, last, each.log_dir or NONE))
    return [*title("replicas", width), *_table(rows, ("broker", "size", "end offset"), width)]


def _table(rows: list[tuple[str | None, ...]], right: tuple[str, ...], width: int) -> list[Line]:
    return [Line(cut(line, width)) for line in format_table(rows, right)]
