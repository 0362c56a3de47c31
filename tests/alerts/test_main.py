"""What ``make monitor`` runs."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.alerts.__main__ import Printer
from tests.alerts.monitoring import PROGRAMS, Page, free_addresses
from tests.limits import SECONDS
from tests.processes import until
from tests.tools import require_tool

ROOT = Path(__file__).resolve().parents[2]


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port))).close()
    except OSError:
        return False
    return True


def test_a_missing_program_is_named_with_its_package(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.alerts"], env={"PATH": str(tmp_path)}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "monitor: not installed: prometheus, prometheus-alertmanager (Debian: apt-get install prometheus prometheus-alertmanager)\n"
    )


def test_the_alert_that_always_fires_is_printed_once_and_all_others_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer()
    for number, name in enumerate(("Watchdog", "BrokerDown", "Watchdog", "BrokerDown", "Watchdog")):
        printer.show(
            Page(notification=number, status="firing", labels={"alertname": name}, annotations={"summary": "s", "description": "d"})
        )
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines == ["FIRING Watchdog: s", "    d", "FIRING BrokerDown: s", "    d", "FIRING BrokerDown: s", "    d"]


@pytest.mark.programs
def test_it_says_where_it_is_and_leaves_nothing_running(tmp_path: Path) -> None:
    for program in PROGRAMS:
        require_tool(program)
    (nobody,) = free_addresses(1)
    stated = tmp_path / "said"
    with stated.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "tests.alerts", nobody], cwd=ROOT, stdout=out, stderr=out)
    try:
        until("it is ready", lambda: "Ctrl-C ends it" in stated.read_text() or process.poll() is not None, saw=stated.read_text)
        addresses = re.findall(r"at http://(\S+?)(?:,|\s)", stated.read_text())
        assert len(addresses) == 2, stated.read_text()
        assert all(_listens(address) for address in addresses)
        assert f"nothing listens on {nobody}; start `segtail run` or `make demo`" in stated.read_text()
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(SECONDS)
    assert status == 0
    assert not any(_listens(address) for address in addresses)
