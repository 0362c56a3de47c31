"""What is between Prometheus and the job, on a page that stands still."""

from tests.operations.scrapes import Scrapes
from tests.ports import free_ports
from tests.serving import answering


def test_scrapes_are_handed_on_and_every_second_one_fails_where_it_should() -> None:
    with answering(lambda path: (200, f"the page at {path}".encode())) as page:
        scrapes = Scrapes(page.removeprefix("http://"))
        assert [scrapes.answer("/metrics") for _ in range(2)] == [(200, b"the page at /metrics")] * 2
        scrapes.every_second_fails = True
        assert [scrapes.answer("/metrics")[0] for _ in range(4)] == [200, 503, 200, 503]


def test_a_scrape_of_a_job_that_does_not_run_fails() -> None:
    (port,) = free_ports(1)
    assert Scrapes(f"127.0.0.1:{port}").answer("/metrics") == (503, b"")
