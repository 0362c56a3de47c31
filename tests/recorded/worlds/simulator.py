"""What a real broker made of the log dirs that a simulated one had written, and what Kafka's tools say of both."""

import hashlib
import shutil
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from streaming.kafka.formats.compression import compress
from streaming.simulator.batch_writer import Codec
from streaming.simulator.broker import HISTORY_MS, SimulatedBroker
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.oracle import end_offsets, log_totals
from tests.recorded.making import Making

SECONDS = 40
QUIET = {
    "log.retention.check.interval.ms": 600_000,
    "log.initial.task.delay.ms": 600_000,
    "log.cleaner.backoff.ms": 600_000,
    "group.consumer.max.session.timeout.ms": 600_000,
    "group.consumer.session.timeout.ms": 600_000,
}
"""Settings with which a broker leaves the logs as they are."""

CHECKPOINTS = "checkpoints"
REBUILT = (".index", ".timeindex", ".txnindex", ".snapshot")


def make(making: Making) -> None:
    """The disk is that of the real broker, without the logs: those are as the simulator wrote them, which is known by their digest."""
    start = int(time.time() * 1000) - SECONDS * 1000
    broker = simulate(making.directory / "simulated", start)
    making.answer("simulated", {"start": start, "digests": digests(broker.log_dirs), "zlib": zlibs()}, by="the simulator")
    totals = [(*place, asdict(found)) for place, found in log_totals(broker.log_dirs).items()]
    making.answer("totals", totals, by="kafka-dump-log")
    kafka = Kafka(making.directory / "real", settings=QUIET, version=making.version)
    for source, target in zip(broker.log_dirs, kafka.log_dirs, strict=True):
        shutil.rmtree(target)
        shutil.copytree(source, target)
        forget_what_can_be_rebuilt(target)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        bootstrap = ("--bootstrap-server", kafka.bootstrap)
        making.answer("ends", [(*place, offset) for place, offset in end_offsets(kafka).items()], by="kafka-get-offsets --time -1")
        for name, tool, options in (
            ("producers", "transactions", ("describe-producers", "--topic", "payments", "--partition", "2")),
            ("transactions", "transactions", ("list",)),
            ("hanging", "transactions", ("find-hanging", "--broker-id", "1")),
            ("states", "groups", ("--list", "--state", "--type")),
            ("described", "groups", ("--describe", "--group", "ledger", "--group", "click-counter")),
        ):
            said = run_tool(tool, *bootstrap, *options)
            making.answer(name, said, by=f"kafka-{'consumer-groups' if tool == 'groups' else tool} {' '.join(options)}")
        making.disk(kafka, without=(".log",))


def simulate(directory: Path, start: int) -> SimulatedBroker:
    """A minute of a simulated broker, with what happened before it, shut down."""
    directory.mkdir()
    broker = SimulatedBroker(directory, seed=3, clock=lambda: start, history_ms=HISTORY_MS)
    broker.step(start + SECONDS * 1000)
    broker.close()
    return broker


def digests(log_dirs: Iterable[Path]) -> dict[str, str]:
    """Of the files of each log with their contents, and of those beside them as `CHECKPOINTS`."""
    found = {CHECKPOINTS: hashlib.sha256()}
    for log_dir in log_dirs:
        for path in sorted(path for path in log_dir.rglob("*") if path.is_file()):
            name, content = path.relative_to(log_dir), path.read_bytes()
            of = found.setdefault(name.parent.name or CHECKPOINTS, hashlib.sha256())
            of.update(f"{log_dir.name}/{name} {len(content)}\n".encode() + content)
    return {log: made.hexdigest() for log, made in found.items()}


def zlibs() -> str:
    """What the zlib of this machine makes of some text: another one writes other bytes, which are as good. All other codecs are pinned."""
    text = b"".join(b"%d bottles of beer on the wall, " % number for number in range(5_000))
    return hashlib.sha256(compress(Codec.GZIP, text)).hexdigest()


def forget_what_can_be_rebuilt(log_dir: Path) -> None:
    """A broker that starts on it has to recover it, and makes the rest anew."""
    (log_dir / ".kafka_cleanshutdown").unlink()
    (log_dir / "recovery-point-offset-checkpoint").write_bytes(b"")
    for path in log_dir.rglob("*"):
        if path.suffix in REBUILT:
            path.unlink()
