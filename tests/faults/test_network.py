"""A job whose network to one of its agents is cut, swallows everything, or is cut for its executors alone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.spark.job import worker_daemon
from tests.faults.network import EVERYBODY, Network
from tests.faults.writing import WritingBroker, writing_broker, written
from tests.ports import free_ports
from tests.processes import Counts, Page, exported, read_page, until
from tests.worlds.scraping import Scraper, scrape
from tests.worlds.services import service

pytestmark = [pytest.mark.spark, pytest.mark.live]

NEAR, FAR = "near", "far"
UP = "segtail_agent_up"
EXECUTORS = worker_daemon.__name__
SMALL = ("--spark", "spark.driver.memory=512m", "--trigger", "200ms", "--set", "state_shards=2")

Key = tuple[str, int]


@dataclass(frozen=True)
class CutNetwork:
    """A broker with two log dirs, an agent for each, the far one behind a network that can be cut, and a job of both."""

    broker: WritingBroker
    network: Network
    pages: Scraper

    def page(self) -> Page:
        return read_page(scrape(self.pages.url) or "")

    def of(self, agent: str, counts: dict[Key, Counts]) -> dict[Key, Counts]:
        """Those of the partitions that lie where this agent looks."""
        log_dir = Path(self.broker.log_dirs.split(",")[(NEAR, FAR).index(agent)])
        return {key: value for key, value in counts.items() if (log_dir / f"{key[0]}-{key[1]}").is_dir()}

    def up(self, agent: str) -> bool:
        """Whether the page says so."""
        return any(value == 1 for series, value in self.page().items() if series.name == UP and ("agent", agent) in series.labels)

    def waits(self) -> bool:
        """Whether the page says that something was published and did not arrive."""
        return any(value > 0 for series, value in self.page().items() if series.name == "segtail_tail_lag_bytes")

    def write(self) -> None:
        self.broker.write_on(500)

    def has_all_of(self, agent: str) -> bool:
        return self.of(agent, exported(self.page())) == self.of(agent, written(self.broker))

    def until_whole(self) -> None:
        """Everything is counted, and everybody is well."""
        until(
            f"the page has {written(self.broker)}", lambda: exported(self.page()) == written(self.broker), saw=lambda: exported(self.page())
        )
        until("the far agent is up", lambda: self.up(FAR))


@contextmanager
def running(directory: Path) -> Iterator[CutNetwork]:
    near, far, listen = free_ports(3)
    with ExitStack() as stack:
        broker = stack.enter_context(writing_broker(directory / "broker"))
        for name, port, log_dir in zip((NEAR, FAR), (near, far), broker.log_dirs.split(","), strict=True):
            where = ("--log-dirs", log_dir, "--listen", f"127.0.0.1:{port}", "--name", name)
            stack.enter_context(service(name, "agent", *where, directory=directory))
        network = stack.enter_context(Network(far))
        agents = f"http://127.0.0.1:{near},{network.address}"
        of_both = ("--agents", agents, "--checkpoint", directory / "checkpoint", "--listen", f"127.0.0.1:{listen}")
        stack.enter_context(service("job", "run", "--from", "earliest", *of_both, *SMALL, directory=directory))
        pages = stack.enter_context(Scraper(f"http://127.0.0.1:{listen}/metrics"))
        yield CutNetwork(broker, network, pages)


def test_nothing_is_lost_over_a_network_that_fails_and_the_other_agent_goes_on(tmp_path: Path) -> None:
    with running(tmp_path) as world:
        world.until_whole()
        cuts: list[Callable[[], None]] = [lambda: world.network.cut(EVERYBODY), world.network.swallow]
        for cut in cuts:
            before = world.of(FAR, exported(world.page()))
            cut()
            until("the page says that it is away", lambda: scrape(world.pages.url) and not world.up(FAR))
            world.write()
            until("the other agent goes on", lambda: world.has_all_of(NEAR))
            assert world.up(NEAR)
            assert world.of(FAR, exported(world.page())) == before
            world.network.mend()
            world.until_whole()

        world.network.cut(EXECUTORS)
        world.write()
        until("the other agent goes on", lambda: world.has_all_of(NEAR))
        assert not world.has_all_of(FAR)
        until("the page says that something waits", world.waits)
        world.network.mend()
        world.until_whole()

        assert world.pages.steps_back == []
        assert {value for series, value in world.page().items() if series.name == "segtail_skipped_bytes_total"} == {0}
