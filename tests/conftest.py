"""What all tests share: how thorough property tests are, which tests share a process, a log with its agent, and the Java they use."""

import logging
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from streaming.common import java
from streaming.errors import JavaError
from tests.tools import missing

if TYPE_CHECKING:  # most tests need no Spark, which takes a second to import; and what a plugin imports before its turn is not rewritten
    from pyspark.sql import SparkSession

    from streaming.broker.disk.broker_processes import RunningBrokers
    from streaming.simulator.log import PartitionLog
    from tests.agents import Agent
    from tests.certificates import Authority

pytest_plugins = (
    "tests.check.costs",
    "tests.check.leftovers",
    "tests.check.machine",
    "tests.check.workers",
    "tests.jvm_archive",
    "tests.witnesses",
)

os.environ.pop("COLUMNS", None)  # pytest-xdist gives its processes one; what they run has no terminal

# No deadline: a test that can fail because the machine is busy tells nothing.
for profile, examples in (("quick", 20), ("whole", 60)):
    settings.register_profile(
        profile, max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.register_profile("exhaustive", max_examples=5_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
if settings.default.derandomize:
    # Hypothesis also draws numbers and words that the loaded modules of this checkout hold: which these are depends on the tests before
    # (tests/test_same_examples.py). As long as nobody collects them there are none.
    providers._get_local_constants = lambda: providers._local_constants

_JVM_MARKS = ("broker", "first", "spark")
_OF_THE_SESSION = ("spark", "kafka", "kafka_cluster", "kafka_that_deletes", "kafka_with_quorum")
_LONG_MARKS = ("image", "slow")
_ROOT = Path(__file__).parent
_LONGEST = (
    "operations/test_day",
    "broker/test_kills",
    "broker/test_transactions",
    "broker/test_public_streams",
    "cluster/test_cluster",
    "broker/test_groups_replicated",
    "broker/test_monitoring",
    "faults/test_kill",
)
"""Modules that begin first, where several processes run them: they would be a tail of minutes alone if they did not."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives each test that starts a JVM one group, its module's; in several processes the long ones begin.

    pytest-xdist joins several groups of a test to another one, so that nobody else would be in it: a test has one, or none.
    """
    for item in items:
        if item.get_closest_marker("broker"):
            item.add_marker("live")
        if any(map(item.get_closest_marker, _JVM_MARKS)) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_group(item)))
    if hasattr(config, "workerinput"):
        items.sort(key=_rank)


def _rank(item: pytest.Item) -> list[int]:
    """Smaller is earlier."""
    module = _module(item)
    longest = _LONGEST.index(module) if module in _LONGEST else len(_LONGEST)
    return [longest, *(not any(map(item.get_closest_marker, marks)) for marks in (_JVM_MARKS, _LONG_MARKS))]


def _module(item: pytest.Item) -> str:
    return item.path.relative_to(_ROOT).with_suffix("").as_posix()


def _group(item: pytest.Item) -> str:
    """Its module, whose tests share what they start; those that share the session's Spark or one of its brokers are one group."""
    return next((name for name in _OF_THE_SESSION if name in getattr(item, "fixturenames", ())), _module(item))


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A command that runs inside this process configures its logging; the next test counts records at the level that it expects."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers = handlers
    root.setLevel(level)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Whoever runs the tests may run a broker, too: it is nobody's in a test that starts none, nor in what its module makes once."""
    with pytest.MonkeyPatch.context() as patch:
        if not item.get_closest_marker("live"):
            patch.setattr("streaming.broker.agent.topic_configs.RunningBrokers", _no_brokers)
        return (yield)


def _no_brokers(given: "Callable[[int], bool]") -> "RunningBrokers":
    from streaming.broker.disk.broker_processes import RunningBrokers

    return RunningBrokers(Path("/nowhere"), given=given)


@pytest.fixture
def log(tmp_path: Path) -> "PartitionLog":
    """Three records, alone in a log dir. A module that wants another log has one of its own."""
    from tests.builders import batch, log_dir, partition

    made = partition(log_dir(tmp_path), "orders")
    made.append(batch(3))
    return made


@pytest.fixture
def agent(log: "PartitionLog", tmp_path: Path) -> Iterator["Agent"]:
    """An agent beside the log, inside this process."""
    from tests.agents import Agent

    made = Agent(log.directory.parent)
    yield made
    made.close()


@pytest.fixture
def authority(tmp_path: Path) -> "Authority":
    """Who signs the certificates of a test."""
    from tests.certificates import Authority

    return Authority(tmp_path / "tls")


@pytest.fixture(scope="session")
def java_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Java home that segtail itself would choose, set as ``JAVA_HOME`` for what the tests start."""
    try:
        home = java.find(os.environ, tmp_path_factory.mktemp("java"))
    except JavaError as error:
        missing(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def spark(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """The Spark that a job would start, with a small heap, and the data source in it."""
    from streaming.spark.job.spark import Spark
    from streaming.spark.source.job_data_source import JobDataSource
    from tests.job_environment import PATIENT

    directory = tmp_path_factory.mktemp("spark")
    with (directory / "lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        # an install has it beside streaming: PySpark finds the format by it
        patch.setenv("PYTHONPATH", os.pathsep.join([str(_ROOT.parent / "streaming/spark/lookup"), os.environ.get("PYTHONPATH", "")]))
        made = Spark(
            master="local[2]",
            options={"spark.driver.memory": "512m", **PATIENT},
            java_home=java_home,
            directory=directory,
            debug=False,
            lock_fd=lock.fileno(),
            data_source=JobDataSource,
        )
        try:
            made.connect()
            yield made.session
        finally:
            made.stop()
