"""The messages of an answer about consumer groups: JSON that says what follows, and tables of Arrow. A message holds `MOST_ROWS` rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import pyarrow as pa

from streaming.broker.protocol.group_messages import RECORDS, FollowedLog, Following, JournalEnd, RecordsHeader
from streaming.broker.protocol.json_values import load
from streaming.common.arrow_streams import cast_columns, read_stream
from streaming.errors import AgentError
from streaming.kafka.groups.group_rows import COMMITS, GROUPS, PENDING, GroupChanges

MOST_ROWS = 65_536
"""The most rows of a table."""

_TABLES = {"commits": COMMITS, "pending": PENDING, "groups": GROUPS}

_HEADER = tuple(each.name for each in fields(GroupChanges) if each.name not in _TABLES)
"""What a `FollowedLog` says of changes."""

MESSAGE_BYTES = 8 << 20
"""Rows of more bytes are cut into several messages."""


def groups_messages(answers: Iterable[GroupChanges | FollowedLog], end: Callable[[], JournalEnd]) -> Iterator[bytes | pa.Buffer]:
    """The messages of a `GroupsAnswer`, log by log. ``end`` is called when all of ``answers`` is taken."""
    for each in answers:
        if isinstance(each, FollowedLog):
            yield each.encode()
            continue
        tables = [_cut(getattr(each, name)) for name in _TABLES]
        header = FollowedLog(**{name: getattr(each, name) for name in _HEADER})
        yield replace(header, commits=len(tables[0]), pending=len(tables[1]), groups=len(tables[2])).encode()
        for parts in tables:
            yield from map(table_message, parts)
    yield end().encode()


def _cut(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [rows.slice(begin, MOST_ROWS) for begin in range(0, rows.num_rows, MOST_ROWS)]


def table_message(table: pa.RecordBatch | pa.Table) -> pa.Buffer:
    """A table as one message."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return sink.getvalue()


def row_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Buffer]:
    """Rows as messages of some MiB each; those of one row may be larger."""
    for batch in batches:
        if batch.num_rows > 1 and (batch.num_rows > MOST_ROWS or batch.nbytes > MESSAGE_BYTES):
            half = batch.num_rows // 2
            yield from row_messages([batch.slice(0, half), batch.slice(half)])
        else:
            yield table_message(batch)


def read_groups(messages: Iterator[pa.Buffer]) -> GroupsAnswer:
    """The answer that these messages are. Raises AgentError: they are none."""
    changes: list[GroupChanges] = []
    others: list[FollowedLog] = []
    for message in messages:
        data = bytes(message)
        if _is_end(data):
            end = JournalEnd.decode(data)
            return GroupsAnswer(journal=end.journal, seq=end.seq, changes=changes, others=others)
        header = FollowedLog.decode(data)
        if header.following != Following.READ:
            others.append(header)
            continue
        tables = {name: _joined(messages, getattr(header, name), schema) for name, schema in _TABLES.items()}
        changes.append(GroupChanges(**{name: getattr(header, name) for name in _HEADER}, **tables))
    raise AgentError("its answer about groups has no end", "protocol")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsAnswer:
    """An agent's answer about the coordinators' logs.

    ``changes``: of the logs that are read, also of those in which nothing has changed. ``others``: logs that the agent has and whose
    commits it does not know now. ``journal``, ``seq``: what was read before any of the changes is published up to here.
    """

    journal: str
    seq: int
    changes: list[GroupChanges]
    others: list[FollowedLog]


def _is_end(message: bytes) -> bool:
    try:
        return "seq" in load(message)
    except (ValueError, TypeError) as error:
        raise AgentError(f"its answer about groups cannot be read ({error})", "protocol") from error


def _joined(messages: Iterator[pa.Buffer], count: int, schema: pa.Schema) -> pa.RecordBatch:
    found = [read_table(message, schema) for _, message in zip(range(count), messages, strict=False)]
    if len(found) != count:
        raise AgentError("its answer about groups is cut off", "protocol")
    batches = pa.concat_tables(found).combine_chunks().to_batches() if found else []
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema)


def read_table(message: pa.Buffer, schema: pa.Schema) -> pa.Table:
    """The table of a message, with the columns of ``schema`` by their names; others are dropped.

    Raises:
        AgentError: it is no table, or a column is missing.
    """
    try:
        return cast_columns(read_stream(message), schema)
    except (pa.ArrowException, KeyError) as error:
        raise AgentError(f"its rows cannot be read ({error}): are job and agent of the same version?", "protocol") from error


def records_messages(process: str, number: int, *, whole: bool, rows: pa.RecordBatch) -> Iterator[bytes | pa.Buffer]:
    """The messages of a `RecordsAnswer`."""
    tables = _cut(rows)
    yield RecordsHeader(process=process, number=number, whole=whole, tables=len(tables)).encode()
    yield from map(table_message, tables)


def read_records(messages: Sequence[pa.Buffer]) -> RecordsAnswer:
    """The answer that these messages are. Raises AgentError: they are none."""
    header = RecordsHeader.decode(bytes(messages[0])) if messages else None
    if header is None or header.tables != len(messages) - 1:
        raise AgentError("its answer about records is cut off", "protocol")
    rows = [read_table(message, RECORDS) for message in messages[1:]]
    table = pa.concat_tables(rows) if rows else RECORDS.empty_table()
    return RecordsAnswer(process=header.process, number=header.number, whole=header.whole, rows=table)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsAnswer:
    """The changes of `RECORDS` that lead to the version ``process``, ``number``; ``whole``: ``rows`` are all rows."""

    process: str
    number: int
    whole: bool
    rows: pa.Table
