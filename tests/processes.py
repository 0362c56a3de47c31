"""Runs `segtail` as a user would, kills parts of it, and sees what is left: shared by the tests that start it as a process."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple, TypeVar

from prometheus_client.parser import text_string_to_metric_families

from tests import job_environment, witnesses
from tests.limits import SECONDS
from tests.marked_processes import Process, marked

SEGTAIL = Path(sys.executable).with_name("segtail")
_POLL_SECONDS = 0.05
_LOOK_QUICKLY_SECONDS = 10
_SEEN_CHARACTERS = 3000
_TELLING = ("segtail_agent_up", "segtail_tail_lag", "segtail_query_", "segtail_skipped_bytes")
"""The series of a page that tell how a job and its agents are."""

MARK = "TEST_FAMILY"
"""All that a test's `segtail` starts inherits it. Segtail refuses variables with its own prefix that it does not know."""

_OTHER_BROKERS = "no server.properties of the brokers that run here is known to be of this one"

_Found = TypeVar("_Found")


class Sample(NamedTuple):
    """A series of a page."""

    name: str
    labels: frozenset[tuple[str, str]]


Page = dict[Sample, float]


class Counts(NamedTuple):
    """Of one partition. Control batches count among the bytes alone."""

    bytes: float
    data_batches: float
    data_records: float
    end_offset: float


def until(what: str, look: Callable[[], _Found | None], seconds: float = SECONDS, saw: Callable[[], object] | None = None) -> _Found:
    """Looks again and again until there is something true.

    When it does not come, the failure tells what was waited for, what was seen last (``saw`` where ``look`` itself tells nothing), and
    how those are that run beside the test.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() >= deadline:
            last = found if saw is None else saw()
            raise AssertionError(f"not within {seconds} s: {what}; seen last: {last!r:.{_SEEN_CHARACTERS}}{witnesses.waiting_by()}")
        time.sleep(_POLL_SECONDS)


def about_this_test(stated: str) -> list[str]:
    """What `segtail` said, line by line, but for the brokers of other tests, which it rightly names while they run on this machine."""
    return [line for line in stated.splitlines() if _OTHER_BROKERS not in line]


class Segtail:
    """A running `segtail`; everything it starts belongs to its family, whoever the parent is by now."""

    def __init__(
        self, arguments: Sequence[object], stated: Path, environ: dict[str, str] | None = None, before: Sequence[str] = ()
    ) -> None:
        self._family = f"{MARK}={uuid.uuid4()}"
        self._stated = stated
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SEGTAIL_")}
        name, _, value = self._family.partition("=")
        words = [*map(str, arguments)]
        with stated.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*before, str(SEGTAIL), *words],
                env=clean | job_environment.of_command(words) | (environ or {}) | {name: value},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        witnesses.call(f"segtail {words[0]}, its {stated.name}", self.words, self.running)

    def words(self) -> str:
        """How it is, what it said last, and what its page tells of itself: for whoever reads a failure."""
        status = self._process.poll()
        state = f"runs: {[process.pid for process in self.family]}" if status is None else f"ended with {status}"
        page = self._answer(_LOOK_QUICKLY_SECONDS) if status is None else ""
        reported = [line for line in page.splitlines() if line.startswith(_TELLING)]
        return "\n".join([state, witnesses.tail(self._stated), *reported])

    @property
    def mark(self) -> str:
        """What stands in the environment of all its processes."""
        return self._family

    @property
    def stated(self) -> str:
        """Standard error so far."""
        return self._stated.read_text()

    @property
    def family(self) -> list[Process]:
        """The processes of it that are alive."""
        return [*marked(self._family)]

    def member(self, words: str) -> Process | None:
        """One whose command line holds ``words``."""
        return next((process for process in self.family if words in process.command), None)

    @property
    def agent(self) -> Process | None:
        return self.member(" agent --child ")

    @property
    def jvm(self) -> Process | None:
        return self.member("org.apache.spark.deploy.SparkSubmit")

    @property
    def url(self) -> str | None:
        """Where its metrics are, when it has said so. One that ended before is not waited for."""
        ended = not self.running()
        lines = [line for line in self.stated.splitlines() if line.startswith("segtail: metrics at ")]
        assert lines or not ended, f"it ended before it served its page: {self.stated}"
        return lines[0].removeprefix("segtail: metrics at ") if lines else None

    def page(self) -> Page:
        """What it exports now; nothing before it answers."""
        return read_page(self._answer(SECONDS))

    def _answer(self, seconds: float) -> str:
        if self.url is None:
            return ""
        try:
            with urllib.request.urlopen(self.url, timeout=seconds) as answer:
                page: bytes = answer.read()
                return page.decode()
        except (OSError, HTTPException):  # the latter where it is killed while it answers
            return ""

    def running(self) -> bool:
        return self._process.poll() is None

    def kill(self, process: Process | None = None) -> None:
        """Kill -9 one process, the driver if none is named."""
        os.kill(self._process.pid if process is None else process.pid, signal.SIGKILL)

    def kill_group(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)

    def kill_family(self) -> None:
        for process in self.family:
            _signal(process, signal.SIGKILL)

    def reap(self) -> None:
        """Wait for the process that was started, which was killed; what it has started may live on for a moment."""
        self._process.wait(SECONDS)

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def terminate_family(self) -> None:
        """What a supervisor does that ends all processes of a service at once."""
        for process in self.family:
            _signal(process, signal.SIGTERM)

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        os.killpg(self._process.pid, signal.SIGINT)

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit status, after which nothing of the family may be left for long."""
        status = self._process.wait(seconds)
        until(f"nothing is left of {self.family}", lambda: not self.family)
        return status


