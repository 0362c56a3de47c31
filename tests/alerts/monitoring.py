"""A real Prometheus and Alertmanager on loopback ports, with the rules of conf/, and a receiver of what they send."""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from tests import witnesses
from tests.alerts import rendering
from tests.alerts.rendering import Addresses
from tests.alerts.shortening import shorten_duration
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import reap, until

PROGRAMS = ("prometheus", "prometheus-alertmanager")
"""The programs that must be there, as Debian calls them and the packages that hold them."""

ALWAYS = "Watchdog"
"""The alert that always fires, so that who is called knows that calls come through."""

_LOOKBACK = "5m"  # Prometheus' own

# Neither must outlive a run that was killed: PR_SET_PDEATHSIG holds over the exec. Linux alone has it.
_ENDS_WITH_PARENT = (
    (sys.executable, "-S", "-c", "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execvp(sys.argv[1], sys.argv[1:])")
    if sys.platform == "linux"
    else ()
)


class MonitoringError(Exception):
    """A part did not start; the message says which, and what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One alert of a notification, which has a number, as Alertmanager sends it to a webhook. ``status`` is firing or resolved."""

    notification: int
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Monitoring:
    """Both programs, ready to be asked."""

    def __init__(self, addresses: Addresses, directory: Path) -> None:
        self.addresses = addresses
        self._directory = directory

    def scrape(self, *targets: str) -> None:
        """From now on Prometheus scrapes these, under the name of one job."""
        rendering.set_targets(self._directory, targets)
        url = f"http://{self.addresses.prometheus}/-/reload"
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=SECONDS):
            pass

    def query(self, expression: str) -> list[dict[str, Any]]:
        """An instant vector, as Prometheus' API gives it."""
        found: list[dict[str, Any]] = self._prometheus("query", query=expression)["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """Every rule that is loaded, with its health and its alerts."""
        return [rule for group in self._prometheus("rules")["groups"] for rule in group["rules"]]

    def firing(self) -> set[str]:
        """The names of alerts that fire, muted or not, without the one that always does."""
        firing = {alert["labels"]["alertname"] for alert in self._prometheus("alerts")["alerts"] if alert["state"] == "firing"}
        return firing - {ALWAYS}

    def states(self, name: str, start: float, end: float, step: float) -> list[tuple[dict[str, str], list[float]]]:
        """Of each alert that was in a state (firing, pending) between two times: its labels, and at which steps it was."""
        selector = f'ALERTS{{alertstate="{name}"}}'
        found = self._prometheus("query_range", query=selector, start=f"{start:.3f}", end=f"{end:.3f}", step=f"{step:g}")["result"]
        own = {"__name__", "alertstate"}
        return [({k: v for k, v in each["metric"].items() if k not in own}, [t for t, _ in each["values"]]) for each in found]

    def post_alerts(self, *labels: dict[str, str], ended: bool = False) -> None:
        """Tell Alertmanager of alerts, as Prometheus would: that they fire, or that they do no longer."""
        over = {"endsAt": datetime.now(UTC).isoformat()} if ended else {}
        body = json.dumps([{"labels": each, **over} for each in labels]).encode()
        request = urllib.request.Request(f"{self._alertmanager}/alerts", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass

    def muted(self) -> dict[str, bool]:
        """Every alert that Alertmanager knows, by its labels as sorted ``name=value``, and whether another one mutes it."""
        with urllib.request.urlopen(f"{self._alertmanager}/alerts", timeout=SECONDS) as answer:
            alerts = json.load(answer)
        return {
            " ".join(f"{name}={value}" for name, value in sorted(alert["labels"].items())): bool(alert["status"]["inhibitedBy"])
            for alert in alerts
        }

    @property
    def _alertmanager(self) -> str:
        return f"http://{self.addresses.alertmanager}/api/v2"

    def _prometheus(self, what: str, **parameters: str) -> dict[str, Any]:
        url = f"http://{self.addresses.prometheus}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
        return data


@contextmanager
def monitoring(
    directory: Path, addresses: Addresses, on_page: Callable[[Page], None], *, hurried: bool = False, factor: int = 1
) -> Iterator[Monitoring]:
    """Run both until the block is left, with their files and what they say in ``directory``.

    Args:
        on_page: called with every alert of every notification, in threads of the receiver.
        hurried: with the times that `tests.alerts.rendering` cuts short.
        factor: divides all times alike, as `tests.alerts.shortening` has it.

    Raises:
        MonitoringError: one of them ended before it was ready.
    """
    rendering.write(directory, addresses, hurried=hurried, factor=factor)
    alertmanager = (
        "prometheus-alertmanager",
        f"--config.file={directory}/alertmanager.yml",
        f"--storage.path={directory}/alertmanager",
        f"--web.listen-address={addresses.alertmanager}",
        "--cluster.listen-address=",
    )
    prometheus = (
        "prometheus",
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/prometheus",
        f"--web.listen-address={addresses.prometheus}",
        "--web.enable-lifecycle",
        f"--query.lookback-delta={shorten_duration(_LOOKBACK, factor)}",
    )
    with (
        _receiver(addresses.webhook, on_page),
        _running(alertmanager, directory / "alertmanager.log", addresses.alertmanager),
        _running(prometheus, directory / "prometheus.log", addresses.prometheus),
    ):
        yield Monitoring(addresses, directory)


def free_addresses(count: int) -> list[str]:
    """So many loopback addresses that nobody listens on, and that no connection or server without a port of its own takes meanwhile."""
    return [f"127.0.0.1:{port}" for port in free_ports(count)]


@contextmanager
def _running(command: Sequence[str], stated: Path, address: str) -> Iterator[None]:
    with stated.open("wb") as log:
        process = subprocess.Popen([*_ENDS_WITH_PARENT, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        until(f"{command[0]} is ready", lambda: _is_ready(process, command[0], stated, address), saw=lambda: witnesses.tail(stated))
        yield
    finally:
        process.terminate()
        reap(process)


def _is_ready(process: subprocess.Popen[bytes], name: str, stated: Path, address: str) -> bool:
    if process.poll() is not None:
        raise MonitoringError(f"{name} did not start; it said:\n{witnesses.tail(stated)}")
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=SECONDS):
            return True
    except OSError:
        return False


@contextmanager
def _receiver(address: str, on_page: Callable[[Page], None]) -> Iterator[None]:
    numbers = count()

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            number = next(numbers)
            for alert in json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"]:
                on_page(Page(notification=number, status=alert["status"], labels=alert["labels"], annotations=alert["annotations"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing: what matters is told to ``on_page``."""

    host, _, port = address.rpartition(":")
    with ThreadingHTTPServer((host, int(port)), Webhook) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield
        finally:
            server.shutdown()
            serving.join()
