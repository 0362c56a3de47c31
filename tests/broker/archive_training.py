"""What JVMs do while the classes are noted that go into the archive: a broker that serves a transaction, and tools that ask about it."""

import sys
from pathlib import Path

from tests import class_archives
from tests.broker import class_archive
from tests.broker.clients import create_topic, producer, send, transaction
from tests.broker.install import archives, class_path, java
from tests.broker.kafka import Kafka
from tests.broker.oracle import end_offsets, log_sizes, log_totals
from tests.limits import SECONDS

_TOPIC = "training"


def make_archive() -> None:
    """Have it made where it is not there, a minute: in a process of its own, for what is started there is not what a test starts."""
    class_archives.make(class_archive.place(java(), class_path(), archives()), java(), [sys.executable, "-m", __spec__.name])


def _train(directory: Path) -> None:
    kafka = Kafka(directory)
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


def _main(scratch: Path) -> None:
    with class_archive.recording(scratch / "lists") as lists:
        _train(scratch / "training")
    class_archive.dump(java(), class_path(), lists, scratch / class_archives.ARCHIVE)


if __name__ == "__main__":
    _main(Path(sys.argv[2]))
