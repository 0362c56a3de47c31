"""What coordinators write about transactional ids."""

import json
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.coordinator_states import (
    TopicPartitions,
    TransactionMetadata,
    TransactionState,
    read_transaction_key,
    read_transaction_value,
)
from streaming.simulator.coordinators import IdState, transaction_record
from streaming.simulator.coordinators import StoredTransaction as Written
from tests.formats.dumped import columns, files, read, reported
from tests.formats.offsets_topic import records_of
from tests.formats.vectors import TIME, TRANSACTION_VALUES
from tests.tables import each_row

FOO = (TopicPartitions("foo", (0,)),)
TOPICS = st.sampled_from(["foo", "bar-1", "__consumer_offsets"])
PAYLOAD = re.compile(r" key: (.*) payload: (.*)$")


def metadata(**fields: object) -> TransactionMetadata:
    always: dict[str, object] = {"producer_id": 4000, "producer_epoch": 3, "timeout_ms": 60000, "last_update_timestamp": TIME}
    return TransactionMetadata(**(always | fields))  # type: ignore[arg-type]


@each_row(
    ("name", "expected"),
    [
        ("ongoing 0", metadata(state=TransactionState.ONGOING, partitions=FOO, start_timestamp=TIME)),
        ("empty 0", metadata(producer_epoch=0, state=TransactionState.EMPTY, partitions=(), start_timestamp=-1)),
        (
            "ongoing 1",
            metadata(
                state=TransactionState.ONGOING,
                partitions=FOO,
                start_timestamp=TIME,
                previous_producer_id=4000,
                client_transaction_version=2,
            ),
        ),
        (
            "all tags",
            metadata(
                state=TransactionState.COMPLETE_COMMIT,
                partitions=(),
                start_timestamp=-1,
                previous_producer_id=3999,
                next_producer_id=4001,
                client_transaction_version=2,
                next_producer_epoch=8,
            ),
        ),
    ],
)
def test_what_kafka_writes_is_understood(name: str, expected: TransactionMetadata) -> None:
    assert read_transaction_value(TRANSACTION_VALUES[name]) == expected


def test_keys() -> None:
    assert read_transaction_key(bytes.fromhex("00000003747831")) == "tx1"
    assert read_transaction_key(b"\0\1 whatever comes later") is None


def kafkas_json(metadata: TransactionMetadata) -> dict[str, object]:
    tagged = {
        "previousProducerId": (metadata.previous_producer_id, -1),
        "nextProducerId": (metadata.next_producer_id, -1),
        "clientTransactionVersion": (metadata.client_transaction_version, 0),
        "nextProducerEpoch": (metadata.next_producer_epoch, -1),
    }
    return {
        "producerId": metadata.producer_id,
        "producerEpoch": metadata.producer_epoch,
        "transactionTimeoutMs": metadata.timeout_ms,
        "transactionStatus": metadata.state.value,
        "transactionPartitions": [{"topic": one.topic, "partitionIds": list(one.partitions)} for one in metadata.partitions],
        "transactionLastUpdateTimestampMs": metadata.last_update_timestamp,
        "transactionStartTimestampMs": metadata.start_timestamp,
    } | {name: value for name, (value, default) in tagged.items() if value != default}


@pytest.mark.parametrize("name", [name for name in files(".log") if "__transaction_state" in name])
def test_records_are_what_kafka_prints(name: str) -> None:
    records = records_of(read(name), columns(read(name)))
    lines = [match for line in reported(name) if (match := PAYLOAD.search(line))]
    assert len(records) == len(lines) > 0
    for record, line in zip(records, lines, strict=True):
        assert record.key is not None
        assert record.value is not None
        assert json.loads(line[1]) == {"type": "0", "data": {"transactionalId": read_transaction_key(record.key)}}
        expected = json.loads(line[2])["data"]
        expected["transactionPartitions"] = expected["transactionPartitions"] or []
        assert kafkas_json(read_transaction_value(record.value)) == expected


@given(
    st.text(max_size=20),
    st.sampled_from(IdState),
    st.lists(st.tuples(TOPICS, st.integers(0, 2**31 - 1)), max_size=5, unique=True),
    st.integers(0, 1),
    st.integers(-1, 2**40),
)
def test_what_the_simulator_writes_reads_back(
    transactional_id: str, state: IdState, partitions: list[tuple[str, int]], version: int, previous: int
) -> None:
    written = Written(
        transactional_id=transactional_id,
        producer_id=7,
        epoch=1,
        timeout_ms=1000,
        state=state,
        partitions=tuple(partitions),
        updated=TIME,
        started=TIME - 5,
        previous_producer_id=previous,
    )
    record = transaction_record(written, version)
    assert record.key is not None
    assert record.value is not None
    assert read_transaction_key(record.key) == transactional_id
    found = read_transaction_value(record.value)
    assert (found.producer_id, found.producer_epoch, found.timeout_ms) == (7, 1, 1000)
    assert (found.state, found.last_update_timestamp, found.start_timestamp) == (state, TIME, TIME - 5)
    named = [(one.topic, number) for one in found.partitions for number in one.partitions]
    assert sorted(named) == ([] if state is IdState.EMPTY else sorted(partitions))
    assert found.previous_producer_id == (previous if version else -1)


def test_states_are_called_as_kafka_calls_them() -> None:
    assert [state.kafka_name for state in TransactionState] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


@each_row(
    ("value", "what"),
    [
        (b"", "cut short"),
        (b"\0\2", "version 2 is not known"),
        (b"\xff\xff", "version -1 is not known"),
        (TRANSACTION_VALUES["ongoing 0"][:16] + b"\x08" + TRANSACTION_VALUES["ongoing 0"][17:], "state 8 is not known"),
        (TRANSACTION_VALUES["ongoing 0"] + b"\0", "after the end"),
        (TRANSACTION_VALUES["ongoing 1"][:-1], "cut short"),
    ],
)
def test_damaged_and_newer_values_are_refused(value: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        read_transaction_value(value)


@each_row("key", [b"", b"\0", b"\0\0\0\5abc", b"\0\0\0\1ab", b"\0\0\xff\xff"])
def test_damaged_keys_are_refused(key: bytes) -> None:
    with pytest.raises(FormatError):
        read_transaction_key(key)


@given(st.binary(max_size=80), st.sampled_from(sorted(TRANSACTION_VALUES)), st.integers(0, 90))
def test_garbage_is_refused_and_nothing_else(garbage: bytes, name: str, at: int) -> None:
    for data in (garbage, TRANSACTION_VALUES[name][:at] + garbage):
        with suppress(FormatError):
            read_transaction_value(data)
        with suppress(FormatError):
            read_transaction_key(data)
