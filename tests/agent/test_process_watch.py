"""What an agent makes of the locks of all its log dirs."""

import errno
import shutil
from dataclasses import replace
from pathlib import Path

from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus, ProcessStatus
from streaming.rules.broker_process import QUIET_MS, DirLock, LockState, ProcessState
from tests.builders import log_dir

LOCKED, FREE = DirLock(LockState.LOCKED, (1, 1)), DirLock(LockState.FREE, (1, 1))
NOW = 1_700_000_000_000


class Watched:
    """Two log dirs of one broker, whose locks are what a test says."""

    def __init__(self, root: Path) -> None:
        self.paths = [log_dir(root, name).path for name in ("d0", "d1")]
        self.now = NOW
        self.written = dict.fromkeys(self.paths, NOW - 2 * QUIET_MS)
        self.locks: dict[Path, list[DirLock]] = {path: [LOCKED] for path in self.paths}
        self.asked = 0
        self.short = False
        self.dirs = open_log_dirs(self.paths)
        self.watch = ProcessWatch(self.dirs, lambda: self.now, ask=self.ask, wrote_ms=self.written.__getitem__)

    def ask(self, path: Path) -> DirLock:
        self.asked += 1
        if self.short:
            raise OSError(errno.EMFILE, "Too many open files")
        answers = self.locks[path]
        return answers.pop(0) if answers[1:] else answers[0]

    def look(self) -> ProcessStatus:
        self.watch.refresh()
        self.now += 5_000
        found = self.watch.status_of(1)
        assert found is not None
        return found

    @property
    def states(self) -> list[LockState]:
        return [self.watch.lock_of(each) for each in self.dirs]


def test_before_the_first_look_nothing_is_known(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    assert watched.watch.status_of(1) is None
    assert watched.states == [LockState.UNKNOWN] * 2


def test_the_lock_beside_the_metadata_log_is_enough_where_another_one_may_not_be_asked(tmp_path: Path) -> None:
    watched, refused = Watched(tmp_path), DirLock(LockState.UNKNOWN, why="/d1/.lock may not be read")
    watched.locks = {watched.paths[0]: [FREE], watched.paths[1]: [refused]}
    assert (watched.look().state, watched.look().keeps_metadata) == (ProcessState.UNKNOWN, False)
    watched.locks[watched.paths[0]] = [replace(FREE, keeps_metadata=True)]
    assert (watched.look().state, watched.look().keeps_metadata) == (ProcessState.FREE, True)


def test_a_broker_that_ends_while_it_is_asked_has_not_given_up_a_log_dir(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.look()
    watched.locks = {watched.paths[0]: [LOCKED, FREE], watched.paths[1]: [FREE]}
    assert watched.look().state == ProcessState.ENDED
    assert watched.states == [LockState.FREE] * 2


def test_one_that_it_gave_up_is_free_beside_one_that_it_holds(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.locks[watched.paths[1]] = [FREE]
    found = watched.look()
    assert (found.state, found.free) == (ProcessState.UP, [watched.dirs[1].directory_id])
    assert watched.states == [LockState.LOCKED, LockState.FREE]


def test_without_a_descriptor_everything_is_as_it_was(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    before = watched.look()
    watched.short = True
    watched.locks = {path: [FREE] for path in watched.paths}
    assert watched.look() == before
    assert watched.states == [LockState.LOCKED] * 2


def test_the_registration_of_the_process_before_is_remembered(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    status = BrokerStatus(broker=1, readable=True, metadata_offset=5, registered=[], controller=1, led=[], transaction_partitions=0)

    def before(epoch: int) -> int:
        watched.now += 5_000
        (found,) = watched.watch.look([replace(status, registered=[Registered(2, False, epoch=99), Registered(1, False, epoch=epoch)])])
        assert found.process is not None
        return found.process.before

    assert before(7) == -1, "it was there at the first look, so this may be its own"
    for path in watched.paths:
        watched.locks[path] = [FREE]
    assert before(7) == 7
    assert before(7) == 7
    for path in watched.paths:
        watched.locks[path] = [LOCKED]
    assert before(7) == 7
    assert before(8) == 7
    watched.dirs.bar(watched.paths[0], "/d0/.lock does not answer")
    watched.dirs.bar(watched.paths[1], "/d1/.lock does not answer")
    assert before(9) == 7, "nobody knows whether that is its own"


def test_a_log_dir_that_cannot_be_used_is_not_asked_and_not_known(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.look()
    watched.locks = {path: [FREE] for path in watched.paths}
    watched.dirs.bar(watched.paths[1], "/d1/.lock does not answer")
    asked = watched.asked
    found = watched.look()
    assert (found.state, found.why) == (ProcessState.UNKNOWN, '"/d1/.lock does not answer"')
    assert watched.asked == asked + 1
    watched.dirs.unbar(watched.paths[1])
    shutil.rmtree(watched.paths[1])
    watched.dirs.check()
    assert "does not exist" in watched.look().why
