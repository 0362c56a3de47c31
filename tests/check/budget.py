"""A plugin of pytest that begins no test behind a given moment, and says which rooms that leaves out."""

import math
import time
from collections import Counter
from typing import Any

import pytest

from tests.check.costs import room

_BEGAN = pytest.StashKey[float]()
_LATE = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, default=math.inf, help="a Unix time: no test begins behind it")
    parser.addoption("--least", type=float, default=0.0, help="so many seconds tests begin in any case, however late the first one is")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LATE] = Counter()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    now, config = time.time(), item.config
    if now < max(config.getoption("until"), config.stash.setdefault(_BEGAN, now) + config.getoption("least")):
        return None
    config.stash[_LATE][room(item.nodeid)] += 1
    return True  # as if it had been run; a report of each that was not would take as long as short tests do


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # in a process of pytest-xdist, whose controller prints
        session.config.workeroutput["late"] = dict(session.config.stash[_LATE])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    late: Counter[str] = node.config.stash[_LATE]
    late.update(getattr(node, "workeroutput", {}).get("late", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    late = terminalreporter.config.stash[_LATE]
    if late:
        rooms = ", ".join(f"{room} {tests}" for room, tests in late.most_common())
        terminalreporter.section(f"{late.total()} tests not run, for there was no time left")
        terminalreporter.line(f"tests left out by room: {rooms}")
