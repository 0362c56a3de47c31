"""STATES as a matrix of integers."""

import numpy as np
import pyarrow as pa
import pytest

from streaming.cluster.view.value_matrix import DEPARTED, HEIGHT, LISTS, LOG, PLACES, RESIDUE, SCALARS, Columns, empty_columns, read_values
from streaming.common.state_row import STATES
from tests.view.rows import departed, log, residue, states


def test_every_column_has_rows_of_its_own() -> None:
    columns = empty_columns(1)
    for value, name in enumerate((*PLACES, *SCALARS, *LISTS), start=1):
        columns[name][:] = value
    assert sorted(set(columns.matrix[:, 0].tolist())) == list(range(1, len((*PLACES, *SCALARS, *LISTS)) + 1))
    assert len(PLACES) + len(SCALARS) + sum(LISTS.values()) == HEIGHT


def test_every_number_of_a_state_is_read() -> None:
    row = log(broker=3, partition=7)
    expected = {}
    for value, field in enumerate(STATES, start=100):
        if field.name in SCALARS:
            row[field.name] = expected[field.name] = True if field.type == pa.bool_() else value
        elif field.name in LISTS:
            row[field.name] = expected[field.name] = [1000 * value + each for each in range(LISTS[field.name])]
    columns = read_values(states(row))
    expected["local_log_start_offset"] = expected["log_end_offset"]  # it was told ahead of what is read
    assert {name: columns[name][..., 0].tolist() for name in expected} == expected
    assert (columns["kind"][0], columns["broker"][0], columns["partition"][0]) == (LOG, 3, 7)


def test_a_log_never_starts_behind_what_was_read_of_it() -> None:
    columns = read_values(states(log(log_start_offset=25, log_end_offset=10), log(log_start_offset=5, log_end_offset=10)))
    assert columns["log_start_offset"].tolist() == [10, 5]


def test_what_a_row_does_not_fill_counts_as_0() -> None:
    columns = read_values(states(residue(5, [1, 2, 3]), departed(share_records=9), log(skipped_bytes=[])))
    assert columns["kind"].tolist() == [RESIDUE, DEPARTED, LOG]
    assert columns["skipped_bytes"].T.tolist() == [[1, 2, 3], [0] * 3, [0] * 3]
    assert columns["share_records"].tolist() == [0, 9, 0]


def test_a_list_of_another_length_is_an_error_that_names_its_column() -> None:
    with pytest.raises(ValueError, match="share_codec_bytes has not 5 numbers"):
        read_values(states(log(share_codec_bytes=[1, 2])))


def test_columns_grow_by_free_slots() -> None:
    columns = Columns(empty_columns(1).matrix + 4).grown(3)
    assert columns["kind"].tolist() == [4, 0, 0]
    assert len(columns) == 3


def test_selected_slots_are_those_of_the_whole_in_the_order_given_and_are_not_written() -> None:
    columns = read_values(states(*(log(partition=number, skipped_bytes=[number] * 3) for number in range(4))))
    some = columns.select(np.array([3, 1, 2])).select(np.array([2, 0]))
    assert (len(some), some["partition"].tolist(), some["skipped_bytes"].tolist()) == (2, [2, 3], [[2, 3]] * 3)
    with pytest.raises(ValueError, match="read-only"):
        some["partition"][0] = 7
    assert len(columns.select(np.array([], np.int64))["partition"]) == 0
