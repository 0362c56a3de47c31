"""What an agent says of brokers and log dirs as a whole."""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.agent.host_status import CHECK_EVERY_MS
from streaming.broker.protocol.cluster_messages import Led
from streaming.broker.protocol.status_messages import LogDirStatus
from streaming.simulator.broker import Controller
from streaming.simulator.log import LogDir, compact
from streaming.simulator.segment_writer import uuid_text
from tests.agents import Agent, Reader
from tests.builders import CLUSTER_ID, NOW, batch, delete, log_dir, partition
from tests.formats.real_clusters import metadata_of


@pytest.fixture
def directory(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def agent(directory: LogDir, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(directory.path)
    yield made
    made.close()


def state_of(agent: Agent) -> LogDirStatus:
    agent.look()
    (found,) = agent.service.status().log_dirs
    return found


def test_a_log_dir_shows_its_space_and_what_lies_besides_segments(agent: Agent, directory: LogDir) -> None:
    log = partition(directory, "orders")
    log.append(batch(3))
    gone = partition(directory, "gone", topic_id=2)
    gone.append(batch(5))
    size = gone.active.size
    delete(directory, gone)
    directory.write_high_watermarks()
    os.utime(directory.path / "replication-offset-checkpoint", (NOW / 1000, NOW / 1000))
    found = state_of(agent)
    assert (found.broker, found.log_dir, found.up, found.checkpoint_ms) == (1, str(directory.path), True, NOW)
    assert 0 < found.free <= found.capacity
    assert found.delete >= size
    assert (found.stray, found.future) == (0, 0)


def test_logs_are_counted_before_anybody_reads_them(agent: Agent, directory: LogDir) -> None:
    """A job chooses the shards of its state by them before it has registered."""
    for topic in ("orders", "bills"):
        partition(directory, topic).append(batch(3))
    agent.look()
    assert agent.service.status().logs == 2


def test_what_logs_cost_is_known_as_soon_as_all_are_watched(agent: Agent, directory: LogDir) -> None:
    """A job that runs once may end before the next check."""
    for topic in ("orders", "bills"):
        partition(directory, topic).append(batch(3))
    assert state_of(agent).not_fsynced_bytes == -1
    Reader(agent).register()
    while agent.watcher.poll(set()):
        pass
    agent.host_status.refresh()
    (found,) = agent.service.status().log_dirs
    assert (found.recovery_logs, found.not_fsynced_bytes) == (2, found.recovery_bytes)
    assert found.recovery_bytes > 0


def test_a_log_dir_that_cannot_be_read_is_down_and_says_so_once(agent: Agent, directory: LogDir, caplog: pytest.LogCaptureFixture) -> None:
    assert state_of(agent).up
    away = directory.path.with_name("away")
    directory.path.rename(away)
    assert not state_of(agent).up
    assert (state_of(agent).free, state_of(agent).checkpoint_ms) == (-1, -1)
    assert len([record for record in caplog.records if record.message == "log dir cannot be read"]) == 1
    away.rename(directory.path)
    assert state_of(agent).up


def test_whether_its_broker_lists_a_log_dir_is_reported_where_it_is_known(tmp_path: Path) -> None:
    listed = LogDir(tmp_path / "d0", 1, CLUSTER_ID, _directory_id("wvdfdNGUAK_AhggWTP99NA"))
    lost = LogDir(tmp_path / "d1", 1, CLUSTER_ID, UUID(int=7))
    blind = LogDir(tmp_path / "d2", 2, CLUSTER_ID, UUID(int=8))
    metadata_of(listed, "kafka_3_9")
    agent = Agent(listed.path, lost.path, blind.path)
    agent.look()
    assert [each.registered for each in agent.service.status().log_dirs] == [True, False, None]
    agent.close()


def test_a_broker_shows_what_its_metadata_log_knows(tmp_path: Path) -> None:
    seeing = LogDir(tmp_path / "d0", 3, CLUSTER_ID, UUID(int=3))
    folder = metadata_of(seeing, "node_down")
    quorum = {"leaderId": 2, "leaderEpoch": 4, "votedId": -1, "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", "data_version": 1}
    (folder / "quorum-state").write_text(json.dumps(quorum))
    blind = LogDir(tmp_path / "d1", 4, CLUSTER_ID, UUID(int=4))
    agent = Agent(seeing.path, blind.path)
    agent.look()
    sees, sees_not = agent.service.status().broker_statuses
    assert (sees.broker, sees.readable, sees.controller) == (3, True, 2)
    assert {each.broker for each in sees.registered if each.fenced} == {3}
    assert sees.metadata_offset > 0
    assert {led.broker for led in sees.led} <= {1, 2}
    assert sum(led.partitions for led in sees.led) > 0
    assert sees.transaction_partitions == 4
    assert (sees_not.broker, sees_not.readable, sees_not.registered, sees_not.controller) == (4, False, [], -1)
    assert sees_not.metadata_offset == -1
    assert (sees_not.led, sees_not.transaction_partitions) == ([], None)
    agent.close()


def test_how_many_partitions_each_broker_leads_is_counted_over_all_topics(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    metadata_of(directory, "three_nodes")
    agent = Agent(directory.path)
    agent.look()
    (status,) = agent.service.status().broker_statuses
    assert status.led == [Led(1, 6), Led(2, 3)]
    agent.close()


def test_a_broker_starts_from_when_its_process_comes_up_and_what_is_left_to_read_counts_from_then(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    controller = Controller(directory, 1, UUID(int=5), [directory.directory_id], 9092, NOW)
    controller.create_topic("orders", UUID(int=1), (), [directory.directory_id], NOW)
    orders = partition(directory, "orders")
    orders.append(batch(3))
    directory.write_recovery_points()
    directory.write_high_watermarks()
    os.utime(directory.path / "replication-offset-checkpoint", (NOW / 1000, NOW / 1000))
    agent = Agent(directory.path)
    Reader(agent).register()

    def starts() -> tuple[bool, int]:
        agent.now += CHECK_EVERY_MS  # so its files are listed anew once in a while, and not at each look
        while agent.watcher.poll(set()):
            pass
        agent.host_status.refresh()
        left = agent.service.status().log_dirs[0].recovering_bytes
        (status,) = agent.service.status().broker_statuses
        (own,) = status.registered
        assert status.process is not None
        return status.process.has_not_registered(own.epoch), left

    assert starts() == (False, -1)
    orders.append(batch(5))
    assert starts() == (False, -1)
    directory.release()
    assert starts() == (False, -1)
    gone_ms = agent.now
    directory.hold()
    assert starts() == (True, orders.active.size)
    snapshot = orders.directory / f"{orders.log_end_offset:020}.snapshot"
    snapshot.touch()
    os.utime(snapshot, (gone_ms / 1000 + 1, gone_ms / 1000 + 1))
    assert starts() == (True, 0), "before it was first seen, and after it was last seen to be away"
    controller.register([directory.directory_id], agent.now)
    assert starts() == (False, -1)
    agent.close()


def test_where_there_is_no_topic_of_coordinators_that_is_known_as_long_as_metadata_can_be_read(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    Controller(directory, 1, UUID(int=5), [directory.directory_id], 9092, NOW)
    agent = Agent(directory.path)
    agent.look()
    assert agent.service.status().broker_statuses[0].transaction_partitions == 0
    shutil.rmtree(directory.path / "__cluster_metadata-0")
    agent.look()
    assert agent.service.status().broker_statuses[0].transaction_partitions is None
    agent.close()


def test_a_log_dir_hosts_replicas_where_the_metadata_assigns_one_to_it(tmp_path: Path) -> None:
    """A running broker writes its checkpoint where a replica is: what was left over, moves or is deleted is none."""
    full, empty = log_dir(tmp_path, "full"), log_dir(tmp_path, "empty")
    controller = Controller(full, 1, UUID(int=5), [full.directory_id, empty.directory_id], 9092, NOW)
    controller.create_topic("orders", UUID(int=1), (), [full.directory_id], NOW)
    partition(full, "orders")
    partition(empty, "orders")  # a copy that was left behind
    partition(empty, "gone", topic_id=2)  # its topic was deleted while the disk was away
    partition(empty, "moves", topic_id=3, name=f"moves-0.{0:032x}-future")
    agent = Agent(full.path, empty.path)
    agent.look()
    assert [each.hosts for each in agent.service.status().log_dirs] == [True, False]
    shutil.rmtree(full.path / "__cluster_metadata-0")
    agent.look()
    assert [each.hosts for each in agent.service.status().log_dirs] == [True, True], "without metadata every directory may be one"
    agent.close()


def test_a_replaced_disk_is_compared_with_the_registration_by_its_new_id(tmp_path: Path) -> None:
    home, disk = log_dir(tmp_path, "home"), log_dir(tmp_path, "disk")
    new = UUID(int=99)
    controller = Controller(home, 1, UUID(int=5), [home.directory_id, disk.directory_id], 9092, NOW)
    agent = Agent(home.path, disk.path)
    agent.look()
    assert [each.registered for each in agent.service.status().log_dirs] == [True, True]
    disk.release()
    shutil.rmtree(disk.path)
    LogDir(disk.path, 1, CLUSTER_ID, new)
    agent.look()
    assert [each.registered for each in agent.service.status().log_dirs] == [True, False]
    controller.register([home.directory_id, new], NOW)
    agent.look()
    assert [each.registered for each in agent.service.status().log_dirs] == [True, True]
    assert set(agent.service.status().directories) == {f"1:{uuid_text(each)}" for each in (home.directory_id, new)}
    agent.close()


def test_how_the_metadata_log_grows_is_reported_while_an_idle_controller_writes(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    controller = Controller(directory, 1, UUID(int=5), [directory.directory_id], 9092, NOW)
    agent = Agent(directory.path)
    agent.look()
    (status,) = agent.service.status().broker_statuses
    assert (status.appended_ms, len(status.log_dirs), status.expected, status.snapshot) == (-1, 1, True, True)
    assert [(each.broker, each.phase) for each in status.registered] == [(1, "running")]
    controller.heartbeat(NOW + 500)
    controller.heartbeat(NOW + 1000)
    os.utime(directory.path / "__cluster_metadata-0" / f"{0:020}.log", (NOW / 1000 + 1, NOW / 1000 + 1))
    agent.look()
    assert agent.service.status().broker_statuses[0].appended_ms == NOW + 1000
    agent.close()


def test_a_broker_that_was_shut_down_cleanly_leaves_a_word_until_its_next_start(agent: Agent, directory: LogDir) -> None:
    agent.look()
    assert not agent.service.status().broker_statuses[0].clean
    (directory.path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    agent.look()
    assert agent.service.status().broker_statuses[0].clean


def test_whether_a_broker_has_replicas_is_reported(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    controller = Controller(directory, 1, UUID(int=5), [directory.directory_id], 9092, NOW)
    agent = Agent(directory.path)
    agent.look()
    assert [each.replicas for each in agent.service.status().broker_statuses[0].registered] == [False]
    controller.create_topic("orders", UUID(int=1), (), [directory.directory_id], NOW)
    agent.look()
    assert [each.replicas for each in agent.service.status().broker_statuses[0].registered] == [True]
    agent.close()


def test_a_broker_of_before_kraft_has_no_metadata_to_be_read(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    (directory.path / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER_ID}\n")
    agent = Agent(directory.path)
    agent.look()
    (status,) = agent.service.status().broker_statuses
    assert (status.readable, status.expected) == (False, False)
    agent.close()


def test_it_is_looked_at_now_and_then_and_not_whenever_somebody_asks(agent: Agent, directory: LogDir) -> None:
    before = state_of(agent)
    directory.write_high_watermarks()
    agent.host_status.refresh()
    assert agent.service.status().log_dirs == [before]
    agent.now += CHECK_EVERY_MS
    agent.host_status.refresh()
    assert agent.service.status().log_dirs != [before]


def test_before_the_first_look_nothing_is_stated(agent: Agent) -> None:
    status = agent.service.status()
    assert (status.log_dirs, status.broker_statuses) == ([], [])


def test_it_reaches_the_job(agent: Agent) -> None:
    Reader(agent).begin()
    status = agent.service.status()
    assert type(status).decode(status.encode()) == status


def _directory_id(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def test_what_lies_besides_segments_is_added_up_for_each_log_dir_by_itself(tmp_path: Path) -> None:
    one, two = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    for disk, topic in ((one, "a"), (two, "b"), (two, "c")):
        log = partition(disk, topic, index_interval_bytes=0)
        log.append(batch(3), batch(3))
        log.roll()
        log.append(batch())
        compact(log, 0, keep={0})  # leaves what it has replaced
    agent = Agent(one.path, two.path)
    Reader(agent, start_from="active").begin()
    agent.now += CHECK_EVERY_MS
    agent.look()
    status = agent.service.status()
    single, double = status.log_dirs
    assert single.deleted > 0
    assert single.index > 0
    assert (double.deleted, double.index) == (2 * single.deleted, 2 * single.index)
    assert single.deleted != single.index
    assert status.logs == 3
    agent.close()


def test_a_clock_that_is_set_back_does_not_stop_the_looks(agent: Agent, directory: LogDir) -> None:
    before = state_of(agent)
    directory.write_high_watermarks()
    agent.now -= 10 * CHECK_EVERY_MS
    agent.host_status.refresh()
    assert agent.service.status().log_dirs != [before]


def test_what_a_start_after_a_crash_reads_follows_the_log_and_is_nothing_after_a_clean_shutdown(agent: Agent, directory: LogDir) -> None:
    log = partition(directory, "orders")
    log.append(batch(3))
    log.roll()
    log.append(batch(3))
    directory.write_recovery_points()
    Reader(agent).register()
    found = state_of(agent)
    size = log.active.size
    assert (found.recovery_logs, found.recovery_bytes, found.not_fsynced_bytes) == (1, size, size)
    log.append(batch(5))
    found = state_of(agent)
    assert (found.recovery_bytes, found.not_fsynced_bytes) == (log.active.size, log.active.size)
    directory.write_recovery_points(clean=True)
    agent.now += CHECK_EVERY_MS
    found = state_of(agent)
    assert (found.recovery_bytes, found.not_fsynced_bytes) == (log.active.size, 0)
    before = log.active.size
    log.append(batch(2))
    agent.now += CHECK_EVERY_MS
    found = state_of(agent)
    assert (found.recovery_bytes, found.not_fsynced_bytes) == (log.active.size, log.active.size - before)
    (directory.path / ".kafka_cleanshutdown").touch()
    found = state_of(agent)
    assert (found.recovery_logs, found.recovery_bytes) == (0, 0)


def test_a_checkpoint_that_is_not_understood_leaves_what_a_start_reads_unknown(agent: Agent, directory: LogDir) -> None:
    partition(directory, "orders").append(batch(3))
    (directory.path / "recovery-point-offset-checkpoint").write_text("7\n0\n")
    Reader(agent).register()
    found = state_of(agent)
    assert (found.recovery_logs, found.recovery_bytes, found.not_fsynced_bytes) == (-1, -1, -1)


def test_logs_of_live_topics_that_a_broker_has_set_aside_or_will_are_named(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    controller = Controller(disk, 1, UUID(int=5), [disk.directory_id], 9092, NOW)
    controller.create_topic("orders", UUID(int=8), (), [disk.directory_id] * 2, NOW)
    partition(disk, "orders", topic_id=8).append(batch(1))
    aside = partition(disk, "orders", topic_id=None, name=f"orders-0.{1:032x}-stray")
    aside.append(batch(3), batch(2))
    unnamed = partition(disk, "orders", 1, topic_id=8)
    unnamed.append(batch(4))
    made = Agent(disk.path)
    Reader(made).register()
    made.now += CHECK_EVERY_MS
    assert (state_of(made).stray_only, state_of(made).unnamed) == (1, 0)
    (unnamed.directory / "partition.metadata").unlink()  # while the agent knows its topic id
    made.now += 60_000
    found = state_of(made)
    assert (found.stray_only, found.unnamed, found.set_aside) == (1, 1, [aside.directory.name, "orders-1"])
    (unnamed.directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_text(UUID(int=8))}\n")
    shutil.rmtree(aside.directory)
    made.now += 60_000
    made.look()
    found = state_of(made)
    assert (found.stray_only, found.unnamed, found.set_aside) == (0, 0, [])
    made.close()
