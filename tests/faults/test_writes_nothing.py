"""An agent without a cache writes no file: with a read-only root and without a volume it does all that it does."""

import sys
from pathlib import Path

import pytest

from tests.builders import batch, log_dir, partition
from tests.faults.consuming import Consumer, address
from tests.processes import segtail, until

AUDITED = (
    "import os; "
    "written = os.O_WRONLY | os.O_RDWR | os.O_CREAT; "
    "changes = ('os.mkdir', 'os.rename', 'os.remove', 'os.truncate', 'os.link', 'os.symlink', 'shutil.copyfile', 'sqlite3.connect'); "
    "sys.addaudithook(lambda event, told: os.write(2, f'WROTE {event} {told}\\n'.encode()) if event in changes or "
    "(event == 'open' and isinstance(told[2], int) and told[2] & written and told[0] != '/dev/null') else None)"
)
"""Says on standard error what a process opens for writing, or changes in a directory (PEP 578)."""


def audited() -> tuple[str, ...]:
    return (sys.executable, "-B", "-c", f"import sys; del sys.argv[0]; {AUDITED}; from streaming.terminal.cli.app import main; main()")


def written(stated: str) -> list[str]:
    return [line for line in stated.splitlines() if line.startswith("WROTE")]


@pytest.mark.parametrize("cached", [False, True])
def test_without_a_cache_an_agent_writes_nothing(tmp_path: Path, cached: bool) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    for _ in range(3):
        log.append(batch(3))
        log.roll()
    log.append(batch(2, producer=7, transactional=True))
    options = ("--cache", tmp_path / "cache") if cached else ()
    arguments = ("agent", "--log-dirs", disk.path, "--listen", "127.0.0.1:0", "--set", "scrub_rate=1GiB", *options)
    with segtail(*arguments, stated=tmp_path / "said", before=audited()) as agent:
        consumer = Consumer(until("it listens", lambda: address(agent)))
        for _ in range(3):
            log.append(batch(1))
            size = sum(segment.size for segment in log.segments)
            until("it is read", lambda size=size: consumer.bytes() == {("orders", 0): size}, saw=consumer.bytes)  # type: ignore[misc]
        consumer.close()
        agent.terminate()
        assert agent.wait() == 0
    assert bool(written(agent.stated)) is cached, written(agent.stated)
