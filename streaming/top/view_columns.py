"""The columns of each view, the most important first: that is the order in which narrow terminals keep them."""

from typing import cast

from streaming.formatting import NONE, format_list, format_name
from streaming.protocol.group_json import GroupSummary
from streaming.protocol.problem_json import Problem
from streaming.top.columns import Column, Times, count, curve, length, number, place, rate, size, word
from streaming.top.group_order import kind_of
from streaming.top.questions import Row, View
from streaming.verdicts.group_verdicts import Kind

CURVE_HEADING, CURVE_WIDTH = "last hour", 12
"""The column that is a picture, and its width."""

_PARTITION = Column(
    heading="Topic-partition",
    letter="T",
    sort="topic",
    descends=False,
    cell=lambda row, _: place(row.topic, row.partition),
    least=16,
    keeps_end=True,
)
_BROKER = Column(heading="bRoker", letter="R", sort="broker", descends=False, cell=lambda row, _: number(row.broker), right=True)


def _about(row: Problem) -> str:
    """What a problem is about, in a word."""
    if row.topic and row.partition >= 0:
        return place(row.topic, row.partition)
    named = ((row.topic, "topic"), (row.group, "group"), (row.log_dir, "log dir"), (row.agent, "agent"))
    found = next((f"{kind} {format_name(name)}" for name, kind in named if name), "")
    return found or (f"broker {row.broker}" if row.broker >= 0 else NONE)


def _left(row: GroupSummary) -> str:
    known = row.lag_records_read_committed
    return NONE if known < 0 else f"{known:,}+" if row.unknown else f"{known:,}"


def _unsure(text: str, unsure: bool) -> str:
    """What depends on limits, with a question mark if they are assumed."""
    return f"{text}?" if unsure and text != NONE else text


