"""A plugin of pytest that says at the end what a run cost: CPU seconds by room, and how many JVMs it started.

A broker is seen as a test starts it; Spark's JVM, which a job may start in a process of its own, by the script that Spark runs before it.
"""

import os
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

_COSTS = pytest.StashKey[Counter[str]]()
_STARTS = pytest.StashKey[Path]()
_SHOWN = 20
_SPARK, _BROKERS = "Spark", "Kafka"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COSTS] = Counter()
    if hasattr(config, "workerinput"):  # it has the directory from its controller
        directory = Path(config.workerinput["starts"])
    else:
        held = tempfile.TemporaryDirectory(prefix="segtail-starts-")
        config.add_cleanup(held.cleanup)
        directory = Path(held.name)
        # unset: else it is on the JVM's class path, which no archive of classes fits then
        (directory / "spark-env.sh").write_text(f"echo \"{_SPARK} $PYTEST_CURRENT_TEST\" >> '{directory}/starts'\nunset SPARK_CONF_DIR\n")
    config.stash[_STARTS] = directory
    os.environ["SPARK_CONF_DIR"] = str(directory)
    sys.addaudithook(lambda event, arguments: _note_broker(directory, event, arguments))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["starts"] = str(node.config.stash[_STARTS])


def _note_broker(directory: Path, event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and "kafka.Kafka" in map(str, arguments[1]) and directory.exists():
        with (directory / "starts").open("a") as starts:
            starts.write(f"{_BROKERS} {os.environ.get('PYTEST_CURRENT_TEST', '')}\n")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = _cpu_seconds()
    done = yield
    item.config.stash[_COSTS][room(item.nodeid)] += _cpu_seconds() - before
    return done


def room(nodeid: str) -> str:
    """The folder of a test below tests/, or its file where it lies at the top."""
    return nodeid.partition("::")[0].removeprefix("tests/").partition("/")[0]


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # in a process of pytest-xdist, whose controller prints
        session.config.workeroutput["costs"] = dict(session.config.stash[_COSTS])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_COSTS].update(getattr(node, "workeroutput", {}).get("costs", {}))


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    costs = terminalreporter.config.stash[_COSTS]
    if terminalreporter.config.getoption("durations") and costs:
        starts = terminalreporter.config.stash[_STARTS] / "starts"
        lines = starts.read_text(encoding="utf-8").splitlines() if starts.exists() else []
        counted = Counter((name, test.partition("::")[0].rpartition("/")[2]) for name, _, test in (line.partition(" ") for line in lines))
        terminalreporter.section("CPU seconds by room")
        terminalreporter.write(summary(costs, counted) + "\n")


def summary(costs: Counter[str], starts: Counter[tuple[str, str]]) -> str:
    """One line for the rooms, the dearest first, and one for each kind of JVM with the files whose tests start it."""
    rooms = [f"{name} {seconds:.1f}" for name, seconds in costs.most_common(_SHOWN)]
    rest = sum(costs.values()) - sum(seconds for _, seconds in costs.most_common(_SHOWN))
    lines = [f"{sum(costs.values()):.1f} in all: {', '.join(rooms)}; {rest:.1f} in others"]
    for jvm in (_SPARK, _BROKERS):
        files = Counter({file: count for (name, file), count in starts.items() if name == jvm})
        lines.append(f"JVMs started, {jvm}: {files.total()}: " + ", ".join(f"{file} {count}" for file, count in files.most_common()))
    return "\n".join(lines)
