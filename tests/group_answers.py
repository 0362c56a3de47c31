"""All groups of a reading, as a test looks at them."""

from dataclasses import dataclass

from streaming.broker.protocol.group_json import GroupDetail
from streaming.terminal.offline.group_reading import GroupReading


@dataclass(frozen=True)
class Groups:
    """A reading, with the details of all of its groups in the order of their names."""

    reading: GroupReading
    groups: tuple[GroupDetail, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        return self.reading.doubts

    @property
    def missing(self) -> tuple[str, ...]:
        return self.reading.missing


def detailed(reading: GroupReading) -> Groups:
    """The groups with their partitions."""
    return Groups(reading, tuple(reading.answers.detail(item) for item in range(len(reading.answers.totals.names))))


def verdicts(group: GroupDetail) -> list[str]:
    """The verdicts of its findings, the worst first."""
    return [each.verdict for each in group.findings]
