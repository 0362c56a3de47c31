"""Kafka's own dump as values, and our rows as its lines say them."""

import base64
import re
from typing import Any

_FIELD = re.compile(r"([A-Za-z]+): (OptionalLong\.empty|OptionalLong\[\d+\]|\[[^\]]*\]|\S+)")


def fields(line: str) -> dict[str, str]:
    """The fields of a line of Kafka's tool, without what a decoder adds."""
    return dict(_FIELD.findall(line.split(" key: {")[0].split(" payload: ")[0]))


def batch_fields(row: dict[str, Any]) -> dict[str, str]:
    """A row as Kafka's tool names its fields."""
    if row["magic"] < 2:
        return {
            "offset": str(row["last_offset"]),
            "position": str(row["position"]),
            row["timestamp_type"]: str(row["max_timestamp"]),
            "size": str(row["size"]),
            "magic": str(row["magic"]),
            "compresscodec": row["codec"],
            "crc": str(row["crc"]),
            "isvalid": str(row["valid"]).lower(),
        }
    return {
        "baseOffset": str(row["base_offset"]),
        "lastOffset": str(row["last_offset"]),
        "count": str(row["count"]),
        "baseSequence": str(row["base_sequence"]),
        "lastSequence": str(row["last_sequence"]),
        "producerId": str(row["producer_id"]),
        "producerEpoch": str(row["producer_epoch"]),
        "partitionLeaderEpoch": str(row["leader_epoch"]),
        "isTransactional": str(row["transactional"]).lower(),
        "isControl": str(row["control"]).lower(),
        "deleteHorizonMs": optional(row["delete_horizon"]),
        "position": str(row["position"]),
        row["timestamp_type"]: str(row["max_timestamp"]),
        "size": str(row["size"]),
        "magic": str(row["magic"]),
        "compresscodec": row["codec"],
        "crc": str(row["crc"]),
        "isvalid": str(row["valid"]).lower(),
    }


def record_fields(row: dict[str, Any], reported: dict[str, str]) -> dict[str, str]:
    """A record's row; of what a record does not know by itself, the type of its time, as it was reported."""
    time_type = next(name for name in reported if name in ("CreateTime", "LogAppendTime", "NoTimestampType"))
    found = {
        "offset": str(row["offset"]),
        time_type: str(row["timestamp"]),
        "keySize": str(row["key_size"]),
        "valueSize": str(row["value_size"]),
    }
    if "isValid" in reported:  # a message of an old format
        return found
    found["sequence"] = str(row["sequence"])
    found["headerKeys"] = f"[{','.join(header['key'] for header in row['headers'])}]"
    if row["control"] in ("COMMIT", "ABORT"):
        found["endTxnMarker"] = row["control"]
        found["coordinatorEpoch"] = str(row["value"]["coordinator_epoch"])
    return found


def snapshot_fields(row: dict[str, Any]) -> dict[str, str]:
    """A producer's row."""
    found = {
        "producerId": str(row["producer_id"]),
        "producerEpoch": str(row["producer_epoch"]),
        "coordinatorEpoch": str(row["coordinator_epoch"]),
        "currentTxnFirstOffset": optional(row["current_txn_first_offset"]),
        "lastTimestamp": str(row["timestamp"]),
    }
    if row["last_offset"] < 0:
        return found
    return found | {
        "firstSequence": str(row["first_sequence"]),
        "lastSequence": str(row["last_sequence"]),
        "lastOffset": str(row["last_offset"]),
        "offsetDelta": str(row["offset_delta"]),
        "timestamp": str(row["timestamp"]),
    }


def aborted_fields(row: dict[str, Any]) -> dict[str, str]:
    """A row of the index of aborted transactions."""
    return {
        "version": "0",
        "producerId": str(row["producer_id"]),
        "firstOffset": str(row["first_offset"]),
        "lastOffset": str(row["last_offset"]),
        "lastStableOffset": str(row["last_stable_offset"]),
    }


def optional(value: int | None) -> str:
    """A number that may be absent."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


OURS = {
    "assigned_partitions": "assigned",
    "assignment_epoch": "epoch",
    "assignment_epochs": "epochs",
    "assignment_timestamp": "timestamp",
    "classic_member_metadata": "classic",
    "end_points": "endpoints",
    "feature_level": "level",
    "group_id": "group",
    "member_epoch": "epoch",
    "partition_id": "partition",
    "partition_ids": "partitions",
    "partitions_pending_revocation": "revoked",
    "previous_member_epoch": "previous_epoch",
    "rebalance_timeout": "rebalance_timeout_ms",
    "resource_name": "resource",
    "session_timeout": "session_timeout_ms",
    "subscribed_topic_names": "topics",
    "subscribed_topic_regex": "topic_regex",
    "supported_protocols": "protocols",
    "topic_name": "topic",
    "topic_partitions": "partitions",
    "transaction_last_update_timestamp_ms": "last_update_timestamp",
    "transaction_partitions": "partitions",
    "transaction_start_timestamp_ms": "start_timestamp",
    "transaction_status": "state",
    "transaction_timeout_ms": "timeout_ms",
}
"""What our fields are called, by Kafka's names in the style of ours, if it is not the same."""

_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
# What Kafka's tool opens and brokers do not look into.
_LEFT_OUT = {"subscription", "assignment"}


def as_ours(reported: Any, name: str = "") -> Any:
    """A key or value that a decoder of Kafka's tool printed as JSON, with our names, as far as we open it."""
    if isinstance(reported, dict):
        named = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", field).lower(): value for field, value in reported.items()}
        if set(named) == {"name", "metadata"}:  # a protocol of a classic member
            return {"name": named["name"], "metadata": base64.b64decode(named["metadata"]).hex()}
        return {OURS.get(field, field): as_ours(value, field) for field, value in named.items() if field not in _LEFT_OUT}
    if isinstance(reported, list):
        return [as_ours(item) for item in reported]
    if name == "transaction_status":
        return _STATES[reported]
    if name in ("fenced", "in_controlled_shutdown") and not isinstance(
        reported, bool
    ):  # of a change: whether it is set, left or taken away
        return {-1: False, 0: None, 1: True}[reported]
    return [] if name == "transaction_partitions" and reported is None else reported


def shared(found: Any, reported: Any) -> Any:
    """Of what we found only the fields that were reported: ours name those, too, that a version does not have."""
    if isinstance(found, dict) and isinstance(reported, dict):
        return {name: shared(found[name], value) for name, value in reported.items() if name in found}
    if isinstance(found, list) and isinstance(reported, list) and len(found) == len(reported):
        return [shared(*pair) for pair in zip(found, reported, strict=True)]
    return found
