"""What follows from a class of columns."""

from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa
import pytest

from streaming.common.column_types import (
    LATER,
    Blob,
    Count,
    Counts,
    Flag,
    Int,
    Long,
    Text,
    columns_of,
    counts_of,
    defaults_of,
    later_of,
    plus,
    widths_of,
)


@dataclass(frozen=True, slots=True)
class Range:
    topic: Text
    partition: Int = -1
    offset: Annotated[Long, LATER] = -1
    settled: Flag = False
    records: Count = 0
    buckets: Counts = (0,) * 3
    detail: Blob = None
    note: str = "no column"


@dataclass(frozen=True, slots=True)
class Sent(Range):
    seq: Annotated[Count, LATER] = 0


def test_a_class_declares_columns_in_its_order_those_of_its_base_first() -> None:
    longs = pa.list_(pa.int64())
    names = ("topic", "partition", "offset", "settled", "records", "buckets", "detail", "seq")
    types = (pa.string(), pa.int32(), pa.int64(), pa.bool_(), pa.int64(), longs, pa.binary(), pa.int64())
    assert pa.schema(columns_of(Sent)) == pa.schema(zip(names, types, strict=True))
    assert list(columns_of(Range)) == list(columns_of(Sent))[:-1]


def test_what_is_added_is_a_count() -> None:
    assert (counts_of(Range), counts_of(Sent)) == (("records", "buckets"), ("records", "buckets", "seq"))
    assert (plus(2, 3), plus((1, 2), (3, 4))) == (5, (4, 6))


def test_defaults() -> None:
    assert "topic" not in defaults_of(Sent)
    assert later_of(Sent) == {"offset": -1, "seq": 0}
    assert widths_of(Sent) == {"buckets": 3}


def test_columns_cannot_be_changed_by_accident() -> None:
    with pytest.raises(AttributeError):
        Sent("t").seq = 1  # type: ignore[misc]
