"""What a running job says of every partition and log dir of three brokers, held against their own answers, whatever befalls them."""

from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from tests.broker.clients import create_topic, delete_topic, producer, send
from tests.broker.kafka import Kafka
from tests.broker.oracle import log_sizes
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.processes import Page, segtail, until

METADATA = "__cluster_metadata"
"""Grows while we look at it, and brokers tell clients nothing of it."""

OFFSET_NOT_AVAILABLE = 78

_SEVERAL = -2
"""In place of a broker: several of them are said to lead."""

Key = tuple[str, int]
Unlike = dict[Key, tuple[object, object]]
Sizes = dict[frozenset[object], dict[tuple[int, str, int], int]]


class Reported(NamedTuple):
    """Of one partition. ``start``, ``end`` and ``size`` are None where nobody leads it; limits are None where there is none."""

    leader: int
    replicas: int
    in_sync: int
    min_in_sync: int
    start: int | None
    end: int | None
    size: int | None
    retention_seconds: float | None
    retention_bytes: int | None
    segment_bytes: int


def by_kafka(kafka: Kafka) -> dict[Key, Reported]:
    """The answers of brokers that run, for every partition, but for sizes: only a tool of Kafka's asks for these, a JVM each time."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    topics = admin.list_topics(timeout=SECONDS).topics
    partitions = {(topic, number): state for topic, reported in topics.items() for number, state in reported.partitions.items()}
    led = [TopicPartition(*key) for key, state in partitions.items() if state.leader >= 0]
    starts = admin.list_offsets(dict.fromkeys(led, OffsetSpec.earliest()))  # type: ignore[no-untyped-call]
    ends = admin.list_offsets(dict.fromkeys(led, OffsetSpec.latest()))  # type: ignore[no-untyped-call]
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in topics])
    configs = {resource.name: {name: entry.value for name, entry in answer.result().items()} for resource, answer in asked.items()}
    found = {}
    for key, state in partitions.items():
        given = configs[key[0]]
        limits = [int(given[name]) if "delete" in given["cleanup.policy"] else -1 for name in ("retention.ms", "retention.bytes")]
        asked_for = TopicPartition(*key)
        found[key] = Reported(
            leader=state.leader,
            replicas=len(state.replicas),
            in_sync=len(state.isrs),
            min_in_sync=int(given["min.insync.replicas"]),
            start=starts[asked_for].result().offset if state.leader >= 0 else None,
            end=ends[asked_for].result().offset if state.leader >= 0 else None,
            size=None,
            retention_seconds=limits[0] / 1000 if limits[0] >= 0 else None,
            retention_bytes=limits[1] if limits[1] >= 0 else None,
            segment_bytes=int(given["segment.bytes"]),
        )
    return found


def unlike(page: Page, kafka: Kafka, sizes: Sizes) -> Unlike:
    """Partitions of which the page does not say what brokers tell: both sides of each.

    Args:
        sizes: what was asked for before; as long as brokers tell the same of all else, it is not asked for again.
    """
    ours = by_page(page)
    try:
        theirs = by_kafka(kafka)
    except KafkaException as error:
        if error.args[0].code() != OFFSET_NOT_AVAILABLE:
            raise
        return {("", -1): (None, "a new leader does not know yet how far its partition is replicated")}
    known = {key: each._replace(size=None) for key, each in ours.items()}
    found: Unlike = {key: (known.get(key), theirs.get(key)) for key in known.keys() | theirs.keys() if known.get(key) != theirs.get(key)}
    if found:
        return found
    moment = frozenset(theirs.items())
    if moment not in sizes:
        sizes[moment] = log_sizes(kafka)
    reported = {key: sizes[moment].get((each.leader, *key)) for key, each in ours.items()}
    return {key: (each.size, reported[key]) for key, each in ours.items() if each.size != reported[key]}


def state(kafka: Kafka, topic: str, number: int) -> tuple[int, int]:
    """Leader and how many are in sync: asked of any broker that answers, which Kafka's tools cannot do before one that fell is fenced."""
    reported = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(topic, timeout=SECONDS).topics[topic].partitions[number]
    return reported.leader, len(reported.isrs)


def by_page(page: Page) -> dict[Key, Reported]:
    """The same as the job exports it. Of a topic made anew several brokers may lead a partition for a moment, which none of them tells."""
    rows: dict[Key, dict[str, float]] = {}
    for series, value in page.items():
        labels = dict(series.labels)
        if series.name == "segtail_partition_replica_lag_offsets":  # of followers
            continue
        if series.name.startswith("segtail_partition_") and labels["topic"] != METADATA and len(labels) == 3:
            row = rows.setdefault((labels["topic"], int(labels["partition"])), {"broker": int(labels["broker"])})
            if row["broker"] != int(labels["broker"]):
                row["broker"] = _SEVERAL
            row[series.name.removeprefix("segtail_partition_")] = value
    found = {}
    for key, row in rows.items():
        leads = row.get("leader") == 1
        found[key] = Reported(
            leader=int(row["broker"]) if leads or row["broker"] == _SEVERAL else -1,
            replicas=int(row.get("replicas", -1)),
            in_sync=int(row.get("in_sync_replicas", -1)),
            min_in_sync=int(row.get("min_in_sync_replicas", -1)),
            start=int(row.get("log_start_offset", -1)) if leads else None,  # absent for a log that has just been found
            end=int(row.get("log_end_offset", -1)) if leads else None,
            size=int(row.get("size_bytes", -1)) if leads else None,
            retention_seconds=row.get("retention_limit_seconds"),
            retention_bytes=None if "retention_limit_bytes" not in row else int(row["retention_limit_bytes"]),
            segment_bytes=int(row.get("segment_limit_bytes", -1)),
        )
    return found