def take_interrupts() -> None:
    """For ``preexec_fn``: a shell lets what it starts in the background ignore Ctrl-C, and what that starts inherits it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def reap(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Wait for a process that was told to end. One that hangs is killed, and reported."""
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


@contextmanager
def segtail(*arguments: object, stated: Path, environ: dict[str, str] | None = None, before: Sequence[str] = ()) -> Iterator[Segtail]:
    """A `segtail` that does not outlive the block, whatever happens in it. ``before`` is a command that runs it."""
    started = Segtail(arguments, stated, environ, before)
    try:
        yield started
    finally:
        started.kill_family()
        started.wait()


def left_of(ended: Sequence[Segtail]) -> list[Process]:
    """What is alive of families whose first process has ended, found in one look at all processes."""
    return [*marked(*(each.mark for each in ended))]


def read_page(text: str) -> Page:
    """A page in the text format; a series that comes twice fails."""
    found: Page = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = Sample(sample.name, frozenset(sample.labels.items()))
            assert series not in found
            found[series] = sample.value
    return found


_CLOCKS = re.compile(
    "last_append_timestamp|retention_(lag|overdue|reclaimable|blocked)|max_timestamp_ahead|oldest_open_transaction_start"
    "|transaction_duration_seconds_(bucket|sum)|active_producers|(hanging|stuck)_transactions|last_stable_offset_stalled"
)
"""What follows from the clock on the wall: ages, when something was seen, whose time is over, what has been silent for long.

A job that saw a batch being appended takes the time of that; one that came later takes the batch's timestamp (docs/transactions.md).
"""

WATCHED = re.compile("append_(delay|ahead)_|(appended|arrives)_expired_")
"""What is counted only of batches whose append was seen: how late records arrive. Another agent sees them at other moments."""


def counted(page: Page) -> Page:
    """What must not depend on when and how often the job was started: everything of logs and topics but the clock's and what was watched.

    Records are counted by agents while a job runs: a job with --once has none of them.
    """
    kept, left_out = ("segtail_partition_", "segtail_topic_", "segtail_skipped_"), "segtail_partition_records"
    found = {series: value for series, value in page.items() if series.name.startswith(kept) and series.name != left_out}
    return {series: value for series, value in found.items() if not _CLOCKS.search(series.name) and not WATCHED.search(series.name)}


def differences(found: Page, wanted: Page) -> list[str]:
    """Each series that is not the same on both pages, in plain words: two whole pages say nothing to whoever reads a failure."""
    differing = (each for each in found.keys() | wanted.keys() if found.get(each) != wanted.get(each))
    return sorted(f"{each.name}{dict(sorted(each.labels))}: {found.get(each)}, not {wanted.get(each)}" for each in differing)


def values(page: Page, name: str) -> dict[tuple[str, int], float]:
    """One series name by topic and partition."""
    found = {}
    for series, value in page.items():
        if series.name == name:
            labels = dict(series.labels)
            key = (labels["topic"], int(labels["partition"]))
            assert key not in found
            found[key] = value
    return found


def exported(page: Page) -> dict[tuple[str, int], Counts]:
    """The counts of every partition, each of which may be there once."""
    names = ("appended_bytes_total", "appended_batches_total", "appended_records_total", "log_end_offset")
    columns = [values(page, f"segtail_partition_{name}") for name in names]
    return {key: Counts(*(column[key] for column in columns)) for key in columns[0]}


def _signal(process: Process, number: signal.Signals) -> None:
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return  # it was faster
