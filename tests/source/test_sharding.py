"""Every row gets to the fold of its partition."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.event_tables import events_table
from streaming.common.event_row import EVENTS, Event
from streaming.common.rows import PACKED, ROWS, SHARD, Kind, unpack_rows
from streaming.spark.source.stream import by_shard, shard_of
from tests.tables import each_row


@each_row(
    ("topic", "partition", "shards", "shard"),
    [
        ("orders", 0, 64, 16),
        ("orders", 1, 64, 6),
        ("orders", 0, 16, 0),
        ("__consumer_offsets", 49, 64, 36),
        ("", -1, 64, 52),
    ],
)
def test_a_shard_never_changes(topic: str, partition: int, shards: int, shard: int) -> None:
    """The state in people's checkpoints lies in it."""
    assert shard_of(topic, partition, shards) == shard


def events(*found: Event) -> pa.Table:
    return events_table("a1", "j1", [(seq, [event]) for seq, event in enumerate(found)])


logs = st.builds(
    Event,
    kind=st.sampled_from([Kind.APPENDED, Kind.CENSUS, Kind.GONE]),
    broker=st.integers(1, 3),
    topic=st.sampled_from(["orders", "bills", ""]),
    partition=st.integers(-1, 3),
)
closing = st.just(Event(kind=Kind.CENSUS_END))


@given(st.lists(st.one_of(logs, logs, closing), max_size=12), st.integers(1, 9))
def test_a_row_goes_to_its_shard_and_the_end_of_a_census_to_all(found: list[Event], shards: int) -> None:
    table = events(*found)
    sharded = by_shard(table, shards)
    assert sharded.schema == PACKED
    assert len(set(sharded[SHARD].to_pylist())) == len(sharded)
    rows = [row | {SHARD: each[SHARD]} for each in sharded.to_pylist() for row in unpack_rows(each[ROWS], EVENTS).to_pylist()]
    for seq, event in enumerate(found):
        copies = [row for row in rows if row["seq"] == seq]
        expected = range(shards) if event.kind is Kind.CENSUS_END else [shard_of(event.topic, event.partition, shards)]
        assert sorted(row[SHARD] for row in copies) == list(expected)
        (original,) = table.slice(seq, 1).to_pylist()
        assert all({**row, SHARD: None} == {**original, SHARD: None} for row in copies)
    for each in sharded.to_pylist():  # in the order in which they came
        seqs = unpack_rows(each[ROWS], EVENTS)["seq"].to_pylist()
        assert [seq for seq in seqs if found[seq].kind is not Kind.CENSUS_END] == sorted(
            seq for seq in seqs if found[seq].kind is not Kind.CENSUS_END
        )


def test_all_replicas_of_a_partition_meet() -> None:
    table = by_shard(events(*(Event(kind=Kind.APPENDED, broker=broker, topic="orders", partition=3) for broker in range(5))), 64)
    assert len(table) == 1


def test_that_all_has_arrived_goes_along_with_another_row() -> None:
    arrived = Event(kind=Kind.ARRIVED, bytes=9)
    order, bill = (Event(kind=Kind.APPENDED, topic=topic, partition=0) for topic in ("orders", "bills"))

    def shards(*found: Event) -> dict[int, list[str]]:
        packed = by_shard(events(*found), 64)
        rows = [unpack_rows(each, EVENTS)["kind"].to_pylist() for each in packed[ROWS].to_pylist()]
        return dict(zip(packed[SHARD].to_pylist(), rows, strict=True))

    both = shards(order, bill, arrived)
    assert (len(both), both[shard_of("orders", 0, 64)]) == (2, ["appended", "arrived"])
    assert list(shards(arrived).values()) == [["arrived"]]
    assert shards(Event(kind=Kind.CENSUS_END), arrived)[0] == ["arrived", "census_end"]
