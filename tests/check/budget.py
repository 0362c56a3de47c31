"""A plugin of pytest that begins no test behind a given moment, and says which files that leaves out."""

import time
from collections import Counter

import pytest

_REASON = "there was no time left"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, default=float("inf"), help="a Unix time: no test begins behind it")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > item.config.getoption("until"):
        pytest.skip(_REASON)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    late = Counter(report.nodeid.partition("::")[0] for report in skipped if str(report.longrepr[2]).endswith(_REASON))
    if late:
        terminalreporter.section("not run, for there was no time left")
        for path, tests in late.items():
            terminalreporter.line(f"{tests:5} tests of {path}")
