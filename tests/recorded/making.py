"""What a script has at hand that makes a world: a folder, the version of Kafka, and an archive that takes disks and answers."""

import json
import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.broker.kafka import Kafka
from tests.recorded.archive import CONFIGURATION, Packer

ANSWERS = "answers"
MOMENTS = "moments"


@dataclass(slots=True)
class Making:
    """One recording that is being made. ``directory`` is empty and the script's own."""

    version: str
    directory: Path
    packer: Packer
    moments: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def disk(self, kafka: Kafka, state: str = "disk", without: Collection[str] = ()) -> None:
        """Keeps the log dirs and configurations of all brokers as they are at this moment, whether they run or not.

        Args:
            without: suffixes of files that are left out.
        """
        with _waiting_still(kafka):
            self.moments[state] = time.time_ns() // 1_000_000
            for node in kafka.brokers:
                for log_dir in node.log_dirs:
                    self.packer.folder(log_dir, f"{state}/{node.directory.name}/{log_dir.name}", without)
                configuration = f"{state}/{node.directory.name}/{CONFIGURATION}"
                self.packer.configuration(node.properties, configuration, node.directory.parent)

    def answer(self, name: str, stated: Any, by: str) -> None:
        """Keeps what somebody (``by``) answered: text as it is, anything else as JSON."""
        self.asked.append(f"{name}: {by}")
        self._write(f"{name}.txt" if isinstance(stated, str) else f"{name}.json", stated)

    def finish(self) -> None:
        """Keeps when the disks were as they are."""
        self._write(f"{MOMENTS}.json", self.moments)

    def _write(self, name: str, stated: Any) -> None:
        text = stated if isinstance(stated, str) else json.dumps(stated, separators=(",", ":"))
        self.packer.bytes(text.encode(), f"{ANSWERS}/{name}", time.time())


@contextmanager
def _waiting_still(kafka: Kafka) -> Iterator[None]:
    """Nothing is written to what is being read."""
    stopped = kafka.pids
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
