"""Answers about consumer groups, cut into messages and put together again."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol import group_stream
from streaming.broker.protocol.group_messages import RECORDS, FollowedLog, Following, JournalEnd
from streaming.broker.protocol.group_stream import groups_messages, read_groups, read_records, read_table, records_messages, table_message
from streaming.errors import AgentError
from streaming.kafka.groups.group_rows import COMMITS, GROUPS, PENDING, GroupChanges
from tests.tables import each_row

MOVES = GROUPS.field("moves").type
END = JournalEnd(journal="j", seq=7)


def rows(schema: pa.Schema, count: int) -> pa.RecordBatch:
    """So many rows, each different."""
    of_type = {pa.string(): str, pa.int32(): int, pa.int64(): int, pa.bool_(): bool}
    of_type |= {pa.list_(pa.string()): lambda item: [str(item)], pa.list_(pa.int64()): lambda item: [item]}
    of_type[pa.binary()] = lambda item: str(item).encode()
    of_type[MOVES] = lambda item: [{field.name: of_type[field.type](item) for field in MOVES.value_type}]
    return pa.RecordBatch.from_pylist([{field.name: of_type[field.type](item) for field in schema} for item in range(count)], schema)


def changes(coordinator: int, commits: int, pending: int, groups: int) -> GroupChanges:
    return GroupChanges(
        broker=1,
        topic="__consumer_offsets",
        topic_id="id",
        coordinator=coordinator,
        edition="e",
        version=3,
        whole=True,
        upto=99,
        commits=rows(COMMITS, commits),
        pending=rows(PENDING, pending),
        groups=rows(GROUPS, groups),
        unreadable=4,
        omitted=5,
    )


def sent(answers: list[GroupChanges | FollowedLog]) -> Iterator[pa.Buffer]:
    """The messages as they arrive."""
    return iter([pa.py_buffer(each) for each in groups_messages(answers, lambda: END)])


def reported(each: GroupChanges | FollowedLog) -> object:
    """All of it, in a form that can be compared."""
    if isinstance(each, FollowedLog):
        return each
    return [table.to_pylist() if isinstance(table, pa.RecordBatch) else table for table in (getattr(each, n) for n in each.__slots__)]


COUNTS = st.integers(0, 5)
CHANGES = st.builds(changes, COUNTS, COUNTS, COUNTS, COUNTS)
OTHERS = st.builds(
    FollowedLog,
    broker=COUNTS,
    topic=st.sampled_from(["__consumer_offsets", "seq"]),
    topic_id=st.just("seq"),
    coordinator=COUNTS,
    following=st.sampled_from([Following.READING, Following.UNAVAILABLE]),
)


@given(st.lists(CHANGES | OTHERS, max_size=4), st.integers(1, 3))
def test_an_answer_arrives_as_it_was_however_its_tables_are_cut(found: list[GroupChanges | FollowedLog], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_stream, "MOST_ROWS", most)
        answer = read_groups(sent(found))
    assert (answer.journal, answer.seq) == ("j", 7)
    assert [reported(each) for each in answer.changes] == [reported(each) for each in found if isinstance(each, GroupChanges)]
    assert answer.others == [each for each in found if isinstance(each, FollowedLog)]


def test_the_end_of_the_journal_is_taken_after_everything_else() -> None:
    order = []

    def found() -> Iterator[GroupChanges]:
        order.append("state")
        yield changes(0, 1, 0, 0)
        order.append("state")

    def end() -> JournalEnd:
        order.append("end")
        return END

    read_groups(iter([pa.py_buffer(each) for each in groups_messages(found(), end)]))
    assert order == ["state", "state", "end"]


@each_row("left", range(5))
def test_an_answer_that_is_cut_off_is_an_error(left: int) -> None:
    messages = list(sent([changes(0, 1, 1, 1)]))
    assert len(messages) == 5
    with pytest.raises(AgentError, match=r"no end|cut off"):
        read_groups(iter(messages[:left]))


@each_row("message", [b"", b"\0\0", b"7", b"{}", table_message(rows(COMMITS, 1)).to_pybytes()])
def test_what_is_no_answer_is_an_error(message: bytes) -> None:
    with pytest.raises(AgentError):
        read_groups(iter([pa.py_buffer(message)]))


def test_columns_of_a_later_version_are_dropped_and_a_missing_one_is_an_error() -> None:
    later = rows(COMMITS, 2)
    more = pa.table({**{name: later[name] for name in COMMITS.names}, "more": [1, 2]})
    assert read_table(table_message(more), COMMITS).to_pylist() == later.to_pylist()
    with pytest.raises(AgentError, match="its rows cannot be read") as refused:
        read_table(table_message(more.drop_columns("commit_ms")), COMMITS)
    assert refused.value.reason == "protocol"
    with pytest.raises(AgentError, match="its rows cannot be read"):
        read_table(pa.py_buffer(b"no table"), COMMITS)


@given(st.integers(0, 5), st.integers(1, 3), st.booleans())
def test_numbers_of_records_arrive_as_they_were(count: int, most: int, whole: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_stream, "MOST_ROWS", most)
        messages = [pa.py_buffer(each) for each in records_messages("p", 3, whole=whole, rows=rows(RECORDS, count))]
    answer = read_records(messages)
    assert (answer.process, answer.number, answer.whole, answer.rows.to_pylist()) == ("p", 3, whole, rows(RECORDS, count).to_pylist())
    with pytest.raises(AgentError, match="cut off"):
        read_records(messages[:-1])
