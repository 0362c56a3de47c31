"""A small cluster with all in it that alerts and dashboards tell of, a job on its disk, and Prometheus with Alertmanager on the job."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from tests.alerts.monitoring import Monitoring, Page, free_addresses, monitoring
from tests.alerts.rendering import Addresses
from tests.broker.clients import create_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.broker.transactions import Writer
from tests.broker.wire import ProducerId
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.processes import Segtail, segtail, until

PAYMENTS, LEDGER, AUDIT = "payments", "ledger", "audit"
"""Transactions of many kinds; a compacted topic that a transaction holds up; data that its timestamps keep past its limit."""

HANGING = (PAYMENTS, 1)
TRANSACTIONAL_ID = "till-7"

_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000
_SMALL_SEGMENTS = {"internal.segment.bytes": "8000"}
_TOPICS = {
    PAYMENTS: (2, _SMALL_SEGMENTS),
    LEDGER: (
        1,
        _SMALL_SEGMENTS
        | {
            "cleanup.policy": "compact,delete",
            "retention.ms": str(_HOUR_MS),
            "retention.bytes": "100000000",
            "min.cleanable.dirty.ratio": "0.01",
        },
    ),
    AUDIT: (1, _SMALL_SEGMENTS | {"retention.ms": str(_HOUR_MS)}),
}
_AUDITED_MINUTES = (30, -180, -170, -160)
"""The first segment lies in the future, and at least one behind it is long past its limit, also where a busy client splits its batches."""


_SILENT_MS = 5 * _MINUTE_MS

_BROKER = {"transaction.partition.verification.enable": "false"}
"""As before Kafka verified them: what a producer says of its transaction is believed."""

_QUICK = ("hanging_after=1s", "late_after=1s", "state_shards=4", "scrub_rate=1MiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitored:
    """``pages`` are all that the webhook was sent so far, ``author`` is who wrote what hangs on `HANGING`."""

    kafka: Kafka
    job: Segtail
    monitoring: Monitoring
    pages: list[Page]
    author: ProducerId

    def paged(self, alert: str, status: str) -> list[Page]:
        """Of one alert."""
        return [page for page in self.pages if (page.labels["alertname"], page.status) == (alert, status)]


@contextmanager
def monitored(directory: Path) -> Iterator[Monitored]:
    """Everything runs, and Prometheus has seen transactions begin and end; nothing outlives the block."""
    addresses = Addresses(**dict(zip(("target", "prometheus", "alertmanager", "webhook"), free_addresses(4), strict=True)))
    kafka = Kafka(directory / "kafka", settings=_BROKER)
    pages: list[Page] = []
    try:
        kafka.start()
        trader = producer(kafka.bootstrap, "lz4", transactional_id="trader")
        trader.init_transactions(SECONDS)  # the first one has the coordinators' topic made
        writer = _written_before(kafka)
        sets = [word for setting in _QUICK for word in ("--set", setting)]
        dirs = ",".join(map(str, kafka.log_dirs))
        arguments = (
            *("--log-dirs", dirs, "--server-properties", kafka.nodes[0].properties, "--from", "earliest"),
            *("--checkpoint", directory / "checkpoint", "--listen", addresses.target),
        )
        (directory / "monitoring").mkdir()
        with (
            segtail("run", *arguments, *sets, stated=directory / "said", before=WITHOUT_SPARK) as job,
            monitoring(directory / "monitoring", addresses, pages.append, hurried=True) as running,
        ):
            _written_while_watched(trader, running)
            yield Monitored(kafka=kafka, job=job, monitoring=running, pages=pages, author=writer.producer)
    finally:
        kafka.kill()


def _written_before(kafka: Kafka) -> Writer:
    """What hangs from the beginning, silent for longer than the minute that Kafka's own rules take until they call it so."""
    for topic, (partitions, config) in _TOPICS.items():
        create_topic(kafka.bootstrap, topic, partitions, config=config)
    plain = producer(kafka.bootstrap)
    send(plain, LEDGER, 0, 4, 60)
    cleaned = [log_dir / "cleaner-offset-checkpoint" for log_dir in kafka.log_dirs]
    kafka.until(
        lambda: any(path.exists() and LEDGER in path.read_text() for path in cleaned),
        f"{LEDGER} is compacted",
        lambda: [path.read_text() for path in cleaned if path.exists()],
    )
    for minutes in _AUDITED_MINUTES:
        _dated(plain, AUDIT, minutes)
    writer = Writer(kafka, TRANSACTIONAL_ID)
    writer.hang(*HANGING, 3, age_ms=_SILENT_MS)
    Writer(kafka, "clerk").hang(LEDGER, 0, 3, age_ms=_SILENT_MS)
    send(plain, LEDGER, 0, 4, 60)
    return writer


def _dated(client: Producer, topic: str, minutes: int) -> None:
    now_ms = time.time_ns() // 1_000_000
    for _ in range(40):
        client.produce(topic, b"x" * 150, partition=0, timestamp=now_ms + minutes * _MINUTE_MS)
    assert client.flush(SECONDS) == 0


def _written_while_watched(trader: Producer, running: Monitoring) -> None:
    """Commits and aborts on all partitions after the first scrape that holds them: rates need a before and an after."""
    ended = "sum(segtail_partition_committed_transactions_total) > 0 and sum(segtail_partition_aborted_transactions_total) > 0"
    until("the job's partitions are scraped", lambda: running.query(f'segtail_partition_appended_bytes_total{{topic="{AUDIT}"}}'))
    for number in range(6):
        with transaction(trader, commit=number % 3 != 2):
            for topic, (partitions, _) in _TOPICS.items():
                send(trader, topic, number % partitions, 1, 10)
    until("transactions are seen to end", lambda: running.query(ended))
    with transaction(trader):
        send(trader, PAYMENTS, 0, 1, 10)
