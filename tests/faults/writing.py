"""A simulated broker that writes while jobs are killed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.simulator.broker import SimulatedBroker
from tests.facts import Facts, facts_of_all
from tests.processes import Counts

START = 1_700_000_000_000
_LIMIT_MS = 60_000  # by its own clock: no segment is so old, and no partition so large, that retention or compaction would take anything
_STEP_MS = 10
_PAUSE_SECONDS = 0.25  # so that it has something to write for 25 minutes, however slow the machine is
_RATE = 400_000


class WritingBroker:
    """Writes at its pace, a small part of a real broker's, until `rest` or until its own minute is over."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._broker = SimulatedBroker(directory, seed=5, clock=lambda: START, rate_bytes_per_second=_RATE)
        self._now = START
        self._rest = threading.Event()
        self._thread = threading.Thread(target=self._write, name="broker")
        self.log_dirs = ",".join(map(str, self._broker.log_dirs))

    def write_on(self, milliseconds: int) -> None:
        """Write so much at once, by its own clock."""
        assert not self._thread.is_alive()
        self._now += milliseconds
        self._broker.step(self._now)

    def start(self) -> None:
        self._thread.start()

    def rest(self) -> None:
        """Stop writing."""
        self._rest.set()
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        """Stop writing, and close its files, of which there are some hundred."""
        self.rest()
        self._broker.close()

    def facts(self) -> tuple[Facts, ...]:
        """The truth, of a broker at rest from which nothing was taken away."""
        facts = facts_of_all(self._broker)
        assert all(each.appended == each.held for each in facts)
        return facts

    def _write(self) -> None:
        while not self._rest.wait(_PAUSE_SECONDS) and self._now < START + _LIMIT_MS:
            self._now += _STEP_MS
            self._broker.step(self._now)


@contextmanager
def writing_broker(directory: Path) -> Iterator[WritingBroker]:
    """A broker that has written for a second and does not write yet."""
    broker = WritingBroker(directory)
    broker.write_on(1_000)
    try:
        yield broker
    finally:
        broker.close()


def written(broker: WritingBroker) -> dict[tuple[str, int], Counts]:
    """The counts of every partition, as the broker knows them."""
    return {
        (each.topic, each.partition): Counts(each.appended.bytes, each.appended.batches, each.appended.records, each.log_end_offset)
        for each in broker.facts()
    }


def sizes(broker: WritingBroker) -> dict[tuple[str, int], int]:
    """Of every partition that holds something."""
    return {key: int(counts.bytes) for key, counts in written(broker).items() if counts.bytes}