COLUMNS: dict[View, tuple[Column, ...]] = {
    View.PROBLEMS: (
        Column(heading="severity", cell=lambda row, _: word(row.severity)),
        Column(heading="what", cell=lambda row, _: row.what, least=40),
        Column(heading="since", cell=lambda row, times: times.of(row.since_ms), right=True),
        Column(heading="about", cell=lambda row, _: _about(row), least=12, keeps_end=True),
    ),
    View.PARTITIONS: (
        _PARTITION,
        Column(heading="Bytes/s", letter="B", sort="bytes_rate", cell=lambda row, _: size(row.bytes_rate), right=True),
        Column(heading="rEcords/s", letter="E", sort="records_rate", cell=lambda row, _: rate(row.records_rate), right=True),
        Column(heading="Unread", letter="U", sort="unread_offsets", cell=lambda row, _: count(row.unread_offsets), right=True),
        Column(heading="Last append", letter="L", sort="last_append_ms", cell=lambda row, times: times.of(row.last_append_ms), right=True),
        Column(heading="Size", letter="S", sort="size_bytes", cell=lambda row, _: size(row.size_bytes), right=True),
        Column(heading=CURVE_HEADING, cell=lambda row, _: curve(row.rates, CURVE_WIDTH)),
        Column(heading="Open", letter="O", sort="open_transactions", cell=lambda row, _: count(row.open_transactions), right=True),
        Column(heading="Hanging", letter="H", sort="hanging_transactions", cell=lambda row, _: count(row.hanging_transactions), right=True),
        Column(heading="end oFfset", letter="F", sort="log_end_offset", cell=lambda row, _: number(row.log_end_offset), right=True),
        _BROKER,
        Column(
            heading="oldest recorD",
            letter="D",
            sort="oldest_record_ms",
            descends=False,
            cell=lambda row, times: times.of(row.oldest_record_ms),
            right=True,
        ),
        Column(heading="segmeNts", letter="N", sort="segments", cell=lambda row, _: count(row.segments), right=True),
    ),
    View.TRANSACTIONS: (
        _PARTITION,
        Column(
            heading="Verdict",
            letter="V",
            sort="verdict",
            cell=lambda row, _: f"{word(row.verdict)}{', stuck' if row.stuck else ''}",
            least=8,
        ),
        Column(heading="Since", letter="S", sort="start_ms", descends=False, cell=lambda row, times: times.of(row.start_ms), right=True),
        Column(heading="Holds", letter="H", sort="holds_offsets", cell=lambda row, _: count(row.holds_offsets), right=True),
        Column(
            heading="transactional Id",
            letter="I",
            sort="transactional_id",
            descends=False,
            cell=lambda row, _: word(row.transactional_id),
            least=12,
        ),
        Column(
            heading="Last append",
            letter="L",
            sort="last_append_ms",
            descends=False,
            cell=lambda row, times: times.of(row.last_append_ms),
            right=True,
        ),
        Column(heading="Producer", letter="P", sort="producer_id", cell=lambda row, _: number(row.producer_id), right=True),
        Column(heading="First offset", letter="F", sort="first_offset", cell=lambda row, _: number(row.first_offset), right=True),
        Column(heading="state", cell=lambda row, _: word(row.coordinator_state)),
        _BROKER,
        Column(heading="groups", cell=lambda row, _: format_list([format_name(each) for each in row.groups], 2) or NONE, least=6),
    ),
    View.RETENTION: (
        _PARTITION,
        Column(heading="blocKed", letter="K", sort="blocked", cell=lambda row, _: word(row.blocked), least=8),
        Column(heading="Overdue", letter="O", sort="overdue_ms", cell=lambda row, _: length(row.overdue_ms), right=True),
        Column(heading="Frees", letter="F", sort="reclaimable_bytes", cell=lambda row, _: size(row.reclaimable_bytes), right=True),
        Column(heading="Size", letter="S", sort="size_bytes", cell=lambda row, _: size(row.size_bytes), right=True),
        Column(
            heading="Next by time",
            letter="N",
            sort="next_deletion_ms",
            descends=False,
            cell=lambda row, times: times.of(row.next_deletion_ms),
            right=True,
        ),
        Column(
            heading="olDest",
            letter="D",
            sort="oldest_record_ms",
            descends=False,
            cell=lambda row, times: times.of(row.oldest_record_ms),
            right=True,
        ),
        Column(
            heading="tiMe limit",
            letter="M",
            sort="retention_ms",
            cell=lambda row, _: _unsure(length(row.retention_ms), row.limits_assumed),
            right=True,
        ),
        Column(
            heading="siZe limit",
            letter="Z",
            sort="retention_bytes",
            cell=lambda row, _: _unsure(size(row.retention_bytes), row.limits_assumed),
            right=True,
        ),
        Column(heading="beyond Limit", letter="L", sort="lag_ms", cell=lambda row, _: length(row.lag_ms), right=True),
        Column(heading="seGments", letter="G", sort="segments", cell=lambda row, _: count(row.segments), right=True),
        _BROKER,
    ),
    View.GROUPS: (
        Column(heading="Group", letter="G", sort="group", descends=False, cell=lambda row, _: word(row.group), least=16),
        Column(
            heading="Verdict",
            letter="V",
            sort="verdict",
            descends=False,
            cell=lambda row, times: _unsure(kind_of(row, times.now_ms).label, row.limits_assumed and not kind_of(row, times.now_ms).found),
            least=8,
        ),
        Column(heading="Records left", letter="R", sort="lag_records_read_committed", cell=lambda row, _: _left(row), right=True),
        Column(
            heading="Oldest",
            letter="O",
            sort="oldest_append_ms",
            descends=False,
            cell=lambda row, times: times.of(row.oldest_ms),
            right=True,
        ),
        Column(
            heading="Lost from",
            letter="L",
            sort="loss_ms",
            descends=False,
            cell=lambda row, times: _unsure(times.of(row.loss_ms), row.limits_assumed),
            right=True,
        ),
        Column(heading="Bytes", letter="B", sort="lag_bytes", cell=lambda row, _: size(row.lag_bytes), right=True),
        Column(heading="Members", letter="M", sort="members", cell=lambda row, _: count(row.members), right=True),
        Column(heading="oFfsets", letter="F", sort="lag_offsets", cell=lambda row, _: count(row.lag_offsets), right=True),
        Column(heading="State", letter="S", sort="state", descends=False, cell=lambda row, _: word(row.state)),
        Column(heading="tYpe", letter="Y", sort="type", descends=False, cell=lambda row, _: word(row.type)),
        Column(heading="Partitions", letter="P", sort="partitions", cell=lambda row, _: count(row.partitions), right=True),
    ),
}


def alarm(row: Row, times: Times) -> str:
    """How severe a row is: "critical", "warning", or "" for what needs no look. Its words say the same without a colour."""
    if isinstance(row, Problem):
        return row.severity
    if isinstance(row, GroupSummary):
        kind = kind_of(row, times.now_ms)
        return "critical" if kind <= Kind.WILL_LOSE else "warning" if kind.found else ""
    verdict = cast(str, getattr(row, "verdict", ""))
    if verdict == "hanging" or getattr(row, "hanging_transactions", 0) > 0:
        return "critical"
    return "warning" if verdict == "overdue" or getattr(row, "stuck", False) or getattr(row, "blocked", "") else ""
