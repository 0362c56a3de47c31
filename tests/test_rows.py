"""The tables of rows and the values that stand for them in Python say the same, column by column."""

from dataclasses import fields
from typing import get_type_hints

import pyarrow as pa

from streaming.journal.events import Event
from streaming.rows import EVENTS, STATES, EventRow
from streaming.rules.log_state import LogState
from streaming.rules.shard_state import NOT_SHOWN

BLOBS = ("detail", "transactions", "coordinator", "segments")
OF_THE_AGENT = ["agent", "journal", "seq", "part"]
KINDS = {pa.string(): str, pa.int32(): int, pa.int64(): int, pa.bool_(): bool, pa.list_(pa.int64()): tuple[int, ...]}


def names(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


def test_an_event_row_has_the_columns_of_the_events_in_their_order() -> None:
    assert names(EventRow) == EVENTS.names


def test_an_event_of_the_journal_has_the_same_columns_but_what_its_agent_adds() -> None:
    assert sorted(names(Event)) == sorted(set(EVENTS.names) - set(OF_THE_AGENT))
    assert EVENTS.names[: len(OF_THE_AGENT)] == OF_THE_AGENT


def test_a_column_has_the_type_of_its_field() -> None:
    hints = {name: bytes if name in BLOBS else kind for name, kind in get_type_hints(EventRow).items()}
    assert {name: hints[name] for name in EVENTS.names} == {each.name: KINDS.get(each.type, bytes) for each in EVENTS}


def test_a_state_row_is_a_log_state_without_what_the_fold_keeps_for_itself() -> None:
    assert set(STATES.names) == set(names(LogState)) - set(NOT_SHOWN) | {"change"}
