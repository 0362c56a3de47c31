"""What one agent says of one coordinator's log, as far as it is below the high watermark: commits, groups, pending commits."""

from dataclasses import dataclass, field

from streaming.kafka.groups.group_facts import GroupFacts, PendingCommit
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.replica_commits import ReplicaCommits


@dataclass(slots=True, eq=False)
class CoordinatorReplica:
    """``pending`` are all of them, whether below the high watermark or not. ``groups_changed`` counts the changes of ``groups``."""

    commits: ReplicaCommits = field(default_factory=ReplicaCommits)
    groups: dict[str, GroupFacts] = field(default_factory=dict)
    pending: tuple[PendingCommit, ...] = ()
    edition: str = ""
    version: int = 0
    upto: int = 0
    broker: int = -1
    unreadable: int = 0
    omitted: int = 0
    groups_changed: int = 0
    _waiting_groups: list[GroupFacts] = field(default_factory=list)

    def take(self, changes: GroupChanges, groups: list[GroupFacts], pending: tuple[PendingCommit, ...]) -> None:
        """All of the changes but the commits. The reader of the changes has cleared what is out of date."""
        self.edition, self.version, self.upto, self.broker = changes.edition, changes.version, changes.upto, changes.broker
        self.unreadable, self.omitted = changes.unreadable, changes.omitted
        self._waiting_groups += groups
        self.pending = pending

    def clear(self) -> None:
        """What was known is out of date."""
        self.commits.clear()
        self.groups, self.pending, self._waiting_groups = {}, (), []
        self.groups_changed += 1

    def settle(self, high_watermark: int) -> None:
        """Let that count which is below the high watermark."""
        self.commits.settle(high_watermark)
        if not self._waiting_groups:
            return
        waiting = []
        for group in self._waiting_groups:
            if group.effective_offset >= high_watermark:
                waiting.append(group)
            elif group.removed:
                self.groups_changed += self.groups.pop(group.group, None) is not None
            else:
                self.groups[group.group] = group
                self.groups_changed += 1
        self._waiting_groups = waiting
