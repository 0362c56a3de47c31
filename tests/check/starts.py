"""A plugin of pytest that sees which programs the tests of a module start, and holds that against the table in CONTRIBUTING.md.

JVMs are what the tests wait for: a module may start as many as the table gives it. Kafka, its tools and other programs are seen as this
process starts them; Spark's JVM, which a job starts, by the script that Spark runs before it. What no single test starts is no row: the
Spark that tests share, and the archives of classes that are made once a machine.
"""

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

ROOT = Path(__file__).parents[2]
HEADING = "### What the tests start"
SPARK, BROKERS, TOOLS = "Spark", "Kafka", "Kafka's tools"
COUNTED = (SPARK, BROKERS)
"""How often others run is no matter: they are quick, and some are asked until something is so."""

FAST, TEST, LIVE, CLUSTER = "make fast", "make test", "make test-live", "make cluster-check"
_FIRST = ((LIVE, ("live", "image")), (TEST, ("spark", "programs")))
"""Which marks leave a test to a target. `make fast` has those without any, which start nothing."""

OTHERS = (
    *("amtool", "ansible-playbook", "chromedriver", "dpkg-deb", "groff", "helm", "helm-docs", "helm-unittest", "kubeconform"),
    *("podman", "prometheus", "prometheus-alertmanager", "promtool", "rpm", "rpmbuild", "rpmlint", "tmux"),
)
"""Programs that not every machine has."""

_ANY = 1 << 30
_WRAPPED = 5
"""A program stands among so many words, where another one starts it: `python -S -c ...`."""

_ROW = re.compile(r"\| `(?P<module>[^`]+)` \| (?P<target>[^|]+) \| (?P<starts>[^|]*) \|")
_STARTED = re.compile(r"(?P<what>[^,]+?)(?: \((?P<times>\d+)\))?(?:, |$)")
_SEEN = pytest.StashKey["Seen"]()
_WRONG = pytest.StashKey[list[str]]()


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Tests of one module that one target runs."""

    module: str
    target: str


Starts = dict[Place, Counter[str]]
"""How often each program is started, by who does it."""


class Seen:
    """What the tests of this process have started so far."""

    def __init__(self, directory: Path) -> None:
        self.starts: Starts = {}
        self._targets: dict[str, str] = {}
        self._jvms = directory / "jvms"
        self._read = 0
        self._jvms.touch()
        note = f"printf '%s\\n' \"$PYTEST_CURRENT_TEST\" >> '{self._jvms}'\n"
        script = f"{note}unset SPARK_CONF_DIR\n"  # else it is on the JVM's class path, which no archive of classes fits then
        (directory / "spark-env.sh").write_text(script)  # what Spark's own scripts run before they start a JVM
        os.environ["SPARK_CONF_DIR"] = str(directory)
        sys.addaudithook(self._audit)

    def know(self, items: Sequence[pytest.Item]) -> None:
        """Which target is the first to run each of these tests."""
        for item in items:
            marked = next((of for of, marks in _FIRST if any(map(item.get_closest_marker, marks))), FAST)
            self._targets[item.nodeid] = marked if item.path.name.startswith("test_") else CLUSTER  # pytest finds it by its path alone

    def note_jvms(self) -> None:
        """Count the JVMs of Spark that were started since the last time."""
        lines = self._jvms.read_text(encoding="utf-8").splitlines()
        for line in lines[self._read :]:
            self._note(SPARK, line)
        self._read = len(lines)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and (what := started([os.fsdecode(word) for word in arguments[1]])):
            self._note(what, os.environ.get("PYTEST_CURRENT_TEST", ""))

    def _note(self, what: str, current: str) -> None:
        test = current.rpartition(" (")[0]
        if test in self._targets:
            self.starts.setdefault(Place(test.partition("::")[0], self._targets[test]), Counter())[what] += 1


def started(words: Sequence[str]) -> str:
    """What a command line starts that a machine may lack; "" for everything else, Spark included."""
    if "kafka.Kafka" in words:
        return BROKERS
    names = [Path(word).name for word in words[:_WRAPPED]]
    if names[:1] == ["make"]:  # what follows are targets, of which one may be called as a program
        return ""
    if "java" in names and any("kafka-clients" in word for word in words):
        return TOOLS
    return next((name for name in names if name in OTHERS), "")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--starts", type=Path, help="a file for the rows of the table of what the tests start; nothing is held against it then"
    )


def pytest_configure(config: pytest.Config) -> None:
    directory = tempfile.TemporaryDirectory(prefix="segtail-spark-conf-")
    config.add_cleanup(directory.cleanup)
    config.stash[_SEEN] = Seen(Path(directory.name))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[_SEEN].know(items)


def excess(found: Mapping[Place, Counter[str]], table: Mapping[Place, Counter[str]]) -> Iterator[str]:
    """A line for each program that is started more often than the table says."""
    for place, starts in found.items():
        for what, times in starts.items():
            most = table.get(place, Counter())[what]
            if times > most:
                yield f"{place.module} starts {what} ({times}) in {place.target}; CONTRIBUTING.md, {HEADING[4:]!r}, says {most}"


@cache
def allowed() -> Starts:
    """The table."""
    return read((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(HEADING)[2])


def read(text: str) -> Starts:
    """The rows of a table; other lines are passed over."""
    table: Starts = {}
    for row in _ROW.finditer(text):
        found = {match["what"]: int(match["times"] or 1) for match in _STARTED.finditer(row["starts"].strip())}
        most = {what: n if what in COUNTED else _ANY for what, n in found.items()}
        table[Place(row["module"], row["target"].strip())] = Counter(most)
    return table


def written(starts: Mapping[Place, Counter[str]]) -> str:
    """The rows of the table, what runs with each target together."""
    lines = []
    for place in sorted(starts, key=lambda place: (place.target, place.module)):
        jvms = [f"{what} ({starts[place][what]})" for what in COUNTED if starts[place][what]]
        others = sorted(what for what in starts[place] if what not in COUNTED)
        lines.append(f"| `{place.module}` | {place.target} | {', '.join([*jvms, *others])} |\n")
    return "".join(lines)


@pytest.hookimpl(trylast=True)  # when it is known what failed, so that this is red whatever else is
def pytest_sessionfinish(session: pytest.Session) -> None:
    seen = session.config.stash[_SEEN]
    seen.note_jvms()
    if hasattr(session.config, "workeroutput"):  # in a process of pytest-xdist, whose controller judges
        session.config.workeroutput["starts"] = [(place.module, place.target, dict(counted)) for place, counted in seen.starts.items()]
    elif not session.config.getoption("--starts"):
        session.config.stash[_WRONG] = list(excess(seen.starts, allowed()))
        if session.config.stash[_WRONG] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    if wrong := terminalreporter.config.stash.get(_WRONG, []):
        terminalreporter.section("tests start what CONTRIBUTING.md does not say")
        terminalreporter.write_line("\n".join(wrong))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    starts = node.config.stash[_SEEN].starts
    for module, target, counted in getattr(node, "workeroutput", {}).get("starts", []):
        starts.setdefault(Place(module, target), Counter()).update(counted)


def pytest_unconfigure(config: pytest.Config) -> None:
    if (path := config.getoption("--starts")) and not hasattr(config, "workerinput"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written(config.stash[_SEEN].starts), encoding="utf-8")
