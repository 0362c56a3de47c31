"""The main job on a real broker's disk, held against what Kafka's own tools say."""

from pathlib import Path

from tests.broker.clients import CODECS, create_topic, delete_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.broker.oracle import end_offsets, log_totals
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.processes import Counts, Page, exported, segtail, until

METADATA = "__cluster_metadata"
"""Grows while we look at it, and no client can ask for its end."""

Counted = dict[tuple[str, int], Counts]


def of_topics(page: Page) -> Counted:
    return {key: counts for key, counts in exported(page).items() if key[0] != METADATA}


def stated_by_kafka(kafka: Kafka, log_dirs: tuple[Path, ...]) -> Counted:
    """Every partition of a cluster at rest, by kafka-dump-log over the log dirs of one broker, and kafka-get-offsets."""
    ends = end_offsets(kafka)
    totals = {key: value for key, value in log_totals(log_dirs).items() if key[0] != METADATA}
    assert {key: value.next_offset for key, value in totals.items() if value.next_offset} == {key: end for key, end in ends.items() if end}
    return {key: Counts(value.bytes, value.data_batches, value.data_records, ends[key]) for key, value in totals.items()}


def test_live_metrics_are_what_kafkas_tools_say(kafka_alone: Kafka, tmp_path: Path) -> None:
    create_topic(kafka_alone.bootstrap, "run.before")
    send(producer(kafka_alone.bootstrap), "run.before", 0, 2, 10)
    arguments = ("--log-dirs", ",".join(map(str, kafka_alone.log_dirs)), "--from", "earliest", "--checkpoint", tmp_path / "c")
    with segtail("run", *arguments, "--listen", "127.0.0.1:0", stated=tmp_path / "said", before=WITHOUT_SPARK) as job:
        until("it exports what was there", lambda: ("run.before", 0) in of_topics(job.page()))
        create_topic(kafka_alone.bootstrap, "run.deleted", partitions=2)
        send(producer(kafka_alone.bootstrap), "run.deleted", 1, 1, 10)
        for codec in CODECS:
            create_topic(kafka_alone.bootstrap, f"run-{codec}", partitions=2)
            client = producer(kafka_alone.bootstrap, codec, idempotent=codec == "zstd")
            for partition in range(2):
                send(client, f"run-{codec}", partition, 3 + partition, 20, value_bytes=500)
        send(producer(kafka_alone.bootstrap), "run.before", 0, 1, 10)
        create_topic(kafka_alone.bootstrap, "run.txn", partitions=3)
        client = producer(kafka_alone.bootstrap, "lz4", transactional_id="run")
        client.init_transactions(SECONDS)
        for round_ in range(4):
            with transaction(client, commit=round_ != 2):
                send(client, "run.txn", round_ % 3, 2, 5)
                send(client, "run.txn", 1, 1, 5)
        until("it exports the topic that will be deleted", lambda: of_topics(job.page()).get(("run.deleted", 1)))
        delete_topic(kafka_alone.bootstrap, "run.deleted")

        expected = stated_by_kafka(kafka_alone, kafka_alone.log_dirs)
        assert {topic for topic, _ in expected} >= {"run.before", "run.txn", "__transaction_state", *(f"run-{codec}" for codec in CODECS)}
        until(f"it exports {expected}", lambda: of_topics(job.page()) == expected, saw=lambda: of_topics(job.page()))
        # What metadata says of it comes by a road of its own, and may leave a page later.
        until(
            "nothing is left of the topic", lambda: not left_of(job.page(), "run.deleted"), saw=lambda: left_of(job.page(), "run.deleted")
        )
        assert sum(value for series, value in job.page().items() if series.name == "segtail_skipped_bytes_total") == 0


def left_of(page: Page, topic: str) -> list[str]:
    """The series that are about a topic."""
    return [series.name for series in page if ("topic", topic) in series.labels]
