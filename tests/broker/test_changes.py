"""Everything that an admin can do, done to real brokers: each once in the list, as Kafka's own decoder prints the records of it."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from streaming.common.units import format_time
from tests.broker.clients import create_topic, delete_topic, producer
from tests.broker.kafka import CONTROLLER_ID, Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.loss_experiment import commit
from tests.commands import run_command
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.processes import segtail, until

Change = tuple[str, int, int]
"""Kind, offset, and time of a change."""

_RECORD = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .* payload: (\{.*\})$")
_BATCH = re.compile(r"baseOffset: (\d+) ")


@pytest.fixture(scope="module")
def kafka(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Two brokers beside a controller, of which the second has not been started yet."""
    checks = {"log.initial.task.delay.ms": 3_600_000, "log.retention.check.interval.ms": 3_600_000}  # none comes while a test looks
    made = Kafka(tmp_path_factory.mktemp("changed"), 2, {"offsets.topic.replication.factor": 1, **checks}, controller=True, heap_mb=256)
    try:
        made.start(CONTROLLER_ID)
        made.start(1)
        yield made
    finally:
        made.kill()


def configure(admin: AdminClient, kind: Any, name: str, key: str, value: str | None) -> None:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    resource = ConfigResource(kind, name, incremental_configs=[ConfigEntry(key, value, incremental_operation=operation)])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def reassign(kafka: Kafka, scratch: Path, topic: str, replicas: list[int]) -> None:
    plan = scratch / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]}))
    asked = ("--bootstrap-server", f"127.0.0.1:{kafka.broker(1).port}", "--reassignment-json-file", str(plan))
    run_tool("reassign", *asked, "--execute")
    until("it has moved", lambda: "is completed" in run_tool("reassign", *asked, "--verify"))


def decoded(kafka: Kafka) -> list[Change]:
    """The changes in what Kafka's own decoder prints of the controller's log: the first record of each in its batch."""
    (folder,) = (path for each in kafka.nodes[0].log_dirs if (path := each / "__cluster_metadata-0").exists())
    printed = run_tool("dump-log", "--cluster-metadata-decoder", "--files", ",".join(map(str, sorted(folder.glob("*.log")))))
    found: dict[tuple[object, ...], Change] = {}
    there: set[object] = set()  # brokers, and configurations that are set
    batch = 0
    for line in printed.splitlines():
        if header := _BATCH.match(line):
            batch = int(header[1])
        if record := _RECORD.match(line):
            payload = json.loads(record[3])
            kind, *about = _change_of(payload["type"], payload["data"])
            if kind.startswith("broker_") or kind == "config_changed":
                comes = kind != "broker_removed" and payload["data"].get("value", "") is not None
                if (kind == "broker_added" or not comes) and comes == (tuple(about) in there):  # a restart, or nothing that is taken away
                    continue
                (there.add if comes else there.discard)(tuple(about))
            found.setdefault((kind, batch, *about), (kind, int(record[1]), int(record[2])))
    new = {key[1:] for key in found if key[0] == "topic_created"}
    ids = {(batch, topic_id) for batch, _, topic_id in new}
    names = {(batch, name) for batch, name, _ in new}
    of_new = {
        key for key in found if (key[0] == "partitions_added" and key[1:3] in ids) or (key[0] == "config_changed" and key[1:3] in names)
    }
    return sorted(change for key, change in found.items() if key[0] and key not in of_new)


def _change_of(kind: str, data: dict[str, Any]) -> tuple[Any, ...]:
    """The kind of the change that a record is of, "" for none, and what it is about."""
    match kind:
        case "TOPIC_RECORD":
            return "topic_created", data["name"], data["topicId"]
        case "REMOVE_TOPIC_RECORD":
            return "topic_deleted", data["topicId"]
        case "CONFIG_RECORD":
            return "config_changed", data["resourceName"], data["name"]
        case "PARTITION_RECORD":
            return "partitions_added", data["topicId"]
        case "PARTITION_CHANGE_RECORD" if data.get("addingReplicas") or data.get("removingReplicas"):
            return "reassignment_began", data["topicId"]
        case "PARTITION_CHANGE_RECORD" if data.get("replicas") is not None:
            return "reassignment_ended", data["topicId"]
        case "FEATURE_LEVEL_RECORD":
            return "feature_changed", data["name"]
        case "REGISTER_BROKER_RECORD":
            return "broker_added", data["brokerId"]
        case "UNREGISTER_BROKER_RECORD":
            return "broker_removed", data["brokerId"]
        case _:
            return ("",)