def of_log_dirs(page: Page, name: str) -> dict[tuple[str, ...], float]:
    """Values of a family of log dirs by their labels' values in order; zeros left out."""
    return {
        tuple(value for _, value in sorted(series.labels)): value
        for series, value in page.items()
        if series.name == f"segtail_log_dir_{name}" and value and ("topic", METADATA) not in series.labels
    }


def on_disk(kafka: Kafka) -> dict[tuple[str, ...], float]:
    """Bytes of each topic in each log dir, by the sizes of its segments."""
    sums: dict[tuple[str, ...], float] = {}
    for node in kafka.nodes:
        for segment in (segment for log_dir in node.log_dirs for segment in log_dir.glob("*/*.log")):
            topic, _, number = segment.parent.name.rpartition("-")
            if topic != METADATA and number.isdigit() and segment.stat().st_size:
                key = (str(node.node_id), str(segment.parent.parent), topic)
                sums[key] = sums.get(key, 0) + segment.stat().st_size
    return sums


def set_config(kafka: Kafka, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def fenced(page: Page) -> set[str]:
    return {dict(series.labels)["broker"] for series, value in page.items() if series.name == "segtail_broker_fenced" and value}


def test_every_partition_is_as_its_brokers_say_through_changes_a_crash_and_a_return(kafka_cluster: Kafka, tmp_path: Path) -> None:
    kafka = kafka_cluster
    if kafka.down:
        kafka.start(*kafka.down)
    properties = ",".join(str(node.properties) for node in kafka.nodes)
    create_topic(kafka.bootstrap, "kept", partitions=3, config={"retention.bytes": "1000000", "min.insync.replicas": "2"})
    create_topic(kafka.bootstrap, "alone", partitions=3, replicas=1, config={"retention.ms": "-1"})
    create_topic(kafka.bootstrap, "compacted", config={"cleanup.policy": "compact"})
    for topic, number in (("kept", 0), ("kept", 1), ("alone", 0), ("alone", 1), ("alone", 2), ("compacted", 0)):
        send(producer(kafka.bootstrap), topic, number, 3, 10)

    given = ("--log-dirs", ",".join(map(str, kafka.log_dirs)), "--server-properties", properties, "--from", "earliest")
    more = ("--checkpoint", tmp_path / "c", "--listen", "127.0.0.1:0")
    with segtail("run", *given, *more, stated=tmp_path / "said", before=WITHOUT_SPARK) as job:

        def agrees(moment: str) -> Page:
            last: Unlike = {}
            sizes: Sizes = {}

            def alike() -> Page | None:
                page = job.page()
                last.clear()
                last.update(unlike(page, kafka, sizes))  # who is in sync changes too
                return None if last else page

            return until(f"{moment} it exports what brokers tell", alike, saw=lambda: last)

        page = agrees("at first")
        assert by_page(page)["alone", 0].segment_bytes == 1 << 30
        assert of_log_dirs(page, "topic_size_bytes") == on_disk(kafka)

        set_config(kafka, "kept", "retention.ms", "7200000")
        set_config(kafka, "alone", "min.insync.replicas", "1")
        records = TopicPartition("alone", 1, 15)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})  # must live until it has its answer
        admin.delete_records([records])[records].result(SECONDS)
        delete_topic(kafka.bootstrap, "compacted")
        create_topic(kafka.bootstrap, "compacted", partitions=2, config={"retention.ms": "3600000"})
        send(producer(kafka.bootstrap), "compacted", 1, 2, 10)
        page = agrees("after changes")
        assert (by_page(page)["kept", 0].retention_seconds, by_page(page)["alone", 1].start) == (7200, 15)

        down = by_page(page)["alone", 0].leader
        kafka.kill(down)
        until("its end is known", lambda: state(kafka, "alone", 0)[0] == -1, saw=lambda: state(kafka, "alone", 0))
        send(producer(kafka.bootstrap), "compacted", 1, 1, 10)
        page = agrees("with a broker down")
        assert {each.leader for each in by_page(page).values()} == {-1, *({1, 2, 3} - {down})}
        until("it is told that it is fenced", lambda: fenced(job.page()) == {str(down)}, saw=lambda: fenced(job.page()))

        kafka.start(down)
        until("it leads again", lambda: state(kafka, "alone", 0)[0] == down, saw=lambda: state(kafka, "alone", 0))
        until("it is in sync again", lambda: state(kafka, "compacted", 1)[1] == 3, saw=lambda: state(kafka, "compacted", 1))
        page = agrees("with all of them again")
        assert of_log_dirs(page, "topic_size_bytes") == on_disk(kafka)
