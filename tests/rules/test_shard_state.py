"""The state of a shard as Spark keeps it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.column_types import columns_of, widths_of
from streaming.common.log_key import LogKey
from streaming.common.rows import SEGMENTS
from streaming.errors import CheckpointError
from streaming.rules.fold import Mark
from streaming.rules.log_state import LogState
from streaming.rules.shard_state import SegmentLists, ShardState

numbers = st.integers(-(2**63), 2**63 - 1)
small = st.integers(-(2**31), 2**31 - 1)
_LISTED = np.zeros(2, SEGMENTS)
_LISTED["base_offset"], _LISTED["size"] = [0, 400], [11145, 1200]
KEPT = LogState(
    agent="a1",
    broker=1,
    topic="orders",
    partition=2,
    topic_id="AAECAwQFBgcICQoLDA0ODw",
    log_dir="/data",
    journal="j1",
    settled=True,
    log_end_offset=500,
    appended_bytes=12345,
    skipped_bytes=(1, 2, 3),
    share_codec_bytes=(12345, 0, 0, 0, 0),
    stopped_at=500,
    stopped_end=12345,
    high_watermark=499,
    transactional=True,
    committed_transactions=7,
    share_transaction_buckets=tuple(range(15)),
    active_producers=3,
    segments_rolled=1,
    active_segment=400,
    active_position=1200,
    transactions=b"open",
    coordinator=b"entries",
    segments=_LISTED.tobytes(),
    newest_segment=400,
    deleted_below=0,
    oldest_timestamp=1_700_000_000_000,
    active_created_ms=1_700_000_000_001,
)
"""What the golden state holds; a column that came since has its default."""

GOLDEN = Path(__file__).parents[1] / "golden"


@st.composite
def log_states(draw: st.DrawFn) -> LogState:
    drawn = {
        pa.string(): st.text(max_size=5),
        pa.bool_(): st.booleans(),
        pa.int32(): small,
        pa.int64(): numbers,
        pa.binary(): st.none() | st.binary(max_size=9),
    }
    widths = {name: st.tuples(*[numbers] * width) for name, width in widths_of(LogState).items()}
    values: dict[str, Any] = {
        each.name: draw(widths[each.name] if each.name in widths else drawn[each.type]) for each in columns_of(LogState)
    }
    return LogState(**values)


def log(topic: str = "orders", **values: int) -> LogState:
    return LogState(**{"agent": "a1", "broker": 1, "topic": topic, "partition": 0, "topic_id": "", **values})


def updated(before: ShardState, touched: dict[LogKey, LogState | None], marks: dict[str, Mark]) -> ShardState:
    """What is found again of both values."""
    before.lists.open()
    value, lists = before.updated(touched, marks), before.lists.value()
    after = ShardState(value, lambda: lists)
    after.lists.open()
    return after


def kept(*states: LogState, marks: dict[str, Mark] | None = None) -> ShardState:
    return updated(ShardState(None), {state.key: state for state in states}, marks or {})


@given(
    st.lists(log_states(), max_size=4, unique_by=lambda state: state.key), st.dictionaries(st.text(), st.builds(Mark, st.text(), numbers))
)
def test_what_was_kept_is_found_again(states: list[LogState], marks: dict[str, Mark]) -> None:
    found = kept(*states, marks=marks)
    assert [found.find(state.key) for state in states] == states
    assert list(found.known()) == [state.key for state in states]
    assert found.marks == marks


def test_only_what_was_touched_changes() -> None:
    first, second, third = log("first"), log("second"), log("third")
    before = kept(first, second, third, marks={"a1": Mark("j1", 3)})
    changed = replace(second, appended_bytes=5)
    after = updated(before, {second.key: changed, third.key: None}, {"a2": Mark("j2", 4)})
    assert [after.find(state.key) for state in (first, second, third)] == [first, changed, None]
    assert after.marks == {"a2": Mark("j2", 4)}


def test_a_shard_without_logs_is_empty() -> None:
    empty = ShardState(None)
    assert (empty.find(LogKey(1, "orders", 0, "")), list(empty.known()), empty.marks) == (None, [], {})
    assert list(updated(empty, {}, {}).known()) == []


def test_a_list_of_segments_is_read_and_written_only_where_one_changes() -> None:
    asked = []
    listed = replace(log(), segments=_LISTED.tobytes())
    first = kept(listed)
    value, lists = first.updated({}, {}), first.lists.value()

    def read() -> bytes:
        asked.append(1)
        return lists

    state = ShardState(value, read)
    counted = state.find(listed.key)
    assert (counted, asked) == (replace(listed, segments=None), [])
    after = state.updated({listed.key: replace(listed, segments=None, appended_bytes=5)}, {})
    assert (state.lists.changed, asked) == (False, [])
    state = ShardState(after, read)
    state.lists.open()
    assert (state.find(listed.key), asked) == (replace(listed, appended_bytes=5), [1])
    state.updated({listed.key: None}, {})
    assert (state.lists.changed, dict(state.lists.open())) == (True, {})


@pytest.mark.parametrize("version", [0, 2])
def test_lists_of_segments_of_another_version_are_refused_in_words(version: int) -> None:
    lists = kept(log()).lists.value()
    with pytest.raises(CheckpointError, match=f"version {version}, this segtail reads 1: use the segtail that wrote it, or name another"):
        SegmentLists(lambda: bytes([version]) + lists[1:]).open()


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 7])
def test_a_state_of_another_version_is_refused_in_words(version: int) -> None:
    value = ShardState(None).updated({log().key: log()}, {})
    with pytest.raises(CheckpointError, match=f"version {version}, this segtail reads 6: use the segtail that wrote it, or name another"):
        ShardState(bytes([version]) + value[1:])


def test_a_value_that_lies_in_a_checkpoint_is_read() -> None:
    """It was written once and for all: a layout that cannot read it is another version."""
    found = ShardState((GOLDEN / "shard_state_6.bin").read_bytes(), (GOLDEN / "segment_lists_3.bin").read_bytes)
    found.lists.open()
    assert found.find(KEPT.key) == KEPT
    assert found.marks == {"a1": Mark("j1", 3)}
