"""Log dirs that a broker wrote, dumped by segtail and by Kafka's own tool: nothing may differ."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streaming.terminal.dump.request import Format
from tests.broker.install import KAFKA_VERSION
from tests.dump.reported import aborted_fields, as_ours, batch_fields, fields, record_fields, shared, snapshot_fields
from tests.dump.running import dumped
from tests.recorded.recordings import Disk, Replayed, replay
from tests.recorded.worlds.dump import DECODED, TOPIC

_DUMPING = "Dumping "


@dataclass(frozen=True, slots=True)
class Reported:
    """What Kafka's tool printed of the files of the disk."""

    disk: Disk
    replayed: Replayed

    def of(self, name: str) -> Iterator[tuple[Path, list[str]]]:
        """Each file and its lines."""
        path, found = None, list[str]()
        for line in self.replayed.text(name).splitlines():
            if line.startswith(_DUMPING):
                if path is not None:
                    yield path, found
                path, found = self.disk.directory / line.removeprefix(_DUMPING), []
            else:
                found.append(line)
        assert path is not None, f"the broker wrote no {name}"
        yield path, found

    def files(self, pattern: str) -> list[Path]:
        """In the log dirs."""
        return [path for log_dir in self.disk.log_dirs for path in sorted(log_dir.glob(pattern))]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """Of a topic that was written in every way that a client knows, over several segments, and of the broker's own."""
    replayed = replay("dump", KAFKA_VERSION, tmp_path_factory.mktemp("dump"))
    return Reported(replayed.disk(), replayed)


def ours(path: Path, **asked: Any) -> list[dict[str, Any]]:
    done = dumped(path, format=Format.JSON, **asked)
    assert (done.findings, done.status) == ((), 0)
    return done.rows


def is_closed(path: Path) -> bool:
    """Of a preallocated index Kafka's tool prints zeros."""
    return path.with_suffix(".index").stat().st_size < 1 << 20


def test_batches_and_records(reported: Reported) -> None:
    compared = []
    for path, lines in reported.of("logs"):
        batches = [fields(line) for line in lines if line.startswith("baseOffset: ")]
        assert [batch_fields(row) for row in ours(path, verify=True)] == batches
        expected = [fields(line) for line in lines if line.startswith("| ")]
        found = ours(path, records=True)
        assert [record_fields(row, line) for row, line in zip(found, expected, strict=True)] == expected
        compared.append(len(expected))
    assert len(compared) == len(reported.files(f"{TOPIC}-*/*.log")) > 5
    assert sum(compared) > 1500


def test_indexes(reported: Reported) -> None:
    closed = [path for path, _ in reported.of("index") if is_closed(path)]
    assert 0 < len(closed) < len(reported.files(f"{TOPIC}-*/*.index"))
    for path, lines in reported.of("index"):
        if is_closed(path):
            assert [f"offset: {row['offset']} position: {row['position']}" for row in ours(path, verify=True)] == lines
    for path, lines in reported.of("timeindex"):
        if is_closed(path):
            assert [f"timestamp: {row['timestamp']} offset: {row['offset']}" for row in ours(path, verify=True)] == lines


def test_aborted_transactions_and_producer_snapshots(reported: Reported) -> None:
    aborted, producers = list[object](), list[object]()
    for path, lines in reported.of("txnindex"):
        expected = [fields(line) for line in lines if line.startswith("version")]
        assert [aborted_fields(row) for row in ours(path, verify=True)] == expected
        aborted += expected
    for path, lines in reported.of("snapshot"):
        expected = [fields(line) for line in lines if line.startswith("producerId")]
        assert [snapshot_fields(row) for row in ours(path)] == expected
        producers += expected
    assert aborted
    assert producers


def test_whole_log_dirs_have_nothing_to_find(reported: Reported) -> None:
    found = {row["file"] for log_dir in reported.disk.log_dirs for row in ours(log_dir, verify=True, summary=True)}
    assert {Path(name).name for name in found if Path(name).name.startswith(TOPIC)} == {path.name for path in reported.files(f"{TOPIC}-*")}
    assert len(found) > len(reported.files(f"{TOPIC}-*"))


def test_groups_and_metadata_are_what_kafkas_decoders_say(reported: Reported) -> None:
    found = set[str]()
    for name in DECODED:
        for path, lines in reported.of(name):
            expected = [opened for line in lines if (opened := opened_by_kafka(line)) is not None]
            rows = [row for row in ours(path, records=True) if row["control"] is None][: len(expected)]  # the broker went on writing
            for row, (key, value) in zip(rows, expected, strict=True):
                assert shared([row["key"], row["value"]], [key, value]) == shared([key, value], [row["key"], row["value"]])
                found.add((row["value"] or {}).get("type", "") or row["key"].get("type", "transaction"))
    assert found >= {"OFFSET_COMMIT", "GROUP_METADATA", "CONSUMER_GROUP_MEMBER_METADATA", "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT"}
    assert found >= {"transaction", "TOPIC", "PARTITION", "CONFIG", "REGISTER_BROKER", "FEATURE_LEVEL"}


def opened_by_kafka(line: str) -> tuple[object, object] | None:
    """The key and the value of a record's line, with our names; None for another line, and for a control record."""
    decode, rest = json.JSONDecoder().raw_decode, re.split(r"headerKeys: \[[^\]]*\]", line)[-1]
    key = None
    if rest.startswith(" key: {"):
        key, end = decode(rest[6:])
        rest = rest[6 + end :]
    if not line.startswith("| offset: ") or not rest.startswith(" payload: "):
        return None
    value = None if rest == " payload: <DELETE>" else decode(rest[10:])[0]
    return key and as_ours(key["data"]), value and as_ours(value["data"])


def test_the_coordinators_logs_are_opened(reported: Reported) -> None:
    found = [row for path in reported.files("__transaction_state-*") for row in ours(path, records=True)]
    assert {row["key"]["transactional_id"] for row in found} >= {"dump-0", "dump-1", "dump-2"}
