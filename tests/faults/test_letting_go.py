"""An agent that lets go of the volume of a broker that has ended, and the one that takes its place."""

import re
from pathlib import Path

import pytest

from streaming.broker.protocol.status_messages import Status
from streaming.rules.broker_process import ProcessState
from tests.builders import batch, log_dir, partition
from tests.disk.machine import holder
from tests.faults.consuming import Consumer, address
from tests.processes import Segtail, segtail, until


def _read(agent: Segtail, size: int) -> None:
    consumer = Consumer(until("it listens", lambda: address(agent)))
    until("each byte is there, once", lambda: consumer.bytes() == {("orders", 0): size}, saw=consumer.bytes)
    until("it has seen its broker", lambda: _sees_the_broker(consumer.status()))
    consumer.close()


def _sees_the_broker(status: Status | None) -> bool:
    return status is not None and any(each.process is not None and each.process.state == ProcessState.UP for each in status.broker_statuses)


def _started(address: str) -> int:
    """When the agent's process began, Unix milliseconds: a job tells by it that it was started again."""
    consumer = Consumer(address)
    status = until("it answers", consumer.status)
    consumer.close()
    return status.started_ms


def _unknown_process(agent: Segtail) -> str:
    """What it logs of a process of which it is not known whether it has ended; once for each reason."""
    lines = [line for line in agent.stated.splitlines() if "it is not known whether the process of this broker has ended" in line]
    assert len(lines) <= 1, lines
    return "".join(lines)


@pytest.mark.slow
def test_it_ends_after_its_broker_and_its_successor_goes_on_where_it_was(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    log.append(batch(3))
    disk.release()  # the simulator holds it; here it is another process that can be killed
    arguments = ("agent", "--log-dirs", disk.path, "--listen", "127.0.0.1:0", "--let-go-after", "1s")
    with segtail(*arguments, stated=tmp_path / "first") as agent, holder(disk.path / ".lock") as broker:
        _read(agent, log.active.size)
        broker.kill()
        broker.wait()
        assert agent.wait() == 0
        assert "no broker has had these log dirs for so long" in agent.stated
        assert "level=warning" not in agent.stated.partition("no broker has had")[2], agent.stated
    log.append(batch(2))  # by the broker on its new node, before the next agent is there
    with segtail(*arguments, stated=tmp_path / "second") as agent, holder(disk.path / ".lock"):
        _read(agent, log.active.size)
        assert agent.running()


@pytest.mark.slow
def test_a_lock_that_cannot_be_asked_is_named_and_does_not_keep_it(tmp_path: Path) -> None:
    disk, other = log_dir(tmp_path), log_dir(tmp_path, "other")
    log = partition(disk, "orders")
    log.append(batch(3))
    disk.release()
    other.release()
    (other.path / ".lock").unlink()
    (other.path / ".lock").symlink_to("elsewhere")
    dirs = f"{disk.path},{other.path}"
    arguments = ("agent", "--log-dirs", dirs, "--listen", "127.0.0.1:0", "--let-go-after", "60s")
    with segtail(*arguments, stated=tmp_path / "stated") as agent, holder(disk.path / ".lock") as broker:
        _read(agent, log.active.size)
        broker.kill()
        broker.wait()
        line = until("the reason is logged", lambda: _unknown_process(agent))
        assert f"{other.path}/.lock cannot be asked" in line
        (seconds,) = re.findall(r" seconds=(\d+)", line)
        assert int(seconds) <= 60, "ten times as long where no lock was seen to be released"
