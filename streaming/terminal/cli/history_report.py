"""How the history of a group is printed: a head, then a line for each record of its coordinator's log, the oldest first."""

from collections.abc import Iterator, Sequence

from streaming.broker.protocol.group_history_json import GroupHistory, HistoryEvent
from streaming.common.formatting import format_count, format_list, format_name, format_time, format_word

_BY = {"admin": "by hand", "consumer": "by a member", "external": "by a program beside the group"}
_MOST_NAMED = 5


def histories(groups: Sequence[GroupHistory]) -> Iterator[str]:
    """The lines about some groups."""
    for index, group in enumerate(groups):
        if index:
            yield ""
        yield from _head(group)
        yield from (_line(each) for each in group.events)


def _head(group: GroupHistory) -> Iterator[str]:
    since = f" ({format_time(group.whole_from_ms)})" if group.whole_from_ms >= 0 else ""
    yield (
        f"{format_name(group.group)}: what {format_word(group.log)} has of it. From offset {group.whole_from}{since} on everything is "
        "there; of what is older, compaction leaves the last record of each partition and of the group"
    )
    if group.omitted:
        yield f"{format_count(group.omitted, 'record')} before are left out"


def _line(event: HistoryEvent) -> str:
    at = format_time(event.at_ms, "milliseconds") if event.at_ms >= 0 else "at a time that is not known"
    return f"{at}  {event.record_offset}  {_what(event)}"


def _what(event: HistoryEvent) -> str:
    where = f"{format_name(event.topic)}-{event.partition}"
    match event.event:
        case "commit":
            return f"{where}: committed {_number(event.committed)}{_step(event)}"
        case "pending":
            return f"{where}: {_number(event.committed)} waits for the end of its transaction"
        case "deleted":
            return f"{where}: {_number(event.before)} is deleted"
        case "generation":
            return f"generation {_number(event.epoch)}: {_members(event)}"
    return "the group is deleted"


def _step(event: HistoryEvent) -> str:
    if event.before < 0 or event.committed < 0:
        return ""
    step = event.committed - event.before
    how = f", moved {_BY.get(event.moved, event.moved)}" if event.moved else ""
    return f" ({step:+,}{how})" if step else " (as before)"


def _members(event: HistoryEvent) -> str:
    if event.members < 0:
        return "not understood"
    names = [f"{format_name(each.client)} {format_word(each.host)}" for each in event.first_members]
    more = f": {format_list(names, _MOST_NAMED)}" if names else ""
    return f"{format_count(event.members, 'member')}{more}"


def _number(value: int) -> str:
    return str(value) if value >= 0 else "what is not understood"
