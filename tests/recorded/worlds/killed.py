"""The log dirs of a broker that was killed, with recovery points of every kind, and which segments it says that it recovers after that."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

from tests.broker.clients import create_topic, producer, send
from tests.broker.kafka import Kafka
from tests.broker.recovered import LOGGERS, about_segments
from tests.recorded.making import Making
from tests.recorded.worlds.retention import NEVER

RESTED, GOES_ON, ROLLS, NEW, FLUSHED, UNNOTED = "rested", "goes-on", "rolls", "new", "flushed", "unnoted"
"""What comes after the last clean start: nothing, a little, some segments, all of it, and all of it, each batch of which is flushed. To the
last one, all comes after the last time that recovery points were written down."""

_ROLLS = {"segment.bytes": str(1 << 20)}
TOPICS: Mapping[str, Mapping[str, str]] = {
    RESTED: {},
    GOES_ON: {},
    ROLLS: _ROLLS,
    NEW: _ROLLS,
    FLUSHED: {**_ROLLS, "flush.messages": "1"},
    UNNOTED: _ROLLS,
}
PARTITIONS = 2
_VALUE_BYTES = 9_000
_CHECKPOINT = "recovery-point-offset-checkpoint"


def make(making: Making) -> None:
    """The states are `killed`, and `stopped` after the start that recovers and a clean stop; the answers are of the starts after them."""
    settings = {"log.initial.task.delay.ms": 500, "log.flush.offset.checkpoint.interval.ms": 500, "log.retention.check.interval.ms": NEVER}
    kafka = Kafka(making.directory / "kafka", settings=settings, version=making.version, loggers=LOGGERS)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        _fill(kafka, (RESTED, GOES_ON, ROLLS), batches=2)
        kafka.stop()
        kafka.start()
        _send(kafka, GOES_ON, batches=1)
        _send(kafka, ROLLS, batches=8)
        _fill(kafka, (NEW, FLUSHED), batches=8)
        kafka.until(lambda: FLUSHED in _checkpoints(kafka), "recovery points are written down")
        kafka.kill()
        kafka.configure({"log.initial.task.delay.ms": NEVER, "log.flush.offset.checkpoint.interval.ms": NEVER})
        kafka.start()
        _fill(kafka, (UNNOTED,), batches=4)
        kafka.kill()
        assert UNNOTED not in _checkpoints(kafka)
        making.disk(kafka, "killed")

        making.answer("recovered", _start(kafka), by="the broker, in its log, as it starts after SIGKILL")
        kafka.stop()
        making.disk(kafka, "stopped")
        making.answer("recovered_after_stop", _start(kafka), by="the broker, in its log, as it starts after a clean stop")


def _fill(kafka: Kafka, topics: Iterable[str], batches: int) -> None:
    for topic in topics:
        create_topic(kafka.bootstrap, topic, PARTITIONS, config=TOPICS[topic])
        _send(kafka, topic, batches)


def _send(kafka: Kafka, topic: str, batches: int) -> None:
    client = producer(kafka.bootstrap, idempotent=True)
    for partition in range(PARTITIONS):
        send(client, topic, partition, batches, 50, value_bytes=_VALUE_BYTES)


def _checkpoints(kafka: Kafka) -> str:
    return "".join((log_dir / _CHECKPOINT).read_text() for log_dir in kafka.log_dirs)


def _start(kafka: Kafka) -> str:
    """Starts the broker; returns what it says of segments that it recovers."""
    (node,) = kafka.brokers
    begin = node.log.stat().st_size
    kafka.start()
    return "\n".join(about_segments(node.log.read_bytes()[begin:].decode()))
