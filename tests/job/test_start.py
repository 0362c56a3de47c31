"""The start of a job: the page answers before its agent and Spark are there, and what agents know needs no Spark."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from streaming.spark.job import job as module
from streaming.spark.job.child import ChildAgent
from streaming.spark.job.job import Job
from streaming.terminal import configuration
from tests.builders import batch, log_dir, partition
from tests.job_without_spark import NoSpark
from tests.processes import until


def status(page: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{page}api/v1/status") as answer:
        return dict(json.load(answer))


def test_the_page_answers_first_and_the_disks_are_read_while_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders").append(batch(3))
    pages: list[str] = []
    seen: dict[str, dict[str, Any]] = {}

    class SlowSpark(NoSpark):
        def connect(self) -> None:
            until("the agent has read its disk", lambda: (status(pages[0])["start"] or {}).get("all_bytes"))
            seen["spark"] = status(pages[0])
            raise LookupError("that is all")

    start = ChildAgent.start

    def started(child: ChildAgent) -> None:
        seen["agent"] = status(pages[0])
        start(child)

    monkeypatch.setattr(module, "Spark", SlowSpark)
    monkeypatch.setattr(ChildAgent, "start", started)
    given = {"log_dirs": str(disk.path), "checkpoint": str(tmp_path / "c"), "from": "earliest", "listen": "127.0.0.1:0"}
    with pytest.raises(LookupError), Job(configuration.load(None, {}, given), listening=pages.append):
        pass
    assert (seen["agent"]["start"]["step"], seen["agent"]["verdict"]) == ("agents", "Starting: no agent has answered yet")
    assert (seen["spark"]["start"]["step"], seen["spark"]["agents"][0]["up"]) == ("spark", True)
    assert seen["spark"]["verdict"].startswith("Starting Spark, which counts what is on the disks: ")
    assert (seen["spark"]["newest_ms"], seen["spark"]["not_current"], seen["spark"]["ready"]) == (None, None, False)