def test_each_thing_that_an_admin_does_is_told_once_and_nothing_else(kafka: Kafka, tmp_path: Path) -> None:
    bootstrap = f"127.0.0.1:{kafka.broker(1).port}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    done_before = len(decoded(kafka))
    create_topic(bootstrap, "orders", 2, replicas=1, config={"retention.ms": "604800000"})
    create_topic(bootstrap, "gone", 1, replicas=1)
    admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(SECONDS)
    configure(admin, ResourceType.TOPIC, "orders", "retention.ms", "3600000")
    configure(admin, ResourceType.TOPIC, "orders", "retention.ms", None)
    configure(admin, ResourceType.BROKER, "1", "log.cleaner.backoff.ms", "20000")
    default = ("--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "log.retention.ms=7200000")  # librdkafka has none
    run_tool("configs", "--bootstrap-server", bootstrap, *default)
    configure(admin, ResourceType.BROKER, "1", "listener.name.plaintext.ssl.keystore.password", "hunter2hunter2")
    delete_topic(bootstrap, "gone")
    create_topic(bootstrap, "gone", 1, replicas=1)
    run_tool("features", "--bootstrap-server", bootstrap, "downgrade", "--feature", "transaction.version=1")
    kafka.start(2)
    reassign(kafka, tmp_path, "orders", [2])
    reassign(kafka, tmp_path, "orders", [1])
    kafka.stop(2)
    kafka.start(2)  # a restart is no change
    kafka.stop(2)
    run_tool("cluster", "unregister", "--bootstrap-server", bootstrap, "--id", "2")

    expected = decoded(kafka)
    rows = _rows(*map(str, kafka.nodes[0].log_dirs))
    assert sorted((row["kind"], row["offset"], row["at_ms"]) for row in rows) == expected
    mine = [row["what"] for row in reversed(rows)][done_before:]
    assert mine == [
        "Topic orders was created with 2 partitions, 1 replica each and retention.ms=604800000",
        "Topic gone was created with 1 partition, 1 replica",
        "Topic orders got 1 more partition: 3 instead of 2",
        "retention.ms of orders went from 7d to 1h",
        "retention.ms of orders went from 1h to not set (Kafka's default is 7d)",
        "log.cleaner.backoff.ms of broker 1 went from not set to 20s",
        "log.retention.ms of all brokers went from not set to 2h",
        "listener.name.plaintext.ssl.keystore.password of broker 1 was set; its value may be secret and is not read",
        "Topic gone was deleted with 1 partition",
        "Topic gone was created with 1 partition, 1 replica",
        "Feature transaction.version went from level 2 to level 1",
        "Broker 2 is new in the cluster",
        "A reassignment of orders-0 began: it adds broker 2 and removes broker 1",
        "The reassignment of orders-0 ended: its replicas are 2, and were 1",
        "A reassignment of orders-0 began: it adds broker 1 and removes broker 2",
        "The reassignment of orders-0 ended: its replicas are 1, and were 2",
        "Broker 2 was unregistered",
    ]
    assert "hunter2" not in json.dumps(rows)

    arguments = ("--log-dirs", ",".join(map(str, kafka.broker(1).log_dirs)), "--checkpoint", tmp_path / "c", "--listen", "127.0.0.1:0")
    for started in (1, 2):  # the second one goes on with the checkpoint of the first
        with segtail("run", *arguments, stated=tmp_path / f"said-{started}", before=WITHOUT_SPARK) as job:
            url = until("it serves", lambda each=job: each.url).removesuffix("/metrics")
            until("it has read everything", lambda each=url: len(_rows("--job", each)) >= len(rows))
            assert _rows("--job", url) == rows


def _rows(*where: str) -> list[dict[str, Any]]:
    """What the command lists; nothing of a job that starts."""
    done = run_command("changes", "--json", *where)
    return json.loads(done.stdout)["rows"] if done.stdout else []


def test_a_retention_that_was_lowered_is_what_a_loss_began_with(kafka: Kafka, tmp_path: Path) -> None:
    bootstrap, logs = f"127.0.0.1:{kafka.broker(1).port}", ",".join(map(str, kafka.broker(1).log_dirs))
    create_topic(bootstrap, "short", 1, replicas=1, config={"retention.ms": "604800000"})
    old_ms = time.time_ns() // 1_000_000 - 7_200_000
    client = producer(bootstrap)
    for number in range(100):
        client.produce("short", b"x", partition=0, timestamp=old_ms + number)
    client.flush(SECONDS)
    commit(kafka, "readers", ["short"], 30)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    configure(admin, ResourceType.TOPIC, "short", "retention.ms", "3600000")
    (change,) = _rows("--log-dirs", logs, "--topic", "short", "--filter", "7d to 1h")
    said = f"retention.ms of short went from 7d to 1h at {format_time(change['at_ms'])}"

    until("it is lost with the next check", lambda: "will be deleted" in run_command("why", "readers", "--log-dirs", logs).stdout)
    why = " ".join(run_command("why", "readers", "--log-dirs", logs).stdout.split())
    assert "70 records" in why
    assert f"this began when {said}" in why
    retention = run_command("retention", "--topic", "short", "--log-dirs", logs)
    assert f"lowered: {said}" in retention.stdout
    top = json.loads(run_command("top", "--json", "--log-dirs", logs).stdout)
    assert [f"this began when {said}" in row["what"] for row in top["rows"] if row["group"] == "readers"] == [True], top["rows"]
