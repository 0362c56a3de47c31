"""The newest entries of a range of `__transaction_state`."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import COORDINATOR, NOT_UNDERSTOOD, TOMBSTONE
from streaming.kafka.formats.coordinator_states import read_transaction_key, read_transaction_value
from streaming.kafka.scan.coordinator_entries import CoordinatorEntries, CoordinatorEntry, coordinator_entries
from streaming.simulator.batch_writer import Batch, Codec, Record
from streaming.simulator.coordinators import IdState
from tests.builders import NOW, commit
from tests.formats.dumped import columns, files, read, reported
from tests.formats.segments import written
from tests.scan.coordinator import entries, entries_in, holding, state
from tests.tables import each_row


def holding_some(drawn: list[tuple[str, IdState, bool]], codec: Codec, late_by: int) -> Batch:
    records = [replace(state(name, which), value=None) if gone else state(name, which) for name, which, gone in drawn]
    return replace(holding(*records, codec=codec), delete_horizon=NOW - late_by if late_by else None)


@each_row("codec", list(Codec))
def test_the_newest_entry_of_each_transactional_id(codec: Codec) -> None:
    found = entries(
        holding(state("a"), state("b", producer=8), state("a", IdState.PREPARE_COMMIT), codec=codec),
        holding(state("a", IdState.PREPARE_COMMIT, partitions=(("foo", 0), ("foo", 2), ("bar-1", 1)))),
    )
    assert found == CoordinatorEntries(
        (
            CoordinatorEntry(
                transactional_id="b",
                offset=1,
                state="Ongoing",
                producer_id=8,
                producer_epoch=3,
                timeout_ms=60_000,
                start_ms=NOW,
                last_update_ms=NOW + 1,
            ),
            CoordinatorEntry(
                transactional_id="a",
                offset=3,
                state="PrepareCommit",
                producer_id=7,
                producer_epoch=3,
                timeout_ms=60_000,
                start_ms=NOW,
                last_update_ms=NOW + 1,
                partitions=("foo-0", "foo-2", "bar-1-1"),
            ),
        ),
        0,
    )


def test_an_expired_id_is_reported_as_such() -> None:
    found = entries(holding(state("a"), replace(state("a"), value=None)))
    assert found.entries == (CoordinatorEntry(transactional_id="a", offset=1, state=TOMBSTONE),)


def test_an_entry_of_a_later_version_is_counted_until_another_follows() -> None:
    later = replace(state("a"), value=b"\x00\x63" + bytes(40))
    found = entries(holding(later))
    assert found.entries == (CoordinatorEntry(transactional_id="a", offset=0, state=NOT_UNDERSTOOD),)
    assert found.not_understood == 1
    assert entries(holding(later), holding(state("a"))).not_understood == 0


def test_what_nobody_can_read_is_counted_and_the_rest_is_reported() -> None:
    without_key, short_key, of_another_type = Record(None, b"x"), Record(b"\x00\x00\x00", b"x"), Record(b"\x00\x05anything", b"x")
    found = entries(holding(without_key), holding(short_key), holding(of_another_type), commit(7), holding(state("a")))
    assert ([entry.transactional_id for entry in found.entries], found.unreadable) == (["a"], 2)


def test_a_batch_that_cannot_be_opened_is_counted() -> None:
    first = written([holding(state("a"), codec=Codec.ZSTD), holding(state("b"))])
    damaged = replace(first, data=first.data[:61] + b"\xff" * 4 + first.data[65:])
    found = entries_in(damaged)
    assert ([entry.transactional_id for entry in found.entries], found.unreadable) == (["b"], 1)


def test_columns_have_the_names_that_travel() -> None:
    assert [field.name for field in fields(CoordinatorEntry)] == COORDINATOR.names


IDS = st.sampled_from(["a", "b", "c", "x" * 60, "x" * 61, "x" * 62, "y" * 200])
WRITTEN = st.builds(
    holding_some,
    st.lists(st.tuples(IDS, st.sampled_from(list(IdState)), st.booleans()), min_size=1, max_size=2),
    st.sampled_from([Codec.NONE, Codec.NONE, Codec.NONE, Codec.GZIP]),
    st.sampled_from([0, 0, 1]),
)


@given(st.lists(WRITTEN, max_size=15))
def test_it_is_what_a_look_at_every_record_shows(batches: list[Batch]) -> None:
    expected: dict[str, tuple[str, int]] = {}
    offset = 0
    for one in batches:
        for record in one.records:
            entry = read_transaction_value(record.value) if record.value is not None else None
            assert record.key is not None
            expected[str(read_transaction_key(record.key))] = (TOMBSTONE if entry is None else entry.state.kafka_name, offset)
            offset += 1
    found = entries(*batches)
    assert {entry.transactional_id: (entry.state, entry.offset) for entry in found.entries} == expected
    assert found.unreadable == 0


@pytest.mark.parametrize("name", [name for name in files(".log") if "__transaction_state" in name])
def test_what_kafka_itself_reads_in_the_same_log(name: str) -> None:
    expected: dict[str, tuple[str, int, int]] = {}
    for line in reported(name):
        if " payload: " in line:
            key, payload = (json.loads(part) for part in line.split(" key: ")[1].split(" payload: "))
            value = payload["data"]
            code = int(value["transactionStatus"])
            expected[key["data"]["transactionalId"]] = (
                IdState(code).name,
                int(value["producerId"]),
                int(value["transactionTimeoutMs"]),
            )
    data = read(name)
    found = coordinator_entries(columns(data), np.frombuffer(data, np.uint8))
    assert found.unreadable == 0
    assert {entry.transactional_id: (entry.state.upper(), entry.producer_id, entry.timeout_ms) for entry in found.entries} == {
        name: (state.replace("_", ""), *rest) for name, (state, *rest) in expected.items()
    }
