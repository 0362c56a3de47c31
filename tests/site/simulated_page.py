"""The page of a simulated broker, on whose disk some things went wrong: read once, by all that a job reads it with but Spark."""

from pathlib import Path

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.settings import Settings
from streaming.pages.api.state import State
from streaming.pages.site.page_site import PageSite
from streaming.simulator.broker import HISTORY_MS, SimulatedBroker
from streaming.terminal.offline.everything import read_everything

START = 1_795_000_000_000
BUSY_MS = 15_000
NAMED = (Path("/var/lib/kafka/data-1"), Path("/var/lib/kafka/data-2"))
"""What commands on the page call the log dirs, wherever they were made."""


def simulated_broker(directory: Path) -> tuple[Path, ...]:
    """The log dirs of a broker that was quiet, and then busy for some seconds; made below a directory."""
    broker = SimulatedBroker(directory, seed=7, clock=lambda: START, history_ms=HISTORY_MS, rate_bytes_per_second=300_000)
    broker.step(START + BUSY_MS)
    broker.close()
    return broker.log_dirs


def simulated_state(directory: Path) -> State:
    """Makes the broker's log dirs below a directory, and reads them."""
    log_dirs = simulated_broker(directory)
    settings = Settings(log_dirs=NAMED, server_properties=(directory / "server.properties",))
    return read_everything(open_log_dirs(log_dirs), settings, START + BUSY_MS)


def simulated_site(directory: Path) -> PageSite:
    """The page of what was read of them."""
    return page_of(simulated_state(directory))


def page_of(state: State) -> PageSite:
    """The page of what was read, as ``segtail page`` serves it: without what a scrape costs."""
    return PageSite(state, None)
