"""A disk without room, under an agent's cache and under a job's checkpoint: it is said, and nothing is lost or counted twice."""

from pathlib import Path

import pytest

from tests.faults.consuming import Consumer
from tests.faults.disk import small_disk
from tests.faults.writing import sizes, writing_broker, written
from tests.ports import free_ports
from tests.processes import Page, exported, read_page, until
from tests.worlds.scraping import Scraper, scrape
from tests.worlds.services import Service, service

pytestmark = pytest.mark.live


def ended_again(running: Service) -> bool:
    """Tends it; whether it has ended since it was started for the first time."""
    running.tend()
    return running.starts > 1


def test_an_agent_goes_on_without_a_cache_that_has_no_room(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with writing_broker(tmp_path / "broker") as broker, small_disk(tmp_path / "small", "16m") as disk:
        disk.fill()
        with service(
            *("agent", "agent", "--log-dirs", broker.log_dirs, "--cache", disk.path, "--set", "scrub_rate=1GiB"),
            *("--listen", f"127.0.0.1:{port}", "--name", "full"),
            directory=tmp_path / "messages",
            before=disk.before,
        ) as agent:
            consumer = Consumer(f"http://127.0.0.1:{port}")
            for _ in range(2):
                broker.write_on(500)
                until("everything is published", lambda: consumer.bytes() == sizes(broker))
            assert len([each for each in agent.messages() if "scans are not kept" in each]) == 1
            assert "Traceback" not in "\n".join(agent.messages())
            assert not ended_again(agent)
            consumer.close()


@pytest.mark.spark
def test_a_job_goes_on_where_it_was_when_its_checkpoint_has_room_again(tmp_path: Path) -> None:
    port, listen = free_ports(2)
    where = ("--listen", f"127.0.0.1:{port}", "--name", "roomy")
    with (
        writing_broker(tmp_path / "broker") as broker,
        small_disk(tmp_path / "small", "256m") as disk,
        service("agent", "agent", "--log-dirs", broker.log_dirs, *where, directory=tmp_path),
        service(
            *("job", "run", "--agents", f"http://127.0.0.1:{port}", "--from", "earliest", "--checkpoint", disk.path / "checkpoint"),
            *("--listen", f"127.0.0.1:{listen}", "--trigger", "200ms", "--spark", "spark.driver.memory=512m", "--set", "state_shards=2"),
            directory=tmp_path,
            before=disk.before,
        ) as job,
        Scraper(f"http://127.0.0.1:{listen}/metrics") as pages,
    ):

        def page() -> Page:
            job.tend()
            return read_page(scrape(pages.url) or "")

        def fails() -> bool:
            broker.write_on(20)
            return ended_again(job) or any(series.name == "segtail_query_restarts_total" and value > 0 for series, value in page().items())

        until("everything is counted", lambda: exported(page()) == written(broker), saw=lambda: exported(page()))
        disk.fill()
        until("the query fails, because it cannot write", fails)
        assert "No space left on device" in "\n".join(job.messages())
        disk.free()
        until("everything is counted, once", lambda: exported(page()) == written(broker), saw=lambda: exported(page()))
        assert pages.steps_back == []
        assert {value for series, value in page().items() if series.name == "segtail_skipped_bytes_total"} == {0}
