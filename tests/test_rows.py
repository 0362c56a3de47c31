"""Rows as they are packed: those of an earlier version lack the last columns, those of a later one have more."""

import struct

import pyarrow as pa
import pytest

from streaming.common.rows import COORDINATOR, Kind, pack_rows, unpack_entries, unpack_rows
from tests.tables import each_row

FIRST = pa.schema([("name", pa.string()), ("size", pa.int64())])
SECOND = FIRST.append(pa.field("gaps", pa.int32()))
THIRD = SECOND.append(pa.field("blob", pa.binary()))
ROWS = [{"name": "a", "size": 1, "gaps": 2, "blob": b"x"}, {"name": "", "size": -1, "gaps": 0, "blob": None}]


def packed(schema: pa.Schema) -> bytes:
    return pack_rows(pa.RecordBatch.from_pylist(ROWS, schema))


@pytest.mark.parametrize("earlier", [FIRST, SECOND, THIRD])
def test_columns_that_an_earlier_version_lacks_have_their_defaults(earlier: pa.Schema) -> None:
    defaults = {"gaps": -7, "blob": None}
    found = unpack_rows(packed(earlier), THIRD, defaults)
    assert found.schema == THIRD
    assert found.to_pylist() == [{name: row[name] if name in earlier.names else defaults[name] for name in THIRD.names} for row in ROWS]


@pytest.mark.parametrize("earlier", [FIRST, SECOND])
def test_columns_of_a_later_version_are_left_out(earlier: pa.Schema) -> None:
    assert unpack_rows(packed(THIRD), earlier).to_pylist() == [{name: row[name] for name in earlier.names} for row in ROWS]


def test_a_column_without_a_default_has_to_be_there() -> None:
    with pytest.raises((pa.ArrowInvalid, OSError)):
        unpack_rows(packed(FIRST), THIRD, {"blob": None})
    with pytest.raises((pa.ArrowInvalid, OSError)):
        unpack_rows(b"something else", THIRD, {"blob": None, "gaps": 0})


def test_a_kind_of_a_later_version_is_none_of_these() -> None:
    later = Kind("moved")
    assert isinstance(later, Kind)
    assert (str(later), later == "moved", later in tuple(Kind)) == ("moved", True, False)
    assert Kind("gone") is Kind.GONE


@each_row("packed", [b"", b"\0" * 100, b"\xff" * 40])
def test_what_are_no_packed_rows_is_refused(packed: bytes) -> None:
    with pytest.raises(pa.ArrowInvalid):
        unpack_entries(packed)


def test_packed_rows_whose_texts_lie_outside_of_them_are_refused() -> None:
    row = dict.fromkeys(COORDINATOR.names, 1) | {"transactional_id": "t" * 7_777, "state": "Empty", "partitions": []}
    entries = pa.RecordBatch.from_pylist([row], COORDINATOR)
    packed = pack_rows(entries)
    assert unpack_entries(packed).equals(entries)
    with pytest.raises(pa.ArrowInvalid):
        unpack_entries(packed.replace(struct.pack("<ii", 0, 7_777), struct.pack("<ii", 0, 1 << 30)))
