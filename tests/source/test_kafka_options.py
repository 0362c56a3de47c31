"""Options of Spark's Kafka source, and of Spark's tables: what they mean here, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from streaming.common.start_from import StartFrom
from streaming.errors import UsageError
from streaming.simulator.log import LogDir
from streaming.spark.source.public_options import Isolation, parse_public_options
from tests.builders import batch, log_dir, partition
from tests.source.record_reading import offsets_of, record_rows
from tests.tables import each_row


def parsed(**options: str) -> Any:
    return parse_public_options({"log_dirs": "/a", "relation": "records", **options}, at_once=True)


@each_row(
    ("options", "field", "value"),
    [
        ({"subscribe": "a, b"}, "selection.topics", ("a", "b")),
        ({"subscribePattern": "o.*"}, "selection.pattern", "o.*"),
        ({"kafka.isolation.level": "read_uncommitted"}, "isolation", Isolation.READ_UNCOMMITTED),
        ({"startingOffsets": "earliest"}, "starting_position", StartFrom.EARLIEST),
        ({"assign": '{"b": [2, 0], "a": [0, 2]}'}, "selection.topics", ("b", "a")),
        ({"assign": '{"b": [2, 0], "a": [0, 2]}'}, "selection.partitions", (0, 2)),
        ({"endingOffsets": "latest"}, "ending_offsets", {}),
        ({"includeHeaders": "true"}, "columns", ()),
        ({"startingOffsets": '{"t": {"0": 7, "1": -2}}'}, "starting_offsets", {("t", 0): 7, ("t", 1): -2}),
        ({"endingOffsets": '{"t": {"0": 7, "1": -1}}'}, "ending_offsets", {("t", 0): 7, ("t", 1): -1}),
        ({"startingTimestamp": "7"}, "starting_timestamp", 7),
        ({"startingTimestamp": "2026-11-20T06:00:00Z"}, "starting_timestamp", 1_795_154_400_000),
        ({"startingTimestamp": "2026-11-20 06:00"}, "starting_timestamp", 1_795_154_400_000),
        ({"startingTimestamp": "2026-11-20T07:00:00+01:00"}, "starting_timestamp", 1_795_154_400_000),
    ],
)
def test_what_means_the_same_is_taken(options: dict[str, str], field: str, value: object) -> None:
    found: Any = parsed(**options)
    for name in field.split("."):
        found = getattr(found, name)
    assert found == value


@each_row(
    ("options", "message"),
    [
        ({"assign": '{"t": [0], "u": [0, 1]}'}, "has to name the same partitions, one at least, of each topic"),
        ({"assign": '{"t": []}'}, "has to name the same partitions, one at least, of each topic"),
        ({"assign": '{"t": 0}'}, 'is not JSON such as {"orders": [0, 1]}'),
        ({"assign": '{"t": [0]}', "partitions": "1"}, "options assign and partitions: give one of them"),
        ({"maxTriggerDelay": "1m"}, "option maxTriggerDelay: a micro-batch has what is there"),
        ({"fetchOffset.numRetries": "3"}, "offsets are read from disk; leave it out"),
        ({"kafkaConsumer.pollTimeoutMs": "3"}, "records are read from disk; leave it out"),
        ({"startingOffsetsByTimestampStrategy": "latest"}, "a partition without a record of startingTimestamp or later has no row"),
        ({"startingOffsets": " Latest"}, "option startingPosition: at latest begins a stream, and this is read at once"),
        ({"kafka.bootstrap.servers": "b:9092"}, "option kafka.bootstrap.servers: segtail asks no broker"),
        ({"kafka.ssl.truststore.location": "/t"}, "option kafka.ssl.truststore.location: segtail has no Kafka client; leave it out"),
        ({"maxOffsetsPerTrigger": "9"}, "option maxOffsetsPerTrigger: maxBytesPerTrigger bounds a micro-batch, in bytes"),
        ({"minPartitions": "9"}, "option minPartitions: a task reads whole segments"),
        ({"includeHeaders": "false"}, "option includeHeaders: records have their headers"),
        ({"subscribe": "a", "topics": "a"}, "options subscribe and topics: give one of them"),
        ({"subscribe": "a", "subscribePattern": "a"}, "options topics and topicsPattern: give one of them"),
        ({"path": "/a"}, "options log_dirs and path: give one of them"),
        ({"startingOffsets": "latest", "startingTimestamp": "1"}, "options startingPosition and startingTimestamp: give one of them"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "-2 is earliest"),
        ({"startingOffsets": '{"t": 1}'}, "as JSON an offset for each partition"),
        ({"startingOffsets": '["t"]'}, "as JSON an offset for each partition"),
        ({"startingOffsets": "{}"}, "as JSON an offset for each partition"),
        ({"endingOffsets": "earliest"}, "as JSON an offset for each partition"),
        ({"endingOffsets": '{"t": {"0": true}}'}, "as JSON an offset for each partition"),
        ({"startingTimestamp": "noon"}, "option startingTimestamp: 'noon' is neither milliseconds since 1970 or ISO 8601"),
        ({"relation": "batches", "startingOffsets": '{"t": {"0": 1}}'}, "option startingOffsets: it goes with the relation records"),
    ],
)
def test_what_cannot_be_had_is_refused_with_what_is_meant(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parsed(**options)
    assert message in str(refused.value)


def test_paths_are_log_dirs() -> None:
    assert parse_public_options({"path": "/a"}).log_dirs == (Path("/a"),)
    assert parse_public_options({"paths": '["/a", "/b"]'}).log_dirs == (Path("/a"), Path("/b"))
    assert parse_public_options({"path": "file:/a"}).log_dirs == (Path("/a"),)


def test_a_table_has_its_options_and_those_of_its_catalog() -> None:
    catalog = {"provider": "segtail", "owner": "root", "location": "file:/a", "external": "true"}
    assert parse_public_options({**catalog, "option.topics": "t", "topics": "t", "path": "file:/a"}).selection.topics == ("t",)
    with pytest.raises(UsageError, match="no option 'owner'"):
        parse_public_options({"owner": "root", "log_dirs": "/a"})


def test_records_between_offsets_come_and_no_others(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    for number in (0, 1):
        partition(disk, "t", number).append(batch(3), batch(4))
    disk.release()
    begin, end = json.dumps({"t": {"0": 2, "1": -2}}), json.dumps({"t": {"0": 5, "1": -1}})
    rows = record_rows(disk.path, until="end", startingOffsets=begin, endingOffsets=end)
    assert offsets_of(rows) == {("t", 0): [2, 3, 4], ("t", 1): list(range(7))}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> LogDir:
    disk = log_dir(tmp_path_factory.mktemp("two"))
    for number in (0, 1):
        partition(disk, "t", number).append(batch(3))
    return disk


@each_row(
    ("begin", "end", "message", "left"),
    [
        (8, -1, "option startingOffsets: t-0: it can be read up to offset 7, and 8 is asked for", []),
        (2, 8, "option endingOffsets: t-0: it can be read up to offset 7, and 8 is asked for", [2, 3, 4, 5, 6]),
        (1, 5, "option startingOffsets: t-0: it begins at offset 2, and 1 is asked for: what was before is deleted", [2, 3, 4]),
        (-2, 1, "option endingOffsets: t-0: it begins at offset 2, and 1 is asked for: what was before is deleted", []),
        (5, 3, "options startingOffsets and endingOffsets: t-0 would begin at offset 5, after its end at 3", None),
        (7, 7, "", []),
        (2, 7, "", [2, 3, 4, 5, 6]),
        (-2, -1, "", [2, 3, 4, 5, 6]),
    ],
)
def test_offsets_outside_of_a_log_are_an_error_unless_loss_is_allowed(
    begin: int, end: int, message: str, left: list[int] | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who recovers a range from a disk that has less of it must not believe that all of it came."""
    disk = log_dir(tmp_path, f"{begin} {end}")
    log = partition(disk, "t")
    log.append(batch(3), batch(4))
    log.delete_records(2)
    disk.write_log_starts()
    disk.release()
    given = {"startingOffsets": json.dumps({"t": {"0": begin}}), "endingOffsets": json.dumps({"t": {"0": end}}), "until": "end"}
    if message:
        with pytest.raises(UsageError) as refused:
            record_rows(disk.path, **given)
        assert message in str(refused.value)
    else:
        assert offsets_of(record_rows(disk.path, **given)).get(("t", 0), []) == left
    if message and left is not None:
        caplog.clear()
        assert offsets_of(record_rows(disk.path, failOnDataLoss="false", **given)).get(("t", 0), []) == left
        assert message in caplog.text
        assert "failOnDataLoss=false reads what is there" in str(refused.value)


