"""``relation=records`` against ``segtail dump``, which is held against Kafka's own tools, and on logs that tests write."""

import logging
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from streaming.kafka.formats.names import INTERNAL_TOPICS
from streaming.spark.source.relations import Relation, schema_of
from streaming.terminal.dump.request import Payload
from tests.dump.running import LOGS, rows
from tests.source.record_reading import record_batches, record_rows

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLUSTERS = sorted(path.name for path in LOGS.iterdir())


def as_dumped(row: dict[str, Any]) -> dict[str, Any]:
    """A row in the form of the dump's, with the payload as hex."""
    return {
        "offset": row["offset"],
        "timestamp": (row["timestamp"] - EPOCH) // timedelta(milliseconds=1),
        "key": None if row["key"] is None else row["key"].hex(),
        "value": None if row["value"] is None else row["value"].hex(),
        "headers": [{"key": each["key"], "value": None if each["value"] is None else each["value"].hex()} for each in row["headers"] or ()],
    }


def dumped_data(directory: Path) -> list[dict[str, Any]]:
    found = rows(directory, records=True, payload=Payload.HEX)
    names = ("offset", "timestamp", "key", "value", "headers")
    return [{name: row[name] for name in names} for row in found if row["control"] is None]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_record_as_the_dump_shows_it(cluster: str, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(LOGS / cluster, tmp_path / "copy"))
    topics = sorted({path.name.rpartition("-")[0] for path in copy.iterdir() if path.is_dir()})
    read = record_rows(copy, topics=",".join(topics), isolation="read_uncommitted", until="end")
    for directory in sorted(path for path in copy.iterdir() if path.is_dir()):
        topic, _, number = directory.name.rpartition("-")
        own = [as_dumped(row) for row in read if (row["topic"], row["partition"]) == (topic, int(number))]
        assert own == dumped_data(directory), directory.name


def test_columns_are_those_that_are_asked_for_in_the_relations_order() -> None:
    for columns in ("", "offset,key", "headers", "value,topic,partition", "timestampType,timestamp"):
        options = {"columns": columns} if columns else {}
        batches = record_batches(LOGS / "codecs", until="end", **options)
        schema = to_arrow_schema(schema_of(Relation.RECORDS, tuple(columns.split(",")) if columns else ()), timezone="UTC")
        assert {batch.schema for batch in batches} == {schema}
        whole = pa.Table.from_batches(record_batches(LOGS / "codecs", until="end"))
        assert pa.Table.from_batches(batches).to_pylist() == whole.select(schema.names).to_pylist()
    assert not INTERNAL_TOPICS.intersection(path.name for path in (LOGS / "codecs").iterdir())


def test_types_of_timestamps_and_absent_headers_are_as_in_kafkas_consumer() -> None:
    found = {(row["topic"], row["timestampType"]) for row in record_rows(LOGS / "old_formats", until="end")}
    assert {kind for _, kind in found} == {-1, 0}
    undated = [row for row in record_rows(LOGS / "old_formats", until="end") if row["timestampType"] == -1]
    assert {(row["timestamp"], row["headers"] is None) for row in undated} == {(EPOCH - timedelta(milliseconds=1), True)}
    appended = [row for row in record_rows(LOGS / "codecs", until="end") if row["timestampType"] == 1]
    assert appended


def test_a_copy_without_its_identity_is_read_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert record_rows(LOGS / "codecs", until="end")
    assert any("has no meta.properties" in message for message in caplog.messages)
