"""What JVMs do while the classes are noted that go into the archive: a broker that serves a transaction, and tools that ask about it."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.broker import class_archive
from tests.broker.clients import create_topic, producer, send, transaction
from tests.broker.install import class_archives, class_path, java
from tests.broker.kafka import Kafka
from tests.broker.oracle import end_offsets, log_sizes, log_totals
from tests.limits import SECONDS

_TOPIC = "training"
_SECONDS = 1200


def make_archive() -> None:
    """Have it made where it is not there, a minute: in a process of its own, for what is started there is not what a test starts."""
    if not class_archive.options(java(), class_path(), class_archives()):
        command = [sys.executable, "-m", __spec__.name]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=False, timeout=_SECONDS)


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


if __name__ == "__main__":
    class_archive.make(java(), class_path(), class_archives(), _train)
