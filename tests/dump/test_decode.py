"""Keys and values by the name of their topic."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from streaming.terminal.dump.request import Payload
from tests.dump.running import LOGS, dumped, rows
from tests.dump.writing import segment_of_values

DECODED = re.compile(r" key: (?P<key>\{.*?\}) payload: (?P<value>.*)$")
STATES = {0: "Empty", 1: "Ongoing", 2: "PrepareCommit", 3: "PrepareAbort", 4: "CompleteCommit", 5: "CompleteAbort"}
CHECKPOINTS = sorted((LOGS.parent / "metadata" / "with_snapshots").glob("*.checkpoint"))


def decoded(name: str) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    found = (DECODED.search(line) for line in (LOGS / f"{name}.txt").read_text().splitlines())
    return [(json.loads(match["key"]), json.loads(match["value"]) if match["value"] != "null" else None) for match in found if match]


@pytest.mark.parametrize("where", ["transactions", "transactions_v0"])
def test_transactions(where: str) -> None:
    name = f"{where}/__transaction_state-1/{0:020}.log"
    expected = decoded(name)
    found = [row for row in rows(LOGS / name, records=True) if row["control"] is None]
    assert len(found) == len(expected) > 0
    for row, (key, value) in zip(found, expected, strict=True):
        assert row["key"]["transactional_id"] == key["data"]["transactionalId"]
        assert value is not None
        data = value["data"]
        assert row["value"]["producer_id"] == data["producerId"]
        assert row["value"]["state"] == STATES[data["transactionStatus"]]
        partitions = [{"topic": each["topic"], "partitions": each["partitionIds"]} for each in data["transactionPartitions"] or ()]
        assert row["value"]["partitions"] == partitions


def test_committed_offsets() -> None:
    name = f"transactions/__consumer_offsets-2/{0:020}.log"
    expected = [(key["data"], value["data"]) for key, value in decoded(name) if key["type"] in ("0", "1") and value is not None]
    found = [row for row in rows(LOGS / name, records=True) if row["control"] is None and row["value"] is not None]
    commits = [(row["key"], row["value"]) for row in found if row["key"]["type"] == "OFFSET_COMMIT"]
    assert len(commits) == len(expected) > 0
    for (key, value), (reported_key, reported_value) in zip(commits, expected, strict=True):
        assert (key["group"], key["topic"], key["partition"]) == (reported_key["group"], reported_key["topic"], reported_key["partition"])
        assert (value["offset"], value["commit_timestamp"]) == (reported_value["offset"], reported_value["commitTimestamp"])


def test_metadata_snapshots_are_opened_whatever_their_directory(tmp_path: Path) -> None:
    partition = tmp_path / "__cluster_metadata-0"
    partition.mkdir()
    for checkpoint in CHECKPOINTS:
        (partition / checkpoint.name).write_bytes(checkpoint.read_bytes())
    found = rows(partition, records=True, verify=True)
    kinds = {row["value"]["type"] for row in found if row["control"] is None}
    assert {"TOPIC", "PARTITION", "CONFIG", "FEATURE_LEVEL"} <= kinds
    assert {row["control"] for row in found} >= {"SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"}


def test_metadata_that_may_be_secret_is_shown_in_no_way(tmp_path: Path) -> None:
    partition = tmp_path / "__cluster_metadata-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes((LOGS.parent / "metadata" / "with_snapshots" / "log.bin").read_bytes())
    for payload in Payload:
        values = [row.get("value") for row in dumped(partition, records=True, format="json", payload=payload).rows]
        assert all(value is None or isinstance(value, dict) for value in values)


@pytest.mark.parametrize("payload", list(Payload))
def test_the_metadata_that_a_log_dir_was_formatted_with_is_opened_and_not_shown_as_it_stands(tmp_path: Path, payload: Payload) -> None:
    (tmp_path / "bootstrap.checkpoint").write_bytes(CHECKPOINTS[0].read_bytes())
    found = [row.get("value") for row in rows(tmp_path, records=True, payload=payload) if row["control"] is None]
    assert found
    assert all(value is None if payload is Payload.NONE else value["type"] for value in found)


@pytest.mark.parametrize(
    ("payload", "shown"),
    [(Payload.TEXT, '{"a": 1}'), (Payload.JSON, {"a": 1}), (Payload.HEX, b'{"a": 1}'.hex()), (Payload.NATURAL, '{"a": 1}')],
)
def test_a_value_is_shown_as_asked(tmp_path: Path, payload: Payload, shown: object) -> None:
    segment_of_values(tmp_path / "t-0", [b'{"a": 1}'])
    assert [row["value"] for row in rows(tmp_path / "t-0", records=True, payload=payload)] == [shown]


def test_bytes_that_are_no_text_are_shown_and_stay_distinguished(tmp_path: Path) -> None:
    segment_of_values(tmp_path / "t-0", [b"\xff\x00", None, b""])
    assert [row["value"] for row in rows(tmp_path / "t-0", records=True)] == ["\\xff\x00", None, ""]
    assert [row["value"] for row in rows(tmp_path / "t-0", records=True, payload=Payload.JSON)] == ["\\xff\x00", None, ""]


def test_without_payload_sizes_remain(tmp_path: Path) -> None:
    segment_of_values(tmp_path / "t-0", [b"secret", None])
    done = dumped(tmp_path / "t-0", records=True, payload=Payload.NONE, format="json")
    assert b"secret" not in done.output
    assert [row["value_size"] for row in done.rows] == [6, -1]


def test_the_state_of_share_groups() -> None:
    found = rows(LOGS.parent / "groups" / "__share_group_state-0" / f"{0:020}.log", records=True)
    assert [(row["key"]["type"], row["key"]["group"], row["key"]["partition"]) for row in found] == [
        ("SHARE_SNAPSHOT", "sharing", 0),
        ("SHARE_SNAPSHOT", "sharing", 1),
        ("SHARE_UPDATE", "sharing", 0),
        ("SHARE_UPDATE", "sharing", 1),
    ]
    assert [row["value"]["delivery_complete_count"] for row in found] == [-1, -1, 89, 85]
