"""The key of a log: what stands for it in logs, columns and conditions."""

import pyarrow as pa

from streaming.common.event_row import Event
from streaming.common.log_key import KEY_COLUMNS, LogKey, key_arrays, key_of
from streaming.common.rows import Kind


def test_a_key_is_written_as_its_directory() -> None:
    assert f"{LogKey(1, 'my-topic', 7, 'id')}" == "my-topic-7"


def test_its_columns_have_the_types_of_the_rows() -> None:
    assert pa.schema(KEY_COLUMNS) == pa.schema(
        [("broker", pa.int32()), ("topic", pa.string()), ("partition", pa.int32()), ("topic_id", pa.string())]
    )


def test_columns_of_keys() -> None:
    keys = [LogKey(1, "t", 7, "id"), LogKey(2, "u", 8, "")]
    assert [array.to_pylist() for array in key_arrays(keys)] == [[1, 2], ["t", "u"], [7, 8], ["id", ""]]
    empty = key_arrays([])
    assert [array.type for array in empty] == [each.type for each in KEY_COLUMNS]
    assert len(empty[0]) == 0


def test_the_log_of_a_value() -> None:
    key = LogKey(1, "t", 7, "id")
    assert key_of(Event(kind=Kind.GONE, **key._asdict())) == key
