"""A plugin of pytest that runs what has failed again at the end, alone: only what fails twice makes a run red.

A test that fails beside others and passes alone tells of the machine more than of the code. It does not stop anybody, but it is not
swallowed either: its name, both outcomes and the first failure stand at the end, and a list of the last runs shows who comes back.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

MOST = 30
"""More failures than these are no accident: they are not run again."""

RUNS = 10
"""So many runs are remembered."""

PASSED_ALONE = "passed alone"
_WRITTEN = pytest.StashKey[dict[str, str]]()


@dataclass(frozen=True, slots=True)
class Second:
    """How a test ended that was run again: ``outcome`` is pytest's word for it, ``said`` all that the second run printed."""

    outcome: str
    stated: str


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--again", action="store_true", help="run what failed again at the end, alone; red is what fails twice")
    parser.addoption("--outcomes", type=Path, help="a file for the outcome of each test, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_WRITTEN] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    outcomes = item.config.stash[_WRITTEN]
    if report.when == "call" or report.outcome != "passed":
        outcomes[report.nodeid] = report.outcome if outcomes.get(report.nodeid) != "failed" else "failed"
    return report


@pytest.hookimpl(trylast=True)  # the processes of pytest-xdist have ended then, so that nothing runs beside it
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if path := config.getoption("--outcomes"):
        path.write_text(json.dumps(config.stash[_WRITTEN]), encoding="utf-8")
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not config.getoption("--again") or hasattr(config, "workerinput") or reporter is None:
        return
    if session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return  # it was interrupted, or could not begin
    failed = names(_failures(reporter))
    if 0 < len(failed) <= MOST:
        reporter.write_line("")
        reporter.write_line(f"{len(failed)} failed: run again, alone")
        with tempfile.TemporaryDirectory(prefix="segtail-again-") as scratch:
            second = run_again(failed, config.rootpath, Path(scratch))
        if all(second[name].outcome == "passed" for name in failed):
            session.exitstatus = pytest.ExitCode.OK
        _sort(reporter, second)
    passed = names(reporter.stats.get(PASSED_ALONE, ()))
    with warnings.catch_warnings():
        warnings.simplefilter("default", pytest.PytestCacheWarning)  # what cannot be remembered is said, and makes nothing red
        config.cache.set(_key(config), [*config.cache.get(_key(config), []), passed][-RUNS:])


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    reports = terminalreporter.stats.get(PASSED_ALONE, [])
    if not reports:
        return
    remembered = terminalreporter.config.cache.get(_key(terminalreporter.config), [])
    for report in reports:
        terminalreporter.section(f"failed beside others, passed alone: {name_of(report.nodeid)}", sep="_")
        terminalreporter.write_line(report.longreprtext)
    terminalreporter.section("failed beside others, passed alone")
    for name in names(reports):
        terminalreporter.write_line(listed(name, remembered))


def _key(config: pytest.Config) -> str:
    """Runs of one target are remembered together: those of another do not have its tests."""
    return f"segtail/again/{hashlib.sha256(config.getoption('-m').encode()).hexdigest()[:8]}"


def listed(name: str, remembered: Sequence[Sequence[str]]) -> str:
    """The line of a test that failed beside others and passed alone. ``remembered``: who did so in the last runs, this one among them."""
    times = sum(name in run for run in remembered)
    again = f"; {times} times in the last {len(remembered)} runs here: it has to be mended, or to go" if times > 1 else ""
    return f"{name}: failed, then passed{again}"


def name_of(nodeid: str) -> str:
    """The name of a test as pytest takes it, without the group that pytest-xdist writes behind it."""
    return nodeid[: nodeid.rfind("@")] if nodeid.rfind("@") > nodeid.rfind("]") and "::" in nodeid[: nodeid.rfind("@")] else nodeid


def names(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Each test of these reports once, in their order: one that fails in its call and in its end has two."""
    return list(dict.fromkeys(name_of(report.nodeid) for report in reports))


def run_again(tests: Sequence[str], root: Path, scratch: Path) -> Mapping[str, Second]:
    """Runs these tests in one process, and nothing beside it. One that does not end up with an outcome has failed."""
    written = scratch / "outcomes.json"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--outcomes={written}", "--quiet", *tests]
    done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    outcomes = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    stated = done.stdout.decode(errors="replace")
    return {test: Second(outcomes.get(test, "failed"), stated) for test in tests}


def _failures(reporter: TerminalReporter) -> list[pytest.TestReport]:
    return [*reporter.stats.get("failed", ()), *reporter.stats.get("error", ())]


def _sort(reporter: TerminalReporter, second: Mapping[str, Second]) -> None:
    """Takes who passed alone from the failures; the others keep both failures."""
    stated = set[str]()
    for kind in ("failed", "error"):
        for report in reporter.stats.pop(kind, []):
            again = second[name_of(report.nodeid)]
            if again.outcome == "passed":
                reporter.stats.setdefault(PASSED_ALONE, []).append(report)
                continue
            if again.stated not in stated:  # one run was for all of them
                report.sections.append(("run again, alone", again.stated))
                stated.add(again.stated)
            reporter.stats.setdefault(kind, []).append(report)
