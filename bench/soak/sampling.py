"""What long runs are judged by: samples of the processes of a job and its agent, and lines through the second half of them."""

import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.worlds.services import AGENT, DRIVER, JVM, Service

SOURCE_AND_WORKERS = "workers"
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that must not grow: what it is, its unit as a divisor, and how much it may grow in the second half of a run.

    ``share`` is of the mean of that half, ``least`` is allowed in any case, in the unit of the samples.
    """

    name: str
    unit: str
    divisor: float
    share: float
    least: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The samples of a measure: ``growth`` is how much the line through the second half rises over it."""

    first: float
    highest: float
    last: float
    growth: float
    flat: bool


MEMORY = {part: Measure(f"{part}, PSS", "MiB", _MIB, 0.10, 24 * _MIB) for part in (AGENT, DRIVER, JVM, SOURCE_AND_WORKERS)}
RESIDENT = {part: Measure(f"{part}, RSS", "MiB", _MIB, 0.10, 24 * _MIB) for part in MEMORY}
DESCRIPTORS = {part: Measure(f"{part}, descriptors", "", 1, 0.05, 16) for part in MEMORY}
CACHE = Measure("files of the cache", "MiB", _MIB, 0.10, 16 * _MIB)
LAG = Measure("tail lag", "MiB", _MIB, 0.10, 16 * _MIB)
MEASURES = (*MEMORY.values(), *RESIDENT.values(), *DESCRIPTORS.values(), CACHE, LAG)


def trend(measure: Measure, samples: Sequence[tuple[float, float]]) -> Trend:
    """Judge samples, (seconds, value) in order."""
    values = [value for _, value in samples]
    half = samples[len(samples) // 2 :]
    line = statistics.linear_regression(*zip(*half, strict=True)) if len(half) > 1 else None
    growth = line.slope * (half[-1][0] - half[0][0]) if line is not None else 0.0
    allowed = max(measure.least, measure.share * statistics.fmean(value for _, value in half))
    return Trend(values[0], max(values), values[-1], growth, growth <= allowed)


def sample(agent: Service, job: Service) -> dict[Measure, float]:
    """Memory and open descriptors of the processes of both, by part."""
    found: dict[Measure, float] = {}
    members = {AGENT: [process.pid for process in agent.running.family]}
    for process in job.running.family:
        members.setdefault(_part(process.command), []).append(process.pid)
    for part in MEMORY:
        pids = members.get(part, [])
        found[MEMORY[part]] = _sum(pids, lambda pid: _kib(pid, "Pss:") * 1024)
        found[RESIDENT[part]] = _sum(pids, lambda pid: _kib(pid, "Rss:") * 1024)
        found[DESCRIPTORS[part]] = _sum(pids, lambda pid: len(os.listdir(f"/proc/{pid}/fd")))
    return found


def size_of(directory: Path) -> int:
    """Bytes of all files in a directory."""
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file())


def lines(trends: Mapping[Measure, Trend]) -> list[tuple[str, ...]]:
    """A table of trends."""
    return [
        (
            f"{measure.name}{f' {measure.unit}' if measure.unit else ''}",
            *(f"{value / measure.divisor:,.0f}" for value in (each.first, each.highest, each.last)),
            f"{each.growth / measure.divisor:+,.1f}",
            "flat" if each.flat else "GROWS",
        )
        for measure, each in trends.items()
    ]


def _part(command: str) -> str:
    if "org.apache.spark.deploy.SparkSubmit" in command:
        return JVM
    return SOURCE_AND_WORKERS if " -m pyspark" in command else DRIVER


def _sum(pids: Iterable[int], read: Callable[[int], float]) -> float:
    total = 0.0
    for pid in pids:
        try:
            total += read(pid)
        except OSError:  # it has ended
            continue
    return total


def _kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0
