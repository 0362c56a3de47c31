"""The record that kills a consumer, as `segtail why` names it: held against that consumer, and against what kafka-dump-log prints."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message

from tests.broker.clients import create_topic, producer, send
from tests.broker.dumped_logs import dumped
from tests.broker.kafka import Kafka
from tests.commands import run_command
from tests.limits import SECONDS
from tests.processes import until

_GROUP, _TOPIC = "dies-of-a-pill", "pills"
_LARGEST = 1_000


def dies(kafka: Kafka) -> Message:
    """Consume record by record, commit each, and die of the first one that is too large for this consumer."""
    client = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": _GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    client.subscribe([_TOPIC])
    try:
        while True:
            message = client.poll(SECONDS)
            assert message is not None
            assert message.error() is None
            value = message.value()
            if value is not None and len(value) > _LARGEST:
                return message
            client.commit(message=message, asynchronous=False)
    finally:
        client.close()


def stands(kafka: Kafka) -> Any:
    """The group with its partition and findings, None while it has not stopped."""
    dirs = ",".join(map(str, kafka.log_dirs))
    done = run_command("why", _GROUP, "--log-dirs", dirs, "--group-stopped-after", "1s", "--format", "json")
    (row,) = json.loads(done.stdout)["rows"]
    return row if any(each["verdict"] == "stopped" for each in row["findings"]) else None


def test_the_record_that_kills_a_consumer_is_named(kafka: Kafka) -> None:
    create_topic(kafka.bootstrap, _TOPIC)
    usual, other = (producer(kafka.bootstrap, codec, idempotent=True) for codec in ("none", "zstd"))
    send(usual, _TOPIC, 0, 20, 3)
    send(other, _TOPIC, 0, 1, 1, value_bytes=40_000)
    send(usual, _TOPIC, 0, 20, 3)
    pill = dies(kafka)
    until("the group has stopped", lambda: stands(kafka) is not None)
    row = stands(kafka)
    (partition,) = row["partitions"]
    batch, path = partition["batch"], Path(partition["batch"]["file"])
    (theirs,) = (each for each in dumped([path.parent])[_TOPIC, 0] if each.base <= pill.offset() <= each.last)
    assert partition["committed"] == pill.offset()
    assert (batch["record_offset"], batch["record_bytes"]) == (pill.offset(), len(pill.key() or b"") + len(pill.value() or b""))
    assert (batch["base_offset"], batch["last_offset"], batch["size"]) == (theirs.base, theirs.last, theirs.size)
    assert (batch["producer_id"], batch["codec"], batch["neighbors"]) == (theirs.producer_id, "zstd", 40)
    assert batch["unlike"] == ["producer", "codec"], "compressed it is small"
    (command,) = (each["command"] for each in row["findings"] if each["verdict"] == "stopped")
    shown = run_command(*command.split()[1:], "--no-payload", "--format", "json").stdout
    assert [json.loads(line)["offset"] for line in shown.splitlines()] == [pill.offset()]
