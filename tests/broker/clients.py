"""Produces to a broker with a client that is not Kafka's own: librdkafka, plain, idempotent or in transactions."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.limits import SECONDS

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_LONG_MS = 30_000  # must stay below the message timeout, which for a transaction is its own
_PATIENT_MS = 600_000  # what a test leaves open must not be aborted while a busy machine gets on with the rest


def create_topic(bootstrap: str, topic: str, partitions: int = 1, *, replicas: int = -1, config: Mapping[str, str] | None = None) -> None:
    """Creates a topic and waits until the controller has it; `replicas` -1 is the broker's default."""
    new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=dict(config or {}))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([new])[topic].result(SECONDS)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Deletes a topic and waits until the controller has done so."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(SECONDS)


def producer(
    bootstrap: str,
    codec: str = "none",
    *,
    idempotent: bool = False,
    transactional_id: str | None = None,
    more: Mapping[str, str | int] | None = None,
) -> Producer:
    """A producer that sends only when it is flushed, so that a flush makes one batch a partition.

    Args:
        more: settings of librdkafka's over these.
    """
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "compression.type": codec,
        "enable.idempotence": idempotent or transactional_id is not None,
        "linger.ms": _LONG_MS,
    }
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
        settings["transaction.timeout.ms"] = _PATIENT_MS
    return Producer({**settings, **(more or {})})


def send(client: Producer, topic: str, partition: int, batches: int, records: int, *, value_bytes: int = 100) -> None:
    """Sends `batches` batches of `records` records each and waits until the broker has them."""
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for _ in range(batches):
        for number in range(records):
            value = f"value {number} ".encode().ljust(value_bytes, b".")  # every codec makes this smaller, so the client keeps the codec
            client.produce(topic, value, key=f"key {number}".encode(), partition=partition, on_delivery=delivered)
        left = client.flush(SECONDS)
        assert (left, failures) == (0, [])


@contextmanager
def transaction(client: Producer, *, commit: bool = True) -> Iterator[None]:
    """What is sent inside is one transaction, committed or aborted at the end."""
    client.begin_transaction()
    yield
    if commit:
        client.commit_transaction(SECONDS)
    else:
        client.abort_transaction(SECONDS)
