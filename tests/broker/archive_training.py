"""What JVMs do while the classes are noted that go into the archive: a broker that serves a transaction, and tools that ask about it."""

import sys
from pathlib import Path

from tests import class_archives
from tests.broker import class_archive
from tests.broker.clients import create_topic, producer, send, transaction
from tests.broker.install import BROKER_VERSION, KAFKA_VERSION, archives, class_path, java
from tests.broker.kafka import Kafka
from tests.broker.oracle import end_offsets, log_sizes, log_totals
from tests.limits import SECONDS

_TOPIC = "training"


def make_archive() -> None:
    """Have those be made that are not there, a minute each: in processes of their own, for what is started there is not what a test starts.

    Tools have the class path of their own version; brokers that of theirs.
    """
    for version in (KAFKA_VERSION, BROKER_VERSION):
        place = class_archive.place(java(), class_path(version), archives())
        class_archives.make(place, java(), [sys.executable, "-m", __spec__.name, version])


def _train(directory: Path, version: str) -> None:
    kafka = Kafka(directory, version=version)
    try:
        kafka.start()
        create_topic(kafka.bootstrap, _TOPIC)
        client = producer(kafka.bootstrap, "zstd", transactional_id=_TOPIC)
        client.init_transactions(SECONDS)
        with transaction(client):
            send(client, _TOPIC, 0, 1, 10)
        end_offsets(kafka)
        log_sizes(kafka)
        log_totals(kafka.log_dirs)
        kafka.stop()  # a JVM that is killed does not write its list to the end
    finally:
        kafka.kill()


def _main(version: str, scratch: Path) -> None:
    path = class_path(version)
    with class_archive.recording(scratch / "lists", path) as lists:
        _train(scratch / "training", version)
    class_archive.dump(java(), path, lists, scratch / class_archives.ARCHIVE)


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[3]))
