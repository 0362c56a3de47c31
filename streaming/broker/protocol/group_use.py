"""Who uses a consumer group, as messages and metrics have it."""

from enum import StrEnum


class GroupUse(StrEnum):
    """Decided by `streaming.cluster.verdicts.group_bounds`."""

    IN_USE = "in_use"  # it has members, or commits in its own rhythm
    UNATTENDED = "unattended"  # nobody is there, and the next commit is overdue, but not for long
    ABANDONED = "abandoned"  # nobody is there, and nobody has been there for long, or will miss what it loses
    THROW_AWAY = "throw_away"  # its name says that nobody comes back to it
    UNKNOWN = "unknown"  # its coordinator is not read, or nothing shows when it was last used


NOBODYS = frozenset({GroupUse.ABANDONED, GroupUse.THROW_AWAY})
"""Nobody misses what these have not read, or lose: lists say so beside it, and the numbers of a cluster are without them."""
