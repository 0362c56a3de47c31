"""The markers and the transactions of ranges as lists, one of each for a row, unpacked for all rows at once."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.common.rows import TRANSACTION_STEPS, StartSource, Step
from streaming.rules.transaction_fold import Steps
from streaming.spark.source.public_values import times

SOURCES = pa.array(["", *(source.name.lower() for source in StartSource)])
"""Where the time of a beginning is from, by `StartSource`."""

_MARKERS = pa.array([step.name.lower() for step in Step])


def markers_and_transactions(packed: pa.Array, markers: pa.ListType, transactions: pa.ListType) -> tuple[pa.Array, pa.Array]:
    """Both columns, of packed steps; an empty list where there is none.

    What was open before a row (steps of kind ONGOING) did not happen in it, and is in neither.

    Args:
        packed: `streaming.common.rows.TRANSACTION_STEPS` for each row, or null.
        markers: the type of the first column.
        transactions: that of the second one.
    """
    if packed.null_count == len(packed):
        return _lists({}, np.zeros(len(packed), np.int64), markers), _lists({}, np.zeros(len(packed), np.int64), transactions)
    steps, counts = _unpacked(packed)
    owners = np.repeat(np.arange(len(counts)), counts)
    ends = (steps["step"] == Step.COMMIT) | (steps["step"] == Step.ABORT)
    data = steps["step"] == Step.DATA
    return (
        _lists(_marker_columns(steps.compress(ends)), _counts(owners, ends, len(counts)), markers),
        _lists(_transaction_columns(steps.compress(data)), _counts(owners, data, len(counts)), transactions),
    )


def _unpacked(packed: pa.Array) -> tuple[Steps, NDArray[np.int64]]:
    """The steps of all rows, and how many each row has."""
    filled = packed.fill_null(b"") if packed.null_count else packed
    offsets = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
    data = filled.buffers()[2]
    steps: Steps = np.frombuffer(data[int(offsets[0]) : int(offsets[-1])] if data is not None else b"", TRANSACTION_STEPS)
    return steps, np.diff(offsets) // TRANSACTION_STEPS.itemsize


def _counts(owners: NDArray[np.intp], those: NDArray[np.bool_], rows: int) -> NDArray[np.int64]:
    return np.bincount(owners[those], minlength=rows)


def _marker_columns(steps: Steps) -> Mapping[str, pa.Array]:
    return {
        "kind": _MARKERS.take(pa.array(np.minimum(steps["step"], len(Step) - 1))),
        "offset": _column(steps, "first_offset"),
        "producer_id": _column(steps, "producer_id"),
        "producer_epoch": _column(steps, "producer_epoch"),
        "appended_at": times(_column(steps, "start_ms")),
    }


def _transaction_columns(steps: Steps) -> Mapping[str, pa.Array]:
    return {
        "producer_id": _column(steps, "producer_id"),
        "producer_epoch": _column(steps, "producer_epoch"),
        "first_offset": _column(steps, "first_offset"),
        "next_offset": _column(steps, "next_offset"),
        "bytes": _column(steps, "bytes"),
        "first_append": times(_column(steps, "start_ms")),
        "last_append": times(_column(steps, "last_ms")),
        "source": source_names(_column(steps, "source")),
    }


def source_names(sources: pa.Array) -> pa.Array:
    """The names of sources (`StartSource`), null for 0 and for those of a later version."""
    numbers = sources.to_numpy(zero_copy_only=False)
    return SOURCES.take(pa.array(numbers, pa.int64(), mask=(numbers <= 0) | (numbers >= len(SOURCES))))


def _column(steps: Steps, name: str) -> pa.Array:
    return pa.array(np.ascontiguousarray(steps[name]))


def _lists(columns: Mapping[str, pa.Array], counts: NDArray[np.int64], kind: pa.ListType) -> pa.Array:
    """A list for each row, of as many items as its count."""
    fields = list(kind.value_type)
    values = [columns[each.name].cast(each.type) if columns else pa.nulls(0, each.type) for each in fields]
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(values, fields=fields), type=kind)
