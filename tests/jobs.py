"""Jobs inside the test's own process, over the Spark that all tests share: what a run counts, where the process is not the point."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streaming.common.settings import Settings
from streaming.errors import SegtailError
from streaming.pages.exposition.render import render
from streaming.spark.job import job as module
from streaming.spark.job.job import Job
from streaming.terminal import configuration
from tests.processes import Page, read_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that has processed what was there. ``page`` is empty where it wrote none; ``status`` is the one of `segtail run --once`."""

    page: Page
    error: str
    status: int


class _Shared:
    """Stands for the job's own Spark, which it would start and end."""

    status = None

    def __init__(self, session: "SparkSession") -> None:
        self.session = session

    @property
    def hadoop(self) -> tuple[Any, Any]:
        context = self.session.sparkContext
        return context._jvm, context._jsc.hadoopConfiguration()

    def connect(self) -> None:
        """It is there."""

    def hush(self) -> None:
        """What comes from the JVM now is as it was."""

    def stop(self) -> None:
        """Others go on with it."""


def run_once(session: "SparkSession", checkpoint: Path, *log_dirs: Path, clock: Callable[[], float] = time.time, **options: str) -> Ended:
    """`segtail run --once` with an agent of its own, which is a process."""
    page: Page = {}
    try:
        with _on(session), Job(_settings(checkpoint, log_dirs, options), clock=clock, serve=False) as job:
            assert job.run_once(threading.Event())
            page = read_page(render(job.table, job.observer, clock(), groups=job.groups).decode())
            job.refuse_unread()
    except SegtailError as error:
        return Ended(page, str(error), error.exit_status)
    return Ended(page, "", 0)


@contextmanager
def serving(session: "SparkSession", checkpoint: Path, *log_dirs: Path, **options: str) -> Iterator[str]:
    """`segtail run`; yields where it serves. What ends it too early is raised at the end."""
    stop = threading.Event()
    with (
        _on(session),
        Job(_settings(checkpoint, log_dirs, options | {"listen": "127.0.0.1:0"})) as job,
        ThreadPoolExecutor(1, "job") as threads,
    ):
        assert job.exporter is not None
        done = threads.submit(job.run, stop)
        try:
            yield job.exporter.url.removesuffix("/metrics")
        finally:
            stop.set()
            done.result()


def _settings(checkpoint: Path, log_dirs: tuple[Path, ...], options: dict[str, str]) -> Settings:
    """From the first byte on, in two pieces of state, unless the test has other options."""
    given = {"log_dirs": ",".join(map(str, log_dirs)), "checkpoint": str(checkpoint), "from": "earliest", "state_shards": "2"}
    return configuration.load(None, {}, given | options)


@contextmanager
def _on(session: "SparkSession") -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Spark", lambda **_: _Shared(session))
        yield
