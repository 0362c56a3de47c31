"""How consumer groups are printed: tables of groups and of partitions, sentences about one group, and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from streaming.formatting import format_age, format_count, format_list, format_name, format_size, format_table
from streaming.protocol.group_json import GroupDetail, GroupPartition, GroupSummary
from streaming.verdicts.group_verdicts import Bounds, GroupVerdict, Kind, judge, worst

_GROUPS = ("group", "type", "state", "members", "partitions", "records left", "offsets", "bytes", "oldest", "lost from", "verdict")
_PARTITIONS = ("group", "partition", "committed", "end", "records left", "offsets", "bytes", "next record", "lost from", "verdict")
_RIGHT = ("members", "partitions", "committed", "end", "records left", "offsets", "bytes", "next record", "oldest", "lost from")

_ASSUMED = (
    "assumed: {}: what sets the limits of these topics is not all known here, so weaker settings or Kafka's defaults are used. Give "
    "--server-properties, and the log dir with __cluster_metadata if it is not among these."
)

_MOST_LINES = 100
_MOST_NAMES = 5

Cells = tuple[str | None, ...]


def groups_table(groups: Sequence[GroupDetail], now_ms: int, bounds: Bounds) -> Iterator[str]:
    """A line for each group, the most severe verdict first, then the largest lag."""
    judged = [(worst(each, now_ms, bounds), each) for each in groups]
    judged.sort(key=lambda each: (_rank(each[0]), -each[1].summary.lag, each[1].summary.group))
    return format_table([_GROUPS, *(_group_cells(each, kind, now_ms) for kind, each in judged)], _RIGHT)


def no_groups(coordinators: int | None) -> str:
    """What is said instead of a table without a line.

    Args:
        coordinators: how many logs of coordinators were read, None if that is not known.
    """
    if coordinators is None:
        return "no consumer groups are known"
    if not coordinators:
        return "no consumer groups are known: no log of a coordinator (__consumer_offsets) was read here"
    return f"no consumer groups: {format_count(coordinators, 'log')} of coordinators {'was' if coordinators == 1 else 'were'} read"


def _rank(kind: Kind) -> Kind:
    """What needs nothing is sorted by its lag alone."""
    return min(kind, Kind.CATCHING_UP)


def partitions_table(groups: Sequence[GroupDetail], now_ms: int, bounds: Bounds) -> Iterator[str]:
    """A line for each partition of the groups, the most severe verdict first, then the largest lag; at last what is about whole groups."""
    rows, whole = [], []
    for group in groups:
        kinds: dict[tuple[str, int], Kind] = {}
        for verdict in judge(group, now_ms, bounds):
            kinds.setdefault((verdict.topic, verdict.partition), verdict.kind)
            if not verdict.topic:
                whole.append(f"{format_name(group.summary.group)}: {verdict.text}")
        rows += [(kinds[each.topic, each.partition], group.summary.group, each) for each in group.partitions]
    rows.sort(key=lambda row: (_rank(row[0]), -row[2].lag, row[1], row[2].topic, row[2].partition))
    if rows:
        yield from format_table([_PARTITIONS, *(_partition_cells(name, each, kind, now_ms) for kind, name, each in rows)], _RIGHT)
    yield from whole


def reasons(group: GroupDetail, now_ms: int, bounds: Bounds) -> Iterator[str]:
    """What is said about one group: a head, then a line for each verdict with its command, at last what needs nothing."""
    yield _head(group)
    found, calm = [], dict[tuple[Kind, str], list[GroupVerdict]]()
    for verdict in judge(group, now_ms, bounds):
        if verdict.kind in (Kind.FINE, Kind.ONLY_MARKERS):
            calm.setdefault((verdict.kind, verdict.text), []).append(verdict)
        else:
            found.append(verdict)
    for verdict in found[:_MOST_LINES]:
        yield f"- {_where(verdict)}: {verdict.text}."
        if verdict.command.line:
            yield f"    {verdict.command.line}"
        elif verdict.command.reason:
            yield f"    no command: {verdict.command.reason}"
    if len(found) > _MOST_LINES:
        yield f"- and {len(found) - _MOST_LINES:,} more: --json has all of them"
    for (_, text), same in list(calm.items())[:_MOST_LINES]:
        yield f"- {format_list([_where(each) for each in same], _MOST_NAMES)}: {text}."


def assumed(groups: Sequence[GroupDetail]) -> Iterator[str]:
    """Of which partitions limits are assumed, so that nobody knows when retention deletes what is unread."""
    partitions = sorted({(each.topic, each.partition) for group in groups for each in group.partitions if each.limits_assumed})
    if partitions:
        yield _ASSUMED.format(format_list([f"{format_name(topic)}-{number}" for topic, number in partitions], 3))


def as_json(group: GroupDetail, now_ms: int, bounds: Bounds) -> dict[str, object]:
    """A group with its partitions and verdicts, for `json.dumps`; both are None where only its sums are there."""
    verdict = {"verdict": worst(group, now_ms, bounds).label}
    if group.summary.partitions and not group.partitions:
        return {**asdict(group), "partitions": None, **verdict, "verdicts": None}
    verdicts = [
        {
            "verdict": each.kind.label,
            "topic": each.topic or None,
            "partition": each.partition if each.topic else None,
            "text": each.text,
            "command": each.command.line or None,
            "no_command": each.command.reason or None,
        }
        for each in judge(group, now_ms, bounds)
    ]
    return {**asdict(group), **verdict, "verdicts": verdicts}


def _head(group: GroupDetail) -> str:
    of = group.summary
    members = "" if of.members < 0 else f", {format_count(of.members, 'member')}"
    state = " ".join(filter(None, (of.type, of.state))) or "only commits"
    left = (
        f"{_sum(of.lag_records_read_committed, of.unknown)} {_records(of.lag_records_read_committed, of.unknown)} left"
        if of.lag_records_read_committed >= 0
        else "records left not known"
    )
    return f"{format_name(of.group)}: {state}{members}; {left} in {format_count(of.partitions, 'partition')}"


def _records(count: int, unknown: int) -> str:
    return "record" if count == 1 and not unknown else "records"


def _where(verdict: GroupVerdict) -> str:
    return f"{format_name(verdict.topic)}-{verdict.partition}" if verdict.topic else "the group"


def _group_cells(group: GroupDetail, kind: Kind, now_ms: int) -> Cells:
    of = group.summary
    return (
        format_name(of.group),
        of.type or None,
        format_name(of.state) if of.state else None,
        _number(of.members),
        str(of.partitions),
        _sum(of.lag_records_read_committed, of.unknown),
        _number(of.lag_offsets),
        _size(of.lag_bytes),
        _age(of.oldest_ms, now_ms),
        _unsure(_age(of.loss_ms, now_ms), of),
        _unsure(kind.label, of) if not kind.found else kind.label,
    )


def _partition_cells(group: str, of: GroupPartition, kind: Kind, now_ms: int) -> Cells:
    oldest = of.next_append_ms if of.next_append_ms >= 0 else of.next_timestamp_ms
    return (
        format_name(group),
        f"{format_name(of.topic)}-{of.partition}",
        _number(of.committed),
        _number(of.high_watermark),
        _number(of.lag_records_read_committed),
        _number(of.lag_offsets),
        _size(of.lag_bytes),
        _age(oldest, now_ms),
        _unsure(_age(of.loss_ms, now_ms), of),
        _unsure(kind.label, of) if not kind.found else kind.label,
    )


def _sum(value: int, unknown: int) -> str | None:
    """A sum, with a plus if it is a lower bound."""
    return None if value < 0 else f"{value}+" if unknown else str(value)


def _number(value: int) -> str | None:
    return None if value < 0 else str(value)


def _size(value: int) -> str | None:
    return None if value < 0 else format_size(value)


def _age(at_ms: int, now_ms: int) -> str | None:
    return None if at_ms < 0 else format_age((now_ms - at_ms) / 1000)


def _unsure(text: str | None, of: GroupSummary | GroupPartition) -> str | None:
    """What depends on limits, with a question mark if they are assumed."""
    return text if text is None or not of.limits_assumed else f"{text}?"
