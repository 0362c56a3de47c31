"""Two jobs side by side, how they end, and what a job does whose agent has lost its cache."""

import shutil
from pathlib import Path

import pytest

from tests.commands import into
from tests.faults.writing import writing_broker, written
from tests.processes import Segtail, about_this_test, counted, differences, exported, read_page, segtail, until

pytestmark = [pytest.mark.spark, pytest.mark.live]


def ends_well(job: Segtail) -> None:
    assert job.wait() == 0, job.stated
    assert "Traceback" not in job.stated or _TOO_SLOW in job.stated


_TOO_SLOW = "connect back"
"""What a job says on a machine that lets nobody work: a worker of Spark's has ten seconds to start, which nobody can change."""


def says_little(job: Segtail) -> bool:
    """Nothing but where its metrics are, and its own log."""
    if _TOO_SLOW in job.stated:
        return True
    lines = about_this_test(job.stated)
    lines.remove(f"segtail: page at {job.url.removesuffix('metrics')}" if job.url else "")
    lines.remove(f"segtail: metrics at {job.url}")
    return all(line.startswith("time=") and "level=info logger=streaming." in line for line in lines)


def test_two_jobs_count_the_same_and_end_when_they_are_asked(tmp_path: Path) -> None:
    with writing_broker(tmp_path / "broker") as broker:

        def job(name: str, *more: str) -> tuple[str | Path, ...]:
            return ("run", "--log-dirs", broker.log_dirs, "--from", "earliest", "--checkpoint", tmp_path / name, *more)

        live = ("--listen", "127.0.0.1:0", "--trigger", "200ms", "--set", "state_shards=2")
        with (
            segtail(*job("one", *live), stated=tmp_path / "one.said") as one,
            segtail(*job("two", *live), stated=tmp_path / "two.said") as two,
            segtail(*job("three", *live), stated=tmp_path / "three.said") as three,
        ):
            until("the JVM is being started", lambda: three.jvm)
            three.terminate()
            ends_well(three)  # while it starts
            until("both follow", lambda: exported(one.page()) and exported(two.page()))
            broker.write_on(1_000)
            until(
                f"both have {written(broker)}",
                lambda: exported(one.page()) == exported(two.page()) == written(broker),
                saw=lambda: (exported(one.page()), exported(two.page())),
            )
            # times of segments come with a later listing than the counters do
            until(
                "both pages hold the same",
                lambda: not differences(counted(one.page()), counted(two.page())),
                saw=lambda: differences(counted(one.page()), counted(two.page())),
            )

            with segtail(*job("one", "--once"), stated=tmp_path / "second.said") as second:
                assert second.wait() == 2
                assert second.stated.startswith(f"segtail: error: checkpoint {tmp_path / 'one'} is in use by another job: stop it, or name")
            one.interrupt()
            ends_well(one)
            assert says_little(one), one.stated
            two.terminate_family()
            ends_well(two)

        broker.write_on(1_000)
        shutil.rmtree(tmp_path / "one" / "agent")
        out = tmp_path / "out.prom"
        with segtail(*job("one", "--once"), stated=tmp_path / "one.said", before=into(out)) as one:
            assert one.wait() == 0, one.stated
        assert exported(read_page(out.read_text())) == written(broker)
