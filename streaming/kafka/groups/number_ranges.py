"""Sets of numbers in a compact form: offsets as ranges, and the partitions that the members of a group are assigned."""

import re
from collections.abc import Callable, Iterable

from streaming.common.short_names import short_name
from streaming.errors import FormatError
from streaming.kafka.formats.stored_groups import CurrentMember, CurrentShareMember, GroupMetadata
from streaming.kafka.formats.wire import PlainReader

Ranges = tuple[int, ...]

MOST_RANGES = 10_000
"""So many ranges of a group are sent. The partitions of a topic are one range, unless they are spread among more groups of members."""

Assigned = tuple[str, Ranges]
"""A topic, as `by_name` or `by_id`, and its partitions."""

_ENTRY = re.compile(r"(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)([:#])(.*)", re.DOTALL)
_LARGEST = 2**31 - 1
_CONSUMER = "consumer"


def of_record(value: object) -> tuple[Assigned, ...]:
    """What a record about a group or a member assigns: a generation of a classic one, or what a member of a newer one has."""
    if isinstance(value, GroupMetadata):
        ours = value.protocol_type == _CONSUMER
        return tuple(part for member in value.members for part in classic_assignment(member.assignment)) if ours else ()
    if isinstance(value, CurrentMember | CurrentShareMember):
        return tuple(assigned(by_id(part.topic_id), part.partitions) for part in value.assigned)
    return ()


def classic_assignment(assignment: bytes) -> tuple[Assigned, ...]:
    """What a classic consumer is assigned (`ConsumerProtocolAssignment`, any version); nothing if it is something else."""
    reader = PlainReader(assignment)
    try:
        reader.int16()
        topics = [(reader.string(), [reader.int32() for _ in range(max(reader.count(), 0))]) for _ in range(max(reader.count(), 0))]
    except FormatError:
        return ()
    return tuple(assigned(by_name(topic), partitions) for topic, partitions in topics)


def assigned(topic: str, partitions: Iterable[int]) -> Assigned:
    """Some partitions of a topic."""
    return topic, joined((each, each) for each in partitions if each >= 0)


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The offsets that are in any of some ranges, which may overlap."""
    found: list[int] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1] + 1:
            found[-1] = max(found[-1], last)
        else:
            found += (first, last)
    return tuple(found)


def by_name(topic: str) -> str:
    """A topic by its name."""
    return f":{short_name(topic)}"


def by_id(topic_id: str) -> str:
    """A topic by its id."""
    return f"#{topic_id}"


def between(ranges: Ranges, start: int, end: int) -> int:
    """How many offsets from ``start`` on and before ``end`` are in the ranges."""
    return sum(max(min(last + 1, end) - max(first, start), 0) for first, last in pairs(ranges))


def pairs(ranges: Ranges) -> Iterable[tuple[int, int]]:
    """First and last offset of each."""
    return zip(ranges[::2], ranges[1::2], strict=True)


def after(ranges: Ranges, offset: int) -> int:
    """The first offset from this one on that is in no range."""
    for first, last in pairs(ranges):
        if first <= offset <= last:
            return last + 1
    return offset


def packed(parts: Iterable[Assigned]) -> tuple[str, ...]:
    """The entries of all that the members of a group are assigned, `MOST_RANGES` at most."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for topic, ranges in parts:
        topics.setdefault(topic, []).extend(pairs(ranges))
    entries, left = [], MOST_RANGES
    for topic in sorted(topics):
        some = list(pairs(joined(topics[topic])))[:left]
        left -= len(some)
        if some:
            entries.append(",".join(str(first) if first == last else f"{first}-{last}" for first, last in some) + topic)
    return tuple(entries)


def existing(entry: str, name_of: Callable[[str], str], count_of: Callable[[str], int]) -> Assigned:
    """The name of an entry's topic, "" for none, and those of its partitions that are there.

    The partitions that the members of a group are assigned, in a compact form: an entry for each topic, with ranges. An entry is
    `0-5,7:orders`, or `0-5,7#ID` where the record has the id of the topic alone. Names and ids may hold anything.

    Args:
        name_of: the name of a topic by its id.
        count_of: how many partitions a topic has.
    """
    named, ranges = unpacked(entry)
    topic = name_of(named[1:]) if named.startswith(by_id("")) else named[1:]
    count = count_of(topic) if topic else 0
    return topic, joined((first, min(last, count - 1)) for first, last in pairs(ranges) if first < count)


def unpacked(entry: str) -> Assigned:
    """The topic and the partitions of an entry; none of one that is not understood."""
    match = _ENTRY.fullmatch(entry)
    if match is None:
        return entry, ()
    ranges = (part.partition("-") for part in match[1].split(","))
    both = ((int(first), int(last or first)) for first, _, last in ranges)
    return match[2] + match[3], joined((first, last) for first, last in both if first <= last <= _LARGEST)
