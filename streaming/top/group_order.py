"""Groups sorted, filtered and cut to a page here: a job lists them by their names alone."""

from collections.abc import Sequence

from streaming.protocol.group_json import GroupDetail, GroupSummary
from streaming.top.questions import Listing, Rows
from streaming.verdicts.group_verdicts import Bounds, Kind, worst

_VERDICT = "verdict"


def kind_of(group: GroupSummary, now_ms: int) -> Kind:
    """The most severe verdict that a group's sums show; its partitions may show a more severe one."""
    return worst(GroupDetail(at_ms=now_ms, summary=group, partitions=[]), now_ms, Bounds())


def group_rows(asked: Listing, groups: Sequence[GroupSummary], at_ms: int, notes: tuple[str, ...]) -> Rows:
    """The answer to ``asked``, out of all groups. What is not known comes last in either order.

    If it is not said by what they are sorted, the most severe verdict comes first, then the largest lag.
    """
    sort = asked.sort or _VERDICT
    wanted = asked.filter.casefold()
    found = sorted((each for each in groups if wanted in each.group.casefold()), key=lambda each: (-each.lag, each.group))
    if sort == _VERDICT:
        found.sort(key=lambda each: min(kind_of(each, at_ms), Kind.CATCHING_UP), reverse=asked.descending)
    else:
        found.sort(key=lambda each: _value(each, sort), reverse=asked.descending)
        found.sort(key=lambda each: _value(each, sort) in (-1, ""))
    return Rows(
        asked=asked,
        at_ms=at_ms,
        total=len(groups),
        matched=len(found),
        offset=asked.offset,
        rows=tuple(found[asked.offset : asked.offset + asked.limit]),
        sort=sort,
        descending=asked.descending,
        notes=notes,
    )


def _value(group: GroupSummary, sort: str) -> str | int:
    value: str | int = getattr(group, sort)
    return value
