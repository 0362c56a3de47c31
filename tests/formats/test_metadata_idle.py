"""How often an idle controller writes, and the phases of a broker, as read from the metadata log."""

from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.cluster_image import ClusterImage, IdlePace, IdleRun, idle_run, times_of
from streaming.kafka.formats.metadata_records import Phase
from streaming.kafka.formats.records import read_batch
from streaming.simulator.batch_writer import encode
from streaming.simulator.metadata_writer import (
    Listener,
    leader_change_batch,
    metadata_batch,
    no_op_record,
    register_broker_record,
    snapshot_footer_batch,
    snapshot_header_batch,
    unfence_record,
)
from tests.builders import NOW
from tests.record_batches import image_of_snapshot
from tests.simulated import broker_change_record
from tests.tables import each_row

RECORDED = Path(__file__).parents[1] / "data" / "metadata"
HERE = Listener("PLAINTEXT", "127.0.0.1", 9092)


class Log:
    """A metadata log in memory, and the image of one that reads on as it grows."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.now = NOW
        self._offset = 0

    def write(self, *values: bytes, later_ms: int = 0) -> None:
        self.now += later_ms
        self._append(encode(metadata_batch(values, self.now), self._offset), len(values))

    def elect(self, later_ms: int) -> None:
        self.now += later_ms
        self._append(encode(leader_change_batch(1, self.now), self._offset), 1)

    def _append(self, data: bytes, records: int) -> None:
        self._offset += records
        assert self.image.apply(memoryview(data)) == len(data)

    def idle(self, batches: int, every_ms: int = 500) -> None:
        for _ in range(batches):
            self.write(no_op_record(), later_ms=every_ms)

    def register(self, epoch: int, later_ms: int = 0) -> None:
        self.write(register_broker_record(1, _ID, epoch, HERE, [], []), later_ms=later_ms)

    @property
    def phase(self) -> Phase | None:
        broker = self.image.broker(1)
        assert broker is not None
        return broker.phase

    @property
    def since(self) -> int:
        broker = self.image.broker(1)
        assert broker is not None
        return broker.since_ms


_ID = UUID(int=7)


# --- the pace


def test_the_pace_of_an_idle_controller_is_known_from_its_second_batch_on() -> None:
    log = Log()
    assert log.image.idle_interval_ms is None
    log.idle(1)
    assert log.image.idle_interval_ms is None
    log.idle(1)
    assert log.image.idle_interval_ms == 500


def test_a_run_of_idle_batches_shows_the_times_of_its_first_and_last() -> None:
    data = b"".join(encode(metadata_batch([no_op_record()], NOW + 500 * number), number) for number in range(40))
    assert idle_run(memoryview(data), 0) == IdleRun(40, 0)
    assert times_of(memoryview(data), 0, 40) == (NOW, NOW + 39 * 500)


def test_a_time_without_a_controller_leaves_the_pace_as_it_was() -> None:
    log = Log()
    log.idle(5)
    log.idle(1, every_ms=120_000)
    assert log.image.idle_interval_ms == 500


def test_a_controller_that_writes_and_is_never_idle_any_more_has_no_pace() -> None:
    log = Log()
    log.idle(5)
    log.register(5, later_ms=9_000)
    assert log.image.idle_interval_ms == 500
    log.register(6, later_ms=2_000)
    assert log.image.idle_interval_ms is None
    log.idle(2)
    assert log.image.idle_interval_ms == 500


def test_a_controller_that_is_elected_late_is_as_idle_as_the_one_before_until_it_has_had_the_time_to_be() -> None:
    log = Log()
    log.idle(5)
    log.elect(later_ms=15_000)
    log.register(5, later_ms=2_000)  # as at the start of a controller that dies again at once
    assert log.image.idle_interval_ms == 500
    log.register(6, later_ms=9_000)
    assert log.image.idle_interval_ms is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60_000)), max_size=30))
def test_the_pace_is_a_time_between_idle_batches_that_were_read_or_not_known(steps: list[tuple[bool, int]]) -> None:
    pace, now, times = IdlePace(), NOW, []
    for idle, passing in steps:
        now += passing
        if idle:
            times.append(now)
            pace.idle(1, now, now)
        else:
            pace.other(now)
    gaps = {later - earlier for earlier, later in pairwise(times)}
    assert pace.interval_ms is None or pace.interval_ms in gaps


# --- the phases


def test_a_broker_starts_runs_goes_down_and_comes_back() -> None:
    log = Log()
    log.register(5)
    assert (log.phase, log.since) == (Phase.STARTING, NOW)
    log.write(unfence_record(1, 5), later_ms=1000)
    assert (log.phase, log.since) == (Phase.RUNNING, NOW + 1000)
    log.write(broker_change_record(1, 5, fenced=True), later_ms=1000)
    assert (log.phase, log.since) == (Phase.DOWN, NOW + 2000)
    log.register(9, later_ms=1000)
    assert (log.phase, log.since) == (Phase.STARTING, NOW + 3000)
    log.write(unfence_record(1, 9), later_ms=1000)
    assert (log.phase, log.since) == (Phase.RUNNING, NOW + 4000)


def test_a_broker_that_is_shut_down_in_an_orderly_way_is_stopping_until_it_registers_again() -> None:
    log = Log()
    log.register(5)
    log.write(unfence_record(1, 5))
    log.write(broker_change_record(1, 5, stopping=True), later_ms=1000)
    assert (log.phase, log.since) == (Phase.STOPPING, NOW + 1000)
    log.write(broker_change_record(1, 5, fenced=True), later_ms=1000)
    assert log.phase is Phase.STOPPING
    log.register(9)
    assert log.phase is Phase.STARTING


def test_one_that_registers_again_and_again_and_never_serves_starts_since_the_first_time() -> None:
    log = Log()
    log.register(5)
    log.register(8, later_ms=60_000)
    log.register(9, later_ms=60_000)
    assert (log.phase, log.since) == (Phase.STARTING, NOW)


@pytest.mark.parametrize(
    ("fenced", "stopping", "phase"), [(False, False, Phase.RUNNING), (True, True, Phase.STOPPING), (True, False, None)]
)
def test_of_a_fenced_broker_a_snapshot_does_not_show_whether_it_starts_or_is_down(
    fenced: bool, stopping: bool, phase: Phase | None
) -> None:
    registration = bytearray(register_broker_record(1, _ID, 5, HERE, [], []))
    at = registration.rindex(b"\x01\x00\x01\x00")  # fenced, not stopping; one tagged field
    registration[at : at + 2] = bytes([fenced, stopping])
    batches = [snapshot_header_batch(NOW), metadata_batch([bytes(registration)], NOW), snapshot_footer_batch(NOW)]
    data = b"".join(encode(batch, offset) for offset, batch in enumerate(batches))
    broker = image_of_snapshot(memoryview(data), 10).broker(1)
    assert broker is not None
    assert (broker.phase, broker.broker_epoch) == (phase, 5)


# --- as real clusters recorded it


@each_row(
    ("cluster", "broker", "lived"),
    [
        ("three_nodes", 1, ["starting", "running"]),
        ("three_nodes", 3, ["starting", "running", "stopping", "starting", "running"]),  # stopped while it led, and started
        ("unclean_election", 2, ["starting", "running", "down", "starting", "running"]),  # killed, and started
        ("node_down", 3, ["starting", "running", "stopping"]),
        ("kafka_3_9", 1, ["starting", "running"]),
    ],
)
def test_the_phases_that_a_broker_of_a_real_cluster_went_through(cluster: str, broker: int, lived: list[str]) -> None:
    data, image, phases = memoryview((RECORDED / cluster / "log.bin").read_bytes()), ClusterImage(), []
    position = 0
    while (batch := read_batch(data, position)) is not None:
        image.apply(data[position : position + batch.size])
        position += batch.size
        state = image.broker(broker)
        phases += [str(state.phase)] if state is not None and phases[-1:] != [str(state.phase)] else []
    assert phases == lived
    assert image.idle_interval_ms is not None
    assert 450 < image.idle_interval_ms < 600
