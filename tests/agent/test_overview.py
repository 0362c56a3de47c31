"""What an agent says of brokers and log dirs as a whole."""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from streaming.agent.messages import Led, LogDirStatus
from streaming.agent.overview import LOOK_EVERY_MS
from streaming.simulator.controller import Controller
from streaming.simulator.log_dir import LogDir
from tests.agent.test_cluster import metadata_of
from tests.agents import Agent, Reader
from tests.builders import CLUSTER_ID, NOW, batch, delete, log_dir, partition


@pytest.fixture
def directory(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def agent(directory: LogDir, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(directory.path, journal=tmp_path / "journal")
    yield made
    made.close()


def state_of(agent: Agent) -> LogDirStatus:
    agent.look()
    (found,) = agent.service.status().log_dirs
    return found


def test_a_log_dir_tells_its_space_and_what_lies_besides_segments(agent: Agent, directory: LogDir) -> None:
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


def test_a_log_dir_that_cannot_be_read_is_down_and_says_so_once(agent: Agent, directory: LogDir, caplog: pytest.LogCaptureFixture) -> None:
    assert state_of(agent).up
    away = directory.path.with_name("away")
    directory.path.rename(away)
    assert not state_of(agent).up
    assert (state_of(agent).free, state_of(agent).checkpoint_ms) == (-1, -1)
    assert len([record for record in caplog.records if record.message == "log dir cannot be read"]) == 1
    away.rename(directory.path)
    assert state_of(agent).up


def test_whether_its_broker_lists_a_log_dir_is_told_where_it_is_known(tmp_path: Path) -> None:
    listed = LogDir(tmp_path / "d0", 1, CLUSTER_ID, _directory_id("wvdfdNGUAK_AhggWTP99NA"))
    lost = LogDir(tmp_path / "d1", 1, CLUSTER_ID, UUID(int=7))
    blind = LogDir(tmp_path / "d2", 2, CLUSTER_ID, UUID(int=8))
    metadata_of(listed, "kafka_3_9")
    agent = Agent(listed.path, lost.path, blind.path, journal=tmp_path / "journal")
    agent.look()
    assert [each.registered for each in agent.service.status().log_dirs] == [True, False, None]
    agent.close()


def test_a_broker_tells_what_its_metadata_log_knows(tmp_path: Path) -> None:
    seeing = LogDir(tmp_path / "d0", 3, CLUSTER_ID, UUID(int=3))
    folder = metadata_of(seeing, "node_down")
    quorum = {"leaderId": 2, "leaderEpoch": 4, "votedId": -1, "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", "data_version": 1}
    (folder / "quorum-state").write_text(json.dumps(quorum))
    blind = LogDir(tmp_path / "d1", 4, CLUSTER_ID, UUID(int=4))
    agent = Agent(seeing.path, blind.path, journal=tmp_path / "journal")
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
    agent = Agent(directory.path, journal=tmp_path / "journal")
    agent.look()
    (status,) = agent.service.status().broker_statuses
    assert status.led == [Led(1, 6), Led(2, 3)]
    agent.close()


def test_where_there_is_no_topic_of_coordinators_that_is_known_as_long_as_metadata_can_be_read(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    Controller(directory, 1, UUID(int=5), [directory.directory_id], 9092, NOW)
    agent = Agent(directory.path, journal=tmp_path / "journal")
    agent.look()
    assert agent.service.status().broker_statuses[0].transaction_partitions == 0
    shutil.rmtree(directory.path / "__cluster_metadata-0")
    agent.look()
    assert agent.service.status().broker_statuses[0].transaction_partitions is None
    agent.close()


def test_it_is_looked_at_now_and_then_and_not_whenever_somebody_asks(agent: Agent, directory: LogDir) -> None:
    before = state_of(agent)
    directory.write_high_watermarks()
    agent.overview.refresh()
    assert agent.service.status().log_dirs == [before]
    agent.now += LOOK_EVERY_MS
    agent.overview.refresh()
    assert agent.service.status().log_dirs != [before]


def test_before_the_first_look_nothing_is_said(agent: Agent) -> None:
    status = agent.service.status()
    assert (status.log_dirs, status.broker_statuses) == ([], [])


def test_it_reaches_the_job(agent: Agent) -> None:
    Reader(agent).begin()
    status = agent.service.status()
    assert type(status).decode(status.encode()) == status


def _directory_id(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
