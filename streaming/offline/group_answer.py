"""The answer about consumer groups that commands print, from log dirs or from a job."""

from dataclasses import dataclass

from streaming.protocol.group_json import GroupDetail


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """The groups, by name; those that were asked for and are not there; and what is not known, in sentences.

    A group may have fewer partitions than its summary counts: a job sends all of them only of groups that were asked for.
    ``coordinators``: how many logs of coordinators were read from a current replica, None if that is not known, as from a job.
    """

    groups: tuple[GroupDetail, ...]
    missing: tuple[str, ...]
    doubts: tuple[str, ...]
    coordinators: int | None = None