def test_an_end_in_front_of_which_a_transaction_is_open_is_an_error(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(2), batch(3, producer=7, transactional=True))
    disk.release()
    given = {"startingOffsets": json.dumps({"t": {"0": 0}}), "endingOffsets": json.dumps({"t": {"0": 5}}), "until": "end"}
    with pytest.raises(UsageError, match="option endingOffsets: t-0: it can be read up to offset 2, and 5 is asked for"):
        record_rows(disk.path, **given)
    assert offsets_of(record_rows(disk.path, isolation="read_uncommitted", **given)) == {("t", 0): [0, 1, 2, 3, 4]}


@each_row(
    ("offsets", "message"),
    [
        ({"t": {"0": 1}}, "option startingOffsets: t-1 has no offset; give one of each partition that is read"),
        ({"t": {"0": 1, "1": 1, "2": 1}}, "option startingOffsets: t-2 is not there, or not selected"),
    ],
)
def test_offsets_are_of_the_partitions_that_are_read(offsets: object, message: str, two: LogDir) -> None:
    with pytest.raises(UsageError) as refused:
        record_rows(two.path, until="end", startingOffsets=json.dumps(offsets))
    assert message in str(refused.value)


def test_log_dirs_below_a_directory_or_by_a_pattern_are_read_by_all_relations(tmp_path: Path) -> None:
    for number in (0, 1):
        disk = log_dir(tmp_path / "disks" / str(number))
        partition(disk, "t", number).append(batch(3))
        disk.release()
    for where in (tmp_path / "disks", tmp_path / "disks" / "*"):
        assert offsets_of(record_rows(where, until="end")) == {("t", 0): [0, 1, 2], ("t", 1): [0, 1, 2]}
