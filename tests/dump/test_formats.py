"""The same rows in every format."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import UsageError
from streaming.terminal.dump.lines import CsvStyle, JsonStyle, LineWriter, TextStyle
from streaming.terminal.dump.request import Format
from streaming.terminal.dump.row_table import Choices, Flags, Numbers, RowTable
from tests.dump.running import LOGS, dumped, rows

LOG_DIRS = [LOGS / "transactions" / "pay-0", LOGS / "old_formats" / "magic1to2-0", LOGS / "compaction" / "ctxn-A-0"]
EVERY = pytest.mark.parametrize("directory", LOG_DIRS, ids=lambda path: path.name)

LEAST = -(2**63)
NUMBERS = st.integers(-1, 10**5) | st.integers(LEAST, 2**63 - 1)


def arrow_rows(directory: Path, form: Format, **asked: Any) -> list[dict[str, Any]]:
    output = dumped(directory, format=form, **asked).output
    if form is Format.PARQUET:
        return list(pq.read_table(io.BytesIO(output)).to_pylist())
    return list(pa.ipc.open_stream(output).read_all().to_pylist())


def without_kind(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "kind"} for row in found]


@EVERY
@pytest.mark.parametrize("form", [Format.ARROW, Format.PARQUET])
def test_arrow_and_parquet_hold_the_batches_of_json(directory: Path, form: Format) -> None:
    assert arrow_rows(directory, form) == without_kind(rows(directory))


@EVERY
def test_csv_holds_the_batches_of_json(directory: Path) -> None:
    found = list(csv.DictReader(io.StringIO(dumped(directory, format=Format.CSV).output.decode())))
    expected = [{name: _plain(value) for name, value in row.items()} for row in without_kind(rows(directory))]
    assert found == expected


@EVERY
def test_text_holds_the_batches_of_json(directory: Path) -> None:
    lines = [line for line in dumped(directory).output.decode().splitlines() if not line.startswith("#")]
    names = lines[0].split()
    found = [dict(zip(names, line.split(), strict=True)) for line in lines if line.split() != names]
    expected = [{name: "-" if value is None else _plain(value) for name, value in row.items()} for row in rows(directory)]
    assert found == [{name: value for name, value in row.items() if name not in ("kind", "file")} for row in expected]


@EVERY
def test_arrow_holds_keys_and_values_as_they_stand_in_the_log(directory: Path) -> None:
    found = arrow_rows(directory, Format.ARROW, records=True)
    texts = rows(directory, records=True)
    data = [(row, text) for row, text in zip(found, texts, strict=True) if text["control"] is None]
    assert len(data) > 0
    for row, text in data:
        for name in ("key", "value"):
            assert (None if row[name] is None else row[name].decode("utf-8", "backslashreplace")) == text[name]
        assert [header["key"] for header in row["headers"]] == [header["key"] for header in text["headers"]]


def test_csv_of_records_is_quoted_where_it_must_be() -> None:
    directory = LOGS / "codecs" / "hdr-A-0"
    found = list(csv.DictReader(io.StringIO(dumped(directory, format=Format.CSV, records=True).output.decode())))
    expected = rows(directory, records=True)
    assert [row["value"] for row in found] == [row["value"] or "" for row in expected]
    assert [json.loads(row["headers"]) for row in found] == [row["headers"] for row in expected]


@pytest.mark.parametrize("form", [Format.CSV, Format.ARROW, Format.PARQUET])
def test_a_format_of_one_kind_of_rows_takes_no_two(form: Format) -> None:
    log = next((LOGS / "transactions" / "pay-0").glob("*.log"))
    with pytest.raises(UsageError, match="rows of one kind"):
        dumped(log, log.with_suffix(".index"), format=form)


def test_one_json_object_shows_its_kind_and_file() -> None:
    log = LOGS / "transactions" / "pay-0" / f"{201:020}.log"
    kinds = {(row["kind"], row["file"]) for row in rows(log, log.with_suffix(".txnindex"), log.with_suffix(".snapshot"))}
    assert kinds == {
        ("batch", str(log)),
        ("aborted_transaction", str(log.with_suffix(".txnindex"))),
        ("producer", str(log.with_suffix(".snapshot"))),
    }


@given(st.lists(st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans(), st.integers(0, 2)), min_size=1, max_size=5), min_size=1, max_size=5))
def test_painted_lines_say_what_the_columns_hold(tables: list[list[tuple[int, int, bool, int]]]) -> None:
    """Whatever stood in the cells before: the matrix is painted again for every table of a file."""
    names = ("none", "a", "longer")
    texts, objects, values = [LineWriter(style) for style in (TextStyle(), JsonStyle(), CsvStyle())]
    for table_rows in tables:
        table = RowTable(
            "kind",
            'fi,"le',
            len(table_rows),
            (
                Numbers("number", np.array([row[0] for row in table_rows], np.int64)),
                Numbers("optional", np.array([row[1] for row in table_rows], np.int64), nullable=True),
                Flags("flag", np.array([row[2] for row in table_rows], bool)),
                Choices("name", np.array([row[3] for row in table_rows], np.int8), names),
            ),
        )
        expected = [(number, None if optional == -1 else optional, flag, names[name]) for number, optional, flag, name in table_rows]
        lines = b"".join(map(bytes, texts.lines(table))).decode().splitlines()[-len(table_rows) :]
        assert [tuple(line.split()) for line in lines] == [tuple("-" if each is None else _plain(each) for each in row) for row in expected]
        found = [json.loads(line) for line in b"".join(map(bytes, objects.lines(table))).splitlines()]
        assert [(row["number"], row["optional"], row["flag"], row["name"]) for row in found] == expected
        assert {row["file"] for row in found} == {'fi,"le'}
        read = list(csv.reader(io.StringIO(b"".join(map(bytes, values.lines(table))).decode())))[-len(table_rows) :]
        assert read == [[*("" if each is None else _plain(each) for each in row), 'fi,"le'] for row in expected]


def _plain(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
