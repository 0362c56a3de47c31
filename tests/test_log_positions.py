"""Positions as an offset of Spark holds them: what is equal is written alike, and what is damaged is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.log_positions import MOST_EPOCHS, READABLE, LogName, Position, decode, encode, reached, without_begins
from streaming.errors import UsageError

NUMBERS = st.integers(0, 2**63 - 1)
EPOCHS = st.lists(st.tuples(st.integers(0, 2**31 - 1), NUMBERS), max_size=MOST_EPOCHS).map(tuple)
POSITIONS = st.dictionaries(
    st.builds(LogName, st.sampled_from(["a", "b", "ä-0"]), st.integers(0, 2**31 - 1)),
    st.builds(Position, st.sampled_from(["", "x", "y"]), NUMBERS, EPOCHS, st.integers(-1, 5)),
    max_size=8,
)


@given(POSITIONS)
def test_what_is_written_is_read(positions: dict[LogName, Position]) -> None:
    encoded = json.loads(json.dumps(encode(positions)))
    assert decode(encoded) == positions
    assert json.dumps(encode(dict(reversed(positions.items())))) == json.dumps(encode(positions))


def test_a_few_logs_are_written_in_words_and_many_packed() -> None:
    many = {
        LogName(f"topic-{number // 100}", number % 100): Position("i" * 22, number * 977, ((3, 0), (4, 5)))
        for number in range(READABLE + 1)
    }
    few = dict(list(many.items())[:2])
    assert encode(few) == {
        "version": 1,
        "offsets": {"topic-0": {"0": 0, "1": 977}},
        "epochs": {"topic-0": {"0": "3@0 4@5", "1": "3@0 4@5"}},
        "topic_ids": {"topic-0": "i" * 22},
        "begins": {},
    }
    packed = encode(many)
    assert packed["logs"] == READABLE + 1
    assert "offsets" not in packed
    assert decode(packed) == many
    assert len(json.dumps(packed)) < 20 * len(many)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        {"journal": "j", "seq": 3, "total": 9, "turn": 0},
        {"version": 2, "offsets": {}},
        {"version": 1, "offsets": {"a": {"0": "1"}}, "epochs": {}, "topic_ids": {}, "begins": {}},
        {"version": 1, "offsets": {"a": {"0": 1}}, "epochs": {"a": {"0": 3}}, "topic_ids": {}, "begins": {}},
        {"version": 1, "offsets": {"a": {"0": 1}}, "epochs": {"a": {"0": "3@"}}, "topic_ids": {}, "begins": {}},
        {"version": 1, "offsets": {"a": 1}, "epochs": {}, "topic_ids": {}, "begins": {}},
        {"version": 1, "logs": 1, "packed": "!"},
        {"version": 1, "logs": 2, "packed": "AAAA"},
    ],
)
def test_an_offset_of_another_version_and_a_damaged_one_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"the checkpoint's offset is .*: begin the query with a new checkpointLocation"):
        decode(wrong)


def test_a_packed_offset_that_lacks_logs_is_refused() -> None:
    packed = encode({LogName("t", number): Position("", number) for number in range(READABLE + 1)})
    with pytest.raises(UsageError, match="logs are missing"):
        decode(packed | {"logs": 7})


def test_targets_are_reached() -> None:
    name, other = LogName("t", 0), LogName("u", 0)
    target = {name: Position("i", 5)}
    assert reached({name: Position("i", 5), other: Position("j", 0)}, target)
    assert reached({name: Position("i", 6)}, target)
    assert reached({name: Position("later", 1)}, target), "it was made anew: what was wanted is gone"
    assert not reached({name: Position("i", 4)}, target)
    assert not reached({other: Position("i", 9)}, target)
    assert without_begins({name: Position("i", 5, begin=3)}) == target
