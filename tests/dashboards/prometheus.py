"""A real Prometheus on a database that promtool made, asked over loopback."""

import json
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.dashboards.history import END, Cluster, write, write_down
from tests.dashboards.panels import Target, fill
from tests.limits import SECONDS


@dataclass(frozen=True, slots=True)
class Series:
    """Labels, and pairs of Unix seconds and a value."""

    labels: dict[str, str]
    points: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Prometheus:
    """Where one listens."""

    url: str

    def ask(self, path: str, **parameters: object) -> Any:
        """The data of an answer.

        Raises:
            AssertionError: Prometheus says that the query is wrong.
        """
        query = urllib.parse.urlencode(parameters).encode()
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}", query, timeout=SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters.get('query')}: {error.read().decode()}") from error

    def over(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """The series of a query over time."""
        found = self.ask("query_range", query=expr, start=start, end=end, step=step)["result"]
        return [Series(each["metric"], [(at, float(value)) for at, value in each["values"]]) for each in found]

    def at(self, expr: str, time: float) -> list[Series]:
        """The series of a query at one time."""
        found = self.ask("query", query=expr, time=time)["result"]
        return [Series(each["metric"], [(each["value"][0], float(each["value"][1]))]) for each in found]


def answer(prometheus: Prometheus, target: Target, values: dict[str, str], *, end: float, seconds: float, step: float) -> list[Series]:
    """What a panel's query gets, its variables filled in."""
    expr = fill(target.expr, values, rate=f"{4 * step:.0f}s")
    return prometheus.at(expr, end) if target.instant else prometheus.over(expr, end - seconds, end, step)


@contextmanager
def serving(programs: tuple[Path, Path], clusters: Sequence[Cluster], folder: Path, *, down: bool = False) -> Iterator[Prometheus]:
    """A Prometheus with the history of clusters, and of some that are ``down``; ``programs`` are prometheus and promtool."""
    server, tool = programs
    write(clusters, folder / "history")
    write_down(folder / "down")
    for each in ("history", "down")[: 1 + down]:
        subprocess.run([tool, "tsdb", "create-blocks-from", "openmetrics", each, "data"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with running(server, folder, "global: {}\n") as found:
        yield found


@contextmanager
def running(server: Path, folder: Path, configuration: str) -> Iterator[Prometheus]:
    """A Prometheus with this ``prometheus.yml``, and with what is in ``data`` below its folder."""
    (folder / "prometheus.yml").write_text(configuration)
    command = [
        *(server, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y"),
        *("--web.listen-address=127.0.0.1:0", "--log.format=json"),
    ]
    # The port that it takes stands in its log alone.
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            stated: list[str] = []
            address = _address(process.stderr, stated)
            assert address, "".join(stated)
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            yield Prometheus(f"http://{address}")
        finally:
            process.terminate()


def _address(log: Any, stated: list[str]) -> str:
    """The address out of the log, when it is ready, which may be said first; "" if the log ends before."""
    address, ready = "", False
    for line in log:
        stated.append(line)
        message = json.loads(line)
        if message.get("msg") == "Listening on":
            address = message["address"]
        ready = ready or "ready to receive web requests" in message.get("msg", "")
        if address and ready:
            return address
    return ""


__all__ = ["END", "Prometheus", "Series", "answer", "running", "serving"]
