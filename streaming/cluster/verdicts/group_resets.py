"""Where consumers go on whose offset is not in the log, or who have none: for each type of group something else decides that."""

from dataclasses import dataclass

from streaming.kafka.groups.group_states import GroupType

_BY_DURATION = "with by_duration they skip what is older than that"  # KIP-1106, since Kafka 4.1
_POLICIES = f"with none they fail until the offset is reset, with latest they skip what is left, {_BY_DURATION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetWords:
    """``after_loss``: a sentence about what was deleted. ``beyond_end``: another one, of an offset after the end.

    ``begins``: a clause, of a partition without an offset.
    """

    after_loss: str
    beyond_end: str
    begins: str


_SUBSCRIBED = ResetWords(
    after_loss=f"auto.offset.reset decides where its consumers go on: {_POLICIES}",
    beyond_end="Where its consumers go on, auto.offset.reset decides",
    begins="where its consumers begin is decided by auto.offset.reset",
)
_ASSIGNED = ResetWords(
    after_loss="Its consumers assign partitions to themselves: they go on where they seek to, or else auto.offset.reset decides: "
    f"{_POLICIES}",
    beyond_end="Its consumers assign partitions to themselves: they go on where they seek to, or else auto.offset.reset decides",
    begins="its consumers begin where they seek to, or else where auto.offset.reset says",
)
_STREAMS = ResetWords(
    after_loss="The reset policy that the topology has for the topic decides where the application goes on, or else its auto.offset.reset: "
    "with none it fails until the offset is reset, with latest it skips what is left, with by_duration what is older than that",
    beyond_end="Where the application goes on, the reset policy that the topology has for the topic decides, or else its auto.offset.reset",
    begins="where the application begins is decided by the reset policy that the topology has for the topic, or else its auto.offset.reset",
)
_SPARK = ResetWords(
    after_loss="The query fails with its next micro-batch, unless failOnDataLoss is false: then it goes on at the log start",
    beyond_end="The query fails with its next micro-batch, unless failOnDataLoss is false",
    begins="where the query begins is decided by its startingOffsets",
)
_SHARE = ResetWords(
    after_loss="Its consumers go on with what is left, without a reset",
    beyond_end="Its consumers get nothing until the log has grown so far, or the start offset is reset",
    begins="where the group begins is decided by its share.auto.offset.reset",
)


def reset_words(type_: str, protocol: str) -> ResetWords:
    """The words for a type of group; a classic one without a protocol has only commits, of consumers with ``assign()``."""
    if type_ == GroupType.SHARE:
        return _SHARE
    if type_ == GroupType.STREAMS:
        return _STREAMS
    if type_ == GroupType.SPARK:
        return _SPARK
    return _ASSIGNED if type_ == GroupType.CLASSIC and not protocol else _SUBSCRIBED
