"""More logs than descriptors: as many are read as may be, the others are named as unreadable, and read once there are descriptors."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.broker.disk.opening import RESERVED, check_may_stay
from streaming.simulator.log import LogDir
from tests.builders import batch, partition
from tests.tables import each_row

LOGS, LIMIT = 150, 100

_SCRIPT = """
import resource, sys
from pathlib import Path
from streaming.simulator.batch_writer import encode
from tests.watcher.station import Station
from tests.builders import batch
station = Station(Path(sys.argv[1]))
station.begin("earliest")


def look():
    station.look()
    refused = [tail.error for tail in station.watcher.tails() if "raise LimitNOFILE (ulimit -Hn), which is {limit}, above" in tail.error]
    print(sum(fold.records for fold in station.folds["first"].logs.values()), len(station.watcher.unreadable()), len(refused))


def append(offset):
    for segment in Path(sys.argv[1]).glob("*/*.log"):
        with segment.open("ab") as file:
            file.write(encode(batch(1), offset))


hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, hard))
look()
append(1)
look()
free = [open("/dev/null") for _ in range(20)]
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
look()
"""


def test_logs_beyond_the_descriptors_are_named_and_read_later(disk: LogDir, tmp_path: Path) -> None:
    for number in range(LOGS):
        log = partition(disk, f"t{number}", topic_id=number + 1)
        log.append(batch(1))
        log.close()
    disk.release()
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(limit=LIMIT), disk.path, tmp_path / "journal"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    before, after, later = (tuple(map(int, line.split())) for line in done.stdout.splitlines())
    read = before[0]
    assert LIMIT // 2 - 30 < read <= LIMIT // 2  # what else is open has some
    assert (before, after) == ((read, LOGS - read, LOGS - read), (2 * read, LOGS - read, LOGS - read))
    assert later == (2 * LOGS, 0, 0)


@each_row(("limit", "first_refused"), [(10_000, 10_000 - RESERVED), (100, 50)])
def test_descriptors_are_left_for_all_but_logs(limit: int, first_refused: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resource, "getrlimit", lambda _: (limit, limit))
        check_may_stay(first_refused - 1, "/log")
        with pytest.raises(OSError, match="above the number of logs"):
            check_may_stay(first_refused, "/log")
