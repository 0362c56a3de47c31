"""Streams of a live broker's log dirs without an agent, held against what a consumer gets, while producers write, commit and abort."""

import random
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from streaming.spark.source.public_stream import PublicStreamReader
from tests.broker.clients import create_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.source.local_streaming import ALL, batches, step, stream

TOPIC, PARTITIONS = "tailed", 2


@dataclass(slots=True)
class Query:
    """A query with its checkpoint, and the rows that came."""

    reader: PublicStreamReader
    at: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def step(self) -> None:
        """One micro-batch."""
        rows, self.at = step(self.reader, self.at, ALL)
        self.rows += rows


def test_what_streams_is_what_a_consumer_gets_and_each_batch_comes_once(kafka: Kafka) -> None:
    create_topic(kafka.bootstrap, TOPIC, PARTITIONS, config={"internal.segment.bytes": "6000"})
    draw = random.Random(7)
    paying = producer(kafka.bootstrap, "lz4", transactional_id="tailed")
    paying.init_transactions(SECONDS)
    plain = producer(kafka.bootstrap)
    queries = {relation: Query(tailing(kafka, relation)) for relation in ("records", "batches", "transactions")}
    ends = dict.fromkeys((True, False), 0)
    for number in range(24):
        send(plain, TOPIC, number % PARTITIONS, 1, draw.randint(1, 9))
        commit = draw.random() < 0.6
        with transaction(paying, commit=commit):
            for partition in range(PARTITIONS):
                send(paying, TOPIC, partition, 1, draw.randint(1, 9))
            for name in draw.sample(sorted(queries), 2):
                queries[name].step()
        ends[commit] += PARTITIONS
        if number % 8 == 5:  # the query is killed, and another one goes on from its checkpoint
            queries = {name: Query(tailing(kafka, name), of.at, of.rows) for name, of in queries.items()}
    expected = consumed(kafka)

    def all_there() -> bool:
        for query in queries.values():
            query.step()
        return len(queries["records"].rows) >= len(expected)

    kafka.until(all_there, "the high watermark is written")
    records = [(row["partition"], row["offset"], row["key"], row["value"]) for row in queries["records"].rows]
    assert sorted(records) == expected
    assert sorted(batches(queries["batches"].rows)) == sorted(batches(step(tailing(kafka, "batches"), {})[0]))
    assert len(queries["batches"].rows) == len({(row["partition"], row["base_offset"]) for row in queries["batches"].rows})
    kinds = [row["kind"] for row in queries["transactions"].rows]
    assert {True: kinds.count("committed"), False: kinds.count("aborted")} == ends


def tailing(kafka: Kafka, relation: str) -> PublicStreamReader:
    return stream(*kafka.log_dirs, relation=relation, topics=TOPIC)


def consumed(kafka: Kafka) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """What a consumer of committed records gets, sorted."""
    config = {"bootstrap.servers": kafka.bootstrap, "group.id": "tailed", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**config, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    rows, ended = list[tuple[int, int, bytes | None, bytes | None]](), set[int | None]()
    while len(ended) < PARTITIONS:
        message = consumer.poll(SECONDS)
        assert message is not None
        partition, offset = message.partition(), message.offset()
        if message.error():
            ended.add(partition)
        else:
            assert partition is not None
            assert offset is not None
            rows.append((partition, offset, message.key(), message.value()))
    consumer.close()
    return sorted(rows, key=lambda each: each[:2])
