"""Why data past its limit stays, the command that shows what holds it, and what mends it: the words of every face and of the alert.

No command here changes anything. What mends it is in words, for each way has a price.
"""

from dataclasses import dataclass

from streaming.cluster.verdicts.commands import Command, Commands
from streaming.common.formatting import format_time

MOVING, FUTURE, HIGH_WATERMARK = "moving", "future_timestamp", "high_watermark"
REMOTE, HEAD_OF_LINE, ACTIVE = "remote_copy", "head_of_line", "active_segment"
"""The reasons, as `streaming.rules.retention_rule.BLOCKED` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedRemedy:
    """``why`` and ``mend``: sentences, of which ``mend`` has what it costs."""

    why: str
    mend: str


REMEDIES = {
    MOVING: BlockedRemedy(
        why="A copy of the log is being made in another log dir of its broker, and until that move is over, nothing of the log is deleted "
        "or compacted.",
        mend="Wait for the move, or raise replica.alter.log.dirs.io.max.bytes.per.second, which slows it down; a restart does not end it.",
    ),
    FUTURE: BlockedRemedy(
        why="The first segment holds a record dated in the future, so nothing behind it is deleted by time before that date.",
        mend="Mend the producer, or set message.timestamp.type=LogAppendTime on the topic; then kafka-delete-records.sh up to the end of "
        "that segment frees the space: no reader gets anything from before that offset any more.",
    ),
    HIGH_WATERMARK: BlockedRemedy(
        why="The first segment is not replicated to its end: some in-sync replica does not follow, or fewer are in sync than "
        "min.insync.replicas.",
        mend="Bring the replica back, or take it out by a reassignment.",
    ),
    REMOTE: BlockedRemedy(
        why="The first segment waits for its copy in remote storage.",
        mend="Look for RemoteLogManager in the broker's log, and for an open transaction in the partition.",
    ),
    HEAD_OF_LINE: BlockedRemedy(
        why="A later segment is past the limit, but the first one has younger records and must be deleted before it.",
        mend="It ends by itself when the first one is past the limit; retention.bytes on the topic bounds it, and deletes younger records, "
        "too.",
    ),
    ACTIVE: BlockedRemedy(
        why="The only segment still takes appends: it is deleted once it is rolled, and this is how Kafka works.",
        mend="A smaller segment.ms or segment.bytes rolls it earlier; an idle partition never rolls by itself.",
    ),
}


_YEAR_2000_MS, _DAY_MS = 946_684_800_000, 86_400_000


def wrong_unit(timestamp_ms: int, now_ms: int) -> str:
    """A sentence, if a date that is far ahead is one of since 2000 in a smaller unit; "" if not."""
    for unit, parts in (("microseconds", 1_000), ("nanoseconds", 1_000_000)):
        if _YEAR_2000_MS <= timestamp_ms // parts <= now_ms + _DAY_MS:
            then = format_time(timestamp_ms // parts)
            return f"It looks as if {unit} were taken for milliseconds: the record is of {then}, so delete none that is still to be read."
    return ""


def shows(reason: str, commands: Commands, topic: str, directory: str) -> Command:
    """The command that shows what blocks a partition of a topic.

    Args:
        directory: that of the partition, on its broker's host; "" if it is not known.
    """
    if reason == FUTURE:
        return commands.dated_in_future(directory) if directory else Command(reason="the log dir is not known")
    if reason == HIGH_WATERMARK:
        return commands.describe_topic(topic)
    return commands.transactions(topic) if reason == REMOTE else commands.retention(topic)
