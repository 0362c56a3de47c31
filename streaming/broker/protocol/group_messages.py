"""What jobs ask of agents about consumer groups: changes of the coordinators' logs, positions of offsets in logs, records on disk.

Units: offsets are Kafka's own, times are Unix milliseconds, -1 means "none".
"""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Self

import pyarrow as pa

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import AnyName, Natural, Small
from streaming.broker.protocol.versions import PROTOCOL
from streaming.errors import AgentError
from streaming.kafka.formats.names import METADATA_TOPIC

_TEXT, _INT, _LONG = pa.string(), pa.int32(), pa.int64()

_OF_LOG = [("broker", _INT), ("topic", _TEXT), ("topic_id", _TEXT), ("partition", _INT)]

MOST_POSITIONS = 4_096
"""The most offsets that are asked at once: each may take a read of a megabyte."""

POSITIONS_ASKED = pa.schema([*_OF_LOG, ("offset", _LONG), ("upto", _LONG), ("reads_uncommitted", _LONG)])
"""One row for each offset; ``upto``: where the next record is looked for at most, the high watermark. ``reads_uncommitted``: 1 if that may
be one of an aborted transaction, too, as for consumers with ``read_uncommitted``."""

POSITIONS = pa.schema(
    [
        *POSITIONS_ASKED,
        ("edition", _TEXT),  # positions of a log can be compared if they are of one edition; "" where there is no ladder
        ("state", _TEXT),  # `streaming.broker.ladder.positions.PositionState`
        ("data", _LONG),  # data records before it, from the ladder's zero point
        ("aborted", _LONG),  # of those, records of aborted transactions; only below the last stable offset
        ("control", _LONG),  # records of control batches
        ("bytes", _LONG),  # of whole batches
        ("next_offset", _LONG),  # of the next data record at or after it; if it is not ``reads_uncommitted``, of one that is not aborted
        ("next_timestamp_ms", _LONG),  # its own
        ("next_append_ms", _LONG),  # when it was appended, where that was seen or the broker wrote it
        ("next_batch_bytes", _LONG),  # of its batch, as for the next two
        ("next_segment", _LONG),  # of an offset before the first segment on disk that segment
        ("next_position", _LONG),
        ("deleted_least", _LONG),  # of the offsets from it on that were deleted before the first segment, so many were records at least
        ("deleted_most", _LONG),  # and at most
        ("next_earliest_ms", _LONG),  # where the append of the next record was not seen, the files show that it was not before
        ("next_latest_ms", _LONG),  # and not after
    ]
)
"""The answer, in the order of the question."""

RECORDS = pa.schema(
    [
        *_OF_LOG,
        *[(name, _LONG) for name in ("log_start", "next_offset", "data", "aborted", "control")],
        ("error", _TEXT),
    ]
)
"""The records of each log from its log start to ``next_offset``; ``aborted`` are counted in ``data``, too.

``next_offset`` is -1, and the numbers have no meaning, where they are not known any more. ``error``: why they are not; "" or null if the
log is gone, or is only not counted yet.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLog(Message):
    """What a job has of a coordinator's log: the edition and the version of the last changes."""

    broker: Small
    topic: str
    topic_id: AnyName
    coordinator: Small
    edition: AnyName
    version: int


@dataclass(frozen=True, slots=True)
class GroupsRequest(Message):
    """The question for what has changed in the coordinators' logs; ``known`` is what the job has."""

    known: list[KnownLog] = field(default_factory=list)
    protocol: int = PROTOCOL
    consumer: str = ""


def is_counted(topic: str) -> bool:
    """Whether agents count the records of its logs. The metadata log gets a batch twice a second, and no group has offsets in it."""
    return topic != METADATA_TOPIC


@dataclass(frozen=True, slots=True)
class AskedOffset(Message):
    """A row of `POSITIONS_ASKED`."""

    broker: Small
    topic: AnyName
    topic_id: AnyName
    partition: Small
    offset: int
    upto: int
    reads_uncommitted: int = 0


@dataclass(frozen=True, slots=True)
class PositionsRequest(Message):
    """The question where offsets lie, at most `MOST_POSITIONS` of them.

    It is no table of Arrow, because Arrow does not check what it reads: a wrong one may end the process, or unpack to any size.
    """

    rows: list[AskedOffset]

    @classmethod
    def of(cls, questions: pa.Table) -> Self:
        """The request for a table."""
        return cls([AskedOffset(**row) for row in questions.select(POSITIONS_ASKED.names).to_pylist()])

    def table(self) -> pa.Table:
        """The table. Raises AgentError: there are too many."""
        if len(self.rows) > MOST_POSITIONS:
            raise AgentError(f"{len(self.rows)} offsets are more than {MOST_POSITIONS}")
        return pa.Table.from_pylist([asdict(row) for row in self.rows], POSITIONS_ASKED)


class Following(StrEnum):
    """How far an agent is with a coordinator's log."""

    READ = "read"  # it is read from its first byte up to what the agent has published of it
    READING = "reading"  # it is not read so far yet: nothing of it is sent
    UNAVAILABLE = "unavailable"  # its log dir is, or it cannot be read


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedLog(Message):
    """A coordinator's log of an agent, and what follows of it; fields as in `streaming.kafka.groups.group_rows.GroupChanges`.

    Every log that the agent follows is named, also without changes. ``following``: one of `Following`; only if it is READ, the fields after
    it have a meaning. ``commits``, ``pending``, ``groups``: how many tables of each kind follow, with at most `MOST_ROWS` rows each.
    """

    broker: Small
    topic: str
    topic_id: AnyName
    coordinator: Small
    following: str = Following.READ
    edition: AnyName = ""
    version: int = 0
    whole: bool = False
    upto: int = -1
    unreadable: int = 0
    omitted: int = 0
    commits: int = 0
    pending: int = 0
    groups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEnd(Message):
    """The end of the agent's journal after it has read everything that it sent: what was read before is published up to here."""

    journal: AnyName
    seq: Natural


@dataclass(frozen=True, slots=True)
class RecordsRequest(Message):
    """The question for the numbers of records of all logs that have changed since a version; "" and 0 for all."""

    process: AnyName = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsHeader(Message):
    """The version that the rows after it lead to; ``whole``: they are all rows, and what was known before is out of date.

    ``tables``: how many tables follow.
    """

    process: AnyName
    number: int
    whole: bool
    tables: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest(Message):
    """The question whether the batch that holds an offset, or the next one after it, is sound."""

    broker: Small
    topic: str
    topic_id: AnyName
    partition: Small
    offset: int
