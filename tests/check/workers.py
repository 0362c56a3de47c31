"""A plugin of pytest for what pytest-xdist does not do: it goes on where a process has died, and names tests as pytest does.

Tests of a process that has died are begun by others, and the run ends.

As released (3.8.0), a process that is put in the place of a dead one waits for work that nobody sends, for ever: it gets what the dead one
had already done, or a single test, which it begins only when it knows of a next one (pytest-xdist, issues 1323, 1327 and 1378).
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class Scheduling(LoadGroupScheduling):
    """A group of tests stays in one process, as with ``--dist loadgroup``; a test that its process died in has failed, once.

    ``remove_node`` gives others what a dead process has left, and nothing that it had done; ``schedule`` also serves one that came later.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        left = {test: group for group, tests in self.assigned_work.pop(node).items() for test, done in tests.items() if not done}
        if not left:
            return None
        crashed, *others = left
        for test in others:
            self.workqueue.setdefault(left[test], {})[test] = False
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def schedule(self) -> None:
        begun = self.collection is not None
        super().schedule()
        if begun:  # a process that came later: its second group, or the word that there is none
            for node in self.nodes:
                self._reschedule(node)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Without the group that pytest-xdist writes behind a name: else `--lf` knows none of those that failed."""
    if hasattr(report, "node"):  # in the controller
        report.nodeid = name_of(report.nodeid)


def name_of(nodeid: str) -> str:
    """The name of a test as pytest takes it."""
    mark = "]" if nodeid.rpartition("::")[2].count("]") else "::"
    head, mark, tail = nodeid.rpartition(mark)
    return head + mark + tail.partition("@")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return Scheduling(config, log) if config.getoption("dist") == "loadgroup" else None
