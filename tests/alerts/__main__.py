"""A real Prometheus and Alertmanager on a running segtail: ``python -m tests.alerts [HOST:PORT]``, or ``make monitor``."""

import argparse
import signal
import socket
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

from tests.alerts.monitoring import ALWAYS, MonitoringError, Page, free_addresses, missing_packages, monitoring
from tests.alerts.rendering import Addresses

_USUAL = {"prometheus": 9090, "alertmanager": 9093, "webhook": 9095}  # those of conf/


def main() -> int:
    """Run until Ctrl-C, and show every page. Returns the exit status: 2 where it cannot run as asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.alerts", description="Prometheus and Alertmanager on a running segtail.")
    parser.add_argument("target", nargs="?", default="127.0.0.1:9712", metavar="HOST:PORT", help="where segtail serves (%(default)s)")
    target = parser.parse_args().target
    if packages := missing_packages():
        print(f"monitor: not installed: {', '.join(packages)} (Debian: apt-get install {' '.join(packages)})", file=sys.stderr)
        return 2
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: over.set())
    addresses = Addresses(target=target, **{name: _address(port) for name, port in _USUAL.items()})
    with tempfile.TemporaryDirectory(prefix="segtail-monitor-") as scratch:
        try:
            with monitoring(Path(scratch), addresses, Printer().show):
                print(f"monitor: Prometheus at http://{addresses.prometheus}, Alertmanager at http://{addresses.alertmanager}")
                if not _listens(target):
                    print(
                        f"monitor: nothing listens on {target}; start `segtail run` or `make demo` beside this, "
                        "or give its address: make monitor TARGET=..."
                    )
                print("monitor: pages are shown here as they come; Ctrl-C ends it", flush=True)
                over.wait()
        except MonitoringError as error:
            print(f"monitor: {error}", file=sys.stderr)
            return 1
    return 0


def _address(port: int) -> str:
    """The usual one, or any other where that is taken."""
    return free_addresses(1)[0] if _listens(f"127.0.0.1:{port}") else f"127.0.0.1:{port}"


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True


class Printer:
    """Prints pages as they come, in threads of the receiver."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects what follows, and keeps the lines of a page together
        self._always_shown = False

    def show(self, page: Page) -> None:
        """What is new in a page; one that is resolved says again what it said, and the alert that always fires buries no other."""
        name = page.labels["alertname"]
        with self._lock:
            if name == ALWAYS and self._always_shown:
                return
            self._always_shown |= name == ALWAYS
            print(f"\n{page.status.upper()} {name}: {page.annotations['summary']}")
            if page.status == "firing":
                print(textwrap.indent(page.annotations["description"], "    "))
            sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
