"""Events, batches and transactions as rows for everybody: null where nothing is known, plain columns where there were packed ones."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from streaming.broker.protocol.event_tables import events_table
from streaming.common.event_row import Event
from streaming.common.rows import BATCHES, TRANSACTION_ROWS, TRANSACTION_STEPS, Kind, StartSource, Step
from streaming.spark.source.public_rows import ARROW, public_batches, public_ranges, public_transactions, skipped_row
from streaming.spark.source.relations import Relation

MS = 1_700_000_000_123
TIME = datetime.fromtimestamp(MS // 1000, UTC).replace(microsecond=123_000)

APPENDED = Event(
    kind=Kind.APPENDED,
    broker=1,
    log_dir="/a",
    topic="orders",
    partition=0,
    topic_id="id",
    segment=0,
    start_position=0,
    end_position=300,
    base_offset=0,
    next_offset=5,
    log_epoch=3,
    leads=1,
    max_timestamp=MS,
    bytes=300,
    batches=2,
    records=5,
    codec_bytes=(0, 0, 0, 100, 122),
)


def rows(*events: Event) -> list[dict[str, object]]:
    made = public_ranges(events_table("a1", "j1", [(7, list(events))]))
    assert made.schema.equals(ARROW[Relation.RANGES])
    made.validate(full=True)
    return made.to_pylist()


def packed(*steps: tuple[int, ...]) -> bytes:
    return np.array(list(steps), TRANSACTION_STEPS).tobytes()


def test_an_appended_range() -> None:
    (row,) = rows(APPENDED)
    assert row["kind"] == "appended"
    assert row["max_timestamp"] == TIME
    assert (row["is_leader"], row["leader_epoch"], row["bytes"], row["missing_bytes"]) == (True, 3, 300, 0)
    assert row["codec_bytes"] == [("lz4", 100), ("zstd", 122)]
    assert (row["markers"], row["transactions"], row["reason"]) == ([], [], None)


def test_what_is_not_known_is_null() -> None:
    (row,) = rows(Event(kind=Kind.APPENDED, topic="orders", partition=0, bytes=10, batches=1))
    nulls = ("broker", "topic_id", "segment", "start_position", "leader_epoch", "is_leader", "max_timestamp", "reason")
    assert [row[name] for name in nulls] == [None] * len(nulls)
    (follower,) = rows(Event(kind=Kind.APPENDED, leads=0))
    assert follower["is_leader"] is False


def test_steps_become_markers_and_transactions() -> None:
    data = (Step.DATA, StartSource.SEEN, 2, 70, 0, 3, 200, 0, MS, MS + 1)
    commit = (Step.COMMIT, 0, 3, 70, 3, 4, 78, 200, MS + 2, MS + 2)
    ongoing = (Step.ONGOING, StartSource.SNAPSHOT, 2, 71, 0, 3, 200, -1, MS, MS)
    abort = (Step.ABORT, 0, -1, 72, 9, 10, 78, 0, -1, -1)
    found = rows(
        APPENDED,
        Event(kind=Kind.APPENDED, transactions=packed(data, commit)),
        Event(kind=Kind.APPENDED, transactions=packed(ongoing)),
        Event(kind=Kind.APPENDED, transactions=packed(ongoing, abort)),
    )
    assert [len(row["markers"]) for row in found] == [0, 1, 0, 1]  # type: ignore[arg-type]
    assert [len(row["transactions"]) for row in found] == [0, 1, 0, 0]  # type: ignore[arg-type]
    assert found[1]["transactions"] == [
        {
            "producer_id": 70,
            "producer_epoch": 2,
            "first_offset": 0,
            "next_offset": 3,
            "bytes": 200,
            "first_append": TIME,
            "last_append": TIME.replace(microsecond=124_000),
            "source": "seen",
        }
    ]
    assert found[1]["markers"] == [
        {"kind": "commit", "offset": 3, "producer_id": 70, "producer_epoch": 3, "appended_at": TIME.replace(microsecond=125_000)}
    ]
    assert found[3]["markers"][0] | {"kind": "abort", "appended_at": None} == found[3]["markers"][0]  # type: ignore[index]


def test_a_part_of_a_table_has_its_own_steps() -> None:
    commit = (Step.COMMIT, 0, 3, 70, 3, 4, 78, 200, MS, MS)
    table = events_table("a1", "j1", [(7, [APPENDED, Event(kind=Kind.APPENDED, transactions=packed(commit, commit)), APPENDED])])
    assert [len(row["markers"]) for row in public_ranges(table.slice(1, 2)).to_pylist()] == [2, 0]
    assert public_ranges(table.slice(0, 0)).num_rows == 0


@pytest.mark.parametrize("milliseconds", [-1, (1 << 63) - 1])
def test_a_time_that_no_timestamp_can_hold_is_null(milliseconds: int) -> None:
    (row,) = rows(Event(kind=Kind.APPENDED, max_timestamp=milliseconds))
    assert row["max_timestamp"] is None


def test_a_batch() -> None:
    row = {"broker": 1, "log_dir": "/a", "topic": "orders", "partition": 0, "topic_id": "", "codec": "lz4", "producer_id": -1}
    row |= {"producer_epoch": -1, "base_sequence": 4, "leader_epoch": -1, "max_timestamp": TIME, "size": 100}
    made = public_batches(pa.RecordBatch.from_pylist([row], BATCHES))
    assert made.schema.equals(ARROW[Relation.BATCHES])
    (found,) = made.to_pylist()
    assert (found["kind"], found["missing_bytes"], found["size"], found["max_timestamp"]) == ("batch", 0, 100, TIME)
    nulls = ("topic_id", "producer_id", "producer_epoch", "base_sequence", "leader_epoch", "reason")
    assert [found[name] for name in nulls] == [None] * len(nulls)
    made = public_batches(pa.RecordBatch.from_pylist([row | {"producer_id": 7}], BATCHES))
    assert made["base_sequence"].to_pylist() == [4]


def test_transactions() -> None:
    common = {"broker": 1, "log_dir": "/a", "topic": "pay", "partition": 0, "topic_id": "id", "producer_id": 7, "producer_epoch": 1}
    ended = {"committed": 1, "first_offset": 0, "next_offset": 4, "marker_offset": 5, "bytes": 9, "start_ms": MS, "source": 3}
    made = public_transactions(
        pa.RecordBatch.from_pylist(
            [
                common | ended | {"end_ms": MS},
                common | ended | {"committed": -1, "marker_offset": -1, "bytes": -1, "source": 4, "end_ms": -1},
                common
                | {"committed": 0, "first_offset": -1, "next_offset": -1, "marker_offset": 9, "bytes": 0, "source": 0}
                | {"start_ms": -1, "end_ms": MS},
            ],
            TRANSACTION_ROWS,
        ),
        lambda producer_ids: pa.array([{7: "app-1"}.get(each) for each in producer_ids.to_pylist()]),
    )
    assert made.schema.equals(ARROW[Relation.TRANSACTIONS])
    assert made["transactional_id"].to_pylist() == ["app-1"] * 3
    named = ("kind", "first_offset", "last_offset", "marker_offset", "bytes", "begin", "end", "begin_source", "missing_bytes")
    assert [tuple(row[name] for name in named) for row in made.to_pylist()] == [
        ("committed", 0, 3, 5, 9, TIME, TIME, "recorded", 0),
        ("open", 0, 3, None, None, TIME, None, "snapshot", 0),
        ("aborted", None, None, 9, None, None, TIME, None, 0),
    ]


@pytest.mark.parametrize("relation", [Relation.RANGES, Relation.BATCHES, Relation.TRANSACTIONS])
def test_a_skipped_row(relation: Relation) -> None:
    made = skipped_row(relation, {"topic": "orders", "missing_bytes": 5, "reason": "deleted"})
    assert made.schema.equals(ARROW[relation])
    (row,) = made.to_pylist()
    assert (row["kind"], row["topic"], row["missing_bytes"], row["reason"]) == ("skipped", "orders", 5, "deleted")
