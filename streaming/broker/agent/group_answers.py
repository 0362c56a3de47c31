"""The agent's answers about consumer groups, without the wire. Names that may not leave the host are replaced."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.broker.agent.dir_calls import DirCalls
from streaming.broker.agent.group_following import GroupFollowing
from streaming.broker.agent.ladders import Ladders
from streaming.broker.agent.position_answers import check_batch, find_positions
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.journal.consumers import Consumers
from streaming.broker.journal.journal import Journal
from streaming.broker.protocol.group_json import BatchCheck
from streaming.broker.protocol.group_messages import (
    RECORDS,
    BatchRequest,
    FollowedLog,
    GroupsRequest,
    JournalEnd,
    PositionsRequest,
    RecordsRequest,
)
from streaming.broker.protocol.group_stream import groups_messages, records_messages, table_message
from streaming.broker.protocol.status_messages import PendingCommits
from streaming.broker.watcher.pending_commits import waiting_groups
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import LogKey, key_of
from streaming.errors import AgentError
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.group_rows import GroupChanges

BATCH_SECONDS = 20.0
"""How long a log dir may take until a batch is checked."""


@dataclass(frozen=True, slots=True)
class GroupAnswers:
    """Called from the threads of the server.

    Args:
        tails: the logs that are watched at this moment.
        calls: make the calls into log dirs.
        ladders: None if no log is counted.
        clock: the present time, in seconds.
        redact: makes the form of a name that may leave the host; None if names leave it as they are.
    """

    journal: Journal
    consumers: Consumers
    log_dirs: LogDirs
    tails: Callable[[], list[Tail]]
    following: GroupFollowing
    calls: DirCalls
    ladders: Ladders | None = None
    clock: Callable[[], float] = time.time
    redact: Callable[[str], str] | None = None

    def groups(self, request: GroupsRequest) -> Iterator[bytes | pa.Buffer]:
        """The messages of what has changed in the coordinators' logs."""

        def end() -> JournalEnd:
            return JournalEnd(journal=self.consumers.journal(request.consumer), seq=self.journal.end().seq)

        return groups_messages(map(self._redacted, self.following.changes(request.known)), end)

    def _redacted(self, each: GroupChanges | FollowedLog) -> GroupChanges | FollowedLog:
        if self.redact is None or isinstance(each, FollowedLog):
            return each
        return replace(
            each,
            commits=_replaced(each.commits, self.redact, "group"),
            pending=_replaced(each.pending, self.redact, "group"),
            groups=_replaced(each.groups, self.redact, "group", "clients", "hosts", "rebalance_clients", "rebalance_hosts"),
        )

    def positions(self, request: PositionsRequest) -> Iterator[bytes | pa.Buffer]:
        """Where offsets lie in their logs, in one message. Without ladders, nothing is known of any."""
        yield table_message(find_positions(self.ladders, self.calls, request.table(), round(1000 * self.clock())).combine_chunks())

    def records(self, request: RecordsRequest) -> Iterator[bytes | pa.Buffer]:
        """The messages of how many records logs have."""
        if self.ladders is None:
            return records_messages("", 0, whole=True, rows=pa.RecordBatch.from_pylist([], RECORDS))
        totals = self.ladders.totals
        number, whole, rows = totals.changes(request.process, request.number)
        return records_messages(totals.process, number, whole=whole, rows=rows)

    def check_batch(self, request: BatchRequest) -> BatchCheck:
        """Check the batch at an offset.

        Raises:
            AgentError: the log is not here, or cannot be read now.
        """
        key = LogKey(request.broker, request.topic, request.partition, request.topic_id)
        tail = next((tail for tail in self.tails() if tail.cursor.log == key), None)
        if tail is None or tail.away or tail.partition.log_dir.path in self.log_dirs.unavailable:
            raise AgentError(f"{key} is not here, or its log dir cannot be read now")
        path = tail.partition.path
        try:
            return self.calls.call(tail.partition.log_dir.path, lambda: check_batch(list_segments(path), request.offset), BATCH_SECONDS)
        except (OSError, TimeoutError) as error:
            raise AgentError(f"{key} cannot be read: {error}") from error


def _replaced(rows: pa.RecordBatch, redact: Callable[[str], str], *columns: str) -> pa.RecordBatch:
    """The rows with other names in columns of texts, or of lists of texts."""
    for column in columns:
        values = rows[column]
        texts = values.flatten() if pa.types.is_list(values.type) else values
        spelled = texts.dictionary_encode()
        names = pa.array([redact(name) for name in spelled.dictionary.to_pylist()], pa.string())
        changed = pa.DictionaryArray.from_arrays(spelled.indices, names).dictionary_decode()
        if pa.types.is_list(values.type):
            sizes = [0, *values.value_lengths().to_pylist()]
            changed = pa.ListArray.from_arrays(pa.array(np.cumsum(sizes), pa.int32()), changed)
        rows = rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), changed)
    return rows


log = logging.getLogger(__name__)

MOST_ANSWERED = 20
"""The most transactions that one request may contain: each needs a read of a log."""


def answer(transactions: Iterable[PendingCommits], tails: Iterable[Tail], redact: Callable[[str], str]) -> Iterator[PendingCommits]:
    """Return those of the transactions whose logs are here and can be read, with their groups.

    Args:
        redact: makes the name of a group that may leave the host.
    """
    wanted = [each for each in transactions if each.topic == OFFSETS_TOPIC][:MOST_ANSWERED]
    if not wanted:
        return
    there = {tail.cursor.log: tail for tail in tails}
    for each in wanted:
        tail = there.get(key_of(each))
        if tail is None or tail.away or not tail.resumed:
            continue
        try:
            found = waiting_groups(list_segments(tail.partition.path), each.producer_id, each.first_offset)
        except OSError as error:
            log.warning("groups that wait cannot be read", extra={"path": str(tail.partition.path), "error": str(error)})
            continue
        yield replace(each, groups=[redact(group) for group in found.groups], more=found.more)
