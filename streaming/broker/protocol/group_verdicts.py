"""The verdicts about consumer groups, as messages have them."""

from enum import IntEnum

from streaming.broker.protocol.group_json import GroupFinding, GroupPartition, GroupSummary


class GroupVerdict(IntEnum):
    """What is the matter with a partition of a group, or with the group; of one severity, the first is the most severe."""

    LOST = 0  # records were deleted before they were read
    WILL_LOSE = 1  # retention will delete the next unread record soon
    BUFFERED = 2  # records were deleted that its consumers may have in memory
    DAMAGED = 3  # the next batch cannot be read
    TOO_LARGE = 4  # the next batch is larger than consumers fetch at once
    HELD = 5  # an open transaction holds back everything that is left
    BEYOND_END = 6  # the committed offset is beyond the end of the log
    OTHER_HISTORY = 7  # the committed offset is of a history that has ended: records that were not read are skipped
    PENDING = 8  # commits wait for an open transaction
    STOPPED = 9  # it has not moved although a record is readable
    SKIPPED = 10  # its offset was moved by hand over records that it had not read
    REBALANCING = 11  # it rebalances all the time
    WILL_EXPIRE = 12  # its coordinator deletes the committed offset soon
    SLOWER = 13  # more is appended than it reads
    REWOUND = 14  # its offset was moved back, so that it reads records again
    SKEWED = 15  # one partition has most of the lag
    NO_MEMBERS = 16  # it had members and has none
    UNKNOWN = 17  # its lag is not known
    PERHAPS_LOST = 18  # offsets were deleted that may all have been markers
    NOT_COMMITTED = 19  # it is assigned and was never committed, and its log has records
    CATCHING_UP = 20  # it reads more than is appended
    BETWEEN_RUNS = 21  # nobody is there, as usual at this time
    ONLY_MARKERS = 22  # only markers or aborted records are left
    NO_OFFSETS = 23  # nothing is committed, and nobody is there who would
    FINE = 24  # nothing is left, or it goes on
    LEFT_OVER = 25  # no member subscribes to its topic; a group is so if all of its partitions are

    @property
    def label(self) -> str:
        """The spelling in tables and JSON."""
        return self.name.lower()

    @property
    def is_finding(self) -> bool:
        """Whether somebody should look at it."""
        return self < GroupVerdict.UNKNOWN


FINDINGS = frozenset(each.label for each in GroupVerdict if each.is_finding)
"""The labels of verdicts that somebody should look at."""

NOT_KNOWN = frozenset({GroupVerdict.UNKNOWN.label, GroupVerdict.PERHAPS_LOST.label})
"""The labels of verdicts by which something is not known here that a log dir, an agent or time may show.

What was never committed is on no disk, and healthy groups have such partitions: `GroupVerdict.NOT_COMMITTED` is none of them.
"""


def is_finding(message: GroupFinding | GroupSummary | GroupPartition) -> bool:
    """Whether somebody should look at what a message says."""
    return message.verdict in FINDINGS
