"""Dumps of real logs beside what Kafka's own dump tool said of the same files, field by field."""

from pathlib import Path
from typing import Any

from tests.dump.reported import aborted_fields, batch_fields, fields, record_fields, snapshot_fields
from tests.dump.running import LOGS, dumped, rows
from tests.tables import each_row


def files(suffix: str) -> Any:
    names = sorted(str(path.relative_to(LOGS)) for path in LOGS.glob(f"*/*/*{suffix}"))
    return each_row("name", names)


def reported(name: str) -> list[dict[str, str]]:
    return [fields(line) for line in (LOGS / f"{name}.txt").read_text().splitlines()]


def is_record(line: str) -> bool:
    return line.startswith("| ")


def lines(name: str) -> list[str]:
    return (LOGS / f"{name}.txt").read_text().splitlines()


def checked(path: Path) -> list[dict[str, Any]]:
    """Rows with the result of the check of their CRC. Indexes were cut for these tests, and of compacted logs parts were left out."""
    done = dumped(path, format="json", verify=True)
    found = [finding for finding in done.findings if not (finding.path.suffix.endswith("index") or "compacted topic" in finding.what)]
    assert found == []
    return done.rows


@files(".log")
def test_batches(name: str) -> None:
    assert [batch_fields(row) for row in checked(LOGS / name)] == [fields(line) for line in lines(name) if not is_record(line)]


@files(".log")
def test_records(name: str) -> None:
    expected = [fields(line) for line in lines(name) if is_record(line)]
    for old in expected:
        if "isValid" in old:
            del old["crc"]
    found = rows(LOGS / name, records=True)
    assert len(found) == len(expected)
    for row, reported_fields in zip(found, expected, strict=True):
        ours = record_fields(row, reported_fields)
        reported_fields.pop("isValid", None)
        assert ours == reported_fields


@files(".snapshot")
def test_producer_snapshots(name: str) -> None:
    assert [snapshot_fields(row) for row in rows(LOGS / name)] == reported(name)


@files(".txnindex")
def test_aborted_transactions(name: str) -> None:
    assert [aborted_fields(row) for row in rows(LOGS / name)] == reported(name)


@files(".index")
def test_offset_indexes_also_where_kafkas_tool_crashed(name: str) -> None:
    found = [{"offset": str(row["offset"]), "position": str(row["position"])} for row in rows(LOGS / name)]
    new = [{"offset": str(int(Path(name).stem)), "position": "0"}]  # Kafka prints one entry of the zeros of a new index
    assert found == ([] if reported(name) == new else reported(name))


@files(".timeindex")
def test_time_indexes(name: str) -> None:
    found = [{"timestamp": str(row["timestamp"]), "offset": str(row["offset"])} for row in rows(LOGS / name)]
    expected = reported(name)
    if "truncation" in name:  # Kafka prints the entries of the log that was cut off, too; the log proves the first alone
        expected = expected[:1]
    new = [{"timestamp": "0", "offset": str(int(Path(name).stem))}]
    assert found == ([] if expected == new else expected)
