"""What a job does not know of consumer groups, in sentences, from its answers: for whoever shows them in a terminal."""

from collections.abc import Collection, Iterator

from streaming.broker.protocol.group_json import GroupDetail, GroupPage
from streaming.common.formatting import format_be, format_count, format_duration

OLD_DATA_MS = 30_000
"""A job that is not behind knows what its agents have read some seconds before."""


def doubts_of_page(page: GroupPage) -> Iterator[str]:
    """What it may lack, or not know yet."""
    yield from _unread(page.unread)
    yield from _old(page.data_age_ms)
    if page.omitted:
        yield f"{format_count(page.omitted, 'group')} {format_be(page.omitted)} left out, because groups_limit is lower"


def doubts_of_groups(groups: Collection[GroupDetail], page: GroupPage | None) -> Iterator[str]:
    """What may be unknown of some groups; ``page``: of those from which they were chosen, or None."""
    yield from _unread(max((each.unread for each in groups), default=0) if page is None else page.unread)
    yield from _old(max((each.data_age_ms for each in groups), default=0))


def _unread(coordinators: int) -> Iterator[str]:
    if coordinators:
        yield f"{coordinators} coordinators' logs are not read to their end from a current replica: groups of theirs may be missing"


def _old(data_age_ms: int) -> Iterator[str]:
    if data_age_ms > OLD_DATA_MS:
        age = format_duration(data_age_ms // 1000)
        yield f"what the job knows is up to {age} old: it is behind its agents, or one of them stands still or is away"
