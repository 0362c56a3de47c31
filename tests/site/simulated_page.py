"""The page of a simulated broker, on whose disk some things went wrong: read once, by all that a job reads it with but Spark."""

from pathlib import Path

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.cost_json import Cost
from streaming.common.settings import Settings
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


def simulated_site(directory: Path) -> PageSite:
    """Makes the broker's log dirs below a directory, and reads them."""
    log_dirs = simulated_broker(directory)
    settings = Settings(log_dirs=NAMED, server_properties=(directory / "server.properties",))
    read = read_everything(open_log_dirs(log_dirs), settings, START + BUSY_MS)
    return PageSite(read, lambda: Cost(at_ms=-1))
