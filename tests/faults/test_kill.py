"""`kill -9` of any part of a job at any moment, then the same command: an undisturbed job's numbers, and nothing left running."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import into
from tests.faults.writing import WritingBroker, writing_broker, written
from tests.processes import Page, Segtail, counted, differences, exported, read_page, segtail, until, values

pytestmark = [pytest.mark.spark, pytest.mark.live, pytest.mark.long]

SMALL = ("--trigger", "200ms", "--set", "state_shards=2")


def records(job: Segtail) -> float:
    return sum(values(job.page(), "segtail_partition_appended_records_total").values())


def when_it_starts(job: Segtail, checkpoint: Path) -> None:
    until("the agent is being started", lambda: job.agent)


def when_spark_starts(job: Segtail, checkpoint: Path) -> None:
    until("the JVM is being started", lambda: job.jvm)


def after_the_first_commit(job: Segtail, checkpoint: Path) -> None:
    until("a micro-batch is committed", (checkpoint / "spark" / "commits" / "0").exists)


def while_batches_run(job: Segtail, checkpoint: Path) -> None:
    """At some moment among micro-batches that find new records."""
    first = until("records are exported", lambda: records(job))
    until(f"more than {first} records are exported", lambda: records(job) > first, saw=lambda: records(job))


def kill_driver(job: Segtail) -> None:
    job.kill()


def test_totals_are_those_of_an_undisturbed_run_whatever_is_killed_when(tmp_path: Path) -> None:
    checkpoint = tmp_path / "a checkpoint"
    with writing_broker(tmp_path / "broker") as broker:
        broker.start()
        where = ("--listen", "127.0.0.1:0", "--checkpoint", checkpoint)
        run = ("run", "--log-dirs", broker.log_dirs, "--from", "earliest", *where, *SMALL)
        disturb(run, tmp_path, checkpoint, when_it_starts, kill_driver)
        disturb(run, tmp_path, checkpoint, when_spark_starts, Segtail.kill_group)
        disturb(run, tmp_path, checkpoint, after_the_first_commit, kill_driver)
        with segtail(*run, stated=tmp_path / "said") as job:
            while_batches_run(job, checkpoint)
            outlive_the_agent(job)
            job.kill_family()
            job.wait()
        disturb(run, tmp_path, checkpoint, while_batches_run, kill_jvm)
        broker.rest()
        assert differences(once(broker, checkpoint, tmp_path), once(broker, tmp_path / "undisturbed", tmp_path)) == []


def disturb(
    run: tuple[object, ...], directory: Path, checkpoint: Path, moment: Callable[[Segtail, Path], None], kill: Callable[[Segtail], None]
) -> None:
    with segtail(*run, stated=directory / "said") as job:
        moment(job, checkpoint)
        kill(job)
        assert job.wait() != 0  # and nothing is left of it


def outlive_the_agent(job: Segtail) -> None:
    """The agent alone is killed: the job starts another and goes on."""
    killed, before = job.agent, records(job)
    assert killed is not None
    job.kill(killed)
    until("another agent is started", lambda: job.agent not in (None, killed))
    until(f"more than {before} records are exported", lambda: records(job) > before, saw=lambda: records(job))
    assert "the job's own agent ended, it is started again" in job.stated


def kill_jvm(job: Segtail) -> None:
    assert job.jvm is not None
    job.kill(job.jvm)
    until("the driver gives up", lambda: not job.running())
    assert "Traceback" not in job.stated or "connect back" in job.stated  # a worker that came too late: see test_stop.py
    assert "segtail: error: Spark's JVM does not answer any more" in job.stated


def once(broker: WritingBroker, checkpoint: Path, directory: Path) -> Page:
    """What a run to the end of what is there counts, after it was held against what the broker wrote."""
    out = directory / "out.prom"
    arguments = ("--from", "earliest", "--once", "--checkpoint", checkpoint)
    with segtail("run", "--log-dirs", broker.log_dirs, *arguments, stated=directory / "said", before=into(out)) as job:
        assert job.wait() == 0, job.stated
    page = read_page(out.read_text())
    assert exported(page) == written(broker)
    return counted(page)
