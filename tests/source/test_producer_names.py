"""The transactional ids in rows of transactions: from coordinators' logs, wherever these are, and whenever they are written."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.broker.disk.availability import read_identity
from streaming.broker.excerpts.producer_owners import owners_in
from streaming.broker.protocol.excerpt_messages import ReadUpto
from streaming.common.short_names import redacted, short_name
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import Coordinator, StoredTransaction, transaction_record
from streaming.simulator.log import LogDir, PartitionLog
from streaming.spark.source.producer_names import LATE_SECONDS, KnownProducers, ProducerNames
from tests.agents import Agent
from tests.builders import CLUSTER_ID, NOW, batch, commit, log_dir, partition
from tests.source.public_reading import Clock, everything, rows, stream


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def orders(disk: LogDir) -> PartitionLog:
    return partition(disk, "orders")


@pytest.fixture
def entries(disk: LogDir) -> PartitionLog:
    return partition(disk, TRANSACTION_TOPIC)


@pytest.fixture
def coordinator(entries: PartitionLog, orders: PartitionLog) -> Coordinator:
    producer_ids = iter(range(7, 100))
    return Coordinator([entries], {("orders", 0): orders}, lambda _: next(producer_ids))


def transact(coordinator: Coordinator, orders: PartitionLog, state: StoredTransaction) -> StoredTransaction:
    state = coordinator.add(state, "orders", 0, NOW)
    orders.append(batch(1, producer=state.producer_id, epoch=state.epoch, transactional=True))
    return coordinator.end(state, committed=True, now=NOW)


def begun(coordinator: Coordinator, name: str) -> StoredTransaction:
    return coordinator.init(name, 60_000, NOW)


Found = Callable[[], list[tuple[int, str | None]]]


@pytest.fixture(params=["log_dirs", "agents"])
def found(request: pytest.FixtureRequest, disk: LogDir, orders: PartitionLog, tmp_path: Path) -> Iterator[Found]:
    def read(**options: str) -> list[tuple[int, str | None]]:
        return [(row["producer_id"], row["transactional_id"]) for row in rows({**options, "relation": "transactions", "topics": "orders"})]

    if request.param == "log_dirs":
        yield lambda: read(log_dirs=str(disk.path))
        return
    agent = Agent(disk.path)
    with agent.served() as address:
        yield lambda: read(agents=address)
    agent.close()


def test_whoever_ended_or_holds_open_a_transaction_has_its_id(found: Found, orders: PartitionLog, coordinator: Coordinator) -> None:
    transact(coordinator, orders, begun(coordinator, "app-1"))
    other = coordinator.add(begun(coordinator, "app-2"), "orders", 0, NOW)
    orders.append(batch(1, producer=other.producer_id, transactional=True), batch(1, producer=99, transactional=True), commit(99))
    assert found() == [(7, "app-1"), (99, None), (8, "app-2")]


def test_ids_without_a_coordinators_log_are_not_known(found: Found, orders: PartitionLog) -> None:
    orders.append(batch(1, producer=7, transactional=True), commit(7))
    assert found() == [(7, None)]


def test_an_id_that_is_written_later_is_found_later(found: Found, orders: PartitionLog, coordinator: Coordinator) -> None:
    orders.append(batch(1, producer=7, transactional=True), commit(7))
    assert found() == [(7, None)]
    begun(coordinator, "app-1")
    assert found() == [(7, "app-1")]


def test_a_producer_id_whose_epochs_are_used_up_keeps_its_owner(
    found: Found, orders: PartitionLog, entries: PartitionLog, coordinator: Coordinator
) -> None:
    state = replace(begun(coordinator, "app-1"), epoch=32_765)
    after = transact(coordinator, orders, state)
    assert (after.producer_id, after.previous_producer_id) == (8, 7)
    transact(coordinator, orders, after)
    entries.roll()
    coordinator.compact(NOW)  # its newest record alone still names both
    assert found() == [(7, "app-1"), (8, "app-1")]


def test_an_id_that_expired_had_its_producer_all_the_same(
    found: Found, orders: PartitionLog, entries: PartitionLog, coordinator: Coordinator
) -> None:
    state = transact(coordinator, orders, begun(coordinator, "app-1"))
    entries.append(Batch(records=(Record(transaction_record(state).key, None, NOW),)))
    transact(coordinator, orders, begun(coordinator, "app-1"))
    assert found() == [(7, "app-1"), (8, "app-1")]


def test_damage_hides_what_is_behind_it_alone(found: Found, orders: PartitionLog, entries: PartitionLog, coordinator: Coordinator) -> None:
    transact(coordinator, orders, begun(coordinator, "app-1"))
    at = entries.active.size
    transact(coordinator, orders, begun(coordinator, "app-2"))
    with entries.active.path("log").open("r+b") as file:
        file.seek(at + 16)  # the magic byte
        file.write(b"\x09")
    assert found() == [(7, "app-1"), (8, None)]


def test_an_agent_that_redacts_sends_a_hash_and_a_long_id_is_short(
    disk: LogDir, orders: PartitionLog, coordinator: Coordinator, tmp_path: Path
) -> None:
    long = "x" * 300
    transact(coordinator, orders, begun(coordinator, long))
    for redact, name in ((None, short_name(long)), (lambda name: redacted(name, CLUSTER_ID), redacted(short_name(long), CLUSTER_ID))):
        agent = Agent(disk.path, redact=redact)
        with agent.served() as address:
            made = rows({"agents": address, "relation": "transactions", "topics": "orders"})
        agent.close()
        assert [row["transactional_id"] for row in made] == [name]


def test_only_what_is_new_is_read_again(disk: LogDir, entries: PartitionLog, coordinator: Coordinator) -> None:
    begun(coordinator, "app-1")
    entries.roll()
    begun(coordinator, "app-2")
    log_dirs = [read_identity(disk.path)]
    first = pa.Table.from_batches(owners_in(log_dirs)).to_pylist()
    assert [(row["offset"], row["producer_id"], row["transactional_id"]) for row in first] == [(0, 7, "app-1"), (1, 8, "app-2")]
    begun(coordinator, "app-3")
    (more,) = owners_in(log_dirs, [ReadUpto(first[-1]["broker"], 0, first[-1]["offset"] + 1)])
    assert more["transactional_id"].to_pylist() == ["app-3"]


def test_a_stream_waits_a_moment_for_a_coordinators_log_that_is_behind(disk: LogDir, coordinator: Coordinator) -> None:
    begun(coordinator, "app-1")
    clock, log_dirs = Clock(), [read_identity(disk.path)]

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.slept) == 3:
            begun(coordinator, "app-2")

    names = ProducerNames(KnownProducers(), lambda known: owners_in(log_dirs, known), LATE_SECONDS, clock, sleep)
    assert names(pa.array([8, 7, None])).to_pylist() == ["app-2", "app-1", None]
    assert names(pa.array([99])).to_pylist() == [None]
    assert names(pa.array([99, 98])).to_pylist() == [None, None]  # it has waited once, and waits no more
    assert clock.now == pytest.approx(0.3 + LATE_SECONDS)


def test_a_stream_that_begins_again_finds_the_same_ids(
    disk: LogDir, orders: PartitionLog, coordinator: Coordinator, tmp_path: Path
) -> None:
    agent = Agent(disk.path)
    options = {"relation": "transactions", "topics": "orders"}
    state = transact(coordinator, orders, begun(coordinator, "app-1"))
    with agent.served() as address:
        first, at = everything(stream(address, **options))
        transact(coordinator, orders, state)
        transact(coordinator, orders, begun(coordinator, "app-2"))
        more, _ = everything(stream(address, **options), at)
    with agent.served() as address:  # at another address, so nothing of it is known any more
        again, _ = everything(stream(address, **options), at)
    agent.close()
    assert [row["transactional_id"] for row in first + more] == ["app-1", "app-1", "app-2"]
    assert again == more
